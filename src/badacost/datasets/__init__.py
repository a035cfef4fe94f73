"""Data sets to try things out with, as tables; those of UCI are read from files or fetched."""

from badacost.datasets.catalogue import DATASETS, Dataset, find_dataset
from badacost.datasets.uci import UCI_NAMES, load_uci

__all__ = ["DATASETS", "UCI_NAMES", "Dataset", "find_dataset", "load_uci"]
