"""Multi-class boosting with costs: decisions whose mistakes have different costs.

Public names are imported when they are first used: the command line, which completes words at the
press of a key, does not wait for scikit-learn and numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from badacost import costs, family, metrics
    from badacost.classifiers import (
        BAdaCostClassifier,
        CostBoostClassifier,
        CostSensitiveTreeClassifier,
        ImportedForestClassifier,
        MinimumCostClassifier,
    )
    from badacost.costs import ABSTAIN
    from badacost.io.budget import set_max_memory
    from badacost.io.model_file import ModelFileError

__version__ = "0.1.0"
__all__ = [
    "ABSTAIN",
    "BAdaCostClassifier",
    "CostBoostClassifier",
    "CostSensitiveTreeClassifier",
    "ImportedForestClassifier",
    "MinimumCostClassifier",
    "ModelFileError",
    "costs",
    "family",
    "load",
    "metrics",
    "set_max_memory",
]
_MODULES = ("costs", "family", "metrics")
_FAMILY = (
    "AdaBoostM1Classifier", "AdaC2M1Classifier", "CSAdaBoostClassifier", "LpCSBClassifier",
    "CostGeneralizedAdaBoostClassifier", "PIBoostClassifier", "SAMMEClassifier",
    "WangMultiBoostClassifier",
)  # fmt: skip  # found here as well, but not listed
_HOMES = {name: "classifiers" for name in __all__ if name.endswith("Classifier")}
_HOMES |= dict.fromkeys(_FAMILY, "family")
_HOMES |= {"ABSTAIN": "costs", "ModelFileError": "io.model_file", "set_max_memory": "io.budget"}
_HOMES_OF_OTHER_MODELS = {"Detector": "detection.detector", "TableClassifier": "tabular.classifier"}


def load(path: "str | os.PathLike[str]", *, max_memory: int | str | None = None) -> Any:
    """Load a model that was saved by `badacost`.

    Parameters
    ----------
    path : str or path-like
        The model file. It may come from anyone: nothing in it is executed.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `set_max_memory`.

    Returns
    -------
    estimator
        The fitted model, of the class that was saved.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        Where the file is not a model of this library, or not one that it wrote.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import badacost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], ["ham", "ham", "spam", "spam"]
    >>> model = badacost.BAdaCostClassifier({"ham": {"spam": 5}, "spam": {"ham": 1}}).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "mail.badacost"))
    ...     again = badacost.load(Path(folder, "mail.badacost"))
    >>> again.predict([[0.0], [5.0]])
    array(['ham', 'spam'], dtype='<U4')
    """
    from badacost.io.model_file import load_model

    return load_model(path, _import_model, max_memory=max_memory)


def _import_model(name: str) -> None:
    """Import the class of a saved model, if one has this name."""
    if name in _HOMES_OF_OTHER_MODELS:
        import_module(f"{__name__}.{_HOMES_OF_OTHER_MODELS[name]}")
    elif name in _HOMES:
        __getattr__(name)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {*_FAMILY})
