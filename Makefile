# Everything runs inside .venv, which is made on first use; PYTHON names the interpreter to make it with.
PYTHON ?= python3
BIN := .venv/bin
# Three keep two cores busy, since some tests wait.
WORKERS ?= 3
# Tests start many interpreters, which need not compile the sources each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test all-tests test-quick versions fuzz limits soak bits lint types docs bench table1 rivals cars faces format clean

demo: .venv/demo
	$(BIN)/python examples/0010_mistakes_with_prices.py

# A worker takes whole files, whose fixtures train or start what their tests share.
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST := $(BIN)/pytest $(SHARED)

# Types are checked beside the tests, some of which wait.
test: lint
	$(MAKE) --jobs 2 types all-tests

all-tests: .venv/dev
	$(PYTEST) $(PYTEST_ARGS)

# A file or two of every layer, from costs to commands: what a change most likely breaks.
QUICK := $(addprefix tests/, \
	costs loss test_oracles.py _utils/test_validation.py test_layers.py \
	io/test_budget.py io/test_user_file.py io/test_json_document.py io/test_model_file.py \
	tree/test_forest.py classifiers/test_badacost.py classifiers/test_costboost.py \
	tabular/test_classifier.py cli/test_predict.py cli/test_demo.py \
	detection/test_boxes.py detection/test_cascade.py detection/test_detector.py)

test-quick: lint
	$(PYTEST) $(QUICK) $(PYTEST_ARGS)

# The same tests with each Python at hand and with the oldest dependencies; SESSION chooses one, as in make versions SESSION=oldest.
versions: .venv/pip
	$(BIN)/python -m pip install --quiet --group versions
	$(BIN)/nox $(if $(SESSION),--session $(SESSION)) -- $(SHARED) $(PYTEST_ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev
	$(BIN)/mypy

docs: .venv/docs
	rm -rf docs/api/generated
	$(BIN)/sphinx-build -E -W --keep-going -b html docs docs/_build/html

bench: .venv/dev
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benchmarks/classifier.py
	$(BIN)/python benchmarks/detect.py
	$(BIN)/python benchmarks/distributed.py
	$(BIN)/python benchmarks/explorer.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/export.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/train_detector.py

# The paper's tables and our contests; ARGS are handed on, as in make table1 ARGS="--quick".
table1 rivals cars faces: .venv/experiments
	$(BIN)/python -m experiments $@ $(ARGS)

# Attacks: seeded cases for so many minutes, continued by the same command; hostile files one by one.
MINUTES ?= 10
fuzz: .venv/dev
	$(BIN)/python -m campaigns fuzz --minutes $(MINUTES) $(ARGS)

limits: .venv/dev
	$(BIN)/python -m campaigns limits $(ARGS)

# Kill -9 at random moments, and the same bits whatever happens around a fit.
KILLS ?= 100
soak: .venv/dev
	$(BIN)/python -m campaigns soak --kills $(KILLS) $(ARGS)

bits: .venv/dev
	$(BIN)/python -m campaigns bits $(ARGS)

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .nox build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis docs/_build docs/gallery docs/api/generated
	find src tests experiments campaigns -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pip: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/demo: .venv/pip
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

.venv/dev: .venv/pip
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

.venv/experiments: .venv/dev
	$(BIN)/python -m pip install --quiet --group experiments
	touch $@

.venv/docs: .venv/pip
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group docs
	touch $@
