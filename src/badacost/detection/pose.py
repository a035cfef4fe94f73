"""`PoseRegression`: the box and the view of an object from the features of its window.

A window has one shape; objects have another one in each view, and lie a little beside it. Both
follow from what the window shows, by a ridge regression that is worked out for the few windows that
a cascade keeps. With few examples it is far better at this than the leaves of trees are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import log_softmax, softmax
from threadpoolctl import threadpool_limits

from badacost._utils.arrays import FloatArray, IndexArray
from badacost.costs import as_cost_matrix
from badacost.detection.pose_kernels import add_products

N_OFFSETS = 4  # shift right, shift down, log height, log width; by the height of the window
_PENALTIES = (
    0.3,
    1.0,
    3.0,
    10.0,
    30.0,
    100.0,
    1000.0,
)  # relative to the mean square of the features
_SHARPNESS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
_N_FOLDS = 4
_MAX_WEIGHT = 1e6
_MAX_SHIFT = 0.25
_MAX_STRETCH = 1.5  # of the logarithm of a side


@dataclass(frozen=True, eq=False)
class PoseRegression:
    """Linear functions of the features of a window.

    Attributes
    ----------
    weights : float32 ndarray of shape (n_features, 4 + n_views)
        Shift to the right and down, logarithm of height and width of the box, all relative to the
        height of the window; then the score of each view, if views are told apart.
    intercepts : ndarray of shape (4 + n_views,)
        What is added.
    view_costs : ndarray of shape (n_views, n_views)
        Cost of each view taken for each other, a row for each truth. The probabilities of views are
        the softmax of their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.pose import PoseRegression
    >>> weights = np.zeros((3, 4), np.float32)
    >>> pose = PoseRegression(weights, np.array([0.0, 0.0, 0.0, np.log(2.0)]), np.zeros((0, 0)))
    >>> pose.boxes(np.array([[0.0, 0.0, 15.0, 10.0]]), pose.outputs(np.ones((1, 3), np.float32)))
    array([[-2.5,  0. , 17.5, 10. ]])
    """

    weights: NDArray[np.float32]
    intercepts: FloatArray
    view_costs: FloatArray

    def __post_init__(self) -> None:
        for name in ("intercepts", "view_costs"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        n_outputs = N_OFFSETS + len(self.view_costs)
        if self.weights.dtype != np.float32 or self.weights.shape[1:] != (n_outputs,):
            raise ValueError(f"a pose needs float32 weights of {n_outputs} columns.")
        if self.intercepts.shape != (n_outputs,):
            raise ValueError(f"a pose needs {n_outputs} intercepts.")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercepts).all()):
            raise ValueError("the weights of a pose must be finite.")
        if max(np.abs(self.weights).max(initial=0.0), np.abs(self.intercepts).max()) > _MAX_WEIGHT:
            raise ValueError(f"the weights of a pose must be at most {_MAX_WEIGHT:g}.")
        if self.view_costs.shape != (self.n_views, self.n_views):
            raise ValueError(f"view_costs must be {self.n_views} rows of as many numbers.")
        if self.n_views:
            as_cost_matrix(self.view_costs, range(self.n_views))

    @property
    def n_views(self) -> int:
        """Number of views that are told apart; 0 if the cascade tells them."""
        return len(self.view_costs)

    @classmethod
    def fit(
        cls,
        features: NDArray[np.float32],
        offsets: FloatArray,
        labels: IndexArray,
        groups: IndexArray,
        *,
        view_costs: FloatArray,
        circular: bool,
        seed: int = 0,
    ) -> PoseRegression:
        """Learn from windows of objects.

        Parameters
        ----------
        features : float32 ndarray of shape (n_windows, n_features)
            Features of the windows.
        offsets : ndarray of shape (n_windows, 4)
            Where the objects lie in them, see `offsets_of`.
        labels : ndarray of shape (n_windows,)
            Views of the objects.
        groups : ndarray of shape (n_windows,)
            Windows of the same object or image have the same number: the strength of the penalty
            is chosen by what was left out.
        view_costs : ndarray of shape (n_views, n_views)
            Costs of views, without any if they are not to be told.
        circular : bool
            Whether views lie on a circle: an example then speaks a little for its neighbours.
        seed : int
            Of the folds.
        """
        rng = np.random.default_rng(seed)
        targets = np.column_stack([offsets, _shares(labels, len(view_costs), circular)])
        mean = features.mean(axis=0, dtype=np.float64).astype(np.float32)
        centred = features - mean
        weights = np.empty((features.shape[1], targets.shape[1]), np.float32)
        average = targets.mean(axis=0)
        with threadpool_limits(1, "blas"):  # sums differ with the number of threads
            kernel = (centred @ centred.T).astype(np.float64)
            unit = max(float(np.trace(kernel)) / len(kernel), 1e-12)
            penalties, left_out = _cross_validated(kernel / unit, targets, groups, rng)
            for penalty in np.unique(penalties):
                own = penalties == penalty
                solved = _solved(kernel, targets[:, own] - average[own], unit * penalty)
                weights[:, own] = centred.T @ solved
        intercepts = average - mean.astype(np.float64) @ weights
        if len(view_costs):
            sharpness = _sharpness(left_out[:, N_OFFSETS:], labels)
            weights[:, N_OFFSETS:] *= np.float32(sharpness)
            intercepts[N_OFFSETS:] *= sharpness
        return cls(weights, intercepts, view_costs)

    def outputs(self, features: NDArray[np.float32]) -> FloatArray:
        """Return offsets, and scores of views, of windows, shape (n_windows, 4 + n_views)."""
        n_features = features.shape[1]
        bases = np.arange(len(features), dtype=np.uint32) * np.uint32(n_features)
        offsets = np.arange(n_features, dtype=np.uint32)
        return self.of_map(np.ascontiguousarray(features).reshape(-1), bases, offsets)

    def of_map(
        self,
        features: NDArray[np.float32],
        bases: NDArray[np.uint32],
        offsets: NDArray[np.uint32],
    ) -> FloatArray:
        """Return the same of windows that begin at `bases` of a flat map of features."""
        outputs = np.tile(self.intercepts, (len(bases), 1))
        add_products(features, bases, offsets, self.weights, outputs)
        return outputs

    def boxes(self, windows: FloatArray, outputs: FloatArray) -> FloatArray:
        """Return the boxes of the objects in windows x1, y1, x2, y2."""
        heights = windows[:, 3] - windows[:, 1]
        shift = np.clip(outputs[:, :2], -_MAX_SHIFT, _MAX_SHIFT)
        centres = (windows[:, :2] + windows[:, 2:]) / 2.0 + shift * heights[:, None]
        stretch = np.clip(outputs[:, [3, 2]], -_MAX_STRETCH, _MAX_STRETCH)
        halves = np.exp(stretch) * heights[:, None] / 2.0
        return np.concatenate([centres - halves, centres + halves], axis=1)

    def labels(self, outputs: FloatArray) -> IndexArray:
        """Return the view of minimum expected cost of each window."""
        shares = softmax(outputs[:, N_OFFSETS:], axis=1)
        return (shares @ self.view_costs).argmin(axis=1).astype(np.int64)


def offsets_of(windows: FloatArray, objects: FloatArray) -> FloatArray:
    """Return where objects lie in windows, as `PoseRegression` predicts it, shape (n, 4).

    >>> offsets_of(np.array([[0.0, 0.0, 10.0, 10.0]]), np.array([[1.0, 0.0, 11.0, 10.0]]))
    array([[0.1, 0. , 0. , 0. ]])
    """
    heights = (windows[:, 3] - windows[:, 1])[:, None]
    sizes = (objects[:, 2:] - objects[:, :2]) / heights
    moved = (objects[:, :2] + objects[:, 2:] - windows[:, :2] - windows[:, 2:]) / (2.0 * heights)
    return np.column_stack([moved, np.log(sizes[:, 1]), np.log(sizes[:, 0])])


def _shares(labels: IndexArray, n_views: int, circular: bool) -> FloatArray:
    """What is to be predicted of views: one for the right one, or half, and quarters beside it."""
    shares = np.zeros((len(labels), n_views))
    if n_views:
        shares[np.arange(len(labels)), labels] = 1.0
    if circular and n_views > 2:
        shares = (2.0 * shares + np.roll(shares, 1, axis=1) + np.roll(shares, -1, axis=1)) / 4.0
    return shares


def _cross_validated(
    kernel: FloatArray, targets: FloatArray, groups: IndexArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The best penalty for each target, and what is predicted of groups that were left out.

    Where there is a single group, the largest penalty, and the mean.
    """
    numbers = np.unique(groups)
    n_folds = min(_N_FOLDS, len(numbers))
    if n_folds < 2:
        average = np.tile(targets.mean(axis=0), (len(targets), 1))
        return np.full(targets.shape[1], max(_PENALTIES)), average
    place = rng.permutation(len(numbers))[np.searchsorted(numbers, groups)] % n_folds
    predicted = np.empty((len(_PENALTIES), *targets.shape))
    for left_out in (place == number for number in range(n_folds)):
        average = targets[~left_out].mean(axis=0)
        known, asked = kernel[np.ix_(~left_out, ~left_out)], kernel[np.ix_(left_out, ~left_out)]
        for part, penalty in zip(predicted, _PENALTIES, strict=True):
            solved = _solved(known, targets[~left_out] - average, penalty)
            part[left_out] = asked @ solved + average
    best = ((predicted - targets) ** 2).sum(axis=1).argmin(axis=0)
    return np.asarray(_PENALTIES)[best], predicted[best, :, np.arange(targets.shape[1])].T


def _sharpness(shares: FloatArray, labels: IndexArray) -> float:
    """What shares are multiplied by, for the highest likelihood of the views of examples."""
    rows = np.arange(len(labels))
    likelihoods = [log_softmax(k * shares, axis=1)[rows, labels].mean() for k in _SHARPNESS]
    return _SHARPNESS[int(np.argmax(likelihoods))]


def _solved(kernel: FloatArray, targets: FloatArray, penalty: float) -> FloatArray:
    ridge = kernel + penalty * np.eye(len(kernel))
    return np.asarray(solve(ridge, targets, assume_a="pos"))
