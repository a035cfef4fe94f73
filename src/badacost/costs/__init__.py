"""Cost matrices ``C[truth, prediction]``: builders, files, explanations and decisions."""

from importlib import import_module
from typing import Any

from badacost.costs.builders import (
    costs_from_class_weights,
    costs_from_confusion,
    costs_from_pairs,
    costs_from_prices,
    costs_from_ratios,
    is_template,
    labelled_costs,
    ordinal_costs,
    template_costs,
    zero_one_costs,
)
from badacost.costs.decisions import ABSTAIN, minimum_cost_decision
from badacost.costs.explanation import explain_costs
from badacost.costs.matrix import (
    as_cost_matrix,
    cost_star,
    is_irreducible,
    scale_costs,
    stationary_distribution,
)
from badacost.costs.table_file import read_costs, write_costs

__all__ = [
    "ABSTAIN",
    "as_cost_matrix",
    "background_costs",
    "circular_view_costs",
    "cost_star",
    "costs_from_class_weights",
    "costs_from_confusion",
    "costs_from_pairs",
    "costs_from_prices",
    "costs_from_ratios",
    "explain_costs",
    "is_irreducible",
    "is_template",
    "labelled_costs",
    "minimum_cost_decision",
    "ordinal_costs",
    "read_costs",
    "scale_costs",
    "stationary_distribution",
    "template_costs",
    "write_costs",
    "zero_one_costs",
]


def __getattr__(name: str) -> Any:
    """Builders of detectors, which are imported when they are needed."""
    if name in ("background_costs", "circular_view_costs"):
        return getattr(import_module("badacost.detection.view_costs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
