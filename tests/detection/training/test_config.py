"""Training configurations: files, defaults, and values that make no sense."""

from __future__ import annotations

import re
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from badacost.costs import zero_one_costs
from badacost.detection import TrainingConfig

NAMES = [item.name for item in fields(TrainingConfig)]
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 40),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-2, 100), max_size=4),
    st.lists(st.one_of(st.none(), st.floats(), st.text(max_size=2)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
SENSIBLE = st.fixed_dictionaries(
    {},
    optional={
        "window": st.tuples(st.integers(24, 200), st.integers(24, 200)),
        "algorithm": st.sampled_from(["costboost", "badacost", "samme", "subcat"]),
        "alpha": st.floats(1e-6, 1e6),
        "beta": st.integers(1, 100),
        "cost_matrix": st.integers(2, 5).map(lambda n: (1e-7 + 3.5 * (1 - np.eye(n))).tolist()),
        "views_in_circle": st.booleans(),
        "trees": st.lists(st.integers(1, 5000), min_size=1, max_size=6).map(tuple),
        "learning_rate": st.floats(1e-6, 1.0),
        "max_features": st.floats(1e-6, 1.0),
        "n_filters": st.integers(0, 9),
        "filter_size": st.sampled_from([3, 5]),
        "n_approximated": st.integers(0, 9),
        "rotation": st.floats(0.0, 10.0),
        "validation": st.floats(0.0, 0.9),
        "refit": st.booleans(),
        "false_alarms": st.floats(0.0, 1e4),
        "overlap": st.floats(0.0, 1.0),
        "mirror": st.booleans(),
        "seed": st.integers(0, 2**31 - 1),
    },
)


class TestFile:
    @given(SENSIBLE)
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_round_trip(self, tmp_path, values) -> None:
        if values.get("algorithm") in ("samme", "subcat"):
            values.pop("cost_matrix", None)  # which they refuse
        config = TrainingConfig(**values)
        path = tmp_path / "config.toml"
        path.write_text(config.to_toml())
        assert TrainingConfig.from_toml(path) == config

    def test_numbers_of_numpy_come_back_as_those_of_python(self, tmp_path) -> None:
        config = TrainingConfig(
            window=(np.int64(48), np.int32(48)), trees=[np.int64(3)], seed=np.uint8(4),
            alpha=np.float32(0.5), mirror=np.bool_(False),
        )  # fmt: skip
        path = tmp_path / "config.toml"
        path.write_text(config.to_toml())
        assert TrainingConfig.from_toml(path) == config
        assert type(config.seed) is int
        assert type(config.mirror) is bool

    def test_what_is_not_named_keeps_its_default(self, tmp_path) -> None:
        path = tmp_path / "config.toml"
        path.write_text("# smaller\nwindow = [32, 40]\nbeta = 4\n")
        assert TrainingConfig.from_toml(path) == TrainingConfig(window=(32, 40), beta=4.0)
        path.write_text("")
        assert TrainingConfig.from_toml(path) == TrainingConfig()

    def test_small_is_a_base_that_a_file_refines(self, tmp_path) -> None:
        path = tmp_path / "config.toml"
        path.write_text("window = [32, 40]\nn_negatives = 77\n")
        expected = TrainingConfig.small(window=(32, 40), n_negatives=77)
        assert TrainingConfig.from_toml(path, small=True) == expected
        assert expected.trees == TrainingConfig.small().trees != TrainingConfig().trees

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("cascade = 'trees'", "unknown parameter 'cascade'"),
            ("widow = [48, 48]", "unknown parameter 'widow'; there are window, padded_window"),
            ("[window]\nheight = 3", "window must be a height and a width"),
            ("window = 48", "window must be a height and a width"),
            ("trees = '32'", "trees must be 1 to 32 numbers"),
            ("trees = [1.5]", "trees must be an integer"),
            ("seed = true", "seed must be an integer"),
            ("seed = 1979-05-27", "seed must be an integer"),
            ("alpha = inf", "alpha must be"),
            ("alpha = nan", "alpha must be"),
            ("algorithm = 'boosting'", "algorithm must be one of 'costboost', 'badacost'"),
            ("mirror = 1", "mirror must be True or False"),
            ("cost_matrix = 3", "cost_matrix must be 2 to 256 rows"),
            ("cost_matrix = [[0, 1]]", "cost_matrix must be 2 to 256 rows"),
            ("cost_matrix = [[0, 1], [1]]", "cost_matrix must be 2 to 256 rows"),
            ("cost_matrix = [[0, 'a'], [1, 0]]", "cost_matrix must be a number"),
            ("cost_matrix = [[0, -1], [1, 0]]", "cost_matrix must be a number"),
            ("cost_matrix = [[0, 0], [1, 0]]", "cost_matrix: "),
            ("seed = ", "not a TOML file"),
            ("seed = 1\nseed = 2", "not a TOML file"),
            ("seed = " + "[" * 100_000, "not a TOML file"),
            ("seed = " + "9" * 10_000, "not a TOML file"),
            ("seed = '\ud800'".encode("utf-8", "surrogatepass"), "not a TOML file"),
            ("x" * 2**22, "would need 1.26 GB, limit 1 GB"),
            ("a" + ".a" * 20_000 + " = 1", "a key has more than 100 parts"),
            ("'=,'" + ".','" * 20_000 + " = 1", "a key has more than 100 parts"),
            ("[a" + ".a" * 20_000 + "]", "a key has more than 100 parts"),
            (
                "seed = {b = 1.5, a" + ".a" * 20_000 + " = 1}",
                "a key has more than 100 parts",
            ),
        ],
    )
    def test_mistakes(self, tmp_path, text, message) -> None:
        path = tmp_path / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            TrainingConfig.from_toml(path)
        assert "config.toml" in str(caught.value)

    def test_many_numbers_in_a_line_are_no_key(self, tmp_path) -> None:
        costs = [[0.0 if i == j else 1.5 for j in range(11)] for i in range(11)]
        path = tmp_path / "config.toml"
        path.write_text(f"cost_matrix = {costs}  # the authors' costs, " + "." * 200)
        assert TrainingConfig.from_toml(path).cost_matrix == tuple(map(tuple, costs))

    def test_no_file(self, tmp_path) -> None:
        with pytest.raises(FileNotFoundError):
            TrainingConfig.from_toml(tmp_path / "config.toml")

    @given(st.binary(max_size=60))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_bytes(self, tmp_path: Path, contents) -> None:
        path = tmp_path / "config.toml"
        path.write_bytes(contents)
        message = "."
        try:
            TrainingConfig.from_toml(path)
        except ValueError as error:
            message = str(error)
        assert message.endswith(".")


class TestValues:
    @given(st.dictionaries(st.sampled_from(NAMES), ANYTHING, min_size=1, max_size=2))
    @settings(max_examples=300)
    def test_any_value_is_taken_or_refused_in_a_sentence(self, values) -> None:
        try:
            config = TrainingConfig(**values)
        except (TypeError, ValueError) as error:
            message = str(error)
        else:
            assert TrainingConfig(**asdict(config)) == config
            return
        assert message.endswith(".")
        assert any(name in message for name in NAMES)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"window": (4, 48)}, "window must be an integer at least 8"),
            ({"padded_window": (40, 96)}, "padded_window (40, 96) must hold the window (48, 48)"),
            ({"trees": ()}, "trees must be 1 to 32"),
            ({"trees": (4, 0)}, "trees must be an integer at least 1"),
            ({"filter_size": 4}, "filter_size must be odd"),
            ({"filter_size": 1, "n_filters": 2}, "n_filters at most its square"),
            ({"window": (8, 8), "shrink": 4}, "at least 5 cells of 4 pixels"),
            ({"window": (8, 8), "shrink": 16, "n_filters": 0}, "at least a cell of 16 pixels"),
            ({"shrink": 0}, "shrink must be an integer at least 1"),
            ({"n_per_octave": "8"}, "n_per_octave must be an integer"),
            ({"learning_rate": 0.0}, "learning_rate must be a number greater than 0"),
            ({"max_features": 1.5}, "max_features must be"),
            ({"overlap": -0.1}, "overlap must be"),
            ({"negative_overlap": 0.0}, "negative_overlap must be a number greater than 0"),
            ({"negative_overlap": None}, "negative_overlap must be a number"),
            ({"max_depth": 13}, "max_depth must be"),
            ({"validation": 0.95}, "validation must be"),
            ({"validation": -0.1}, "validation must be"),
            ({"false_alarms": -1.0}, "false_alarms must be"),
            ({"refit": 1}, "refit must be True or False"),
            ({"rotation": 90.0}, "rotation must be"),
            ({"contrast": 1.0}, "contrast must be"),
            ({"noise": -2.0}, "noise must be"),
            ({"jitter": 5.0}, "jitter must be"),
            ({"n_per_image": 0}, "n_per_image must be"),
        ],
    )
    def test_refused(self, values, message) -> None:
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            TrainingConfig(**values)

    def test_windows(self) -> None:
        config = TrainingConfig(window=(48, 84))
        assert config.cell == 4
        assert config.shape.padded_window == (56, 96)
        assert config.shape_of((48, 48)).padded_window == (56, 56)
        assert config.pyramid((0.0, 0.1, 0.1)).pad == (4, 6)
        bare = replace(config, n_filters=0, padded_window=(60, 100))
        assert bare.cell == 2
        assert bare.shape.padded_window == (60, 100)
        assert bare.shape_of((48, 49)).padded_window == (60, 66)  # the margins of the window

    def test_pyramid(self) -> None:
        assert TrainingConfig(n_per_octave=10).pyramid((0.0, 0.0, 0.0)).n_approximated == 9
        pyramid = TrainingConfig(n_approximated=0, window=(32, 40)).pyramid((0.0, 0.1, 0.2))
        assert pyramid.n_approximated == 0
        assert pyramid.min_size == (32, 40)
        assert pyramid.lambdas == (0.0, 0.1, 0.2)


def test_small() -> None:
    small = TrainingConfig.small(window=(32, 48), seed=3)
    assert small == replace(TrainingConfig.small(), window=(32, 48), seed=3)
    assert sum(small.trees) < sum(TrainingConfig().trees)


class TestCosts:
    def test_circle(self) -> None:
        costs = TrainingConfig(alpha=1, beta=3, gamma=4).costs(4)
        np.testing.assert_allclose(costs[0], [0, 1, 1, 1, 1])
        np.testing.assert_allclose(costs[:, 0], [0, 3, 3, 3, 3])
        np.testing.assert_allclose(costs[1, 1:], [0, 2, 4, 2])

    def test_no_circle(self) -> None:
        costs = TrainingConfig(alpha=1, beta=3, gamma=4, views_in_circle=False).costs(3)
        np.testing.assert_allclose(costs[2], [3, 4, 0, 4])

    def test_any_matrix(self) -> None:
        matrix = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
        config = TrainingConfig(cost_matrix=matrix, alpha=9)
        np.testing.assert_array_equal(config.costs(2), matrix)
        with pytest.raises(ValueError, match="must have 5 rows, for the background and 4 views"):
            config.costs(4)

    def test_samme(self) -> None:
        config = TrainingConfig(algorithm="samme", alpha=5, beta=6, gamma=7)
        np.testing.assert_array_equal(config.costs(4), zero_one_costs(5))

    @pytest.mark.parametrize("in_circle", [True, False])
    def test_one_view(self, in_circle) -> None:
        costs = TrainingConfig(alpha=1, beta=3, views_in_circle=in_circle).costs(1)
        np.testing.assert_allclose(costs, [[0, 1], [3, 0]])


class TestCostsOfTheBackground:
    MATRIX = ((0.0, 2.0, 4.0), (9.0, 0.0, 1.0), (15.0, 3.0, 0.0))  # asymmetric

    def test_odds_are_those_of_misses_and_false_alarms(self) -> None:
        assert TrainingConfig(alpha=2.0, beta=5.0).odds == 2.5
        assert TrainingConfig(cost_matrix=self.MATRIX).odds == 24.0 / 6.0

    @pytest.mark.parametrize("algorithm", ["samme", "subcat"])
    def test_algorithms_without_costs_refuse_them(self, algorithm) -> None:
        with pytest.raises(ValueError, match=f"{algorithm} has no costs: leave out cost_matrix"):
            TrainingConfig(algorithm=algorithm, cost_matrix=self.MATRIX)
