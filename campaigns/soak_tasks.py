"""Tasks that are killed: fits, trainings, detections and experiments of a second or two each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits, load_wine

import badacost
from badacost.cli import main as command_line
from badacost.detection.scenes import make_scenes
from badacost.detection.training import rounds
from campaigns.tiny_training import TINY
from experiments import table1
from experiments.__main__ import main as experiments

_COMPILED = """
import sys
from pathlib import Path
import numpy as np
from badacost._utils.portable_kernels import exp_of, log_of
values = np.linspace(0.1, 3.0, 50)
found = [values.astype(kind) for kind in (np.float64, np.float32)]
for array in found:
    exp_of(array, array)
    log_of(array, array)
Path(sys.argv[1]).write_bytes(b"".join(array.tobytes() for array in found))
"""
_CLOCKS = {"seconds", "cpu_seconds", "fit", "predict", "timing"}  # differ from run to run


@dataclass
class KilledRun:
    """What became of a run that was killed, and resumed until it was finished.

    Attributes
    ----------
    kills : int
        Kills while it worked.
    late : int
        Moments at which it had ended already.
    resumes : int
        Runs after a kill.
    mismatches : list of str
        What was not as it should be: files, exit states, processes that hang.
    leftovers : list of str
        Files and processes that nobody needs.
    """

    task: str
    kills: int = 0
    late: int = 0
    resumes: int = 0
    moments: list[float] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """What runs in a folder, and can be run again there after it was killed.

    Attributes
    ----------
    name : str
        What it is called in the summary.
    prepare : callable
        Makes the folder: inputs, and results of an earlier run.
    run : callable
        Does the work there, resuming what it finds; returns the exit status.
    whole : tuple of str
        Files that are, at any time, as before the run or as after it.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path], int]
    whole: tuple[str, ...] = ()


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder; JSON that has times that were measured is without them."""
    return {
        str(path.relative_to(folder)): _timeless(path)
        for path in sorted(folder.rglob("*"))
        if not path.is_dir()
    }


def _timeless(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".jsonl":
        return b"\n".join(_without_clocks(line) for line in content.split(b"\n"))
    if path.suffix == ".json":
        return _without_clocks(content)
    # Pages tell how long it took, and compiled functions are not the same bytes each time.
    return b"" if path.suffix in (".md", ".nbc") else content


def _without_clocks(content: bytes) -> bytes:
    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stripped(item) for key, item in value.items() if key not in _CLOCKS}
        return [stripped(item) for item in value] if isinstance(value, list) else value

    try:
        value = json.loads(content)
    except ValueError:  # half of it, after a kill
        return content
    timeless = stripped(value)
    return content if timeless == value else json.dumps(timeless).encode()


def _badacost(*arguments: str) -> int:
    """Run the command line and return its exit status."""
    sys.argv = ["badacost", *arguments]
    try:
        command_line()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _prepare_fit(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 8)), rng.integers(3, size=1500)
    X[:, 0] += y
    rows = np.column_stack([X.round(4), y]).astype(str)
    rows[:, -1] = np.array(["no", "perhaps", "yes"])[y]
    lines = [",".join([*"abcdefgh", "answer"]), *map(",".join, rows)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "costs.csv").write_text(",no,perhaps,yes\nno,0,1,5\nperhaps,2,0,1\nyes,9,3,0\n")
    _fit(folder, seed=1)


def _fit(folder: Path, seed: int = 0) -> int:
    return _badacost(
        "fit", str(folder / "table.csv"), "--target", "answer", "--costs",
        str(folder / "costs.csv"), "--output", str(folder / "model.badacost"), "--trees", "60",
        "--holdout", "0", "--seed", str(seed), "--jobs", "2", "--quiet",
    )  # fmt: skip


@cache
def _digit_models() -> list[badacost.BAdaCostClassifier]:
    X, y = load_digits(return_X_y=True)
    return [badacost.BAdaCostClassifier(n_estimators=n, max_depth=5).fit(X, y) for n in (39, 40)]


def _prepare_save(folder: Path) -> None:
    _digit_models()[0].save(folder / "model.badacost")


def _save(folder: Path) -> int:
    for number in range(1, 40):
        _digit_models()[number % 2].save(folder / "model.badacost")
    return 0


def _prepare_training(folder: Path) -> None:
    (folder / "config.toml").write_text(replace(TINY, trees=(4, 12)).to_toml())


def _train(folder: Path) -> int:
    with patch.object(rounds, "_TREES_BETWEEN_CHECKPOINTS", 1):
        return _badacost(
            "train-detector", "synthetic:6:15", "--views", "4", "--config",
            str(folder / "config.toml"), "--output", str(folder / "cars.badacost"), "--jobs", "2",
            "--quiet",
        )  # fmt: skip


def _prepare_detection(folder: Path) -> None:
    from PIL import Image

    from badacost.detection.models import synthetic_cars

    synthetic_cars().save(folder / "cars.badacost")
    (folder / "scenes").mkdir()
    for number, scene in enumerate(make_scenes(8, random_state=0)):
        Image.fromarray(scene.load()).save(folder / f"scenes/{number}.png")


def _detection(name: str, is_whole: bool = True) -> Task:
    """Return the task of detecting into a file, or a folder of KITTI, which has old results."""

    def detect(folder: Path, *more: str) -> int:
        return _badacost(
            "detect", str(folder / "cars.badacost"), str(folder / "scenes"), "--output",
            str(folder / name), "--jobs", "2", "--quiet", *more,
        )  # fmt: skip

    def prepare(folder: Path) -> None:
        _prepare_detection(folder)
        detect(folder, "--conf", "0.9")

    def resume(folder: Path) -> int:
        return detect(folder, "--resume")

    title = f"badacost detect {name.removeprefix('found.')}"
    return Task(title, prepare, resume, (name,) if is_whole else ())


@contextmanager
def _small_data_sets() -> Iterator[None]:
    """Let experiments read what scikit-learn brings: the data sets of the paper are not here."""

    def load(name: str, folder: Any) -> Any:
        X, y = load_wine(return_X_y=True)
        return X[:: 1 + (name == "cmc")], y.astype(str)[:: 1 + (name == "cmc")]

    table1.samples.cache_clear()
    try:
        with patch.object(table1, "load_paper_set", load):
            yield
    finally:
        table1.samples.cache_clear()


def _experiment(*arguments: str) -> Callable[[Path], int]:
    def run(folder: Path) -> int:
        os.environ["MPLBACKEND"] = "agg"
        with _small_data_sets():
            return experiments([*arguments, "--quick", "--jobs", "1", "--output", str(folder)])

    return run


def _compile(folder: Path) -> int:
    """Compile in a new process, with a cache of its own."""
    return subprocess.call(
        [sys.executable, "-c", _COMPILED, str(folder / "numbers")],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")},
    )


# At the end, the files of a folder of KITTI are replaced one after the other.
DETECTIONS = (
    *map(_detection, ("found.jsonl", "found.csv", "found.json")),
    _detection("kitti", is_whole=False),
)
COMPILE = Task("compilation", lambda folder: None, _compile)
TASKS = (
    Task("badacost fit", _prepare_fit, _fit, ("model.badacost",)),
    Task("model.save", _prepare_save, _save, ("model.badacost",)),
    Task("badacost train-detector", _prepare_training, _train, ("cars.badacost",)),
    Task("experiments table1", lambda folder: None, _experiment("table1", "--pool", "30")),
    Task(
        "experiments rivals",
        lambda folder: None,
        _experiment("rivals", "--contenders", "CostBoost,CostBoost 1 fold,BAdaCost"),
    ),
)
