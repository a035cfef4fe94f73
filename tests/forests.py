"""Comparison of forests."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from badacost.tree.forest import Forest


def assert_same_forest(one: Forest, other: Forest) -> None:
    """Equal to the last bit, in every array and its type."""
    for item in fields(Forest):
        mine, theirs = (getattr(forest, item.name) for forest in (one, other))
        assert (mine is None) == (theirs is None), item.name
        np.testing.assert_array_equal(mine, theirs, strict=True, err_msg=item.name)
