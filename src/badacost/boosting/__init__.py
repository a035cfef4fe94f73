"""Boosting algorithms, one file each, on one shared stage-wise loop."""
