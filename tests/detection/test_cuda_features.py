"""Kernels of features, run on the CPU, against the compiled loops: the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from badacost._utils.parallel import Threads
from badacost.detection import channel_kernels
from badacost.detection.channels import (
    ChannelParameters,
    GradientParameters,
    HistogramParameters,
    compute_channels,
    fill_resampled,
    resampling_weights,
    rgb_to_luv,
)
from badacost.detection.cuda_features import (
    ChannelMaps,
    Colours,
    Luv,
    Program,
    Resamplings,
    WindowMaps,
    add_decorrelation,
)
from badacost.detection.decorrelation import as_filters, decorrelate, half
from tests.backends.on_cpu import OnCpu, needs_compiler

pytestmark = needs_compiler
FACTORS = np.array([0.5, 1.25], np.float32)
SIZES = [(24, 37), (8, 9), (41, 12), (36, 140)]
CHANNELS = {
    "usual": ChannelParameters(shrink=2),
    "large cells": ChannelParameters(shrink=4),
    "odd cells": ChannelParameters(shrink=3, histogram=HistogramParameters(n_orientations=9)),
    "pixels": ChannelParameters(shrink=1),
    "smoothed a little": ChannelParameters(shrink=2, smoothing=1),
    "smoothed": ChannelParameters(shrink=2, smoothing=3),
    "no norm": ChannelParameters(shrink=2, gradient=GradientParameters(norm_radius=0)),
    "small norm": ChannelParameters(shrink=2, gradient=GradientParameters(norm_radius=1)),
    "wide norm": ChannelParameters(
        shrink=2, gradient=GradientParameters(norm_radius=20, norm_constant=0.1)
    ),
    "very wide norm": ChannelParameters(shrink=2, gradient=GradientParameters(norm_radius=40)),
    "full circle": ChannelParameters(
        shrink=4,
        gradient=GradientParameters(full=True),
        histogram=HistogramParameters(n_orientations=12, soft=False),
    ),
    "one orientation": ChannelParameters(shrink=4, histogram=HistogramParameters(n_orientations=1)),
}


def random_image(seed: int, height: int, width: int) -> np.ndarray:
    """Noise with a flat part, in which there is no gradient."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    image[: height // 3, : width // 2] = 77
    return image


def random_planes(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_colours() -> None:
    device = OnCpu()
    every = np.arange(256, dtype=np.uint8)
    images = np.stack([random_image(0, 16, 48), np.resize(every, (16, 48, 3))])
    out = np.empty(images.size, np.float32)
    Luv(Program(device), (16, 48)).fill(images, out)
    assert out.tobytes() == b"".join(rgb_to_luv(image).tobytes() for image in images)


@pytest.mark.parametrize("kind", CHANNELS)
def test_channels_of_several_images(kind) -> None:
    parameters, program = CHANNELS[kind], Program(OnCpu())
    shrink = parameters.shrink
    planes = [
        rgb_to_luv(random_image(seed, height // shrink * shrink, width // shrink * shrink))
        for seed, (height, width) in enumerate(SIZES)
    ]
    ends = np.cumsum([0, *(each.size for each in planes)])
    images = [
        Colours(*each.shape[1:], place) for each, place in zip(planes, ends[:-1], strict=True)
    ]
    maps = ChannelMaps(program, parameters, images, np.concatenate([p.ravel() for p in planes]))
    program.run()
    expected = [compute_channels(each, parameters) for each in planes]
    assert [each.shape[1:] for each in expected] == maps.sizes
    assert maps.values.tobytes() == b"".join(each.tobytes() for each in expected)


def resampled(source: np.ndarray, size: tuple[int, int], by_squares: bool) -> np.ndarray:
    """What the compiled loops make of planes; levels of a pyramid know no squares of pixels."""
    out = np.empty((len(source), *size), np.float32)
    if by_squares:
        fill_resampled(source, FACTORS, out, Threads())
    else:
        rows, columns = map(resampling_weights, source.shape[1:], size)
        channel_kernels.resampled_rows(source, *rows, *columns, FACTORS, 0, size[0], out)
    return out


@pytest.mark.parametrize("by_squares", [True, False])
def test_resampling(by_squares) -> None:
    cases = [
        ((12, 18), (6, 9)),  # squares of two pixels
        ((12, 18), (4, 6)),
        ((12, 18), (5, 9)),  # one side of two pixels, the other not
        ((12, 18), (11, 30)),  # one side shrinks, the other grows
        ((12, 18), (12, 7)),
        ((12, 18), (12, 18)),
        ((1, 1), (3, 5)),
        ((41, 50), (3, 4)),  # many pixels of each
    ]
    planes = [random_planes(k, 2, *size) for k, (size, _) in enumerate(cases)]
    jobs, program = Resamplings(), Program(OnCpu())
    place = target = 0
    for source, (size, to) in zip(planes, cases, strict=True):
        jobs.add(place, size, target, to, FACTORS, by_squares=by_squares)
        place, target = place + source.size, target + 2 * to[0] * to[1]
    found = np.empty(target, np.float32)
    jobs.launch(program, 2, np.concatenate([each.ravel() for each in planes]), found)
    program.run()
    expected = [
        resampled(source, size, by_squares) for source, (_, size) in zip(planes, cases, strict=True)
    ]
    assert found.tobytes() == b"".join(each.tobytes() for each in expected)


@pytest.mark.parametrize("n_filters", [1, 3, 4, 5])
def test_decorrelation(n_filters) -> None:
    sizes = [(12, 18), (13, 18), (12, 17), (7, 9), (1, 1), (2, 1)]
    filters = as_filters(random_planes(9, n_filters, 3, 5, 5), 3)
    planes = [random_planes(k, 3, *size) for k, size in enumerate(sizes)]
    expected = [decorrelate(each, filters) for each in planes]
    places = np.cumsum([0, *(each.size for each in planes)])[:-1].tolist()
    # Results lie below each other in planes of as many columns as the widest has.
    pitch, rows = half(18), np.cumsum([0, *(half(height) for height, _ in sizes)])
    found = np.zeros((3 * n_filters, rows[-1], pitch), np.float32)
    program = Program(OnCpu())
    maps = list(zip(places, sizes, (rows[:-1] * pitch).tolist(), strict=True))
    source = np.concatenate([each.ravel() for each in planes])
    add_decorrelation(program, filters, maps, source, found, pitch, rows[-1] * pitch)
    program.run()
    for first, each in zip(rows, expected, strict=False):
        part = found[:, first : first + each.shape[1], : each.shape[2]]
        assert part.tobytes() == each.tobytes()


def test_windows_are_computed_in_parts(monkeypatch) -> None:
    monkeypatch.setattr("badacost.detection.cuda_features._WINDOWS_AT_ONCE", 2)
    crops = np.stack([random_image(seed, 24, 32) for seed in range(5)])
    maps = WindowMaps(OnCpu(), (24, 32), ChannelParameters(shrink=2), False, None)
    out = np.empty((5, 10 * 3 * 4), np.float32)
    maps.fill(crops, slice(2, 5), slice(1, 5), out)
    for crop, features in zip(crops, out, strict=True):
        channels = compute_channels(rgb_to_luv(crop), ChannelParameters(shrink=2))
        assert features.tobytes() == channels[:, 2:5, 1:5].tobytes()


def test_images_that_are_too_large() -> None:
    with pytest.raises(ValueError, match='too large for device="cuda": reduce it'):
        Program(OnCpu()).empty(2**31)
