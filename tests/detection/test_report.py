"""Pages about detectors: whole, with all their pictures inside, whatever names are on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from badacost.detection import Cascade, Detector, ImageError, PyramidParameters
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.report import write_report
from badacost.tree.forest import Forest
from tests.pages import HOSTILE, Page

matplotlib.use("Agg")


def pixel_detector(n_cascades: int = 1, names: tuple[str, ...] | None = None) -> Detector:
    """Finds dark squares; the two views of a cascade are told by the cell that is tested."""
    forests = []
    for number in range(n_cascades):
        n_views = 2 if n_cascades == 1 else 1
        forests.append(
            Forest(
                feature=np.array([number, 0, 0], np.int32),
                threshold=np.array([0.1, np.nan, np.nan]),
                left=np.array([1, 1, 2], np.int32),
                missing_left=np.ones(3, bool),
                value=np.array([0, 0, 1], np.int32),
                gain=np.zeros(3, np.float32),
                count=np.zeros(3, np.int32),
                weight=np.zeros(3, np.float32),
                offsets=np.array([0, 3]),
                tree_weights=np.ones(1),
                table=np.array([[1.0, 0.5], [-1.0, -1.0]])[:, :n_views],
                n_features=10 * 2 * 2,
            )
        )
    cascades = [Cascade(forest, (8, 8), (8, 8), cell=4, rejections=0.0) for forest in forests]
    names = names or tuple(f"view {view}" for view in range(max(2, n_cascades)))
    return Detector(PyramidParameters(min_size=(8, 8)), cascades, names, category="Square")


def picture(*corners: tuple[int, int]) -> np.ndarray:
    pixels = np.full((48, 64, 3), 255, np.uint8)
    for x, y in corners:
        pixels[y : y + 16, x : x + 16] = 0
    return pixels


def written(tmp_path: Path, detector: Detector, **options) -> Page:
    path = tmp_path / "page.html"
    open_before = plt.get_fignums()
    write_report(detector, path, **options)
    assert plt.get_fignums() == open_before, "figures are closed"
    assert list(tmp_path.iterdir()) == [path]
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _no_open_figures() -> Iterator[None]:
    yield
    plt.close("all")


def test_detector_alone(tmp_path) -> None:
    page = written(tmp_path, pixel_detector())
    assert page.headings == ["What it is", "Work", "Where it looks"]
    assert len(page.pictures) == 1
    assert page.row("Detector of Square") == ["1", "1", "1", "1"]
    assert page.row("Object") == ["8 x 8 pixels"]
    assert page.row("Rejection") == ["after each tree, of scores up to 0"]
    assert any(
        text.startswith("Finds Square in 2 views with 1 cascade of 1 tree") for text in page.texts
    )


def test_images(tmp_path) -> None:
    images = [picture((8, 8)), picture(), picture((40, 16), (8, 24))]
    page = written(tmp_path, pixel_detector(3), images=iter(images), title="Squares", n_jobs=2)
    assert page.headings[2:] == ["Where it looks", "Score traces", "Examples"]
    assert len(page.pictures) == 2 + len(images)
    assert len(page.row("Squares")) == 8
    assert page.pictures[-1].size == (64, 48)


def test_many_images_are_thinned_out(tmp_path) -> None:
    page = written(tmp_path, pixel_detector(), images=[picture((8, 8))] * 30)
    assert page.headings[2:] == ["Where it looks", "Score traces", "Examples"]
    assert len(page.pictures) == 2 + 6
    assert any("means over 12 images" in text for text in page.texts)


def annotated_by(detector: Detector, pixels: np.ndarray, **changes) -> AnnotatedImage:
    """A picture whose annotations are what the detector finds in it."""
    found = detector.detect(pixels)
    assert len(found)
    options = {"labels": found.labels, "categories": ["square"] * len(found), **changes}
    return AnnotatedImage(pixels, found.boxes, **options)


def test_annotations_that_agree_with_the_detector(tmp_path) -> None:
    detector = pixel_detector()
    annotated = [annotated_by(detector, picture(corner)) for corner in ((8, 8), (24, 16))]
    page = written(tmp_path, detector, annotated=annotated)
    assert page.headings[3:] == ["Score traces", "How good it is", "Mean images", "Examples"]
    (row,) = (after for before, after in zip(page.rows, page.rows[1:], strict=False)
              if before[0] == "average precision")  # fmt: skip
    n_objects = sum(map(len, annotated))
    found = [str(n_objects), str(n_objects), "0", "100.0%"]
    assert row == ["1.0000", "1.000 to 1.000", "1.000", *found]
    assert ["1", "1.000", "1.000", "0"] in page.rows, "thresholds"
    assert len(page.pictures) == 2 + 3 + 1 + 2


def test_views_follow_from_angles_and_other_categories_are_wrong(tmp_path) -> None:
    detector = replace(pixel_detector(), angles=(0.0, 180.0))
    image = annotated_by(detector, picture((8, 8)))
    turned = replace(image, labels=np.full(len(image), -1), angles=np.full(len(image), 170.0))
    vans = replace(image, categories=["Van"] * len(image))
    page = written(tmp_path, detector, annotated=[turned, vans])
    (row,) = (after for before, after in zip(page.rows, page.rows[1:], strict=False)
              if before[0] == "average precision")  # fmt: skip
    assert row[3:] == [str(len(image)), str(len(image)), str(len(image)), "0.0%"]
    assert "False alarms" in page.headings
    with pytest.warns(UserWarning, match="no annotated object is of Square"):
        page = written(tmp_path, detector, annotated=[vans])
    assert "False alarms" not in page.headings, "the only category there is"


def test_misses_and_false_alarms_are_shown(tmp_path) -> None:
    detector = pixel_detector()
    seen = annotated_by(detector, picture((8, 8)))
    shown = replace(seen[1:], name="seen " + 40 * "x")
    nothing = AnnotatedImage(picture(), [[-4, 20, 12, 44]], categories=["Square"], name=HOSTILE)
    page = written(tmp_path, detector, annotated=[shown, nothing])
    assert page.headings[4:7] == ["How good it is", "Misses", "False alarms"]
    captions = [text for text in page.texts if "16 x 24 pixels" in text]
    assert len(captions) == 1
    assert captions[0].startswith("</td><script>")
    assert any(text.startswith(f"1 of {len(seen)} objects not found") for text in page.texts)
    assert any(text.startswith("1 wrong detection.") for text in page.texts)
    crops = [image for image in page.pictures if image.width == 180]
    assert len(crops) == 2
    red = np.asarray(crops[0], dtype=float)
    assert (red[..., 0] - red[..., 1]).max() > 60, "a coloured frame on a white picture"


def test_annotations_without_objects(tmp_path) -> None:
    page = written(tmp_path, pixel_detector(), annotated=[AnnotatedImage(picture())])
    assert "Mean images" not in page.headings
    assert "The annotations hold no object that is to be found." in page.texts


def test_images_without_windows(tmp_path) -> None:
    page = written(tmp_path, pixel_detector(2), images=[picture()[:4, :4]])
    assert "0 detections" in page.texts


def test_hostile_names(tmp_path) -> None:
    detector = replace(pixel_detector(), names=(HOSTILE, "$"), category=HOSTILE)
    annotated = [annotated_by(detector, picture((8, 8)), categories=None)]
    page = written(tmp_path, detector, annotated=annotated, title=HOSTILE)
    assert "script" not in page.tags
    assert HOSTILE in page.texts
    assert [len(row) for row in page.rows if row[0] == HOSTILE] == [1, 9, 5]


def test_a_failure_leaves_the_old_page(tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ImageError, match="nowhere"):
        write_report(pixel_detector(), path, images=["nowhere.png"])
    with pytest.raises(TypeError, match="must be a Detector"):
        write_report("detector", path)
    with pytest.raises(TypeError, match="must be a AnnotatedImage"):
        write_report(pixel_detector(), path, annotated=["a.png"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
