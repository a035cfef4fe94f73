"""Tables with a column for each property: reading them, and classifiers that take them as they are.

pandas and pyarrow, ``pip install "badacost[tables]"``, are needed once there is a table to read.
"""

from badacost.tabular.classifier import TableClassifier
from badacost.tabular.encoder import TableEncoder
from badacost.tabular.evaluation import TableEvaluation, evaluate_table
from badacost.tabular.files import read_table, write_table
from badacost.tabular.models import ALGORITHMS, contenders, new_model
from badacost.tabular.summary import CostSummary
from badacost.tabular.training import best_depth, fit_and_try

__all__ = [
    "ALGORITHMS",
    "CostSummary",
    "TableClassifier",
    "TableEncoder",
    "TableEvaluation",
    "best_depth",
    "contenders",
    "evaluate_table",
    "fit_and_try",
    "new_model",
    "read_table",
    "write_table",
]
