"""What is between cells, and which commas are decimal ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.io.csv_dialect import SEPARATORS, guess_separator, with_decimal_points


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb\n1,5\t2\n", "\t"),
        ("a,b,c;d\n1;2\n3;4\n", ";"),
        ("a;b;c,d\n1,2\n3,4\n", ","),
        ('"a;b;c",d\n"1;2",3\n', ","),
        ("\n\n a ; b\n1;2\n", ";"),
        ("a,b\n1,2\n3\n", ","),
        ("a\n1\n", ","),
        ("", ","),
    ],
)
def test_separators(text, separator) -> None:
    assert guess_separator(text) == separator


@given(st.text(st.sampled_from('a1,;\t"\n\r .'), max_size=60))
def test_any_text_has_a_separator(text) -> None:
    assert guess_separator(text) in SEPARATORS


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,5", "-,5", "2,5e-3", "7", ""], ["1.5", "-.5", "2.5e-3", "7", ""]),
        (["1,5", "x"], ["1.5", "x"]),
        (["1,5", "x, y"], ["1,5", "x, y"]),
        (["1,5", "1.5"], ["1,5", "1.5"]),
        (["1.234,5"], ["1.234,5"]),
        ([], []),
    ],
)
def test_decimal_commas(cells, expected) -> None:
    assert with_decimal_points(cells, ";") == expected
    assert with_decimal_points(cells, ",") == cells
