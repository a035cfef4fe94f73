"""How a model is called, on the page and in tables of a terminal."""

from __future__ import annotations

from typing import Any

_SUFFIX = "Classifier"


def model_name(model: Any) -> str:
    """Return "the model" and in parentheses its kind and its decision rule, if it has a choice.

    Of a `TableClassifier` or a `MinimumCostClassifier`, the classifier inside is named.

    >>> from badacost import BAdaCostClassifier, SAMMEClassifier
    >>> from badacost.tabular import TableClassifier
    >>> model_name(BAdaCostClassifier(decision="bayes"))
    'the model (BAdaCost, bayes rule)'
    >>> model_name(TableClassifier(SAMMEClassifier(), decision="bayes"))
    'the model (SAMME, bayes rule)'
    """
    from badacost.classifiers.minimum_cost import MinimumCostClassifier
    from badacost.tabular import TableClassifier

    inner, rule = model, getattr(model, "decision", None)
    if isinstance(model, TableClassifier):
        inner = getattr(model, "estimator_", model.estimator)
        if rule == "own":
            rule = getattr(inner, "decision", None)
    if isinstance(inner, MinimumCostClassifier):
        inner, rule = getattr(inner, "estimator_", inner.estimator), "bayes"
    kind = kind_name(inner)
    return f"the model ({kind}, {rule} rule)" if rule else f"the model ({kind})"


def kind_name(classifier: Any) -> str:
    """Return the name of an algorithm; of imported trees, that of the library that grew them.

    >>> from badacost import CostBoostClassifier
    >>> kind_name(CostBoostClassifier())
    'CostBoost'
    """
    name: str = getattr(classifier, "source_", type(classifier).__name__.removesuffix(_SUFFIX))
    return name


def rule_of(model: Any) -> str:
    """Return how a model for tables decides: "bayes" is minimum expected cost.

    >>> from badacost.tabular import TableClassifier, new_model
    >>> rule_of(new_model("samme", {"a": {"b": 1}, "b": {"a": 1}}))
    'bayes'
    """
    inner = getattr(model, "estimator_", model.estimator)
    if model.decision == "bayes" or hasattr(inner, "log_prior_"):
        return "bayes"
    return str(getattr(inner, "decision", "margin"))
