"""Decisions of minimum expected cost on top of any classifier with probabilities.

The decision is only as good as the probabilities: they may be calibrated first, on predictions
for samples that the classifier has not seen.
"""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from badacost.accuracy import AccuracyMixin
from badacost.arrays import FloatArray
from badacost.calibration import CALIBRATIONS, Calibration, TemperatureScaling, fit_calibrator
from badacost.costs import labelled_costs
from badacost.costs.decisions import CostDecisionMixin
from badacost.costs.matrix import charged_costs, plain, warn_of_alphabet
from badacost.model_file import ModelFile, refuse
from badacost.persistence import (
    check_memory_of_costs,
    labels_from_json,
    labels_to_json,
    model_to_file,
    save_model,
    saved_model,
    with_part,
)
from badacost.validation import (
    category_order,
    check_choice,
    check_labels,
    check_number,
    check_sample_weight,
    distinct_classes,
    positions_in,
    refuse_batches,
    remedies,
)

_FOLDS = 5


@saved_model
class MinimumCostClassifier(CostDecisionMixin, AccuracyMixin, MetaEstimatorMixin, BaseEstimator):
    """Minimum expected cost under the probabilities of another classifier.

    Predicts the argmin over j of ``sum_i P(i | x) C(i, j)``. Costs do not take part in the
    training of the classifier, so they may be changed without it: `decide` takes other prices.

    Parameters
    ----------
    estimator : classifier with `predict_proba` or None, default=None
        Cloned and fitted. One in a `sklearn.frozen.FrozenEstimator` is used as it is, and the data
        given to `fit` serve the calibration only. With "sigmoid" or "isotonic" a
        `decision_function` will do. None is ``LogisticRegression(max_iter=1000)``: quick, and its
        probabilities rarely need calibration.
    cost_matrix : array-like of shape (K, K), mapping, data frame or None, default=None
        ``C[truth, prediction]``: rows are the truth. An array is in the order of ``classes_``; a
        nested mapping ``{truth: {prediction: cost}}`` or a data frame (index: truth, columns:
        prediction) may be in any order and may have labels that are missing from the training
        data. Costs are not negative. None is a price of one for each mistake.
    calibration : {"none", "sigmoid", "isotonic", "temperature"}, default="none"
        How probabilities are corrected. "temperature" raises them to the power 1/T: it suits
        models that are over-confident alike for all classes. "sigmoid" fits two numbers
        for each class. "isotonic" fits a rising step function for each class and wants
        thousands of samples.
    cv : int, splitter, iterable of (train, test) or None, default=5
        Folds of the cross-validation whose predictions calibrate; the model that predicts is
        fitted once to all data. None is 5.
    n_jobs : int or None, default=None
        Folds to fit at the same time. None is one, -1 is one for each core.
    random_state : int, RandomState instance or None, default=None
        Seed for the parts of `estimator` whose own `random_state` is None, and for shuffling the
        folds if `cv` is a number. With None, folds follow the order of the samples.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted to all data.
    calibrator_ : object or None
        What corrects its probabilities.
    temperature_ : float
        T, with calibration="temperature"; above one if the classifier was over-confident.
    classes_ : ndarray of shape (K,)
        The classes.
    cost_matrix_ : ndarray of shape (K, K)
        Costs in the order of ``classes_``, diagonal included.
    n_features_in_ : int
        Number of features, if `estimator_` knows it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `estimator_` knows them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from badacost import MinimumCostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = MinimumCostClassifier(GaussianNB(), costs, calibration="temperature").fit(X, y)
    >>> model.predict_costs(X[70:71]).round(2)
    array([[1.  , 7.25, 0.27]])
    >>> model.predict(X[70:71])
    array([2])
    >>> costlier = [[0, 1, 1], [1, 0, 9], [1, 10, 0]]  # other costs for the same classifier
    >>> model.decide(X[70:71], costlier)
    array([0])
    """

    def __init__(
        self,
        estimator: Any = None,
        cost_matrix: Any = None,
        *,
        calibration: Calibration = "none",
        cv: Any = _FOLDS,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.cost_matrix = cost_matrix
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **fit_params: Any,
    ) -> MinimumCostClassifier:
        """Fit the classifier, and what corrects its probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, as `estimator` takes them.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights, for the estimator and the calibration.
        **fit_params : dict
            Passed to the `fit` of the estimator; where metadata routing is enabled, to whatever
            asks for them.

        Returns
        -------
        self
            The fitted classifier.
        """
        check_choice("calibration", self.calibration, CALIBRATIONS)
        refuse_batches(
            X,
            "fit the estimator to them, and then MinimumCostClassifier(FrozenEstimator(estimator), "
            "costs) to arrays of other samples",
        )
        if y is None:
            raise ValueError(
                "MinimumCostClassifier requires y to be passed, but the target y is None."
            )
        X, labels = indexable(X, check_labels(y))
        weight = check_sample_weight(sample_weight, len(labels))
        estimator, seed = self._seeded_estimator()
        _check_has_scores(estimator, self.calibration)
        known = _classes(estimator, labels, weight)
        classes = known if category_order(y) is None else distinct_classes(known, y)
        costs = charged_costs(self.cost_matrix, classes)
        warn_of_alphabet(self.cost_matrix, classes, y)
        to_fit, to_split = self._route(
            estimator, None if sample_weight is None else weight, fit_params
        )
        calibrator = None
        if self.calibration != "none":
            if _is_frozen(estimator):
                folds = [(np.arange(len(labels)), np.arange(len(labels)))]
            else:
                folds = _folds(self.cv, X, labels, weight, seed, to_split)
            jobs = [delayed(_fold_scores)(estimator, X, labels, to_fit, *fold) for fold in folds]
            scores = np.concatenate(Parallel(n_jobs=self.n_jobs)(jobs))
            rows = np.concatenate([test for _, test in folds])
            calibrator = fit_calibrator(self.calibration, known, scores, labels[rows], weight[rows])
        self.estimator_ = clone(estimator).fit(X, labels, **to_fit)
        self.calibrator_, self.classes_, self.cost_matrix_ = calibrator, classes, costs
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classifier, calibrated if so asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = _scores(self.estimator_, X)
        if self.calibrator_ is not None:
            scores = np.asarray(self.calibrator_.predict_proba(scores), dtype=np.float64)
        # Calibrators of scikit-learn have an order of their own.
        own = getattr(self.estimator_, "classes_", self.classes_)
        columns = np.asarray(getattr(self.calibrator_, "classes_", own))
        if np.array_equal(columns, self.classes_):
            return scores
        return scores[:, positions_in(columns, self.classes_)]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes of minimum expected cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        return np.asarray(self.decide(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Return minus the expected costs: the largest wins.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, K), or (n_samples,) for two classes
            Minus `predict_costs`; for two classes, what the second saves against the first.
        """
        costs = self.predict_costs(X)
        return costs[:, 0] - costs[:, 1] if len(self.classes_) == 2 else -costs

    @property
    def temperature_(self) -> float:
        """The temperature T of calibration="temperature"."""
        scaling: Any = self.calibrator_
        return float(scaling.temperature_)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features."""
        return np.asarray(self.estimator_.feature_names_in_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `badacost.load` reads.

        The file holds arrays and JSON, no pickle. It can hold a classifier of badacost, frozen or
        not, without calibration or with a temperature; `joblib.dump` takes all others. A splitter,
        and a random state that is not a number, are left out.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced once the new one is complete.

        Raises
        ------
        NotFittedError
            Where the model is not fitted.
        TypeError, ValueError
            Where a file could not hold the model.
        """
        save_model(self, path)

    _parts: ClassVar[tuple[str, ...]] = ("estimator",)

    def _to_model_file(self) -> ModelFile:
        check_is_fitted(self)
        if not isinstance(self.calibrator_, TemperatureScaling | None):
            raise TypeError(
                'a file of badacost cannot hold a calibration other than "none" and "temperature": '
                "use joblib.dump."
            )
        cv, seed = plain(self.cv), plain(self.random_state)
        frozen = _is_frozen(self.estimator_)
        header = {
            "parameters": {
                "calibration": plain(self.calibration),
                "cv": cv if isinstance(cv, int) else None,
                "n_jobs": plain(self.n_jobs),
                "random_state": seed if isinstance(seed, int) else None,
            },
            "classes": labels_to_json(self.classes_),
            "costs_given": self.cost_matrix is not None,
            "frozen": frozen,
            "temperature": None if self.calibrator_ is None else vars(self.calibrator_),
        }
        inner = self.estimator_.estimator if frozen else self.estimator_
        own = ModelFile(type(self).__name__, header, {"cost_matrix": self.cost_matrix_})
        self._from_model_file(own, inner)  # parameters may have changed since the fit
        return with_part(own, "estimator", model_to_file(inner))

    @classmethod
    def _from_model_file(cls, model: ModelFile, estimator: Any) -> Self:
        header, classes = model.header, labels_from_json(model.header["classes"], model.budget)
        if not np.array_equal(np.sort(classes), np.sort(estimator.classes_)):
            refuse("its classes are not those of its estimator")
        check_memory_of_costs(model, len(classes))
        _check_has_scores(estimator, "none")
        # Not `clone`, which would copy the costs of each estimator inside another again and again.
        inner, given = estimator, type(estimator)(**estimator.get_params(deep=False))
        if header["frozen"]:
            inner = given = FrozenEstimator(estimator)
        rebuilt = cls(given, **header["parameters"])
        check_choice("calibration", rebuilt.calibration, CALIBRATIONS)
        check_number("cv", rebuilt.cv, Integral, low=2, none=True)
        check_number("n_jobs", rebuilt.n_jobs, Integral, none=True)
        check_random_state(rebuilt.random_state)
        costs = charged_costs(model.arrays["cost_matrix"], classes)
        if header["costs_given"]:
            rebuilt.cost_matrix = labelled_costs(costs, classes)
        rebuilt.estimator_, rebuilt.classes_, rebuilt.cost_matrix_ = inner, classes, costs
        scaling = header["temperature"]
        rebuilt.calibrator_ = None if scaling is None else TemperatureScaling.of(**scaling)
        return rebuilt

    def get_metadata_routing(self) -> Any:
        """Return where metadata go: to the estimator's `fit` and the splitter's `split`.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The routing.
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router.add(estimator=self._estimator(), method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._estimator()).input_tags
        return tags

    def _estimator(self) -> Any:
        """Return the classifier that `fit` clones."""
        if self.estimator is not None:
            return self.estimator
        from sklearn.linear_model import LogisticRegression

        default = LogisticRegression(max_iter=1000)
        return default.set_fit_request(sample_weight=True) if _routing_enabled() else default

    def _seeded_estimator(self) -> tuple[Any, int | None]:
        """Return a clone of the classifier, with seeds where it has none, and the seed."""
        estimator = clone(self._estimator())
        if self.random_state is None:
            return estimator, None
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if not _is_frozen(estimator):
            parameters = estimator.get_params().items()
            seedless = [name for name, value in parameters if value is None and _is_seed(name)]
            estimator.set_params(**dict.fromkeys(seedless, seed))
        return estimator, seed

    def _route(
        self, estimator: Any, sample_weight: ArrayLike | None, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what goes to the `fit` of the estimator and to the `split` of the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return routed.estimator.fit, routed.splitter.split
        if sample_weight is None or _is_frozen(estimator):
            return fit_params, {}
        if not has_fit_parameter(estimator, "sample_weight"):
            raise TypeError(
                f"{type(estimator).__name__} takes no sample_weight: give an estimator that does, "
                "or enable metadata routing if a part of it does."
            )
        return {**fit_params, "sample_weight": sample_weight}, {}


def _folds(
    cv: Any,
    X: Any,
    y: NDArray[Any],
    weight: FloatArray,
    seed: int | None,
    to_split: dict[str, Any],
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return (train, test) pairs, with samples of every class in each training part."""
    from sklearn.model_selection import StratifiedKFold, check_cv

    cv = _FOLDS if cv is None else cv
    has_weight = weight > 0.0
    classes, counts = np.unique(y[has_weight], return_counts=True)
    remedy = 'set cv to a smaller number, or calibration to "none"'
    if isinstance(cv, Integral):
        check_number("cv", cv, Integral, low=2)
        if counts.min() < int(cv):
            rare = classes[[counts.argmin()]].tolist()[0]
            raise ValueError(f"class {rare!r} has {counts.min()} samples for {cv} folds: {remedy}.")
        cv = StratifiedKFold(int(cv), shuffle=seed is not None, random_state=seed)
    splits = check_cv(cv, y, classifier=True).split(X, y, **to_split)
    row = np.arange(len(y))  # given splits may be lists or masks
    folds = [(row[train], row[test]) for train, test in splits]
    for train, _ in folds:
        missing = np.setdiff1d(classes, y[train][has_weight[train]]).tolist()
        if missing:
            raise ValueError(f"a fold of cv trains without class {missing[0]!r}: {remedy}.")
    return folds


def _fold_scores(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    fit_params: dict[str, Any],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> FloatArray:
    """Return scores of the test part from a clone fitted to the training part."""
    model = clone(estimator)
    pairwise = get_tags(model).input_tags.pairwise
    X_train, X_test = (
        X[np.ix_(part, train)] if pairwise else _rows(X, part) for part in (train, test)
    )
    own_params = {
        name: _rows(value, train) if _has_rows(value, len(y)) else value
        for name, value in fit_params.items()
    }
    model.fit(X_train, y[train], **own_params)
    return _scores(model, X_test)


def _rows(data: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of an array, sparse matrix, data frame or list."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    return [data[row] for row in rows] if isinstance(data, list | tuple) else data[rows]


def _has_rows(value: Any, n_samples: int) -> bool:
    """Tell whether a parameter of `fit` has an entry for each sample."""
    if isinstance(value, list | tuple):
        return len(value) == n_samples
    return tuple(getattr(value, "shape", ()))[:1] == (n_samples,)


def _scores(estimator: Any, X: Any) -> FloatArray:
    """Return probabilities (n, K), or decision values (n, K or 1) where there are none."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)
    values = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return values if values.ndim == 2 else values[:, np.newaxis]


def _check_has_scores(estimator: Any, calibration: Calibration) -> None:
    """Refuse a classifier that gives neither probabilities nor what they can be made from."""
    if hasattr(estimator, "predict_proba"):
        return
    if not hasattr(estimator, "decision_function"):
        remedy = "give a classifier that has it"
    elif calibration not in ("sigmoid", "isotonic"):
        remedy = 'set calibration="sigmoid", which needs a decision_function only'
    else:
        return
    raise TypeError(f"{type(estimator).__name__} has no predict_proba: {remedy}.")


def _classes(estimator: Any, y: NDArray[Any], weight: FloatArray) -> NDArray[Any]:
    """Return the classes that will be predicted."""
    with remedies(None, y):
        found = np.unique(y)
    if _is_frozen(estimator):
        check_is_fitted(estimator)
        known = np.asarray(estimator.classes_)
        unknown = np.setdiff1d(found, known).tolist()
        if unknown:
            raise ValueError(
                f"y has classes {unknown} that the frozen estimator does not know: leave them out."
            )
        return known
    if len(found) < 2:
        raise ValueError(f"y must have at least 2 classes; it has {len(found)} class only.")
    weightless = np.setdiff1d(found, y[weight > 0.0]).tolist()
    if weightless:
        raise ValueError(f"class {weightless[0]!r} has no sample of positive weight: leave it out.")
    return found


def _is_frozen(estimator: Any) -> bool:
    """Tell whether an estimator is fitted already and to be left so."""
    return isinstance(estimator, FrozenEstimator)


def _is_seed(name: str) -> bool:
    """Tell whether a parameter, of a part perhaps, is a seed."""
    return name.split("__")[-1] == "random_state"


def _routing_enabled() -> bool:
    """Tell whether scikit-learn's metadata routing is enabled."""
    return bool(sklearn.get_config()["enable_metadata_routing"])
