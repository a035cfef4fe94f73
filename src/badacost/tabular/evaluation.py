"""What the decisions of a fitted classifier cost on the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import confusion_matrix

from badacost._utils.arrays import FloatArray
from badacost.costs import labelled_costs
from badacost.metrics import cost_confusion_matrix
from badacost.tabular.frames import check_columns
from badacost.tabular.summary import CostSummary
from badacost.tabular.target import known_labels

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular.classifier import TableClassifier

_MOST_PROBABLE = "the most likely class of the same model"


@dataclass(frozen=True, eq=False)
class TableEvaluation:
    """What decisions cost on a table, in all and by class.

    Attributes
    ----------
    summary : CostSummary
        Average and total cost, beside other ways to decide.
    classes : ndarray of shape (K,)
        The classes, in the order of the model.
    counts : ndarray of shape (K, K)
        How often each class, in rows, was taken for each other, in columns; sums of weights if
        rows have weights.
    costs : ndarray of shape (K, K)
        What that cost.

    Examples
    --------
    >>> from badacost.tabular import TableEvaluation, evaluate_table
    >>> import pandas as pd
    >>> from badacost.tabular import TableClassifier
    >>> frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": ["a", "a", "b", "b"] * 5})
    >>> found = evaluate_table(TableClassifier().fit(frame, "y"), frame)
    >>> found.classes.tolist(), found.counts.tolist()
    (['a', 'b'], [[10, 0], [0, 10]])
    """

    summary: CostSummary
    classes: NDArray[Any]
    counts: NDArray[Any]
    costs: FloatArray

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(label) for label in self.classes.tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Return all figures in a form that JSON holds.

        Returns
        -------
        dict
            Those of the summary, and matrices as lists.
        """
        return self.summary.to_dict() | {
            "classes": self.names,
            "cost_of_class": dict(zip(self.names, self.costs.sum(axis=1).tolist(), strict=True)),
            "counts": self.counts.tolist(),
            "costs": self.costs.tolist(),
        }


def evaluate_table(
    model: TableClassifier,
    frame: pd.DataFrame,
    target: str | None = None,
    *,
    costs: Any = None,
    sample_weight: ArrayLike | None = None,
) -> TableEvaluation:
    """Decide on the rows of a table, and return what that costs.

    Parameters
    ----------
    model : TableClassifier
        A fitted model.
    frame : pandas.DataFrame
        The rows, with their true classes.
    target : str, optional
        Column of the classes; that of the fit by default.
    costs : array-like of shape (K, K), nested mapping or data frame, optional
        Costs other than those of the fit: ``C[truth, prediction]``, rows are the truth.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    TableEvaluation
        The figures. Where the model has probabilities, its most likely class is one of the other
        ways to decide.

    Raises
    ------
    ValueError
        Where the column of the classes is not known or not there, or has classes that the model
        does not know.

    Examples
    --------
    >>> import pandas as pd
    >>> from badacost.tabular import TableClassifier, evaluate_table
    >>> frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": ["a", "a", "b", "b"] * 5})
    >>> model = TableClassifier(cost_matrix={"a": {"b": 5}, "b": {"a": 1}}).fit(frame, "y")
    >>> evaluate_table(model, frame).summary.average_cost
    0.0
    """
    target = target or model.target_name_
    if target is None:
        raise ValueError("the model does not know the column of the classes: give target.")
    check_columns(frame, [target])
    truth = known_labels(frame[target], model.classes_, target)
    costs = labelled_costs(model.cost_matrix_, model.classes_) if costs is None else costs
    predicted = model.predict(frame)
    options: dict[str, Any] = {"sample_weight": sample_weight}
    return TableEvaluation(
        CostSummary.of(
            truth,
            predicted,
            costs,
            classes=model.classes_,
            rivals=_most_probable(model, frame),
            **options,
        ),
        model.classes_,
        confusion_matrix(truth, predicted, labels=model.classes_, **options),
        cost_confusion_matrix(truth, predicted, costs, labels=model.classes_, **options),
    )


def _most_probable(model: TableClassifier, frame: pd.DataFrame) -> dict[str, Any]:
    """Decisions for the most probable class, where the model has probabilities."""
    if not hasattr(model, "predict_proba"):
        return {}
    try:
        probabilities = model.predict_proba(frame)
    except ValueError:  # costs that do not link all classes
        return {}
    return {_MOST_PROBABLE: np.asarray(model.classes_)[probabilities.argmax(axis=1)]}
