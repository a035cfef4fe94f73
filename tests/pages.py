"""Pages of HTML taken apart, for the tests of whatever writes them."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from io import BytesIO

from PIL import Image

HOSTILE = "</td><script>alert('1')</script> \" $x^ & 自"
VOID = {"meta", "img"}


class Page(HTMLParser):
    """A page taken apart, which must be well formed and ask for nothing from outside."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.headings: list[str] = []
        self.rows: list[list[str]] = []
        self.pictures: list[Image.Image] = []
        self.feed(text)
        self.close()
        assert not self.open
        style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        assert len(style) == 1
        assert "url(" not in style[0]
        assert "@import" not in style[0]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            assert not name.startswith("on")
            if name == "href":
                assert value.startswith("#")
            if name == "src":
                kind, data = re.fullmatch(r"data:image/(png|jpeg);base64,(.*)", value).groups()
                picture = Image.open(BytesIO(base64.b64decode(data, validate=True)))
                assert picture.format == kind.upper()
                picture.load()
                self.pictures.append(picture)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)
        self.texts.append(data)

    def row(self, name: str) -> list[str]:
        (row,) = (row for row in self.rows if row[0] == name)
        return row[1:]
