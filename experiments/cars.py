"""The car detectors of the paper: BAdaCost 1-3-3, SAMME and SubCat, and CostBoost, on KITTI images.

A folder is laid out as that of KITTI: pictures in ``image_2`` and labels in ``label_2``, and, where
there is more to learn from, ``image_3`` and ``label_3``. The lists ``train.txt``, ``val.txt`` and,
if it is there, ``train_right.txt`` name pictures, one to a line, as ``image_2/000001.png``. Without
lists, the parts are those of the paper: labels numbered below 6733 train, the others test.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from badacost._utils.validation import check_number
from badacost.detection.annotations import KITTI_CARS, AnnotatedImage, Views, read_kitti
from badacost.detection.evaluation import (
    PrecisionRecallCurve,
    PrecisionRecallDisplay,
    align,
    evaluate_kitti,
    evaluate_voc,
    resample,
)
from badacost.detection.training.config import TrainingConfig
from experiments.contest import REFERENCE, ContestSettings, Entry, Images, described, views_found

OVERLAPS = ("0.7", "0.5")
LEVELS = ("easy", "moderate", "hard")
FIRST_CLEAN = 6733  # the published detectors were trained with all numbers below
# Public copies of these have been resized without their labels, whose boxes are some 20 pixels off.
_RESIZED = frozenset(
    {"000004", "000008", "000010", "000015", "000016", "000018", "000021", "000025"}
)
_RESIZED_TO = (370, 1224)


@dataclass(frozen=True)
class CarSettings(ContestSettings):
    """What the results depend on, besides the images, see `ContestSettings`.

    `n_views` is the even number of views around a car. `learning_rate` and `max_features` are those
    of all but SubCat, which has no rate and draws 1/16 of the features.

    >>> settings = CarSettings(n_views=12)
    >>> settings.name
    'cars-12-views'
    >>> {name: config.algorithm for name, config in settings.configs().items()}
    {'CostBoost': 'costboost', 'BAdaCost': 'badacost', 'SAMME': 'samme', 'SubCat': 'subcat'}
    """

    subject = "cars"
    category = "Car"
    folder = "kitti_cars"
    n_views: int = 8
    learning_rate: float = 0.1
    max_features: float = 1 / 16

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

    @property
    def views(self) -> Views:
        """Views all around a car."""
        return Views.around(self.n_views)

    def configs(self) -> dict[str, TrainingConfig]:
        """Return how each contender is trained."""
        return self._contenders(
            {"max_features": 1 / 16},
            window=(48, 84),
            alpha=1.0,
            beta=3.0,
            gamma=3.0,
            learning_rate=self.learning_rate,
            max_features=self.max_features,
        )

    def read(self, folder: Path, negatives: Sequence[Path] | None) -> Images:
        """Read the images of a folder laid out as that of KITTI; test images have all categories.

        Images whose labels are known not to fit are left out.
        """
        parts = _parts(folder)
        left_out = {
            part: [i.name for i in found if _is_resized(i)] for part, found in parts.items()
        }
        training, test = (
            _richest([i.with_views(self.views) for i in found if not _is_resized(i)], self.n_images)
            for found in parts.values()
        )
        learned, tried = ([KITTI_CARS.apply(image) for image in part] for part in (training, test))
        clean = clean_names(test)
        data = {
            "training": described(learned, self.n_views),
            "test": described(tried, self.n_views),
            "left_out": left_out,
            "view_names": list(self.views.names),
            "clean": clean,
            "n_clean_objects": sum(len(image.positives) for image in tried if image.name in clean),
        }
        return Images(learned, test, _drives(folder, training), data)

    def evaluate(
        self, test: Sequence[AnnotatedImage], entries: Mapping[str, Entry]
    ) -> dict[str, dict[str, Any]]:
        """Return ``kitti`` and ``voc`` by overlap, and ``views``."""
        truth = {image.name: image for image in test}
        found = {name: align(one.detections, truth, clip=True)[0] for name, one in entries.items()}
        aligned = {
            name: align(boxes, truth, selection=KITTI_CARS, views=self.views)
            for name, boxes in found.items()
        }
        results: dict[str, dict[str, Any]] = {name: {"kitti": {}, "voc": {}} for name in entries}
        for overlap in OVERLAPS:
            min_overlap = float(overlap)
            voc = {name: evaluate_voc(*pair, overlap=min_overlap) for name, pair in aligned.items()}
            draws = resample(voc, n_resamples=self.n_resamples, seed=self.seed).to_dict(REFERENCE)
            for name, boxes in found.items():
                kitti = evaluate_kitti(boxes, truth, category=self.category, overlap=min_overlap)
                results[name]["kitti"][overlap] = kitti.to_dict()
                results[name]["voc"][overlap] = {"ap": voc[name].ap, **draws[name]}
                if overlap == "0.5":
                    results[name]["views"] = views_found(voc[name], in_circle=True)
        return results

    def displays(self, detectors: Mapping[str, Any]) -> dict[str, Any]:
        """Return precision against recall at KITTI's moderate level and an overlap of 0.7."""
        curves = {}
        for name, found in detectors.items():
            level = found["kitti"]["0.7"]["moderate"]
            n = len(level["thresholds"])
            curves[name] = PrecisionRecallCurve(
                level["recall"][:n], level["precision"][:n], level["thresholds"]
            )
        return {"": PrecisionRecallDisplay(curves)}

    def precisions(self, found: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the average precision with an overlap of 0.7, and the area with 0.5."""
        levels = {level: found["kitti"]["0.7"][level]["ap_40"] for level in LEVELS}
        return levels | {"overlap 0.5": found["voc"]["0.5"]["ap"]}


def _parts(folder: Path) -> dict[str, list[AnnotatedImage]]:
    """Return the images to train and to test with."""
    if (folder / "train.txt").exists():
        lists = [folder / "train.txt", folder / "train_right.txt"]
        training = [image for path in lists if path.exists() for image in read_kitti(path)]
        parts = {"training": training, "test": read_kitti(folder / "val.txt")}
    elif not (folder / "label_2").is_dir():
        raise FileNotFoundError(
            f"{folder} has neither train.txt nor label_2: name a folder laid out as KITTI's."
        )
    else:
        images = read_kitti(folder / "label_2")
        clean = set(clean_names(images))
        parts = {
            "training": [image for image in images if image.name not in clean],
            "test": [image for image in images if image.name in clean],
        }
    for part, found in parts.items():
        if not found:
            raise ValueError(
                f"{folder} has no {part} images: give lists train.txt and val.txt, or all labels "
                "of KITTI in label_2."
            )
    return parts


def clean_names(images: Iterable[AnnotatedImage]) -> list[str]:
    """Return the names of images that the published detectors were not trained with."""
    return [
        image.name
        for image in images
        if image.name.isdecimal() and len(image.name) == 6 and int(image.name) >= FIRST_CLEAN
    ]


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
