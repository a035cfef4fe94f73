"""`ReweightingPart`: the rows of a part, with the weights that boosting gives them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from badacost.arrays import FloatArray, Labels, RowNumbers
from badacost.boosting.learners import SplitCosts
from badacost.exact_sums import Units, bin_folded_sums, bin_maxima, folded_sums
from badacost.loss import add_margins
from badacost.portable_kernels import exp_of
from badacost.tree.forest import Tree
from badacost.tree.part import Answer, Question, TreePart
from badacost.tree.sampling import draw_rows
from badacost.tree.sums import WeightedLabels

MIN_LOG_WEIGHT = -700.0  # below the largest: a weight of zero would be a sample without a voice


def relative_weights(log_weights: FloatArray, largest: float) -> FloatArray:
    """Weights relative to the largest, from logarithms that may be far outside the range of exp."""
    weights = log_weights - largest
    np.maximum(weights, MIN_LOG_WEIGHT, out=weights)
    exp_of(weights, weights)
    return weights


class ReweightingPart:
    """Logarithms of the weights of some rows, and the tree that grows on them."""

    def __init__(self, trees: TreePart, y: Labels, first_row: int, log_weights: FloatArray):
        self._trees, self._y, self._first_row = trees, y, first_row
        self.log_weights = log_weights
        self._weights, self._total = np.empty(0), 1.0
        self._cells: NDArray[np.int32] = np.empty(0, np.int32)  # truth and answer of each row

    def state(self) -> FloatArray:
        """Logarithms of the weights, all that a fit needs to go on."""
        return self.log_weights

    def resume(self, log_weights: FloatArray) -> None:
        """Go on from earlier weights."""
        self.log_weights = np.array(log_weights)

    def largest(self) -> float:
        """The largest logarithm of a weight."""
        return float(self.log_weights.max(initial=-np.inf))

    def weigh(self, largest: float, units: Units) -> FloatArray:
        """Set the weights of a round relative to the largest; return their sum in two folds."""
        self._weights = relative_weights(self.log_weights, largest)
        self._total = 1.0
        return folded_sums(self._weights, units)

    def begin(
        self, total: float, split: SplitCosts, share: float, key: tuple[int, ...] | None
    ) -> int:
        """Begin a tree on rows that are drawn, by weights of a sum; return how many there are."""
        if total != self._total:
            self._weights /= total
            self._total = total
        sums = split.alter(WeightedLabels.of(self._y, self._weights, len(split.factors)))
        rows: RowNumbers | None = None
        n_rows = len(self._y)
        if key is not None and share < 1.0:
            alive = np.flatnonzero(self._weights.astype(np.float32))
            rows = draw_rows(alive, share, key, self._first_row)
            n_rows = len(rows)
        self._trees.end()
        self._trees.begin(0, sums, rows)
        return n_rows

    def ask(self, questions: dict[int, Question]) -> dict[int, Answer]:
        """Answer questions about the tree that grows."""
        return self._trees.ask(questions)

    def answer(self, tree: Tree, n_classes: int) -> FloatArray:
        """Take the answers of a tree; return the largest weight by truth and answer."""
        self._trees.end()
        answers = tree.value[self._trees.leaves(tree)]
        self._cells = np.multiply(self._y, n_classes, dtype=np.int32) + answers
        return bin_maxima(self._cells, self._weights, n_classes**2)

    def confusion(self, units: Units) -> FloatArray:
        """Weights by truth and answer, in two folds (2, K * K)."""
        return bin_folded_sums(self._cells, self._weights, units)

    def advance(self, tree: Tree, log_factors: FloatArray) -> float:
        """Add ``log_factors[truth, answer]`` to the logarithms; return the largest."""
        return self.advance_by([tree.value[self._trees.leaves(tree)]], log_factors)

    def advance_by(self, answers: Sequence[Labels], log_factors: FloatArray) -> float:
        """The same for a tree of an earlier fit, whose answers are known."""
        add_margins(self.log_weights, log_factors, self._y, answers[0])
        return self.largest()
