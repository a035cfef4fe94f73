"""``badacost evaluate``: every kind of results against every protocol."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from badacost import detection
from badacost.cli.app import app
from badacost.detection.annotations import Views
from badacost.detection.boxes import Detections
from badacost.detection.evaluation.resampling import draws
from badacost.detection.interchange import coco_document, to_coco, to_csv, to_json_line, to_kitti
from badacost.detection.scenes import make_scenes

matplotlib.use("Agg")

VIEWS = Views.around(4)
SCENES = make_scenes(12, n_views=4, size=(100, 140), object_height=(0.42, 0.6))


def found_in(scene) -> Detections:
    """All objects, best first, and a false alarm that is worse than all of them."""
    boxes = np.concatenate([scene.boxes, [[0.0, 0.0, 12.0, 8.0]]])
    scores = np.append(10.0 + np.arange(len(scene)), 1.0)
    return Detections(
        boxes, scores, [*scene.labels, 3], VIEWS.names, angles=VIEWS.angles, category="Car"
    )


class PerfectDetector:
    """Knows the scenes by their pixels."""

    def detect_many(self, images, *, n_jobs=None):
        for pixels in images:
            (scene,) = (s for s in SCENES if np.array_equal(s.load(), pixels))
            yield found_in(scene)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with pictures, labels of KITTI and of a table, and results of all kinds."""
    place = tmp_path_factory.mktemp("evaluate")
    for name in ("image_2", "label_2", "results"):
        (place / name).mkdir()
    rows, found = ["image,x1,y1,x2,y2,category"], {}
    for number, scene in enumerate(SCENES):
        name = f"image_2/{number:06d}.png"
        Image.fromarray(scene.load()).save(place / name)
        found[name] = found_in(scene)
        (place / f"results/{number:06d}.txt").write_text(to_kitti(found[name]))
        labels = []
        for (x1, y1, x2, y2), angle in zip(scene.boxes, np.radians(scene.angles), strict=True):
            labels.append(
                f"Car 0 0 {angle:.6f} {x1} {y1} {x2 - 1} {y2 - 1} 1 1 1 1 1 1 {angle:.6f}\n"
            )
            rows.append(f"{number:06d}.png,{x1},{y1},{x2},{y2},Car")
        (place / f"label_2/{number:06d}.txt").write_text("".join(labels))
    (place / "boxes.csv").write_text("\n".join(rows) + "\n")
    lines = [to_json_line(n, d) for n, d in found.items()]
    (place / "r.jsonl").write_text("\n".join(lines) + "\n")
    (place / "r.csv").write_text(to_csv(found))
    records = [record for n, d in found.items() for record in to_coco(d, n)]
    (place / "r.json").write_text(json.dumps(records))
    (place / "d.badacost").touch()
    return place


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, files: Path, monkeypatch) -> Path:
    """A working folder with those files; ranges are of few draws."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(draws, "__defaults__", (20, 0))
    monkeypatch.setattr(detection, "load_detector", lambda path: PerfectDetector())
    return tmp_path


def evaluate(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    if status == 1:
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert result.stdout == ""
    return result


def figures(*arguments: str) -> dict:
    return json.loads(evaluate(*arguments, "--json").stdout)


N_OBJECTS = sum(map(len, SCENES))


class TestResults:
    @pytest.mark.parametrize("results", ["r.jsonl", "r.csv", "results", "r.json", "d.badacost"])
    def test_every_kind(self, results) -> None:
        got = figures(results, "label_2", "--category", "Car")
        assert got["protocol"] == "voc"
        assert got["ap"] == pytest.approx(1.0)
        assert (got["n_true"], got["n_false"]) == (N_OBJECTS, len(SCENES))
        assert got["view_accuracy"] == 1.0
        assert got["ap_range"] == pytest.approx([1.0, 1.0])
        assert len(got["views"]) == len(got["view_recall"])
        assert sum(got["objects_per_view"]) == N_OBJECTS

    def test_tables_without_what_they_need_not_have(self) -> None:
        rows = [line.split(",")[:6] for line in Path("r.csv").read_text().splitlines()]
        Path("bare.csv").write_text("\n".join(map(",".join, rows)))
        truth = [line.split(",")[:5] for line in Path("boxes.csv").read_text().splitlines()]
        Path("bare-boxes.csv").write_text("\n".join(map(",".join, truth)))
        got = figures("bare.csv", "bare-boxes.csv", "--images", "image_2")
        assert got["ap"] == pytest.approx(1.0)
        assert (got["n_true"], got["n_false"]) == (N_OBJECTS, len(SCENES))
        assert got["view_accuracy"] is None
        kitti = figures("bare.csv", "label_2", "--protocol", "kitti", "--category", "Car")
        assert kitti["category"] == "Car"

    def test_documents_of_coco(self) -> None:
        found = {f"image_2/{n:06d}.png": found_in(scene) for n, scene in enumerate(SCENES)}
        Path("document.json").write_text(json.dumps(coco_document(found)))
        assert figures("document.json", "label_2") == figures("r.jsonl", "label_2")

    def test_pictures_without_detections_count(self) -> None:
        lines = Path("r.jsonl").read_text().splitlines()
        Path("half.jsonl").write_text("\n".join(lines[:6]))
        recall = sum(map(len, SCENES[:6])) / N_OBJECTS
        assert figures("half.jsonl", "label_2")["ap"] == pytest.approx(recall)

    def test_detections_without_annotations_are_left_out(self) -> None:
        Path("label_2/000000.txt").unlink()
        result = evaluate("r.jsonl", "label_2", "--json")
        assert "1 pictures without annotations are left out." in result.stderr
        got = json.loads(result.stdout)
        assert (got["n_true"], got["n_false"]) == (N_OBJECTS - len(SCENES[0]), len(SCENES) - 1)

    def test_same_names_in_two_folders(self) -> None:
        Path("image_3").mkdir()
        rows = ["image,x1,y1,x2,y2"]
        for side in (2, 3):
            Image.new("RGB", (100, 100)).save(f"image_{side}/a.png")
            rows.append(f"image_{side}/a.png,{side},0,50,50")
        Path("two.csv").write_text("\n".join(rows))
        found = {
            f"some/where/image_{side}/a.png": Detections([[side, 0, 50, 50]], [1.0], [0], ["a"])
            for side in (3, 2)
        }
        Path("two.jsonl").write_text("\n".join(to_json_line(n, d) for n, d in found.items()))
        got = figures("two.jsonl", "two.csv", "--images", ".", "--overlap", "0.99")
        assert got["ap"] == 1.0
        Path("one.jsonl").write_text(to_json_line("a.png", found["some/where/image_2/a.png"]))
        result = evaluate("one.jsonl", "two.csv", "--images", ".", status=1)
        assert "matches several pictures" in result.stderr

    @pytest.mark.parametrize("label", ["a.0001", "clip.mp4#000010"])
    def test_only_suffixes_of_pictures_are_left_out(self, label) -> None:
        names = [label, label[:-2] + "20"]
        rows = ["image,x1,y1,x2,y2", *(f"{n}.png,0,0,{30 + i},30" for i, n in enumerate(names))]
        Path("dots.csv").write_text("\n".join(rows))
        Path("dots").mkdir()
        lines = []
        for number, name in enumerate(names):
            Image.new("RGB", (50, 50)).save(f"{name}.png")
            found = Detections([[0, 0, 30 + number, 30]], [1.0], [0], ["a"])
            lines.append(to_json_line(name, found))
            Path(f"dots/{name}.txt").write_text(to_kitti(found))
        Path("dots.jsonl").write_text("\n".join(lines))
        for results in ("dots.jsonl", "dots"):
            got = figures(results, "dots.csv", "--overlap", "0.999")
            assert (got["n_true"], got["n_false"]) == (2, 0)

    def test_types_in_results_of_kitti(self) -> None:
        for path in [*Path("results").iterdir(), *Path("label_2").iterdir()]:
            path.write_text(path.read_text().replace("Car", "Pedestrian"))
        got = figures("results", "label_2", "--protocol", "kitti")
        assert got["category"] == "Pedestrian"
        assert got["easy"]["ap_40"] > 0.0
        path = Path("results/000000.txt")
        path.write_text(path.read_text() + path.read_text().replace("Pedestrian", "Cyclist"))
        result = evaluate("results", "label_2", status=1)
        assert (
            "the results are of Cyclist, Pedestrian: give category (--category)." in result.stderr
        )
        assert figures("results", "label_2", "--category", "pedestrian")["n_true"] == N_OBJECTS
        figures("results", "label_2", "--protocol", "faces", "--category", "Pedestrian")
        result = evaluate("results", "label_2", "--category", "Cow", status=1)
        assert "no detection is of 'Cow'; they are of Cyclist, Pedestrian." in result.stderr

    def test_case_of_categories(self) -> None:
        rows = Path("boxes.csv").read_text().replace(",Car", ",Van", 3).replace(",Car", ",CAR", 3)
        Path("mixed.csv").write_text(rows)
        call = ("r.jsonl", "mixed.csv", "--images", "image_2")
        for more in ([], ["--category", "car"]):
            assert figures(*call, *more)["n_objects"] == N_OBJECTS - 3

    def test_notes_when_nothing_matches(self) -> None:
        rows = Path("boxes.csv").read_text().replace(",Car", ",Van")
        Path("vans.csv").write_text(rows)
        result = evaluate("r.jsonl", "vans.csv", "--images", "image_2")
        assert "no annotated object is of Car, as detections are: all" in result.stderr
        result = evaluate("r.jsonl", "vans.csv", "--images", "image_2", "--category", "van")
        assert "the detections are of Car, not of 'van'." in result.stderr

    def test_headings_of_other_programs(self) -> None:
        for number, path in enumerate(sorted(Path("results").iterdir())):
            lines = path.read_text().splitlines()
            turned = [" ".join([*(f := line.split())[:3], "-10", *f[4:]]) for line in lines]
            path.write_text("\n".join(turned if number == 0 else lines))
        got = figures("results", "label_2", "--protocol", "kitti")
        assert got["easy"]["aos_40"] is None
        assert got["easy"]["ap_40"] > 0.0

    def test_many_headings(self) -> None:
        line = "Car -1 -1 {} 0 0 50 50 -1 -1 -1 -1000 -1000 -1000 -10 {}\n"
        turns = np.linspace(-3.1, 3.1, 500)
        Path("results/000000.txt").write_text(
            "".join(line.format(turn, i) for i, turn in enumerate(turns))
        )
        assert figures("results", "label_2")["n_false"] > 400


class TestProtocols:
    def test_kitti(self) -> None:
        got = figures("r.jsonl", "label_2", "--protocol", "kitti")
        assert got["category"] == "Car"
        assert got["overlap"] == 0.7
        assert got["easy"]["n_objects"] == N_OBJECTS
        # Precision is 1 as far as the few objects reach.
        assert set(got["easy"]["precision"]) <= {0.0, 1.0}
        assert got["easy"]["aos_11"] > 0.9 * got["easy"]["ap_11"] > 0.0
        assert (
            figures("r.jsonl", "label_2", "--protocol", "kitti", "--overlap", "0.5")["overlap"]
            == 0.5
        )

    def test_rules_of_kitti(self) -> None:
        lines = Path("r.jsonl").read_text().splitlines()
        Path("half.jsonl").write_text("\n".join(lines[:6]))
        call = ("half.jsonl", "label_2", "--protocol", "kitti")
        assert figures(*call) == figures(*call, "--rule", "official")
        assert figures(*call)["easy"]["n_objects"] == N_OBJECTS
        searched = sum(map(len, SCENES[:6]))
        assert figures(*call, "--rule", "reference")["easy"]["n_objects"] == searched

    def test_coco(self) -> None:
        got = figures("r.json", "label_2", "--protocol", "coco")
        assert got["ap"] == pytest.approx(1.0)
        assert got["ap_range"] == pytest.approx([1.0, 1.0])
        assert got["n_objects"] == N_OBJECTS

    def test_recall_by_view_and_ranges_are_printed(self) -> None:
        out = evaluate("r.jsonl", "label_2").stdout
        assert "Recall by view" in out
        assert "1.000 to 1.000" in out
        for name in VIEWS.names:
            assert name in out

    def test_hidden_cars_of_kitti(self) -> None:
        path = Path("label_2/000000.txt")
        line = path.read_text().splitlines()[0]
        path.write_text(path.read_text().replace("Car 0 0", "Car 0 3") + f"DontCare{line[3:]}\n")
        result = evaluate("r.jsonl", "label_2", "--json")
        assert "(--kitti-cars) and the protocol kitti do not ask for them" in result.stderr
        assert json.loads(result.stdout)["n_objects"] == N_OBJECTS
        result = evaluate("r.jsonl", "label_2", "--kitti-cars", "--clip", "--json")
        assert "Note" not in result.stderr
        assert json.loads(result.stdout)["n_objects"] == N_OBJECTS - len(SCENES[0])

    def test_faces(self) -> None:
        got = figures("r.jsonl", "boxes.csv", "--images", "image_2", "--protocol", "faces")
        assert got["n_false"] == 0  # the false alarms are too small to count
        one = figures(
            "r.jsonl", "boxes.csv", "--images", "image_2", "--protocol", "faces", "--rounds", "1"
        )
        assert one["ap"] == got["ap"] == pytest.approx(1.0)

    def test_fddb(self) -> None:
        got = figures("r.jsonl", "boxes.csv", "--images", "image_2", "--protocol", "fddb")
        assert got["n_faces"] == N_OBJECTS
        assert got["discrete"]["true_positive_rate"][-1] == 1.0
        assert got["discrete"]["false_positives"][-1] == len(SCENES)

    @pytest.mark.parametrize("protocol", ["voc", "faces", "kitti", "fddb", "coco"])
    def test_tables_and_plots(self, protocol) -> None:
        result = evaluate("r.jsonl", "label_2", "--protocol", protocol, "--plot", f"{protocol}.png")
        n_found = N_OBJECTS + len(SCENES)
        assert f"{n_found} detections in {len(SCENES)} pictures" in result.stdout
        assert f"The curves are in {protocol}.png." in result.stdout
        with Image.open(f"{protocol}.png") as picture:
            assert picture.width > 300

    def test_views_of_faces(self) -> None:
        views = Views.of_yaw((-60.0, 60.0))
        found = {}
        for number, scene in enumerate(SCENES):
            labels = views.label_of(scene.angles)
            found[f"{number:06d}.png"] = Detections(
                scene.boxes, np.ones(len(scene)), labels, views.names, views.angles, "Car"
            )
        Path("y.jsonl").write_text("\n".join(to_json_line(n, d) for n, d in found.items()))
        nearest = figures("y.jsonl", "label_2")["view_accuracy"]
        assert 0.5 < nearest < 1.0  # views do not end half-way between their headings
        assert figures("y.jsonl", "label_2", "--yaw-limits=-60,60")["view_accuracy"] == 1.0

    def test_synthetic_scenes(self, monkeypatch) -> None:
        class Nothing:
            def detect_many(self, images, *, n_jobs=None):
                return (Detections.empty(["a"]) for _ in images)

        monkeypatch.setattr(detection, "load_detector", lambda path: Nothing())
        result = evaluate("d.badacost", "synthetic:2:3")
        assert "0 detections in 2 pictures" in result.stdout
        assert "Detecting [" in result.stderr


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nothing.jsonl", "label_2"], "there is no 'nothing.jsonl'"),
            (["r.jsonl", "nothing"], "no such file or folder"),
            (["r.jsonl", "label_2", "label_2"], "is annotated twice"),
            (["image_2", "label_2"], "has no .txt files of results"),
            (["r.jsonl", "label_2", "--category", "Cow"], "no box to be found"),
            (["r.jsonl", "label_2", "--protocol", "kitti", "--category", "Cow"], "of 'Car'"),
            (["r.jsonl", "label_2", "--protocol", "faces", "--overlap", "0.6"], "--overlap is of"),
            (["r.jsonl", "label_2", "--protocol", "kitti", "--rounds", "2"], "--rounds is of"),
            (["r.jsonl", "label_2", "--protocol", "faces", "--category", "Car"], "is of no use"),
            (["r.jsonl", "label_2", "--protocol", "fddb", "--category", "Car"], "is of no use"),
            (["r.jsonl", "label_2", "--protocol", "coco", "--overlap", "0.6"], "is of no use"),
            (["r.jsonl", "label_2", "--rule", "reference"], "--rule is of no use for voc"),
            (["r.jsonl", "label_2", "--protocol", "kitti", "--kitti-cars"], "is of no use"),
            (["r.jsonl", "label_2", "--category", "Car", "--kitti-cars"], "leave out --category"),
            (["r.jsonl", "image_2", "--images", "image_2"], "pictures without annotations"),
            (["r.jsonl", "label_2", "--jobs", "0"], "--jobs must not be 0"),
            (["broken.jsonl", "label_2"], "line 1"),
            (["broken.json", "label_2"], "not JSON"),
            (["object.json", "label_2"], "must be a list"),
            (["binary.csv", "label_2"], "not a file of text"),
            (["other.jsonl", "label_2"], "no picture of the detections is annotated"),
            (["bad", "label_2"], "000000.txt: line 1"),
            (["r.jsonl", "label_2", "--plot", "curves.xyz"], "xyz"),
        ],
    )  # fmt: skip
    def test_one_line(self, arguments, message) -> None:
        Path("broken.jsonl").write_text("{")
        Path("broken.json").write_text("[")
        Path("object.json").write_text("{}")
        Path("binary.csv").write_bytes(b"\xff\xfe\x00")
        Path("other.jsonl").write_text(to_json_line("other.png", found_in(SCENES[0])))
        Path("bad").mkdir()
        Path("bad/000000.txt").write_text("Car 1 2\n")
        assert message in evaluate(*arguments, status=1).stderr

    def test_usage(self) -> None:
        evaluate("r.jsonl", "label_2", "--protocol", "best", status=2)
        evaluate("r.jsonl", status=2)
