"""What the decisions of a classifier cost, on one page: a single HTML file to show, keep and print.

Costs are ``C[truth, prediction]``: rows are the truth.
"""

from badacost.cost_report.explorer import CostExplorer
from badacost.cost_report.report import write_cost_report

__all__ = ["CostExplorer", "write_cost_report"]
