"""The same bits in a few of the cases; ``python -m campaigns bits`` has all of them."""

from __future__ import annotations

import pytest

import badacost
from campaigns import bits
from campaigns.bits_models import MODELS, digests

FEW = ("BAdaCostClassifier, random", "CostBoostClassifier", "detector, badacost")


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    return digests(FEW, 1)


@pytest.mark.parametrize(
    ("case", "names"),
    [("3 threads", FEW), ("forked", FEW), ("16 at once x 2", FEW[:1]), ("after Ctrl-C", FEW[:2])],
)
def test_same_bits(case, names, expected, tmp_path) -> None:
    assert bits.CASES[case](names, tmp_path) == {name: expected[name] for name in names}
    assert len(set(expected.values())) == len(FEW)


def test_a_difference_is_told(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setitem(MODELS, FEW[0], lambda n_jobs: f"{n_jobs:064}")
    assert bits.run(tmp_path, ("2 threads",), FEW[:1]) == 1
    assert "0 same   1 different" in capsys.readouterr().out


def test_every_estimator_is_there() -> None:
    classifiers = [name for name in badacost.__all__ if name.endswith("Classifier")]
    assert all(any(model.startswith(name) for model in MODELS) for name in classifiers)
