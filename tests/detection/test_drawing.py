"""Boxes, labels and arrows where they belong, and sheets of any pictures."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from badacost.detection.boxes import Detections
from badacost.detection.drawing import contact_sheet, draw, view_colours

BLACK = np.zeros((200, 300, 3), np.uint8)
HEADINGS = Detections(
    [[100, 60, 200, 160]],
    [7.25],
    [0],
    ["right", "front", "left", "away"],
    [0.0, 90.0, 180.0, -90.0],
)


def heading(label: int) -> Detections:
    return Detections(
        HEADINGS.boxes, HEADINGS.scores, [label], HEADINGS.names, angles=HEADINGS.angles
    )


def is_colour(image: Image.Image, colour: tuple[int, int, int]) -> np.ndarray:
    return (np.asarray(image) == colour).all(axis=2)


def label_size(found: Detections) -> np.ndarray:
    """Height and width of what a label changes."""
    labelled, plain = (np.asarray(draw(BLACK, found, labels=labels)) for labels in (True, False))
    return np.ptp(np.argwhere((labelled != plain).any(axis=2)), axis=0)


class TestDraw:
    def test_frame_is_on_the_pixels_of_the_box(self) -> None:
        colour = view_colours(HEADINGS)[0]
        drawn = is_colour(draw(BLACK, HEADINGS, labels=False, arrows=False), colour)
        rows, columns = np.nonzero(drawn)
        assert (rows.min(), rows.max(), columns.min(), columns.max()) == (60, 159, 100, 199)
        assert drawn[60, 100:200].all()
        assert drawn[60:160, 199].all()
        assert not drawn[80:140, 120:180].any()

    def test_the_picture_stays_as_it_is(self) -> None:
        before = Image.new("RGB", (300, 200), (9, 9, 9))
        draw(before, HEADINGS)
        assert (np.asarray(before) == 9).all()
        draw(BLACK, HEADINGS)
        assert not BLACK.any()

    @pytest.mark.parametrize(
        ("label", "axis", "sign"), [(0, 1, 1), (1, 0, 1), (2, 1, -1), (3, 0, -1)]
    )
    def test_arrow_points_as_seen_from_above(self, label, axis, sign) -> None:
        found = heading(label)
        drawn = is_colour(draw(BLACK, found, labels=False), view_colours(found)[label])
        inside = np.argwhere(drawn[64:156, 104:196])
        along, across = inside[:, axis], inside[:, 1 - axis]
        assert np.ptp(along) > 1.4 * np.ptp(across)
        widest = along[np.abs(across - across.mean()) > 0.4 * np.ptp(across)]
        middle = (along.min() + along.max()) / 2
        assert sign * (widest.mean() - middle) > 0  # barbs are nearer to the tip

    def test_no_arrows_without_angles(self) -> None:
        found = Detections(HEADINGS.boxes, [1.0], [0], ["a"])
        with_arrows, without = (draw(BLACK, found, arrows=arrows) for arrows in (True, False))
        assert (np.asarray(with_arrows) == np.asarray(without)).all()

    @pytest.mark.parametrize(
        "box", [[0, 0, 40, 40], [280, 0, 300, 199], [250, 170, 300, 200], [0, 0, 300, 200]]
    )
    def test_labels_stay_inside(self, box) -> None:
        inside, whole = (
            label_size(Detections([place], [123.4], [0], ["a long name"]))
            for place in (box, [100, 100, 140, 120])
        )
        assert np.abs(inside - whole).max() <= 3  # where frame and strip meet, both look the same

    def test_better_ones_cover_worse_ones(self) -> None:
        boxes = [[100, 60, 200, 160]] * 2
        found = Detections(boxes, [5.0, 9.0], [0, 1], ["worse", "better"])
        worse, better = view_colours(found)
        assert not is_colour(draw(BLACK, found), worse).any()
        assert is_colour(draw(BLACK, found), better).any()

    def test_width(self) -> None:
        drawn = draw(BLACK, HEADINGS, width=150, labels=False, arrows=False)
        assert drawn.size == (150, 100)
        rows, columns = np.nonzero(is_colour(drawn, view_colours(HEADINGS)[0]))
        assert (rows.min(), rows.max(), columns.min(), columns.max()) == (30, 79, 50, 99)

    def test_nothing_found(self) -> None:
        assert not np.asarray(draw(BLACK, HEADINGS[:0])).any()

    @given(
        width=st.integers(1, 60),
        height=st.integers(1, 60),
        corners=st.lists(st.floats(-1e8, 1e8) | st.floats(-5, 70), min_size=4, max_size=4),
        name=st.text(max_size=60).filter(lambda text: bool(text.strip())),
        angle=st.floats(-1e6, 1e6),
        score=st.floats(allow_nan=False, allow_infinity=False),
    )
    @settings(max_examples=100)
    def test_any_box_on_any_picture(self, width, height, corners, name, angle, score) -> None:
        x1, x2 = sorted(corners[:2])
        y1, y2 = sorted(corners[2:])
        try:
            found = Detections([[x1, y1, x2, y2]], [score], [0], [name], angles=[angle])
        except ValueError:  # a name with line ends
            return
        assert draw(np.zeros((height, width), np.uint8), found).size == (width, height)

    def test_missing_package(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(ImportError, match=r'pip install "badacost\[detection\]"'):
            draw(BLACK, HEADINGS)


class TestColours:
    def test_opposite_headings_differ_more_than_neighbours(self) -> None:
        angles = np.arange(20) * 18.0 - 180.0
        found = Detections.empty([str(angle) for angle in angles], angles)
        colours = np.array(view_colours(found), dtype=float)
        away = np.linalg.norm(colours[:, np.newaxis] - colours, axis=2)
        neighbour = np.array([away[i, (i + 1) % 20] for i in range(20)])
        opposite = np.array([away[i, (i + 10) % 20] for i in range(20)])
        assert neighbour.min() > 5
        assert opposite.min() > 1.5 * neighbour.max()

    def test_headings_are_cyclic(self) -> None:
        first, second = view_colours(Detections.empty(["a", "b"], [-180.0, 180.0]))
        assert first == second

    def test_views_without_angles_are_far_apart(self) -> None:
        colours = np.array(view_colours(Detections.empty(list("abcdefgh"))), dtype=float)
        away = np.linalg.norm(colours[:, np.newaxis] - colours, axis=2)
        assert away[~np.eye(8, dtype=bool)].min() > 30

    def test_dark_letters_are_readable_on_each(self) -> None:
        angles = list(range(-180, 180, 5))
        colours = np.array(view_colours(Detections.empty([str(a) for a in angles], angles))) / 255.0
        linear = np.where(colours < 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
        luminance = linear @ [0.2126, 0.7152, 0.0722]
        ink = 0.008
        assert ((luminance + 0.05) / (ink + 0.05)).min() > 4.5  # what WCAG asks of text


class TestContactSheet:
    def test_places(self) -> None:
        pictures = [np.full((40, 80, 3), value, np.uint8) for value in (50, 100, 150)]
        sheet = np.asarray(contact_sheet(pictures, columns=2, width=190))
        assert sheet.shape == (10 + 2 * 50, 190, 3)
        assert (sheet[10:50, 10:90] == 50).all()
        assert (sheet[10:50, 100:180] == 100).all()
        assert (sheet[60:100, 10:90] == 150).all()
        assert (sheet[60:100, 100:] == 255).all()

    def test_titles_are_below(self) -> None:
        pictures = [BLACK, BLACK]
        plain, titled = (
            contact_sheet(pictures, columns=2, width=400, titles=titles)
            for titles in (None, ["a.png", "x" * 300])
        )
        assert titled.height > plain.height
        below = np.asarray(titled)[plain.height - 10 :]
        assert (below[:, 10:195] < 200).any()
        assert (below[:, 205:390] < 200).any()
        assert (below[:, 195:205] == 255).all()

    @given(
        sizes=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=6),
        columns=st.integers(1, 5),
        width=st.integers(60, 300),
    )
    @settings(max_examples=40)
    def test_any_sizes(self, sizes, columns, width) -> None:
        pictures = [np.zeros((*size, 3), np.uint8) for size in sizes]
        sheet = contact_sheet(pictures, columns=columns, width=width, titles=["t"] * len(sizes))
        assert sheet.width == width
        assert sheet.height <= len(sizes) * (2 * width + 40)

    @pytest.mark.parametrize(
        ("pictures", "options", "message"),
        [
            ([], {}, "at least one picture"),
            ([BLACK], {"titles": []}, "as many titles"),
            ([BLACK] * 9, {"columns": 9, "width": 50}, "take fewer columns"),
            ([BLACK], {"columns": 0}, "columns must be"),
        ],
    )
    def test_mistakes(self, pictures, options, message) -> None:
        with pytest.raises(ValueError, match=message):
            contact_sheet(pictures, **options)
