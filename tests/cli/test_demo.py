"""``badacost demo``: a picture without any data."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from badacost.cli.app import app
from badacost.datasets.scenes import make_scenes
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.models import made_up_cars


def test_detections_are_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "found.png"
    result = CliRunner().invoke(app, ["demo", "detect", "--scenes", "2", "--output", str(picture)])
    assert result.exit_code == 0, result.output
    assert "cars found" in result.output
    with Image.open(picture) as image:
        assert image.width > image.height > 100


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    picture = tmp_path / "missing" / "found.png"
    result = CliRunner().invoke(app, ["demo", "detect", "--output", str(picture)])
    assert result.exit_code == 1
    assert "does not exist: create it first" in result.output


def test_the_detector_of_the_package_finds_fresh_cars() -> None:
    scenes = make_scenes(12, n_views=8, random_state=1234)
    detector = made_up_cars()
    found = {scene.name: detector.detect(scene.load()) for scene in scenes}
    result = evaluate_voc(found, {scene.name: scene for scene in scenes})
    assert result.ap == pytest.approx(1.0, abs=0.1)
    assert result.view_accuracy > 0.8
