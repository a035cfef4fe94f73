"""Limits of reading a file: sizes as people write them, and errors that name the remedy."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost import set_max_memory
from badacost.io.budget import Budget, BudgetError, as_bytes, shown


@pytest.fixture
def _as_before():
    yield
    set_max_memory(None)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("1", 1),
        ("100 B", 100),
        ("1.5 kB", 1500),
        ("2 KB", 2000),
        ("4 GB", 4 * 10**9),
        ("4G", 4 * 10**9),
        (" 512 MiB ", 512 * 2**20),
        ("1TiB", 2**40),
        (7, 7),
    ],
)
def test_sizes(text, n_bytes) -> None:
    assert as_bytes(text) == n_bytes


@pytest.mark.parametrize(
    "wrong",
    ["", "GB", "-1 GB", "0", "0.5 B", "1 XB", "1e9", "1 GB 2", 0, -1, 1.5, True, None, 2**63],
)
def test_no_sizes(wrong) -> None:
    with pytest.raises(ValueError, match=r"a number of bytes or a string such as '4 GB'; got"):
        as_bytes(wrong)


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_an_error(text) -> None:
    with suppress(ValueError):
        assert 1 <= as_bytes(text) < 2**63


@given(st.integers(1, 2**62))
def test_what_is_shown_is_no_less(n_bytes) -> None:
    number, unit = shown(n_bytes).split()
    size = {"bytes": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}[unit]
    assert n_bytes <= Fraction(number) * size <= n_bytes + size // 100
    assert len(number) <= 6 or unit == "TB"


def test_the_error_names_need_limit_and_remedy() -> None:
    limit = Budget.of("1 GB")
    limit.check(10**9)
    with pytest.raises(BudgetError, match=r"^it would need 3\.9 GB, limit 1 GB: pass max_memory="):
        limit.check(3_900_000_000)


def test_a_part_that_is_known_tells_no_need() -> None:
    with pytest.raises(BudgetError, match=r"^it would need more than 1 kB, limit 1 kB: pass"):
        Budget.of("1 kB").check(1001, at_least=True)


def test_parts_are_counted_together() -> None:
    limit = Budget(1000)
    limit.take(600, "one")
    with pytest.raises(BudgetError, match=r"^two would need 1\.2 kB, limit 1 kB"):
        limit.take(600, "two")


@pytest.mark.usefixtures("_as_before")
def test_one_limit_for_all_that_name_none() -> None:
    set_max_memory("3 kB")
    assert Budget.of(None) == Budget(3000)
    assert Budget.of(5) == Budget(5)
    with pytest.raises(
        BudgetError, match="limit 3 kB: pass max_memory=, or raise it with badacost"
    ):
        Budget.of(None).check(5000)
    set_max_memory(None)
    assert Budget.of(None) == Budget(10**9)
