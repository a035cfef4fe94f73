"""A contest of detectors: trained on the same images, tried on the same others.

Everything that is finished is recorded at once in a journal: a training, the detections in an
image, the work that a detector does. A contest that was stopped resumes where it stopped, inside a
training too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from badacost._utils.progress import tracked
from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.boxes import Detections
from badacost.detection.detector import Detector
from badacost.detection.evaluation import VocResult
from badacost.detection.inspection import efficiency
from badacost.detection.interchange import from_json_lines, to_json_line
from badacost.detection.reference import load_detector
from badacost.detection.training import train_detector
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.identity import ALGORITHM_VERSION, annotation_digests
from experiments.file_digests import FileDigests, digest_of
from experiments.journal import Journal, JournalError
from experiments.journal import forget as forget_journal
from experiments.tasks import Record, versions

REFERENCE = "CostBoost"
_VARIABLE = "BADACOST_DATA"
_JOURNAL = "journal.jsonl"
_CHECKPOINTS = "checkpoints"
_MODEL = ".detector"
_DIGESTS = "images.json"  # hashes of the files of images
_OF_TRAINING = ("trees", "max_depth", "n_negatives", "n_accumulated", "n_jittered", "n_octaves_up",
                "seed")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Images:
    """What detectors learn from, and what they are tried on.

    `groups` names what each training image is held out with, as its drive; `data` says in plain
    numbers what the images hold. Names of test images differ.
    """

    training: Sequence[AnnotatedImage]
    test: Sequence[AnnotatedImage]
    groups: Sequence[str] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Entry:
    """A detector in a contest, and what it did.

    Attributes
    ----------
    detections : dict of str to Detections
        What it found in each test image.
    numbers : dict
        ``is_published``, whether it came from a file; the others were trained here, and
        ``training`` has ``seconds``, ``cpu_seconds`` and in how many runs it was made
        (``n_starts``): times are those of the last one. ``work`` is what it costs to use, see
        `badacost.detection.inspection.Efficiency`.
    """

    detections: dict[str, Detections]
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ContestSettings(ABC):
    """What the results depend on, besides the images.

    Attributes
    ----------
    kind : str
        "" for the usual experiment, "quick" or "paper".
    trees : tuple of int
        Trees of each round of all but SubCat.
    max_depth : int
        Levels of their trees; those of SubCat have 2.
    n_negatives, n_accumulated : int
        Negatives of each round and of all, for each cascade.
    subcat_trees, n_subcat_negatives, n_subcat_accumulated
        The same for each cascade of SubCat.
    n_jittered : int
        Copies of each object that are moved a little.
    n_octaves_up : int
        Doublings of the test images, for contenders and published detectors alike, to find objects
        smaller than the window.
    n_images : int or None
        Maximum number of images of each part; all by default.
    n_timed : int
        Images that work and time are measured on.
    n_resamples : int
        Draws of the bootstrap over images.
    seed : int
        Seed of everything.
    """

    subject: ClassVar[str]  # what the names of results begin with
    category: ClassVar[str]  # what the objects are
    folder: ClassVar[str]  # where the images are in BADACOST_DATA
    kind: str = ""
    trees: tuple[int, ...] = (64, 128, 512)
    max_depth: int = 5
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

    @property
    def page(self) -> str:
        """Name of the page that tells of the results, without suffix."""
        return "-".join(filter(None, [self.subject, self.kind]))

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the results, and of the folder of the contest."""

    @property
    @abstractmethod
    def views(self) -> Views:
        """What the labels of objects stand for."""

    @abstractmethod
    def configs(self) -> dict[str, TrainingConfig]:
        """Return how each contender is trained."""

    def _contenders(self, subcat: Mapping[str, Any], **others: Any) -> dict[str, TrainingConfig]:
        """Return CostBoost and the three algorithms of the paper's comparison by name.

        They differ by their boosting only; SubCat also by sizes, trees of 2 levels and `subcat`.
        """
        own = {name: getattr(self, name) for name in _OF_TRAINING}
        config = TrainingConfig.small(**own, **others)
        return {
            REFERENCE: replace(config, algorithm="costboost"),
            "BAdaCost": replace(config, algorithm="badacost"),
            "SAMME": replace(config, algorithm="samme"),
            "SubCat": replace(
                config,
                algorithm="subcat",
                max_depth=2,
                trees=self.subcat_trees,
                n_negatives=self.n_subcat_negatives,
                n_accumulated=self.n_subcat_accumulated,
                **subcat,
            ),
        }


def header(settings: ContestSettings, images: Images, folder: Path) -> dict[str, Any]:
    """Return what results depend on: settings, annotations, contents of images and versions.

    Hashes of files of images are kept in `folder`.
    """
    contents, everything = hashlib.sha256(), [*images.training, *images.test]
    with FileDigests(folder / _DIGESTS) as digests:
        for image in everything:
            seen = image.image
            digest = digests.of(seen) if isinstance(seen, Path) else digest_of(seen)
            contents.update(digest.encode())
    return {
        "experiment": settings.name,
        "settings": json.loads(json.dumps(asdict(settings))),
        "annotations": " ".join(annotation_digests(everything)),
        "images": contents.hexdigest(),
        "training": ALGORITHM_VERSION,
        "versions": versions("badacost", "numpy", "scipy", "numba", "pillow"),
    }


def run(
    settings: ContestSettings,
    images: Images,
    folder: Path,
    *,
    published: Iterable[Path] = (),
    n_jobs: int | None = -1,
) -> dict[str, Entry]:
    """Do what is missing in the journal of a contest, and return what came out.

    `folder` has journal, checkpoints and detectors. Files in `published`, see `load_detector`,
    compete as they are. The result has the contenders, then the published detectors, named by their
    files.
    """
    files = {f"published {path.stem}": path for path in published}
    loaded = {name: load_detector(path) for name, path in files.items()}  # errors come first
    for image in images.test[:1]:
        image.load()
    folder.mkdir(parents=True, exist_ok=True)
    with Journal(folder / _JOURNAL, header(settings, images, folder)) as journal:
        runner = _Runner(settings, images, folder, journal, n_jobs)
        entries = {
            name: runner.entry(name, runner.trained(name, config))
            for name, config in settings.configs().items()
        }
        for name, detector in loaded.items():
            runner.check_file(name, files[name])
            entries[name] = runner.entry(name, detector)
    return entries


def forget(folder: Path) -> None:
    """Remove the journal, the checkpoints and the detectors of a contest; other files stay."""
    forget_journal(folder / _JOURNAL)
    (folder / _DIGESTS).unlink(missing_ok=True)
    for model in folder.glob(f"*{_MODEL}"):
        model.unlink()
    if (folder / _CHECKPOINTS).is_dir():
        shutil.rmtree(folder / _CHECKPOINTS)


def data_folder(given: Path | None, name: str) -> Path:
    """Return the folder of a set of images, which must exist.

    If none is given, it is the folder `name` in ``detection`` of the one that the environment
    variable BADACOST_DATA names.
    """
    named = os.environ.get(_VARIABLE)
    if given is None and not named:
        raise FileNotFoundError("there are no images: name their folder with --data.")
    folder = given or Path(str(named)).expanduser() / "detection" / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder: name that of the images with --data.")
    return folder


def described(images: Sequence[AnnotatedImage], n_views: int) -> dict[str, Any]:
    """Return how many objects images have, and in which views, for JSON."""
    labels = np.concatenate([np.empty(0, np.int64), *(image.positives.labels for image in images)])
    return {
        "n_images": len(images),
        "n_objects": len(labels),
        "per_view": np.bincount(labels[labels >= 0], minlength=n_views).tolist(),
    }


def views_found(result: VocResult, *, in_circle: bool) -> dict[str, Any] | None:
    """Return how often the view of a true positive is right and, in a circle, next to it."""
    confusion = result.view_confusion
    total, n_views = int(confusion.sum()), len(confusion)
    if not total:
        return None
    steps = np.abs(np.subtract.outer(np.arange(n_views), np.arange(n_views)))
    near = np.minimum(steps, n_views - steps) <= 1
    return {
        "n_found": total,
        "right": result.view_accuracy,
        **({"near": float(confusion[near].sum() / total)} if in_circle else {}),
        "confusion": confusion.tolist(),
    }


@dataclass(frozen=True, eq=False)
class _Runner:
    """Does the parts of a contest that are not in its journal."""

    settings: ContestSettings
    images: Images
    folder: Path
    journal: Journal
    n_jobs: int | None

    def record(self, part: str, name: str) -> Record | None:
        """Return what is recorded of a part, None if it was not done."""
        return next(iter(self._records(part, name)), None)

    def _records(self, part: str, name: str) -> list[Record]:
        return [
            {key: value for key, value in record.items() if key not in ("part", "detector")}
            for record in self.journal.records
            if record.get("part") == part and record.get("detector") == name
        ]

    def _append(self, part: str, name: str, **more: Any) -> None:
        self.journal.append({"part": part, "detector": name, **more})

    def trained(self, name: str, config: TrainingConfig) -> Detector:
        """Return a contender, trained unless it was before."""
        path = self.folder / f"{name}{_MODEL}"
        if self.record("training", name) is not None and path.exists():
            return Detector.load(path)
        self._append("start", name)
        wall, cpu = time.perf_counter(), time.process_time()
        detector = train_detector(
            self.images.training,
            self.settings.views,
            config,
            category=self.settings.category,
            groups=self.images.groups,
            folder=self.folder / _CHECKPOINTS / name,
            n_jobs=self.n_jobs,
            verbose=True,
        )
        detector.save(path)
        self._append(
            "training",
            name,
            seconds=round(time.perf_counter() - wall, 1),
            cpu_seconds=round(time.process_time() - cpu, 1),
            n_starts=len(self._records("start", name)),
        )
        return detector

    def check_file(self, name: str, path: Path) -> None:
        """Raise if other results under this name came from another file."""
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        known = self.record("published", name)
        if known is None:
            self._append("published", name, sha256=digest)
        elif known.get("sha256") != digest:
            raise JournalError(
                f"{self.journal.path} has results of another {path.name}: rename the new one, or "
                "start again with --fresh."
            )

    def entry(self, name: str, detector: Detector) -> Entry:
        """Let a detector look at the test images, and measure its work."""
        detector = detector.with_pyramid(n_octaves_up=self.settings.n_octaves_up)
        detections = self._detected(name, detector)
        if self.record("work", name) is None:
            timed = [image.load() for image in self.images.test[: self.settings.n_timed]]
            self._append("work", name, **asdict(efficiency(detector, timed, n_jobs=self.n_jobs)))
        numbers: dict[str, Any] = {part: self.record(part, name) for part in ("training", "work")}
        return Entry(detections, {"is_published": numbers["training"] is None, **numbers})

    def _detected(self, name: str, detector: Detector) -> dict[str, Detections]:
        known = {record.get("image") for record in self._records("image", name)}
        missing = [image for image in self.images.test if image.name not in known]
        for image in tracked(missing, len(missing), f"{name}: detection"):
            found = detector.detect(image.load(), n_jobs=self.n_jobs)
            self._append("image", name, **json.loads(to_json_line(image.name, found)))
        found_in = from_json_lines(json.dumps(record) for record in self._records("image", name))
        return {image.name: found_in[image.name] for image in self.images.test}
