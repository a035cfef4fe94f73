"""What a cascade learns: `Subject`, its objects in windows, and `Task`, the part in some pictures.

Copies of objects are drawn once, and the features of those that poses and units are taken from are
computed once: the training on all pictures goes on with what the one before it had.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Mask, Positions
from badacost.backends.shards import ShardedData
from badacost.detection.cascade import Cascade
from badacost.detection.detector import Detector, DeviceName
from badacost.detection.pose import PoseRegression, offsets_of
from badacost.detection.pyramid import PyramidParameters
from badacost.detection.training.boosters import Place
from badacost.detection.training.checkpoint import Boosted, Checkpoint
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.miner import Miner
from badacost.detection.training.rounds import CascadeRounds, Examples, unit_of
from badacost.detection.training.samples import WindowFeatures, WindowList
from badacost.detection.training.store import WindowStore
from badacost.tree.forest import Forest

_MAX_WITNESSES = 400
_MAX_POSES = 2500
_POSE_COPIES = 3  # of each object
_POSE_JITTER = 2.0  # detections lie further away from objects than windows of a scan must
Judge = Callable[[Cascade, float], float]


@dataclass(frozen=True, eq=False)
class Subject:
    """Objects of all views together (`view` is None), or of one of them.

    Attributes
    ----------
    store, config, pyramid, filters
        What all subjects of a training share.
    objects : WindowList
        The objects, with their own boxes.
    labels : ndarray of shape (n_objects,)
        Their views.
    groups : ndarray of shape (n_pictures,)
        Numbers of the groups of pictures.
    view : int or None
        The view.
    n_views : int
        Number of views of the training.
    view_costs : ndarray of shape (n_views, n_views)
        Costs of views; without any if the pose does not tell them.
    window : tuple of int
        Height and width of the window.
    title : str
        What log lines and progress bars begin with.
    device : {"cpu", "cuda"}
        What computes features and searches images.
    place : callable
        What puts windows where trees are grown.
    """

    store: WindowStore
    config: TrainingConfig
    pyramid: PyramidParameters
    filters: NDArray[np.float32] | None
    objects: WindowList
    labels: IndexArray
    groups: IndexArray
    view: int | None
    n_views: int
    view_costs: FloatArray
    window: tuple[int, int]
    title: str
    device: DeviceName = "cpu"
    place: Place = ShardedData.local

    @cached_property
    def features(self) -> WindowFeatures:
        """What is seen in a window."""
        shape = self.config.shape_of(self.window)
        return WindowFeatures(
            shape, self.pyramid.channels, self.pyramid.smoothing, self.filters, self.device
        )

    @cached_property
    def copies(self) -> tuple[WindowList, Positions]:
        """Objects in windows, and copies of them, to learn; and which object each shows."""
        fitted = replace(self.objects, boxes=self.features.shape.fitted(self.objects.boxes))
        moved, places = self._moved(self.config.n_jittered, 6)
        return fitted.followed_by(moved), np.concatenate([np.arange(len(fitted)), places])

    @cached_property
    def witnesses(self) -> tuple[NDArray[np.float32], Positions]:
        """Features of further copies of some objects, and which object each shows."""
        windows, places = self._moved(1, 7, _MAX_WITNESSES)
        return self.store.features(windows, self.features, f"{self.title}witnesses"), places

    @cached_property
    def poses(self) -> tuple[NDArray[np.float32], WindowList, Positions]:
        """Features and windows that poses are learned from, and which object each shows."""
        windows, places = self._moved(_POSE_COPIES, 9, _MAX_POSES, _POSE_JITTER)
        return self.store.features(windows, self.features, f"{self.title}poses"), windows, places

    def _moved(
        self, n_copies: int, purpose: int, max_copies: int | None = None, amount: float = 1.0
    ) -> tuple[WindowList, Positions]:
        """Copies of the objects, moved, scaled and varied, and which object each shows."""
        config, shape = self.config, self.features.shape
        rng = np.random.default_rng([config.seed, purpose, self.view or 0])
        places = np.tile(np.arange(len(self.objects)), n_copies)
        if max_copies is not None and len(places) > max_copies:
            places = np.sort(rng.choice(places, max_copies, replace=False))
        fitted = shape.fitted(self.objects.boxes)[places]
        moved = shape.jittered(fitted, config.n_per_octave, rng, amount * config.jitter)
        seeds = rng.integers(1, 2**31, len(places))
        return WindowList(self.objects.images[places], moved, seeds), places

    def bare_detector(self, cascade: Cascade) -> Detector:
        """A detector that returns windows as they are, unless the cascade has a pose."""
        return Detector(
            pyramid=replace(self.pyramid, min_size=self.features.shape.window),
            cascades=[cascade],
            names=[f"class {k}" for k in range(1, cascade.n_views + 1)],
            filters=self.filters,
            stride=self.config.cell,
            device=self.device,
        )


@dataclass(frozen=True, eq=False)
class Task:
    """A subject to be learned from some pictures."""

    subject: Subject
    pictures: Mask
    is_known: Mask = field(init=False)  # which objects lie in these pictures

    def __post_init__(self) -> None:
        origins = self.subject.store.origins[self.subject.objects.images]
        object.__setattr__(self, "is_known", self.pictures[origins])
        if not self.is_known.any():
            raise ValueError(
                "too few objects are left to train on once some images are held out: give more "
                "images, or set validation to 0."
            )

    @cached_property
    def witnesses(self) -> NDArray[np.float32]:
        """Features of copies of some objects."""
        features, places = self.subject.witnesses
        known = self.is_known[places]
        return features[known] if known.any() else features

    @cached_property
    def pose(self) -> PoseRegression:
        """Boxes and views from the features of windows."""
        subject = self.subject
        features, windows, places = subject.poses
        known = self.is_known[places]
        places = places[known]
        return PoseRegression.fit(
            features[known],
            offsets_of(windows.boxes[known], subject.objects.boxes[places]),
            subject.labels[places],
            subject.groups[subject.store.origins[windows.images[known]]],
            view_costs=subject.view_costs,
            circular=subject.config.views_in_circle,
            seed=subject.config.seed,
        )

    def rounds(
        self,
        checkpoint: Checkpoint,
        judge: Judge | None = None,
        trees: tuple[int, ...] | None = None,
        stage: str = "",
    ) -> CascadeRounds:
        """Rounds of boosting, perhaps with other numbers of trees; `stage` begins log lines."""
        subject, config = self.subject, self.subject.config
        windows, places = subject.copies
        known = self.is_known[places]
        labels = subject.labels[places[known]]
        classes = labels + 1 if subject.view is None else np.ones(len(labels), np.int64)
        return CascadeRounds(
            subject.store,
            config if trees is None else replace(config, trees=trees),
            subject.features,
            Examples(windows.chosen(np.flatnonzero(known)), classes, self.witnesses),
            np.flatnonzero(self.pictures),
            checkpoint,
            n_classes=subject.n_views + 1,
            view=subject.view,
            title=f"{subject.title}{stage}",
            judge=judge,
            detector=subject.bare_detector,
            place=subject.place,
        )

    def refitted(
        self, checkpoint: Checkpoint, earlier: CascadeRounds, progress: Boosted
    ) -> Boosted:
        """Train once more, on the pictures of earlier rounds and those that were held out."""
        rounds = self.rounds(checkpoint, trees=(progress.forest.n_trees,), stage="all images, ")
        rounds.share_bins(earlier, progress)
        if checkpoint.path is not None and checkpoint.path.exists():
            return rounds.run()
        subject = self.subject
        others = np.setdiff1d(np.flatnonzero(self.pictures), earlier.miner.pictures)
        miner = Miner(subject.store, subject.config, subject.features.shape, others)
        found = earlier.false_alarms(progress.forest, miner, "images held out")
        return rounds.run(progress.negatives.followed_by(found.windows))

    def unit(self, forest: Forest) -> float:
        """The score that half of the objects reach, see `calibration`."""
        return unit_of(self.cascade(forest).trace(self.witnesses))

    def cascade(self, forest: Forest) -> Cascade:
        """The cascade of a forest, which keeps everything."""
        shape = self.subject.features.shape
        return Cascade(
            forest,
            window=shape.window,
            padded_window=shape.padded_window,
            cell=shape.cell,
            rejections=np.full(forest.n_trees, -math.inf),
            min_score=-math.inf,
            pose=self.pose,
        )

    def kept(self, cascade: Cascade) -> Mask:
        """Which of some moved objects a cascade keeps."""
        traces = cascade.trace(self.witnesses)
        alive = (traces > cascade.rejections).all(axis=1)
        return np.asarray(alive & (traces[:, -1] >= cascade.min_score))
