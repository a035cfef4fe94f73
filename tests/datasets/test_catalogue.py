"""The list of data sets says what is in them, and each comes as a table with example costs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import Bunch

from badacost.costs import as_cost_matrix
from badacost.datasets import DATASETS, UCI_NAMES, find_dataset


@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer", "digits", "diabetes"])
def test_sets_of_scikit_learn(name) -> None:
    dataset = find_dataset(name)
    frame = dataset.load()
    assert frame.shape == (dataset.n_rows, dataset.n_columns + 1)
    assert frame[dataset.target].nunique() == dataset.n_classes
    costs = dataset.example_costs()
    assert set(costs) == set(frame[dataset.target])
    matrix = as_cost_matrix(costs, list(costs))
    assert (matrix != matrix.T).any()
    assert not dataset.needs_download


def test_sets_of_uci() -> None:
    listed = {d.name: d for d in DATASETS if d.source.startswith("UCI")}
    assert (*listed,) == UCI_NAMES
    car, waveform = listed["car"], listed["waveform"]
    assert (car.n_rows, car.n_columns, car.n_classes) == (1728, 6, 4)
    assert car.needs_download
    assert not waveform.needs_download


def test_a_set_of_uci_is_loaded_when_it_is_asked_for(monkeypatch) -> None:
    target = np.array(["a", "b", "b", "b"])
    bunch = Bunch(data=np.arange(8.0).reshape(4, 2), target=target, feature_names=["u", "v"])
    monkeypatch.setattr("badacost.datasets.catalogue.load_uci", lambda name: bunch)
    dataset = find_dataset("car")
    assert dataset.load().columns.tolist() == ["u", "v", "class"]
    assert dataset.example_costs() == {"a": {"a": 0, "b": 2}, "b": {"a": 0.667, "b": 0}}
