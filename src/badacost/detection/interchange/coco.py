"""Detections to and from JSON of COCO: records of results, and whole documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from badacost.detection.annotations.source import described
from badacost.detection.boxes import Detections, check_same_views
from badacost.detection.interchange.records import (
    Rows,
    checked_box,
    checked_image,
    checked_list,
    checked_number,
)

_NEEDED = ("image_id", "category_id", "bbox", "score")


def to_coco(
    detections: Detections,
    image_id: int | str | None = None,
    category_ids: Sequence[int] | None = None,
) -> list[dict[str, Any]]:
    """Return the detections of an image as records of a COCO results file.

    Parameters
    ----------
    detections : Detections
        What was found in the image.
    image_id : int or str, optional
        The image; by default the name of the source of the detections.
    category_ids : sequence of int, optional
        ``category_id`` of each view. By default 1 for all of them: they are views of one category.

    Returns
    -------
    list of dict
        ``image_id``, ``category_id``, ``bbox`` (x, y, width, height), ``score``, and what other
        readers of the format ignore: ``view``, the name of the view, and ``angle``, its heading in
        degrees where it is known.

    Examples
    --------
    >>> from badacost.detection.boxes import Detections
    >>> from badacost.detection.interchange import to_coco
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"])
    >>> to_coco(found, image_id=7)
    [{'image_id': 7, 'category_id': 1, 'bbox': [1.0, 2.0, 3.0, 4.0], 'score': 0.5, 'view': 'front'}]
    """
    if image_id is None:
        if detections.source is None:
            raise ValueError("the source of the detections is not known: give image_id.")
        image_id = detections.source.name
    image_id = _checked_id(image_id, "image_id")
    ids = _checked_category_ids(category_ids, len(detections.names))
    views: list[dict[str, Any]] = [{"view": name} for name in detections.names]
    for view, angle in zip(views, detections.angles or (), strict=False):
        view["angle"] = angle
    return [
        {"image_id": image_id, "category_id": ids[label], "bbox": [*box[:2], *size], "score": score}
        | views[label]
        for box, size, score, label in zip(
            detections.boxes.tolist(),
            detections.sizes.tolist(),
            detections.scores.tolist(),
            detections.labels.tolist(),
            strict=True,
        )
    ]


def coco_document(
    images: Mapping[str, Detections], *, first_image: int = 1, first_annotation: int = 1
) -> dict[str, Any]:
    """Return the detections of images as a whole document of COCO.

    Parameters
    ----------
    images : mapping of str to Detections
        What was found in each image, all of the same views.
    first_image, first_annotation : int, default=1
        Where the numbers of images and of detections begin, for a document that is written in
        parts.

    Returns
    -------
    dict
        ``images``, also those without detections, ``annotations`` as `to_coco` makes them, with
        ``id``, ``area`` and ``iscrowd``, and ``categories``: one, with the names and angles of its
        views. Labelling tools, and `badacost.detection.annotations.read_coco`, read it as
        annotations.

    Examples
    --------
    >>> from badacost.detection import Detections
    >>> from badacost.detection.interchange import coco_document, from_coco
    >>> found = Detections([[1, 2, 4, 6]], [0.5], [0], names=["front"], category="Face")
    >>> document = coco_document({"a.png": found, "b.png": found[:0]})
    >>> document["images"]
    [{'id': 1, 'file_name': 'a.png'}, {'id': 2, 'file_name': 'b.png'}]
    >>> document["categories"]
    [{'id': 1, 'name': 'Face', 'views': ['front'], 'angles': None}]
    >>> {name: len(boxes) for name, boxes in from_coco(document).items()}
    {'a.png': 1, 'b.png': 0}
    """
    check_same_views(images.values())
    heads: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    categories: list[dict[str, Any]] = []
    for name, detections in images.items():
        image_id = first_image + len(heads)
        head: dict[str, Any] = {"id": image_id, "file_name": checked_image(name, "image")}
        if detections.source is not None:
            head["height"], head["width"] = detections.source.size
        heads.append(head)
        for record in to_coco(detections, image_id):
            _, _, width, height = record["bbox"]
            number = first_annotation + len(records)
            records.append({"id": number} | record | {"area": width * height, "iscrowd": 0})
        categories = [_category_record(detections)]
    return {"images": heads, "annotations": records, "categories": categories}


def from_coco(
    results: Iterable[Mapping[str, Any]] | Mapping[str, Any],
    names: Sequence[str] | None = None,
    category_ids: Sequence[int] | None = None,
    angles: Sequence[float] | None = None,
    category: str | None = None,
) -> dict[int | str, Detections]:
    """Return the detections in records of a COCO results file, or in a document.

    Parameters
    ----------
    results : iterable of mappings, or mapping
        Records as `to_coco` makes them, or another tool without ``view``; or a document with
        ``images``, ``annotations`` and perhaps ``categories``, as `coco_document` makes it.
    names : sequence of str, optional
        Name of each view. By default, or if there are none, those that the categories of a document
        list, or the different ones of the records: a record without ``view`` has one named after
        its category.
    category_ids : sequence of int, optional
        ``category_id`` of each of the `names`; 1 for all of them by default.
    angles : sequence of float, optional
        Heading of each of the `names` in degrees.
    category : str, optional
        What all the views are of; by default the category of a document that has only one, or
        "object".

    Returns
    -------
    dict of int or str to Detections
        What was found in each image: by the file names of a document in their order, also of images
        without detections; by ``image_id`` in the order of bare records.

    Raises
    ------
    ValueError
        Where a record is not as expected; the message has its number, counted from 0.

    Examples
    --------
    >>> from badacost.detection.interchange import from_coco
    >>> records = [{"image_id": 7, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5}]
    >>> found = from_coco(records, names=["front", "left"], category_ids=[2, 3])
    >>> found[7].boxes, found[7].views
    (array([[1., 2., 4., 6.]]), ['left'])
    """
    if not names and (category_ids or angles):
        raise ValueError("names must be given where category_ids or angles are.")
    document = _Document.of(results)
    if category is not None:
        document = document.of_category(category)
    if names:
        ids = _checked_category_ids(category_ids, len(names))
        views = _Views(list(names), ids, None if angles is None else list(angles))
    else:
        views = document.views()
    if category is None:
        known = list(document.categories.values())
        category = known[0]["name"] if len(known) == 1 else "object"
    kind = Detections.empty(views.names, views.angles, category)
    rows: dict[int | str, Rows] = {image_id: Rows() for image_id in document.images or ()}
    for where, record in document.records:
        image_id = _checked_id(record["image_id"], f"{where}: image_id")
        if document.images is None:
            rows.setdefault(image_id, Rows())
        elif image_id not in rows:
            raise ValueError(f"{where}: image_id {described(image_id)} is not the id of an image.")
        x, y, width, height = checked_list(record["bbox"], 4, f"{where}: bbox")
        box = checked_box([x, y, x + width, y + height], where)
        score = checked_number(record["score"], f"{where}: score")
        rows[image_id].add(box, score, views.label_of(record, where))
    found = {image_id: part.detections(kind) for image_id, part in rows.items()}
    if document.images is None:
        return found
    return {document.images[image_id]: detections for image_id, detections in found.items()}


@dataclass
class _Views:
    """Views, with the category and the angle of each."""

    names: list[str]
    category_ids: list[int]
    angles: list[float] | None

    def label_of(self, record: Mapping[str, Any], where: str) -> int:
        """Return the view of a record: the one it names, or the only one of its category."""
        category_id = _checked_category_id(record, where)
        labels, view = self._labels.get(category_id), record.get("view")
        if labels is None:
            raise ValueError(f"{where}: category_id {category_id} is not that of a view.")
        if view is None and len(labels) == 1:
            return next(iter(labels.values()))
        if not isinstance(view, str) or view not in labels:
            raise ValueError(f"{where}: view must be one of the names of its category_id.")
        return labels[view]

    @cached_property
    def _labels(self) -> dict[int, dict[str, int]]:
        """Labels of the views of each category, by their names."""
        labels: dict[int, dict[str, int]] = {}
        for label, (category_id, name) in enumerate(
            zip(self.category_ids, self.names, strict=True)
        ):
            labels.setdefault(category_id, {})[name] = label
        return labels


@dataclass
class _Document:
    """Checked parts of a document; bare records have no images and no categories."""

    records: list[tuple[str, Mapping[str, Any]]]
    images: dict[int | str, str] | None = None
    categories: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Any) -> _Document:
        """Return the parts of a document, or of bare records."""
        if not isinstance(results, Mapping):
            return cls(_checked_records(results, "records", _NEEDED))
        images: dict[int | str, str] = {}
        for where, record in _checked_records(results.get("images"), "images", ("id", "file_name")):
            image_id = _checked_id(record["id"], f"{where}: id")
            if image_id in images:
                raise ValueError(
                    f"{where}: the id {described(image_id)} is that of an earlier image."
                )
            images[image_id] = checked_image(record["file_name"], f"{where}: file_name")
        if len(set(images.values())) < len(images):
            raise ValueError("two images have the same file_name: give each its own.")
        categories: dict[int, Mapping[str, Any]] = {}
        for where, record in _checked_records(
            results.get("categories", []), "categories", ("id", "name")
        ):
            number = record["id"]
            if isinstance(number, bool) or not isinstance(number, int):
                raise ValueError(f"{where}: id must be an integer; got {described(number)}.")
            if not isinstance(record["name"], str):
                raise ValueError(f"{where}: name must be text; got {described(record['name'])}.")
            categories[number] = record
        return cls(
            _checked_records(results.get("annotations"), "annotations", _NEEDED), images, categories
        )

    def of_category(self, name: str) -> _Document:
        """Return what is of a category, if the document has one of that name; else everything."""
        own = {
            number: record
            for number, record in self.categories.items()
            if record["name"].casefold() == name.casefold()
        }
        if not own or len(own) == len(self.categories):
            return self
        kept = [each for each in self.records if each[1].get("category_id") in own]
        return replace(self, records=kept, categories=own)

    def views(self) -> _Views:
        """Return the views that the categories list, or those that occur."""
        listed = [record for record in self.categories.values() if "views" in record]
        if len(self.categories) == 1 and listed:
            return _listed_views(listed[0])
        angles: dict[tuple[int, str | None], Any] = {}
        for where, record in self.records:
            view = record.get("view")
            if not isinstance(view, str | None):
                raise ValueError(f"{where}: view must be text; got {described(view)}.")
            key = _checked_category_id(record, where), view
            angle = record.get("angle")
            if angle is not None:
                angle = checked_number(angle, f"{where}: angle")
            if angles.setdefault(key, angle) != angle:
                raise ValueError(f"{where}: angle must be {angles[key]}, the one of its view.")
        keys = sorted(angles, key=lambda key: key[0])
        known = [angles[key] for key in keys]
        return _Views(
            [self._name(*key) for key in keys],
            [category_id for category_id, _ in keys],
            None if not known or None in known else known,
        )

    def _name(self, category_id: int, view: str | None) -> str:
        """Return the name of a view, or that of its category."""
        record = self.categories.get(category_id, {"name": f"category {category_id}"})
        return view or str(record["name"])


def _listed_views(record: Mapping[str, Any]) -> _Views:
    """Return the views of a category as `coco_document` lists them."""
    names, angles = record["views"], record.get("angles")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the views of a category must be a list of names.")
    if angles is not None:
        angles = checked_list(angles, len(names), "the angles of a category")
    return _Views(names, [record["id"]] * len(names), angles)


def _category_record(detections: Detections) -> dict[str, Any]:
    """Return the category that all views are of."""
    angles = None if detections.angles is None else list(detections.angles)
    views = {"views": list(detections.names), "angles": angles}
    return {"id": 1, "name": detections.category} | views


def _checked_records(
    records: Any, what: str, needed: Sequence[str]
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return where each record is, and the record, if it has what is needed."""
    if isinstance(records, str | Mapping) or not isinstance(records, Iterable):
        part = "" if what == "records" else f"{what}: "
        raise ValueError(f"{part}records must be a list; got {described(records)}.")
    checked = []
    for number, record in enumerate(records):
        where = f"{'record' if what == 'records' else what} {number}"
        if not isinstance(record, Mapping):
            raise ValueError(f"{where}: expected an object; got {described(record)}.")
        missing = [key for key in needed if key not in record]
        if missing:
            raise ValueError(f"{where}: {missing[0]} is missing; every record needs it.")
        checked.append((where, record))
    return checked


def _checked_id(image_id: Any, what: str) -> int | str:
    """Return an integer of Python or a string."""
    if isinstance(image_id, str):
        return image_id
    if isinstance(image_id, bool | np.bool_) or not isinstance(image_id, Integral):
        raise ValueError(f"{what} must be an integer or a string; got {described(image_id)}.")
    return int(image_id)


def _checked_category_id(record: Mapping[str, Any], where: str) -> int:
    """Return the category of a record."""
    category_id = record["category_id"]
    if isinstance(category_id, bool | np.bool_) or not isinstance(category_id, Integral):
        raise ValueError(f"{where}: category_id must be an integer; got {described(category_id)}.")
    return int(category_id)


def _checked_category_ids(category_ids: Any, n_views: int) -> list[int]:
    """Return the COCO category of each view."""
    if category_ids is None:
        return [1] * n_views
    ids = list(category_ids)
    if len(ids) != n_views or not all(isinstance(i, Integral) for i in ids):
        raise ValueError(f"category_ids must be an integer for each of the {n_views} names.")
    return [int(i) for i in ids]
