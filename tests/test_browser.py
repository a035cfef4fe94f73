"""Reports in a real browser: whole, quiet, asking for nothing, and not wider than the screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from numpy.typing import ArrayLike

from badacost import BAdaCostClassifier
from badacost.cost_report import CostReport
from badacost.costs import labelled_costs
from badacost.detection.models import synthetic_cars
from badacost.detection.report import write_report
from badacost.detection.scenes import make_scenes
from tests.browser import Browser, browser

matplotlib.use("Agg")

COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 30.0], [7.0, 5.0, 0.0]])  # C[truth, prediction]


@pytest.fixture(scope="module")
def tab(tmp_path_factory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def classifier_page(path: Path, title: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    X = rng.normal(size=(200, 3)) + y[:, None]
    names = np.array(["mild", "<script>alert(1)</script>", "a name without any space " + "e" * 80])
    costs = labelled_costs(COSTS, names)
    model = BAdaCostClassifier(costs, n_estimators=5, max_depth=2).fit(X[::2], names[y[::2]])
    report = CostReport.from_estimator(
        model, X[1::2], names[y[1::2]], train=(X[::2], names[y[::2]]), abstain=2.0
    )
    report.save(path, title=title)


def many_classes_page(path: Path, title: str) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(260) % 26
    X = rng.normal(size=(260, 3)) + y[:, None]
    names = np.array(
        [f"{letter} and so on and so forth" for letter in "abcdefghijklmnopqrstuvwxyz"]
    )
    costs = rng.integers(1, 2000, (26, 26)) * (1.0 - np.eye(26))
    prices = labelled_costs(costs, names)
    model = BAdaCostClassifier(prices, n_estimators=2, max_depth=2).fit(X, names[y])
    CostReport.from_estimator(model, X, names[y]).save(path, title=title, currency="EUR")


def detector_page(path: Path, title: str) -> None:
    detector = synthetic_cars()
    images = make_scenes(2, n_views=len(detector.names), random_state=0)
    write_report(detector, path, annotated=images, title=title)


@pytest.mark.parametrize(
    ("write", "n_images"), [(classifier_page, 0), (many_classes_page, 0), (detector_page, 8)]
)
def test_report(tab, tmp_path, write, n_images) -> None:
    path = tmp_path / "page.html"
    write(path, "A title & <more>")
    tab.open(path)
    for width in (1200, 420):
        look = tab.look(width)
        assert look.title == "A title & <more>"
        assert look.width == width
        assert len(look.images) >= n_images
        assert all(complete and pixels > 0 for complete, pixels in look.images)
        assert look.scrolled <= width
        assert not look.overflowing
        assert "script" not in look.tags
        assert "Written by badacost" in look.text
    assert not tab.complaints
    asked = [url for url in tab.requests if not url.startswith("data:image/")]
    assert asked == [path.as_uri()]


def contrast(tab: Browser, selector: str) -> float:
    """Contrast of the text of an element with what is behind it, 1 to 21."""
    colours = tab.evaluate(
        f"""(() => {{
          const element = document.querySelector({selector!r});
          const behind = [];
          for (let e = element; e; e = e.parentElement) behind.push(getComputedStyle(e));
          return [getComputedStyle(element).color, ...behind.map(s => s.backgroundColor)].join('|');
        }})()"""
    )
    text, *layers = (
        [float(part) for part in re.findall(r"[\d.]+", colour)] for colour in colours.split("|")
    )
    mixed = np.full(3, 255.0)
    for layer in reversed(layers):
        opacity = layer[3] if len(layer) == 4 else 1.0
        mixed = opacity * np.array(layer[:3]) + (1.0 - opacity) * mixed

    def luminance(colour: ArrayLike) -> float:
        share = np.asarray(colour) / 255.0
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(text[:3]), luminance(mixed)])
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_can_be_read(tab, tmp_path) -> None:
    path = tmp_path / "page.html"
    classifier_page(path, "title")
    tab.open(path)
    papers = []
    for scheme in ("light", "dark"):
        tab.prefer(scheme)
        papers.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
        strongest = ".heat td[style='--shade: 1.000']"
        for selector in ("body", ".lead", ".keys dt", "nav a", "figcaption", strongest):
            assert contrast(tab, selector) >= 4.5, (scheme, selector)
    tab.prefer("light")
    assert papers == ["rgb(255, 255, 255)", "rgb(20, 23, 26)"]


def test_the_browser_tells_what_is_wrong(tab, tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        '<title>t</title><img src="http://example.com/x.png"><p style="width: 9000px">wide</p>'
        "<script>console.error('a complaint')</script>"
    )
    tab.open(path)
    look = tab.look(420)
    assert look.scrolled > 420
    assert look.overflowing == ["P "]
    assert look.images == [[True, 0]]
    assert any("a complaint" in text for text in tab.complaints)
    assert "http://example.com/x.png" in tab.requests
