"""Pages and their pieces: well formed and escaped, whatever text goes into them."""

from __future__ import annotations

from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from PIL import Image

from badacost import html_page
from tests.pages import HOSTILE, Page

matplotlib.use("Agg")

FRAME = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "p", "nav", "a", "main",
    "section", "h2", "footer",
}  # fmt: skip


def pieces() -> Any:
    return html_page.environment().get_template("pieces.html").module


def page_of(title: str, section: str) -> Page:
    whole = html_page.page(title, title, {title: section, "empty": ""})
    return Page(whole.encode("utf-8", errors="replace").decode("utf-8"))


@settings(max_examples=60)
@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_on_a_page(title, cells) -> None:
    page = page_of(title, html_page.table([cells], cells) + html_page.paragraph(title))
    assert page.tags.count("section") == 1, "empty sections are left out"
    assert set(page.tags) <= FRAME | {"div", "table", "thead", "tbody", "tr", "th", "td"}


@settings(max_examples=50)
@given(st.lists(st.text(), min_size=1, max_size=4), st.floats())
def test_any_text_in_pieces(labels, value) -> None:
    section = html_page.table([labels] * 2, labels, max_length=5, shares=[value] * 2)
    section += pieces().key_figures([(label, label, label) for label in labels], labels[:1])
    template = html_page.environment().from_string(
        "{% import 'pieces.html' as p %}{% call(i, j) p.heat_table(labels) %}"
        "{{ p.shaded(value, labels[i], labels[j], labels[i]) }}{% endcall %}"
        "{% call p.bars(labels[0]) %}{{ p.bar(labels[0], '', value, value, value) }}{% endcall %}"
    )
    page = page_of("title", "".join([section, template.render(labels=labels, value=value)]))
    assert page.tags.count("tr") == 1 + 2 + 2 + len(labels)
    assert page.tags.count("td") == 2 * (len(labels) + 1) + len(labels) ** 2
    assert set(page.tags) <= FRAME | {
        "div", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "small", "i", "b",
        "figure", "figcaption", "span",
    }  # fmt: skip


@given(st.text(), st.integers(4, 30))
def test_shortened(text, max_length) -> None:
    short = html_page.shorten(text, max_length)
    assert len(short) <= max_length
    assert "\n" not in short
    if len(text) <= max_length and text == " ".join(text.split()):
        assert short == text


def test_long_text_is_in_a_tooltip() -> None:
    text = "a name & more" * 5
    table = html_page.table([[text, "short"]], max_length=10)
    assert f'title="{text.replace("&", "&amp;")}"' in table
    assert table.count("title=") == 1


def test_numbers_and_bars() -> None:
    table = html_page.table([["a", "1"], ["b", "2"]], ["name", "count"], shares=[0.5, float("nan")])
    assert table.count('<td class="number"') == 2
    assert "width: 50.0%" in table
    assert "width: 0.0%" in table


def test_pictures_are_inside_and_not_escaped() -> None:
    figure, _ = plt.subplots()
    parts = [
        html_page.plot(figure, HOSTILE),
        html_page.picture(Image.new("RGB", (4, 3)), HOSTILE),
        html_page.picture(Image.new("L", (2, 2)), HOSTILE, photo=False),
    ]
    assert not plt.fignum_exists(figure.number)
    page = page_of("title", html_page.tiles(parts, columns=2))
    assert [picture.format for picture in page.pictures] == ["PNG", "JPEG", "PNG"]
    assert page.texts.count(HOSTILE) == 3


def test_what_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'lead' is undefined"):
        html_page.environment().get_template("page.html").render(title="", sections=[])


def test_pages_are_light_dark_and_printed() -> None:
    text = html_page.page("title", "lead", {})
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\"" in text
