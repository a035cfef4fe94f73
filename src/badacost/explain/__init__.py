"""Contributions of features to the scores and expected costs of a model of trees.

The scores of a forest are sums over trees, and exact Shapley values divide them among the features
(`explain_scores`). The expected cost of a decision is a function of these scores: along the
straight line from the scores without any feature to those of the sample, each feature gets its
part of every small change (`explain_decision`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from badacost._utils.arrays import FloatArray
from badacost._utils.categorical_columns import is_missing, listed
from badacost._utils.numbers import short_number, signed_numbers
from badacost._utils.parallel import Threads
from badacost._utils.validation import check_number, check_samples
from badacost.costs.matrix import expected_costs, given_costs, plain
from badacost.tree.binning import is_sparse

__all__ = [
    "DecisionExplanation",
    "Explanation",
    "explain_decision",
    "explain_scores",
    "feature_importances",
]
_N_NODES = 16  # of the quadrature in each panel
_PANEL = 4.0  # by how much differences of scores change within one
_MAX_PANELS = 1000
_STEP = 1e-3  # of scores, for derivatives of fourth order
_MAX_CLASSES_LISTED = 10


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each feature contributes to each score of some samples.

    ``base_values + values.sum(axis=1)`` are the scores, up to rounding.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features, K)
        Contributions, in the unit of the scores.
    base_values : ndarray of shape (K,)
        Scores without any feature of a sample.
    data : ndarray of shape (n_samples, n_features)
        The samples, of dtype object where features are categories.
    feature_names : list of n_features str
        Names of the features.
    classes : list of K labels
        Classes that the scores belong to.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.explain import explain_scores
    >>> iris = load_iris(as_frame=True)
    >>> model = BAdaCostClassifier(n_estimators=5).fit(iris.data, iris.target)
    >>> explanation = explain_scores(model, iris.data)
    >>> explanation.values.shape, explanation.classes
    ((150, 4, 3), [0, 1, 2])
    >>> explanation.feature_names[explanation.importances().argmax()]
    'petal length (cm)'
    """

    values: FloatArray
    base_values: FloatArray
    data: NDArray[Any]
    feature_names: list[str]
    classes: list[Any]

    def importances(self) -> FloatArray:
        """Return the mean absolute contribution of each feature, normalized, (n_features,)."""
        totals = np.abs(self.values).mean(axis=0).sum(axis=1)
        return np.asarray(totals / (totals.sum() or 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class DecisionExplanation:
    """Contributions of the features to the difference in expected cost of two decisions.

    ``base + contributions.sum()`` is `total`, but for `error`.

    Attributes
    ----------
    decision, against : label
        The decision that is explained, and the one it is compared with.
    contributions : ndarray of shape (n_features,)
        By how much each feature makes `against` more expensive than `decision`, in the unit of the
        costs; negative where it makes `against` cheaper.
    base : float
        The difference in expected cost without any feature of the sample.
    total : float
        The difference for this sample: expected cost of `against` minus that of `decision`.
    expected_costs, probabilities, base_probabilities : ndarray of shape (K,)
        Expected costs of all decisions, probabilities of the classes, and probabilities without
        any feature.
    data : ndarray of shape (n_features,)
        The sample.
    feature_names : list of n_features str
        Names of the features.
    classes : list of K labels
        The classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.costs import labelled_costs
    >>> from badacost.explain import explain_decision
    >>> iris = load_iris(as_frame=True)
    >>> names = iris.target_names[iris.target]
    >>> costs = labelled_costs([[0, 1, 1], [1, 0, 1], [1, 10, 0]], iris.target_names)
    >>> model = BAdaCostClassifier(costs, n_estimators=20, max_depth=2).fit(iris.data, names)
    >>> explanation = explain_decision(model, iris.data[70:71], against="versicolor")
    >>> explanation.headline
    "'virginica' is cheaper than 'versicolor' here"
    >>> print(explanation.to_text(max_features=1))
    'virginica' is cheaper than 'versicolor' here: 0.569 expected, against 4.47.
    In favor of 'virginica' (+) or of 'versicolor' (-):
      petal width (cm) = 1.8  +6.576
      3 other features        -2.885
      baseline                +0.212
      difference              +3.903
    P('setosa') = 0.162, P('versicolor') = 0.407, P('virginica') = 0.431.
    """

    decision: Any
    against: Any
    contributions: FloatArray
    base: float
    total: float
    expected_costs: FloatArray
    probabilities: FloatArray
    base_probabilities: FloatArray
    data: NDArray[Any]
    feature_names: list[str]
    classes: list[Any]

    @property
    def error(self) -> float:
        """Total minus base and contributions: the error of quadrature and rounding."""
        return float(self.total - self.base - self.contributions.sum())

    @property
    def headline(self) -> str:
        """Which decision is cheaper, in a few words."""
        relation = "as expensive as"
        if self.total:
            relation = "cheaper than" if self.total > 0.0 else "more expensive than"
        return f"{self.decision!r} is {relation} {self.against!r} here"

    def rows(self, max_features: int | None = 10) -> list[tuple[str, float]]:
        """Return the lines of the table: features with their values, and contributions.

        Parameters
        ----------
        max_features : int or None, default=10
            Maximum number of features, those of largest contribution first; the others are summed
            in one line. None is all.

        Returns
        -------
        list of (str, float)
            Features with their values, and their contributions.
        """
        check_number("max_features", max_features, Integral, low=1, none=True)
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        rows = [
            (f"{self.feature_names[i]} = {_value(self.data[i])}", float(self.contributions[i]))
            for i in order[:max_features]
        ]
        others = order[len(rows) :]
        if len(others):
            name = "1 other feature" if len(others) == 1 else f"{len(others)} other features"
            rows.append((name, float(self.contributions[others].sum())))
        return rows

    def _table(self, max_features: int | None) -> list[tuple[str, float]]:
        """Return `rows`, then the baseline and the difference."""
        return [*self.rows(max_features), ("baseline", self.base), ("difference", self.total)]

    def to_text(self, max_features: int | None = 10) -> str:
        """Return a sentence and a table for a terminal.

        Parameters
        ----------
        max_features : int or None, default=10
            See `rows`.

        Returns
        -------
        str
            Lines.
        """
        costs = dict(zip(self.classes, map(short_number, self.expected_costs), strict=True))
        names, amounts = zip(*self._table(max_features), strict=True)
        numbers = signed_numbers(amounts)
        width, digits = (max(map(len, column)) for column in (names, numbers))
        lines = [
            f"{self.headline}: {costs[self.decision]} expected, against {costs[self.against]}.",
            f"In favor of {self.decision!r} (+) or of {self.against!r} (-):",
        ]
        for name, number in zip(names, numbers, strict=True):
            lines.append(f"  {name:<{width}}  {number:>{digits}}")
        if len(self.classes) <= _MAX_CLASSES_LISTED:
            pairs = zip(self.classes, self.probabilities, strict=True)
            lines.append(", ".join(f"P({label!r}) = {p:.3g}" for label, p in pairs) + ".")
        return "\n".join(lines)

    __repr__ = to_text

    def plot(self, *, max_features: int | None = 10, ax: Any = None) -> Any:
        """Draw the contributions as bars.

        Parameters
        ----------
        max_features : int or None, default=10
            See `rows`.
        ax : matplotlib Axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        DecisionExplanationDisplay
            The display, drawn.
        """
        from badacost.plotting import DecisionExplanationDisplay

        return DecisionExplanationDisplay(self).plot(max_features=max_features, ax=ax)


def explain_scores(model: Any, X: Any) -> Explanation:
    """Return what each feature contributes to each score of each sample.

    Contributions are exact Shapley values: the mean, over all orders in which the features of a
    sample could become known, of what a feature changes. Features that are not known yet are
    averaged out along the trees, where the sides of a split count by their numbers of training
    samples [1]_.

    Parameters
    ----------
    model : fitted classifier
        A classifier of trees: a booster of `badacost`, `CostSensitiveTreeClassifier` or a
        `TableClassifier` around one of them, for which contributions of all features that come
        from a column are summed.
    X : array-like of shape (n_samples, n_features), or table
        Samples, as `model` takes them. The result has n_samples x n_features x K numbers.

    Returns
    -------
    Explanation
        Contributions to the scores, which are sums over trees. A low score is in favor of a class;
        the scores of a `CostSensitiveTreeClassifier` are probabilities.

    References
    ----------
    .. [1] S. M. Lundberg, G. G. Erion, S.-I. Lee, "Consistent individualized feature attribution
       for tree ensembles", 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier([[0, 1, 1], [1, 0, 1], [1, 9, 0]], n_estimators=5).fit(X, y)
    >>> explanation = explain_scores(model, X)
    >>> scores = explanation.base_values + explanation.values.sum(axis=1)
    >>> bool((scores.argmin(axis=1) == model.predict(X)).all())
    True
    """
    booster = _booster_of(model)
    X = X.toarray() if is_sparse(X) else X  # the result is dense
    if booster is model:
        features = check_samples(model, X)
        data = model._columns.as_given(X, features)
    else:
        features = check_samples(booster, model.encoder_.transform(X))
        frame = X.to_pandas() if hasattr(X, "to_pandas") else X
        data = frame.rename(columns=str)[list(model.feature_names_in_)].to_numpy(object)
    names = [f"feature {i}" for i in range(data.shape[1])]
    return Explanation(
        values=booster.forest_.contributions(features, Threads(booster.n_jobs)),
        base_values=booster.forest_.expected_scores,
        data=data,
        feature_names=[*map(str, getattr(model, "feature_names_in_", names))],
        classes=[plain(label) for label in booster.classes_],
    )


def explain_decision(
    model: Any, x: ArrayLike, decision: Any = None, against: Any = None, costs: Any = None
) -> DecisionExplanation:
    """Explain why one decision has a lower expected cost than another for a sample.

    The expected cost of a decision is no sum over trees. It is followed along the straight line
    from the scores without any feature to those of the sample; a feature has the direction of
    its Shapley values there, and gets the integral of the change in this direction (the values of
    Aumann and Shapley). The contributions add up to the difference in expected cost, but for a
    numerical error, which is in the result: typically below 1e-10 times the largest cost.

    Parameters
    ----------
    model : fitted classifier
        As for `explain_scores`, with probabilities.
    x : array-like of shape (n_features,) or (1, n_features), or table with one row
        The sample.
    decision : label, default=None
        The decision to explain; that of minimum expected cost by default.
    against : label, default=None
        The decision to compare it with; the cheapest other one by default.
    costs : array-like of shape (K, K), mapping or data frame, default=None
        ``C[truth, prediction]``: rows are the truth. Those of the model by default.

    Returns
    -------
    DecisionExplanation
        The contribution of each feature to the expected cost of `against` minus that of `decision`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier([[0, 1, 1], [1, 0, 1], [1, 10, 0]], n_estimators=20).fit(X, y)
    >>> explanation = explain_decision(model, X[70], against=2)
    >>> explanation.headline
    '1 is cheaper than 2 here'
    >>> parts = explanation.base + explanation.contributions.sum()
    >>> costs = model.predict_proba(X[70:71]) @ model.cost_matrix_
    >>> bool(abs(costs[0, 2] - costs[0, 1] - parts) < 1e-10)
    True
    """
    booster = _booster_of(model)
    if not hasattr(booster, "predict_proba"):
        raise TypeError(f"a {type(booster).__name__} has no predict_proba: use explain_scores.")
    scores = explain_scores(model, _as_row(x))
    classes = scores.classes
    matrix = given_costs(getattr(model, "cost_matrix_", None) if costs is None else costs, classes)
    # The scores of one tree are probabilities.
    posterior = getattr(booster, "_posterior", np.asarray)
    start = scores.base_values
    end = start + scores.values[0].sum(axis=0)
    base_probabilities, probabilities = posterior(np.stack([start, end]))
    expected = expected_costs(probabilities[np.newaxis], matrix)[0]
    chosen = int(expected.argmin()) if decision is None else _position(decision, classes)
    others = np.where(np.arange(len(classes)) == chosen, np.inf, expected)
    other = int(others.argmin()) if against is None else _position(against, classes)
    if other == chosen:
        raise ValueError(f"decision and against are both {against!r}: give another one.")
    differences = matrix[:, other] - matrix[:, chosen]
    slopes = _mean_slopes(lambda points: posterior(points) @ differences, start, end)
    return DecisionExplanation(
        decision=classes[chosen],
        against=classes[other],
        contributions=scores.values[0] @ slopes,
        base=float(base_probabilities @ differences),
        total=float(probabilities @ differences),
        expected_costs=expected,
        probabilities=probabilities,
        base_probabilities=base_probabilities,
        data=scores.data[0],
        feature_names=scores.feature_names,
        classes=classes,
    )


def feature_importances(model: Any, kind: Literal["gain", "count"] = "gain") -> FloatArray:
    """Return the importance of each feature in the splits of a model.

    Parameters
    ----------
    model : fitted classifier
        As for `explain_scores`.
    kind : {"gain", "count"}, default="gain"
        "gain" weighs splits by what they gain, as ``feature_importances_`` does; "count" counts
        them. See `Explanation.importances` for the scores of given samples.

    Returns
    -------
    ndarray of shape (n_features,)
        Importances, summing to one; all zero if there is no split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BAdaCostClassifier(n_estimators=20, max_depth=2).fit(X, y)
    >>> feature_importances(model, "count").round(2)
    array([0. , 0. , 0.8, 0.2])
    """
    return _booster_of(model).forest_.feature_importances(kind)


def _booster_of(model: Any) -> Any:
    """Return the part of a model that has trees; a TypeError where there is none."""
    check_is_fitted(model)
    booster = model.estimator_ if hasattr(model, "encoder_") else model
    if not hasattr(booster, "forest_"):
        wanted = "give a booster with its built-in tree, which may be its estimator_"
        raise TypeError(f"a {type(booster).__name__} has no trees of badacost: {wanted}.")
    return booster


def _as_row(x: Any) -> Any:
    """Return one sample as a table or array with one row."""
    if np.ndim(x) == 1:
        return x.to_frame().T if hasattr(x, "to_frame") else np.reshape(x, (1, -1))
    if np.shape(x)[:1] != (1,):
        raise ValueError(f"x must be one sample; got shape {np.shape(x)}: give one row, X[:1].")
    return x


def _position(label: Any, classes: list[Any]) -> int:
    """Return where a label is among the classes."""
    if plain(label) not in classes:
        raise ValueError(f"{label!r} is not a class of the model: take one of {listed(classes)}.")
    return classes.index(plain(label))


def _mean_slopes(
    value: Callable[[FloatArray], FloatArray], start: FloatArray, end: FloatArray
) -> FloatArray:
    """Return the means of the derivatives of a function of scores along a line, shape (K,).

    The poles of a softmax have a distance of pi from the line, in units of the differences of the
    scores: with 16 nodes on each panel of length 4 the quadrature is exact to the last digits.
    """
    n_panels = max(1, min(ceil(np.ptp(end - start) / _PANEL), _MAX_PANELS))
    nodes, masses = np.polynomial.legendre.leggauss(_N_NODES)
    places = (np.arange(n_panels)[:, np.newaxis] + (nodes + 1.0) / 2.0).ravel() / n_panels
    line = start + places[:, np.newaxis] * (end - start)
    weights = np.tile(masses, n_panels) / (2.0 * n_panels)
    slopes = np.empty(len(start))
    for k, shift in enumerate(_STEP * np.eye(len(start))):
        near = value(line + shift) - value(line - shift)
        far = value(line + 2.0 * shift) - value(line - 2.0 * shift)
        slopes[k] = weights @ (8.0 * near - far) / (12.0 * _STEP)
    return slopes


def _value(value: Any) -> str:
    """Return a value of a feature as it is shown."""
    if is_missing(value):
        return "missing"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
