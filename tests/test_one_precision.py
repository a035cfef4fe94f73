"""The same average precision from evaluate, report and the experiments, for the same files."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from badacost.cli.app import app
from badacost.detection.annotations import read_kitti
from badacost.detection.evaluation import align, evaluate_voc
from badacost.detection.interchange import read_results, to_json_line
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes
from experiments.cars import CarSettings
from experiments.contest import Entry

matplotlib.use("Agg")

# What each object of the scenes is, in turn: type, truncation, occlusion.
KINDS = [
    ("Car", 0.0, 0), ("Van", 0.0, 0), ("Car", 0.0, 0), ("DontCare", -1, -1), ("Car", 0.0, 3),
    ("Car", 0.6, 0), ("Car", 0.0, 0), ("Cyclist", 0.0, 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures and labels of KITTI, a detector, and what it finds."""
    folder = tmp_path_factory.mktemp("kitti")
    (folder / "image_2").mkdir()
    (folder / "label_2").mkdir()
    detector = synthetic_cars()
    detector.save(folder / "cars.badacost")
    lines, number = [], 0
    scenes = make_scenes(5, objects_per_image=(2, 4), object_height=(0.2, 0.4), random_state=3)
    for place, scene in enumerate(scenes):
        name = f"{place:06d}"
        Image.fromarray(scene.load()).save(folder / "image_2" / f"{name}.png")
        labels = []
        for (x1, y1, x2, y2), angle in zip(scene.boxes, np.radians(scene.angles), strict=True):
            kind, cut, hidden = KINDS[number % len(KINDS)]
            number += 1
            angle = -10 if kind == "DontCare" else angle
            labels.append(
                f"{kind} {cut} {hidden} {angle:.6f} {x1:.2f} {y1:.2f} {x2 - 1:.2f} {y2 - 1:.2f} "
                "1 1 1 1 1 1 0\n"
            )
        (folder / "label_2" / f"{name}.txt").write_text("".join(labels))
        lines.append(to_json_line(f"drive/{name}.png", detector.detect(scene.load())))
    (folder / "found.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without those that are not about precision."""
    monkeypatch.setattr("badacost.detection.report.plot", lambda figure, caption: "")


def evaluate(folder: Path, results: str, *options: str) -> dict:
    call = ["evaluate", str(folder / results), str(folder / "label_2"), "--json", *options]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def reported(folder: Path, *options: str) -> str:
    page = folder / "page.html"
    call = ["report", str(folder / "cars.badacost"), "--annotations", str(folder / "label_2")]
    result = CliRunner().invoke(app, [*call, "--output", str(page), *options])
    assert result.exit_code == 0, result.output
    return page.read_text(encoding="utf-8")


def cells(figures: dict) -> str:
    """The first cells of the table of a report."""
    low, high = figures["ap_range"]
    number = '<td class="number">{}</td>'.format
    return number(f"{figures['ap']:.4f}") + number(f"{low:.3f} to {high:.3f}")


def test_evaluate_and_report(folder) -> None:
    files, model = (evaluate(folder, name) for name in ("found.jsonl", "cars.badacost"))
    assert files == model
    assert cells(files) in reported(folder)
    truth = {image.name: image for image in read_kitti(folder / "label_2")}
    found = read_results(folder / "found.jsonl")
    result = evaluate_voc(*align(found, truth))
    assert (result.ap, list(result.ap_range)) == (files["ap"], files["ap_range"])
    # Vans and areas are there, were found, and would have cost something.
    cars = {name: image[np.array(image.categories) == "Car"] for name, image in truth.items()}
    assert evaluate_voc(*align(found, cars)).ap < result.ap < 1.0


def test_evaluate_report_and_experiments(folder) -> None:
    options = ("--kitti-cars", "--clip")
    figures = {
        overlap: evaluate(folder, "found.jsonl", "--overlap", overlap, *options)
        for overlap in ("0.5", "0.7")
    }
    assert cells(figures["0.5"]) in reported(folder, *options)
    test = [image.measured() for image in read_kitti(folder / "label_2")]
    found = {Path(name).stem: boxes for name, boxes in read_results(folder / "found.jsonl").items()}
    entry = Entry(found)
    results = CarSettings().evaluate(test, {"BAdaCost": entry})["BAdaCost"]
    assert results["views"]["right"] == figures["0.5"]["view_accuracy"]
    for overlap, record in figures.items():
        assert results["voc"][overlap]["ap"] == record["ap"]
        assert results["voc"][overlap]["interval"] == record["ap_range"]
        kitti = evaluate(
            folder, "found.jsonl", "--protocol", "kitti", "--overlap", overlap, "--clip"
        )
        assert results["kitti"][overlap] == {
            key: value for key, value in kitti.items() if key not in ("protocol", "views")
        }
    hidden = evaluate(folder, "found.jsonl", "--clip")["n_objects"]
    assert hidden > figures["0.5"]["n_objects"] > 3
