"""What an import pulls in, and what is said where an optional package is missing."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import badacost

OPTIONAL = ("matplotlib", "pandas", "pyarrow", "lightgbm", "scikit_posthocs", "PIL", "av")
OPTIONAL += ("supervision", "typer", "rich", "polars", "cv2", "jinja2", "dask", "distributed")
OPTIONAL += ("onnx", "onnxruntime", "skl2onnx")
WITHOUT = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def run(code: str, missing: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run code in a new process in which some packages cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(missing=missing) + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_imports_pull_in() -> None:
    """No optional package, beyond those that scikit-learn looks for itself.

    Nor does the module of model files know a model: classes register themselves, and only the
    package itself knows where they are.
    """
    found = run(
        "import sklearn.ensemble; before = set(sys.modules)\n"
        "import badacost.io.model_file\n"
        "names = ('boosting', 'decision', 'detection', 'tabular', 'tree')\n"
        "print([name for name in names if f'badacost.{name}' in sys.modules])\n"
        "import badacost, badacost.detection, badacost.plotting, badacost.tabular, badacost.cli\n"
        "import badacost.datasets, badacost.cost_report, badacost.export, badacost.distributed\n"
        f"print(sorted(set({OPTIONAL!r}) & (set(sys.modules) - before)))"
    )
    assert found.stdout.split() == ["[]", "[]"], found.stdout + found.stderr


def test_the_command_line_answers_without_scientific_packages() -> None:
    """Words are completed at the press of a key."""
    found = run(
        "import badacost.cli.app, badacost\n"
        "print({'sklearn', 'numba', 'scipy'} & set(sys.modules), badacost.__version__)"
    )
    assert found.stdout.startswith("set() "), found.stdout + found.stderr


def test_public_names_are_all_there() -> None:
    assert set(badacost.__all__) <= set(dir(badacost))
    for name in badacost.__all__:
        assert getattr(badacost, name) is not None
    for name in badacost.family.__all__:  # found at the top, but not listed there
        assert getattr(badacost, name) is getattr(badacost.family, name)
        assert name not in dir(badacost)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        badacost.nothing  # noqa: B018


TINY = "X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]\n"
MODEL = TINY + "from badacost import BAdaCostClassifier as B; m = B(n_estimators=2).fit(X, y)\n"


CASES = [
    ("matplotlib", "plot", "import badacost.plotting as p; " + MODEL
     + "p.CostConfusionDisplay.from_estimator(m, X, y)"),
    ("jinja2", "report", "from badacost.cost_report import CostExplorer as E; "
     "E(['a', 'b'], [[0.5, 0.5]], [[0, 1], [1, 0]], [0]).to_html()"),
    ("jinja2", "report", "import badacost.cost_report as r; " + MODEL
     + "r.CostReport.from_estimator(m, X, y).save('page.html')"),
    ("jinja2", "report", "from badacost.detection.models import synthetic_cars as m; "
     "from badacost.detection.report import write_report as w; w(m(), 'page.html')"),
    ("pandas", "tables", "import badacost.tabular as t; t.read_table('table.csv')"),
    ("pyarrow", "tables", "import badacost.tabular as t; t.read_table('table.parquet')"),
    ("PIL", "detection", "import badacost.detection.images as i; i.read_image('a.png')"),
    ("PIL", "detection",
     "from badacost.detection.models import synthetic_cars as m; m().detect('a.png')"),
    ("av", "detection", "import badacost.detection.images as i; next(i.read_video('a.mp4'))"),
    ("supervision", "supervision", "from badacost.detection import Detections as D; "
     "from badacost.detection.interchange import to_supervision as t; t(D.empty(['a']))"),
    ("onnx", "onnx", "from badacost.export import to_onnx; " + MODEL + "to_onnx(m)"),
    ("skl2onnx", "onnx", "from badacost.export import register_converters as r; r()"),
    ("distributed", "dask",
     "from badacost.distributed import DaskCostBoostClassifier as D; D().fit([[0]], [0])"),
    ("typer", "cli", "import badacost.cli; badacost.cli.main()"),
    ("rich", "cli", "import badacost.cli; badacost.cli.main()"),
]  # fmt: skip
# What cases need is imported and loaded once: each one is a process forked from there.
FORKS = """
import json, os, sys, traceback
import badacost.cost_report, badacost.detection, badacost.export, badacost.plotting
exec({model!r})
for number, (missing, _, code) in enumerate(json.loads(sys.argv[1])):
    if not os.fork():
        exec({without!r}.format(missing=(missing,)))
        for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
            del sys.modules[name]
        said = "nothing"
        try:
            exec(code, {{}})
        except BaseException as error:
            said = traceback.format_exception_only(error)[-1]
        with open(f"case-{{number}}", "w") as file:
            file.write(said)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def complaints(tmp_path_factory) -> list[str]:
    """What each case says in the end."""
    folder = tmp_path_factory.mktemp("missing")
    for name in ("table.csv", "table.parquet", "a.png", "a.mp4"):
        (folder / name).write_text("a,b\n1,2\n")
    program = FORKS.format(without=WITHOUT, model=MODEL)
    subprocess.run([sys.executable, "-c", program, json.dumps(CASES)], cwd=folder, check=True)
    return [(folder / f"case-{number}").read_text() for number in range(len(CASES))]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number][0])
def test_a_missing_package_is_named_with_its_remedy(complaints, number) -> None:
    assert f'pip install "badacost[{CASES[number][1]}]"' in complaints[number]


def test_a_source_tree_can_be_imported_without_being_installed() -> None:
    """The version is in the source."""
    source = Path(badacost.__file__).parents[1]
    found = run(
        "from importlib import metadata\n"
        "def absent(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.version = metadata.distribution = absent\n"
        f"sys.path.insert(0, {str(source)!r})\n"
        "import badacost, badacost.io.model_file, badacost.cli.app; print(badacost.__version__)"
    )
    assert found.stdout.strip() == badacost.__version__, found.stderr


def test_nothing_private_of_scikit_learn_is_imported() -> None:
    for path in Path(badacost.__file__).parent.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "sklearn" in source else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                parts = [*node.module.split("."), *(name.name for name in node.names)]
                assert not [part for part in parts if part.startswith("_")], path
