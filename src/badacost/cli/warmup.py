"""``badacost warmup``: compile kernels that the first fit or detection would compile."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from badacost._utils.progress import tracked
from badacost.cli.options import Quiet
from badacost.cli.printing import plain_errors

_TABLE_KERNELS = (
    "badacost.tree.binning_kernels",
    "badacost.tree.histogram_kernels",
    "badacost.tree.split_kernels",
    "badacost.tree.growth_kernels",
    "badacost.tree.forest_kernels",
    "badacost.tree.shapley_kernels",
    "badacost.boosting.costboost_kernels",
    "badacost.family.wang_kernels",
)
_DETECTION_KERNELS = (
    "badacost.detection.box_tree_kernels",
    "badacost.detection.channel_kernels",
    "badacost.detection.decorrelation_kernels",
    "badacost.detection.cascade_kernels",
    "badacost.detection.pose_kernels",
)
_ALGORITHMS = (
    "BAdaCostClassifier",
    "CostBoostClassifier",
    "SAMMEClassifier",
    "PIBoostClassifier",
    "LpCSBClassifier",
    "WangMultiBoostClassifier",
)
_ROWS = 2_000


@plain_errors("Stopped: what was compiled is kept.")
def warmup(
    tables: Annotated[bool, typer.Option(help="Compile what classifiers use.")] = True,
    detection: Annotated[bool, typer.Option(help="Compile what detectors use.")] = True,
    quiet: Quiet = False,
) -> None:
    """Compile the kernels once; they are kept on disk for later commands.

    Without it the first fit or detection does the same. After an update of badacost or numba it is
    worth doing again; if all are compiled already, nothing is done.
    """
    from badacost._utils import kernel_cache

    if not tables and not detection:
        raise ValueError("nothing to compile: leave out --no-tables or --no-detection.")
    kernel_cache.announce = lambda: None  # type: ignore[assignment]  # there is a bar
    begin = time.monotonic()
    tasks = [*(_table_tasks() if tables else []), *(_detection_tasks() if detection else [])]
    for task in tracked(tasks, len(tasks), "Compiling", shown=not quiet):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")  # so little data make poor models
            warnings.simplefilter("always", kernel_cache.KernelCacheWarning)
            task()
        if caught:
            raise OSError(str(caught[0].message))
    if not quiet:
        modules = (_TABLE_KERNELS * tables) + (_DETECTION_KERNELS * detection)
        _tell(modules, time.monotonic() - begin)


def _tell(modules: tuple[str, ...], seconds: float) -> None:
    """Print what was compiled, and where it is kept."""
    kernels = [kernel for module in modules for kernel in _kernels(module)]
    n_compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
    n_found = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
    folders = sorted({str(Path(kernel.stats.cache_path)) for kernel in kernels if n_compiled})
    if n_compiled:
        typer.echo(
            f"Compiled {n_compiled} kernels in {seconds:.0f} s, and found {n_found} that were "
            f"compiled already. They are kept in {', '.join(folders)}."
        )
    else:
        typer.echo(f"Nothing to do: all {n_found} kernels were compiled already.")


def _kernels(module: str) -> Iterator[Any]:
    """Compiled functions of a module that keeps them on disk."""
    for value in vars(import_module(module)).values():
        compiled = hasattr(value, "stats") and hasattr(value, "py_func")
        if compiled and value.__module__ == module and value.stats.cache_path is not None:
            yield value


def _table_tasks() -> list[Callable[[], Any]]:
    """Small fits of each kind of booster; larger ones use the same kernels."""
    import badacost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, 5))
    X[::7, 0] = np.nan
    y = rng.integers(3, size=_ROWS)

    def task(name: str, samples: Any, weight: Any = None, **options: Any) -> Callable[[], Any]:
        def run() -> None:
            small: dict[str, Any] = {"n_estimators": 2, "max_depth": 3, "random_state": 0}
            model = getattr(badacost, name)(**small, **options)
            for _ in model.fit(samples, y, weight).staged_predict(samples):
                pass
            model.predict(samples)
            model.apply(samples)
            model.forest_.contributions(samples[:1])
            _ = model.forest_.expected_scores

        return run

    return [
        *(task(name, X) for name in _ALGORITHMS),
        task("BAdaCostClassifier", np.tile(X, 24), n_jobs=2),  # so much that threads share it
        task("BAdaCostClassifier", X, binning="exact"),
        task("BAdaCostClassifier", X, binning="uniform"),
        task("CostBoostClassifier", X, np.ones(_ROWS)),
    ]


def _detection_tasks() -> list[Callable[[], Any]]:
    """Detect cars in a synthetic scene, or say which package is missing."""
    try:
        import PIL  # noqa: F401
    except ImportError:
        typer.echo(
            'Detection is left out, since pillow is missing: pip install "badacost[detection]".',
            err=True,
        )
        return []

    def detect() -> None:
        from badacost.detection.box_tree import BoxTree
        from badacost.detection.channels import triangle_filter
        from badacost.detection.models import synthetic_cars
        from badacost.detection.pose import PoseRegression
        from badacost.detection.scenes import make_scenes

        (scene,) = make_scenes(1, random_state=0)
        detector = synthetic_cars()
        for kind in (detector, detector.fast(), detector.with_pyramid(n_octaves_up=1)):
            kind.detect(scene.load(), n_jobs=1)
        seen = next(detector.sightings(scene.load()))
        seen.trace()  # as in calibration and reports
        seen.leaves()
        window = np.zeros((1, detector.cascades[0].forest.n_features), np.float32)
        weights = np.zeros((window.shape[1], 4), np.float32)
        PoseRegression(weights, np.zeros(4), np.zeros((0, 0))).outputs(window)
        triangle_filter(np.zeros((1, 8, 8), np.float32), 1)  # as in training
        tree = BoxTree(np.array([[0.0, 0.0, 1.0, 1.0]]))  # as in evaluation
        tree.largest(np.zeros((1, 4)))
        tree.pairs(np.zeros((1, 4)), 0.5)

    return [detect]
