"""Models from a training set in shards: those of the whole, to the last byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from badacost.backends.shards import LocalShards, Shard, ShardedData
from badacost.boosting.reweighting import ReweightingShard
from badacost.classifiers import BAdaCostClassifier, CostBoostClassifier
from badacost.family import AdaBoostM1Classifier, AdaC2M1Classifier, SAMMEClassifier
from tests.sharded import use_shards

COSTS = [[0, 1, 7], [3, 0, 2], [20, 5, 0]]
N = 700


def samples() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 6))
    X[:, 5] = rng.integers(0, 9, N)
    y = (X[:, 0] + rng.normal(size=N) > 0).astype(int) + (X[:, 5] % 4 == 1)
    X[rng.random(X.shape) < 0.04] = np.nan
    weight = np.exp(2.0 * rng.normal(size=N))
    weight[::17] = 0.0
    return X, y, weight


CASES: list[tuple[Any, dict[str, Any]]] = [
    (BAdaCostClassifier, {}),
    (BAdaCostClassifier, {"early_stopping": True, "n_estimators": 30, "learning_rate": 0.5}),
    (BAdaCostClassifier, {"criterion": "entropy", "max_leaf_nodes": 7, "subsample": 0.6}),
    (BAdaCostClassifier, {"categorical_features": [5], "min_samples_leaf": 9, "max_depth": 6}),
    (BAdaCostClassifier, {"max_features": 2, "n_refinements": 2, "decision": "bayes"}),
    (BAdaCostClassifier, {"binning": "uniform", "max_bins": 20, "n_jobs": 2}),
    (AdaBoostM1Classifier, {}),
    (SAMMEClassifier, {}),
    (AdaC2M1Classifier, {}),
    (CostBoostClassifier, {}),
    (CostBoostClassifier, {"n_folds": 3, "subsample": 0.7, "n_directions": 2, "n_jobs": 2}),
    (CostBoostClassifier, {"n_folds": 1, "categorical_features": [5]}),
    (CostBoostClassifier, {"n_folds": 2, "tree": "best", "max_leaf_nodes": 6}),
    (CostBoostClassifier, {"n_folds": 2, "max_features": None, "early_stopping": False}),
]


@pytest.mark.parametrize(("kind", "parameters"), CASES)
def test_the_same_model(kind, parameters, monkeypatch, tmp_path) -> None:
    X, y, weight = samples()
    settings = {"n_estimators": 4, "random_state": 4} | parameters
    if kind in (BAdaCostClassifier, CostBoostClassifier, AdaC2M1Classifier):
        settings["cost_matrix"] = COSTS
    whole = kind(**settings).fit(X, y, sample_weight=weight)
    whole.save(tmp_path / "whole")
    for cuts in ([], [300], [0, 1, 650]):
        use_shards(monkeypatch, cuts)
        parted = kind(**settings).fit(X, y, sample_weight=weight)
        parted.save(tmp_path / "parted")
        assert (tmp_path / "whole").read_bytes() == (tmp_path / "parted").read_bytes(), cuts
        if hasattr(whole, "oof_probabilities_"):
            np.testing.assert_array_equal(whole.oof_probabilities_, parted.oof_probabilities_)


def test_warm_start(monkeypatch) -> None:
    X, y, _ = samples()
    for kind, settings in ((BAdaCostClassifier, {}), (CostBoostClassifier, {"n_folds": 2})):
        models = []
        for cuts in (None, [200, 500]):
            with monkeypatch.context() as patched:
                if cuts is not None:
                    use_shards(patched, cuts)
                model = kind(COSTS, n_estimators=4, warm_start=True, random_state=0, **settings)
                model.fit(X, y)
                models.append(model.set_params(n_estimators=9).fit(X, y))
        np.testing.assert_array_equal(*(model.cost_scores(X) for model in models))


def test_weights_are_fetched_once_a_round(monkeypatch) -> None:
    X, y, _ = samples()
    called: list[Any] = []
    call = LocalShards.call

    def counted(shards: Any, function: Any, arguments: Any, *, is_update: bool) -> list[Any]:
        called.append(arguments[0] if function is Shard.boost else function)
        return call(shards, function, arguments, is_update=is_update)

    def look(done: Any) -> None:
        assert done.sample_weight.shape == (N,)

    use_shards(monkeypatch, [300])
    monkeypatch.setattr(LocalShards, "call", counted)
    BAdaCostClassifier(COSTS, n_estimators=4, callbacks=[look]).fit(X, y)
    with_look = called.count(ReweightingShard.state)
    called.clear()
    BAdaCostClassifier(COSTS, n_estimators=4).fit(X, y)
    assert with_look - called.count(ReweightingShard.state) == 4


def test_own_costs_need_all_samples(monkeypatch) -> None:
    X, y, _ = samples()
    use_shards(monkeypatch, [300])
    with pytest.raises(ValueError, match=r"sample_cost .*cpu"):
        BAdaCostClassifier().fit(X, y, sample_cost=np.ones((N, 3)))


def test_rows_by_shard() -> None:
    rows = ShardedData(LocalShards([]), None, np.zeros(9), np.ones(9), [0, 4, 4, 9])  # type: ignore[arg-type]
    found = rows.rows_by_shard(np.array([0, 3, 4, 8]))
    assert [part.tolist() for part in found] == [[0, 3], [], [0, 4]]
    assert [part.tolist() for part in rows.split(np.arange(9))] == [
        [0, 1, 2, 3],
        [],
        [4, 5, 6, 7, 8],
    ]
