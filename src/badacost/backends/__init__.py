"""Backends: shards of a training set, in this process or on a GPU."""
