"""Cost matrices ``C[truth, prediction]``: builders, checks and minimum-cost decisions."""

from badacost.costs.builders import (
    background_costs,
    circular_view_costs,
    costs_from_class_weights,
    costs_from_confusion,
    ordinal_costs,
    zero_one_costs,
)
from badacost.costs.matrix import (
    as_cost_matrix,
    cost_star,
    is_irreducible,
    minimum_cost_decision,
    scale_costs,
    stationary_distribution,
)

__all__ = [
    "as_cost_matrix",
    "background_costs",
    "circular_view_costs",
    "cost_star",
    "costs_from_class_weights",
    "costs_from_confusion",
    "is_irreducible",
    "minimum_cost_decision",
    "ordinal_costs",
    "scale_costs",
    "stationary_distribution",
    "zero_one_costs",
]
