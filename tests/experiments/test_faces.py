"""The experiment with faces: what is read, how it is judged, what the page tells."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badacost.detection.annotations import AnnotatedImage, AnnotationError
from badacost.detection.boxes import Detections
from badacost.detection.training.config import TrainingConfig
from experiments.contest import Entry
from experiments.detection import run_contest, write_numbers, write_page
from experiments.faces import FaceSettings, read_faces


class SmallWindow(FaceSettings):
    """Few features, and all faces of the pictures are large enough."""

    def configs(self) -> dict[str, TrainingConfig]:
        return {
            name: replace(config, window=(24, 24)) for name, config in super().configs().items()
        }


TINY = SmallWindow(
    kind="quick", limits=(45.0,), trees=(4,), max_depth=3, n_negatives=30, n_accumulated=40,
    subcat_trees=(8,), n_subcat_negatives=20, n_subcat_accumulated=30, n_jittered=0,
    n_timed=1, n_resamples=5,
)  # fmt: skip
FIVE = FaceSettings(n_resamples=3)
VIEWS = FIVE.views
RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


@pytest.fixture(scope="module")
def finished(faces_folder: Path, tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("faces")
    return output, run_contest(TINY, output, data=faces_folder, n_jobs=1)


def test_views_are_mirrored_and_named_from_right_to_left() -> None:
    assert len(VIEWS) == 5
    assert VIEWS.mirror == (4, 3, 2, 1, 0)
    np.testing.assert_array_equal(VIEWS.label_of([90 - 46, 90, 90 + 44]), [0, 2, 3])
    assert FaceSettings().name == "faces-15-45"
    assert FaceSettings.paper().name == "faces-paper-20-60"


@pytest.fixture
def folder(faces_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(faces_folder, tmp_path / "faces"))


def test_faces_are_read_with_ellipses(faces_folder: Path) -> None:
    for image in read_faces(faces_folder, "val", VIEWS):
        assert set(image.categories) == {"Face"}
        assert image.ellipses is not None
        np.testing.assert_allclose(image.boxes[:, 0], image.ellipses[:, 3] - image.ellipses[:, 1])
        np.testing.assert_array_equal(image.labels, VIEWS.label_of(image.angles))
        assert (image.labels >= 0).all()


@pytest.mark.parametrize(("column", "value"), [(6, "-40"), (7, "21")])
def test_doubtful_faces_have_no_view(folder: Path, column: int, value: str) -> None:
    table = folder / "faces-val.csv"
    rows = [line.split(",") for line in table.read_text().splitlines()]
    rows[1][column] = value
    table.write_text("\n".join(map(",".join, rows)))
    images = read_faces(folder, "val", VIEWS)
    labels = np.concatenate([image.labels for image in images])
    assert labels[0] == -1
    assert (labels[1:] >= 0).all()


def test_a_table_may_have_annotated_yaws_and_no_more(folder: Path) -> None:
    table = folder / "faces-val.csv"
    rows = [line.split(",")[:6] for line in table.read_text().splitlines()]
    rows[0][5] = "yaw"
    rows.append(["val/empty", "", "", "", "", ""])
    table.write_text("\n".join(map(",".join, rows)))
    (folder / "FDDB-ellipseList-val.txt").unlink()
    images = read_faces(folder, "val", VIEWS)
    assert len(images) == 4
    assert all(image.ellipses is None for image in images)
    assert all((image.labels >= 0).all() for image in images)


def test_ellipses_of_other_faces_are_refused(folder: Path) -> None:
    shutil.copy(folder / "FDDB-ellipseList-train.txt", folder / "FDDB-ellipseList-val.txt")
    with pytest.raises(AnnotationError, match="do not fit the table"):
        read_faces(folder, "val", VIEWS)


def test_a_gap_must_be_a_number(folder: Path) -> None:
    table = folder / "faces-val.csv"
    table.write_text(table.read_text().replace(",1.5\n", ",wide\n", 1))
    with pytest.raises(AnnotationError, match="line 2: yaw_flip_gap must be a finite number"):
        read_faces(folder, "val", VIEWS)


def judged(shift: float, scale: float) -> dict[str, Any]:
    """Results of boxes that are all moved and scaled in the same way."""
    ellipses = np.array([[40.0, 30, np.pi / 2, 60 + 100 * i, 60] for i in range(20)])
    x, y = ellipses[:, 3], ellipses[:, 4]
    image = AnnotatedImage(
        None,
        np.stack([x - 30, y - 40, x + 30, y + 40], axis=1),
        angles=[90.0] * 20,
        ellipses=ellipses,
        categories=["Face"] * 20,
        size=(120, 2100),
        name="row",
    ).with_views(VIEWS)
    w, h = 30 * scale, 40 * scale
    x = x + shift
    boxes = np.stack([x - w, y - h, x + w, y + h], axis=1)
    found = Detections(boxes, np.arange(20.0), [2] * 20, VIEWS.names, VIEWS.angles, "Face")
    entry = Entry({"row": found})
    return FIVE.evaluate([image], {"SAMME": entry})["SAMME"]


def test_good_boxes_need_no_refinement() -> None:
    result = judged(0.0, 1.0)
    for rounds in ("1", "5"):
        assert result["voc"][rounds]["ap"] == 1.0
        assert result["fddb"][rounds]["discrete_at"]["5"] == 1.0
        assert result["fddb"][rounds]["continuous_at"]["5"] > 0.99
    assert result["views"]["right"] == 1.0
    assert result["resampled"]["reference_above"] is None


def test_refinement_undoes_another_idea_of_a_box() -> None:
    result = judged(6.0, 0.8)
    assert result["voc"]["1"]["ap"] == 1.0
    plain, refined = result["fddb"]["1"], result["fddb"]["5"]
    assert plain["continuous_at"]["100"] < 0.65
    assert refined["continuous_at"]["100"] > 0.95


def test_run_and_page(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    output, result = finished
    assert result["data"]["n_negatives"] == 2
    assert result["data"]["is_yaw_estimated"]
    assert result["data"]["training"]["n_images"] == 6
    assert (output / "faces-quick-45" / "SubCat.detector").exists()
    plain = json.loads(json.dumps(result, allow_nan=False))
    plain["detectors"]["published x"] = {
        **plain["detectors"]["SAMME"], "is_published": True, "training": None,
    }  # fmt: skip
    plain["detectors"]["SubCat"]["voc"]["5"]["ap"] = 0.8764
    write_numbers(plain, tmp_path)
    page = write_page(TINY, tmp_path)
    text = page.read_text()
    assert page == tmp_path / "faces-quick.md"
    assert "87.6" in text
    assert "| SAMME, refined boxes |" in text
    assert "estimates of a network" in text
    assert "boxes of another kind" in text
    for picture in ("faces-quick-45.png", "faces-quick-45-roc.png"):
        assert f"]({picture})" in text
        assert (tmp_path / picture).stat().st_size > 5000


def test_a_page_without_ellipses(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    plain = json.loads(json.dumps(finished[1]))
    for found in plain["detectors"].values():
        found["fddb"] = None
    write_numbers(plain, tmp_path)
    assert "### FDDB" not in write_page(TINY, tmp_path).read_text()
    assert not (tmp_path / "faces-quick-45-roc.png").exists()


def test_the_committed_page_is_that_of_the_committed_numbers(tmp_path: Path) -> None:
    for path in RESULTS.glob("faces-*.json"):
        shutil.copy(path, tmp_path)
    assert write_page(FIVE, tmp_path).read_text() == (RESULTS / "faces.md").read_text()
