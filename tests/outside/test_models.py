"""The published detectors, looked at and on the command line."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from typer.testing import CliRunner

from badacost.cli.app import app
from badacost.detection import Detector, load_detector
from badacost.detection.inspection import EfficiencyTable, ScoreTracesDisplay, feature_map
from badacost.detection.interchange import from_json_lines
from badacost.detection.report import write_report
from tests.pages import Page

matplotlib.use("Agg")


@cache
def published(shared: Path, name: str) -> Detector:
    return load_detector(shared / "data" / "models" / f"{name}.mat")


def test_cars_as_the_paper_describes_them(shared) -> None:
    found = feature_map(published(shared, "kitti_badacost"))
    maps = dict(zip(found.channel_names, found.by_channel, strict=True))
    rows = maps["U"].sum(axis=1) / maps["U"].sum()
    assert rows[5:8].sum() > 0.35, "U looks for rear lights, in the middle of the height"
    mirrored = np.corrcoef(maps["30°"].ravel(), maps["-30°"][:, ::-1].ravel())[0, 1]
    same = np.corrcoef(maps["30°"].ravel(), maps["-30°"].ravel())[0, 1]
    assert mirrored > 0.8 > same, "a car and its mirror image use mirrored edges"


def test_sizes_beside_the_paper(shared) -> None:
    """The paper's table has 40960 nodes for SubCat; BAdaCost has one level more there."""
    table = EfficiencyTable.from_detectors(
        {name: published(shared, name) for name in ("faces_subcat", "faces_badacost")}
    )
    assert [row[1:] for row in table.cells] == [
        ["5", "20480", "2", "40960"],
        ["1", "1024", "7", "7168"],
    ]


def test_traces_end_with_the_scores_of_faces(shared) -> None:
    detector = published(shared, "faces_badacost")
    frame = shared / "golden" / "detection" / "frames" / "face_oxford_00001.png"
    display = ScoreTracesDisplay.from_detector(detector, [frame], n_jobs=-1)
    np.testing.assert_allclose(display.boxes[:, -1], detector.detect(frame).scores)
    assert np.median(display.n_trees_of_rejected) < 50


@pytest.mark.parametrize(
    ("name", "frame"),
    [("faces_badacost", "face_oxford_00001.png"), ("kitti_subcat", None)],
)
def test_report(tmp_path, shared, name, frame) -> None:
    detector = published(shared, name).with_pyramid(n_octaves_up=0)
    images = frame and [shared / "golden" / "detection" / "frames" / frame]
    write_report(detector, tmp_path / "page.html", images=images, n_jobs=-1)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert len(page.pictures) == (4 if frame else 2)
    assert len(page.rows) > len(detector.names)


def test_report_on_the_command_line(tmp_path, shared) -> None:
    page = tmp_path / "report.html"
    model = shared / "data" / "models" / "faces_badacost.mat"
    result = CliRunner().invoke(app, ["report", str(model), "--output", str(page)])
    assert result.exit_code == 0, result.output
    assert "half left" in page.read_text(encoding="utf-8")


def test_detect_on_the_command_line(shared: Path) -> None:
    model = shared / "data" / "models" / "kitti_badacost.mat"
    frame = shared / "golden" / "detection" / "frames" / "kitti_0036_0000000125.jpg"
    done = CliRunner().invoke(app, ["detect", str(model), str(frame), "--fast"])
    assert done.exit_code == 0, done.output
    found = from_json_lines(done.stdout)[str(frame)]
    golden = shared / "golden" / "detection" / "kitti_badacost" / "fast1_exact"
    rows = np.loadtxt(golden / f"{frame.stem}.final.csv", delimiter=",", skiprows=1, ndmin=2)
    boxes = np.column_stack([rows[:, :2], rows[:, :2] + rows[:, 2:4]])
    assert found.boxes == pytest.approx(boxes, abs=1e-3)
    assert found.scores == pytest.approx(rows[:, 4], abs=0.1)
