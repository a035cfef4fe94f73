"""Warnings name the file of the caller."""

from __future__ import annotations

import pytest

from badacost import BAdaCostClassifier
from badacost._utils.user_warnings import warn_user


def test_the_line_of_the_caller() -> None:
    with pytest.warns(RuntimeWarning, match="look") as caught:
        warn_user("look", RuntimeWarning)
    assert caught[0].filename == __file__


def test_deep_in_a_fit() -> None:
    with pytest.warns(UserWarning, match="order") as caught:
        BAdaCostClassifier([[0, 1], [5, 0]], n_estimators=1).fit([[0], [1]] * 9, ["b", "a"] * 9)
    assert [entry.filename for entry in caught] == [__file__] * len(caught)
