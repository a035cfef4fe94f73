"""Data sets to try things out with, each as a table with an example cost matrix.

Five come with scikit-learn and need no network. The others are the UCI sets of the paper's Table 1,
which `badacost.datasets.load_uci` finds on this machine or, but for one, fetches from OpenML.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost.costs import (
    costs_from_class_weights,
    costs_from_ratios,
    labelled_costs,
    ordinal_costs,
)
from badacost.datasets.uci import UCI_TABLES, UciTable, load_uci
from badacost.tabular.frames import import_pandas, suggestion

if TYPE_CHECKING:
    import pandas as pd

Costs = dict[Any, dict[Any, float]]
Table = tuple[dict[str, Any], NDArray[Any]]  # columns by name, and labels
_IN_SCIKIT_LEARN = "scikit-learn"


@dataclass(frozen=True)
class Dataset:
    """A data set that is available as a table.

    Attributes
    ----------
    name : str
        Name, also for the command line.
    n_rows, n_columns, n_classes : int
        Size of the table; the target is not counted as a column.
    target : str
        Name of the column of the classes.
    source : str
        Origin of the data.
    needs_download : bool
        Whether it is fetched from a server if its file is not on this machine.
    about : str
        Description of the data and of the example costs.

    Examples
    --------
    >>> from badacost.datasets import find_dataset
    >>> find_dataset("wine").n_classes
    3
    """

    name: str
    n_rows: int
    n_columns: int
    n_classes: int
    target: str
    source: str
    needs_download: bool
    about: str
    _columns: Callable[[], Table]
    _costs: Callable[[NDArray[Any]], Costs]

    def load(self) -> pd.DataFrame:
        """Return the table, with the target in its last column.

        Returns
        -------
        DataFrame
            The table.

        Examples
        --------
        >>> from badacost.datasets import find_dataset
        >>> find_dataset("iris").load().columns.tolist()[3:]
        ['petal width (cm)', 'species']
        """
        columns, labels = self._columns()
        return import_pandas().DataFrame(columns | {self.target: labels})

    def example_costs(self) -> Costs:
        """Return example costs ``{truth: {prediction: cost}}``; they are invented.

        Returns
        -------
        dict
            Costs: rows are the truth.

        Examples
        --------
        >>> from badacost.datasets import find_dataset
        >>> find_dataset("breast-cancer").example_costs()["malignant"]["benign"]
        20.0
        """
        return self._costs(self._columns()[1])


def find_dataset(name: str) -> Dataset:
    """Return a data set by its name.

    Parameters
    ----------
    name : str
        One of the names in `DATASETS`, in any case.

    Returns
    -------
    Dataset
        The data set.

    Examples
    --------
    >>> find_dataset("irish")
    Traceback (most recent call last):
        ...
    ValueError: there is no data set 'irish': did you mean 'iris'?
    """
    named = {dataset.name: dataset for dataset in DATASETS}
    key = name.casefold().replace("_", "-")
    if key not in named:
        raise ValueError(f"there is no data set {name!r:.80}: {suggestion(key, list(named))}")
    return named[key]


def _bundled(loader: str) -> Table:
    """Read a set of scikit-learn; numbers of classes become their names."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{loader}")()
    names = np.array([str(name) for name in bunch.target_names], dtype=object)
    return _columns(bunch), names[bunch.target]


def _graded_diabetes() -> Table:
    """Progression after one year in quartiles, from 0 to 3."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    grades = np.digitize(bunch.target, np.quantile(bunch.target, [0.25, 0.5, 0.75]))
    return _columns(bunch), grades


def _from_uci(name: str) -> Table:
    """Read a set of UCI."""
    bunch: Any = load_uci(name)
    return _columns(bunch), bunch.target.astype(object)


def _columns(bunch: Any) -> dict[str, Any]:
    """Return the features of a set by their names."""
    return dict(zip(bunch.feature_names, bunch.data.T, strict=True))


def _missed(ratios: dict[Any, float], labels: NDArray[Any]) -> Costs:
    """Costs of 1, or higher by these ratios for some mistakes."""
    return costs_from_ratios(ratios, classes=np.unique(labels))


def _graded(labels: NDArray[Any]) -> Costs:
    classes = np.unique(labels)
    return labelled_costs(ordinal_costs(len(classes), under=5.0), classes)


def _balanced(labels: NDArray[Any]) -> Costs:
    classes = np.unique(labels)
    return labelled_costs(costs_from_class_weights("balanced", y=labels).round(3), classes)


def _uci(name: str, table: UciTable) -> Dataset:
    return Dataset(
        name, table.n_rows, table.n_columns, table.n_classes, "class",
        "UCI" if table.openml else "UCI, own file", table.openml is not None,
        f"{table.title}. Mistakes on rare classes cost more.", partial(_from_uci, name), _balanced,
    )  # fmt: skip


DATASETS: tuple[Dataset, ...] = (
    Dataset(
        "iris", 150, 4, 3, "species", _IN_SCIKIT_LEARN, False,
        "Three kinds of flowers. To take virginica for versicolor costs ten times as much.",
        partial(_bundled, "iris"), partial(_missed, {("virginica", "versicolor"): 10.0}),
    ),
    Dataset(
        "wine", 178, 13, 3, "cultivar", _IN_SCIKIT_LEARN, False,
        "Wines of three growers by their chemistry. Mistakes on class_2 cost five times as much.",
        partial(_bundled, "wine"), partial(_missed, {"class_2": 5.0}),
    ),
    Dataset(
        "breast-cancer", 569, 30, 2, "diagnosis", _IN_SCIKIT_LEARN, False,
        "Cells under the microscope. A missed malignant tumour costs 20, a false alarm 1.",
        partial(_bundled, "breast_cancer"), partial(_missed, {"malignant": 20.0}),
    ),
    Dataset(
        "digits", 1797, 64, 10, "digit", _IN_SCIKIT_LEARN, False,
        "Written digits, 8 x 8 pixels. Mistakes on the eights cost twenty times as much.",
        partial(_bundled, "digits"), partial(_missed, {"8": 20.0}),
    ),
    Dataset(
        "diabetes", 442, 10, 4, "grade", _IN_SCIKIT_LEARN, False,
        "Progression after a year in four grades. A grade too low costs 5, a grade too high 1.",
        _graded_diabetes, _graded,
    ),
    *(_uci(name, table) for name, table in UCI_TABLES.items()),
)  # fmt: skip
"""Data sets that `find_dataset` knows, those that need no network first."""
