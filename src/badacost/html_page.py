"""A page of HTML in one file: its pictures are inside, nothing on it runs, nothing is fetched.

Functions return pieces of HTML in which all text that they were given is escaped.
"""

from __future__ import annotations

import base64
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from io import BytesIO
from itertools import repeat
from typing import TYPE_CHECKING, Any

from badacost import __version__
from badacost.atomic_file import replaced_file
from badacost.plotting.canvas import import_pyplot

if TYPE_CHECKING:
    from PIL.Image import Image

_DOUBTFUL = '<div class="doubtful">'
_DPI = 110
_QUALITY = 88
_FULL_SHADE = (0xE8, 0x7A, 0x2C)
_MAX_ACROSS = 70  # characters of labels side by side
_MAX_SPACED_CLASSES = 12
_STYLE = """
:root { color-scheme: light; --ink: #1c2024; --soft: #5c6670; --paper: #fff; --line: #d7dce1;
  --mark: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 3rem 1.25rem 5rem; max-width: 58rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.55 system-ui, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { margin: 0 0 .4rem; font-size: 2rem; line-height: 1.2; }
h2 { margin: 3rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line);
  font-size: 1.3rem; }
p { max-width: 44rem; margin: .6rem 0; }
nav a { display: inline-block; margin-right: 1.1rem; }
a { color: var(--mark); text-decoration-thickness: 1px; text-underline-offset: .2em; }
.lead, figcaption, footer { color: var(--soft); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 0 .3rem 1.4rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
th { font-weight: 600; vertical-align: bottom; }
.number { text-align: right; }
td.number { white-space: nowrap; }
[title] { cursor: help; }
.keys { display: grid; grid-template-columns: repeat(auto-fit, minmax(11.5rem, 1fr)); gap: .9rem;
  margin: 1.2rem 0; padding: 0; }
.keys div { padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 6px; }
.keys dt { color: var(--soft); font-size: .85rem; }
.keys dd { margin: .1rem 0 0; font-size: 1.6rem; font-weight: 600; line-height: 1.25; }
.keys .doubtful dd { color: var(--soft); font-weight: 400; }
.keys small { display: block; color: var(--soft); font-size: .85rem; font-weight: 400; }
.bar { min-width: 7rem; vertical-align: middle; }
.bar i { display: block; height: .7rem; background: var(--mark); }
.heat td { min-width: 1.9rem; padding: .2rem .35rem; border: 1px solid #fff; text-align: center; }
.heat th { padding: .2rem .5rem .2rem 0; border: 0; font-weight: 400; vertical-align: middle;
  white-space: nowrap; }
.heat thead th { padding: .2rem .3rem; text-align: center; vertical-align: bottom; }
.heat thead .upright { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left;
  vertical-align: top; }
.heat .axis { color: var(--soft); }
.heat tr .axis:first-child { padding-left: 0; text-align: left; }
.heat.dense { font-size: .72rem; line-height: 1.3; }
.heat.dense td { min-width: 1.5rem; padding: .1rem .15rem; }
figure { margin: 1.2rem 0 1.8rem; }
figure img { display: block; max-width: 100%; height: auto; border-radius: 4px; background: #fff; }
figcaption { margin-top: .45rem; max-width: 44rem; font-size: .9rem; }
.tiles { display: grid; gap: 1rem 1.2rem; margin: 1.2rem 0; }
.tiles figure { margin: 0; }
.tiles img { width: 100%; }
footer { margin-top: 4rem; font-size: .85rem; }
@media (max-width: 36rem) {
  body { padding: 1.5rem .9rem 3rem; }
  h1 { font-size: 1.6rem; }
  .tiles { grid-template-columns:
    repeat(auto-fit, minmax(min(var(--min-width), 100%), 1fr)) !important; }
  th, td { padding-left: .9rem; }
  table:not(.heat) td:not(.number):not(.bar) { min-width: 6.5rem; } }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --mark: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .bar i, .heat td { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  figure, tr, .keys div { break-inside: avoid; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; } }
"""


def page(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """Return a whole page; `sections` maps headlines to HTML, and empty ones are left out."""
    filled = [(name, body) for name, body in sections.items() if body]
    links = " ".join(
        f'<a href="#part-{number}">{escape(name)}</a>' for number, (name, _) in enumerate(filled)
    )
    main = "\n".join(
        f'<section id="part-{number}">\n<h2>{escape(name)}</h2>\n{body}\n</section>'
        for number, (name, body) in enumerate(filled)
    )
    # The policy is a second wall: a browser refuses whatever got past the escapes.
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
<nav>{links}</nav>
</header>
<main>
{main}
</main>
<footer>Written by badacost {escape(__version__)}.</footer>
</body>
</html>
"""


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page; an existing file is replaced once the new one is complete."""
    with replaced_file(path) as temporary:
        # Lone surrogates, as some file names hold, have no place in UTF-8.
        temporary.write_text(text, encoding="utf-8", errors="replace")


def paragraph(text: str) -> str:
    """Return a paragraph; its text is escaped."""
    return f"<p>{escape(text)}</p>\n"


def shorten(text: str, max_length: int) -> str:
    """Return text on one line; where it is too long, its middle is left out.

    >>> shorten("a rather long label", 12)
    'a rather…bel'
    """
    line = " ".join(text.split())
    tail = max_length // 4
    return (
        line
        if len(line) <= max_length
        else f"{line[: max_length - 1 - tail]}…{line[len(line) - tail :]}"
    )


def key_figures(facts: Iterable[tuple[str, str, str]], *, doubtful: Collection[str] = ()) -> str:
    """Return figures to be seen first, each with its name before and a remark behind it.

    Figures that may be chance, whose names are in `doubtful`, are shown in grey.
    """
    boxes = "\n".join(
        f"{_DOUBTFUL if name in doubtful else '<div>'}<dt>{escape(name)}</dt>"
        f"<dd>{escape(figure)}<small>{escape(remark)}</small></dd></div>"
        for name, figure, remark in facts
    )
    return f'<dl class="keys">\n{boxes}\n</dl>\n'


def table(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    *,
    n_text: int = 1,
    max_length: int | None = None,
    shares: Sequence[float] | None = None,
) -> str:
    """Return a table.

    The first `n_text` columns are text, those after them numbers. Of a text longer than
    `max_length`, the rest is in a tooltip. `shares`, from 0 to 1, are drawn as bars in a column of
    their own.
    """

    def line(cells: Sequence[str], tag: str, end: str = "") -> str:
        texts = (
            _cell(tag, cell, "" if column < n_text else "number", max_length)
            for column, cell in enumerate(cells)
        )
        return f"<tr>{''.join(texts)}{end}</tr>"

    bars = repeat("") if shares is None else map(_bar, shares)
    top = f"<thead>\n{line(head, 'th', '' if shares is None else '<th></th>')}\n</thead>\n"
    body = "\n".join(line(row, "td", bar) for row, bar in zip(rows, bars, strict=False))
    return (
        f'<div class="scroll"><table>\n{top if head else ""}<tbody>\n{body}\n'
        "</tbody></table></div>\n"
    )


def heat_table(
    shades: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    labels: Sequence[str],
    *,
    remarks: Sequence[Sequence[str]] | None = None,
    max_length: int = 16,
) -> str:
    """Return a matrix of truths (rows) and answers (columns), with a colour in each cell.

    Shades are from 0 to 1; remarks are tooltips of the cells. Of a label longer than `max_length`,
    the rest is in a tooltip.
    """
    n_classes = len(labels)
    names = [shorten(label, max_length) for label in labels]
    upright = "upright" if sum(map(len, names)) > _MAX_ACROSS else ""
    top = "".join(_cell("th", label, upright, max_length) for label in labels)
    lines = []
    for i, label in enumerate(labels):
        cells = (
            f'<td style="{_shade(shades[i][j])}"{_tooltip(remarks[i][j] if remarks else "")}>'
            f"{escape(texts[i][j])}</td>"
            for j in range(n_classes)
        )
        lines.append(f"<tr>{_cell('th', label, '', max_length)}{''.join(cells)}</tr>")
    body = "\n".join(lines)
    dense = " dense" if n_classes > _MAX_SPACED_CLASSES else ""
    return (
        f'<div class="scroll"><table class="heat{dense}">\n<thead>\n'
        f'<tr><th></th><th class="axis" colspan="{n_classes}">answer</th></tr>\n'
        f'<tr><th class="axis">truth</th>{top}</tr>\n</thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
    )


@contextmanager
def missing_glyphs_ignored() -> Iterator[None]:
    """Do not warn of names in a script that the font does not have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def plot(figure: Any, caption: str, *, min_width: int | None = None) -> str:
    """Return a matplotlib figure, which is closed, and a caption.

    On a page narrower than `min_width` pixels the figure is scrolled.
    """
    buffer = BytesIO()
    with missing_glyphs_ignored():
        figure.savefig(buffer, format="png", dpi=_DPI, facecolor="white")
    import_pyplot().close(figure)
    return _figure("png", buffer, caption, min_width)


def picture(image: Image, caption: str, *, photo: bool = True) -> str:
    """Return a PIL image and a line below it; a photo loses what the eye does not see."""
    buffer = BytesIO()
    if photo:
        image.save(buffer, format="JPEG", quality=_QUALITY)
    else:
        image.save(buffer, format="PNG")
    return _figure("jpeg" if photo else "png", buffer, caption)


def tiles(figures: Iterable[str], columns: int) -> str:
    """Return figures side by side, in so many columns."""
    min_width = max(6.0, 40.0 / columns)  # rem; a narrow page has fewer columns
    grid = f"grid-template-columns: repeat({columns}, minmax(0, 1fr))"
    style = f"{grid}; --min-width: {min_width:g}rem"
    return f'<div class="tiles" style="{style}">\n{"".join(figures)}</div>\n'


def _figure(kind: str, buffer: BytesIO, caption: str, min_width: int | None = None) -> str:
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    style = f' style="min-width: {min_width}px"' if min_width else ""
    image = f'<img src="data:image/{kind};base64,{data}" alt="{escape(caption)}"{style}>'
    if min_width:
        image = f'<div class="scroll">{image}</div>'
    return f"<figure>{image}<figcaption>{escape(caption)}</figcaption></figure>\n"


def _cell(tag: str, text: str, kind: str, max_length: int | None) -> str:
    """Return a cell of a table; a text that is too long goes on in its tooltip."""
    shown = text if max_length is None else shorten(text, max_length)
    tooltip = "" if len(shown) >= len(text) else _tooltip(text)
    kind = f' class="{kind}"' if kind else ""
    return f"<{tag}{kind}{tooltip}>{escape(shown)}</{tag}>"


def _tooltip(text: str) -> str:
    return f' title="{escape(text)}"' if text else ""


def _bar(share: float) -> str:
    share = min(max(0.0, share), 1.0)  # NaN is drawn as zero
    return f'<td class="bar"><i style="width: {100.0 * share:.1f}%"></i></td>'


def _shade(strength: float) -> str:
    """Return the colour of a cell, from white to an orange on which dark text can be read."""
    strength = min(max(0.0, strength), 1.0)  # NaN is drawn as zero
    mixed = (round(255 + strength * (full - 255)) for full in _FULL_SHADE)
    return f"background: #{''.join(f'{part:02x}' for part in mixed)}"
