"""Lines over a plane, laid out for a picture of SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from badacost._utils.numbers import short_number

Points = Sequence[tuple[float, float]]
_MAX_POINTS = 400  # of a line: more cannot be told apart
_MAX_WRITTEN_OUT = 1e6
_MIN_SPAN = 1e-9  # of an axis, as a share of its numbers
_MIN_SCALE = 1e-200  # smaller numbers are drawn as zero
_N_TICKS = 5


@dataclass(frozen=True)
class Line:
    """A line: its name, and its points as the attribute of a polyline."""

    name: str
    points: str


@dataclass(frozen=True)
class LineChart:
    """Places in a picture of `width` x `height` units; ticks have a place and a text."""

    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    dots: tuple[tuple[float, float], ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = 480
    height: int = 300
    left: int = 52
    right: int = 468
    top: int = 28
    bottom: int = 258


def line_chart(
    lines: Mapping[str, Points],
    x_label: str,
    y_label: str,
    *,
    dots: Points = (),
    is_share: bool = False,
) -> LineChart:
    """Lay out lines of one or more points each; axes of shares are in percent."""
    drawn = np.concatenate([np.asarray(points, dtype=np.float64) for points in lines.values()])
    (x_low, y_low), (x_high, y_high) = drawn.min(axis=0), drawn.max(axis=0)
    x_ticks, y_ticks = ticks(x_low, x_high), ticks(y_low, y_high)
    x_low, x_high = min(x_low, x_ticks[0]), max(x_high, x_ticks[-1])
    y_low, y_high = min(y_low, y_ticks[0]), max(y_high, y_ticks[-1])
    frame = LineChart

    def placed(points: Points) -> list[tuple[float, float]]:
        xs, ys = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
        across = frame.left + (frame.right - frame.left) * (xs - x_low) / (x_high - x_low)
        down = frame.bottom - (frame.bottom - frame.top) * (ys - y_low) / (y_high - y_low)
        return list(zip(across.round(1).tolist(), down.round(1).tolist(), strict=True))

    def text(value: float) -> str:
        if is_share:
            return f"{value:.0%}"
        return f"{value:,.6g}" if abs(value) < _MAX_WRITTEN_OUT else short_number(value)

    return LineChart(
        x_label,
        y_label,
        tuple(
            Line(name, " ".join(f"{x},{y}" for x, y in placed(_thinned(points))))
            for name, points in lines.items()
        ),
        tuple(placed(dots)),
        tuple((placed([(x, y_low)])[0][0], text(x)) for x in x_ticks),
        tuple((placed([(x_low, y)])[0][1], text(y)) for y in y_ticks),
    )


def ticks(low: float, high: float) -> list[float]:
    """Return two or more round numbers, evenly spread, of which at most the ends are outside.

    >>> ticks(0.0, 1.0), ticks(3, 3)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [3.0, 4.0, 5.0, 6.0])
    """
    scale = max(abs(low), abs(high))
    if scale < _MIN_SCALE:
        return [0.0, 1.0]
    if high - low <= _MIN_SPAN * scale:
        high = low + scale
    raw = (high - low) / _N_TICKS
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [float(f"{number * step:.12g}") for number in np.arange(first, last + 1)]


def _thinned(points: Points) -> Points:
    """Return at most some hundred of the points, the last one among them."""
    chosen = np.linspace(0, len(points) - 1, min(len(points), _MAX_POINTS)).round().astype(int)
    return [points[index] for index in chosen]
