"""Rounds of a cascade: boost, look for false alarms, boost again from scratch.

What is found is written to a checkpoint, so that a training that was killed resumes where it
stopped and ends with the same trees.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, IndexArray, Labels, Positions
from badacost.backends.shards import ShardedData
from badacost.detection.cascade import Cascade
from badacost.detection.detector import Detector
from badacost.detection.training.boosters import (
    Booster,
    Place,
    cost_booster,
    object_booster,
    real_booster,
)
from badacost.detection.training.checkpoint import BestRound, Boosted, Boosting, Checkpoint
from badacost.detection.training.config import TrainingConfig
from badacost.detection.training.miner import Mined, Miner, describe_scores
from badacost.detection.training.samples import MAX_OBJECT_HEIGHT, WindowFeatures, WindowList
from badacost.detection.training.store import BinnedWindows, WindowStore
from badacost.io.model_file import refuse
from badacost.tree.binning import BinnedData
from badacost.tree.forest import Forest
from badacost.tree.grower import Growth

log = logging.getLogger(__name__)
MINING_REJECTION, MINING_FLOOR = 0.5, 1 / 6  # units below zero
_TREES_BETWEEN_CHECKPOINTS = 64
_MIN_UNIT = 1e-6  # of a cascade that has learned nothing
_MAX_REACH = 16.0  # of windows in a checkpoint, in sides of their picture
_MIN_DIFFERENCE = 0.02  # of average precisions; with less, the later round counts as better
_STARVED = 0.01  # of the negatives that were wanted; fewer are not worth a round


@dataclass(frozen=True, eq=False)
class Examples:
    """Objects that a cascade learns, in windows of its shape.

    Attributes
    ----------
    windows : WindowList
        The objects, and behind them copies that are moved and varied.
    classes : ndarray of shape (n_windows,)
        Their classes; the background is 0.
    witnesses : float32 ndarray of shape (n_witnesses, n_features)
        Features of further copies of some objects, to see how they fare in a cascade.
    """

    windows: WindowList
    classes: IndexArray
    witnesses: NDArray[np.float32]


class CascadeRounds:
    """Trains one cascade: for all views together (`view` is None), or for one of them.

    `judge` returns the average precision of a cascade on the images held out, given its unit, and
    is None if there are none; `detector` makes a detector of a cascade; `place` puts windows where
    trees are grown.
    """

    def __init__(
        self,
        store: WindowStore,
        config: TrainingConfig,
        features: WindowFeatures,
        examples: Examples,
        pictures: Positions,
        checkpoint: Checkpoint,
        *,
        n_classes: int,
        view: int | None,
        title: str,
        judge: Callable[[Cascade, float], float] | None,
        detector: Callable[[Cascade], Detector],
        place: Place = ShardedData.local,
    ):
        self.store, self.config, self.features, self.examples = store, config, features, examples
        self.checkpoint, self.n_classes, self.view, self.title = checkpoint, n_classes, view, title
        self._judge, self._detector, self._place = judge, detector, place
        self.miner = Miner(store, config, features.shape, pictures)
        self._binned: BinnedWindows | None = None

    def run(self, negatives: WindowList | None = None) -> Boosted:
        """Train all rounds, or those that are missing; negatives are random ones by default."""
        progress = self.checkpoint.load(self._check)
        if progress is None:
            if negatives is None:
                rng = np.random.default_rng([self.config.seed, 4, self.view or 0])
                negatives = self.miner.at_random(rng)
            progress = Boosting(0, negatives, negatives, (), None)
            self.checkpoint.save(progress)
        while True:
            if isinstance(progress, Boosting):
                progress = self._boosted(progress)
            elif progress.is_last:
                return progress
            else:
                progress = self._mined(progress)
            self.checkpoint.save(progress)

    def _check(self, progress: Boosting | Boosted) -> None:
        """Refuse a state that this training was never in: a damaged file may hold any."""
        config = self.config
        ends = isinstance(progress, Boosting) or progress.is_last
        if progress.round + (not ends) >= len(config.trees):
            refuse("it has a round that the training does not have")
        lists, forests = [progress.first_negatives, progress.negatives], [progress.forest]
        if progress.best is not None:
            lists.append(progress.best.negatives)
            forests.append(progress.best.forest)
        n_windows = max(config.n_negatives, config.n_accumulated) + config.n_negatives
        if any(len(windows) > n_windows for windows in lists):
            refuse("it has more windows than the training takes")
        sizes = np.array([image.size or (0, 0) for image in self.store.images], np.float64)
        if not all(_are_within(windows, sizes) for windows in lists if len(windows)):
            refuse("it has windows that are in no image of the training")
        for forest in forests:
            if forest is None:
                continue
            self.cascade(forest)  # which has checks of its own
            if (
                forest.n_features != self.features.n_features
                or forest.n_trees > max(config.trees)
                or forest.depths.max() > config.max_depth
                or forest.table.shape[1] != (1 if self._is_binary else self.n_classes - 1)
            ):
                refuse("its trees are not of the training")
        state = progress.state if isinstance(progress, Boosting) else None
        n_windows = len(self.examples.windows) + len(progress.negatives)
        n_scores = 2 if config.algorithm == "costboost" else 1
        if state is not None and (
            len(state) != n_scores * n_windows or not np.isfinite(state).any()
        ):
            refuse("its weights are not those of its windows")

    @property
    def _is_binary(self) -> bool:
        """Whether a tree has one score, for the objects of all views or of one."""
        return self.config.algorithm == "costboost" or self.view is not None

    def cascade(self, forest: Forest, rejection: float = np.inf, floor: float = np.inf) -> Cascade:
        """The cascade of a forest that rejects below these scores."""
        shape = self.features.shape
        return Cascade(
            forest,
            window=shape.window,
            padded_window=shape.padded_window,
            cell=shape.cell,
            rejections=np.full(forest.n_trees, -rejection),
            min_score=-floor,
        )

    def _boosted(self, progress: Boosting) -> Boosted:
        """Grow the trees of a round, and say how good they are."""
        config = self.config
        negatives = progress.negatives
        data = self._matrix(progress).data(self.examples.windows.followed_by(negatives))
        y = np.concatenate([self.examples.classes, np.zeros(len(negatives), np.int64)])
        if config.algorithm == "costboost":
            y = np.minimum(y, 1)
        forest = self._grown(data, y.astype(np.uint8), progress)
        traces = self.cascade(forest).trace(self.examples.witnesses)
        unit = unit_of(traces)
        kept = (traces.min(axis=1) > -MINING_REJECTION * unit) & (traces[:, -1] > 0.0)
        precisions, best, held_out = progress.precisions, progress.best, ""
        if self._judge is not None:
            precisions = (*precisions, self._judge(self.cascade(forest), unit))
            if precisions[-1] >= max(precisions) - _MIN_DIFFERENCE:
                best = BestRound(forest, negatives)
            held_out = f"; AP {100 * precisions[-1]:.1f} on the images held out"
        log.info(
            "%sround %d: %d trees, %d objects, %d negatives; %.1f %% of moved objects are kept%s",
            self.title, progress.round + 1, forest.n_trees, len(self.examples.windows),
            len(negatives), 100.0 * kept.mean(), held_out,
        )  # fmt: skip
        is_last = progress.round + 1 == len(config.trees)
        if is_last and best is not None and best.forest is not forest:
            forest, negatives = best.forest, best.negatives
            log.info(
                "%san earlier round was better: its %d trees are kept", self.title, forest.n_trees
            )
        return Boosted(
            progress.round, progress.first_negatives, negatives, precisions, best, forest, is_last
        )

    def _grown(self, data: BinnedData, y: Labels, progress: Boosting) -> Forest:
        """Grow the trees of a round; the windows stay where they are grown until then."""
        n_trees = self.config.trees[progress.round]
        with ExitStack() as stack:

            def place(*given: Any) -> ShardedData:
                windows = self._place(*given)
                stack.callback(windows.shards.close)
                return windows

            booster = self._booster(data, y, progress, place)
            bar = self.store.bar(n_trees, f"{self.title}round {progress.round + 1}, trees")
            goes_on = True
            while goes_on and booster.n_trees < n_trees:
                goes_on = booster.grow()
                if bar is not None:
                    bar.update(booster.n_trees)
                if goes_on and booster.n_trees % _TREES_BETWEEN_CHECKPOINTS == 0:
                    self.checkpoint.save(
                        replace(progress, forest=booster.forest(), state=booster.state)
                    )
            if bar is not None:
                bar.close()
            return booster.forest()

    def share_bins(self, earlier: CascadeRounds, progress: Boosted) -> None:
        """Go on with the binned windows of earlier rounds, of the same shape, that are complete."""
        self._binned = earlier._matrix(progress)

    def _matrix(self, progress: Boosting | Boosted) -> BinnedWindows:
        """Binned windows, whose bins are chosen by those of the first round."""
        if self._binned is None:
            config = self.config
            self._binned = BinnedWindows(
                self.store,
                self.features,
                self.examples.windows.followed_by(progress.first_negatives),
                max_bins=config.max_bins,
                seed=config.seed,
                title=self.title,
            )
        return self._binned

    def _booster(self, data: BinnedData, y: Labels, progress: Boosting, place: Place) -> Booster:
        config, threads = self.config, self.store.threads
        drawn = np.random.default_rng([config.seed, 2, progress.round, self.view or 0])
        seed = int(drawn.integers(2**31))
        growth = Growth(
            max_depth=config.max_depth,
            min_samples_split=config.min_samples_split,
            n_drawn=max(1, int(config.max_features * self.features.n_features)),
            draw_per=config.draw_per,
        )
        resumed = None
        if progress.forest is not None and progress.state is not None:
            resumed = progress.forest, progress.state
        if config.algorithm == "costboost":
            return object_booster(
                data,
                y,
                growth=growth,
                learning_rate=config.learning_rate,
                odds=config.odds,
                seed=seed,
                threads=threads,
                resumed=resumed,
                place=place,
            )
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
            place=place,
        )

    def _mined(self, progress: Boosted) -> Boosting:
        """Look for false alarms with the cascade of a round."""
        config, start = self.config, time.perf_counter()
        found = self.false_alarms(progress.forest, self.miner, f"round {progress.round + 1}")
        n_kept = max(config.n_negatives, config.n_accumulated) - len(found.windows)
        old = progress.negatives
        rng = np.random.default_rng([config.seed, 3, progress.round, self.view or 0])
        if n_kept < len(old):
            old = old.chosen(np.sort(rng.choice(len(old), n_kept, replace=False)))
        log.info(
            "%sround %d: %d new negatives in %d images (%s), %.1f s",
            self.title, progress.round + 1, len(found.windows), found.n_pictures,
            describe_scores(found.scores), time.perf_counter() - start,
        )  # fmt: skip
        following = progress.round + 1
        last = len(config.trees) - 1
        if len(found.windows) < _STARVED * config.n_negatives and following < last:
            log.info(
                "%sthe images have no more false alarms: rounds %d to %d are left out",
                self.title, following + 1, last,
            )  # fmt: skip
            following = last
        return Boosting(
            following,
            progress.first_negatives,
            old.followed_by(found.windows),
            progress.precisions,
            progress.best,
        )

    def false_alarms(self, forest: Forest, miner: Miner, title: str) -> Mined:
        """What the cascade of a forest takes for objects, in the pictures of a miner."""
        unit = unit_of(self.cascade(forest).trace(self.examples.witnesses))
        cascade = self.cascade(forest, MINING_REJECTION * unit, MINING_FLOOR * unit)
        return miner.false_alarms(self._detector(cascade), f"{self.title}{title}, false alarms")


def unit_of(traces: FloatArray) -> float:
    """The score that half of the objects reach, given their scores after each tree."""
    return max(float(np.median(traces[:, -1])), _MIN_UNIT)


def _are_within(windows: WindowList, sizes: FloatArray) -> bool:
    """Whether windows are in images of these heights and widths, or not far from them."""
    if windows.images.min() < 0 or windows.images.max() >= len(sizes):
        return False
    height, reach = sizes[windows.images, 0], _MAX_REACH * sizes[windows.images].max(axis=1)
    heights = windows.boxes[:, 3] - windows.boxes[:, 1]
    near = np.abs(windows.boxes).max(axis=1) <= reach
    return bool((near & (heights > 0.0) & (heights <= MAX_OBJECT_HEIGHT * height)).all())
