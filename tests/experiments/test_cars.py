"""The experiment with cars: what is read, how it is judged, what the page tells."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from badacost.detection.annotations import KITTI_CARS, AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import evaluate_kitti
from badacost.detection.training.config import TrainingConfig
from experiments.cars import CarSettings, clean_names
from experiments.contest import Entry, Images
from experiments.detection import run_contest, write_numbers, write_page


class SmallWindow(CarSettings):
    """Few features, and all cars of the pictures are large enough."""

    def configs(self) -> dict[str, TrainingConfig]:
        return {
            name: replace(config, window=(24, 42)) for name, config in super().configs().items()
        }


TINY = SmallWindow(
    kind="quick", n_views=2, trees=(4,), max_depth=3, n_negatives=30, n_accumulated=40,
    subcat_trees=(8,), n_subcat_negatives=20, n_subcat_accumulated=30, n_jittered=0,
    n_octaves_up=0, n_timed=1, n_resamples=5,
)  # fmt: skip
FOUR = CarSettings(n_views=4, n_resamples=3)
RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


def read_cars(folder: Path, **changes) -> Images:
    return replace(FOUR, **changes).read(folder, None)


@pytest.fixture(scope="module")
def finished(kitti_folder: Path, tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    output = tmp_path_factory.mktemp("cars")
    return output, run_contest(TINY, output, data=kitti_folder, n_jobs=1)


def test_lists_are_read(kitti_folder: Path) -> None:
    images = read_cars(kitti_folder)
    assert [image.name for image in images.training] == [f"{n:06d}" for n in range(6730, 6736)]
    assert [image.name for image in images.test] == ["006736", "006737", "006738"]
    assert images.data["left_out"] == {"training": [], "test": []}
    assert clean_names([*images.training, *images.test])[0] == "006733"
    for image in images.training:
        cars = np.array(image.categories) == "Car"
        assert (image.labels[cars] >= 0).all()
        assert image.ignore[~cars].all()


def test_without_lists_the_parts_are_those_of_the_paper(kitti_folder: Path, tmp_path: Path) -> None:
    for name in ("image_2", "label_2"):
        shutil.copytree(kitti_folder / name, tmp_path / name)
    images = read_cars(tmp_path)
    assert [image.name for image in images.training] == ["006730", "006731", "006732"]
    assert [image.name for image in images.test] == [
        "006733", "006734", "006736", "006737", "006738",
    ]  # fmt: skip
    for path in (tmp_path / "label_2").glob("00673[3-8].txt"):
        path.unlink()
    with pytest.raises(ValueError, match="has no test images"):
        read_cars(tmp_path)


@pytest.mark.parametrize(("size", "fits"), [((1224, 370), False), ((1242, 375), True)])
def test_resized_pictures_are_left_out(
    kitti_folder: Path, tmp_path: Path, size: tuple[int, int], fits: bool
) -> None:
    for name in ("image_2", "label_2", "image_3", "label_3"):
        shutil.copytree(kitti_folder / name, tmp_path / name)
    for name in ("train.txt", "val.txt"):
        shutil.copy(kitti_folder / name, tmp_path)
    Image.new("RGB", size).save(tmp_path / "image_2" / "000004.png")
    shutil.copy(tmp_path / "label_2" / "006730.txt", tmp_path / "label_2" / "000004.txt")
    with (tmp_path / "train.txt").open("a") as file:
        file.write("image_2/000004.png\n")
    images = read_cars(tmp_path)
    assert (images.data["left_out"]["training"] == []) is fits
    assert ("000004" in [image.name for image in images.training]) is fits


def test_the_richest_images_are_chosen(kitti_folder: Path) -> None:
    everything = read_cars(kitti_folder).training
    chosen = read_cars(kitti_folder, n_images=2).training
    counts = [len(KITTI_CARS.apply(image).positives) for image in everything]
    assert len(chosen) == 2
    assert sorted(len(KITTI_CARS.apply(image).positives) for image in chosen) == sorted(counts)[-2:]
    names = [image.name for image in everything]
    assert [image.name for image in chosen] == sorted(
        (image.name for image in chosen), key=names.index
    )


def judged(boxes: Any, angles: list[float]) -> dict[str, Any]:
    """Results of a detector that finds these boxes, of cars in a row with a heading of 90."""
    truth = [[60.0 * i, 10, 60 * i + 50, 60] for i in range(50)]
    image = AnnotatedImage(
        None, truth, angles=[90.0] * 50, categories=["Car"] * 50, size=(100, 3000), name="row"
    ).with_views(FOUR.views)
    n = len(boxes)
    found = Detections(boxes, range(n), range(n), [str(i) for i in range(n)], angles, "Car")
    entry = Entry({"row": found})
    return FOUR.evaluate([image], {"CostBoost": entry})["CostBoost"]


def test_perfect_detections_are_judged_so() -> None:
    boxes = [[60.0 * i, 10, 60 * i + 50, 60] for i in range(50)]
    result = judged(boxes, [90.0] * 40 + [0.0] * 10)
    for overlap in ("0.7", "0.5"):
        for level in ("easy", "moderate", "hard"):
            assert result["kitti"][overlap][level]["ap_40"] == 1.0
        assert result["voc"][overlap] == {
            "ap": 1.0, "interval": [1.0, 1.0], "reference_above": None,
        }  # fmt: skip
    assert result["views"]["n_found"] == 50
    assert result["views"]["right"] == 0.8
    assert result["views"]["near"] == 1.0  # a quarter of a turn is the next of four views
    assert result["kitti"]["0.7"]["easy"]["aos_40"] < 0.95


def test_boxes_are_clipped_to_the_picture() -> None:
    boxes = [[60.0 * i, 10, 60 * i + 50, 60] for i in range(50)]
    beyond = np.array(boxes)
    beyond[0, 0] = -60.0  # less than half of it is inside
    assert judged(beyond, [90.0] * 50)["voc"]["0.7"]["ap"] == 1.0


def test_results_are_those_of_the_evaluator(
    finished: tuple[Path, dict[str, Any]], kitti_folder: Path
) -> None:
    output, result = finished
    assert list(result["detectors"]) == ["CostBoost", "BAdaCost", "SAMME", "SubCat"]
    records = [
        json.loads(line)
        for line in (output / TINY.name / "journal.jsonl").read_text().splitlines()[1:]
    ]
    from badacost.detection.interchange import from_json_lines

    found = from_json_lines(
        json.dumps(r) for r in records if r["part"] == "image" and r["detector"] == "SubCat"
    )
    clipped = {name: boxes.clipped(200, 120) for name, boxes in found.items()}
    truth = {image.name: image for image in read_cars(kitti_folder, n_views=2).test}
    expected = evaluate_kitti(clipped, truth, overlap=0.5).to_dict()
    assert result["detectors"]["SubCat"]["kitti"]["0.5"] == expected
    assert result["data"]["clean"] == ["006736", "006737", "006738"]


def test_the_page(finished: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    result = json.loads(json.dumps(finished[1]))
    result["detectors"]["BAdaCost"]["kitti"]["0.7"]["moderate"]["ap_11"] = 0.4321
    result["detectors"]["published x"] = {
        **result["detectors"]["SAMME"], "is_published": True, "training": None,
    }  # fmt: skip
    result["detectors"]["SAMME"]["training"]["n_starts"] = 2
    result["data"]["left_out"]["test"] = ["000008"]
    write_numbers(result, tmp_path)
    page = write_page(TINY, tmp_path)
    text = page.read_text()
    assert page == tmp_path / "cars-quick.md"
    assert "43.2" in text
    assert "none of the training images and 000008 of the test images" in text
    assert "(last part of a resumed training)" in text
    assert "no fair comparison" in text
    assert "](cars-quick-2-views.png)" in text
    assert (tmp_path / "cars-quick-2-views.png").stat().st_size > 5000
    assert json.loads((tmp_path / "cars-quick-2-views.json").read_text()) == result


def test_one_page_tells_of_all_numbers_of_views(
    finished: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    for kind, n_views in (("quick", 12), ("", 12), ("", 8)):
        result = json.loads(json.dumps(finished[1]))
        settings = {**result["settings"], "kind": kind, "n_views": n_views}
        name = CarSettings(**settings).name
        write_numbers({**result, "settings": settings, "experiment": name}, tmp_path)
        write_page(CarSettings(**settings), tmp_path)
    text = (tmp_path / "cars.md").read_text()
    assert text.index("## 8 views") < text.index("## 12 views")
    assert "## 8 views" not in (tmp_path / "cars-quick.md").read_text()
    assert "no fair comparison" not in text


def test_the_committed_page_is_that_of_the_committed_numbers(tmp_path: Path) -> None:
    for path in RESULTS.glob("cars-*.json"):
        shutil.copy(path, tmp_path)
    page = write_page(CarSettings(), tmp_path)
    assert page.read_text() == (RESULTS / "cars.md").read_text()


def test_settings() -> None:
    assert CarSettings().name == "cars-8-views"
    assert CarSettings.paper().name == "cars-paper-20-views"
    configs = CarSettings().configs()
    costs = configs["BAdaCost"].costs(8)
    np.testing.assert_array_equal(costs[0, 1:], 1.0)
    np.testing.assert_array_equal(costs[1:, 0], 3.0)
    assert costs[1, 5] == 3.0
    assert configs["SubCat"].max_depth == 2
    with pytest.raises(ValueError, match="even"):
        CarSettings(n_views=5)
