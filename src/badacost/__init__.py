"""Multi-class boosting with costs: decisions whose mistakes have different prices.

Public names are imported when they are first used: the command line, which completes words at the
press of a key, does not wait for scikit-learn and numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from badacost import costs, metrics
    from badacost.boosting import (
        AdaBoostM1Classifier,
        AdaC2M1Classifier,
        BAdaCostClassifier,
        CostBoostClassifier,
        CostGeneralizedAdaBoostClassifier,
        CostSensitiveTreeClassifier,
        CSAdaBoostClassifier,
        ImportedForestClassifier,
        LpCSBClassifier,
        PIBoostClassifier,
        SAMMEClassifier,
        WangMultiBoostClassifier,
    )
    from badacost.budget import set_max_memory
    from badacost.costs import ABSTAIN
    from badacost.decision import MinimumCostClassifier
    from badacost.model_file import ModelFileError

__version__ = "0.1.0"
__all__ = [
    "ABSTAIN",
    "AdaBoostM1Classifier",
    "AdaC2M1Classifier",
    "BAdaCostClassifier",
    "CSAdaBoostClassifier",
    "CostBoostClassifier",
    "CostGeneralizedAdaBoostClassifier",
    "CostSensitiveTreeClassifier",
    "ImportedForestClassifier",
    "LpCSBClassifier",
    "MinimumCostClassifier",
    "ModelFileError",
    "PIBoostClassifier",
    "SAMMEClassifier",
    "WangMultiBoostClassifier",
    "costs",
    "load",
    "metrics",
    "set_max_memory",
]
_MODULES = ("costs", "metrics")
_HOMES = {
    "ABSTAIN": "costs",
    "MinimumCostClassifier": "decision",
    "ModelFileError": "model_file",
    "set_max_memory": "budget",
}  # all others are in boosting
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
    from badacost.persistence import load_model

    return load_model(path, _import_model, max_memory=max_memory)


def _import_model(name: str) -> None:
    """Import the class of a saved model, if one has this name."""
    if name in _HOMES_OF_OTHER_MODELS:
        import_module(f"{__name__}.{_HOMES_OF_OTHER_MODELS[name]}")
    elif name in __all__:
        getattr(import_module(__name__), name)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'boosting')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
