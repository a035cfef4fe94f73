"""Tables with a column for each property: reading them, and classifiers that take them as they are.

pandas and pyarrow, ``pip install "badacost[tables]"``, are needed once there is a table to read.
"""

from badacost.tabular.classifier import TableClassifier
from badacost.tabular.contest import Trial, contenders, fit_cheapest
from badacost.tabular.encoder import TableEncoder
from badacost.tabular.evaluation import TableEvaluation, evaluate_table
from badacost.tabular.files import read_table, write_table
from badacost.tabular.summary import CostSummary
from badacost.tabular.training import best_depth, fit_and_try

__all__ = [
    "CostSummary",
    "TableClassifier",
    "TableEncoder",
    "TableEvaluation",
    "Trial",
    "best_depth",
    "contenders",
    "evaluate_table",
    "fit_and_try",
    "fit_cheapest",
    "read_table",
    "write_table",
]
