"""The face detectors of the paper, BAdaCost with beta 1.5, SAMME and SubCat, and CostBoost.

A folder has tables ``faces-train.csv`` and ``faces-val.csv``, see `read_table`, whose pictures lie
in ``images``. The yaw of a face is in a column ``yaw`` or ``yaw_est``; ``yaw_flip_gap``, by how
many degrees two estimates of it differ, and ``roll_est`` may be there. If there is a list of
ellipses ``FDDB-ellipseList-val.txt`` as well, faces are also judged by the rules of FDDB. Further
folders have pictures without faces, with or without a list ``train.txt``.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from badacost.detection.annotations import (
    AnnotatedImage,
    Selection,
    Views,
    read_fddb,
    read_folder,
    read_table,
)
from badacost.detection.annotations.source import Place, read_text
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import (
    EllipseDetections,
    PrecisionRecallCurve,
    PrecisionRecallDisplay,
    RocCurve,
    RocDisplay,
    VocResult,
    align,
    evaluate_faces,
    evaluate_fddb,
    resample,
)
from badacost.detection.training.config import TrainingConfig
from badacost.io.budget import Budget
from experiments.contest import REFERENCE, ContestSettings, Entry, Images, described, views_found

PLAIN, REFINED = "1", "5"  # rounds of matching: without refinement, and as in the paper
FALSE_POSITIVES = (5, 10, 25, 50, 100)
NEGATIVES = ("negatives_bsds", "negatives_voc2012")
_CATEGORY = "Face"
_ESTIMATE = "yaw_est"
_LIMITS = {"yaw_flip_gap": 20.0, "roll_est": 35.0}  # degrees; beyond, a yaw is not certain
_LEARNED = Selection(categories=(_CATEGORY,), min_height=32.0)
_TOLERANCE = 1.0  # pixels between a box of the table and its ellipse


@dataclass(frozen=True)
class FaceSettings(ContestSettings):
    """What the results depend on, besides the images, see `ContestSettings`.

    `limits` are yaws in degrees between one view and the next, to the one side; the other one is
    its mirror. `beta` is the price of a missed face for BAdaCost; false alarms and wrong views
    cost 1.

    >>> FaceSettings(limits=(20.0, 60.0)).name
    'faces-20-60'
    """

    subject = "faces"
    category = _CATEGORY
    folder = "fddb_faces"
    limits: tuple[float, ...] = (15.0, 45.0)
    beta: float = 1.5
    n_octaves_up: int = 0
    n_timed: int = 10

    @classmethod
    def quick(cls) -> FaceSettings:
        """A few small trees and images, to see whether everything works."""
        return cls(
            kind="quick", trees=(8, 32), n_negatives=200, n_accumulated=400,
            subcat_trees=(8, 32), n_subcat_negatives=100, n_subcat_accumulated=200,
            n_jittered=0, n_images=20, n_timed=2, n_resamples=50,
        )  # fmt: skip

    @classmethod
    def paper(cls) -> FaceSettings:
        """The sizes of the paper, for all images of AFLW: many hours."""
        return cls(
            kind="paper", limits=(20.0, 60.0), trees=(64, 256, 512, 1024), n_negatives=10000,
            n_accumulated=40000, subcat_trees=(32, 128, 512, 4096), n_subcat_negatives=5000,
            n_subcat_accumulated=20000, n_jittered=0, n_octaves_up=1, n_timed=20,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """Name of the results, and of the folder of the contest."""
        return "-".join([self.page, *(f"{limit:g}" for limit in self.limits)])

    @property
    def views(self) -> Views:
        """The views, from faces that look right to those that look left."""
        return Views.of_yaw([*(-limit for limit in self.limits[::-1]), *self.limits])

    def configs(self) -> dict[str, TrainingConfig]:
        """Return how each contender is trained."""
        return self._contenders(
            {}, window=(40, 40), alpha=1.0, beta=self.beta, gamma=1.0, views_in_circle=False
        )

    def read(self, folder: Path, negatives: Sequence[Path] | None) -> Images:
        """Read the tables of faces, and pictures without faces, by default from beside the folder.

        Faces that are turned sideways, or whose yaw is not certain, are not learned.
        """
        if negatives is None:
            beside = (folder.absolute().parent / name for name in NEGATIVES)
            negatives = [path for path in beside if path.is_dir()]
        faces = [
            _LEARNED.apply(replace(image, ignore=image.ignore | (image.labels < 0)))
            for image in read_faces(folder, "train", self.views)[: self.n_images]
        ]
        background = [image for path in negatives for image in _background(path, self.n_images)]
        test = read_faces(folder, "val", self.views)[: self.n_images]
        training = [*faces, *background]
        n_views = len(self.views)
        data = {
            "training": described(faces, n_views),
            "test": described(test, n_views),
            "n_negatives": len(background),
            "view_names": list(self.views.names),
            "is_yaw_estimated": _has_estimates(folder / "faces-train.csv"),
        }
        days = [os.path.dirname(image.name) for image in training]  # pictures of a day, a folder
        return Images(training, [image.measured() for image in test], days, data)

    def evaluate(
        self, test: Sequence[AnnotatedImage], entries: Mapping[str, Entry]
    ) -> dict[str, dict[str, Any]]:
        """Return ``voc`` and ``fddb`` by rounds of refinement, ``views`` and ``resampled``.

        Without ellipses, ``fddb`` is None.
        """
        truth = {image.name: image for image in test}
        has_ellipses = all(image.ellipses is not None for image in test)
        plain, found = {}, {}
        for name, entry in entries.items():
            aligned = align(entry.detections, truth, views=self.views)
            voc = {
                rounds: evaluate_faces(*aligned, rounds=int(rounds)) for rounds in (PLAIN, REFINED)
            }
            boxes = {PLAIN: entry.detections, REFINED: _refined(entry.detections, voc[REFINED])}
            plain[name] = voc[PLAIN]
            found[name] = {
                # Refined boxes, so that detectors with another idea of a box are asked for the
                # same faces.
                "views": views_found(voc[REFINED], in_circle=False),
                "voc": {rounds: result.to_dict() for rounds, result in voc.items()},
                "fddb": {r: _roc(boxes[r], truth) for r in boxes} if has_ellipses else None,
            }
            _forget_curves(found[name])
        draws = resample(plain, n_resamples=self.n_resamples, seed=self.seed).to_dict(REFERENCE)
        return {name: {**one, "resampled": draws[name]} for name, one in found.items()}

    def displays(self, detectors: Mapping[str, Any]) -> dict[str, Any]:
        """Return precision against recall, and FDDB's discrete curve if there is one."""
        curves = {
            name: PrecisionRecallCurve(**found["voc"][PLAIN]["curve"])
            for name, found in detectors.items()
        }
        rocs = {}
        for name, found in detectors.items():
            if found["fddb"] is not None:
                points = found["fddb"][REFINED]["discrete"]
                thresholds = [float("inf") if t is None else t for t in points["thresholds"]]
                rocs[name] = RocCurve(**{**points, "thresholds": thresholds})
        shown: dict[str, Any] = {"": PrecisionRecallDisplay(curves)}
        if rocs:
            shown["-roc"] = RocDisplay(rocs, false_positives=FALSE_POSITIVES[-1] + 1)
        return shown

    def precisions(self, found: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the average precision with an overlap of 0.5."""
        voc = found["voc"]
        return {"as found": voc[PLAIN]["ap"], "refined boxes": voc[REFINED]["ap"]}


def read_faces(folder: Path, part: str, views: Views) -> list[AnnotatedImage]:
    """Read the table of faces of a part, "train" or "val", and the list of ellipses if it is there.

    Faces that are turned sideways by more than 35 degrees, or whose yaw is not certain, have no
    angle and no label.
    """
    table, ellipses = folder / f"faces-{part}.csv", folder / f"FDDB-ellipseList-{part}.txt"
    columns = {"yaw": _ESTIMATE} if _has_estimates(table) else None
    images = read_table(table, columns=columns, category=_CATEGORY)
    doubtful = _doubtful(table)
    images = [
        replace(image, angles=np.where(doubtful[image.name], np.nan, image.angles))
        for image in images
    ]
    if ellipses.exists():
        drawn = {image.name: image for image in read_fddb(ellipses)}
        images = [_with_ellipses(image, drawn.get(image.name), ellipses) for image in images]
    return [image.with_views(views) for image in images]


def _has_estimates(table: Path) -> bool:
    return _ESTIMATE in read_text(table, Budget.of(None)).split("\n", 1)[0]


def _doubtful(table: Path) -> dict[str, list[bool]]:
    """Return for each image which of its faces have no certain yaw, or are turned sideways."""
    found: dict[str, list[bool]] = {}
    text = io.StringIO(read_text(table, Budget.of(None)), newline="")
    rows = csv.DictReader(text, skipinitialspace=True)
    for row in rows:
        place = Place(table, f"line {rows.line_num}")
        flags = found.setdefault(row["image"].strip(), [])
        if row["x1"].strip():
            texts = {key: (row.get(key) or "").strip() for key in _LIMITS}
            given = {key: abs(place.number(text, key)) for key, text in texts.items() if text}
            flags.append(any(value > _LIMITS[key] for key, value in given.items()))
    return found


def _with_ellipses(
    image: AnnotatedImage, drawn: AnnotatedImage | None, path: Path
) -> AnnotatedImage:
    """Return an image of the table with the ellipses of the list."""
    if (
        drawn is None
        or len(drawn) != len(image)
        or np.abs(drawn.boxes - image.boxes).max(initial=0.0) > _TOLERANCE
    ):
        Place(path).refuse(f"the ellipses of {image.name!r:.80} do not fit the table of faces")
    return replace(image, ellipses=drawn.ellipses)


def _background(path: Path, n_images: int | None) -> list[AnnotatedImage]:
    """Read pictures without faces, whose names begin with that of their folder."""
    listed = path / "train.txt"
    images = read_folder(listed if listed.exists() else path)[:n_images]
    return [replace(image, name=f"{path.name}/{image.name}") for image in images]


def _roc(found: Mapping[str, Detections], truth: Mapping[str, AnnotatedImage]) -> dict[str, Any]:
    """Return points of the curves of FDDB, for upright ellipses in boxes."""
    ellipses = {name: EllipseDetections.from_detections(boxes) for name, boxes in found.items()}
    result = evaluate_fddb(ellipses, truth)
    return {
        "discrete_at": {str(n): result.discrete.rate_below(n + 1) for n in FALSE_POSITIVES},
        "continuous_at": {str(n): result.continuous.rate_below(n + 1) for n in FALSE_POSITIVES},
        **result.to_dict(),
    }


def _forget_curves(found: dict[str, Any]) -> None:
    """Leave out the points of curves that `FaceSettings.displays` does not draw."""
    del found["voc"][REFINED]["curve"]
    for rounds, points in (found["fddb"] or {}).items():
        del points["continuous"]
        if rounds != REFINED:
            del points["discrete"]


def _refined(found: Mapping[str, Detections], result: VocResult) -> dict[str, Detections]:
    """Return boxes moved and scaled as the annotations of the test images suggest."""
    refined = {}
    for name, boxes in found.items():
        centres = (boxes.boxes[:, :2] + boxes.boxes[:, 2:]) / 2.0 + result.shift * boxes.sizes
        half = boxes.sizes * result.scale / 2.0
        refined[name] = replace(boxes, boxes=np.concatenate([centres - half, centres + half], 1))
    return refined
