"""Many independent fits: those that are not in the journal are run, in parallel if that is wanted.

What all results depend on, and so begins a journal, includes the versions of packages.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from joblib import Parallel, delayed

from badacost._utils.progress import ProgressBar
from experiments.journal import Journal

Task = tuple[Any, ...]  # data set, number of a part, contender, and what else tells tasks apart
Record = dict[str, Any]
_MODULES = {"scikit-learn": "sklearn", "pillow": "PIL"}


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of packages."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = import_module(_MODULES.get(name, name)).__version__
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{error.name} is missing: install it with pip install --group experiments."
            ) from error
    return found


def run_missing(
    journal: Journal,
    keys: Sequence[str],
    weights: Mapping[Task, float],
    work: Callable[..., Record],
    *,
    title: str,
    n_jobs: int,
) -> None:
    """Run the tasks that have no record yet, those of the most weight first, and record them.

    `keys` name the parts of a task in its record, `weights` are rough shares of the time, and
    ``work(*task)`` returns the rest of the record.
    """
    done = {tuple(record[key] for key in keys) for record in journal.records}
    missing = sorted(set(weights) - done, key=lambda task: (-weights[task], task))
    if not missing:
        return
    total, finished = sum(weights[task] for task in missing), 0.0
    bar = ProgressBar(len(missing), title)
    parallel = Parallel(n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="all")
    try:
        calls = (delayed(_record)(keys, task, work) for task in missing)
        for number, record in enumerate(parallel(calls), start=1):
            journal.append(record)
            finished += weights[tuple(record[key] for key in keys)]
            bar.update(number, fraction=finished / total)
    finally:
        bar.close()


def _record(keys: Sequence[str], task: Task, work: Callable[..., Record]) -> Record:
    """Do a task and return its record."""
    try:
        return dict(zip(keys, task, strict=True)) | work(*task)
    except Exception as error:
        name, number, contender = task[:3]
        raise RuntimeError(
            f"{contender or 'the cost matrix'} failed on {name}, {keys[1]} {number}: {error}"
        ) from error
