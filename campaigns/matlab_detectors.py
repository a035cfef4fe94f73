"""Published layouts of detectors as MATLAB files, made up."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import savemat

N_TREES = 4


def trees_of_labels(rng: np.random.Generator, n_features: int, n_classes: int) -> dict[str, Any]:
    """Node arrays [nodes x trees] of trees of five nodes, and one padded root, as trained."""
    shape = (7, N_TREES)
    child = np.zeros(shape)
    child[:2] = [[2], [4]]
    child[:, -1] = 0
    return {
        "fids": rng.integers(0, n_features, shape).astype(np.uint32),
        "thrs": rng.normal(0.1, 0.1, shape).astype(np.float32),
        "child": child.astype(np.uint32),
        "hs": np.where(np.arange(7)[:, None] < 5, rng.integers(1, n_classes + 1, shape), 0) * 1.0,
        "depth": np.zeros(shape),
        "treeDepth": 0,
    }


def binary_trees(rng: np.random.Generator, n_features: int) -> dict[str, Any]:
    """Complete trees of two levels of tests."""
    shape = (7, N_TREES)
    return {
        "fids": rng.integers(0, n_features, shape).astype(np.uint32),
        "thrs": rng.normal(0.1, 0.1, shape).astype(np.float32),
        "child": np.repeat([[2], [4], [6], [0], [0], [0], [0]], N_TREES, 1).astype(np.uint32),
        "hs": rng.normal(size=shape).astype(np.float32),
        "treeDepth": 2,
        "errs": np.zeros((1, N_TREES)),
    }


def options(*, shrink: int, filters: Any, soft: int = 1, label: str = "face1") -> dict[str, Any]:
    """Return what a detector was trained with."""
    return {
        "modelDs": [8, 12],
        "modelDsPad": [10, 17],
        "stride": 4,
        "cascThr": -1.5,
        "filters": filters,
        "pNms": {"type": "maxg", "overlap": 0.65, "ovrDnm": "min", "separate": 0},
        "pLoad": {"lbls": np.array([label, "other"], dtype=object), "ilbls": []},
        "pPyramid": {
            "pChns": {
                "shrink": shrink,
                "pColor": {"enabled": 1, "smooth": 0, "colorSpace": "luv"},
                "pGradMag": {
                    "enabled": 1, "colorChn": 0, "normRad": 5, "normConst": 0.005, "full": 0,
                },
                "pGradHist": {
                    "enabled": 1, "binSize": [], "nOrients": 6, "softBin": soft, "useHog": 0,
                },
                "pCustom": [],
            },
            "nPerOct": 8,
            "nOctUp": 0,
            "nApprox": 7,
            "lambdas": [0.0, 0.1, 0.2],
            "pad": [4, 4],
            "minDs": [8, 12],
            "smooth": 1,
        },
    }  # fmt: skip


def multi_class(label: str = "car1") -> dict[str, Any]:
    """As BAdaCost and SAMME were published: three views, filters."""
    rng = np.random.default_rng(10)
    n_classes, n_planes = 4, 20
    costs = rng.uniform(0.1, 1.0, (n_classes, n_classes))
    np.fill_diagonal(costs, 0.0)
    clf = trees_of_labels(rng, n_planes * 2 * 4, n_classes)
    clf |= {
        "Cprime": costs - np.diag(costs.sum(axis=1)),
        "Y": np.where(np.eye(n_classes) == 1, 1.0, -1.0 / (n_classes - 1)),
        "num_classes": n_classes,
        "wl_weights": rng.uniform(0.1, 1.0, (1, N_TREES)),
        "aRatio": [1.0, 1.5, 2.0],
    }
    filters = rng.normal(size=(5, 5, 10, 2)).astype(np.float32)
    return {"opts": options(shrink=2, filters=filters, label=label), "clf": clf}


def sub_categories() -> NDArray[Any]:
    """As SubCat was published: an array of binary detectors."""
    rng = np.random.default_rng(1)
    array = np.zeros((1, 3), dtype=[("opts", object), ("clf", object)])
    for place in range(3):
        filters = rng.normal(size=(5, 5, 10, 2)).astype(np.float32)
        opts = options(shrink=2, filters=filters, soft=0)
        opts["modelDs"] = [8, 10 + place]
        array[0, place] = (opts, binary_trees(rng, 20 * 2 * 4))
    return array


def plain_acf() -> dict[str, Any]:
    """The layout of the toolbox: one binary detector, no filters, cells of four pixels."""
    rng = np.random.default_rng(2)
    opts = options(shrink=4, filters=[])
    del opts["pLoad"]
    for name in ("binSize", "useHog"):
        del opts["pPyramid"]["pChns"]["pGradHist"][name]
    return {"opts": opts, "clf": binary_trees(rng, 10 * 2 * 4)}


LAYOUTS: dict[str, Callable[[], Any]] = {
    "multi-class": multi_class,
    "subcat": sub_categories,
    "acf": plain_acf,
}


def matlab_bytes(detector: Any, compress: bool = False, name: str = "detector") -> bytes:
    """Return the file of a detector, with another variable before it."""
    file: Any = io.BytesIO()
    savemat(file, {"other": np.eye(3), name: detector}, do_compression=compress)
    return bytes(file.getvalue())
