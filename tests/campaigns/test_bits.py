"""The same bits in a few of the cases; ``python -m campaigns bits`` has all of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

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


def test_unknown_names(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"cases must be one of '2 threads'.*; got 'thread'"):
        bits.run(tmp_path, ("2 threads", "thread"), None)
    with pytest.raises(ValueError, match=r"models must be one of .*; got 'Bad'"):
        bits.run(tmp_path, None, ("BAdaCost", "Bad"))


def test_cases_that_compile_take_few_models(tmp_path, monkeypatch) -> None:
    asked = {}

    def fit(case: str, names: tuple[str, ...], folder: Path) -> dict[str, str]:
        asked[case] = names
        return dict.fromkeys(names, "0" * 64)

    monkeypatch.setattr(bits, "CASES", {case: partial(fit, case) for case in bits.CASES})
    monkeypatch.setattr(bits, "digests", lambda names, n_jobs: dict.fromkeys(names, "0" * 64))
    assert bits.run(tmp_path, None, None) == 0
    for case, names in asked.items():
        assert len(names) == (4 if case.startswith("cache") else len(MODELS)), case
        assert set(names) <= set(MODELS)


def test_every_estimator_is_there() -> None:
    classifiers = [*badacost.__all__, *badacost.family.__all__]
    assert all(
        any(model.startswith(name) for model in MODELS)
        for name in classifiers
        if name.endswith("Classifier")
    )
