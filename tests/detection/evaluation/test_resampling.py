"""The bootstrap over images: draws are evaluated as copies of images are, by every protocol."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badacost.detection.annotations import AnnotatedImage
from badacost.detection.boxes import Detections
from badacost.detection.evaluation import (
    ResampledPrecision,
    evaluate_coco,
    evaluate_fddb,
    evaluate_kitti,
    evaluate_voc,
    resample,
)
from badacost.detection.evaluation.resampling import draws, interval

BOX = [10.0, 10.0, 40.0, 40.0]


def found(box: list[float] | None) -> Detections:
    boxes = [] if box is None else [box]
    return Detections(np.reshape(boxes, (-1, 4)), [1.0] * len(boxes), [0] * len(boxes), ["any"])


def case(n_images: int):
    """Images of which only the first half is found by "half"; the last one has no object."""
    names = [f"{i}.png" for i in range(n_images)]
    truth = {name: AnnotatedImage(None, [BOX], name=name) for name in names[:-1]}
    truth[names[-1]] = AnnotatedImage(None, name=names[-1])
    there = {name: BOX if len(truth[name]) else None for name in names}
    half = {name: there[name] if i < n_images // 2 else None for i, name in enumerate(names)}
    detections = {
        "all": {name: found(box) for name, box in there.items()},
        "half": {name: found(box) for name, box in reversed(half.items())},
        "none": {name: found(None) for name in names},
    }
    return {name: evaluate_voc(boxes, truth) for name, boxes in detections.items()}


@given(st.integers(2, 12), st.integers(0, 2**31))
def test_certain_detectors_do_not_vary(n_images: int, seed: int) -> None:
    values = resample(case(n_images), n_resamples=5, seed=seed).values
    np.testing.assert_array_equal(values["all"], 1.0)
    np.testing.assert_array_equal(values["none"], 0.0)
    assert (values["half"] >= 0.0).all()
    assert (values["half"] <= 1.0).all()


def test_mean_and_range_of_an_uncertain_one() -> None:
    results = case(21)
    resampled = resample(results)
    values = resampled.values["half"]
    assert values.mean() == pytest.approx(0.5, abs=0.03)
    assert values.std() == pytest.approx(np.sqrt(0.25 / 20), rel=0.2)  # a share of 20 objects
    assert resampled.interval("half") == interval(values) == results["half"].ap_range
    np.testing.assert_array_equal(resample(results).values["half"], values)
    assert (resample(results, seed=1).values["half"] != values).any()


def street(seed: int):
    """Images with cars, a van and an ignored car, and detections near them."""
    rng = np.random.default_rng(seed)
    truth, detections = {}, {}
    for name in "abc":
        corners = rng.integers(0, 60, (5, 2))
        boxes = np.concatenate([corners, corners + rng.integers(26, 60, (5, 2))], axis=1)
        truth[name] = AnnotatedImage(
            None, boxes, ignore=[False] * 4 + [True], categories=["Car"] * 4 + ["Van"],
            angles=[0.0] * 5, size=(150, 150),
        )  # fmt: skip
        moved = np.tile(boxes, (2, 1)) + rng.integers(-4, 5, (10, 1))
        # Scores that differ: copies of an image must not mix with other images.
        scores = rng.permutation(10) + rng.random(10)
        detections[name] = Detections(moved, scores, [0] * 10, ["any"], [10.0], category="Car")
    return detections, truth


def copies(detections, truth, counts):
    """Images as often as they were drawn, under names of their own."""
    names = [(f"{name}{i}", name) for name, n in zip("abc", counts, strict=True) for i in range(n)]
    return {new: detections[old] for new, old in names}, {new: truth[old] for new, old in names}


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.tuples(*[st.integers(0, 3)] * 3).filter(any))
def test_draws_are_evaluated_as_copies_of_images(seed: int, counts: tuple[int, ...]) -> None:
    detections, truth = street(seed)
    backwards = dict(reversed(detections.items()))  # weights follow the annotations
    weights = np.array([counts])
    for evaluate in (evaluate_voc, evaluate_coco, evaluate_fddb):
        drawn = evaluate(*copies(detections, truth, counts))
        again = evaluate(backwards, truth).resampled_ap(weights)
        np.testing.assert_allclose(again, [drawn.ap], atol=1e-12)
    moderate = evaluate_kitti(backwards, truth, overlap=0.5).moderate
    drawn = evaluate_kitti(*copies(detections, truth, counts), overlap=0.5).moderate
    np.testing.assert_allclose(moderate.resampled_ap(weights), [drawn.ap_40], atol=1e-12)


def test_rates_of_fddb() -> None:
    truth = {name: SimpleNamespace(boxes=[BOX], size=(60, 60)) for name in "abcd"}
    detections = {name: found(BOX if name < "c" else None) for name in "abcd"}
    result = evaluate_fddb(detections, truth)
    low, high = result.rate_ranges(10)["discrete"]
    assert 0.0 <= low < result.discrete.rate_below(10) == 0.5 < high <= 1.0
    assert result.rate_ranges(0) == {"discrete": (0.0, 0.0), "continuous": (0.0, 0.0)}


def test_every_result_has_a_range() -> None:
    detections, truth = street(0)
    results = [f(detections, truth) for f in (evaluate_voc, evaluate_coco, evaluate_fddb)]
    for record in [r.to_dict() for r in [*results, evaluate_kitti(detections, truth)]]:
        low, high = record["ap_range"]
        assert 0.0 <= low <= record["ap"] <= high <= 1.0


def test_every_draw_has_an_object() -> None:
    n_objects = np.array([0, 0, 0, 3])
    weights = draws(n_objects, 200)
    assert (weights.sum(axis=1) == 4).all()
    assert (weights[:, 3] > 0).all()
    assert draws(np.zeros(3, np.int64), 2).shape == (2, 3)


def test_shares() -> None:
    resampled = ResampledPrecision({"a": np.array([1.0, 2, 3, 4]), "b": np.array([1.0, 1, 4, 1])})
    assert resampled.share_above("a", "b") == 0.625
    assert resampled.share_above("b", "a") == 0.375
    assert resampled.to_dict("a")["b"]["reference_above"] == 0.625
    assert resampled.to_dict("a")["a"]["reference_above"] is None
    assert resampled.to_dict("missing")["b"]["reference_above"] is None


def test_results_of_other_images_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in their images"):
        resample({"a": case(3)["all"], "b": case(4)["all"]})
    with pytest.raises(ValueError, match="at least one"):
        resample({})
    assert np.isnan(interval([np.nan])).all()
