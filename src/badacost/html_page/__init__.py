"""A page of HTML in one file: its pictures are inside, nothing on it runs, nothing is fetched.

Functions fill the macros of ``templates/pieces.html``, in which all text is escaped.
"""

from __future__ import annotations

import base64
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from badacost import __version__
from badacost.io.atomic_file import replaced_file
from badacost.plotting.base import import_pyplot

if TYPE_CHECKING:
    from jinja2 import Environment
    from PIL.Image import Image

_DPI = 110
_QUALITY = 88


@cache
def environment(package: str = __name__) -> Environment:
    """Return the templates of a package, with those of this one for what they share."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('pages need jinja2: type pip install "badacost[report]".') from error
    places = dict.fromkeys([package, __name__])
    templates = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(place) for place in places]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    templates.filters |= {"shorten": shorten, "within": _within}
    templates.globals["version"] = __version__
    return templates


def page(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """Return a whole page; `sections` maps headlines to HTML, and empty ones are left out."""
    from markupsafe import Markup

    bodies = [(name, Markup(body)) for name, body in sections.items()]
    return environment().get_template("page.html").render(title=title, lead=lead, sections=bodies)


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page; an existing file is replaced once the new one is complete."""
    with replaced_file(path) as temporary:
        # Lone surrogates, as some file names hold, have no place in UTF-8.
        temporary.write_text(text, encoding="utf-8", errors="replace")


def framed(text: str, title: str, *, height: int, may: str = "") -> str:
    """Return a page in a frame of another one, in which it may do what is named, else nothing."""
    return (
        f'<iframe srcdoc="{escape(text)}" sandbox="{may}" title="{escape(title)}" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )


def check_text(name: str, text: object) -> None:
    """Refuse what is no text; `name` is that of the parameter."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str; got {type(text).__name__}.")


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return _piece("paragraph", text)


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


def table(
    rows: Iterable[Sequence[str]],
    head: Sequence[str] = (),
    *,
    n_text: int = 1,
    max_length: int | None = None,
    shares: Sequence[float] | None = None,
) -> str:
    """Return a table; `shares`, from 0 to 1, are drawn as bars in a column of their own.

    The first `n_text` columns are text, those after them numbers. Of a text longer than
    `max_length`, the rest is in a tooltip.
    """
    return _piece("table", rows, head, n_text, max_length, shares)


def plot(figure: Any, caption: str) -> str:
    """Return a matplotlib figure, which is closed, and a caption."""
    buffer = BytesIO()
    with warnings.catch_warnings():  # of names in a script that the font does not have
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
    return _piece("tiles", figures, columns)


def _figure(kind: str, buffer: BytesIO, caption: str) -> str:
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return _piece("figure", f"data:image/{kind};base64,{data}", caption)


def _piece(macro: str, *arguments: Any) -> str:
    """Fill a macro; the result is known to be HTML, and not escaped where it goes into another."""
    pieces = environment().get_template("pieces.html").module
    return getattr(pieces, macro)(*arguments)


def _within(share: float) -> float:
    """Bring a number into 0 to 1; NaN is zero."""
    return min(max(0.0, share), 1.0)
