"""Multi-class boosting with costs: decisions whose mistakes have different prices.

Public names are imported when they are first used: the command line, which completes words at the
press of a key, does not wait for scikit-learn and numba.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from badacost import costs, metrics
    from badacost.boosting import (
        AdaBoostM1Classifier,
        AdaC2M1Classifier,
        BAdaCostClassifier,
        CostGeneralizedAdaBoostClassifier,
        CSAdaBoostClassifier,
        LpCSBClassifier,
        PIBoostClassifier,
        SAMMEClassifier,
        WangMultiBoostClassifier,
    )
    from badacost.decision import MinimumCostClassifier
    from badacost.model_file import ModelFileError
    from badacost.persistence import load
    from badacost.tree.classifier import CostSensitiveTreeClassifier

__version__ = metadata.version("badacost")
__all__ = [
    "AdaBoostM1Classifier",
    "AdaC2M1Classifier",
    "BAdaCostClassifier",
    "CSAdaBoostClassifier",
    "CostGeneralizedAdaBoostClassifier",
    "CostSensitiveTreeClassifier",
    "LpCSBClassifier",
    "MinimumCostClassifier",
    "ModelFileError",
    "PIBoostClassifier",
    "SAMMEClassifier",
    "WangMultiBoostClassifier",
    "costs",
    "load",
    "metrics",
]
_MODULES = ("costs", "metrics")
_HOMES = {
    "CostSensitiveTreeClassifier": "tree.classifier",
    "MinimumCostClassifier": "decision",
    "ModelFileError": "model_file",
    "load": "persistence",
}  # all others are in boosting


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
