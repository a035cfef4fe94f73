"""Reads detectors that were published as MATLAB files.

These are the multi-view detectors of the paper's authors (BAdaCost, SAMME: one forest of label
trees; SubCat: an array of binary detectors) and the ACF and LDCF detectors of the toolbox that they
built on (one binary detector). A file from a user is untrusted: every number is checked
before it becomes part of a `Detector`.
"""

from __future__ import annotations

import math
import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.io.matlab import mat_struct

from badacost._utils.arrays import FloatArray
from badacost.detection.annotations.views import Views
from badacost.detection.cascade import Cascade
from badacost.detection.channels import (
    ChannelParameters,
    GradientParameters,
    HistogramParameters,
)
from badacost.detection.detector import MAX_CASCADES, Detector
from badacost.detection.matlab_file import is_matlab, read_variable
from badacost.detection.pyramid import PyramidParameters
from badacost.detection.suppression import Suppression
from badacost.io.budget import Budget, BudgetError
from badacost.io.model_file import ModelFileError, describe, refuse
from badacost.tree.forest import Forest

# Middles of the yaw ranges of the published face detectors, as headings.
_FACES = {
    "looks right": 15.0, "half right": 50.0, "front": 90.0, "half left": 130.0, "looks left": 165.0,
}  # fmt: skip
_MAX_CLASSES = 1024
_MAX_LEVELS = 12
_MAX_SIDE = 4096
_BYTES_OF_NODE = 200  # of a tree, with all that checks of it take at once
_KINDS: dict[str, Literal["greedy", "all", "none"]] = {
    "maxg": "greedy", "max": "all", "none": "none",
}  # fmt: skip


def load_detector(path: str | os.PathLike[str], *, max_memory: int | str | None = None) -> Detector:
    """Read a detector of this library, or one that was published as a MATLAB file.

    Parameters
    ----------
    path : str or path-like
        A file of `Detector.save`, or what `load_matlab` takes.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`.

    Returns
    -------
    Detector
        As it was saved or published.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        Where the file is damaged or holds no detector.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection import load_detector
    >>> from badacost.detection.models import synthetic_cars
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "cars.badacost")
    ...     synthetic_cars().save(path)
    ...     load_detector(path)
    Detector('Car' in 8 views, 1 cascade of 256 trees)
    """
    load = load_matlab if is_matlab(path) else Detector.load
    return load(path, max_memory=max_memory)


def load_matlab(path: str | os.PathLike[str], *, max_memory: int | str | None = None) -> Detector:
    """Read the variable ``detector`` of a version 5 to 7 MATLAB file, as the authors published.

    The detector has the pyramid, thresholds and suppression that are stored. Views of cars are
    named by their heading, views of faces by where in the image they look. A `ModelFileError` is
    raised where the file is damaged, takes more than `max_memory`, or needs what this library does
    not do.
    """
    budget = Budget.of(max_memory)
    contents = read_variable(path, "detector", budget)
    try:
        if contents.size > MAX_CASCADES:
            refuse(f"it has {contents.size} cascades, more than {MAX_CASCADES}")
        return _detector([_Struct(item) for item in contents.ravel()], budget)
    except BudgetError as error:
        raise ModelFileError(f"cannot read {describe(path)}: {error}.") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(
            f"{describe(path)} holds no detector that can be used: {error}"
        ) from error


class _Struct:
    """A MATLAB struct, whose fields are checked as they are read."""

    def __init__(self, item: Any):
        if isinstance(item, np.ndarray) and item.size == 1:  # an element of a cell array
            item = item.flat[0]
        if not isinstance(item, mat_struct):
            refuse("a part that should be a struct is not one")
        self._item = item

    def has(self, name: str) -> bool:
        return hasattr(self._item, name) and np.size(getattr(self._item, name)) > 0

    def array(self, name: str) -> NDArray[Any]:
        value = getattr(self._item, name, None)
        if not isinstance(value, np.ndarray):
            refuse(f"it lacks the field {name!r}")
        return value

    def struct(self, name: str) -> _Struct:
        value = self.array(name)
        if value.size != 1:
            refuse(f"the field {name!r} is not one struct")
        return _Struct(value)

    def numbers(self, name: str, ndim: int | None = None) -> FloatArray:
        value = self.array(name)
        if value.dtype.kind not in "fiub" or (ndim is not None and value.ndim != ndim):
            refuse(f"the field {name!r} does not hold numbers of the right shape")
        with np.errstate(invalid="ignore"):  # a NaN that signals: others are not warned of either
            return value.astype(np.float64)

    def vector(self, name: str, length: int) -> FloatArray:
        value = self.numbers(name).ravel()
        if len(value) != length or not np.isfinite(value).all():
            refuse(f"the field {name!r} does not hold {length} numbers")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        if default is not None and not self.has(name):
            return float(default)
        return float(self.vector(name, 1)[0])

    def whole(self, name: str, default: int | None = None) -> int:
        value = self.number(name, default)
        if not value.is_integer():
            refuse(f"the field {name!r} is not a whole number")
        return int(value)

    def wholes(self, name: str) -> tuple[int, int]:
        value = self.vector(name, 2)
        if not all(number.is_integer() for number in value.tolist()):
            refuse(f"the field {name!r} does not hold whole numbers")
        return int(value[0]), int(value[1])

    def text(self, name: str) -> str:
        value = self.array(name)
        if value.dtype.kind != "U" or value.size != 1:
            refuse(f"the field {name!r} is not text")
        return str(value.flat[0])


def _detector(structs: list[_Struct], budget: Budget) -> Detector:
    if not structs:
        refuse("the variable 'detector' is empty")
    first = structs[0].struct("opts")
    # Detectors of an array share the pyramid and the filters of the first one.
    pyramid = _pyramid(first.struct("pPyramid"))
    filters = _filters(first, pyramid.channels.n_channels)
    n_planes = pyramid.channels.n_channels * (1 if filters is None else len(filters))
    cell = pyramid.channels.shrink * (1 if filters is None else 2)
    cascades = [_cascade(struct, n_planes, cell, budget) for struct in structs]
    n_views = sum(cascade.n_views for cascade in cascades)
    category = _category(first)
    names, angles = _views(category, n_views)
    clf = structs[0].struct("clf")
    return Detector(
        pyramid=pyramid,
        cascades=cascades,
        names=names,
        filters=filters,
        stride=first.whole("stride"),
        suppression=_suppression(first.struct("pNms")),
        aspect_ratios=clf.vector("aRatio", n_views).tolist() if clf.has("aRatio") else None,
        angles=angles,
        category=category,
    )


def _pyramid(given: _Struct) -> PyramidParameters:
    chosen = given.struct("pChns")
    colour, magnitude, histogram = (
        chosen.struct(name) for name in ("pColor", "pGradMag", "pGradHist")
    )
    shrink = chosen.whole("shrink")
    for what, usable in (
        ("its colours are not LUV", colour.text("colorSpace") == "luv"),
        ("it has channels of its own", not chosen.has("pCustom")),
        ("it has HOG normalisation", histogram.whole("useHog", 0) == 0),
        ("its bins are not its cells", histogram.number("binSize", shrink) == shrink),
        ("its gradient is that of one colour", magnitude.whole("colorChn", 0) == 0),
        ("it leaves channels out", all(
            part.whole("enabled", 1) == 1 for part in (colour, magnitude, histogram)
        )),
    ):  # fmt: skip
        if not usable:
            refuse(f"{what}, which this library does not do")
    n_per_octave = given.whole("nPerOct")
    n_approximated = given.whole("nApprox", -1)
    lambdas = given.vector("lambdas", 3)
    return PyramidParameters(
        channels=ChannelParameters(
            shrink=shrink,
            smoothing=colour.whole("smooth"),
            gradient=GradientParameters(
                norm_radius=magnitude.whole("normRad"),
                norm_constant=magnitude.number("normConst"),
                full=bool(magnitude.whole("full", 0)),
            ),
            histogram=HistogramParameters(
                n_orientations=histogram.whole("nOrients"),
                soft=histogram.whole("softBin") % 2 == 1,
            ),
        ),
        n_per_octave=n_per_octave,
        n_octaves_up=given.whole("nOctUp"),
        n_approximated=n_per_octave - 1 if n_approximated < 0 else n_approximated,
        lambdas=(float(lambdas[0]), float(lambdas[1]), float(lambdas[2])),
        pad=given.wholes("pad"),
        min_size=given.wholes("minDs"),
        smoothing=given.whole("smooth"),
    )


def _filters(opts: _Struct, n_channels: int) -> NDArray[np.float32] | None:
    if not opts.has("filters"):
        return None
    given = opts.numbers("filters")
    given = given.reshape(*given.shape, *[1] * (4 - given.ndim))
    if given.ndim != 4 or given.shape[2] != n_channels:
        refuse(f"its filters are not for {n_channels} channels")
    with np.errstate(over="ignore"):  # infinity is refused
        return np.transpose(given, (3, 2, 0, 1)).astype(np.float32)


def _suppression(given: _Struct) -> Suppression:
    kind = given.text("type")
    if kind not in _KINDS:
        refuse(f"its suppression is of the unknown type {kind[:80]!r}")
    return Suppression(
        kind=_KINDS[kind],
        overlap=given.number("overlap"),
        denominator="min" if given.text("ovrDnm") == "min" else "union",
        per_class=bool(given.whole("separate", 0)),
    )


def _cascade(struct: _Struct, n_planes: int, cell: int, budget: Budget) -> Cascade:
    opts, clf = struct.struct("opts"), struct.struct("clf")
    padded = opts.wholes("modelDsPad")
    if not all(cell <= side <= _MAX_SIDE for side in padded):
        refuse(f"its window of {padded[0]:g} x {padded[1]:g} pixels is too small or too large")
    n_rows, n_columns = padded[0] // cell, padded[1] // cell
    budget.take(_BYTES_OF_NODE * clf.array("fids").size, "its trees")
    multi_class = clf.has("num_classes")
    if multi_class:
        costs, codes = clf.numbers("Cprime", 2), clf.numbers("Y", 2)
        n_classes = clf.whole("num_classes")
        if not 2 <= n_classes <= _MAX_CLASSES:
            refuse(f"it has {n_classes} classes, not 2 to {_MAX_CLASSES}")
        if costs.shape != (n_classes, n_classes) or codes.shape != costs.shape:
            refuse(f"its costs are not those of {n_classes} classes")
        with np.errstate(over="ignore", invalid="ignore"):
            margins = costs @ codes  # [view, label]
            table = margins[0][:, None] - margins[1:].T
        labels = clf.numbers("hs", 2) - 1
        weights = clf.vector("wl_weights", labels.shape[1])
    else:
        leaves = clf.numbers("hs", 2)
        table = leaves.reshape(-1, 1, order="F")
        labels = np.arange(leaves.size, dtype=np.float64).reshape(leaves.shape, order="F")
        weights = np.ones(leaves.shape[1])
    forest = Forest(
        **_nodes(clf, labels, len(table), (n_planes, n_rows, n_columns)),
        tree_weights=weights,
        table=np.ascontiguousarray(table),
        n_features=n_planes * n_rows * n_columns,
    )
    return Cascade(
        forest,
        window=opts.wholes("modelDs"),
        padded_window=padded,
        cell=cell,
        rejections=np.asarray(opts.number("cascThr")),
        min_score=0.0 if multi_class else -math.inf,
    )


def _nodes(
    clf: _Struct, values: FloatArray, n_values: int, shape: tuple[int, int, int]
) -> dict[str, Any]:
    """Nodes of a forest, from arrays with a tree in each column.

    Children count from 1, and 0 marks a leaf.
    """
    features, thresholds, children = (clf.numbers(name, 2) for name in ("fids", "thrs", "child"))
    if len({array.shape for array in (features, thresholds, children, values)}) != 1:
        refuse("the arrays of its nodes differ in shape")
    depth = clf.whole("treeDepth", 0)
    if depth > _MAX_LEVELS:
        refuse(f"its trees have more than {_MAX_LEVELS} levels of tests")
    number = np.arange(len(children))[:, None]
    if depth > 0:  # complete trees, whose children are not always stored
        stored = np.where(number + 1 < 2.0**depth, 2.0 * (number + 1), 0.0)
        children = np.broadcast_to(stored, children.shape)
    is_used = number <= children.max(axis=0)  # the rest is padding
    values = np.where(is_used, values, 0.0)
    for name, array, high in (
        ("features", features, math.prod(shape)),
        ("children", children, len(children)),
        ("labels", values, n_values),
    ):
        whole = (array == np.floor(array)).all()
        if not (whole and (array >= 0).all() and (array < high).all()):
            refuse(f"the {name} of its nodes are not whole numbers from 0 to {high - 1}")
    feature, threshold, child, value, place = (
        np.broadcast_to(array, is_used.shape).T[is_used.T]
        for array in (features, thresholds, children, values, number)
    )
    _, n_rows, n_columns = shape
    # Published windows are numbered column by column, ours row by row.
    plane_and_column, row = np.divmod(feature.astype(np.int64), n_rows)
    plane, column = np.divmod(plane_and_column, n_columns)
    leaf = child == 0
    nothing = np.zeros(len(leaf), np.float32)
    return {
        "feature": np.where(leaf, 0, (plane * n_rows + row) * n_columns + column).astype(np.int32),
        "threshold": np.where(leaf, np.nan, threshold),
        "left": np.where(leaf, place, child - 1).astype(np.int32),
        "missing_left": np.ones(len(leaf), np.bool_),
        "value": value.astype(np.int32),
        "gain": nothing,
        "count": nothing.astype(np.int32),
        "weight": nothing,
        "offsets": np.concatenate([[0], np.cumsum(is_used.sum(axis=0), dtype=np.int64)]),
    }


def _category(opts: _Struct) -> str:
    """Name of the objects: that of the first labels they were trained with, without a number."""
    if opts.has("pLoad") and opts.struct("pLoad").has("lbls"):
        labels = opts.struct("pLoad").array("lbls").ravel()
        label = labels[0] if len(labels) else ""
        name = str(label.flat[0] if isinstance(label, np.ndarray) and label.size else label)
        return name.rstrip("0123456789").capitalize()[:80] or "object"
    return "object"


def _views(category: str, n_views: int) -> tuple[list[str], list[float] | None]:
    """Names and headings of the views."""
    if category == "Car" and n_views > 1:
        views = Views.around(n_views)
        return list(views.names), list(views.angles)
    if category == "Face" and n_views == len(_FACES):
        return list(_FACES), list(_FACES.values())
    return [f"view {view + 1}" for view in range(n_views)], None
