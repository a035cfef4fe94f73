"""Cost matrices ``C[truth, prediction]``: builders, files, explanations and decisions."""

from badacost.costs.builders import (
    background_costs,
    circular_view_costs,
    costs_from_class_weights,
    costs_from_confusion,
    labelled_costs,
    ordinal_costs,
    zero_one_costs,
)
from badacost.costs.decisions import ABSTAIN
from badacost.costs.explanation import explain_costs
from badacost.costs.matrix import (
    as_cost_matrix,
    cost_star,
    is_irreducible,
    minimum_cost_decision,
    scale_costs,
    stationary_distribution,
)
from badacost.costs.prices import costs_from_prices, costs_from_ratios
from badacost.costs.table_file import read_costs, write_costs
from badacost.costs.template import is_template, template_costs

__all__ = [
    "ABSTAIN",
    "as_cost_matrix",
    "background_costs",
    "circular_view_costs",
    "cost_star",
    "costs_from_class_weights",
    "costs_from_confusion",
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
