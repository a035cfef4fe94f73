"""The walk of a fit: how many files and functions of badacost a `fit` passes, and how deep.

Counted by `sys.setprofile` in a second `fit` with default parameters on 500 rows of 6 numbers, so
that everything is compiled. A function is a code object, comprehensions and lambdas included
(before Python 3.12 comprehensions are functions of their own). Depth is the largest number of
frames of badacost at the same time. Compiled functions that Python calls are counted in the second
line only: HistGradientBoosting of scikit-learn, the peer, has them in Cython, which is not seen.

    python benchmarks/walk.py
    python benchmarks/walk.py --before ../base
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).resolve().parent
COSTS = [[0, 1, 5], [2, 0, 1], [10, 3, 0]]
CLASSIFIERS = ("CostBoostClassifier", "BAdaCostClassifier")


def walk(work: Callable[[], Any], folder: str) -> tuple[set[CodeType], list[CodeType]]:
    """Functions from files of a folder that are called, and the deepest stack of them."""
    called: set[CodeType] = set()
    stack: list[CodeType] = []
    deepest: list[CodeType] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        if not frame.f_code.co_filename.startswith(folder):
            return
        if event == "call":
            called.add(frame.f_code)
            stack.append(frame.f_code)
            deepest = max(deepest, list(stack), key=len)
        elif event == "return":
            stack.pop()

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called, deepest


def is_compiled(code: CodeType) -> bool:
    """Whether numba compiles a function."""
    modules = (m for m in sys.modules.values() if getattr(m, "__file__", None) == code.co_filename)
    return any(hasattr(getattr(module, code.co_name, None), "py_func") for module in modules)


def count(shows_stack: bool) -> None:
    """Print the counts of the badacost that is imported."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier

    import badacost

    folder = str(Path(badacost.__file__).parent)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
    warnings.simplefilter("ignore")
    for name in CLASSIFIERS:
        model = getattr(badacost, name)(COSTS, random_state=0).fit(X, y)
        called, deepest = walk(lambda model=model: model.fit(X, y), folder)
        plain = {code for code in called if not is_compiled(code)}
        for what, codes in ((name, plain), ("  with compiled functions", called)):
            files = sorted({str(Path(code.co_filename).relative_to(folder)) for code in codes})
            print(f"  {what}: {len(files)} files, {len(codes)} functions, {len(deepest)} frames")
            if shows_stack:
                print("   ", *files)
        for code in deepest if shows_stack else ():
            print(f"    {Path(code.co_filename).relative_to(folder)}: {code.co_qualname}")
    peer = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    called, deepest = walk(lambda: peer.fit(X, y), str(Path(inspect.getfile(type(peer))).parent))
    n_files = len({code.co_filename for code in called})
    print(
        f"  {type(peer).__name__}: {n_files} files, {len(called)} functions, {len(deepest)} frames"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="another checkout, counted as well")
    parser.add_argument(
        "--stack", action="store_true", help="print the files and the deepest stack"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        count(given.stack)
        return
    checkouts = {"before": given.before.resolve()} if given.before else {}
    for name, checkout in {**checkouts, "after": HERE.parent}.items():
        print(f"{name}:", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        more = ["--stack"] if given.stack else []
        subprocess.run([sys.executable, __file__, "--here", *more], env=environment, check=True)


if __name__ == "__main__":
    main()
