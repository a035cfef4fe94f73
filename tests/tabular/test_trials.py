"""Trials: rows set apart, settings chosen on the others, and rivals that know no costs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from badacost import BAdaCostClassifier, CostBoostClassifier
from badacost.costs.decisions import DecisionCosts
from badacost.tabular.trials import (
    Contender,
    DepthTuner,
    Samples,
    average_and_error,
    deal_folds,
    held_out_rows,
    probabilities,
    rival_probabilities,
    run,
    without_costs,
)

PRICES = DecisionCosts(np.array([[0.0, 1, 5], [2, 0, 1], [9, 4, 0]]))


def wine() -> Samples:
    return Samples(*load_wine(return_X_y=True))


class Recorder(DummyClassifier):
    """Keeps what it was fitted to."""

    def fit(self, X, y, sample_weight=None):
        self.rows_ = np.asarray(X)[:, 0].astype(int)
        self.weight_ = sample_weight
        return super().fit(X, y, sample_weight)


class TestSamples:
    def test_few_rows_are_all_there(self) -> None:
        samples = wine()
        assert samples.sample(np.random.default_rng(0)) is samples

    def test_a_sample_stands_for_all_rows_and_keeps_rare_classes(self) -> None:
        truth = np.repeat([0, 1, 2], [50_000, 30, 3])
        features = np.arange(len(truth))[:, np.newaxis]
        drawn = Samples(features, truth, np.full(len(truth), 2.0)).sample(np.random.default_rng(0))
        assert 19_000 < len(drawn) < 21_000
        assert np.bincount(drawn.truth)[1:].tolist() == [30, 3]
        np.testing.assert_allclose(np.bincount(drawn.truth, drawn.weight), [100_000, 60, 6])
        np.testing.assert_array_equal(truth[drawn.features[:, 0]], drawn.truth)


class TestFolds:
    def test_each_class_is_dealt_evenly(self) -> None:
        truth = np.repeat([0, 1, 2, 3], [10, 5, 2, 1])
        folds = deal_folds(truth, 5, np.random.default_rng(0))
        assert np.bincount(folds[truth == 0]).tolist() == [2] * 5
        assert sorted(folds[truth == 1]) == [0, 1, 2, 3, 4]
        assert len(set(folds[truth == 2]) - {-1}) == 2  # each is decided by a fit to the other
        assert folds[truth == 3] == -1

    def test_held_out_rows(self) -> None:
        truth = np.repeat([0, 1, 2], [40, 20, 1])
        held_out = held_out_rows(truth, 0.25, seed=0)
        assert [held_out[truth == k].sum() for k in range(3)] == [10, 5, 0]
        with pytest.raises(ValueError, match="too few to hold out 5% of each class"):
            held_out_rows(truth[-3:], 0.05, seed=0)


class TestRun:
    @pytest.mark.parametrize("hold_out", [False, True])
    def test_rows_are_decided_by_fits_to_others(self, hold_out) -> None:
        truth = np.arange(60) % 3
        samples = Samples(np.arange(60)[:, np.newaxis], truth, np.arange(60.0) + 1)
        folds = deal_folds(truth, 4, np.random.default_rng(1))
        if hold_out:
            folds = np.where(folds == 2, 0, -1)
        result = run(Contender("it", Recorder()), samples, folds, PRICES)
        assert len(result.fitted) == (1 if hold_out else 4)
        for fold, fitted in enumerate(result.fitted):
            np.testing.assert_array_equal(fitted.rows_, np.flatnonzero(folds != fold))
            np.testing.assert_array_equal(fitted.weight_, fitted.rows_ + 1)
        assert len(result.decisions["it"]) == (folds >= 0).sum()

    def test_the_three_rules(self) -> None:
        samples = wine()
        rules = ("own", "bayes", "most_probable")
        contender = Contender("it", GaussianNB(), rules)
        fitted = contender.fit(samples, PRICES, 0)
        answers = contender.decide(fitted, samples.features, PRICES)
        shares = fitted.predict_proba(samples.features)
        np.testing.assert_array_equal(answers["it, own rule"], fitted.predict(samples.features))
        np.testing.assert_array_equal(answers["it, most likely class"], shares.argmax(axis=1))
        np.testing.assert_array_equal(
            answers["it, minimum expected cost"], (shares @ PRICES.values).argmin(axis=1)
        )

    def test_prices_become_costs_unless_they_are_kept_away(self) -> None:
        booster = BAdaCostClassifier(n_estimators=1)
        contender = Contender("", booster)
        np.testing.assert_array_equal(contender.prepared(wine(), PRICES).cost_matrix, PRICES.values)
        blind = Contender("", booster, sets_costs=False)
        assert blind.prepared(wine(), PRICES).cost_matrix is None

    def test_classes_that_were_not_shown(self) -> None:
        X, y = load_iris(return_X_y=True)
        fitted = LogisticRegression(max_iter=1000).fit(X[y != 1], y[y != 1])
        shares = probabilities(fitted, X, 3)
        np.testing.assert_array_equal(shares[:, 1], 0.0)
        np.testing.assert_array_equal(shares[:, [0, 2]], fitted.predict_proba(X))

    def test_average_and_error(self) -> None:
        paid = np.array([0.0, 1.0, 5.0, 2.0])
        average, error = average_and_error(paid, None)
        assert (average, error) == (2.0, pytest.approx(np.std(paid) / 2.0))
        assert average_and_error(paid, np.full(4, 3.0)) == (2.0, pytest.approx(error))
        assert average_and_error(paid, np.array([1.0, 1, 0, 0]))[0] == 0.5


class TestDepths:
    @pytest.mark.parametrize(("noisy", "depth"), [(True, 1), (False, 4)])
    def test_suits_the_noise(self, noisy, depth) -> None:
        """Stumps where the features tell little, deeper trees where they must be combined."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (400, 2))
        corners = (X[:, 0] > 0) ^ (X[:, 1] > 0)
        truth = rng.random(400) < 0.5 + 0.2 * X[:, 0] if noisy else corners
        prices = DecisionCosts(np.array([[0.0, 1], [3, 0]]))
        tuned = DepthTuner("own", (1, 4))(
            BAdaCostClassifier(prices.values, n_estimators=30), Samples(X, truth.astype(int)),
            prices, 0,
        )  # fmt: skip
        assert tuned.max_depth == depth

    def test_costboost_keeps_its_own(self) -> None:
        model = CostBoostClassifier()
        assert DepthTuner("own")(model, wine(), PRICES, 0) is model

    @pytest.mark.parametrize("depths", [(), (0,), (1.5,)])
    def test_refused(self, depths) -> None:
        with pytest.raises((TypeError, ValueError), match="depths"):
            DepthTuner("own", depths)


class TestRivals:
    @pytest.fixture
    def few_rounds(self, monkeypatch) -> None:
        monkeypatch.setattr("badacost.tabular.trials._MAX_ROUNDS", 10)
        monkeypatch.setitem(CostBoostClassifier.__init__.__kwdefaults__, "n_estimators", 10)

    @pytest.mark.usefixtures("few_rounds")
    def test_they_do_not_see_the_prices(self) -> None:
        """Their probabilities are the same, whatever the prices."""
        samples, other = wine(), DecisionCosts(PRICES.values.T * 3.0)
        model = BAdaCostClassifier()
        for rival in without_costs(model, n_jobs=1, seed=0):
            one, two = (rival.fit(samples, prices, 0) for prices in (PRICES, other))
            np.testing.assert_array_equal(
                one.predict_proba(samples.features), two.predict_proba(samples.features)
            )
        assert len(without_costs(model, n_jobs=1, seed=0)) == 2
        assert len(without_costs(CostBoostClassifier(), n_jobs=1, seed=0)) == 1

    def test_rounds_are_tuned(self) -> None:
        """On noise few rounds are kept, on separable classes many."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 3))
        (rival,) = without_costs(CostBoostClassifier(), n_jobs=1, seed=0)
        rounds = [
            rival.fit(Samples(X, truth), PRICES, 0).max_iter
            for truth in (rng.integers(0, 3, 300), np.digitize(X[:, 0], [-0.5, 0.5]))
        ]
        assert rounds[0] < 5 < rounds[1]

    @pytest.mark.usefixtures("few_rounds")
    def test_probabilities_of_other_rows(self) -> None:
        X, y = load_wine(return_X_y=True)
        train = Samples(X[::2], y[::2])
        asked = rival_probabilities(BAdaCostClassifier(), train, X[1::2], PRICES)
        assert list(asked) == ["boosting without costs", "CostBoost"]
        for shares in asked.values():
            assert shares.shape == (89, 3)
            assert (shares.argmax(axis=1) == y[1::2]).mean() > 0.85
