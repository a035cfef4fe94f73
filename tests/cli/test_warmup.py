"""``badacost warmup``: what it runs, and what it says it did."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import badacost
from badacost import CostBoostClassifier
from badacost.cli import warmup
from badacost.cli.app import app


def run(*arguments: str, status: int = 0):
    result = CliRunner().invoke(app, ["warmup", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_it_runs_every_kernel_that_others_call() -> None:
    result = run()
    assert re.search(r"Compiled \d+ kernels in \d+ s|Nothing to do: all \d+", result.stdout)
    assert "Compiling [####" in result.stderr
    package = Path(badacost.__file__).parent
    others = [path for path in package.rglob("*.py") if not path.stem.endswith("_kernels")]
    called = set(re.findall(r"\w+_kernels\.(\w+)", "\n".join(map(Path.read_text, others))))
    left = {
        kernel.__name__
        for module in (*warmup._TABLE_KERNELS, *warmup._DETECTION_KERNELS)
        for kernel in warmup._kernels(module)
        if not kernel.signatures and kernel.__name__ in called
    }
    assert len(called) > 20
    assert not left


def test_weights_and_categories_are_compiled_quietly() -> None:
    def signatures() -> set[tuple[str, str]]:
        kernels = [kernel for name in warmup._TABLE_KERNELS for kernel in warmup._kernels(name)]
        return {(kernel.__name__, str(types)) for kernel in kernels for types in kernel.signatures}

    assert run("--quiet", "--no-detection").output == ""
    before = signatures()
    rng = np.random.default_rng(0)
    X, y, weight = rng.integers(0, 5, (90, 3)).astype(float), np.arange(90) % 3, np.ones(90)
    CostBoostClassifier(n_estimators=1, n_folds=3, categorical_features=[2]).fit(X, y, weight)
    assert not signatures() - before


def test_nothing_to_do() -> None:
    assert "nothing to compile" in run("--no-tables", "--no-detection", status=1).stderr


def test_without_pillow_detection_is_left_out(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert 'pip install "badacost[detection]"' in run("--no-tables").stderr


@pytest.mark.parametrize("compiled", [True, False])
def test_what_it_says(monkeypatch, capsys, compiled) -> None:
    misses = {"signature": 1} if compiled else {}
    stats = SimpleNamespace(cache_path="x", cache_misses=misses, cache_hits={"signature": 1})
    monkeypatch.setattr(warmup, "_kernels", lambda module: [SimpleNamespace(stats=stats)])
    warmup._tell(("one", "two"), 3.0)
    said = capsys.readouterr().out
    assert said.startswith("Compiled 2 kernels in 3 s" if compiled else "Nothing to do: all 2")
