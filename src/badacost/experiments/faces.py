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
from typing import Any, ClassVar

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
    VocResult,
    align,
    evaluate_faces,
    evaluate_fddb,
    resample,
)
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

REFINEMENTS = (1, 5)  # rounds of matching: without, and as in the paper
FALSE_POSITIVES = (5, 10, 25, 50, 100)
NEGATIVES = ("negatives_bsds", "negatives_voc2012")
PAPER_LIMITS = (20.0, 60.0)
_CATEGORY = "Face"
_ESTIMATE = "yaw_est"
_WINDOW = (40, 40)
_MAX_YAW_GAP = 20.0  # degrees between two estimates of a yaw that is accepted
_MAX_ROLL = 35.0
_LEARNED = Selection(categories=(_CATEGORY,), min_height=32.0)
_TOLERANCE = 1.0  # pixels between a box of the table and its ellipse


@dataclass(frozen=True)
class FaceSettings(ContestSettings):
    """What the results depend on, besides the images.

    Attributes
    ----------
    kind : str
        "" for the usual experiment, "quick" or "paper".
    limits : tuple of float
        Yaw in degrees between one view and the next, to the one side; the other one is its mirror.
    beta : float
        Price of a missed face for BAdaCost; false alarms and wrong views cost 1.
    trees : tuple of int
        Trees of each round of BAdaCost and SAMME.
    max_depth : int
        Levels of their trees; those of SubCat have 2.
    n_negatives, n_accumulated : int
        Negatives of each round and of all, for each cascade.
    subcat_trees, n_subcat_negatives, n_subcat_accumulated
        The same for each cascade of SubCat.
    n_jittered : int
        Copies of each face that are moved a little.
    n_octaves_up : int
        Doublings of the test images.
    n_images : int or None
        Maximum number of images of each list; all by default.
    n_timed : int
        Images that work and time are measured on.
    n_resamples : int
        Draws of the bootstrap over images.
    seed : int
        Seed of everything.

    Examples
    --------
    >>> from badacost.experiments.faces import FaceSettings
    >>> FaceSettings(limits=(20.0, 60.0)).name
    'faces-20-60'
    """

    subject: ClassVar[str] = "faces"
    kind: str = ""
    limits: tuple[float, ...] = (15.0, 45.0)
    beta: float = 1.5
    trees: tuple[int, ...] = (64, 128, 512)
    max_depth: int = 5
    n_negatives: int = 3000
    n_accumulated: int = 8000
    subcat_trees: tuple[int, ...] = (64, 512)
    n_subcat_negatives: int = 1000
    n_subcat_accumulated: int = 3000
    n_jittered: int = 2
    n_octaves_up: int = 0
    n_images: int | None = None
    n_timed: int = 10
    n_resamples: int = 500
    seed: int = 0

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
            kind="paper", limits=PAPER_LIMITS, trees=(64, 256, 512, 1024), n_negatives=10000,
            n_accumulated=40000, subcat_trees=(32, 128, 512, 4096), n_subcat_negatives=5000,
            n_subcat_accumulated=20000, n_jittered=0, n_octaves_up=1, n_timed=20,
        )  # fmt: skip

    @property
    def views(self) -> Views:
        """The views, from faces that look right to those that look left."""
        return Views.of_yaw([*(-limit for limit in self.limits[::-1]), *self.limits])

    @property
    def name(self) -> str:
        """Name of the results, and of the folder of the contest."""
        return "-".join([self.page, *(f"{limit:g}" for limit in self.limits)])

    def configs(self) -> dict[str, TrainingConfig]:
        """Return how each contender is trained."""
        return self._contenders(
            {}, window=_WINDOW, alpha=1.0, beta=self.beta, gamma=1.0, views_in_circle=False
        )


def read_faces(folder: str | os.PathLike[str], part: str, views: Views) -> list[AnnotatedImage]:
    r"""Read a table of faces and, if it is there, the list of their ellipses.

    Parameters
    ----------
    folder : path-like
        The folder, see above.
    part : {"train", "val"}
        Part of the names of the files.
    views : Views
        What to label faces by; those whose yaw is not certain get no label.

    Returns
    -------
    list of AnnotatedImage
        In the order of the table. Faces that are turned sideways by more than 35 degrees, or whose
        yaw is not certain, have no angle.

    Raises
    ------
    AnnotationError
        Where a file is not as expected, or table and list do not fit together.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.experiments.faces import FaceSettings, read_faces
    >>> with TemporaryDirectory() as folder:
    ...     size = Path(folder, "faces-train.csv").write_text(
    ...         "image,x1,y1,x2,y2,yaw_est,yaw_flip_gap\n"
    ...         "a.jpg,10,10,50,60,0,5\n"
    ...         "a.jpg,90,10,130,60,-80,5\n"
    ...         "a.jpg,200,10,240,60,-80,50\n"
    ...     )
    ...     (picture,) = read_faces(folder, "train", FaceSettings().views)
    >>> picture.labels  # the last yaw is not certain
    array([ 2,  0, -1])
    """
    folder = Path(folder)
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


def run_faces(
    settings: FaceSettings,
    output: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    negatives: Sequence[str | os.PathLike[str]] | None = None,
    published: Sequence[str | os.PathLike[str]] = (),
    n_jobs: int | None = -1,
    verbose: bool = True,
) -> dict[str, Any]:
    """Train and try all contenders, or what is missing of it.

    Parameters
    ----------
    settings : FaceSettings
        What to do.
    output : path-like
        The contest is kept in a folder inside, named as `FaceSettings.name`.
    data : path-like, optional
        Folder of the faces; by default ``detection/fddb_faces`` in BADACOST_DATA.
    negatives : sequence of path-like, optional
        Folders of pictures without faces; by default ``negatives_bsds`` and ``negatives_voc2012``
        beside the folder of the faces, if they are there.
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
    >>> from badacost.experiments.faces import FaceSettings, run_faces
    >>> settings = FaceSettings.quick()
    >>> settings.name, len(settings.views)
    ('faces-quick-15-45', 5)
    >>> results = run_faces(settings, "results", data="faces", negatives=["sky"])  # doctest: +SKIP
    >>> results["detectors"]["BAdaCost"]["voc"]["1"]["ap"]  # doctest: +SKIP
    """
    folder, views = data_folder(data, "fddb_faces"), settings.views
    if negatives is None:
        beside = (folder.absolute().parent / name for name in NEGATIVES)
        negatives = [path for path in beside if path.is_dir()]
    faces = [
        _LEARNED.apply(replace(image, ignore=image.ignore | (image.labels < 0)))
        for image in read_faces(folder, "train", views)[: settings.n_images]
    ]
    background = [image for path in negatives for image in _background(path, settings.n_images)]
    test = read_faces(folder, "val", views)[: settings.n_images]
    training = [*faces, *background]
    contest = settings.contest(
        _CATEGORY,
        views,
        training,
        [image.measured() for image in test],
        [os.path.dirname(image.name) for image in training],  # pictures of a day lie in a folder
    )
    entries = run(
        contest, Path(output) / settings.name, published=published, n_jobs=n_jobs, verbose=verbose
    )
    n_views = len(views)
    return {
        **contest.header(),
        "data": {
            "training": described(faces, n_views),
            "test": described(test, n_views),
            "n_negatives": len(background),
            "view_names": list(views.names),
            "is_yaw_estimated": _has_estimates(folder / "faces-train.csv"),
        },
        "detectors": evaluated(contest, entries),
    }


def evaluated(contest: Contest, entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Evaluate what the detectors of a contest found; its test images have a known size.

    By detector: ``voc`` and ``fddb`` by rounds of refinement (the latter None without ellipses),
    ``views``, ``resampled``, ``work``, ``training``.
    """
    truth = {image.name: image for image in contest.test}
    has_ellipses = all(image.ellipses is not None for image in contest.test)
    settings = contest.settings
    voc = {}
    for name, entry in entries.items():
        aligned = align(entry.detections, truth, views=contest.views)
        voc[name] = {rounds: evaluate_faces(*aligned, rounds=rounds) for rounds in REFINEMENTS}
    resampled = resample(
        {name: results[REFINEMENTS[0]] for name, results in voc.items()},
        n_resamples=settings["n_resamples"],
        seed=settings["seed"],
    ).to_dict(REFERENCE)
    return {
        name: {
            **entry.to_dict(),
            # Refined boxes, so that detectors with another idea of a box are asked for the same
            # faces.
            "views": _views_found(voc[name][REFINEMENTS[-1]]),
            "voc": {str(rounds): result.to_dict() for rounds, result in voc[name].items()},
            "resampled": resampled[name],
            "fddb": {
                str(rounds): _roc(entry.detections, truth, None if rounds == 1 else result)
                for rounds, result in voc[name].items()
            }
            if has_ellipses
            else None,
        }
        for name, entry in entries.items()
    }


def _has_estimates(table: Path) -> bool:
    return _ESTIMATE in read_text(table).split("\n", 1)[0]


def _doubtful(table: Path) -> dict[str, list[bool]]:
    """Return for each image which of its faces have no certain yaw, or are turned sideways."""
    found: dict[str, list[bool]] = {}
    rows = csv.DictReader(io.StringIO(read_text(table), newline=""), skipinitialspace=True)
    for row in rows:
        place = Place(table, f"line {rows.line_num}")
        flags = found.setdefault(row["image"].strip(), [])
        if row["x1"].strip():
            limits = {"yaw_flip_gap": _MAX_YAW_GAP, "roll_est": _MAX_ROLL}
            texts = {key: (row.get(key) or "").strip() for key in limits}
            flags.append(
                any(
                    text != "" and abs(place.number(text, key)) > limits[key]
                    for key, text in texts.items()
                )
            )
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


def _background(folder: str | os.PathLike[str], n_images: int | None) -> list[AnnotatedImage]:
    """Read pictures without faces, whose names begin with that of their folder."""
    path = Path(folder)
    listed = path / "train.txt"
    images = read_folder(listed if listed.exists() else path)[:n_images]
    return [replace(image, name=f"{path.name}/{image.name}") for image in images]


def _views_found(result: VocResult) -> dict[str, Any] | None:
    """Return how often the view of a true positive is right."""
    total = int(result.view_confusion.sum())
    if not total:
        return None
    return {
        "n_found": total,
        "right": result.view_accuracy,
        "confusion": result.view_confusion.tolist(),
    }


def _roc(
    found: Mapping[str, Detections],
    truth: Mapping[str, AnnotatedImage],
    refinement: VocResult | None,
) -> dict[str, Any]:
    """Return points of the curves of FDDB, for upright ellipses in boxes."""
    if refinement is not None:
        found = {name: _refined(boxes, refinement) for name, boxes in found.items()}
    ellipses = {name: EllipseDetections.from_detections(boxes) for name, boxes in found.items()}
    result = evaluate_fddb(ellipses, truth)
    return {
        "discrete_at": {str(n): result.discrete.rate_below(n + 1) for n in FALSE_POSITIVES},
        "continuous_at": {str(n): result.continuous.rate_below(n + 1) for n in FALSE_POSITIVES},
        **result.to_dict(),
    }


def _refined(found: Detections, refinement: VocResult) -> Detections:
    """Return boxes moved and scaled as the annotations of the test images suggest."""
    centres = (found.boxes[:, :2] + found.boxes[:, 2:]) / 2.0 + refinement.shift * found.sizes
    half = found.sizes * refinement.scale / 2.0
    return replace(found, boxes=np.concatenate([centres - half, centres + half], axis=1))
