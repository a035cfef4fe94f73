"""Decisions of minimum expected cost on top of any classifier with probabilities.

The decision is only as good as the probabilities: they may be calibrated first, on out-of-fold
predictions.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from badacost._utils.arrays import FloatArray, Positions
from badacost._utils.categorical_columns import check_column_names
from badacost._utils.validation import (
    category_order,
    check_choice,
    check_has_weight,
    check_labels,
    check_n_jobs,
    check_number,
    check_sample_weight,
    check_two_classes,
    distinct_classes,
    positions_in,
    refuse_batches,
)
from badacost.classifiers.calibration import (
    CALIBRATIONS,
    Calibration,
    TemperatureScaling,
    fit_calibrator,
)
from badacost.classifiers.saving import SavedClassifier
from badacost.costs.matrix import given_costs, set_costs, warn_if_label_order_is_implicit
from badacost.io.model_file import ModelFile, model_to_file, refuse, saved_model, with_part

_FOLDS = 5
_REMEDY = 'set cv to a smaller number, or calibration to "none"'


@saved_model
@dataclass(eq=False, repr=False)
class MinimumCostClassifier(MetaEstimatorMixin, SavedClassifier):
    """Minimum expected cost under the probabilities of another classifier.

    Predicts the argmin over j of ``sum_i P(i | x) C(i, j)``. Costs do not take part in the
    training of the classifier, so they may be changed without it: `decide` takes other costs.

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
        data. Costs are not negative. None is a cost of one for each mistake.
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
    regret_matrix_ : ndarray of shape (K, K)
        Costs with each diagonal entry subtracted from its row.
    n_features_in_ : int
        Number of features, if `estimator_` has this attribute.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if `estimator_` has this attribute.

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

    estimator: Any = None
    cost_matrix: Any = None
    _: KW_ONLY
    calibration: Calibration = "none"
    cv: Any = _FOLDS
    n_jobs: int | None = None
    random_state: Any = None

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
            requests them.

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
        check_column_names(X)
        X, labels = indexable(X, check_labels(y, "MinimumCostClassifier"))
        weight = check_sample_weight(sample_weight, len(labels))
        estimator, seed = self._seeded_estimator()
        _check_has_scores(estimator, self.calibration)
        known, codes = _classes(estimator, labels, weight)
        classes = known if category_order(y) is None else distinct_classes(known, y)
        costs = given_costs(self.cost_matrix, classes)
        warn_if_label_order_is_implicit(self.cost_matrix, classes, y)
        params = fit_params if sample_weight is None else fit_params | {"sample_weight": weight}
        to_fit = self._routed_to_fit(estimator, params)
        calibrator: Any = None
        if self.calibration != "none":
            if isinstance(estimator, FrozenEstimator):
                scores, rows = _scores(estimator, X), np.arange(len(labels))
            else:
                cv = self._splitter(labels[weight > 0.0], seed)
                options = {"cv": cv, "n_jobs": self.n_jobs, "params": params}
                scores, rows = _out_of_fold(estimator, X, labels, weight, **options)
            calibrator = fit_calibrator(self.calibration, known, scores, codes[rows], weight[rows])
        self.estimator_ = estimator.fit(X, labels, **to_fit)
        self.calibrator_, self.classes_ = calibrator, classes
        set_costs(self, costs)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classifier, calibrated unless `calibration` is "none".

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
            scores = self.calibrator_.predict_proba(scores)
        columns = np.asarray(getattr(self.estimator_, "classes_", np.sort(self.classes_)))
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
        """Return minus the expected costs; the class of the largest is predicted.

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
        return float(self.calibrator_.temperature_)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features."""
        return np.asarray(self.estimator_.feature_names_in_)

    _parts: ClassVar[tuple[str, ...]] = ("estimator",)
    _unsaved: ClassVar[tuple[str, ...]] = ("estimator",)

    def _to_model_file(self) -> ModelFile:
        header = self._header()
        if not isinstance(self.calibrator_, TemperatureScaling | None):
            raise TypeError(
                'a file of badacost cannot hold a calibration other than "none" and "temperature": '
                "use joblib.dump."
            )
        if not isinstance(header["parameters"]["cv"], int):
            header["parameters"]["cv"] = None
        header["frozen"] = isinstance(self.estimator_, FrozenEstimator)
        header["temperature"] = None if self.calibrator_ is None else vars(self.calibrator_)
        inner = self.estimator_.estimator if header["frozen"] else self.estimator_
        own = ModelFile(type(self).__name__, header, {"cost_matrix": self.cost_matrix_})
        self._from_model_file(own, inner)  # parameters may have changed since the fit
        return with_part(own, "estimator", model_to_file(inner))

    @classmethod
    def _from_model_file(cls, model: ModelFile, estimator: Any) -> Self:
        # Not `clone`, which would copy the costs of each estimator inside another again and again.
        inner, given = estimator, type(estimator)(**estimator.get_params(deep=False))
        if model.header["frozen"]:
            inner = given = FrozenEstimator(estimator)
        rebuilt: Self = cls._of_header(model, estimator=given)
        if not np.array_equal(np.sort(rebuilt.classes_), np.sort(estimator.classes_)):
            refuse("its classes are not those of its estimator")
        _check_has_scores(estimator, "none")
        check_choice("calibration", rebuilt.calibration, CALIBRATIONS)
        check_number("cv", rebuilt.cv, Integral, low=2, none=True)
        check_n_jobs(rebuilt.n_jobs)
        scaling = model.header["temperature"]
        rebuilt.calibrator_ = None if scaling is None else TemperatureScaling(**scaling)
        rebuilt.estimator_ = inner
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
        if sklearn.get_config()["enable_metadata_routing"]:
            default.set_fit_request(sample_weight=True)
        return default

    def _seeded_estimator(self) -> tuple[Any, int | None]:
        """Return a clone of the classifier, with seeds where it has none, and the seed."""
        estimator = clone(self._estimator())
        if self.random_state is None:
            return estimator, None
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        seedless = {
            name: seed
            for name, value in estimator.get_params().items()
            if value is None and name.split("__")[-1] == "random_state"
        }
        estimator.set_params(**seedless)
        return estimator, seed

    def _routed_to_fit(self, estimator: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Return those of the parameters of `fit` that are for the `fit` of the estimator."""
        if sklearn.get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).estimator.fit
        elif "sample_weight" in params and not (
            isinstance(estimator, FrozenEstimator) or has_fit_parameter(estimator, "sample_weight")
        ):
            raise TypeError(
                f"{type(estimator).__name__} takes no sample_weight: give an estimator that does, "
                "or enable metadata routing if a part of it does."
            )
        return params

    def _splitter(self, y: NDArray[Any], seed: int | None) -> Any:
        """Return the folds of `cv`; a number makes stratified ones, shuffled if there is a seed."""
        n_folds = _FOLDS if self.cv is None else self.cv
        if not isinstance(n_folds, Integral):
            return self.cv
        check_number("cv", n_folds, Integral, low=2)
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < int(n_folds):
            rare, n_rare = classes.tolist()[counts.argmin()], counts.min()
            raise ValueError(f"class {rare!r} has {n_rare} samples for {n_folds} folds: {_REMEDY}.")
        from sklearn.model_selection import StratifiedKFold  # slow to import

        return StratifiedKFold(int(n_folds), shuffle=seed is not None, random_state=seed)


def _out_of_fold(
    estimator: Any, X: Any, y: NDArray[Any], weight: FloatArray, **options: Any
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return out-of-fold scores of the test part of each fold, and its rows.

    `cross_val_predict` would encode the classes, which parameters of the estimator may name, and
    refuse rows that are in several test parts or in none.
    """
    from sklearn.model_selection import cross_validate  # slow to import

    options |= {"error_score": "raise", "return_estimator": True, "return_indices": True}
    fits = cross_validate(estimator, X, y, scoring=_keep_scores, **options)
    for train in fits["indices"]["train"]:
        missing = np.setdiff1d(y, y[train][weight[train] > 0.0]).tolist()
        if missing:
            raise ValueError(f"a fold of cv trains without class {missing[0]!r}: {_REMEDY}.")
    scores = [model.out_of_fold_scores_ for model in fits["estimator"]]
    return np.concatenate(scores), np.concatenate(fits["indices"]["test"])


def _keep_scores(estimator: Any, X: Any, *_: Any) -> float:
    """Keep the scores of the test part of a fold with the estimator, in the place of scoring it."""
    estimator.out_of_fold_scores_ = _scores(estimator, X)
    return 0.0


def _scores(estimator: Any, X: Any) -> FloatArray:
    """Return probabilities (n, K), or decision values (n, K or 1) where there are none."""
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64)
    values = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return values if values.ndim == 2 else values[:, np.newaxis]


def _check_has_scores(estimator: Any, calibration: Calibration) -> None:
    """Refuse a classifier that gives neither probabilities nor what they can be made from."""
    from_values = calibration in ("sigmoid", "isotonic") and hasattr(estimator, "decision_function")
    if not (from_values or hasattr(estimator, "predict_proba")):
        raise TypeError(
            f"{type(estimator).__name__} has no predict_proba: give a classifier that has it, or "
            'set calibration="sigmoid", which needs a decision_function only.'
        )


def _classes(estimator: Any, y: NDArray[Any], weight: FloatArray) -> tuple[NDArray[Any], Positions]:
    """Return the classes of the estimator in the order of its scores, and the positions of y."""
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
        return np.asarray(estimator.classes_), positions_in(estimator.classes_, y)
    found, positions = np.unique(y, return_inverse=True)
    check_two_classes(found)
    check_has_weight(found, y[weight > 0.0])
    return found, positions
