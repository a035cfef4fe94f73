"""Annotations of PASCAL VOC: an XML file for each picture.

VOC counts pixels from 1 and names the first and the last pixel of a box: 1 is taken from xmin and
ymin. The parser builds no more than elements with text: a file that declares a document type or an
entity, which could make it open other files or grow without limit, is refused.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import Pictures, Place, label_files, read_text
from badacost.detection.boxes import MAX_COORDINATE
from badacost.io.budget import Budget

# Of an element and of what it describes, an opening and a closing tag; of an attribute.
_BYTES_OF_ELEMENT = {b"<": 200, b"=": 250}
_MAX_DEPTH = 32
_MAX_TEXT = 1000
POSES = {"right": 0.0, "frontal": 90.0, "front": 90.0, "left": 180.0, "rear": -90.0}


def read_voc(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    max_memory: int | str | None = None,
) -> list[AnnotatedImage]:
    """Read annotations of PASCAL VOC.

    Parameters
    ----------
    path : str or path-like
        An XML file; a folder of them; or a folder with ``Annotations`` inside.
    images : str or path-like, optional
        Folder of the pictures. By default ``JPEGImages`` or ``images`` beside the folder of
        annotations, or that folder itself; pictures that are not there are left out.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        Objects marked as difficult are ignored. A pose of Right, Frontal, Left or Rear is taken for
        the direction that the object faces in the image, as an angle of 0, 90, 180 or -90 degrees.
        Truncation and occlusion are 1 where they are marked.

    Raises
    ------
    AnnotationError
        Where a file is not as expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import read_voc
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "dog.xml")
    ...     size = path.write_text(
    ...         "<annotation><filename>dog.jpg</filename><object><name>dog</name><pose>Left</pose>"
    ...         "<bndbox><xmin>1</xmin><ymin>11</ymin><xmax>50</xmax><ymax>40</ymax></bndbox>"
    ...         "</object></annotation>"
    ...     )
    ...     (picture,) = read_voc(path)
    >>> picture.categories, picture.boxes, picture.angles
    (('dog',), array([[ 0., 10., 50., 40.]]), array([-180.]))
    """
    path = Path(path)
    if (path / "Annotations").is_dir():
        path = path / "Annotations"
    folder = path if path.is_dir() else path.parent
    root = folder.absolute().parent
    pictures = Pictures.given_or_beside(images, [root / "JPEGImages", root / "images", folder])
    files = label_files(path, ".xml") if path.is_dir() else [path]
    budget = Budget.of(max_memory)
    return [_read_file(file, pictures, budget) for file in files]


@dataclass
class _Element:
    """An element of an XML file, with the line that it begins in."""

    tag: str
    line: int
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def child(self, tag: str) -> _Element | None:
        """Return the first element of this name inside."""
        return next((child for child in self.children if child.tag == tag), None)

    def text_of(self, tag: str) -> str:
        """Return the text of the first element of this name inside, "" if there is none."""
        child = self.child(tag)
        return child.text.strip() if child else ""


class _Builder:
    """Builds elements from what the parser of XML reports."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.root = _Element("", 1)
        self.open = [self.root]
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.refuse_declaration
        self.parser.EntityDeclHandler = self.refuse_declaration
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.add_text

    def here(self) -> Place:
        return self.place.at(f"line {self.parser.CurrentLineNumber}")

    def refuse_declaration(self, *_: object) -> None:
        self.here().refuse("a document type is declared, which annotations must not: remove it")

    def start(self, tag: str, attributes: object) -> None:
        if len(self.open) > _MAX_DEPTH:
            self.here().refuse("elements are nested too deep for an annotation of VOC")
        element = _Element(tag, self.parser.CurrentLineNumber)
        self.open[-1].children.append(element)
        self.open.append(element)

    def end(self, tag: str) -> None:
        self.open.pop()

    def add_text(self, text: str) -> None:
        if len(self.open[-1].text) < _MAX_TEXT:
            self.open[-1].text += text


def _parsed(path: Path, budget: Budget) -> _Element:
    """Return the element ``annotation`` of a file."""
    place = Place(path)
    text = read_text(path, budget, _BYTES_OF_ELEMENT)
    builder = _Builder(place)
    try:
        builder.parser.Parse(text, True)
    except expat.ExpatError as error:
        place.at(f"line {error.lineno}").refuse(
            f"this is not XML: {expat.errors.messages[error.code]}"
        )
    annotation = builder.root.child("annotation")
    if annotation is None:
        place.refuse("expected an element <annotation>")
    return annotation


def _read_file(path: Path, pictures: Pictures, budget: Budget) -> AnnotatedImage:
    """Read the annotation of one picture."""
    place = Place(path)
    annotation = _parsed(path, budget)
    # Tools that rename pictures leave the element behind; the name of the file is then right.
    name = annotation.text_of("filename")
    picture = pictures.find(path.stem, place)
    if name and (picture is None or picture.name != name):
        picture = pictures.find(name, place) or picture
    rows = Rows()
    for element in annotation.children:
        if element.tag == "object":
            _add_object(rows, element, place)
    return rows.annotated(picture, path.stem, _size(annotation, place))


def _add_object(rows: Rows, element: _Element, place: Place) -> None:
    """Add the object that an element describes."""
    here = place.at(f"line {element.line}")
    bounds = element.child("bndbox")
    if bounds is None:
        here.refuse("this object has no <bndbox>")
    edges = []
    for tag in ("xmin", "ymin", "xmax", "ymax"):
        edges.append(here.number(bounds.text_of(tag), f"<{tag}>"))
    x1, y1, x2, y2 = edges
    rows.add(
        here.box(x1 - 1.0, y1 - 1.0, x2, y2),
        category=here.category(element.text_of("name")),
        angle=POSES.get(element.text_of("pose").lower(), math.nan),
        truncation=_flag(element, "truncated", here),
        occlusion=_flag(element, "occluded", here),
        ignore=_flag(element, "difficult", here) == 1.0,
    )


def _flag(element: _Element, tag: str, place: Place) -> float:
    """Return a flag as a number, NaN where it is not given."""
    text = element.text_of(tag)
    if text in ("", "Unspecified"):
        return math.nan
    if text not in ("0", "1"):
        place.refuse(f"<{tag}> must be 0 or 1; got {text!r:.80}")
    return float(text)


def _size(annotation: _Element, place: Place) -> tuple[int, int] | None:
    """Return height and width, where they are given; some tools leave zeros."""
    size = annotation.child("size")
    if size is None:
        return None
    here = place.at(f"line {size.line}")
    height, width = (here.integer(size.text_of(tag), f"<{tag}>") for tag in ("height", "width"))
    if height > MAX_COORDINATE or width > MAX_COORDINATE:
        here.refuse("no picture is of this size")
    return (height, width) if height and width else None
