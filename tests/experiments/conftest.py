"""Synthetic tables and images in the layouts of the experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from badacost.detection.annotations import AnnotatedImage
from badacost.detection.scenes import make_scenes
from tests.uci_tables import write_tables


def _scenes(n_images: int, seed: int) -> list[AnnotatedImage]:
    return make_scenes(n_images, n_views=2, size=(120, 200), random_state=seed)


def _save(image: AnnotatedImage, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image.load()).save(path)


@pytest.fixture(scope="session")
def uci_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in the place of two of UCI's."""
    return write_tables(tmp_path_factory.mktemp("uci"))


@pytest.fixture(scope="session")
def kitti_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six training images, one of them from the right camera, and three test images."""
    folder = tmp_path_factory.mktemp("kitti")
    lists: dict[str, list[str]] = {"train": [], "train_right": [], "val": []}
    for number, image in enumerate(_scenes(9, 0)):
        part = "val" if number >= 6 else "train_right" if number == 5 else "train"
        camera = 3 if part == "train_right" else 2
        stem = f"{6730 + number:06d}"
        _save(image, folder / f"image_{camera}" / f"{stem}.png")
        labels = folder / f"label_{camera}" / f"{stem}.txt"
        labels.parent.mkdir(exist_ok=True)
        rows = [
            f"Car 0 0 {np.radians(angle):.4f} {x1} {y1} {x2 - 1} {y2 - 1} 1 1 1 0 0 9 0"
            for (x1, y1, x2, y2), angle in zip(image.boxes, image.angles, strict=True)
        ]
        rows.append("DontCare -1 -1 -10 0 0 5 5 -1 -1 -1 -1000 -1000 -1000 -10")
        labels.write_text("\n".join(rows) + "\n")
        lists[part].append(f"image_{camera}/{stem}.png")
    for part, names in lists.items():
        (folder / f"{part}.txt").write_text("\n".join(names) + "\n")
    return folder


@pytest.fixture(scope="session")
def faces_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six training and three test images with ellipses, and two without "faces" beside them."""
    folder = tmp_path_factory.mktemp("detection") / "faces"
    for part, n_images, seed in (("train", 6, 1), ("val", 3, 2)):
        rows = ["image,x1,y1,x2,y2,yaw_est,roll_est,yaw_flip_gap"]
        ellipses = []
        for number, image in enumerate(_scenes(n_images, seed)):
            name = f"{part}/img_{number}"
            _save(image, folder / "images" / f"{name}.png")
            ellipses += [name, str(len(image))]
            for (x1, y1, x2, y2), angle in zip(image.boxes, image.angles, strict=True):
                yaw = (angle + 90.0) % 360.0 - 180.0
                rows.append(f"{name},{x1},{y1},{x2},{y2},{yaw:.1f},3.0,1.5")
                half_height, half_width = (y2 - y1) / 2, (x2 - x1) / 2
                centre = f"{(x1 + x2) / 2} {(y1 + y2) / 2}"
                ellipses.append(f"{half_height} {half_width} {np.pi / 2} {centre} 1")
        (folder / f"faces-{part}.csv").write_text("\n".join(rows) + "\n")
        (folder / f"FDDB-ellipseList-{part}.txt").write_text("\n".join(ellipses) + "\n")
    empty = make_scenes(2, size=(120, 200), objects_per_image=0, random_state=3)
    for number, image in enumerate(empty):
        _save(image, folder.parent / "negatives_bsds" / f"{number}.png")
    return folder
