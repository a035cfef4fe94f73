"""Data sets of the paper's experiments, read from local folders or fetched from public servers."""

from badacost.datasets.uci import UCI_NAMES, load_uci

__all__ = ["UCI_NAMES", "load_uci"]
