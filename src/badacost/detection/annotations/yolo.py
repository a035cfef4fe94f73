"""Annotations of YOLO: a text file in ``labels`` for each picture in ``images``.

A line is ``class centre_x centre_y width height``, the class counted from 0, the others divided by
the size of the picture, which is therefore read from its file. A picture without a text file has no
objects. ``data.yaml`` names the classes and the folders or lists of the parts of the data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.rows import Rows
from badacost.detection.annotations.source import (
    Place,
    described,
    is_image_list,
    listed_images,
    read_lines,
    read_text,
)
from badacost.detection.boxes import check_name
from badacost.detection.images import find_images, size_of_file
from badacost.io.budget import Budget

_N_FIELDS = 5
_NAMES_FILES = ("classes.txt", "obj.names", "classes.names")
_YAML_FILES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_YAML_SUFFIXES = (".yaml", ".yml")
# Of the parts of YAML, by what begins or ends them.
_BYTES_OF_NODE = dict.fromkeys((b"\n", b",", b":", b"[", b"{", b"- ", b"*", b"&", b"?"), 400)


def read_yolo(
    path: str | os.PathLike[str],
    *,
    images: str | os.PathLike[str] | None = None,
    names: Sequence[str] | None = None,
    split: str = "train",
    max_memory: int | str | None = None,
) -> list[AnnotatedImage]:
    r"""Read annotations of YOLO.

    Parameters
    ----------
    path : str or path-like
        ``data.yaml``, or a folder with it; the folder of label files; a folder with ``images`` and
        ``labels`` inside; or a list of pictures, one to a line, in a folder ``images`` whose labels
        lie in ``labels`` beside it.
    images : str or path-like, optional
        Folder of the pictures; by default the one beside the labels with ``images`` in its path
        where theirs has ``labels``. They are needed: sizes in the labels are parts of theirs.
    names : sequence of str, optional
        Name of each class. By default those in ``data.yaml``, or the lines of ``classes.txt``,
        ``obj.names`` or ``classes.names``, in the folder of the labels or the one above, or above
        ``labels``; without it, the numbers.
    split : str, default="train"
        Which part of ``data.yaml`` to read, as "val"; other sources have no parts.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    list of AnnotatedImage
        All pictures, those in a folder sorted.

    Raises
    ------
    AnnotationError
        Where a line is not as expected, or labels are without a picture.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from badacost.detection.annotations import read_yolo
    >>> with TemporaryDirectory() as folder:
    ...     images, labels = Path(folder, "images"), Path(folder, "labels")
    ...     for part in (images, labels):
    ...         part.mkdir()
    ...     Image.new("RGB", (200, 100)).save(images / "a.png")
    ...     size = (labels / "a.txt").write_text("1 0.5 0.5 0.2 0.4\n")
    ...     (picture,) = read_yolo(folder, names=["person", "car"])
    >>> picture.categories, picture.boxes
    (('car',), array([[ 80.,  30., 120.,  70.]]))
    """
    path, budget = Path(path), Budget.of(max_memory)
    data = _data_file(path, budget)
    if data is not None:
        if images is not None:
            raise ValueError("images must not be given with data.yaml, which names them itself.")
        pairs = data.pairs(split)
        known = data.names
    elif is_image_list(path, budget):
        pairs = list(_listed_pairs(path, images, budget))
        known = _names_beside([path.parent], budget)
    else:
        if (path / "labels").is_dir() and (path / "images").is_dir():
            path = path / "labels"
        pairs = _pairs_of_folder(path, _images_folder(path, images))
        above = path.absolute().parent
        folders = [path, above, *([above.parent] if above.name == "labels" else [])]
        known = _names_beside(folders, budget)
    names = names or known
    for name in names or []:
        check_name("a name", name)
    return [_read_pair(image, labels, names, budget) for image, labels in pairs]


def yaml_file_in(folder: Path) -> Path | None:
    """Return the description of the data in a folder, if there is one."""
    return next((folder / name for name in _YAML_FILES if (folder / name).is_file()), None)


@dataclass(frozen=True)
class _DataFile:
    """Checked contents of ``data.yaml``."""

    place: Place
    entries: dict[str, Any]
    places: dict[str, Place]
    budget: Budget

    @classmethod
    def read(cls, path: Path, budget: Budget) -> _DataFile:
        """Read a file; all that is no list or mapping stays text."""
        yaml = _import_yaml()
        place = Place(path)
        text = read_text(path, budget, _BYTES_OF_NODE)
        try:
            loader = yaml.BaseLoader(text)
            root = loader.get_single_node()
            entries = None if root is None else loader.construct_document(root)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = place if mark is None else place.at(f"line {mark.line + 1}")
            problem = " ".join(str(getattr(error, "problem", None) or "it cannot be read").split())
            where.refuse(f"this is not YAML: {problem:.200}")
        except RecursionError:
            place.refuse("lists are nested too deep for a description of data")
        if not isinstance(entries, dict):
            place.refuse("expected entries such as names and train")
        places = {
            key.value: place.at(f"line {key.start_mark.line + 1}")
            for key, _ in root.value
            if isinstance(key.value, str)
        }
        return cls(place, entries, places, budget)

    @property
    def names(self) -> list[str] | None:
        """Names of the classes, given as a list or by their numbers."""
        names = self.entries.get("names")
        if names in (None, ""):
            return None
        here = self.places["names"]
        if isinstance(names, dict):
            numbers = [here.integer(str(key), "the number of a name") for key in names]
            if sorted(numbers) != list(range(len(numbers))):
                here.refuse("names must be numbered 0, 1, 2, ... without a gap")
            names = [name for _, name in sorted(zip(numbers, names.values(), strict=True))]
        if not isinstance(names, list):
            here.refuse(f"names must be a list; got {described(names)}")
        checked = [here.category(name) for name in names]
        count = self.entries.get("nc")
        if count is not None and str(count) != str(len(checked)):
            self.places["nc"].refuse(
                f"nc is {described(count)}, but there are {len(checked)} names"
            )
        return checked

    def pairs(self, split: str) -> list[tuple[Path, Path]]:
        """Return the pictures of a part of the data, and where their labels are."""
        given = self.entries.get(split)
        if given in (None, ""):
            known = [name for name in ("train", "val", "test") if self.entries.get(name)]
            self.place.refuse(
                f"there is no part {split!r:.80}; it has {', '.join(known) or 'none'}"
            )
        here = self.places[split]
        pairs: list[tuple[Path, Path]] = []
        for item in given if isinstance(given, list) else [given]:
            if not isinstance(item, str) or not item or not item.isprintable():
                here.refuse(
                    f"{split} must be a folder or a list of pictures; got {described(item)}"
                )
            found = self._found(item, here)
            if found.is_dir():
                pairs += [(image, _labels_of_listed(image, here)) for image in find_images(found)]
            else:
                pairs += _listed_pairs(found, None, self.budget)
        if not pairs:
            here.refuse(f"there are no pictures in {split!r:.80}")
        return pairs

    def _found(self, item: str, place: Place) -> Path:
        """Return a folder or a list, named from the folder of the file or from its `path`."""
        folder = self.place.path.parent
        root = self.entries.get("path")
        roots = [folder / root, folder] if isinstance(root, str) and root else [folder]
        # Some tools write ../train/images for what is beside the file.
        items = [item, item.removeprefix("../")]
        for candidate in (root / name for name in items for root in roots):
            with suppress(OSError):  # a name that is too long for the system
                if candidate.is_dir() or is_image_list(candidate, self.budget):
                    return candidate
        place.refuse(
            f"there is no folder or list of pictures {item!r:.200}: set path to the data's folder"
        )


def _data_file(path: Path, budget: Budget) -> _DataFile | None:
    """Return the description of the data that a path names, if it does."""
    if path.suffix.lower() in _YAML_SUFFIXES and not path.is_dir():
        return _DataFile.read(path, budget)
    if path.is_dir() and not ((path / "labels").is_dir() and (path / "images").is_dir()):
        beside = yaml_file_in(path)
        return None if beside is None else _DataFile.read(beside, budget)
    return None


def _import_yaml() -> Any:
    """Return the package yaml, or say how to install it."""
    try:
        import yaml
    except ImportError as error:
        raise ImportError(
            'data.yaml needs PyYAML: run pip install "badacost[detection]".'
        ) from error
    return yaml


def label_file_of(image: Path) -> Path | None:
    """Return where YOLO keeps the labels of a picture, if it is inside a folder ``images``."""
    parts = list(image.absolute().parts)
    if "images" not in parts[:-1]:
        return None
    parts[len(parts) - 2 - parts[-2::-1].index("images")] = "labels"
    return Path(*parts).with_suffix(".txt")


def _listed_pairs(
    path: Path, images: str | os.PathLike[str] | None, budget: Budget
) -> Iterator[tuple[Path, Path]]:
    """Yield the pictures of a list, and where their labels are."""
    for place, image in listed_images(path, budget, images):
        yield image, _labels_of_listed(image, place)


def _labels_of_listed(image: Path, place: Place) -> Path:
    """Return the label file of a picture in a list."""
    labels = label_file_of(image)
    if labels is None and image.with_suffix(".txt").is_file():
        return image.with_suffix(".txt")
    if labels is None:
        place.refuse("expected a picture in a folder images, with labels in labels beside it")
    return labels


def _images_folder(labels: Path, images: str | os.PathLike[str] | None) -> Path:
    """Return the folder of the pictures."""
    if not labels.is_dir():
        Place(labels).refuse("expected a folder of label files, or a list of pictures")
    if images is not None:
        return Path(images)
    parts = list(labels.absolute().parts)
    if "labels" not in parts:
        Place(labels).refuse("the folder is not in one named labels: give images, the pictures")
    parts[len(parts) - 1 - parts[::-1].index("labels")] = "images"
    return Path(*parts)


def _pairs_of_folder(labels: Path, images: Path) -> list[tuple[Path, Path]]:
    """Return all pictures with where their labels are; raise for labels without a picture."""
    pairs = [
        (image, (labels / image.relative_to(images)).with_suffix(".txt"))
        for image in find_images(images)
    ]
    known = {file for _, file in pairs}
    for file in sorted(labels.rglob("*.txt")):
        if file not in known and file.name not in _NAMES_FILES:
            Place(file).refuse(f"there is no picture of this name in {os.fspath(images)!r:.300}")
    return pairs


def _names_beside(folders: Sequence[Path], budget: Budget) -> list[str] | None:
    """Return the names of the classes, if there is a file of them."""
    for folder in folders:
        data = yaml_file_in(folder)
        if data is not None:
            return _DataFile.read(data, budget).names
        for file in _NAMES_FILES:
            if (folder / file).is_file():
                lines = read_lines(folder / file, budget)
                return [place.category(line) for place, line in lines]
    return None


def _read_pair(
    image: Path, labels: Path, names: Sequence[str] | None, budget: Budget
) -> AnnotatedImage:
    """Read the labels of one picture."""
    height, width = size_of_file(image, budget)
    rows = Rows()
    for place, line in read_lines(labels, budget) if labels.is_file() else []:
        fields = line.split()
        if len(fields) != _N_FIELDS:
            place.refuse(
                f"expected the {_N_FIELDS} fields of a YOLO box; got {len(fields)}: export boxes"
            )
        number = place.integer(fields[0], "the class")
        if names is not None and number >= len(names):
            place.refuse(f"the class must be one of {len(names)}, counted from 0; got {number}")
        x, y, w, h = (
            place.number(text, f"field {i}", 0.0, 1.0) for i, text in enumerate(fields[1:], start=2)
        )
        rows.add(
            place.box(
                (x - w / 2.0) * width,
                (y - h / 2.0) * height,
                (x + w / 2.0) * width,
                (y + h / 2.0) * height,
            ),
            category=str(number) if names is None else names[number],
        )
    return rows.annotated(image, image.name, (height, width))
