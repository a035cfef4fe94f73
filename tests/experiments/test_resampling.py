"""The bootstrap over images: what is certain stays certain, and detectors share their draws."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import evaluate_voc
from badacost.experiments.resampling import ResampledPrecision, resampled_precision

BOX = [10.0, 10.0, 40.0, 40.0]


def found(box: list[float] | None) -> Detections:
    boxes = [] if box is None else [box]
    return Detections(np.reshape(boxes, (-1, 4)), [1.0] * len(boxes), [0] * len(boxes), ["any"])


def case(n_images: int) -> tuple[dict, dict]:
    """Images of which only the first half is found by "half"; the last one has no object."""
    names = [f"{i}.png" for i in range(n_images)]
    truth = {name: AnnotatedImage(None, [BOX], name=name) for name in names[:-1]}
    truth[names[-1]] = AnnotatedImage(None, name=names[-1])
    there = {name: BOX if len(truth[name]) else None for name in names}
    half = {name: there[name] if i < n_images // 2 else None for i, name in enumerate(names)}
    return {
        "all": {name: found(box) for name, box in there.items()},
        "half": {name: found(box) for name, box in half.items()},
        "none": {name: found(None) for name in names},
    }, truth


@given(st.integers(2, 12), st.integers(0, 2**31))
def test_certain_detectors_do_not_vary(n_images: int, seed: int) -> None:
    detections, truth = case(n_images)
    values = resampled_precision(detections, truth, overlap=0.5, n_resamples=5, seed=seed).values
    np.testing.assert_array_equal(values["all"], 1.0)
    np.testing.assert_array_equal(values["none"], 0.0)
    assert (values["half"] >= 0.0).all()
    assert (values["half"] <= 1.0).all()


def test_mean_and_range_of_an_uncertain_one() -> None:
    detections, truth = case(21)
    resampled = resampled_precision(detections, truth, overlap=0.5, n_resamples=300, seed=0)
    values = resampled.values["half"]
    assert values.mean() == pytest.approx(0.5, abs=0.03)
    assert values.std() == pytest.approx(np.sqrt(0.25 / 20), rel=0.2)  # a share of 20 objects
    low, high = resampled.interval("half")
    assert low == np.percentile(values, 2.5)
    assert high == np.percentile(values, 97.5)
    again = resampled_precision(detections, truth, overlap=0.5, n_resamples=300, seed=0)
    np.testing.assert_array_equal(again.values["half"], values)


@given(st.integers(0, 2**31))
def test_draws_are_evaluated_as_images_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, detections = {}, {}
    for name in ("a", "b", "c"):
        corners = rng.integers(0, 40, (4, 2))
        boxes = np.concatenate([corners, corners + rng.integers(1, 40, (4, 2))], axis=1)
        truth[name] = AnnotatedImage(None, boxes, ignore=[False, False, False, True], name=name)
        moved = np.tile(boxes, (2, 1)) + rng.integers(-4, 5, (8, 1))
        scores = rng.integers(0, 5, 8).astype(float)
        detections[name] = Detections(moved, scores, [0] * 8, ["any"])
    given_all = evaluate_voc(detections, truth, overlap=0.6).ap
    drawn = [0, 1, 2]
    with mock.patch("numpy.random.default_rng") as generator:
        generator.return_value.integers.return_value = np.array(drawn)
        found = resampled_precision({"x": detections}, truth, overlap=0.6, n_resamples=1, seed=0)
    assert found.values["x"][0] == pytest.approx(given_all, abs=1e-12)


def test_shares() -> None:
    resampled = ResampledPrecision({"a": np.array([1.0, 2, 3, 4]), "b": np.array([1.0, 1, 4, 1])})
    assert resampled.share_above("a", "b") == 0.625
    assert resampled.share_above("b", "a") == 0.375
    assert resampled.to_dict("a")["b"]["reference_above"] == 0.625
    assert resampled.to_dict("a")["a"]["reference_above"] is None
    assert resampled.to_dict("missing")["b"]["reference_above"] is None
