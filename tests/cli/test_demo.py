"""``badacost demo``: a picture without any data."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from badacost.cli.app import app
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes


def test_detections_are_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "missing" / "found.png"  # the folder is made
    result = CliRunner().invoke(app, ["demo", "detect", "--scenes", "2", "--output", str(picture)])
    assert result.exit_code == 0, result.output
    assert "cars found" in result.output
    with Image.open(picture) as image:
        assert image.width > image.height > 100


@pytest.mark.parametrize(
    ("option", "message"),
    [(["--jobs", "0"], "--jobs must not be 0"), (["--output", "."], "is a folder: name a file")],
)
def test_mistakes_are_one_line(option, message) -> None:
    result = CliRunner().invoke(app, ["demo", "detect", *option])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_detector_of_the_package_finds_fresh_cars() -> None:
    scenes = make_scenes(12, n_views=8, random_state=1234)
    detector = synthetic_cars()
    found = {scene.name: detector.detect(scene.load()) for scene in scenes}
    result = evaluate_voc(found, {scene.name: scene for scene in scenes})
    assert result.ap == pytest.approx(1.0, abs=0.1)
    assert result.view_accuracy > 0.8
