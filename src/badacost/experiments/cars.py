"""The car detectors of the paper: BAdaCost 1-3-3, SAMME and SubCat, and CostBoost, on KITTI images.

A folder is laid out as that of KITTI: pictures in ``image_2`` and labels in ``label_2``, and, where
there is more to learn from, ``image_3`` and ``label_3``. The lists ``train.txt``, ``val.txt`` and,
if it is there, ``train_right.txt`` name pictures, one to a line, as ``image_2/000001.png``. Without
lists, the parts are those of the paper: labels numbered below 6733 train, the others test.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from badacost.detection.annotations import KITTI_CARS, AnnotatedImage, Views, read_kitti
from badacost.detection.evaluation import VocResult, align, evaluate_kitti, evaluate_voc, resample
from badacost.detection.training.config import TrainingConfig
from badacost.experiments.contest import (
    REFERENCE,
    Contest,
    ContestSettings,
    Entry,
    data_folder,
    described,
    run,
)
from badacost.validation import check_number

OVERLAPS = (0.7, 0.5)
FIRST_CLEAN = 6733  # the published detectors were trained with all numbers below
_CATEGORY = "Car"
_WINDOW = (48, 84)
# Public copies of these have been resized without their labels, whose boxes are some 20 pixels off.
_RESIZED = frozenset(
    {"000004", "000008", "000010", "000015", "000016", "000018", "000021", "000025"}
)
_RESIZED_TO = (370, 1224)


@dataclass(frozen=True)
class CarSettings(ContestSettings):
    """What the results depend on, besides the images.

    Attributes
    ----------
    kind : str
        "" for the usual experiment, "quick" or "paper".
    n_views : int
        Views around a car, an even number.
    trees : tuple of int
        Trees of each round of all but SubCat.
    max_depth : int
        Levels of their trees; those of SubCat have 2.
    learning_rate, max_features : float
        Of all but SubCat, which has no rate; SubCat draws 1/16 of the features.
    n_negatives, n_accumulated : int
        Negatives of each round and of all, for each cascade.
    subcat_trees, n_subcat_negatives, n_subcat_accumulated
        The same for each cascade of SubCat.
    n_jittered : int
        Copies of each car that are moved a little.
    n_octaves_up : int
        Doublings of the test images, to find cars half as high as the window.
    n_images : int or None
        Maximum number of images of each part, those with the most cars; all by default.
    n_timed : int
        Images that work and time are measured on.
    n_resamples : int
        Draws of the bootstrap over images.
    seed : int
        Seed of everything.

    Examples
    --------
    >>> from badacost.experiments.cars import CarSettings
    >>> settings = CarSettings(n_views=12)
    >>> settings.name
    'cars-12-views'
    >>> {name: config.algorithm for name, config in settings.configs().items()}
    {'CostBoost': 'costboost', 'BAdaCost': 'badacost', 'SAMME': 'samme', 'SubCat': 'subcat'}
    """

    subject: ClassVar[str] = "cars"
    kind: str = ""
    n_views: int = 8
    trees: tuple[int, ...] = (64, 128, 512)
    max_depth: int = 5
    learning_rate: float = 0.1
    max_features: float = 1 / 16
    n_negatives: int = 3000
    n_accumulated: int = 8000
    subcat_trees: tuple[int, ...] = (64, 512)
    n_subcat_negatives: int = 1000
    n_subcat_accumulated: int = 3000
    n_jittered: int = 2
    n_octaves_up: int = 1
    n_images: int | None = None
    n_timed: int = 5
    n_resamples: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("n_views", self.n_views, Integral, low=2, high=36)
        if self.n_views % 2:
            raise ValueError(
                f"n_views must be even, since mirror images are used; got {self.n_views}."
            )

    @classmethod
    def quick(cls) -> CarSettings:
        """A few small trees and images, to see whether everything works."""
        return cls(
            kind="quick", n_views=4, trees=(16, 48), n_negatives=200, n_accumulated=400,
            subcat_trees=(16, 48), n_subcat_negatives=100, n_subcat_accumulated=200,
            n_octaves_up=0, n_images=8, n_timed=1, n_resamples=50,
        )  # fmt: skip

    @classmethod
    def paper(cls) -> CarSettings:
        """The sizes of the paper, for all images of KITTI: many hours."""
        return cls(
            kind="paper", n_views=20, trees=(32, 128, 256, 1024), learning_rate=0.05,
            n_negatives=7500, n_accumulated=30000, subcat_trees=(32, 128, 512, 2048),
            n_subcat_negatives=5000, n_subcat_accumulated=10000, n_jittered=0, n_timed=20,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Name of the results, and of the folder of the contest."""
        return f"{self.page}-{self.n_views}-views"

    def configs(self) -> dict[str, TrainingConfig]:
        """Return how each contender is trained."""
        return self._contenders(
            {"max_features": 1 / 16},
            window=_WINDOW,
            alpha=1.0,
            beta=3.0,
            gamma=3.0,
            learning_rate=self.learning_rate,
            max_features=self.max_features,
        )


@dataclass(frozen=True, eq=False)
class CarImages:
    """Annotated images, all categories of objects as they were read, with views as labels.

    `left_out` has, for each part, the names of the images whose labels do not fit.
    """

    training: list[AnnotatedImage]
    test: list[AnnotatedImage]
    left_out: dict[str, list[str]]


def read_cars(
    folder: str | os.PathLike[str], views: Views, n_images: int | None = None
) -> CarImages:
    """Read the images of a folder laid out as that of KITTI.

    Parameters
    ----------
    folder : path-like
        The folder, see above.
    views : Views
        What to label cars by.
    n_images : int, optional
        Maximum number of images of each part: those with the most cars.

    Returns
    -------
    CarImages
        Without images whose labels are known not to fit.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import Views
    >>> from badacost.experiments.cars import read_cars
    >>> with TemporaryDirectory() as folder:
    ...     labels = Path(folder, "label_2")
    ...     labels.mkdir()
    ...     for number in ("000100", "000200", "007000"):
    ...         size = (labels / f"{number}.txt").write_text(
    ...             "Car 0.00 0 1.57 10 20 99 59 1.5 1.6 3.9 0 1.6 20 1.57"
    ...         )
    ...     images = read_cars(folder, Views.around(4))
    >>> images.training
    [AnnotatedImage('000100', 1 object), AnnotatedImage('000200', 1 object)]
    >>> images.test[0].labels
    array([3])
    """
    folder = Path(folder)
    if (folder / "train.txt").exists():
        lists = [folder / "train.txt", folder / "train_right.txt"]
        training = [image for path in lists if path.exists() for image in read_kitti(path)]
        test = read_kitti(folder / "val.txt")
    else:
        if not (folder / "label_2").is_dir():
            raise FileNotFoundError(
                f"{folder} has neither train.txt nor label_2: name a folder laid out as KITTI's."
            )
        images = read_kitti(folder / "label_2")
        clean = set(clean_names(images))
        training = [image for image in images if image.name not in clean]
        test = [image for image in images if image.name in clean]
    for part, found in (("train", training), ("test", test)):
        if not found:
            raise ValueError(
                f"{folder} has no images to {part} with: give lists train.txt and val.txt, or all "
                "labels of KITTI in label_2."
            )
    left_out = {
        part: [image.name for image in found if _is_resized(image)]
        for part, found in (("training", training), ("test", test))
    }
    fitting = [
        _richest([image.with_views(views) for image in part if not _is_resized(image)], n_images)
        for part in (training, test)
    ]
    return CarImages(fitting[0], fitting[1], left_out)


def clean_names(images: Iterable[AnnotatedImage]) -> list[str]:
    """Return the names of images that the published detectors were not trained with."""
    return [
        image.name
        for image in images
        if image.name.isdecimal() and len(image.name) == 6 and int(image.name) >= FIRST_CLEAN
    ]


def run_cars(
    settings: CarSettings,
    output: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    published: Sequence[str | os.PathLike[str]] = (),
    n_jobs: int | None = -1,
    verbose: bool = True,
) -> dict[str, Any]:
    """Train and try all contenders, or what is missing of it.

    Parameters
    ----------
    settings : CarSettings
        What to do.
    output : path-like
        The contest is kept in a folder inside, named as `CarSettings.name`.
    data : path-like, optional
        Folder of the images; by default ``detection/kitti_cars`` in BADACOST_DATA.
    published : sequence of path-like
        Files of detectors to try beside.
    n_jobs : int, optional
        Threads, -1 for one on each core.
    verbose : bool, default=True
        Whether to show progress.

    Returns
    -------
    dict
        Settings, data and results as plain numbers, for JSON.

    Examples
    --------
    >>> from badacost.experiments.cars import CarSettings, run_cars
    >>> settings = CarSettings.quick()
    >>> settings.name
    'cars-quick-4-views'
    >>> results = run_cars(settings, "results", data="kitti")  # doctest: +SKIP
    >>> results["detectors"]["BAdaCost"]["voc"]["0.5"]["ap"]  # doctest: +SKIP
    """
    views = Views.around(settings.n_views)
    images = read_cars(data_folder(data, "kitti_cars"), views, settings.n_images)
    training = [KITTI_CARS.apply(image) for image in images.training]
    drives = _drives(data_folder(data, "kitti_cars"), images.training)
    contest = settings.contest(_CATEGORY, views, training, images.test, drives)
    entries = run(
        contest, Path(output) / settings.name, published=published, n_jobs=n_jobs, verbose=verbose
    )
    return {
        **contest.header(),
        "data": _data(contest, images),
        "detectors": evaluated(contest, entries),
    }


def evaluated(contest: Contest, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Evaluate what the detectors of a contest found; its test images have all categories of KITTI.

    By detector: ``kitti`` and ``voc`` by overlap, ``views``, ``work``, ``training``.
    """
    truth = {image.name: image for image in contest.test}
    settings = contest.settings
    found = {name: align(entry.detections, truth, clip=True)[0] for name, entry in entries.items()}
    voc = {
        str(overlap): {
            name: evaluate_voc(
                *align(boxes, truth, selection=KITTI_CARS, views=contest.views), overlap=overlap
            )
            for name, boxes in found.items()
        }
        for overlap in OVERLAPS
    }
    resampled = {
        overlap: resample(
            results, n_resamples=settings["n_resamples"], seed=settings["seed"]
        ).to_dict(REFERENCE)
        for overlap, results in voc.items()
    }
    return {
        name: {
            **entry.to_dict(),
            "views": _views_found(voc["0.5"][name]),
            "kitti": {
                str(overlap): evaluate_kitti(
                    found[name], truth, category=_CATEGORY, overlap=overlap
                ).to_dict()
                for overlap in OVERLAPS
            },
            "voc": {
                overlap: {"ap": results[name].ap, **resampled[overlap][name]}
                for overlap, results in voc.items()
            },
        }
        for name, entry in entries.items()
    }


def _richest(images: list[AnnotatedImage], n_images: int | None) -> list[AnnotatedImage]:
    """Return the images with the most cars to learn, in their order."""
    if n_images is None:
        return images
    counts = [len(KITTI_CARS.apply(image).positives) for image in images]
    chosen = np.sort(np.argsort(counts, kind="stable")[::-1][:n_images])
    return [images[i] for i in chosen]


def _drives(folder: Path, images: Sequence[AnnotatedImage]) -> list[str] | None:
    """Return the drive of each image by the table ``sources.csv``, None where there is none.

    Names of right images have an R before the number there.
    """
    path = folder / "sources.csv"
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        drives = {row["name"]: row["raw_drive"] for row in csv.DictReader(file)}
    names = [
        f"R{image.name}" if "image_3" in Path(str(image.image)).parts else image.name
        for image in images
    ]
    return [drives.get(name, name) for name in names]


def _is_resized(image: AnnotatedImage) -> bool:
    return image.name in _RESIZED and image.measured().size == _RESIZED_TO


def _views_found(result: VocResult) -> dict[str, Any] | None:
    """Return how often the view of a true positive is right, and right or next to it."""
    confusion = result.view_confusion
    total, n_views = int(confusion.sum()), len(confusion)
    if not total:
        return None
    steps = np.abs(np.subtract.outer(np.arange(n_views), np.arange(n_views)))
    near = np.minimum(steps, n_views - steps) <= 1
    return {
        "n_found": total,
        "right": result.view_accuracy,
        "near": float(confusion[near].sum() / total),
        "confusion": confusion.tolist(),
    }


def _data(contest: Contest, images: CarImages) -> dict[str, Any]:
    """Return what the images hold."""
    n_views = len(contest.views)
    test = [KITTI_CARS.apply(image) for image in contest.test]
    clean = clean_names(contest.test)
    return {
        "training": described(contest.training, n_views),
        "test": described(test, n_views),
        "left_out": images.left_out,
        "view_names": list(contest.views.names),
        "clean": clean,
        "n_clean_objects": sum(len(image.positives) for image in test if image.name in clean),
    }
