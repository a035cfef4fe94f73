"""Base of the classifiers that boost by reweighting, and probabilities in closed form."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from badacost._utils.arrays import FloatArray, Labels, Samples
from badacost.boosting.reweighting import (
    CostedClassifier,
    Criterion,
    EstimatorLearner,
    Reweighting,
    Rule,
    ShardedReweighting,
)
from badacost.boosting.stagewise import Stage
from badacost.classifiers.base import StagewiseClassifier
from badacost.classifiers.training_data import SampleSet, Task, growth_of


@dataclass(eq=False, repr=False, kw_only=True)
class ReweightingClassifier(StagewiseClassifier):
    """Base of the classifiers that are a rule; any classifier may be the weak learner."""

    criterion: Criterion = "gini"
    estimator: Any = None

    _fits_on_gpu: ClassVar[bool] = True

    _unsaved: ClassVar[tuple[str, ...]] = ("estimator", "callbacks")

    @abstractmethod
    def _rule(self) -> Rule:
        """The rule, from `regret_matrix_` and the parameters."""

    def _initial_weights(self, y: Labels, weight: FloatArray) -> FloatArray:
        """Weights before the first round, from those of the user."""
        return weight

    def _own_margins(self, task: Task) -> FloatArray | None:
        """Margins (n_samples, K) of samples that have costs of their own."""
        return None

    def _derive(self) -> None:
        self._boosting_rule = self._rule()

    @property
    def _table(self) -> FloatArray:
        return self._boosting_rule.margins.T

    def _check_parameters(self) -> None:
        super()._check_parameters()
        weak = self.estimator
        if weak is None:
            return
        is_object = hasattr(weak, "__sklearn_tags__") and not isinstance(weak, type)
        if not (is_object and is_classifier(weak)):
            raise TypeError(
                f"estimator must be a classifier, as LogisticRegression(), or None; got {weak!r}."
            )
        if self.device != "cpu":
            raise ValueError('estimator is fitted on the CPU: leave it out, or set device="cpu".')
        if not isinstance(self.categorical_features, str | None):
            raise ValueError(
                "categorical_features is for the built-in tree: encode categories in a pipeline."
            )

    @property
    def _categorical_features(self) -> Any:
        return None if self.estimator is not None else self.categorical_features

    def _check_same_task(self, classes: NDArray[Any]) -> None:
        super()._check_same_task(classes)
        if (self.estimator is None) != hasattr(self, "forest_"):
            raise ValueError("With warm_start=True the kind of weak learner must stay.")

    def _start(self, task: Task) -> Reweighting:
        settings: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "subsample": self.subsample,
            "n_refinements": getattr(self, "n_refinements", 0),
            "own_margins": self._own_margins(task),
            "seed": self._seed,
            "random": self.subsample < 1.0 or self.estimator is not None,
            "threads": task.threads,
        }
        weight = self._initial_weights(task.y, task.weight)
        learner: Any = None
        if self.estimator is not None:
            learner = EstimatorLearner(self.estimator, task.samples.X, task.y)
        elif task.is_local(self):
            learner = task.tree_learner(self, len(self.classes_))
            settings["random"] |= learner.grower.growth.n_drawn is not None
        if learner is not None:
            return Reweighting(learner, task.y, weight, self._boosting_rule, **settings)
        if settings["own_margins"] is not None:
            raise ValueError('sample_cost is for device="cpu": leave one of them out.')
        data = task.sharded(self)
        growth = growth_of(self, data.mapper)
        settings["random"] |= growth.n_drawn is not None
        return ShardedReweighting(
            data, growth, self.criterion, weight, self._boosting_rule, **settings
        )

    def _models(self) -> tuple[list[Any], FloatArray]:
        if hasattr(self, "forest_"):
            return super()._models()
        return list(self._costed), self._table

    def _keep(self, stages: list[Stage], samples: SampleSet) -> None:
        if self.estimator is None:
            super()._keep(stages, samples)
            self.__dict__.pop("estimators_", None)
        else:
            self.__dict__.pop("forest_", None)
            self._costed: list[CostedClassifier] = [stage.models[0] for stage in stages]
            self.estimators_ = [model.estimator for model in self._costed]

    def _scores(self, X: Samples, scores: FloatArray | None = None, **trees: int) -> FloatArray:
        if hasattr(self, "forest_"):
            return super()._scores(X, scores, **trees)
        chosen = slice(trees.get("first_tree"), trees.get("last_tree"))
        total = np.zeros((len(X), len(self.classes_))) if scores is None else scores
        for step, model in zip(self.estimator_weights_[chosen], self._costed[chosen], strict=True):
            total += step * self._table[model.labels(X)]
        return total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.estimator is None
        return tags
