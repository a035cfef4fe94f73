"""`train_detector`: from annotated images to a calibrated detector.

A part of the images is held out. Cascades are trained on the others in rounds; what they find in
the part held out says which round was the best, and where the thresholds lie. Then they are trained
once more on all images.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask, Positions
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_choice
from badacost.backends.shards import ShardedData
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.views import Views
from badacost.detection.boxes import check_name
from badacost.detection.cascade import Cascade
from badacost.detection.decorrelation import as_filters, learn_filters
from badacost.detection.detector import Detector, DeviceName, check_device
from badacost.detection.images import Pixels
from badacost.detection.pyramid import PyramidParameters, estimate_lambdas
from badacost.detection.score_curve import ScoreCurve
from badacost.detection.training.boosters import Place
from badacost.detection.training.calibration import Calibration, calibrated, evaluated, opened
from badacost.detection.training.checkpoint import (
    Boosted,
    Checkpoint,
    cannot_resume,
)
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.identity import Identity, has_progress, remove_without_progress
from badacost.detection.training.rounds import (
    MINING_FLOOR,
    MINING_REJECTION,
)
from badacost.detection.training.samples import (
    Variation,
    WindowFeatures,
    WindowList,
)
from badacost.detection.training.store import WindowStore
from badacost.detection.training.subject import Judge, Subject, Task
from badacost.io.atomic_file import plain_write_errors
from badacost.io.file_lock import FileLock
from badacost.io.model_file import REBUILDING_ERRORS, read_model, refuse, write_model

log = logging.getLogger(__name__)
_TITLES = {
    "costboost": "CostBoost",
    "badacost": "BAdaCost",
    "samme": "SAMME",
    "subcat": "SubCat",
}
_MAX_FILTER_WINDOWS = 2000
_MAX_LAMBDA_WINDOWS = 200
_MAX_ASPECT_RATIO = 32.0
_MAX_VIEWS = 255  # in one cascade: the classes of its windows are bytes
_VOTE = 0.5
_MAX_LOST = 0.05  # of the objects, before a warning
_MIN_GROUPS = 4  # of pictures with objects, of which some can be held out
_MAX_EXCESS = 1.25  # of the objects held out over what was wanted
_UNCALIBRATED = 0.5  # units
_CALIBRATION = "DetectorCalibration"
_CALIBRATION_FILE = "calibration.checkpoint"


def train_detector(
    images: Sequence[AnnotatedImage],
    views: Views,
    config: TrainingConfig | None = None,
    *,
    category: str | None = None,
    groups: Sequence[Hashable] | Literal["folder"] | None = None,
    folder: str | os.PathLike[str] | None = None,
    device: DeviceName = "cpu",
    n_jobs: int | None = None,
    verbose: bool = False,
    client: Any = None,
) -> Detector:
    """Train a detector of several views.

    Parameters
    ----------
    images : sequence of AnnotatedImage
        Pictures with the views of their objects as labels (`label_views`); those without objects
        serve as background. What is ignored is neither object nor background.
    views : Views
        What the labels stand for. Those without headings have no mirror images, and are not
        arranged in a circle, whatever `config` says.
    config : TrainingConfig, optional
        How to train.
    category : str, optional
        What the objects are; by default their category, or "object" if they have several.
    groups : sequence of hashable or "folder", optional
        For each picture what it belongs to, as a drive or a day, or the folder of its file:
        pictures of the same group are held out together, if there are at least 4 groups. By
        default each picture is a group.
    folder : str or path-like, optional
        Where checkpoints are kept. The same call with the same folder resumes where an earlier one
        was stopped, and ends with the same detector. Checkpoints of other images, annotations or
        settings, and of a version of this library that trains in another way, are refused, as is a
        folder that another process trains in. A training that cannot write a checkpoint, as on a
        full disk, stops; the one before is intact.
    device : {"cpu", "cuda"}, default="cpu"
        What computes features of windows and searches images: with "cuda" a GPU (``pip install
        badacost[gpu]``). The detector does not depend on it; it looks at images there, too.
    n_jobs : int, optional
        Threads, -1 for one on each core; the detector does not depend on it.
    verbose : bool, default=False
        Whether to show progress bars.
    client : dask.distributed.Client, optional
        A cluster whose workers grow the trees (``pip install badacost[dask]``), each on a part of
        the windows; this process does everything else, and all of SubCat. The detector does not
        depend on it, nor on workers that are lost: others get their windows.

    Returns
    -------
    Detector
        With thresholds and probabilities that were chosen on the images held out.

    Examples
    --------
    >>> from badacost.detection.scenes import make_scenes
    >>> from badacost.detection import TrainingConfig, train_detector
    >>> from badacost.detection.annotations import Views
    >>> scenes = make_scenes(8, n_views=4, size=(120, 160))
    >>> config = TrainingConfig(window=(16, 24), trees=(4, 8), max_depth=3, n_negatives=50)
    >>> train_detector(scenes, Views.around(4), config, category="Car")
    Detector('Car' in 4 views, 1 cascade of 8 trees)
    """
    config = TrainingConfig() if config is None else config
    check_device(device)  # before any work is done
    with ExitStack() as stack:
        place: Place = partial(ShardedData.local, device=device)
        if client is not None:
            from badacost.distributed.cluster import current_client, outside_of_tasks
            from badacost.distributed.training_set import scatter_rows

            place = partial(scatter_rows, client=current_client(client))
            stack.enter_context(outside_of_tasks())
        threads = Threads(n_jobs)
        training = _Training(
            _checked_images(images),
            views,
            config,
            category,
            groups,
            folder,
            threads,
            verbose,
            device,
            place,
        )
        training.prepare(stack)
        return training.run()


class _Training:
    """What the cascades of a detector share: images, objects, filters and pyramid."""

    def __init__(
        self,
        images: Sequence[AnnotatedImage],
        views: Views,
        config: TrainingConfig,
        category: str | None,
        groups: Sequence[Hashable] | None,
        folder: str | os.PathLike[str] | None,
        threads: Threads,
        verbose: bool,
        device: DeviceName = "cpu",
        place: Place = ShardedData.local,
    ):
        if not views.angles:
            config = replace(config, views_in_circle=False, mirror=False)
        category = _category_of(images) if category is None else category
        check_name("category", category)
        self.config, self.views, self.category = config, views, category
        self.device, self.threads, self.place = device, threads, place
        if config.algorithm in ("badacost", "samme") and len(views) > _MAX_VIEWS:
            raise ValueError(
                f"one cascade learns at most {_MAX_VIEWS} views; got {len(views)}: use fewer, "
                'or algorithm="subcat".'
            )
        self.view_costs = _view_costs(config, views)
        self.folder = None if folder is None else Path(folder)
        variation = Variation(config.rotation, config.contrast, config.noise)
        self.groups = _checked_groups(groups, images)
        self._announce(images)
        self.store = WindowStore(
            images, views if config.mirror else None, variation, threads, self.folder, verbose
        )
        self.objects, self.labels = self._objects()
        self.aspect_ratios = [self._aspect_ratio(view) for view in range(len(views))]
        self.held_out = self._held_out(groups is not None)

    def prepare(self, stack: ExitStack) -> None:
        """Take the folder until the stack ends, decode the pictures, and learn filters."""
        identity = Identity.of(
            self.config, self.views, self.category, self.groups, self.store.images
        )
        if self.folder is not None:
            with plain_write_errors(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(FileLock(self.folder))
            identity.check(self.folder)
        self.store.decode()
        identity = identity.with_pixels(self.store.digests)
        if self.folder is not None:
            identity.check(self.folder)
        self.digest = identity.digest
        self.filters, self.pyramid = self._learn()
        if self.folder is not None:
            stack.callback(remove_without_progress, self.folder)
            identity.write(self.folder)

    def _announce(self, images: Sequence[AnnotatedImage]) -> None:
        """Tell what is going to be done."""
        n_objects = sum(int((~image.ignore & (image.labels >= 0)).sum()) for image in images)
        log.info(
            "%s for %r in %d view%s: %d pictures, %d objects, windows of %d x %d pixels",
            _TITLES[self.config.algorithm], self.category, len(self.views),
            "s" * (len(self.views) > 1), len(images), n_objects, *self.config.window,
        )  # fmt: skip
        if self.folder is not None and has_progress(self.folder):
            log.info("resuming from the checkpoints in %s", self.folder)

    def run(self) -> Detector:
        """Train on the images that are not held out, calibrate, and train again on all."""
        views: list[int | None] = [None]
        if self.config.algorithm == "subcat":
            views = list(range(len(self.views)))
        subjects = [self._subject(view) for view in views]
        everything = [Task(subject, np.ones(self.store.n_pictures, bool)) for subject in subjects]
        if not self.held_out.any():
            trained = [task.rounds(self._checkpoint("cascade", task)).run() for task in everything]
            return self._finished(everything, trained, None)
        tasks = [Task(subject, ~self.held_out) for subject in subjects]
        rounds = [
            task.rounds(self._checkpoint("cascade", task), self._judge(task)) for task in tasks
        ]
        trained = [each.run() for each in rounds]
        calibration = self._calibration(tasks, trained)
        if not self.config.refit:
            return self._finished(tasks, trained, calibration)
        refitted = [
            task.refitted(self._checkpoint("final", task), earlier, progress)
            for task, earlier, progress in zip(everything, rounds, trained, strict=True)
        ]
        return self._finished(everything, refitted, calibration)

    def _subject(self, view: int | None) -> Subject:
        """What a cascade learns."""
        config = self.config
        window, own = config.window, np.ones(len(self.labels), bool)
        costs, title = self.view_costs, ""
        if view is not None:
            # Each view has a window of its own shape.
            width = window[0] * self.aspect_ratios[view]
            window = (window[0], max(8, round(width / config.cell) * config.cell))
            own = self.labels == view
            costs, title = np.zeros((0, 0)), f"{self.views.names[view]}: "
        return Subject(
            self.store,
            config,
            self.pyramid,
            self.filters,
            self.objects.chosen(np.flatnonzero(own)),
            self.labels[own],
            self.groups,
            view,
            len(self.views),
            costs,
            window,
            title,
            self.device,
            self.place,
        )

    def _checkpoint(self, name: str, task: Task) -> Checkpoint:
        """The file of the rounds of a task."""
        end = "" if task.subject.view is None else f"-{task.subject.view:02d}"
        path = None if self.folder is None else self.folder / f"{name}{end}.checkpoint"
        return Checkpoint(path, self.digest)

    def _judge(self, task: Task) -> Judge | None:
        """Average precision on the images held out; None for one of many cascades."""
        if task.subject.view is not None:
            return None

        def judge(cascade: Cascade, unit: float) -> float:
            detector = self.detector([replace(cascade, pose=task.pose)])
            judged = opened(detector, [unit], MINING_REJECTION, MINING_FLOOR)
            return evaluated(judged, *self._validation(), self.threads).ap

        return judge

    def _finished(
        self, tasks: Sequence[Task], trained: Sequence[Boosted], calibration: Calibration | None
    ) -> Detector:
        """The detector of all cascades."""
        if calibration is None:
            calibration = Calibration(_UNCALIBRATED, -math.inf)
            log.warning(
                "thresholds are a guess and scores are not probabilities, since no images were "
                "held out: give more images, or a larger validation part"
            )
        detector = calibration.applied(*self._assembled(tasks, trained))
        kept = [task.kept(cascade) for task, cascade in zip(tasks, detector.cascades, strict=True)]
        share = float(np.concatenate(kept).mean())
        log.info("%.1f %% of the objects, moved a little, are kept by the detector", 100 * share)
        if share < 1.0 - _MAX_LOST:
            log.warning(
                "the detector loses %.0f %% of the objects it was trained on: use more copies "
                "(n_jittered), fewer levels (max_depth) or more objects",
                100 * (1.0 - share),
            )
        return detector

    def _assembled(
        self, tasks: Sequence[Task], trained: Sequence[Boosted]
    ) -> tuple[Detector, list[float]]:
        """The detector of all cascades before it is calibrated, and the unit of each."""
        pairs = [(task, each.forest) for task, each in zip(tasks, trained, strict=True)]
        detector = self.detector([task.cascade(forest) for task, forest in pairs])
        return detector, [task.unit(forest) for task, forest in pairs]

    def _calibration(self, tasks: Sequence[Task], trained: Sequence[Boosted]) -> Calibration:
        """Thresholds by the images held out, from a file if they are known already."""
        path = None if self.folder is None else self.folder / _CALIBRATION_FILE
        known = None if path is None else _read_calibration(path, self.digest)
        if known is not None:
            return known
        found = calibrated(
            *self._assembled(tasks, trained),
            *self._validation(),
            false_alarms=self.config.false_alarms,
            threads=self.threads,
        )
        log.info(
            "calibration: AP %.1f on %d images held out; windows leave %g units below zero, the "
            "floor of scores is %.3g",
            100 * (found.precision or 0.0), self.held_out.sum(), found.rejection, found.min_score,
        )  # fmt: skip
        if found.curve is None:
            log.warning(
                "scores are not probabilities, since what was found in the images held out is all "
                "right or all wrong: give more images, or a larger validation part"
            )
        if path is not None:
            _write_calibration(path, self.digest, found)
        return found

    def detector(self, cascades: Sequence[Cascade]) -> Detector:
        """A detector of cascades with poses."""
        n_views = len(self.views)
        windows = np.array([cascade.window for cascade in cascades])
        height, width = windows.min(axis=0).tolist()
        return Detector(
            pyramid=replace(self.pyramid, min_size=(height, width)),
            cascades=cascades,
            names=self.views.names,
            filters=self.filters,
            stride=self.config.cell,
            suppression=replace(self.config.suppression, vote=_VOTE),
            # A single view says nothing of where objects are heading.
            angles=None if n_views == 1 else self.views.angles or None,
            category=self.category,
            device=self.device,
        )

    def _validation(self) -> tuple[list[Pixels], list[AnnotatedImage]]:
        """Pixels and annotations of what is held out."""
        places = np.flatnonzero(self.held_out).tolist()
        return [self.store.pixels(k) for k in places], [self.store.images[k] for k in places]

    def _held_out(self, groups_are_given: bool) -> Mask:
        """Which pictures are held out: whole groups with about the wanted share of the objects.

        Where groups are few, each picture becomes one. Groups without objects, as a folder of
        negatives, are not held out.
        """
        n_objects = np.bincount(
            self.store.origins[self.objects.images], minlength=self.store.n_pictures
        )
        by_group = np.bincount(self.groups, weights=n_objects).astype(np.int64)
        if self.config.validation and (by_group > 0).sum() < _MIN_GROUPS:
            if groups_are_given:
                log.warning(
                    "fewer than %d groups have objects: pictures are held out one by one, so that "
                    "those of a group may be on both sides",
                    _MIN_GROUPS,
                )
            self.groups, by_group = np.arange(len(n_objects)), n_objects
        held_out = np.zeros(self.store.n_pictures, bool)
        wanted = self.config.validation * by_group.sum()
        if not wanted or (by_group > 0).sum() < _MIN_GROUPS:
            return held_out
        rng = np.random.default_rng([self.config.seed, 8])
        total = 0.0
        for group in rng.permutation(np.flatnonzero(by_group)).tolist():
            if total >= wanted or total + by_group[group] > _MAX_EXCESS * wanted:
                continue
            more = held_out | (self.groups == group)
            if self._leaves_all_views(more):
                held_out = more
                total += by_group[group]
        if not held_out.any():  # all groups are large
            smallest = self.groups == np.where(by_group > 0, by_group, np.inf).argmin()
            held_out = smallest if self._leaves_all_views(smallest) else held_out
        return held_out

    def _leaves_all_views(self, held_out: Mask) -> bool:
        """Whether objects of all views are left in the other pictures."""
        left = self.labels[~held_out[self.store.origins[self.objects.images]]]
        return len(np.unique(left)) == len(self.views)

    def _aspect_ratio(self, view: int) -> float:
        """Mean width by height of the objects of a view."""
        boxes = self.objects.boxes[self.labels == view]
        ratio = float(((boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])).mean())
        if not 1.0 / _MAX_ASPECT_RATIO <= ratio <= _MAX_ASPECT_RATIO:
            raise ValueError(
                f"the objects of view {self.views.names[view]!r} are {ratio:.3g} times as wide as "
                "high: correct their boxes."
            )
        return ratio

    def _objects(self) -> tuple[WindowList, IndexArray]:
        """Objects to learn, with their own boxes, and their views; none may be empty."""
        names = self.views.names
        parts, labels = [], []
        for index, image in enumerate(self.store.images):
            known = ~image.ignore & (image.labels >= 0) & (image.sizes > 0.0).all(axis=1)
            if (image.labels[known] >= len(names)).any():
                raise ValueError(
                    f"{image.name!r:.80} has labels beyond the {len(names)} views: use label_views."
                )
            parts.append((index, image.boxes[known]))
            labels.append(image.labels[known])
        if not sum(map(len, labels)):
            raise ValueError(
                "there are no objects to learn: give images whose objects have labels "
                "(label_views) and are not ignored."
            )
        joined = np.concatenate(labels)
        counts = np.bincount(joined, minlength=len(names))
        mirror = ", mirror images included" if self.config.mirror else ""
        by_view = ", ".join(f"{name} {n}" for name, n in zip(names, counts, strict=True))
        log.info("objects by view%s: %s", mirror, by_view)
        if not counts.all():
            empty = [name for name, n in zip(names, counts, strict=True) if not n]
            raise ValueError(
                f"no object is seen as {', '.join(map(repr, empty))}: use fewer views, or check "
                f"the angles of the annotations (objects by view: {by_view})."
            )
        return WindowList.of(parts), joined

    def _learn(self) -> tuple[NDArray[np.float32] | None, PyramidParameters]:
        """Filters and exponents of the pyramid, from windows around objects."""
        config = self.config
        rng = np.random.default_rng([config.seed, 0])
        n_chosen = min(len(self.objects), _MAX_FILTER_WINDOWS)
        objects = self.objects.chosen(rng.choice(len(self.objects), n_chosen, replace=False))
        windows = replace(objects, boxes=config.shape.fitted(objects.boxes))
        pyramid = config.pyramid((0.0, 0.0, 0.0))
        features = WindowFeatures(config.shape, pyramid.channels, pyramid.smoothing, None)
        channels: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * n_chosen
        pictures = [np.empty(0, np.uint8)] * min(n_chosen, _MAX_LAMBDA_WINDOWS)

        def compute(places: Positions, crops: Pixels) -> None:
            for place, planes, crop in zip(places, features.windows(crops), crops, strict=True):
                channels[place] = planes
                if place < len(pictures):
                    pictures[place] = crop

        self.store.for_windows(windows, config.shape, "filters", compute)
        lambdas = estimate_lambdas(pictures, pyramid.channels, self.threads)
        filters = None
        if config.n_filters:
            learned = learn_filters(channels, config.n_filters, config.filter_size)
            filters = as_filters(learned, pyramid.channels.n_channels)
        return filters, config.pyramid(lambdas)


def _view_costs(config: TrainingConfig, views: Views) -> FloatArray:
    """Costs of views for a pose that tells them; without any if the cascades do."""
    costs = config.costs(len(views))[1:, 1:]  # which refuses a matrix for other views
    if config.algorithm != "costboost" or len(views) == 1:
        return np.zeros((0, 0))
    if not costs.any():  # confusions are free: the most likely view is told
        return np.asarray(1.0 - np.eye(len(views)))
    free = ~costs.any(axis=1)
    if free.any():
        name = views.names[int(free.argmax())]
        raise ValueError(
            f"to take view {name!r} for any other is free: give it a cost in cost_matrix."
        )
    return costs


def _checked_images(images: Sequence[AnnotatedImage]) -> list[AnnotatedImage]:
    """Return pictures, all of them with pixels."""
    checked = list(images)
    for image in checked:
        if not isinstance(image, AnnotatedImage):
            raise TypeError(f"images must be AnnotatedImage; got {type(image).__name__}.")
        if image.image is None:
            raise ValueError(
                f"{image.name!r:.80} has annotations only: give the folder of its picture to the "
                "reader as images, to a command as --images."
            )
    return checked


def _category_of(images: Sequence[AnnotatedImage]) -> str:
    """The category of all objects to learn, if there is only one."""
    names = {
        name
        for image in images
        for name, ignored, label in zip(image.categories, image.ignore, image.labels, strict=True)
        if not ignored and label >= 0
    }
    return names.pop() if len(names) == 1 else "object"


def _checked_groups(
    groups: Sequence[Hashable] | None, images: Sequence[AnnotatedImage]
) -> IndexArray:
    """Return the number of the group of each picture."""
    if groups is None:
        return np.arange(len(images))
    if isinstance(groups, str):
        check_choice("groups", groups, ("folder",))
        files = (image.image for image in images)
        groups = [
            file.parent if isinstance(file, Path) else place for place, file in enumerate(files)
        ]
    if len(groups) != len(images):
        raise ValueError(f"groups must have one entry for each of {len(images)} images.")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)


def _write_calibration(path: Path, digest: str, found: Calibration) -> None:
    write_model(path, _CALIBRATION, {"digest": digest, **asdict(found)}, {})


def _read_calibration(path: Path, digest: str) -> Calibration | None:
    """What was written; None if there is no such file of this training."""
    if not path.exists():
        return None
    try:
        model = read_model(path)
        header = dict(model.header)
        if model.kind != _CALIBRATION or header.pop("digest", None) != digest:
            refuse("it belongs to another training")
        curve = header.pop("curve")
        return Calibration(**header, curve=None if curve is None else ScoreCurve(**curve))
    except REBUILDING_ERRORS as error:
        raise cannot_resume(path, str(error)) from error
