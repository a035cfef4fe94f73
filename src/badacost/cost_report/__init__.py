"""What the decisions of a classifier cost: figures, a summary, and a page to show, keep and print.

Costs are ``C[truth, prediction]``: rows are the truth.
"""

from badacost.cost_report.explorer import CostExplorer
from badacost.cost_report.report import CostReport

__all__ = ["CostExplorer", "CostReport"]
