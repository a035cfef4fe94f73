"""`train_detector`: from annotated images to a calibrated cascade.

Each round trains a cascade from scratch and looks with it for false alarms, which are negative
examples of the next round. What is found is written to a checkpoint, so that a training that was
killed resumes where it stopped and ends with the same detector.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, IndexArray, Positions
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.views import Views
from badacost.detection.boosters import Booster, cost_booster, real_booster
from badacost.detection.boxes import Detections, check_name, overlaps
from badacost.detection.cascade import Cascade
from badacost.detection.checkpoint import Checkpoint, Progress
from badacost.detection.decorrelation import as_filters, learn_filters
from badacost.detection.detector import Detector
from badacost.detection.images import ImageError
from badacost.detection.pyramid import PyramidParameters, estimate_lambdas
from badacost.detection.samples import WindowFeatures, WindowList, WindowShape, random_boxes
from badacost.detection.training_config import TrainingConfig
from badacost.progress import ProgressBar
from badacost.threads import Threads
from badacost.tree.binning import BinMapper, BinnedData
from badacost.tree.forest import Forest
from badacost.tree.grower import Growth

log = logging.getLogger(__name__)
_MAX_FILTER_WINDOWS = 2000
_MAX_LAMBDA_WINDOWS = 200
_MAX_BINNED_WINDOWS = 3000  # whose values choose the bins
_CALIBRATION_COPIES = 4  # of each object
_SLACK_VOTES = 4
_MAX_IGNORED = 0.1  # of a negative example that may lie in an ignored region
_MAX_ASPECT_RATIO = 32.0
_MAX_VIEWS = 255  # in one cascade: the classes of its windows are bytes
_MAX_MEMORY = 2**32  # bytes of windows; more are kept in a file
_REAL_REJECTION = -1.0  # of real-valued cascades, as in the toolbox of the authors
_TREES_BETWEEN_CHECKPOINTS = 64


def train_detector(
    images: Sequence[AnnotatedImage],
    views: Views,
    config: TrainingConfig | None = None,
    *,
    category: str = "object",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Detector:
    """Train a detector of several views.

    Parameters
    ----------
    images : sequence of AnnotatedImage
        Pictures with the views of their objects as labels (`AnnotatedImage.with_views`); those
        without objects serve as background. What is ignored is neither object nor background.
    views : Views
        What the labels stand for.
    config : TrainingConfig, optional
        How to train.
    category : str, default="object"
        What the objects are.
    folder : str or path-like, optional
        Where checkpoints are kept. The same call with the same folder resumes where an earlier one
        was stopped, and ends with the same detector.
    n_jobs : int, optional
        Threads, -1 for one on each core; the detector does not depend on it.
    verbose : bool, default=False
        Whether to show progress bars.

    Returns
    -------
    Detector
        With calibrated thresholds and the mean aspect ratio of each view.

    Examples
    --------
    >>> from badacost.datasets.scenes import make_scenes
    >>> from badacost.detection import TrainingConfig, train_detector
    >>> from badacost.detection.annotations import Views
    >>> scenes = make_scenes(4, n_views=4)
    >>> config = TrainingConfig(window=(32, 48), trees=(4, 8), max_depth=3, n_negatives=50)
    >>> train_detector(scenes, Views.around(4), config, category="Car")
    Detector('Car' in 4 views, 1 cascade of 8 trees)
    """
    config = TrainingConfig() if config is None else config
    with Threads(n_jobs) as threads:
        return _Training(images, views, config, category, folder, threads, verbose).run()


class _Training:
    """What the cascades of a detector share: images, objects, filters and pyramid."""

    def __init__(
        self,
        images: Sequence[AnnotatedImage],
        views: Views,
        config: TrainingConfig,
        category: str,
        folder: str | os.PathLike[str] | None,
        threads: Threads,
        verbose: bool,
    ):
        check_name("category", category)
        self.config, self.views, self.category = config, views, category
        self.threads, self.verbose = threads, verbose
        if config.algorithm != "subcat":
            if len(views) > _MAX_VIEWS:
                raise ValueError(
                    f"one cascade learns at most {_MAX_VIEWS} views; got {len(views)}: use fewer, "
                    'or algorithm="subcat".'
                )
            config.costs(len(views))  # which refuses a matrix for other views
        self.images = _checked_images(images)
        self.n_sources = len(self.images)  # mirror images are no source of negatives
        if config.mirror:
            self.images += [image.mirrored(views) for image in self.images if len(image)]
        self.objects, self.labels = self._objects()
        self.aspect_ratios = [self._aspect_ratio(view) for view in range(len(views.names))]
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        self.digest = self._digest()
        self.filters, self.pyramid = self._learn()

    def run(self) -> Detector:
        """Train the cascades, one for all views or one for each."""
        n_views = len(self.views.names)
        present = list(range(n_views))
        if self.config.algorithm == "subcat":
            present = [view for view in present if (self.labels == view).any()]
            cascades = [_CascadeTraining(self, view).run() for view in present]
        else:
            cascades = [_CascadeTraining(self, None).run()]
        return Detector(
            pyramid=self.pyramid,
            cascades=cascades,
            names=[self.views.names[view] for view in present],
            filters=self.filters,
            stride=self.config.cell,
            suppression=self.config.suppression,
            aspect_ratios=[self.aspect_ratios[view] for view in present],
            # A single view says nothing of where objects are heading.
            angles=None if n_views == 1 else [self.views.angles[view] for view in present],
            category=self.category,
        )

    def _aspect_ratio(self, view: int) -> float:
        """Mean width by height of the objects of a view; that of the window if there are none."""
        boxes = self.objects.boxes[self.labels == view]
        if not len(boxes):
            return self.config.window[1] / self.config.window[0]
        ratio = float(((boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])).mean())
        if not 1.0 / _MAX_ASPECT_RATIO <= ratio <= _MAX_ASPECT_RATIO:
            raise ValueError(
                f"the objects of view {self.views.names[view]!r} are {ratio:.3g} times as wide as "
                "high: correct their boxes."
            )
        return ratio

    def bar(self, total: int, title: str) -> ProgressBar | None:
        """A progress bar, if they are wanted."""
        return ProgressBar(total, title) if self.verbose and total else None

    def _objects(self) -> tuple[WindowList, IndexArray]:
        """Objects to learn, with their own boxes, and their views."""
        parts, labels = [], []
        for index, image in enumerate(self.images):
            known = ~image.ignore & (image.labels >= 0) & (image.sizes > 0.0).all(axis=1)
            if (image.labels[known] >= len(self.views.names)).any():
                raise ValueError(
                    f"{image.name!r:.80} has labels beyond the {len(self.views.names)} views: "
                    "use AnnotatedImage.with_views."
                )
            parts.append((index, image.boxes[known]))
            labels.append(image.labels[known])
        if not sum(map(len, labels)):
            raise ValueError(
                "there are no objects to learn: give images whose objects have labels "
                "(AnnotatedImage.with_views) and are not ignored."
            )
        return WindowList.of(parts), np.concatenate(labels)

    def _digest(self) -> str:
        """What a checkpoint must have been made from to be of use."""
        names = [[image.name, image.flipped, image.size] for image in self.images]
        text = json.dumps([asdict(self.config), asdict(self.views), self.category, names])
        digest = hashlib.sha256(text.encode())
        for image in self.images:
            for part in (image.boxes, image.labels, image.ignore):
                digest.update(np.ascontiguousarray(part).tobytes())
        for image in self.images[: self.n_sources]:
            if isinstance(image.image, Path):
                # A replaced picture rarely has the same number of bytes.
                digest.update(b"%d" % image.image.stat().st_size)
            else:
                digest.update(image.load().tobytes())
        return digest.hexdigest()

    def _learn(self) -> tuple[NDArray[np.float32] | None, PyramidParameters]:
        """Filters and exponents of the pyramid, from windows around objects."""
        config = self.config
        rng = np.random.default_rng([config.seed, 0])
        n_chosen = min(len(self.objects), _MAX_FILTER_WINDOWS)
        chosen = rng.choice(len(self.objects), n_chosen, replace=False)
        objects = self.objects.chosen(chosen)
        windows = WindowList(objects.images, config.shape.fitted(objects.boxes))
        pyramid = config.pyramid((0.0, 0.0, 0.0))
        features = WindowFeatures(config.shape, pyramid.channels, pyramid.smoothing, None)
        channels: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * n_chosen
        pictures = [np.empty(0, np.uint8)] * min(n_chosen, _MAX_LAMBDA_WINDOWS)

        def compute(places: Positions, crops: NDArray[np.uint8]) -> None:
            for place, planes, crop in zip(places, features.windows(crops), crops, strict=True):
                channels[place] = planes
                if place < len(pictures):
                    pictures[place] = crop

        self.for_images(windows, config.shape, "filters", compute)
        lambdas = estimate_lambdas(pictures, pyramid.channels, self.threads)
        filters = None
        if config.n_filters:
            learned = learn_filters(channels, config.n_filters, config.filter_size)
            filters = as_filters(learned, pyramid.channels.n_channels)
        return filters, config.pyramid(lambdas)

    def for_images(
        self,
        windows: WindowList,
        shape: WindowShape,
        title: str,
        work: Callable[[Positions, NDArray[np.uint8]], None],
    ) -> None:
        """Cut windows out of their images; `work` takes their places in the list and pixels."""
        groups = windows.by_image()
        bar = self.bar(len(groups), title)
        done: list[int] = []

        def one(first: int, last: int) -> None:
            for index, places in groups[first:last]:
                image = self.images[index]
                with _naming(image):
                    work(places, shape.cut(image.load(), windows.boxes[places]))
            done.append(first)
            if bar is not None:
                bar.update(len(done))

        self.threads.map(one, len(groups), grain=1)
        if bar is not None:
            bar.close()


class _CascadeTraining:
    """Trains one cascade: for all views together, or for one of them."""

    def __init__(self, training: _Training, view: int | None):
        self.training, self.view, config = training, view, training.config
        window = config.window
        own = np.arange(len(training.labels))
        self.n_classes = len(training.views.names) + 1
        if view is not None:
            # Each view has a window of its own shape.
            ratio = training.aspect_ratios[view]
            window = (window[0], max(8, round(window[0] * ratio / config.cell) * config.cell))
            own = np.flatnonzero(training.labels == view)
            self.n_classes = 2
        self.shape = config.shape_of(window)
        objects = training.objects.chosen(own)
        self.objects = WindowList(objects.images, self.shape.fitted(objects.boxes))
        classes = training.labels[own] + 1 if view is None else np.ones(len(own), np.int64)
        jittered = self._jittered(config.n_jittered, 6)
        self.positives = self.objects.followed_by(jittered)
        self.classes = np.tile(classes, 1 + config.n_jittered)
        pyramid = training.pyramid
        self.features = WindowFeatures(
            self.shape, pyramid.channels, pyramid.smoothing, training.filters
        )
        name = "cascade" if view is None else f"cascade-{view:02d}"
        path = None if training.folder is None else training.folder / f"{name}.checkpoint"
        self.checkpoint = Checkpoint(path, training.digest)
        self.title = "" if view is None else f"{training.views.names[view]}: "

    def run(self) -> Cascade:
        """Train all rounds, or those that are missing."""
        progress = self.checkpoint.load()
        if progress is None:
            negatives = self._first_negatives()
            progress = Progress(0, "boosting", negatives, negatives)
            self.checkpoint.save(progress)
        if progress.phase == "done":
            return self._cascade(progress)
        matrix = _Matrix(self, progress.first_negatives)
        while True:
            if progress.phase == "boosting":
                progress = self._boosted(matrix, progress)
                self.checkpoint.save(progress)
            if progress.phase == "done":
                return self._cascade(progress)
            progress = self._mined(progress)
            self.checkpoint.save(progress)

    def _boosted(self, matrix: _Matrix, progress: Progress) -> Progress:
        """Grow the trees of a round and calibrate its thresholds."""
        config = self.training.config
        n_trees = config.trees[progress.round]
        negatives = progress.negatives
        data = matrix.data(self.positives.followed_by(negatives))
        y = np.concatenate([self.classes, np.zeros(len(negatives), np.int64)])
        booster = self._booster(data, y.astype(np.uint8), progress)
        bar = self.training.bar(n_trees, f"{self.title}round {progress.round + 1}, trees")
        goes_on = True
        while goes_on and booster.n_trees < n_trees:
            goes_on = booster.grow()
            if bar is not None:
                bar.update(booster.n_trees)
            if goes_on and booster.n_trees % _TREES_BETWEEN_CHECKPOINTS == 0:
                self.checkpoint.save(
                    replace(progress, forest=booster.forest(), weights=booster.log_weights)
                )
        if bar is not None:
            bar.close()
        forest = booster.forest()
        log.info(
            "%sround %d: %d trees from %d objects and %d negatives",
            self.title, progress.round + 1, forest.n_trees, len(self.positives), len(negatives),
        )  # fmt: skip
        is_last = progress.round + 1 == len(config.trees)
        return replace(
            progress,
            phase="done" if is_last else "mining",
            forest=forest,
            weights=self._rejections(forest),
        )

    def _booster(self, data: BinnedData, y: NDArray[np.uint8], progress: Progress) -> Booster:
        config, threads = self.training.config, self.training.threads
        seed = int(
            np.random.default_rng([config.seed, 2, progress.round, self.view or 0]).integers(2**31)
        )
        growth = Growth(
            max_depth=config.max_depth,
            min_samples_split=config.min_samples_split,
            n_drawn=max(1, int(config.max_features * self.features.n_features)),
            draw_per=config.draw_per,
        )
        resumed = None
        if progress.forest is not None and progress.weights is not None:
            resumed = progress.forest, progress.weights
        if self.view is not None:
            return real_booster(data, y, growth=growth, seed=seed, threads=threads, resumed=resumed)
        return cost_booster(
            data,
            y,
            config.costs(self.n_classes - 1),
            growth=growth,
            learning_rate=config.learning_rate,
            seed=seed,
            threads=threads,
            resumed=resumed,
        )

    def _rejections(self, forest: Forest) -> FloatArray:
        """Thresholds that keep the objects which are found, as the configuration says."""
        kind = self.training.config.cascade
        if kind == "none":
            return np.full(forest.n_trees, -math.inf)
        if kind == "constant" and self.view is not None:
            return np.full(forest.n_trees, _REAL_REJECTION)
        cascade = self._with(forest, np.full(forest.n_trees, -math.inf))
        windows = self._jittered(_CALIBRATION_COPIES, 7)
        # All scores of all windows would take more memory than their features.
        final, lowest = np.empty(len(windows)), np.empty(len(windows))
        lowest_found = np.full(forest.n_trees, math.inf)
        lock = Lock()

        def follow(places: Positions, crops: NDArray[np.uint8]) -> None:
            traces = cascade.trace(self.features.of(crops))
            final[places], lowest[places] = traces[:, -1], traces.min(axis=1)
            lowest_here = traces[traces[:, -1] > 0.0].min(axis=0, initial=math.inf)
            with lock:
                np.minimum(lowest_found, lowest_here, out=lowest_found)

        title = f"{self.title}calibration"
        self.training.for_images(windows, self.shape, title, follow)
        found = np.flatnonzero(final > 0.0)
        if not len(found):
            return np.full(forest.n_trees, -math.inf)
        # Windows of a scan are less ideal than examples: each may have some votes against it.
        votes = forest.tree_weights.max() * np.abs(forest.table).max()
        slack = _SLACK_VOTES * votes if self.view is None else -_REAL_REJECTION
        if kind == "trees":
            return cascade.calibrated(lowest_found[None], slack).rejections
        # As in the paper: the lowest score on the way of the found object with the lowest final
        # score.
        level = min(lowest[found[np.argmin(final[found])]], -slack)
        log.info("%scalibration: %d of %d found, %g", self.title, len(found), len(windows), level)
        return np.full(forest.n_trees, level)

    def _mined(self, progress: Progress) -> Progress:
        """Look for false alarms with the cascade of a round."""
        config, training = self.training.config, self.training
        detector = Detector(
            pyramid=replace(training.pyramid, n_octaves_up=0, min_size=self.shape.window),
            cascades=[self._cascade(progress)],
            names=[f"class {k}" for k in range(1, self.n_classes)],
            filters=training.filters,
            stride=config.cell,
            suppression=config.suppression,
        )
        rng = np.random.default_rng([config.seed, 3, progress.round, self.view or 0])
        order = rng.permutation(training.n_sources)
        found: list[tuple[int, FloatArray]] = []
        bar = training.bar(len(order), f"{self.title}round {progress.round + 1}, false alarms")
        n_found = 0
        start = time.perf_counter()
        for index, detections in self._detections(detector, order.tolist()):
            away = _away_from(training.images[index], detections.boxes, config.negative_overlap)
            boxes = detections.boxes[away][: config.n_per_image]
            found.append((index, boxes))
            n_found += len(boxes)
            if bar is not None:
                bar.update(len(found), found=n_found)
            if n_found >= config.n_negatives:
                break
        if bar is not None:
            bar.close()
        new = WindowList.of(found).chosen(slice(config.n_negatives))
        n_kept = max(config.n_negatives, config.n_accumulated) - len(new)
        old = progress.negatives
        if n_kept < len(old):
            old = old.chosen(np.sort(rng.choice(len(old), n_kept, replace=False)))
        seconds = time.perf_counter() - start
        log.info(
            "%sround %d: %d new negatives in %d images, %.1f s",
            *(self.title, progress.round + 1, len(new), len(found), seconds),
        )
        return Progress(
            progress.round + 1, "boosting", progress.first_negatives, old.followed_by(new)
        )

    def _detections(
        self, detector: Detector, order: Sequence[int]
    ) -> Iterator[tuple[int, Detections]]:
        """Yield each image of an order and what is found in it."""
        images = self.training.images
        sources = (images[index].load() for index in order)
        found = detector.detect_many(sources, n_jobs=self.training.threads.n_threads)
        for index in order:
            with _naming(images[index]):
                detections = next(found)
            yield index, detections

    def _first_negatives(self) -> WindowList:
        """Random windows away from objects."""
        config, training = self.training.config, self.training
        rng = np.random.default_rng([config.seed, 4, self.view or 0])
        found: list[tuple[int, FloatArray]] = []
        n_found = 0
        for index in rng.permutation(training.n_sources):
            image = training.images[index].measured()
            assert image.size is not None
            boxes = random_boxes(image.size, self.shape, config.n_per_image, rng)
            boxes = boxes[_away_from(image, boxes, config.negative_overlap)]
            found.append((int(index), boxes))
            n_found += len(boxes)
            if n_found >= config.n_negatives:
                break
        if not n_found:
            raise ValueError(
                "no background was found in the images: add images without objects that are "
                "larger than the window."
            )
        return WindowList.of(found).chosen(slice(config.n_negatives))

    def _jittered(self, n_copies: int, purpose: int) -> WindowList:
        """Copies of the objects that are moved and scaled as a scan may meet them."""
        config = self.training.config
        rng = np.random.default_rng([config.seed, purpose, self.view or 0])
        copies = [
            self.shape.jittered(self.objects.boxes, config.n_per_octave, rng)
            for _ in range(n_copies)
        ]
        return WindowList(
            np.tile(self.objects.images, n_copies), np.concatenate([np.empty((0, 4)), *copies])
        )

    def _cascade(self, progress: Progress) -> Cascade:
        assert progress.forest is not None
        assert progress.weights is not None
        return self._with(progress.forest, progress.weights)

    def _with(self, forest: Forest, rejections: FloatArray) -> Cascade:
        # The last threshold of a real-valued cascade decides, if there is one.
        decides = self.view is not None and rejections[-1] > -math.inf
        return Cascade(
            forest,
            window=self.shape.window,
            padded_window=self.shape.padded_window,
            cell=self.shape.cell,
            rejections=rejections,
            min_score=-math.inf if decides else 0.0,
        )


class _Matrix:
    """Binned features of windows; those that were in the last matrix are not computed again."""

    def __init__(self, task: _CascadeTraining, first: WindowList):
        self._task = task
        self._mapper = self._chosen_bins(first)
        self._known: dict[tuple[int, bytes], int] = {}
        self._memory = self._allocated()
        self._bins = self._memory[:0].reshape(task.features.n_features, 0)

    def data(self, windows: WindowList) -> BinnedData:
        """Return the windows in bins, in their order; those that were returned before are lost."""
        keys = [
            (int(image), box.tobytes())
            for image, box in zip(windows.images, windows.boxes, strict=True)
        ]
        column = np.array([self._known.get(key, -1) for key in keys])
        n_features = len(self._bins)
        bins = self._memory[: n_features * len(windows)].reshape(n_features, len(windows))
        old = np.flatnonzero(column >= 0)
        # Both lie in the same memory: a row only runs over those that were moved before it.
        shrinks = len(windows) < self._bins.shape[1]
        for row in range(n_features) if shrinks else reversed(range(n_features)):
            bins[row, old] = self._bins[row, column[old]]
        new = np.flatnonzero(column < 0)
        task = self._task

        def fill(places: Positions, crops: NDArray[np.uint8]) -> None:
            bins[:, new[places]] = self._mapper.transform(task.features.of(crops))

        missing = windows.chosen(new)
        task.training.for_images(missing, task.shape, f"{task.title}features", fill)
        self._bins = bins
        self._known = {key: place for place, key in enumerate(keys)}
        return BinnedData(self._mapper, bins)

    def _chosen_bins(self, first: WindowList) -> BinMapper:
        """Bins from a part of the windows of the first round."""
        task = self._task
        windows = task.positives.followed_by(first)
        rng = np.random.default_rng([task.training.config.seed, 5])
        n_chosen = min(len(windows), _MAX_BINNED_WINDOWS)
        chosen = windows.chosen(np.sort(rng.choice(len(windows), n_chosen, replace=False)))
        features = np.empty((n_chosen, task.features.n_features), np.float32)

        def fill(places: Positions, crops: NDArray[np.uint8]) -> None:
            features[places] = task.features.of(crops)

        task.training.for_images(chosen, task.shape, f"{task.title}bins", fill)
        return BinMapper.fit(
            features, max_bins=task.training.config.max_bins, threads=task.training.threads
        )

    def _allocated(self) -> NDArray[np.uint8]:
        """Memory for the windows of every round, in a file if they are many."""
        training, config = self._task.training, self._task.training.config
        n_negatives = min(
            max(config.n_negatives, config.n_accumulated),
            training.n_sources * config.n_per_image * len(config.trees),
        )
        n_bytes = self._task.features.n_features * (len(self._task.positives) + n_negatives)
        if n_bytes <= _MAX_MEMORY:
            return np.empty(n_bytes, np.uint8)  # what is not used takes no memory
        with tempfile.TemporaryFile(dir=training.folder) as file:
            return np.asarray(np.memmap(file, np.uint8, "w+", shape=(n_bytes,)))


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


@contextmanager
def _naming(image: AnnotatedImage) -> Iterator[None]:
    """Say in which image something is wrong; what cannot be read says so itself."""
    try:
        yield
    except ImageError:
        raise
    except ValueError as error:
        raise ValueError(f"{image.name!r:.80}: {error}") from error


def _away_from(image: AnnotatedImage, boxes: FloatArray, max_overlap: float) -> Positions:
    """Which boxes hardly overlap annotated objects; of ignored ones, by their own area."""
    objects = overlaps(boxes, image.boxes[~image.ignore])
    ignored = overlaps(boxes, image.boxes[image.ignore], "first")
    clear = (objects < max_overlap).all(axis=1) & (ignored < _MAX_IGNORED).all(axis=1)
    return np.flatnonzero(clear)
