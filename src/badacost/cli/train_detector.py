"""``badacost train-detector``: from annotated pictures to a detector in a file."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.atomic_file import TEMPORARY_NAMES
from badacost.cli.annotated import DEFAULT_VIEWS, annotated_images, with_views
from badacost.cli.errors import plain_errors
from badacost.cli.jobs import check_jobs

if TYPE_CHECKING:
    from badacost.detection.annotations import AnnotatedImage, Selection
    from badacost.detection.training.config import TrainingConfig

_TITLES = {
    "costboost": "CostBoost",
    "badacost": "BAdaCost",
    "samme": "SAMME",
    "subcat": "SubCat",
}
_CHECKPOINTS = ("cascade*.checkpoint", "calibration.checkpoint", "final*.checkpoint")
_MAX_COSTS_BYTES = 2**20


class GroupBy(StrEnum):
    """What is held out together."""

    picture = "picture"
    folder = "folder"


class Algorithm(StrEnum):
    """What to train."""

    costboost = "costboost"
    badacost = "badacost"
    samme = "samme"
    subcat = "subcat"


def train_detector(
    annotations: Annotated[
        list[str],
        typer.Argument(
            help="Files or folders of KITTI, VOC, COCO, YOLO, FDDB or CSV annotations, or "
            "synthetic:200 for 200 generated scenes (synthetic:200:7 with the seed 7)."
        ),
    ],
    output: Annotated[Path, typer.Option(help="File for the detector.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters; see TrainingConfig.")
    ] = None,
    small: Annotated[
        bool,
        typer.Option(
            "--small",
            help="Start with settings for a few hundred pictures, which take minutes; --config and "
            "options refine them.",
        ),
    ] = False,
    window: Annotated[
        str | None,
        typer.Option(help="Height and width of the smallest object in pixels, as 48x84."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the annotations; guessed by default.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the pictures, if not beside the annotations.")
    ] = None,
    negatives: Annotated[
        list[Path] | None,
        typer.Option(help="Folder or list of pictures without objects; may be repeated."),
    ] = None,
    views: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=360,
            help=f"Views around the object; by default {DEFAULT_VIEWS} where angles are known, "
            "or else those of the labels if objects have some, or else a single one.",
        ),
    ] = None,
    yaw_limits: Annotated[
        str | None,
        typer.Option(
            help="Views of faces instead: the yaws between them, as -60,-20,20,60. Mistakes "
            "between any two of them cost the same."
        ),
    ] = None,
    single_view: Annotated[bool, typer.Option("--single-view", help="Ignore views.")] = False,
    category_views: Annotated[
        str | None,
        typer.Option(
            help="Categories that are views, as front,side,rear: for data whose classes say from "
            "where an object is seen. Others are not learned."
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(help="Learn objects of this category only, as Car; others are background."),
    ] = None,
    kitti_cars: Annotated[
        bool,
        typer.Option(
            "--kitti-cars", help="Learn what the paper's car detectors do, and ignore the rest."
        ),
    ] = False,
    algorithm: Annotated[
        Algorithm | None,
        typer.Option(help="Boosting algorithm; that of the configuration by default."),
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, max=12, help="Levels of the trees.")] = None,
    trees: Annotated[str | None, typer.Option(help="Trees of each round, as 64,128,512.")] = None,
    beta: Annotated[
        float | None, typer.Option(help="Price of a missed object; a false alarm costs alpha.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of numbers: the costs of the background, first, and of the views, a row "
            "for each truth."
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(min=0.0, max=0.9, help="Share of the objects whose pictures are held out."),
    ] = None,
    group_by: Annotated[GroupBy, typer.Option(help="What is held out together.")] = GroupBy.picture,
    columns: Annotated[
        str | None,
        typer.Option(
            help="What the header of a CSV table calls its columns, as yaw=yaw_est,angle=heading."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints; OUTPUT with .training added by default."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Do not remove the checkpoints after success.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is one for each core.")] = -1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Train a detector of several views on annotated pictures.

    What is reached is kept in checkpoints: after Ctrl-C, a crash or a power cut the same command
    resumes where it stopped, and the detector is the same as without the interruption. Checkpoints
    are removed once the detector is written, unless --keep.

    Exit status: 0 if the detector was written, 1 if not, 130 after Ctrl-C.
    """
    with plain_errors("Stopped. The same command resumes where it stopped."):
        begin = time.monotonic()
        check_jobs(jobs)
        if output.is_dir():
            raise IsADirectoryError(f"--output {str(output)!r} is a folder: name a file.")
        settings = _settings(
            config, small, window, algorithm, depth, trees, beta, costs, validation
        )
        if yaw_limits is not None:
            settings = replace(settings, views_in_circle=False)
        if category_views is not None and (kitti_cars or category is not None):
            raise ValueError(
                "--category-views choose the categories: leave out --category and --kitti-cars."
            )
        selection = _selection(category, kitti_cars)
        read = annotated_images(annotations, format, images, _columns(columns))
        chosen = [selection.apply(image) for image in read]
        _check_objects(chosen, read, category)
        found_views, labelled, have_headings = with_views(
            chosen, views, yaw_limits, single_view, category_views
        )
        if not have_headings and len(found_views) > 1:
            settings = replace(settings, views_in_circle=False, mirror=False)
        name = category or ("Car" if kitti_cars else _category_of(labelled))
        checkpoints = folder or output.with_name(f"{output.name}.training")
        output.parent.mkdir(parents=True, exist_ok=True)
        if not quiet:
            _announce(labelled, len(found_views), name, settings, checkpoints)
        from badacost.detection.training import train_detector as train

        with _log_lines(quiet):
            pictures = [*labelled, *_negatives(negatives or [])]
            detector = train(
                pictures,
                found_views,
                settings,
                category=name,
                groups=_groups(pictures, group_by),
                folder=checkpoints,
                n_jobs=jobs,
                verbose=not quiet,
            )
        if not have_headings:
            detector = replace(detector, angles=None)
        detector.save(output)
        if not keep:
            _remove(checkpoints)
        if not quiet:
            typer.echo(f"{detector!r} is in {output}, after {_duration(time.monotonic() - begin)}.")


def _settings(
    config: Path | None,
    small: bool,
    window: str | None,
    algorithm: Algorithm | None,
    depth: int | None,
    trees: str | None,
    beta: float | None,
    costs: Path | None,
    validation: float | None,
) -> TrainingConfig:
    """The configuration, with what the options say."""
    from badacost.detection.training.config import TrainingConfig

    given = {"max_depth": depth, "beta": beta, "validation": validation}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if algorithm is not None:
        changes["algorithm"] = algorithm.value
    if trees is not None:
        numbers = trees.split(",")
        if not all(part.strip().isdecimal() and len(part) < 8 for part in numbers):
            raise ValueError(
                f"--trees must be numbers with commas between them, as 64,128; got {trees!r:.80}."
            )
        changes["trees"] = tuple(map(int, numbers))
    if costs is not None:
        changes["cost_matrix"] = _cost_rows(costs)
    if window is not None:
        sides = window.lower().split("x")
        if len(sides) != 2 or not all(side.isdecimal() and len(side) < 6 for side in sides):
            raise ValueError(
                f"--window must be a height and a width, as 48x84; got {window!r:.80}."
            )
        changes |= {"window": tuple(map(int, sides)), "padded_window": None}
    if beta is not None and changes.get("algorithm") in ("samme", "subcat"):
        raise ValueError(f"--beta is a cost, and {changes['algorithm']} knows none: leave it out.")
    if config is not None:
        return replace(TrainingConfig.from_toml(config, small=small), **changes)
    return TrainingConfig.small(**changes) if small else TrainingConfig(**changes)


def _cost_rows(path: Path) -> tuple[tuple[float, ...], ...]:
    """Rows of numbers of a CSV file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check its name and folder.")
    if path.stat().st_size > _MAX_COSTS_BYTES:
        raise ValueError(f"--costs {str(path)!r} is too large for a table of costs.")
    try:
        rows = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return tuple(tuple(float(part) for part in row.split(",")) for row in rows)
    except ValueError:
        raise ValueError(
            f"--costs {str(path)!r} must have rows of numbers with commas between them, and no "
            "header."
        ) from None


def _columns(text: str | None) -> dict[str, str] | None:
    """Names of columns by what they are."""
    if text is None:
        return None
    pairs = [part.split("=") for part in text.split(",")]
    if not all(len(pair) == 2 and all(side.strip() for side in pair) for pair in pairs):
        raise ValueError(
            f"--columns must be pairs with commas between them, as yaw=yaw_est; got {text!r:.80}."
        )
    return {ours.strip(): theirs.strip() for ours, theirs in pairs}


def _groups(images: Sequence[AnnotatedImage], group_by: GroupBy) -> list[str] | None:
    """What each picture is held out with."""
    if group_by is GroupBy.picture:
        return None
    return [
        str(image.image.parent) if isinstance(image.image, Path) else image.name for image in images
    ]


def _selection(category: str | None, kitti_cars: bool) -> Selection:
    from badacost.detection.annotations import KITTI_CARS, Selection

    if kitti_cars and category is not None:
        raise ValueError("--kitti-cars has a category of its own: leave out --category.")
    if kitti_cars:
        return KITTI_CARS
    return Selection() if category is None else Selection(categories=(category,))


def _check_objects(
    chosen: Sequence[AnnotatedImage], read: Sequence[AnnotatedImage], category: str | None
) -> None:
    """Refuse pictures in which nothing is to be learned."""
    if any((~image.ignore).any() for image in chosen):
        return
    known = sorted({name for image in read for name in image.categories})
    if category is None or not known:
        raise ValueError(
            "there are no objects to learn: name annotations with boxes that are not ignored."
        )
    raise ValueError(
        f"there are no objects to learn of the category {category!r:.80}: the categories are "
        f"{known!r:.200}."
    )


def _category_of(images: Sequence[AnnotatedImage]) -> str:
    """The category of all objects, if there is only one."""
    names = {
        name
        for image in images
        for name, ignored in zip(image.categories, image.ignore, strict=True)
        if not ignored
    }
    return names.pop() if len(names) == 1 else "object"


def _negatives(paths: Sequence[Path]) -> list[AnnotatedImage]:
    from badacost.detection.annotations import read_folder

    return [image for path in paths for image in read_folder(path)]


def _announce(
    images: Sequence[AnnotatedImage],
    n_views: int,
    category: str,
    settings: TrainingConfig,
    checkpoints: Path,
) -> None:
    """Tell what is going to be done."""
    n_objects = sum(int((~image.ignore & (image.labels >= 0)).sum()) for image in images)
    height, width = settings.window
    title = _TITLES[settings.algorithm]
    typer.echo(
        f"{title} for {category!r} in {n_views} view{'s' * (n_views > 1)}: {len(images)} pictures, "
        f"{n_objects} objects, windows of {height} x {width} pixels.",
        err=True,
    )
    if any(checkpoints.glob("*.checkpoint")):
        typer.echo(f"Resuming from the checkpoints in {checkpoints}.", err=True)


class _LineHandler(logging.Handler):
    """Writes log lines between progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; a bar is redrawn below it."""
        typer.echo(("\r\033[K" if sys.stderr.isatty() else "") + record.getMessage(), err=True)


@contextmanager
def _log_lines(quiet: bool) -> Iterator[None]:
    """Show the log of the training."""
    if quiet:
        yield
        return
    log, handler = logging.getLogger("badacost.detection.training"), _LineHandler()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def _remove(folder: Path) -> None:
    """Remove checkpoints, what a killed training left, and the folder if nothing else is there."""
    for pattern in (*_CHECKPOINTS, TEMPORARY_NAMES):
        for path in folder.glob(pattern):
            path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _duration(seconds: float) -> str:
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
