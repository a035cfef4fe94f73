"""Tests of the decision regions."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from badacost import BAdaCostClassifier
from badacost._utils.numbers import short_number
from badacost.costs import labelled_costs
from badacost.plotting import DecisionRegionsDisplay


class Rule:
    """Not an estimator of scikit-learn's: one method, which remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def predict(self, X):
        self.asked.append(X)
        columns = X.to_numpy() if hasattr(X, "columns") else X
        return np.where(columns[:, 0] > columns[:, 1], "yes", "no")


POINTS = np.array([[0.0, 5.0, 1.0], [4.0, 1.0, 2.0], [2.0, 3.0, 9.0]])
ANSWERS = ["no", "yes", "no"]


def average(model, X, y, costs):
    index = {label: k for k, label in enumerate(model.classes_)}
    predicted = model.predict(X)
    return np.mean([costs[index[t], index[p]] for t, p in zip(y, predicted, strict=True)])


def drawn_points(display):
    """The samples of each class, as they are on the axes."""
    return [points.get_offsets().data for points in display.points_]


def test_regions_are_the_predictions(model, samples):
    X, y = samples
    display = DecisionRegionsDisplay.from_estimator(
        model, X, y, features=(3, 1), grid_resolution=20
    )
    still = np.median(X, axis=0)
    assert display.grid_x[0] < X[:, 3].min() < X[:, 3].max() < display.grid_x[-1]
    assert display.grid_y[0] < X[:, 1].min() < X[:, 1].max() < display.grid_y[-1]
    regions = np.asarray(display.surface_.get_array()).reshape(20, 20)
    for row, column in [(0, 0), (0, 19), (19, 0), (7, 13), (12, 4)]:
        point = still.copy()
        point[3], point[1] = display.grid_x[column], display.grid_y[row]
        assert model.classes_[regions[row, column]] == model.predict([point])[0]
    assert len(np.unique(regions)) > 1
    for label, points in zip(model.classes_, drawn_points(display), strict=True):
        np.testing.assert_allclose(points, X[y == label][:, [3, 1]])
    assert display.ax_.get_xlabel() == "feature 3"
    assert display.ax_.get_ylabel() == "feature 1"


def test_title_is_the_average_cost(model, samples, costs):
    X, y = samples
    own = DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=5)
    cost = short_number(average(model, X, y, costs))
    assert own.ax_.get_title() == f"Average cost per decision: {cost}"
    other = DecisionRegionsDisplay.from_estimator(
        model, X, y, grid_resolution=5, cost_matrix=costs.T
    )
    assert other.ax_.get_title().endswith(short_number(average(model, X, y, costs.T)))
    plain = LogisticRegression().fit(X, y)
    without = DecisionRegionsDisplay.from_estimator(plain, X, y, grid_resolution=5)
    assert without.ax_.get_title() == ""


def test_other_features_stand_still_at_the_median_or_as_given():
    rule = Rule()
    DecisionRegionsDisplay.from_estimator(rule, POINTS, ANSWERS, grid_resolution=3)
    (grid,) = rule.asked
    assert grid.shape == (9, 3)
    assert set(grid[:, 2]) == {2.0}
    DecisionRegionsDisplay.from_estimator(
        rule, POINTS, ANSWERS, grid_resolution=3, features=(0, -1), fixed={1: 7.0}
    )
    assert set(rule.asked[-1][:, 1]) == {7.0}
    missing = POINTS.copy()
    missing[:, 2] = [np.nan, 4.0, 8.0]
    DecisionRegionsDisplay.from_estimator(rule, missing, ANSWERS, grid_resolution=3)
    assert set(rule.asked[-1][:, 2]) == {6.0}
    missing[:, 2] = np.nan
    DecisionRegionsDisplay.from_estimator(rule, missing, ANSWERS, grid_resolution=3)
    assert np.isnan(rule.asked[-1][:, 2]).all()


@pytest.mark.parametrize("library", [pd, pl])
def test_data_frames_stay_data_frames(library):
    rule = Rule()
    frame = library.DataFrame({"b": POINTS[:, 0], "a": POINTS[:, 1], "word": ["x", "y", "z"]})
    display = DecisionRegionsDisplay.from_estimator(
        rule, frame, ANSWERS, features=("a", "b"), fixed={"word": "w"}, grid_resolution=4
    )
    (grid,) = rule.asked
    assert isinstance(grid, library.DataFrame)
    assert list(grid.columns) == ["b", "a", "word"]
    assert set(grid["word"]) == {"w"}
    np.testing.assert_array_equal(np.unique(grid["a"]), display.grid_x)
    assert display.ax_.get_xlabel() == "a"
    by_place = DecisionRegionsDisplay.from_estimator(
        rule, frame, ANSWERS, features=(1, 0), fixed={2: "w"}, grid_resolution=4
    )
    np.testing.assert_array_equal(by_place.regions, display.regions)


def test_names_of_the_model_are_not_lost(samples):
    X, y = samples
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = BAdaCostClassifier(n_estimators=2).fit(frame, y)
    display = DecisionRegionsDisplay.from_estimator(model, frame, y, features=("d", "b"))
    assert display.ax_.get_ylabel() == "b"  # and no warning about names


def test_compare(samples, costs):
    X, y = samples
    models = {
        "blind": BAdaCostClassifier(n_estimators=5, max_depth=2).fit(X, y),
        "costed": BAdaCostClassifier(
            labelled_costs(costs, ["ant", "bee", "cat"]), n_estimators=5, max_depth=2
        ).fit(X, y),
        "tree": DecisionTreeClassifier(max_depth=2).fit(X, y),
    }
    displays = DecisionRegionsDisplay.compare(models, X, y, costs, grid_resolution=30)
    assert len(displays) == 3
    for (name, model), display in zip(models.items(), displays, strict=True):
        cost = short_number(average(model, X, y, costs))
        assert display.ax_.get_title() == f"{name}\nAverage cost per decision: {cost}"
        assert display.ax_.get_xlim() == displays[0].ax_.get_xlim()
        assert display.ax_.get_ylim() == displays[0].ax_.get_ylim()
    assert not np.array_equal(displays[0].regions, displays[1].regions)  # costs move boundaries
    figure = displays[0].figure_
    assert len(figure.axes) == 4  # one bar for all
    assert [display.legend_ is None for display in displays] == [True, True, False]


def test_compare_on_given_axes(samples, costs):
    X, y = samples
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    _, axes = plt.subplots(1, 2)
    displays = DecisionRegionsDisplay.compare(
        {"a": tree, "b": tree}, X, y, None, axes=axes, grid_resolution=5
    )
    assert [display.ax_ for display in displays] == list(axes)
    assert [ax.get_title() for ax in axes] == ["a", "b"]
    (alone,) = DecisionRegionsDisplay.compare({"a": tree}, X, y, costs, grid_resolution=5)
    assert alone.legend_ is not None


def test_bar_of_classes(model, samples):
    display = DecisionRegionsDisplay.from_estimator(
        model, *samples, grid_resolution=5, colors=["red", "#00ff00", "blue"]
    )
    bar = display.legend_.ax
    assert [text.get_text() for text in bar.get_yticklabels()] == ["ant", "bee", "cat"]
    low, high = bar.get_ylim()
    assert low > high  # the first class on top
    for k, colour in enumerate(["red", "#00ff00", "blue"]):
        strong = display.points_[k].get_facecolor()[0][:3]
        assert tuple(strong) == to_rgb(colour)
        light = np.array(display.surface_.to_rgba(k)[:3])
        assert tuple(light) != tuple(strong)
        assert (light >= strong).all()
        np.testing.assert_array_equal(bar.collections[-3 + k].get_facecolor()[0][:3], strong)
    assert display.plot(legend=False).legend_ is None


def test_few_of_many_samples(samples, model):
    display = DecisionRegionsDisplay.from_estimator(
        model, *samples, grid_resolution=5, max_samples=30
    )
    few = np.concatenate(drawn_points(display))
    assert len(few) == 30
    again = np.concatenate(drawn_points(display.plot(max_samples=30)))
    np.testing.assert_array_equal(few, again)
    assert sum(map(len, drawn_points(display.plot(max_samples=0)))) == 0
    assert sum(map(len, drawn_points(display.plot(max_samples=None)))) == 200


@settings(max_examples=12)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.just(3)),
        elements=st.floats(-1e6, 1e6) | st.just(np.nan),
    )
)
def test_the_plane_holds_all_samples(X):
    ax = Figure().subplots()
    labels = np.resize(["no", "yes"], len(X))
    rule = Rule()
    if np.isnan(X[:, :2]).all(axis=0).any():
        with pytest.raises(ValueError, match="features must have finite values in X"):
            DecisionRegionsDisplay.from_estimator(rule, X, labels, ax=ax)
        return
    display = DecisionRegionsDisplay.from_estimator(rule, X, labels, ax=ax, grid_resolution=4)
    for column, grid in ((X[:, 0], display.grid_x), (X[:, 1], display.grid_y)):
        known = column[~np.isnan(column)]
        assert (np.diff(grid) > 0).all()
        assert grid[0] < known.min()
        assert known.max() < grid[-1]
    np.testing.assert_array_equal(
        display.regions == "yes", display.grid_x[np.newaxis] > display.grid_y[:, np.newaxis]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": (0,)}, "two different features"),
        ({"features": "ab"}, "not among the 3 features"),
        ({"features": (1, 1)}, "two different features"),
        ({"features": (1, -2)}, "two different features"),
        ({"features": (0, 3)}, "feature 3 is not among the 3 features"),
        ({"features": (0, "a")}, "feature 'a' is not among the 3 features"),
        ({"fixed": {5: 1.0}}, "feature 5 is not among the 3 features"),
        ({"fixed": {0: 1.0}}, "two different features not in fixed"),
        ({"grid_resolution": 1}, "grid_resolution must be an integer at least 2"),
        ({"max_samples": -1}, "max_samples must be an integer at least 0"),
        ({"colors": ["red"]}, "colors must have 2 entries"),
        ({"y": ANSWERS[:2]}, "inconsistent numbers of samples"),
        ({"X": np.full((3, 3), np.inf)}, "infinity"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        DecisionRegionsDisplay.from_estimator(Rule(), **{"X": POINTS, "y": ANSWERS} | arguments)


def test_errors_of_estimators_and_frames(model, samples, costs):
    X, y = samples
    with pytest.raises(TypeError, match="needs an estimator with predict"):
        DecisionRegionsDisplay.from_estimator(object(), X, y)
    with pytest.raises(ValueError, match=r"dog"):
        DecisionRegionsDisplay.from_estimator(model, X, np.where(y == "cat", "dog", y))
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0], "word": ["x", "y"]})
    with pytest.raises(ValueError, match=r"'word' is not numeric: .* fixed"):
        DecisionRegionsDisplay.from_estimator(Rule(), frame, ["no", "yes"])
    with pytest.raises(TypeError, match="mapping from name to fitted estimator"):
        DecisionRegionsDisplay.compare([model], X, y, costs)
    tree = DecisionTreeClassifier().fit(X, np.where(y == "cat", "bee", y))
    with pytest.raises(ValueError, match="same classes"):
        DecisionRegionsDisplay.compare({"a": model, "b": tree}, X, y, None)
    with pytest.raises(ValueError, match="axes must have 1 entries; got 2"):
        DecisionRegionsDisplay.compare({"a": model}, X, y, costs, axes=plt.subplots(1, 2)[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regions": [[0, 1]]}, "regions and samples must have shapes"),
        ({"samples": [[0, 0, 0]]}, "regions and samples must have shapes"),
    ],
)
def test_errors_of_the_constructor(change, message):
    arguments = {
        "grid_x": [0, 1],
        "grid_y": [0, 1],
        "regions": [[0, 1], [1, 1]],
        "samples": [[0, 0]],
        "y": [0],
        "classes": [0, 1],
    }
    with pytest.raises(ValueError, match=message):
        DecisionRegionsDisplay(**arguments | change)
