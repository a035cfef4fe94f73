"""Real cars, faces and backgrounds: their annotations, and what is learned from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.linalg import subspace_angles

from badacost.detection.annotations import (
    Selection,
    Views,
    heading_of_yaw,
    read_annotations,
    read_kitti,
    read_table,
)
from badacost.detection.channels import (
    ChannelParameters,
    compute_channels,
    rgb_to_luv,
    triangle_filter,
)
from badacost.detection.decorrelation import learn_filters
from badacost.detection.pyramid import estimate_lambdas
from badacost.detection.reference import load_matlab
from experiments.cars import CarSettings, clean_names
from experiments.faces import FaceSettings, read_faces


@pytest.mark.parametrize(
    ("name", "n_images", "views"),
    [
        ("train.txt", 89, "0 0 2 7 34 45 21 15 2 1 3 2 1 1 3 75 70 15 11 1"),
        ("train_right.txt", 83, "10 0 8 19 10 42 42 25 31 31 1 0 2 4 37 185 103 39 9 2"),
        ("val.txt", 29, "0 4 4 9 29 18 7 4 1 0 2 0 1 0 1 31 17 6 7 0"),
    ],
)
def test_real_cars(shared, name, n_images, views):
    images = read_annotations(shared / "data/detection/kitti_cars" / name)
    assert len(images) == n_images
    assert all(image.image.is_file() for image in images)
    is_car = [np.array(image.categories) == "Car" for image in images]
    angles = np.concatenate([image[car].angles for image, car in zip(images, is_car, strict=True)])
    counts = np.histogram(angles, np.linspace(-180.0, 180.0, 21))[0]
    assert counts.tolist() == [int(count) for count in views.split()]


def test_last_pixel_ends_at_the_border(shared):
    """Cars cut off by the picture reach exactly to its end, given its last pixel."""
    images = read_kitti(shared / "data/detection/kitti_cars/val.txt")
    ends = [image.boxes[:, 2:] for image in images if image.measured().size == (375, 1242)]
    assert np.concatenate(ends).max(axis=0).tolist() == [1242.0, 375.0]


def test_synthetic_cars(shared):
    images = read_annotations(shared / "data/detection/vkitti_cars_synthetic/train.txt")
    assert (len(images), sum(map(len, images))) == (77, 688)
    angles = np.concatenate([image.angles for image in images])
    assert ((angles >= -180.0) & (angles < 180.0)).all()


@pytest.mark.parametrize(("part", "counts"), [("train", (155, 276)), ("val", (66, 106))])
def test_real_ellipses(shared, part, counts):
    folder = shared / "data/detection/fddb_faces"
    images = read_annotations(folder / f"FDDB-ellipseList-{part}.txt")
    assert (len(images), sum(map(len, images))) == counts
    assert all(image.image.is_file() for image in images)
    table = read_annotations(folder / f"faces-{part}.csv", columns={"yaw": "yaw_est"})
    for ellipses, boxes in zip(images, table, strict=True):
        assert ellipses.name == boxes.name
        assert np.allclose(ellipses.boxes, boxes.boxes, atol=0.006)


def test_real_faces(shared):
    images = read_annotations(shared / "data/detection/pascal_faces_mini/annotations.csv")
    assert (len(images), sum(map(len, images))) == (6, 14)
    assert all(image.image.is_file() for image in images)


@pytest.mark.parametrize(
    ("limits", "train", "val"),
    [
        ((-60, -20, 20, 60), [1, 26, 196, 49, 4], [3, 16, 75, 11, 1]),
        ((-45, -15, 15, 45), [7, 33, 166, 59, 11], [5, 18, 63, 18, 2]),
    ],
)
def test_views_of_real_faces(shared, limits, train, val):
    for part, counts in (("train", train), ("val", val)):
        table = shared / f"data/detection/fddb_faces/faces-{part}.csv"
        images = read_table(table, columns={"yaw": "yaw_est"})
        views = Views.of_yaw(limits)
        labels = np.concatenate([image.with_views(views).labels for image in images])
        assert np.bincount(labels).tolist() == counts


@pytest.mark.parametrize(("name", "n_images"), [("negatives_bsds", 205), ("negatives_voc2012", 59)])
def test_real_negatives(shared, name, n_images):
    folder = shared / "data/detection" / name
    images = read_annotations(folder / "train.txt")
    assert (len(images), sum(map(len, images))) == (n_images, 0)
    found = read_annotations(folder / "images")
    assert {image.image for image in images} == {image.image for image in found}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("train.txt", [309, 98, 177, 219]),
        ("train_right.txt", [600, 99, 379, 492]),
        ("val.txt", [141, 44, 88, 98]),
    ],
)
def test_difficulties_of_kitti(shared, name, counts):
    images = read_annotations(shared / "data/detection/kitti_cars" / name)
    levels = [
        Selection(["Car"]),
        Selection(["Car"], min_height=41, max_occlusion=0, max_truncation=0.15),
        Selection(["Car"], min_height=26, max_occlusion=1, max_truncation=0.3),
        Selection(["Car"], min_height=26, max_occlusion=2, max_truncation=0.5),
    ]
    found = [sum(len(level.apply(image).positives) for image in images) for level in levels]
    assert found == counts


def test_yaw_of_real_faces(shared):
    """The table holds the views that its authors found with the same limits."""
    lines = (shared / "data/detection/fddb_faces/faces-train.csv").read_text().splitlines()
    header = lines[0].split(",")
    columns = [header.index(name) for name in ("yaw_est", "view")]
    yaw, view = np.array([[line.split(",")[i] for i in columns] for line in lines[1:]]).T
    labels = Views.of_yaw().label_of(heading_of_yaw(yaw.astype(np.float64)))
    assert np.array_equal(labels + 1, view.astype(np.int64))


def car_windows(folder: Path, names: list[str], margin: int = 0) -> Iterator[np.ndarray]:
    """Cars of 48 pixels in windows of 118 x 160 within the image, its border repeated `margin`."""
    for name in names:
        with Image.open(folder / name) as image:
            pixels = np.asarray(image.convert("RGB"))
        padded = Image.fromarray(np.pad(pixels, ((margin,) * 2, (margin,) * 2, (0, 0)), "edge"))
        labels = (folder / name.replace("image", "label")).with_suffix(".txt").read_text()
        for kind, *numbers in map(str.split, labels.splitlines()):
            truncated, occluded, _, left, top, right, bottom = map(float, numbers[:7])
            if kind != "Car" or truncated > 0.3 or occluded > 1 or bottom - top < 25:
                continue
            centre = np.array([left + right, top + bottom]) / 2 + margin
            reach = (bottom - top) / 48 * np.array([160, 118]) / 2
            low, high = centre - reach, centre + reach
            if (low >= 0).all() and (high <= padded.size).all():
                box = (*low, *high)
                yield np.asarray(padded.resize((160, 118), Image.Resampling.BICUBIC, box))


def both_ways(image: np.ndarray) -> Iterator[np.ndarray]:
    """Channels of the middle 54 x 96 pixels of an image and of its mirror image."""
    for turned in (image, image[:, ::-1]):
        channels = compute_channels(rgb_to_luv(turned), ChannelParameters(shrink=2))
        yield triangle_filter(channels, 1)[:, 16:43, 16:64]


def test_published_filters_of_cars(shared) -> None:
    published = load_matlab(shared / "data" / "models" / "kitti_badacost.mat").filters
    folder = shared / "data" / "detection" / "kitti_cars"
    names = (folder / "train.txt").read_text().split()[::3]
    windows = [window for image in car_windows(folder, names) for window in both_ways(image)]
    assert len(windows) > 60
    found = learn_filters(windows)
    for ours, theirs in zip(found.swapaxes(0, 1), published.swapaxes(0, 1), strict=True):
        a, b = (part.reshape(len(part), -1).T.astype(np.float64) for part in (ours, theirs))
        assert np.degrees(subspace_angles(a, b).max()) < 5.0


def test_published_exponents_of_cars(shared) -> None:
    folder = shared / "data" / "detection" / "kitti_cars"
    names = (folder / "train.txt").read_text().split()[::3]
    names += (folder / "train_right.txt").read_text().split()[::18]
    windows = list(car_windows(folder, names, margin=512))
    assert len(windows) > 60
    found = estimate_lambdas(windows, ChannelParameters(shrink=2))
    assert found[0] == 0.0
    np.testing.assert_allclose(found, (0.0, 0.07393, 0.07247), rtol=0.15)


def test_cars_of_the_experiment(shared: Path) -> None:
    images = CarSettings(n_views=8).read(shared / "data" / "detection" / "kitti_cars", None)
    assert len(images.training) == 89 + 83 - 6
    assert len(images.test) == 29 - 2
    assert images.data["left_out"]["test"] == ["000008", "000025"]
    assert clean_names(images.test) == ["006961", "007328"]


def test_faces_of_the_experiment(shared: Path) -> None:
    images = read_faces(shared / "data" / "detection" / "fddb_faces", "train", FaceSettings().views)
    assert len(images) == 155
    labels = np.concatenate([image.labels for image in images])
    assert len(labels) == 276
    assert 9 <= (labels == -1).sum() <= 18  # 9 with a gap, 9 with a roll
    assert np.bincount(labels[labels >= 0])[2] > 100
