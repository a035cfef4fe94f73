"""Looking inside detectors: counts beside slow ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.detection import (
    Cascade,
    ChannelParameters,
    Detector,
    GradientParameters,
    HistogramParameters,
    PyramidParameters,
)
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.channels import compute_channels, rgb_to_luv
from badacost.detection.inspection import (
    Efficiency,
    EfficiencyTable,
    FeatureMapDisplay,
    ScoreTracesDisplay,
    ViewConfusionDisplay,
    channel_names,
    efficiency,
    feature_map,
    mean_images,
)
from badacost.tree.forest import Forest, Tree

matplotlib.use("Agg")

PYRAMID = PyramidParameters(
    ChannelParameters(shrink=2), n_per_octave=3, n_approximated=2, min_size=(8, 8)
)
FILTERS = np.random.default_rng(0).normal(size=(2, 10, 3, 3))


@pytest.fixture(autouse=True)
def _no_open_figures() -> Iterator[None]:
    yield
    plt.close("all")


def random_image(seed: int = 0, height: int = 40, width: int = 50) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def random_tree(rng: np.random.Generator, n_features: int, depth: int, n_rows: int) -> Tree:
    """A chain of tests, each with a leaf to its right."""
    n_nodes = 2 * depth + 1
    number = np.arange(n_nodes)
    leaf = (number % 2 == 0) & (number > 0)
    leaf[-1] = True
    left = np.where(leaf, number, number + 1 + (number > 0))
    if depth:
        leaf[-2] = True
        left[-2] = n_nodes - 2
    nothing = np.zeros(n_nodes, np.float32)
    return Tree(
        feature=np.where(leaf, 0, rng.integers(0, n_features, n_nodes)).astype(np.int32),
        threshold=np.where(leaf, np.nan, rng.normal(0.0, 0.3, n_nodes)),
        left=left.astype(np.int32),
        missing_left=np.ones(n_nodes, bool),
        value=rng.integers(0, n_rows, n_nodes).astype(np.int32),
        gain=nothing,
        count=nothing.astype(np.int32),
        weight=nothing,
    )


def random_cascade(seed: int, n_views: int = 3, n_planes: int = 20, **changes) -> Cascade:
    rng = np.random.default_rng(seed)
    options = {"window": (6, 6), "padded_window": (8, 8), "cell": 4, "rejections": -2.0, **changes}
    n_features = n_planes * int(
        np.prod([side // options["cell"] for side in options["padded_window"]])
    )
    n_rows = n_views + 1 if n_views > 1 else 9
    trees = [random_tree(rng, n_features, depth % 4, n_rows) for depth in range(24)]
    table = rng.normal(size=(n_rows, n_views))
    table -= table.mean(axis=0) + 0.05
    forest = Forest.from_trees(trees, rng.uniform(0.1, 1.0, 24), table, n_features)
    return Cascade(forest, **options)


def random_detector(n_cascades: int = 1, **changes) -> Detector:
    cascades = [
        random_cascade(seed, 3 if n_cascades == 1 else 1, padded_window=(8, 8 + 8 * seed))
        for seed in range(n_cascades)
    ]
    names = [f"view {view}" for view in range(sum(cascade.n_views for cascade in cascades))]
    return Detector(**{"pyramid": PYRAMID, "cascades": cascades, "names": names,
                       "filters": FILTERS, **changes})  # fmt: skip


class TestFeatureMap:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_tests_are_counted_one_by_one(self, weighted) -> None:
        detector = random_detector()
        (cascade,) = detector.cascades
        expected = np.zeros((2, 10, 2, 2))
        for tree, weight in zip(cascade.forest.trees(), cascade.forest.tree_weights, strict=True):
            for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
                if not np.isnan(threshold):
                    plane, row, column = feature // 4, feature // 2 % 2, feature % 2
                    expected[plane // 10, plane % 10, row, column] += weight if weighted else 1
        found = feature_map(detector, weighted=weighted)
        np.testing.assert_allclose(found.uses, expected)
        np.testing.assert_allclose(found.overall, expected.sum(axis=(0, 1)))
        np.testing.assert_allclose(found.by_channel, expected.sum(axis=0))
        np.testing.assert_allclose(found.by_filter, expected.sum(axis=1))
        assert found.windows == ((1.0, 1.0, 7.0, 7.0),)

    def test_windows_of_several_cascades_are_centred(self) -> None:
        detector = random_detector(3)
        parts = [
            feature_map(replace(detector, cascades=[cascade], names=["one"]))
            for cascade in detector.cascades
        ]
        expected = parts[2].overall.copy()
        expected[:, 2:4] += parts[0].overall
        expected[:, 1:5] += parts[1].overall
        found = feature_map(detector)
        np.testing.assert_allclose(found.overall, expected)
        assert found.windows == ((9, 1, 15, 7),), "the same object in all three"

    @pytest.mark.parametrize(("slope", "name"), [(0, "0°"), (np.inf, "90°"), (1, "45°")])
    def test_names_of_orientations_are_directions_of_edges(self, slope, name) -> None:
        parameters = ChannelParameters(histogram=HistogramParameters(n_orientations=4))
        y, x = np.mgrid[:64, :64]
        across = x if np.isinf(slope) else y + slope * x  # rows go down, so that edges rise
        image = np.uint8(127 + 120 * np.sin(across / 3.0))[:, :, None].repeat(3, axis=2)
        channels = compute_channels(rgb_to_luv(image), parameters)
        strength = channels[4:, 2:-2, 2:-2].sum(axis=(1, 2))
        assert channel_names(parameters)[4:][strength.argmax()] == name

    def test_names_around_the_circle(self) -> None:
        parameters = ChannelParameters(
            gradient=GradientParameters(full=True), histogram=HistogramParameters(n_orientations=4)
        )
        assert channel_names(parameters) == (
            "L", "U", "V", "magnitude", "90°", "0°", "-90°", "-180°",
        )  # fmt: skip

    def test_display(self) -> None:
        display = FeatureMapDisplay.from_detector(random_detector())
        titles = [ax.get_title() for ax in display.part_axes_]
        assert [title.split(",")[0] for title in titles] == [*channel_names(ChannelParameters())]
        assert sum(int(title.split(",")[1].strip(" %")) for title in titles) == pytest.approx(
            100, abs=5
        )
        np.testing.assert_array_equal(display.ax_.images[0].get_array(), display.maps.overall)
        filters = display.plot(by="filter", overall=False)
        assert [ax.get_title()[:8] for ax in filters.part_axes_] == ["filter 1", "filter 2"]
        assert filters.ax_ is None
        with pytest.raises(ValueError, match="'channel', 'filter'"):
            display.plot(by="view")

    def test_wrong_detectors(self) -> None:
        with pytest.raises(TypeError, match="must be a Detector"):
            feature_map("detector")
        with pytest.raises(TypeError, match="must be a FeatureMap"):
            FeatureMapDisplay(np.zeros((2, 2)))


class TestEfficiency:
    @pytest.mark.parametrize("n_cascades", [1, 3])
    @pytest.mark.parametrize("rejection", [-2.0, -np.inf])
    def test_every_window_followed_tree_by_tree(self, n_cascades, rejection) -> None:
        detector = random_detector(n_cascades).with_rejections(rejection)
        images = [random_image(), random_image(1, 33, 60)]
        windows, trees, nodes = np.zeros((3, n_cascades))
        for image in images:
            for seen in detector.sightings(image):
                cascade = detector.cascades[seen.cascade]
                rows, columns = seen.grid
                traces = seen.trace(*np.divmod(np.arange(rows * columns), max(columns, 1)))
                alive = np.ones_like(traces, dtype=bool)
                alive[:, 1:] = (traces > cascade.rejections).cumprod(axis=1)[:, :-1]
                windows[seen.cascade] += len(traces)
                trees[seen.cascade] += alive.sum()
                nodes[seen.cascade] += (alive * np.maximum(cascade.forest.depths, 1)).sum()
        found = efficiency(detector, images, n_jobs=2)
        assert found.windows_per_image == windows.sum() / 2
        assert found.trees_per_window == pytest.approx((trees / windows).sum())
        assert found.nodes_per_window == pytest.approx((nodes / windows).sum())
        if rejection == -np.inf:
            assert found.trees_per_window == pytest.approx(found.n_trees)
            assert found.nodes_per_window == pytest.approx(found.n_nodes)
        assert found.ms_per_image > 0
        assert found.n_images == 2

    def test_without_images(self) -> None:
        found = efficiency(random_detector(3))
        assert found == Efficiency(
            n_cascades=3, n_trees=72, depth=3, n_nodes=3 * 6 * (1 + 1 + 2 + 3)
        )

    def test_images_without_windows_and_no_images(self) -> None:
        found = efficiency(random_detector(), [random_image(0, 4, 4)])
        assert (found.windows_per_image, found.nodes_per_window) == (0.0, 0.0)
        with pytest.raises(ValueError, match="at least one image"):
            efficiency(random_detector(), [])

    def test_table(self) -> None:
        detectors = {"one": random_detector(), "a|b": random_detector(3)}
        table = EfficiencyTable.from_detectors(detectors, [random_image()])
        lines = table.to_markdown().splitlines()
        assert lines[0].count("|") == lines[1].count("|") == lines[3].count("|") == 10
        assert lines[3].startswith("| a/b | 3 | 72 | 3 | 126 |")
        assert json.loads(json.dumps(table.to_dict()))["one"]["n_trees"] == 24
        with pytest.raises(ValueError, match="at least one"):
            EfficiencyTable({})


class TestScoreTraces:
    @pytest.mark.parametrize(("n_cascades", "cascade"), [(1, 0), (3, 1)])
    def test_boxes_end_with_their_scores(self, n_cascades, cascade) -> None:
        detector = random_detector(n_cascades)
        images = [random_image(seed) for seed in range(3)]
        display = ScoreTracesDisplay.from_detector(detector, images, cascade=cascade, n_jobs=2)
        found = [detector.detect(image) for image in images]
        own = np.concatenate([boxes.scores[(boxes.labels == cascade) | (n_cascades == 1)]
                              for boxes in found])  # fmt: skip
        assert len(own) > 1
        np.testing.assert_allclose(np.sort(display.boxes[:, -1]), np.sort(own))
        assert (display.boxes > detector.cascades[cascade].rejections).all()

    def test_rejected_windows_end_where_they_are_rejected(self) -> None:
        detector = random_detector().with_rejections(-1.0)
        display = ScoreTracesDisplay.from_detector(detector, [random_image()], n_rejected=40)
        assert display.rejected.shape == (40, 24)
        for trace, length in zip(display.rejected, display.n_trees_of_rejected, strict=True):
            assert np.isfinite(trace[:length]).all()
            assert np.isnan(trace[length:]).all()
            assert trace[length - 1] <= -1.0
            assert (trace[: length - 1] > -1.0).all()

    def test_rejected_windows_are_a_fair_and_repeatable_sample(self) -> None:
        detector, image = random_detector().with_rejections(-1.0), random_image()
        every = ScoreTracesDisplay.from_detector(detector, [image], n_rejected=10**6)
        parts = [
            ScoreTracesDisplay.from_detector(detector, [image], n_rejected=100, random_state=seed)
            for seed in (*range(12), 0)
        ]
        np.testing.assert_array_equal(parts[0].rejected, parts[-1].rejected)
        lengths = np.concatenate([part.n_trees_of_rejected for part in parts[:-1]])
        error = every.n_trees_of_rejected.std() / np.sqrt(len(lengths))
        assert lengths.mean() == pytest.approx(every.n_trees_of_rejected.mean(), abs=4 * error)

    def test_nothing_to_show(self) -> None:
        detector = random_detector().with_rejections(-np.inf)
        display = ScoreTracesDisplay.from_detector(detector, [random_image(0, 4, 4)], n_rejected=0)
        assert display.boxes.shape == display.rejected.shape == (0, 24)
        display.figure_.canvas.draw()

    def test_wrong_parameters(self) -> None:
        with pytest.raises(ValueError, match="cascade must be"):
            ScoreTracesDisplay.from_detector(random_detector(), [], cascade=1)
        with pytest.raises(ValueError, match="thresholds"):
            ScoreTracesDisplay([], [], [])


class TestViewConfusion:
    def test_cells_and_accuracy(self) -> None:
        display = ViewConfusionDisplay([[3, 1], [0, 0]], ["a $", "b $"]).plot()
        display.figure_.canvas.draw()
        np.testing.assert_allclose(display.ax_.images[0].get_array(), [[0.75, 0.25], [0, 0]])
        assert [text.get_text() for text in display.ax_.texts] == ["3", "1"]
        assert display.accuracy == 0.75
        assert np.isnan(ViewConfusionDisplay([[0]], ["a"]).accuracy)

    @pytest.mark.parametrize("counts", [[[1, 2]], [[1, -1], [0, 0]], [[np.nan, 0], [0, 0]]])
    def test_wrong_counts(self, counts) -> None:
        with pytest.raises(ValueError, match="counts"):
            ViewConfusionDisplay(counts, ["a", "b"])


class TestMeanImages:
    def test_mean_of_two_objects(self) -> None:
        pixels = np.zeros((40, 60, 3), np.uint8)
        pixels[5:15, 5:25] = 100
        pixels[20:30, 30:50] = (200, 0, 50)
        image = AnnotatedImage(
            pixels, [[5, 5, 25, 15], [30, 20, 50, 30], [0, 0, 9, 9], [0, 0, 9, 9]],
            labels=[1, 1, -1, 2], ignore=[False, False, False, True],
        )  # fmt: skip
        means, counts = mean_images([image], (5, 10), 3)
        assert means.shape == (3, 5, 10, 3)
        assert counts.tolist() == [0, 2, 0]
        assert (means[1] == (150, 50, 75)).all()
        assert not means[[0, 2]].any()

    def test_boxes_get_the_shape_of_the_window(self) -> None:
        pixels = np.zeros((40, 60, 3), np.uint8)
        pixels[10:20, 10:20] = 255  # a narrow object of a wide window
        means, _ = mean_images(
            [AnnotatedImage(pixels, [[10, 10, 20, 20]], labels=[0])], (10, 20), 1
        )
        assert (means[0, :, 5:15] == 255).all()
        assert not means[0, :, :4].any()

    def test_border_is_repeated(self) -> None:
        pixels = np.full((20, 20, 3), 80, np.uint8)
        means, counts = mean_images(
            [AnnotatedImage(pixels, [[-4, -4, 10, 10], [-15, 0, 5, 20]], labels=[0, 0])], (8, 8), 1
        )
        assert counts.tolist() == [1], "most of the second one lies outside"
        assert (means == 80).all()

    @settings(max_examples=50)
    @given(
        box=st.tuples(*[st.floats(-1e9, 1e9) | st.floats(-30, 60)] * 4),
        window=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    )
    def test_any_box(self, box, window) -> None:
        x1, y1, x2, y2 = box
        box = [min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)]
        pixels = np.full((30, 40, 3), 90, np.uint8)
        means, counts = mean_images([AnnotatedImage(pixels, [box], labels=[0])], window, 1)
        assert means.shape == (1, *window, 3)
        assert (means == (90 if counts[0] else 0)).all()

    def test_wrong_parameters(self) -> None:
        image = AnnotatedImage(random_image(), [[0, 0, 9, 9]], labels=[3])
        with pytest.raises(ValueError, match="view 3, but there are 2 views"):
            mean_images([image], (8, 8), 2)
        with pytest.raises(ValueError, match="smaller window"):
            mean_images([image], (4096, 4096), 20)
        with pytest.raises(ValueError, match="a height and a width"):
            mean_images([image], 8, 2)
