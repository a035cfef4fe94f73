"""A contest of detectors: trained on the same images, tried on the same others.

Everything that is finished is recorded at once in a journal: a training, the detections in an
image, the work that a detector does. A contest that was stopped resumes where it stopped, inside a
training too.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from badacost import __version__
from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.boxes import Detections
from badacost.detection.detector import Detector
from badacost.detection.inspection import Efficiency, efficiency
from badacost.detection.interchange import from_json_lines, to_json_line
from badacost.detection.reference import load_detector
from badacost.detection.training import train_detector
from badacost.detection.training.config import TrainingConfig
from badacost.experiments.journal import Journal, JournalError
from badacost.progress import ProgressBar

REFERENCE = "CostBoost"
_VARIABLE = "BADACOST_DATA"
_JOURNAL = "journal.jsonl"
_CHECKPOINTS = "checkpoints"
_MODEL = ".detector"


@dataclass(frozen=True, eq=False)
class Contest:
    """What detectors compete in.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    settings : dict
        What it depends on besides the images, as JSON can hold it.
    category : str
        What the objects are.
    views : Views
        What their labels stand for.
    training, test : sequence of AnnotatedImage
        What to learn from, and what to look at; names of the latter must differ.
    groups : sequence of str, optional
        What each training image is held out with, as its drive.
    configs : mapping of str to TrainingConfig
        How to train each contender.
    n_octaves_up : int
        Doublings of the test images, for contenders and published detectors alike.
    n_timed : int
        Test images that work and time are measured on.
    """

    experiment: str
    settings: Mapping[str, Any]
    category: str
    views: Views
    training: Sequence[AnnotatedImage]
    test: Sequence[AnnotatedImage]
    configs: Mapping[str, TrainingConfig]
    n_octaves_up: int
    n_timed: int
    groups: Sequence[str] | None = None

    def header(self) -> dict[str, Any]:
        """Return what results depend on: settings, images and versions."""
        return {
            "experiment": self.experiment,
            "settings": json.loads(json.dumps(self.settings)),
            "images": _digest([*self.training, *self.test]),
            "versions": _versions(),
        }


class ContestSettings(ABC):
    """What the settings of contests have in common; each kind is a frozen dataclass.

    Its fields are only named here, since stored results list them in the order of the dataclass.
    """

    subject: ClassVar[str]  # what the names of results begin with
    kind: str
    trees: tuple[int, ...]
    max_depth: int
    n_negatives: int
    n_accumulated: int
    subcat_trees: tuple[int, ...]
    n_subcat_negatives: int
    n_subcat_accumulated: int
    n_jittered: int
    n_octaves_up: int
    n_timed: int
    seed: int

    @property
    def page(self) -> str:
        """Name of the page that tells of the results, without suffix."""
        return "-".join(filter(None, [self.subject, self.kind]))

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the results, and of the folder of the contest."""

    @abstractmethod
    def configs(self) -> dict[str, TrainingConfig]:
        """Return how each contender is trained."""

    def _contenders(self, subcat: Mapping[str, Any], **others: Any) -> dict[str, TrainingConfig]:
        """Return the contenders, given what else each is trained with."""
        return contenders(
            TrainingConfig.small(
                trees=self.trees,
                max_depth=self.max_depth,
                n_negatives=self.n_negatives,
                n_accumulated=self.n_accumulated,
                n_jittered=self.n_jittered,
                n_octaves_up=self.n_octaves_up,
                seed=self.seed,
                **others,
            ),
            trees=self.subcat_trees,
            n_negatives=self.n_subcat_negatives,
            n_accumulated=self.n_subcat_accumulated,
            **subcat,
        )

    def contest(
        self,
        category: str,
        views: Views,
        training: Sequence[AnnotatedImage],
        test: Sequence[AnnotatedImage],
        groups: Sequence[str] | None = None,
    ) -> Contest:
        """Return the contest with these settings and images."""
        return Contest(
            experiment=self.name,
            settings=dict(vars(self)),
            category=category,
            views=views,
            training=training,
            test=test,
            configs=self.configs(),
            n_octaves_up=self.n_octaves_up,
            n_timed=self.n_timed,
            groups=groups,
        )


@dataclass(frozen=True, eq=False)
class Entry:
    """A detector in a contest, and what it did.

    Attributes
    ----------
    is_published : bool
        Whether it came from a file; the others were trained here.
    training : dict or None
        ``seconds`` and ``cpu_seconds``, and in how many runs it was made (``n_starts``): times are
        those of the last one.
    work : Efficiency
        What it costs to use.
    detections : dict of str to Detections
        What it found in each test image.
    """

    is_published: bool
    training: dict[str, Any] | None
    work: Efficiency
    detections: dict[str, Detections]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the detections as plain numbers, for JSON."""
        work = asdict(self.work)
        return {"is_published": self.is_published, "training": self.training, "work": work}


def run(
    contest: Contest,
    folder: str | os.PathLike[str],
    *,
    published: Iterable[str | os.PathLike[str]] = (),
    n_jobs: int | None = -1,
    verbose: bool = True,
) -> dict[str, Entry]:
    """Do what is missing in the journal of a contest, and return what came out.

    `folder` has journal, checkpoints and detectors. Files in `published`, see `load_detector`,
    compete as they are. The result has the contenders, then the published detectors, named by their
    files.
    """
    folder = Path(folder)
    files = {f"published {Path(path).stem}": Path(path) for path in published}
    loaded = {name: load_detector(path) for name, path in files.items()}  # errors come first
    for image in contest.test[:1]:
        image.load()
    journal = Journal(folder / _JOURNAL, contest.header())
    runner = _Runner(contest, folder, journal, n_jobs, verbose)
    entries = {}
    for name, config in contest.configs.items():
        detector = runner.trained(name, config)
        entries[name] = runner.entry(name, detector, runner.record("training", name))
    for name, detector in loaded.items():
        runner.check_file(name, files[name])
        entries[name] = runner.entry(name, detector, None)
    return entries


def forget(folder: str | os.PathLike[str]) -> None:
    """Remove the journal, the checkpoints and the detectors of a contest; other files stay."""
    folder = Path(folder)
    (folder / _JOURNAL).unlink(missing_ok=True)
    for model in folder.glob(f"*{_MODEL}"):
        model.unlink()
    if (folder / _CHECKPOINTS).is_dir():
        shutil.rmtree(folder / _CHECKPOINTS)


def data_folder(given: str | os.PathLike[str] | None, name: str) -> Path:
    """Return the folder of a set of images, which must exist.

    If none is given, it is the folder `name` in ``detection`` of the one that the environment
    variable BADACOST_DATA names.
    """
    if given is not None:
        folder = Path(given)
    elif named := os.environ.get(_VARIABLE):
        folder = Path(named).expanduser() / "detection" / name
    else:
        raise FileNotFoundError("there are no images: name their folder with --data.")
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder: name that of the images with --data.")
    return folder


def contenders(config: TrainingConfig, **subcat: Any) -> dict[str, TrainingConfig]:
    """Return CostBoost and the three algorithms of the paper's comparison by name.

    They differ by their boosting only; SubCat also by trees of 2 levels and by `subcat`.
    """
    return {
        REFERENCE: replace(config, algorithm="costboost"),
        "BAdaCost": replace(config, algorithm="badacost"),
        "SAMME": replace(config, algorithm="samme"),
        "SubCat": replace(config, algorithm="subcat", max_depth=2, **subcat),
    }


def described(images: Sequence[AnnotatedImage], n_views: int) -> dict[str, Any]:
    """Return how many objects images have, and in which views, for JSON."""
    labels = np.concatenate([np.empty(0, np.int64), *(image.positives.labels for image in images)])
    return {
        "n_images": len(images),
        "n_objects": len(labels),
        "per_view": np.bincount(labels[labels >= 0], minlength=n_views).tolist(),
    }


class _Runner:
    """Does the parts of a contest that are not in its journal."""

    def __init__(
        self, contest: Contest, folder: Path, journal: Journal, n_jobs: int | None, verbose: bool
    ):
        self.contest, self.folder, self.journal = contest, folder, journal
        self.n_jobs, self.verbose = n_jobs, verbose

    def record(self, part: str, name: str) -> dict[str, Any] | None:
        """Return what is recorded of a part, None if it was not done."""
        return next(iter(self._records(part, name)), None)

    def _records(self, part: str, name: str) -> list[dict[str, Any]]:
        return [
            record
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
            self.contest.training,
            self.contest.views,
            config,
            category=self.contest.category,
            groups=self.contest.groups,
            folder=self.folder / _CHECKPOINTS / name,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
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

    def entry(self, name: str, detector: Detector, training: dict[str, Any] | None) -> Entry:
        """Let a detector look at the test images, and measure its work."""
        detector = detector.with_pyramid(n_octaves_up=self.contest.n_octaves_up)
        detections = self._detected(name, detector)
        if self.record("work", name) is None:
            timed = [image.load() for image in self.contest.test[: self.contest.n_timed]]
            self._append("work", name, **asdict(efficiency(detector, timed, n_jobs=self.n_jobs)))
        numbers = dict(self.record("work", name) or {})
        work = Efficiency(**{k: v for k, v in numbers.items() if k not in ("part", "detector")})
        if training is not None:
            training = {key: training[key] for key in ("seconds", "cpu_seconds", "n_starts")}
        return Entry(name not in self.contest.configs, training, work, detections)

    def _detected(self, name: str, detector: Detector) -> dict[str, Detections]:
        known = {record.get("image") for record in self._records("image", name)}
        missing = [image for image in self.contest.test if image.name not in known]
        bar = None
        if self.verbose and missing:
            bar = ProgressBar(len(missing), f"{name}: detection")
        for done, image in enumerate(missing, start=1):
            found = detector.detect(image.load(), n_jobs=self.n_jobs)
            self._append("image", name, **json.loads(to_json_line(image.name, found)))
            if bar is not None:
                bar.update(done)
        if bar is not None:
            bar.close()
        found_in = from_json_lines(json.dumps(record) for record in self._records("image", name))
        return {image.name: found_in[image.name] for image in self.contest.test}


def _digest(images: Sequence[AnnotatedImage]) -> str:
    """Return a number that tells sets of annotated images apart."""
    digest = hashlib.sha256()
    for image in images:
        digest.update(image.name.encode())
        for part in (image.boxes, image.labels, image.ignore):
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "badacost": __version__}
    try:
        return versions | {name: version(name) for name in ("numpy", "scipy", "numba", "pillow")}
    except PackageNotFoundError as error:
        raise ImportError(
            f'{error.name} is missing: install it with pip install "badacost[detection]".'
        ) from error
