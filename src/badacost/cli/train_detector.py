"""``badacost train-detector``: a detector from annotated pictures."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from badacost._utils.progress import duration
from badacost.cli.annotated import annotated_images, yaw_views
from badacost.cli.options import Device, Jobs, MaxMemory, Quiet, check_jobs
from badacost.cli.printing import plain_errors
from badacost.cli.table_inputs import check_output, make_folder

if TYPE_CHECKING:
    from badacost.detection.annotations import Selection, Views
    from badacost.detection.training.config import TrainingConfig

_BYTES_OF_CHARACTER = 60  # of a file of costs: 32 for a number, and it may be a digit


@plain_errors("Stopped. The same command resumes where it stopped.")
def train_detector(
    annotations: Annotated[
        list[str],
        typer.Argument(
            help="Files or folders of KITTI, VOC, COCO, YOLO, FDDB or CSV annotations, or "
            "synthetic:200 for 200 synthetic scenes (synthetic:200:7 with the random seed 7)."
        ),
    ],
    output: Annotated[Path, typer.Option(help="File for the detector.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters of TrainingConfig.")
    ] = None,
    small: Annotated[
        bool,
        typer.Option(
            "--small",
            help="Use settings for a few hundred pictures, which take minutes, unless --config or "
            "options say otherwise.",
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
        Path | None,
        typer.Option(help="Folder of the pictures, if they are not beside the annotations."),
    ] = None,
    negatives: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of pictures without objects, or a list of such pictures; may be repeated."
        ),
    ] = None,
    views: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=360,
            help="Number of views around the object; by default 8 where angles are known, "
            "or else those of the labels of objects, or else 1.",
        ),
    ] = None,
    yaw_limits: Annotated[
        str | None,
        typer.Option(
            help="Limits between the views of faces in degrees of yaw, as -60,-20,20,60. All "
            "confusions of views cost the same."
        ),
    ] = None,
    single_view: Annotated[
        bool, typer.Option("--single-view", help="Learn all objects as a single view.")
    ] = False,
    category_views: Annotated[
        str | None,
        typer.Option(
            help="Categories to learn as views, as front,side,rear, for data whose categories are "
            "views. Others are not learned."
        ),
    ] = None,
    category: Annotated[
        str | None,
        typer.Option(help="Learn objects of this category only, as Car; others are background."),
    ] = None,
    kitti_cars: Annotated[
        bool,
        typer.Option(
            "--kitti-cars",
            help="Learn the cars of KITTI's moderate level, as the paper does; ignore other cars, "
            "vans, trucks and trams.",
        ),
    ] = False,
    algorithm: Annotated[
        Literal["costboost", "badacost", "samme", "subcat"] | None,
        typer.Option(help="Boosting algorithm; by default that of the configuration."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, max=12, help="Maximum depth of the trees.")
    ] = None,
    trees: Annotated[
        str | None, typer.Option(help="Number of trees in each round, as 64,128,512.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Cost of a missed object; that of a false alarm is alpha.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with the cost matrix, numbers only: a row for each truth, a column for "
            "each answer, the background first, then the views."
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=0.9, help="Share of the objects to hold out, with their pictures."
        ),
    ] = None,
    group_by: Annotated[
        Literal["picture", "folder"],
        typer.Option(help="Unit to hold out: pictures, or folders of them."),
    ] = "picture",
    columns: Annotated[
        str | None,
        typer.Option(
            help="Names of columns of a CSV table, or of attributes of COCO, that differ from the "
            "usual ones, as yaw=yaw_est,angle=heading."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints; by default OUTPUT with .training added."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the checkpoints after success.")
    ] = False,
    device: Device = "cpu",
    jobs: Jobs = -1,
    max_memory: MaxMemory = None,
    quiet: Quiet = False,
) -> None:
    """Train a multi-view detector on annotated pictures.

    Progress is kept in checkpoints: after Ctrl-C, a crash or a power cut the same command resumes
    where it stopped, and the detector is the same as without the interruption. Checkpoints are
    removed once the detector is written, unless --keep is given.

    Exit status: 0 if the detector was written, 1 if not, 130 after Ctrl-C.
    """
    begin = time.monotonic()
    check_jobs(jobs)
    check_output(output)
    if beta is not None and algorithm in ("samme", "subcat"):
        raise ValueError(f"--beta is a cost, and {algorithm} has none: leave it out.")
    changes: dict[str, Any] = {
        "max_depth": depth,
        "beta": beta,
        "validation": validation,
        "algorithm": algorithm,
        "trees": None if trees is None else _trees(trees),
        "window": None if window is None else _window(window),
        "cost_matrix": costs and _cost_rows(costs),
        "views_in_circle": None if yaw_limits is None else False,
    }
    settings = _settings(config, small, {k: v for k, v in changes.items() if v is not None})
    chosen_views = _views(views, yaw_limits, single_view, category_views)
    if category_views is not None and (kitti_cars or category is not None):
        raise ValueError(
            "--category-views choose the categories: leave out --category and --kitti-cars."
        )
    from badacost.detection.annotations import label_views, read_folder
    from badacost.detection.training import remove_checkpoints
    from badacost.detection.training import train_detector as train

    read = annotated_images(annotations, format, images, _columns(columns))
    selected = _selection(category, kitti_cars).apply_all(read)
    found_views, pictures = label_views(selected, chosen_views)
    pictures += [image for path in negatives or [] for image in read_folder(path)]
    checkpoints = folder or output.with_name(f"{output.name}.training")
    make_folder(output)
    with _log_lines(quiet):
        detector = train(
            pictures,
            found_views,
            settings,
            category=category,
            groups="folder" if group_by == "folder" else None,
            folder=checkpoints,
            device=device,
            n_jobs=jobs,
            verbose=not quiet,
        )
    detector.save(output)
    if not keep:
        remove_checkpoints(checkpoints)
    if not quiet:
        typer.echo(f"{detector!r} is in {output}, after {duration(time.monotonic() - begin)}.")


def _views(
    n_views: int | None, yaw_limits: str | None, single_view: bool, category_views: str | None
) -> Views | list[str] | int | None:
    """The views that were asked for; None if they depend on the annotations."""
    given: list[Any] = [] if n_views is None else [n_views]
    if yaw_limits is not None:
        given.append(yaw_views(yaw_limits))
    if single_view:
        given.append(1)
    if category_views is not None:
        given.append([name.strip() for name in category_views.split(",")])
    if len(given) > 1:
        raise ValueError(
            "--views, --yaw-limits, --single-view and --category-views exclude each other: give "
            "one."
        )
    return given[0] if given else None


def _settings(config: Path | None, small: bool, changes: dict[str, Any]) -> TrainingConfig:
    """The configuration, changed by the options."""
    from badacost.detection.training.config import TrainingConfig

    if "window" in changes:
        changes["padded_window"] = None
    if config is not None:
        return replace(TrainingConfig.from_toml(config, small=small), **changes)
    return TrainingConfig.small(**changes) if small else TrainingConfig(**changes)


def _trees(text: str) -> tuple[int, ...]:
    """Parse the numbers of trees in each round."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 8 for part in parts):
        raise ValueError(
            f"--trees must be numbers separated by commas, as 64,128; got {text!r:.80}."
        )
    return tuple(map(int, parts))


def _window(text: str) -> tuple[int, int]:
    """Parse a height and a width."""
    sides = re.fullmatch("([0-9]{1,5})x([0-9]{1,5})", text.lower())
    if sides is None:
        raise ValueError(f"--window must be a height and a width, as 48x84; got {text!r:.80}.")
    return int(sides[1]), int(sides[2])


def _cost_rows(path: Path) -> tuple[tuple[float, ...], ...]:
    """Read rows of numbers from a CSV file."""
    from badacost.io.budget import Budget, BudgetError
    from badacost.io.user_file import open_regular

    try:
        with open_regular(path) as file:
            Budget.of(None).check(_BYTES_OF_CHARACTER * os.fstat(file.fileno()).st_size)
            lines = file.read().decode("utf-8-sig").splitlines()
        rows = [line for line in lines if line.strip()]
        return tuple(tuple(float(part) for part in row.split(",")) for row in rows)
    except BudgetError as error:
        raise ValueError(f"cannot read --costs {str(path)!r}: {error}.") from None
    except ValueError:
        raise ValueError(
            f"--costs {str(path)!r} must have rows of numbers separated by commas, without "
            "a header."
        ) from None


def _columns(text: str | None) -> dict[str, str] | None:
    """Parse the names of columns."""
    if text is None:
        return None
    pairs = [part.split("=") for part in text.split(",")]
    if not all(len(pair) == 2 and all(side.strip() for side in pair) for pair in pairs):
        raise ValueError(
            f"--columns must be pairs separated by commas, as yaw=yaw_est; got {text!r:.80}."
        )
    return {ours.strip(): theirs.strip() for ours, theirs in pairs}


def _selection(category: str | None, kitti_cars: bool) -> Selection:
    from badacost.detection.annotations import KITTI_CARS, Selection

    if kitti_cars and category is not None:
        raise ValueError("--kitti-cars has a category of its own: leave out --category.")
    if kitti_cars:
        return KITTI_CARS
    return Selection() if category is None else Selection(categories=(category,))


@contextmanager
def _log_lines(quiet: bool) -> Iterator[None]:
    """Show the log of the training."""
    if quiet:
        yield
        return
    log, handler = logging.getLogger("badacost.detection.training"), logging.StreamHandler()
    if sys.stderr.isatty():
        handler.setFormatter(logging.Formatter("\r\033[K%(message)s"))  # a bar is redrawn below
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
