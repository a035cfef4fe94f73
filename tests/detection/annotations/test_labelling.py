"""Views as labels: by headings, categories or labels, and what nothing tells."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from badacost.detection.annotations import AnnotatedImage, Views, label_views

BOXES = [[0, 0, 9, 9], [20, 0, 29, 9], [40, 0, 49, 9]]
PLAIN = AnnotatedImage(None, BOXES, categories=["rear", "sign", "front"])
HEADED = replace(PLAIN, angles=np.array([-90.0, 0.0, 90.0]))
LABELLED = replace(PLAIN, labels=np.array([1, -1, 2]))


@pytest.mark.parametrize(
    ("image", "views", "expected", "labels"),
    [
        (HEADED, None, Views.around(8), [2, 0, 6]),
        (HEADED, 4, Views.around(4), [1, 0, 3]),
        (HEADED, Views.of_yaw((-50, 50)), Views.of_yaw((-50, 50)), [0, 0, 1]),
        (HEADED, 1, Views.around(1, ["object"]), [0, 0, 0]),
        (HEADED, ["front", "rear"], Views(("front", "rear")), [1, -1, 0]),
        (LABELLED, None, Views(("view 1", "view 2", "view 3")), [1, -1, 2]),
        (LABELLED, 4, Views.around(4), [1, -1, 2]),
        (LABELLED, np.int64(1), Views.around(1, ["object"]), [0, 0, 0]),
        (PLAIN, None, Views.around(1, ["object"]), [0, 0, 0]),
    ],
)
def test_labels(image, views, expected, labels) -> None:
    found, (labelled, empty) = label_views([image, AnnotatedImage(None, [])], views)
    assert found == expected
    assert labelled.labels.tolist() == labels
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("image", "views", "error", "message"),
    [
        (PLAIN, 4, ValueError, "no angles to divide them into views: use a single view"),
        (LABELLED, 2, ValueError, "labels up to 2, and there are 2 views: give 3 or more"),
        (HEADED, 0, ValueError, "views must be an integer at least 1"),
        (HEADED, True, TypeError, "views must be an integer"),
        (HEADED, ["front", "side"], ValueError, "no object is of the category 'side'"),
        (HEADED, ["front", "front"], ValueError, "distinct"),
        (HEADED, ["front", ""], ValueError, "non-empty printable text"),
        (HEADED, "front", TypeError, "sequence of strings"),
    ],
)
def test_views_that_nothing_tells(image, views, error, message) -> None:
    with pytest.raises(error, match=re.escape(message)):
        label_views([image], views)
