"""Tests of what the displays share: matplotlib on demand, axes, colors, errors."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from badacost import BAdaCostClassifier
from badacost.plotting import (
    CostConfusionDisplay,
    CostCurveDisplay,
    DecisionRegionsDisplay,
    FeatureImportancesDisplay,
    MarginDisplay,
)
from badacost.plotting.base import MARKERS, PALETTE, class_colors

# Linear RGB as seen without the long, middle and short cones (Machado et al. 2009, severity 1).
_EYES = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip
_TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
_TO_OKLAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip

DISPLAYS = {
    "confusion": lambda ax: CostConfusionDisplay([[0, 1], [5, 0]], [[1, 1], [1, 1]]).plot(ax=ax),
    "curve": lambda ax: CostCurveDisplay({"train": [2, 1]}).plot(ax=ax),
    "margins": lambda ax: MarginDisplay([[1, -1]], [0, 1]).plot(ax=ax),
    "regions": lambda ax: DecisionRegionsDisplay(
        [0, 1], [0, 1], [[0, 1], [1, 1]], samples=[[0, 0], [1, 1]], y=[0, 1], classes=[0, 1]
    ).plot(ax=ax),
    "importances": lambda ax: FeatureImportancesDisplay([0.3, 0.7]).plot(ax=ax),
}


def least_distance(colours, eye):
    """The OKLab distance of the two colours that are most alike to this eye."""
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ _EYES[eye].T, 0.0, 1.0)
    lab = np.cbrt(seen @ _TO_CONES.T) @ _TO_OKLAB.T
    distances = np.linalg.norm(lab[:, np.newaxis] - lab, axis=2)
    return distances[np.triu_indices(len(colours), 1)].min()


@pytest.mark.parametrize("eye", _EYES)
@pytest.mark.parametrize(("n_classes", "least"), [(2, 0.25), (6, 0.07), (15, 0.07), (26, 0.048)])
def test_colours_differ_for_every_eye(eye, n_classes, least):
    assert least_distance(class_colors(n_classes), eye) > least


def test_distance_notices_colours_that_are_alike_to_the_colour_blind():
    red, green = "#a05a00", "#787800"
    assert least_distance([red, green], "deutan") < 0.048 < least_distance([red, green], "normal")


def test_colour_and_marker_together_are_unique_for_many_classes():
    signs = {(PALETTE[k % len(PALETTE)], MARKERS[k % len(MARKERS)]) for k in range(182)}
    assert len(signs) == 182


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_missing_matplotlib(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "badacost\[plot\]"'):
        draw(None)


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_own_axes_given_axes_and_subfigures(draw):
    own = draw(None)
    assert own.figure_.axes[0] is own.ax_
    figure = plt.figure(figsize=(8, 4), layout="constrained")
    n_figures = len(plt.get_fignums())
    for parent in (figure, *figure.subfigures(1, 2)):
        ax = parent.add_subplot()
        display = draw(ax)
        assert display.ax_ is ax
        assert display.figure_ is parent
    assert len(plt.get_fignums()) == n_figures
    figure.draw_without_rendering()


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_a_display_can_be_drawn_again(draw):
    display = draw(None)
    first = display.ax_
    assert display.plot().ax_ is not first


@pytest.mark.parametrize("draw", DISPLAYS.values(), ids=DISPLAYS)
def test_what_is_not_axes(draw):
    with pytest.raises(TypeError, match="ax must be matplotlib axes or None; got ndarray"):
        draw(np.empty(2))


def test_errors_name_what_an_estimator_lacks():
    fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match=r"CostCurveDisplay needs .* staged_predict: 'Logistic"):
        CostCurveDisplay._get(fitted, "staged_predict")
    with pytest.raises(NotFittedError):
        CostCurveDisplay._get(BAdaCostClassifier(), "feature_importances_")
    with pytest.raises(TypeError, match="class, not an instance"):
        CostCurveDisplay._get(BAdaCostClassifier, "predict")


@pytest.mark.parametrize("colors", [["red"], "red", ["red", "blue", "black"]])
def test_one_colour_for_each_class(colors):
    with pytest.raises(ValueError, match="colors must have 2 entries"):
        class_colors(2, colors)
