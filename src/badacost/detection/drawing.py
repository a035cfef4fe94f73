"""Pictures of what was found: boxes, views and headings on an image, and sheets of such images."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.validation import check_number
from badacost.detection.boxes import Detections
from badacost.detection.images import import_pil, read_image

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

Colour = tuple[int, int, int]

_INK: Colour = (20, 22, 26)
_PAPER: Colour = (255, 255, 255)
_MIN_FONT_SIZE = 8
_MAX_NAME_LENGTH = 40
_SMOOTHNESS = 4  # shapes are drawn this much larger, then reduced
# Tip, barbs and shaft of an arrow of length 1 to the right, around its centre.
_ARROW = np.array(
    [[0.5, 0.0], [0.1, -0.3], [0.1, -0.11], [-0.5, -0.11], [-0.5, 0.11], [0.1, 0.11], [0.1, 0.3]]
)
# From the colour space Oklab to cubic roots of cone responses, and from those cubed to linear RGB.
_LAB_TO_ROOTS = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_CONES_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def draw(
    image: str | os.PathLike[str] | Image.Image | NDArray[Any],
    detections: Detections,
    *,
    width: int | None = None,
    labels: bool = True,
    arrows: bool = True,
) -> Image.Image:
    """Draw detections on a picture; better ones cover worse ones.

    The colour of a box tells its view: headings go around the circle of hues. The arrow is the
    heading as seen from above: down is towards the viewer. Lines and letters grow with the picture.

    Parameters
    ----------
    image : str, path-like, PIL image or ndarray
        The picture, as `read_image` takes it; it stays as it is.
    detections : Detections
        What was found in it.
    width : int, optional
        Width of the result in pixels; that of `image` by default. Letters stay readable.
    labels : bool, default=True
        Whether to write view and score at each box.
    arrows : bool, default=True
        Whether to draw the heading, if the views have angles.

    Returns
    -------
    PIL.Image.Image
        A new RGB image.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.drawing import draw
    >>> found = Detections([[20, 30, 90, 70]], [3.2], [0], names=["side"], angles=[0.0])
    >>> draw(np.zeros((100, 120, 3), np.uint8), found).size
    (120, 100)
    """
    pil = import_pil()
    check_number("width", width, Integral, low=1, none=True)
    canvas = pil.fromarray(read_image(image))
    if width is not None and width != canvas.width:
        factor = width / canvas.width
        height = max(1, round(canvas.height * factor))
        stretch = [factor, height / canvas.height]
        detections = replace(detections, boxes=detections.boxes * (stretch * 2))
        canvas = canvas.resize((width, height), pil.Resampling.LANCZOS)
    shown = detections.clipped(*canvas.size).best_first()[::-1]
    colours = view_colours(detections)
    thickness = max(1, round(math.hypot(*canvas.size) / 600))
    for box, label in zip(shown.boxes, shown.labels, strict=True):
        _draw_box(canvas, box, colours[label], thickness)
        if arrows and shown.angles is not None:
            _draw_arrow(canvas, box, shown.angles[label], colours[label])
    if labels:
        for box, score, label in zip(shown.boxes, shown.scores, shown.labels, strict=True):
            name = " ".join(shown.names[label].split())[:_MAX_NAME_LENGTH]
            shown_score = f"{score:.2f}" if 0.0 <= score <= 1.0 else f"{score:.1f}"
            _draw_label(canvas, box, f"{name}  {shown_score}", colours[label], thickness)
    return canvas


def contact_sheet(
    images: Iterable[str | os.PathLike[str] | Image.Image | NDArray[Any]],
    *,
    columns: int = 3,
    width: int = 1800,
    titles: Sequence[str] | None = None,
) -> Image.Image:
    """Put pictures on one sheet, row by row.

    Parameters
    ----------
    images : iterable of pictures
        As `read_image` takes them; sizes may differ.
    columns : int, default=3
        Pictures in a row; fewer if there are not as many.
    width : int, default=1800
        Width of the sheet in pixels.
    titles : sequence of str, optional
        A line below each picture.

    Returns
    -------
    PIL.Image.Image
        The sheet, as high as it needs to be.

    Raises
    ------
    ValueError
        Where there are no pictures, too few titles, or no room for as many columns.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.drawing import contact_sheet
    >>> contact_sheet([np.zeros((50, 100, 3), np.uint8)] * 4, columns=2, width=410).size
    (410, 220)
    """
    pil = import_pil()
    check_number("columns", columns, Integral, low=1)
    check_number("width", width, Integral, low=1)
    gap = 10
    pictures = [pil.fromarray(read_image(image)) for image in images]
    if not pictures:
        raise ValueError("a contact sheet needs at least one picture.")
    if titles is not None and len(titles) != len(pictures):
        raise ValueError(f"{len(pictures)} pictures need as many titles; got {len(titles)}.")
    columns = min(columns, len(pictures))
    tile = (width - gap * (columns + 1)) // columns
    if tile < 1:
        raise ValueError(f"{columns} columns do not fit into {width} pixels: take fewer columns.")
    pictures = [_fitted(picture, tile) for picture in pictures]
    rows = [range(k, min(k + columns, len(pictures))) for k in range(0, len(pictures), columns)]
    font = _font(max(_MIN_FONT_SIZE, tile // 40))
    below = gap + (0 if titles is None else round(1.5 * font.size))
    heights = [max(pictures[k].height for k in row) + below for row in rows]
    sheet = pil.new("RGB", (width, gap + sum(heights)), _PAPER)
    top = gap
    for row, height in zip(rows, heights, strict=True):
        for column, k in enumerate(row):
            left = gap + column * (tile + gap)
            bottom = top + height - below
            # Narrower and lower pictures stand in the middle, on the line of their neighbours.
            where = (left + (tile - pictures[k].width) // 2, bottom - pictures[k].height)
            sheet.paste(pictures[k], where)
            if titles is not None:
                _write_title(sheet, titles[k], (left, bottom), tile, font)
        top += height
    return sheet


def view_colours(detections: Detections) -> list[Colour]:
    """Return a colour for each view: around the circle of hues by heading, or far apart.

    Parameters
    ----------
    detections : Detections
        Whose names and angles count.

    Returns
    -------
    list of (red, green, blue)
        Bytes; all are equally light, so that dark letters are readable on each.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.drawing import view_colours
    >>> views = Detections.empty(["right", "front", "left"], angles=[0.0, 90.0, 180.0])
    >>> view_colours(views)
    [(255, 146, 186), (227, 184, 49), (0, 220, 193)]
    """
    if detections.angles is not None:
        hues = np.radians(detections.angles)
    else:
        # Multiples of the golden angle: any first few are far apart.
        hues = np.arange(len(detections.names)) * math.pi * (3.0 - math.sqrt(5.0))
    lightness, chroma = 0.8, 0.15
    lab = np.stack([np.full_like(hues, lightness), chroma * np.cos(hues), chroma * np.sin(hues)])
    linear = np.clip(_CONES_TO_RGB @ (_LAB_TO_ROOTS @ lab) ** 3, 0.0, 1.0)
    curved = np.where(linear < 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    red, green, blue = np.rint(255.0 * curved).astype(int).tolist()
    return list(zip(red, green, blue, strict=True))


def _draw_box(canvas: Image.Image, box: NDArray[Any], colour: Colour, thickness: int) -> None:
    """Draw a frame on the pixels of a box, with a dark line around that stands out from any."""
    brush = _brush(canvas)
    x1, y1, x2, y2 = (round(value) for value in box.tolist())
    right, bottom = max(x1, x2 - 1), max(y1, y2 - 1)
    brush.rectangle([x1 - 1, y1 - 1, right + 1, bottom + 1], outline=_INK, width=thickness + 2)
    brush.rectangle([x1, y1, right, bottom], outline=colour, width=thickness)


def _draw_arrow(canvas: Image.Image, box: NDArray[Any], angle: float, colour: Colour) -> None:
    """Draw a heading as seen from above, at the foot of a box."""
    from PIL import Image

    x1, y1, x2, y2 = box.tolist()
    length = 0.5 * min(x2 - x1, y2 - y1, 0.25 * math.hypot(*canvas.size))
    side = math.ceil(1.2 * length)
    if side < _MIN_FONT_SIZE:
        return
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    # Rows of pixels go down, and so does the way to the viewer on a plan.
    shape = _ARROW @ np.array([[cos, sin], [-sin, cos]]) * length + side / 2
    corners = [(x * _SMOOTHNESS, y * _SMOOTHNESS) for x, y in shape.tolist()]
    where = (round((x1 + x2 - side) / 2), round(y2 - side))
    rim = max(1.0, length / 20.0)
    for ink, line in ((_INK, 2.0 * rim), (colour, 0.0)):
        mask = Image.new("L", (side * _SMOOTHNESS, side * _SMOOTHNESS))
        brush = _brush(mask)
        brush.polygon(corners, fill=255)
        if line:
            closed = [*corners, *corners[:2]]
            brush.line(closed, fill=255, width=round(line * _SMOOTHNESS), joint="curve")
        canvas.paste(ink, where, mask.resize((side, side), Image.Resampling.BOX))


def _draw_label(
    canvas: Image.Image, box: NDArray[Any], text: str, colour: Colour, thickness: int
) -> None:
    """Write on a filled strip above a box, below or inside; not at all on a tiny picture."""
    size = max(_MIN_FONT_SIZE + 2, round(math.hypot(*canvas.size) / 95))
    while True:
        font = _font(size)
        margin = max(1, size // 4)
        width = math.ceil(font.getlength(text)) + 2 * margin
        height = round(1.3 * size)
        if width <= canvas.width and height <= canvas.height:
            break
        size -= 1
        if size < _MIN_FONT_SIZE:
            return
    x1, y1, _, y2 = (round(value) for value in box.tolist())
    left = min(max(x1 - 1, 0), canvas.width - width)
    above, below, inside = y1 - height, y2, min(y1 + thickness, canvas.height - height)
    places = [top for top in (above, below, inside) if 0 <= top <= canvas.height - height]
    corners = [left, places[0], left + width - 1, places[0] + height - 1]
    brush = _brush(canvas)
    brush.rectangle(corners, fill=colour, outline=_INK)
    brush.text((left + margin, places[0] + size), text, fill=_INK, font=font, anchor="ls")


def _write_title(
    sheet: Image.Image, title: str, corner: tuple[int, int], width: int, font: Any
) -> None:
    """Write a line below a picture of a sheet; what does not fit loses its beginning."""
    text = " ".join(title[-200:].split())
    while len(text) > 1 and font.getlength(text) > width:
        text = "…" + text[2:]
    left, top = corner
    brush = _brush(sheet)
    brush.text((left + width / 2, top + 1.25 * font.size), text, _INK, font, anchor="ms")


def _fitted(picture: Image.Image, tile: int) -> Image.Image:
    """Return a picture no wider than a tile of a sheet, and no higher than two tiles."""
    from PIL import Image

    factor = min(tile / picture.width, 2 * tile / picture.height)
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)


def _brush(canvas: Image.Image) -> ImageDraw.ImageDraw:
    """Return what draws on a picture."""
    from PIL import ImageDraw

    return ImageDraw.Draw(canvas)


@cache
def _font(size: int) -> Any:
    """Return the font that comes with PIL."""
    from PIL import ImageFont

    return ImageFont.load_default(size)
