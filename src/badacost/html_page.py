"""A page of HTML in one file: its pictures are inside, nothing on it runs, nothing is fetched.

Functions return pieces of HTML in which all text that they were given is escaped.
"""

from __future__ import annotations

import base64
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from badacost.plotting.canvas import import_pyplot

if TYPE_CHECKING:
    from PIL.Image import Image

_DPI = 110
_QUALITY = 88
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5c6670; --paper: #fff; --line: #d7dce1;
  --mark: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #9aa4ae; --paper: #15181b; --line: #363c42; --mark: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 3rem 1.25rem 5rem; max-width: 58rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.55 system-ui, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { margin: 0 0 .4rem; font-size: 2rem; line-height: 1.2; }
h2 { margin: 3rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line);
  font-size: 1.3rem; }
p { max-width: 44rem; margin: .6rem 0; }
nav a { margin-right: 1.1rem; white-space: nowrap; }
a { color: var(--mark); text-decoration-thickness: 1px; text-underline-offset: .2em; }
.lead, figcaption, footer { color: var(--soft); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 0 .3rem 1.4rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th:first-child, td:first-child { padding-left: 0; }
th { font-weight: 600; vertical-align: bottom; }
.number { text-align: right; }
figure { margin: 1.2rem 0 1.8rem; }
figure img { display: block; max-width: 100%; height: auto; border-radius: 4px; background: #fff; }
figcaption { margin-top: .45rem; max-width: 44rem; font-size: .9rem; }
.tiles { display: grid; gap: 1rem 1.2rem; margin: 1.2rem 0; }
.tiles figure { margin: 0; }
.tiles img { width: 100%; }
footer { margin-top: 4rem; font-size: .85rem; }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --mark: #000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  figure, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; } }
"""


def page(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title, lead : str
        Headline, and a sentence below it.
    sections : mapping of str to str
        HTML of the sections by their headlines; those without any are left out.

    Returns
    -------
    str
        HTML.
    """
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
<footer>Written by badacost {escape(metadata.version("badacost"))}.</footer>
</body>
</html>
"""


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page; whoever opens it meanwhile, or after a crash, finds a whole one.

    Parameters
    ----------
    path : str or path-like
        Where to; an existing file is replaced once the new one is complete.
    text : str
        The page.
    """
    path = Path(path)
    temporary = path.with_name(f".{uuid4().hex}.tmp")
    try:
        # Lone surrogates, as some file names hold, have no place in UTF-8.
        temporary.write_text(text, encoding="utf-8", errors="replace")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>\n"


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), *, n_text: int = 1) -> str:
    """Return a table.

    Parameters
    ----------
    rows : iterable of sequences of str
        The cells.
    head : sequence of str, optional
        Names of the columns.
    n_text : int, default=1
        Number of columns of text; those after them are numbers.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from badacost.html_page import table
    >>> print(table([["<b>", "7"]]))
    <div class="scroll"><table>
    <tbody>
    <tr><td>&lt;b&gt;</td><td class="number">7</td></tr>
    </tbody></table></div>
    <BLANKLINE>
    """

    def line(cells: Sequence[str], tag: str) -> str:
        marks = ("" if column < n_text else ' class="number"' for column in range(len(cells)))
        texts = (f"<{tag}{m}>{escape(c)}</{tag}>" for c, m in zip(cells, marks, strict=True))
        return f"<tr>{''.join(texts)}</tr>"

    top = f"<thead>\n{line(head, 'th')}\n</thead>\n" if head else ""
    body = "\n".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table>\n{top}<tbody>\n{body}\n</tbody></table></div>\n'


def plot(figure: Any, caption: str) -> str:
    """Return a matplotlib figure, which is closed, and a line below it."""
    buffer = BytesIO()
    with warnings.catch_warnings():
        # Names may be in a script that the font does not have.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(buffer, format="png", dpi=_DPI, facecolor="white")
    import_pyplot().close(figure)
    return _figure("png", buffer, caption)


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
    style = f"grid-template-columns: repeat({columns}, minmax(0, 1fr))"
    return f'<div class="tiles" style="{style}">\n{"".join(figures)}</div>\n'


def _figure(kind: str, buffer: BytesIO, caption: str) -> str:
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return (
        f'<figure><img src="data:image/{kind};base64,{data}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>\n"
    )
