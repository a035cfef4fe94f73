"""The cost explorer: what goes on its page, and the page in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from badacost import MinimumCostClassifier
from badacost.cost_report import CostExplorer
from badacost.costs import labelled_costs, read_costs, write_costs
from badacost.tabular import CostSummary, TableClassifier
from tests.browser import Browser, browser

COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 30.0], [7.0, 5.0, 0.0]])  # C[truth, prediction]
TIMES = "\u00d7"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'&amp;,;\u202eabc",
    "long " * 400 + "end",
]


@pytest.fixture(scope="module")
def tab(tmp_path_factory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def problem(n_classes: int, n_rows: int, seed: int, **options: Any) -> CostExplorer:
    """Random probabilities, prices that are not symmetric, answers that are not the cheapest."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_rows)
    scores = rng.normal(size=(n_rows, n_classes)) + 1.5 * np.eye(n_classes)[truth]
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    costs = rng.uniform(1.0, 20.0, (n_classes, n_classes)).round(2)
    np.fill_diagonal(costs, rng.uniform(0.0, 0.9, n_classes).round(2))
    options = {"truth": truth, "features": {"score": scores[:, 0]}, **options}
    labels = [f"class {k}" for k in range(n_classes)]
    return CostExplorer(labels, probabilities, costs, scores.argmax(axis=1), **options)


def shown(tab: Browser, explorer: CostExplorer, folder: Path) -> None:
    """Open the page of an explorer."""
    path = folder / "explorer.html"
    explorer.save(path)
    assert list(folder.iterdir()) == [path]
    tab.look(1200)
    tab.open(path)


def finish(tab: Browser) -> None:
    """Wait for the panels that take longer."""
    tab.wait_for("performance.getEntriesByName('explorer:all').length")


def set_price(tab: Browser, i: int, j: int, text: str) -> None:
    tab.type(f"#price-{i}-{j}", text)
    tab.press("Enter")


def prices(tab: Browser, n_classes: int) -> np.ndarray:
    cells = "[...document.querySelectorAll('#matrix input')].map(input => Number(input.value))"
    return np.array(tab.evaluate(cells)).reshape(n_classes, n_classes)


def averages(tab: Browser) -> dict[str, float]:
    found = tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('[data-way]')]"
        ".map(cell => [cell.dataset.way, Number(cell.dataset.value)]))"
    )
    assert float(
        tab.evaluate("document.querySelector('#headline').dataset.value")
    ) == pytest.approx(found.get("asking", found["minimum"]))
    return {str(name): float(value) for name, value in found.items()}


def expected_averages(explorer: CostExplorer, costs: np.ndarray, ask: float | None) -> Any:
    """What the page must show, in numpy."""
    shares, truth = explorer.probabilities, explorer.truth
    n_rows, n_classes = shares.shape
    weight = np.ones(n_rows) if explorer.sample_weight is None else explorer.sample_weight
    rows = np.eye(n_classes)[truth] if truth is not None else shares

    def average(decisions: np.ndarray) -> float:
        table = np.column_stack([rows @ costs, np.full(n_rows, np.inf if ask is None else ask)])
        return float(np.average(table[np.arange(n_rows), decisions], weights=weight))

    decided = (shares @ costs).argmin(axis=1)
    constants = [average(np.full(n_rows, k)) for k in range(n_classes)]
    figures = {
        "minimum": average(decided),
        "fitted": average(explorer.answers),
        "likely": average(shares.argmax(axis=1)),
        "constant": min([*constants, *([] if ask is None else [ask])]),
    }
    if ask is not None:
        asked = np.where((shares @ costs).min(axis=1) >= ask, n_classes, decided)
        figures["asking"] = average(asked)
    for number, rival in enumerate(explorer.rivals.values()):
        figures[f"rival-{number}-likely"] = average(rival.argmax(axis=1))
        figures[f"rival-{number}-minimum"] = average((rival @ costs).argmin(axis=1))
    return pytest.approx(figures, rel=1e-5)


def rivals_of(n_rows: int, n_classes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(9)
    return {name: rng.dirichlet(np.ones(n_classes), n_rows) for name in ("blind", "forest")}


CASES = {
    "two classes": (2, {}),
    "three, asking": (3, {"abstain": 2.5}),
    "weights": (4, {"sample_weight": np.random.default_rng(3).uniform(0, 3, 300)}),
    "rivals, asking, weights": (
        3,
        {
            "rivals": rivals_of(300, 3),
            "abstain": 3.0,
            "sample_weight": np.arange(300.0),
        },
    ),
    "truth unknown": (3, {"truth": None}),
    "truth unknown, asking, weights": (
        5,
        {"truth": None, "abstain": 2.0, "sample_weight": np.arange(300.0)},
    ),
    "ten classes": (10, {"rivals": rivals_of(300, 10)}),
    "twenty classes": (20, {"abstain": 4.0}),
}


@pytest.mark.parametrize("case", CASES)
def test_figures_are_those_of_numpy(tab, tmp_path, case) -> None:
    n_classes, options = CASES[case]
    explorer = problem(n_classes, 300, 1, **options)
    shown(tab, explorer, tmp_path)
    costs, ask = explorer.costs.copy(), explorer.abstain
    assert averages(tab) == expected_averages(explorer, costs, ask)
    rng = np.random.default_rng(2)
    for i, j, price in [(0, 1, 0.95), (1, 0, 55.5), *((*rng.integers(n_classes, size=2), 3.25),)]:
        costs[i, j] = price
        set_price(tab, i, j, str(price))
        assert averages(tab) == expected_averages(explorer, costs, ask)
    for text in ("1.75", ""):
        tab.type("#ask", text)
        assert averages(tab) == expected_averages(explorer, costs, float(text) if text else None)
    tab.click("#reset")
    assert averages(tab) == expected_averages(explorer, explorer.costs, explorer.abstain)
    assert not tab.complaints
    assert tab.requests == [(tmp_path / "explorer.html").as_uri()]
    assert ("The truth of these rows is not known" in tab.text("header")) == (
        explorer.truth is None
    )


def test_confusion_in_money(tab, tmp_path) -> None:
    explorer = problem(3, 200, 4, abstain=3.5, currency="EUR")
    shown(tab, explorer, tmp_path)
    decided = (explorer.probabilities @ explorer.costs).argmin(axis=1)
    decided[(explorer.probabilities @ explorer.costs).min(axis=1) >= 3.5] = 3
    for i in range(3):
        for j in range(3):
            count = int(((explorer.truth == i) & (decided == j)).sum())
            text = tab.evaluate(f"document.querySelector('#price-{i}-{j}').nextSibling.textContent")
            times, _, total = text.removeprefix(f"{TIMES} ").partition(" = ")
            assert int(times) == count
            if count:
                assert float(total.replace(",", "")) == pytest.approx(
                    count * explorer.costs[i, j], rel=1e-3, abs=0.5
                )
    asked = tab.evaluate(
        "[...document.querySelectorAll('#matrix tbody td.ask small')].map(s => s.textContent)"
    )
    counts = [int(((explorer.truth == i) & (decided == 3)).sum()) for i in range(3)]
    assert [int(re.match(rf"{TIMES} (\d+)", text)[1]) for text in asked[:3]] == counts
    assert f"{(decided == 3).mean():.0%}".replace("%", " %") in tab.text("#asked")
    for word in ("price", "count", "sum", "in EUR"):
        assert word in tab.text(".legend")


def test_rows_whose_decision_changes(tab, tmp_path) -> None:
    features = {"name": [f"<b>{k}</b>" for k in range(200)], "missing": [None] * 200}
    explorer = problem(3, 200, 5, features=features)
    shown(tab, explorer, tmp_path)
    costs = explorer.costs.copy()
    costs[0, 2] = 60.0
    set_price(tab, 0, 2, "60")
    finish(tab)
    decided = (explorer.probabilities @ costs).argmin(axis=1)
    (changed,) = np.nonzero(decided != explorer.answers)
    assert 40 < len(changed) < 150
    assert tab.text("#changes-lead").startswith(f"{len(changed)} of 200 decisions")
    rows = (
        "[...document.querySelectorAll('#changes-table tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    cells = tab.evaluate(rows)
    tab.click("#next")
    cells += tab.evaluate(rows)
    assert len(cells) == 40
    for r, (row, truth, old, new, price, name, none) in zip(changed, cells, strict=False):
        labels = explorer.labels
        assert (row, name, none) == (str(r + 1), f"<b>{r}</b>", "")
        assert (truth, old, new) == (
            labels[explorer.truth[r]], labels[explorer.answers[r]], labels[decided[r]]
        )  # fmt: skip
        paid = [float(part) for part in price.split(" → ")]
        at = explorer.truth[r]
        assert paid == [costs[at, explorer.answers[r]], costs[at, decided[r]]]
    tab.click("#previous")
    assert tab.evaluate(rows) == cells[:20]


@pytest.mark.parametrize("ask", [None, 2.0])
def test_how_far_prices_can_move(tab, tmp_path, ask) -> None:
    explorer = problem(3, 250, 6, abstain=ask)
    shares = explorer.probabilities.astype(np.float32).astype(np.float64)

    def decide(costs: np.ndarray) -> np.ndarray:
        expected = shares @ costs
        if ask is not None:
            expected = np.column_stack([expected, np.full(len(shares), ask)])
        return expected.argmin(axis=1)

    shown(tab, explorer, tmp_path)
    finish(tab)
    now = decide(explorer.costs)
    seen = 0
    for choice, n_changes in (("0", 1), ("1", 3)):
        tab.click(f"input[name=share][value='{choice}']")
        cells = tab.evaluate(
            "[...document.querySelectorAll('#limits-table td')]"
            ".map(cell => [cell.dataset.low, cell.dataset.high])"
        )
        for k, limits in enumerate(cells):
            for limit, outward in zip(limits, (-1.0, 1.0), strict=True):
                i, j = divmod(k, 3)
                for step, is_beyond in ((1e-6, True), (-1e-6, False)):
                    costs = explorer.costs.copy()
                    bound = float(limit) if limit else (0.0 if outward < 0 else 1e7)
                    costs[i, j] = max(0.0, bound + outward * step * bound)
                    n_changed = (decide(costs) != now).sum()
                    if limit and is_beyond:
                        assert n_changed >= n_changes, (choice, i, j, limits)
                        seen += 1
                    else:
                        assert n_changed < n_changes, (choice, i, j, limits)
    assert seen > 20


@pytest.mark.parametrize("options", [{}, {"truth": None}, {"abstain": 2.0}])
def test_curve(tab, tmp_path, options) -> None:
    explorer = problem(4, 150, 7, **options)
    shown(tab, explorer, tmp_path)
    tab.click("#price-2-1")
    tab.evaluate("document.querySelector('#chart').focus()")
    base = explorer.costs[2, 1]
    for key, price in (("Home", base / 16), ("End", base * 16), ("ArrowLeft", base * 2**3.9375)):
        tab.press(key)
        costs = explorer.costs.copy()
        costs[2, 1] = price
        text = tab.text("#readout")
        at, cost, share, fitted = re.match(
            r"At a price of ([\d.,]+), a decision costs ([\d.]+) on average; ([\d.]+) % of .* "
            r"cost ([\d.]+)\.$",
            text,
        ).groups()
        figures = expected_averages(explorer, costs, explorer.abstain).expected
        assert float(at.replace(",", "")) == pytest.approx(price, rel=1e-3)
        assert float(cost) == pytest.approx(figures.get("asking", figures["minimum"]), rel=1e-3)
        assert float(fitted) == pytest.approx(figures["fitted"], rel=1e-3)
        expected = explorer.probabilities @ costs
        decided = expected.argmin(axis=1)
        if explorer.abstain is not None:
            decided[expected.min(axis=1) >= explorer.abstain] = 4
        assert float(share) == pytest.approx(100 * (decided != explorer.answers).mean(), abs=0.5)
    tab.press("Escape")
    assert tab.text("#readout").startswith("Now, at a price of")
    x, y, width = tab.evaluate(
        "(() => { const box = document.querySelector('#chart').getBoundingClientRect();"
        " return [box.x, box.y, box.width]; })()"
    )
    tab.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x + width / 2, y=y + 50)
    assert tab.text("#readout").startswith("At a price of")
    assert tab.evaluate("document.querySelectorAll('#chart svg path').length") == 3


def test_undo_redo_and_reset(tab, tmp_path) -> None:
    explorer = problem(3, 100, 8)
    shown(tab, explorer, tmp_path)
    disabled = "['undo', 'redo', 'reset'].map(id => document.getElementById(id).disabled)"
    assert tab.evaluate(disabled) == [True, True, True]
    states = [averages(tab)]
    for j, price in ((1, "3"), (2, "44")):
        set_price(tab, 0, j, price)
        states.append(averages(tab))
    tab.click("#undo")
    assert averages(tab) == states[1]
    assert prices(tab, 3)[0].tolist() == [explorer.costs[0, 0], 3.0, explorer.costs[0, 2]]
    tab.press("z", ctrl=True)
    assert averages(tab) == states[0]
    assert tab.evaluate(disabled) == [True, False, True]
    tab.press("z", ctrl=True, shift=True)
    tab.press("y", ctrl=True)
    assert averages(tab) == states[2]
    assert tab.evaluate(disabled) == [False, True, False]
    tab.click("#reset")
    assert averages(tab) == states[0]
    tab.click("#undo")
    assert averages(tab) == states[2], "a reset can be undone"
    tab.click("#undo")
    set_price(tab, 1, 0, "2")
    assert tab.evaluate(disabled)[1], "a new price ends what could be done again"


def test_invalid_prices(tab, tmp_path) -> None:
    explorer = problem(3, 100, 8)
    shown(tab, explorer, tmp_path)
    before = averages(tab)
    for text, message in (
        ("-3", "cannot be negative"),
        ("abc", "Write a number"),
        ("", "Give a price"),
        ("1e400", "at most 1e300"),
        ("1,5", "Write a decimal point"),
    ):
        tab.type("#price-0-1", text)
        said = tab.text("#price-0-1-error")
        assert message in said
        assert f"{explorer.costs[0, 1]:g} still counts" in said
        assert tab.evaluate("document.querySelector('#price-0-1').ariaInvalid") == "true"
        assert averages(tab) == before
    tab.press("Escape")
    assert tab.text("#price-0-1-error") == ""
    assert prices(tab, 3).tolist() == explorer.costs.tolist()
    tab.type("#ask", "often")
    assert "Write a number" in tab.text("#ask-error")
    tab.type("#ask", "")
    assert tab.text("#ask-error") == ""
    set_price(tab, 1, 1, "50")
    assert "being right costs more than the answer" in tab.text("#warning")
    tab.click("#save")
    assert tab.text("#message").startswith("Not saved")


def test_a_class_that_a_file_cannot_keep(tab, tmp_path) -> None:
    explorer = CostExplorer([" a", "b"], [[0.5, 0.5]], [[0, 1], [1, 0]], [0])
    shown(tab, explorer, tmp_path)
    tab.click("#save")
    assert "cannot be kept in a CSV file: rename it" in tab.text("#message")


def test_slider(tab, tmp_path) -> None:
    explorer = problem(3, 100, 8)
    shown(tab, explorer, tmp_path)
    tab.click("#price-1-2")
    tab.evaluate("document.querySelector('#ratio').focus()")
    tab.press("End")
    costs = explorer.costs.copy()
    costs[1, 2] *= 16
    assert prices(tab, 3) == pytest.approx(costs, rel=1e-3)
    tab.press("Home")
    costs[1, 2] /= 256
    assert prices(tab, 3) == pytest.approx(costs, rel=1e-3)
    assert averages(tab) == expected_averages(explorer, prices(tab, 3), None)
    assert f"0.0625 {TIMES} what it was" in tab.text("#ratio-text")


def test_keyboard(tab, tmp_path) -> None:
    shown(tab, problem(3, 100, 8), tmp_path)
    focus = "document.activeElement.id"
    tab.evaluate("document.querySelector('#price-0-0').focus()")
    for key, place in (
        ("ArrowRight", "0-1"), ("ArrowDown", "1-1"), ("ArrowDown", "2-1"), ("ArrowDown", "2-1"),
        ("ArrowLeft", "2-0"), ("ArrowUp", "1-0"), ("ArrowLeft", "1-0"),
    ):  # fmt: skip
        tab.press(key)
        assert tab.evaluate(focus) == f"price-{place}"
    tab.ask("Input.insertText", text="17")
    tab.press("ArrowLeft")
    tab.ask("Input.insertText", text=".")
    assert tab.evaluate("document.activeElement.value") == "1.7", (
        "arrows move in a text being typed"
    )
    assert tab.evaluate(focus) == "price-1-0"
    tab.press("Enter")
    assert prices(tab, 3)[1, 0] == 1.7
    reached = []
    tab.evaluate("document.querySelector('#undo').focus()")
    for _ in range(12):
        reached.append(tab.evaluate(focus) or tab.evaluate("document.activeElement.name"))
        tab.press("Tab")
    assert reached[:7] == ["undo", "reset", "load", "save", "price-1-0", "ratio", "ask"]
    assert {"chart", "share"} <= set(reached)
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    unnamed = (
        "[...document.querySelectorAll('input')].filter(input => !input.ariaLabel && "
        "!input.labels.length).length"
    )
    assert tab.evaluate(unnamed) == 0
    assert tab.evaluate("document.querySelector('#headline').ariaLive") == "polite"


def test_costs_are_saved_and_loaded(tab, tmp_path) -> None:
    labels = ['a "quoted", label', "semi;colon", "</script>", "Ávila 自"]
    rng = np.random.default_rng(0)
    costs = rng.uniform(0.1, 9.0, (4, 4)) * (1 - np.eye(4))
    explorer = CostExplorer(labels, rng.dirichlet(np.ones(4), 50), costs, np.zeros(50, int))
    page, folder = tmp_path / "page", tmp_path / "files"
    page.mkdir()
    shown(tab, explorer, page)
    set_price(tab, 2, 0, "123456.789")
    path = tab.download("#save", folder)
    assert path.name == "costs.csv"
    saved = read_costs(path, classes=labels)
    costs[2, 0] = 123456.789
    assert list(read_costs(path)) == labels
    assert saved == labelled_costs(costs, labels)
    tab.click("#reset")
    tab.upload("#file", path)
    message(tab, "Loaded")
    assert prices(tab, 4).tolist() == costs.tolist()
    reversed_costs = rng.uniform(0.1, 9.0, (4, 4)) * (1 - np.eye(4))
    write_costs(reversed_costs, folder / "other.csv", classes=labels[::-1])
    tab.upload("#file", folder / "other.csv")
    message(tab, "Loaded other.csv")
    assert prices(tab, 4).tolist() == reversed_costs[::-1, ::-1].tolist()
    tab.click("#undo")
    assert prices(tab, 4).tolist() == costs.tolist()
    assert not tab.complaints


def message(tab: Browser, part: str) -> str:
    """Wait for a message."""
    found = f"document.querySelector('#message').textContent.includes({json.dumps(part)})"
    tab.wait_for(found)
    return tab.text("#message")


GOOD = "truth,a,b,c\na,,1,2\nb,3,,4\nc,5,6,\n"
FILES = {
    "semicolons": (GOOD.replace(",", ";").replace("3", "3,5"), None),
    "tabs and a mark": ("\ufeff" + GOOD.replace(",", "\t"), None),
    "utf-16": (GOOD.encode("utf-16"), None),
    "no table": ("nothing of use\n", "has no table of costs"),
    "unknown class": (GOOD.replace("c", "d"), "“d” is not a class of this model"),
    "class missing": ("truth,a,b\na,,1\nb,3,\n", "there is no column “c”"),
    "class twice": (GOOD + "a,0,1,2\n", "more than one row “a”"),
    "word": (GOOD.replace("4", "four"), "“four”. Write a number"),
    "negative": (GOOD.replace("4", "-4"), "A price cannot be negative"),
    "blank": (GOOD.replace("4", ""), "Give a price"),
    "too large": (GOOD.replace("4", "1e999"), "at most 1e300"),
    "free class": (GOOD.replace("b,3,,4", "b,0,,0"), "All mistakes on “b” are free"),
    "open quote": (GOOD.replace("a,,", '"a,,'), "check the quotation marks"),
    "latin-1": (GOOD.replace("truth", "vérité").encode("latin-1"), "not text in UTF-8"),
}


def test_files_that_are_loaded(tab, tmp_path) -> None:
    rng = np.random.default_rng(0)
    explorer = CostExplorer(
        list("abc"), rng.dirichlet(np.ones(3), 40), COSTS, np.zeros(40, int), np.zeros(40, int)
    )
    (tmp_path / "page").mkdir()
    shown(tab, explorer, tmp_path / "page")
    for number, (content, problem) in enumerate(FILES.values()):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        before = prices(tab, 3).tolist()
        tab.upload("#file", path)
        said = message(tab, f"{number}.csv")
        if problem is None:
            assert said == f"Loaded {number}.csv."
            costs = read_costs(path, classes=list("abc"))
            assert prices(tab, 3).tolist() == [[*row.values()] for row in costs.values()]
        else:
            assert problem in said
            assert "was not loaded" in said
            assert prices(tab, 3).tolist() == before
            with pytest.raises(ValueError, match=r"\S"):
                read_costs(path, classes=list("abc"))
    assert not tab.complaints


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_on_screens_of_all_sizes(tab, tmp_path, scheme) -> None:
    rng = np.random.default_rng(0)
    features = {name: [name] * 60 for name in HOSTILE} | {"n": rng.normal(size=60)}
    explorer = CostExplorer(
        HOSTILE, rng.dirichlet(np.ones(4), 60), 1 - np.eye(4), rng.integers(4, size=60),
        rng.integers(4, size=60), features, HOSTILE * 15, 0.5,
        rivals={HOSTILE[0]: np.full((60, 4), 0.25)}, currency="<b>", title=HOSTILE[0],
        note=HOSTILE[1],
    )  # fmt: skip
    tab.prefer(scheme)
    shown(tab, explorer, tmp_path)
    finish(tab)
    for width in (1200, 420):
        look = tab.look(width, mobile=width == 420)
        finish(tab)
        assert look.title == HOSTILE[0]
        assert (look.width, look.scrolled) == (width, width)
        assert not look.overflowing
        assert "img" not in look.tags
        assert look.tags.count("script") == 2
        assert HOSTILE[1] in look.text
    assert not tab.complaints
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = np.mean([int(part) for part in re.findall(r"\d+", background)])
    assert brightness > 200 if scheme == "light" else brightness < 50
    assert tab.evaluate("document.querySelectorAll('bdi.label').length") > 50


def test_contrast(tab, tmp_path) -> None:
    """Text and its background differ enough for WCAG AA, in both schemes."""
    shown(tab, problem(3, 100, 8, abstain=2.0), tmp_path)
    set_price(tab, 0, 1, "x")
    colours = (
        "['ink', 'soft', 'mark', 'wrong', 'paper', 'card'].map(name => {"
        " document.body.style.color = `var(--${name})`;"
        " return getComputedStyle(document.body).color; })"
    )
    for scheme in ("light", "dark"):
        tab.prefer(scheme)
        found = [[int(part) for part in re.findall(r"\d+", text)] for text in tab.evaluate(colours)]
        light = [luminance(colour) for colour in found]
        for text in light[:4]:
            for ground in light[4:]:
                high, low = max(text, ground), min(text, ground)
                assert (high + 0.05) / (low + 0.05) > 4.5


def luminance(colour: list[int]) -> float:
    parts = np.array(colour) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_in_a_notebook(tab, tmp_path) -> None:
    path = tmp_path / "notebook.html"
    explorer = problem(3, 100, 8, title=HOSTILE[2])
    path.write_text(explorer._repr_html_(), encoding="utf-8")
    tab.open(path)
    frame = "document.querySelector('iframe')"
    assert tab.evaluate(f"{frame}.sandbox.value") == "allow-scripts allow-downloads"
    assert tab.evaluate(f"{frame}.srcdoc") == explorer.to_html()
    assert not tab.complaints


def test_the_page_runs_nothing_else(tab, tmp_path) -> None:
    html = problem(3, 50, 0).to_html()
    policy = re.search(r'content="(default-src[^"]*)"', html)[1]
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 2
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)|style=|onclick", html)
    path = tmp_path / "page.html"
    path.write_text(html.replace("</body>", "<script>document.title = 'broken'</script></body>"))
    tab.open(path)
    assert tab.evaluate("document.title") == "Cost explorer"
    assert any("Content Security Policy" in text for text in tab.complaints)


def test_ties_are_no_changes(tab, tmp_path) -> None:
    shares = np.array([[0.5, 0.5], [5 / 6, 1 / 6], [0.5, 0.5], [0.9, 0.1]])
    for costs, answers in (([[0, 1], [1, 0]], [1, 0, 0, 0]), ([[0, 1], [5, 0]], [1, 1, 1, 0])):
        explorer = CostExplorer(["a", "b"], shares, costs, answers)
        shown(tab, explorer, tmp_path)
        finish(tab)
        assert "in every row" in tab.text("#changes-lead")


# ---- Without a browser ----


def samples(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=120)
    frame = pd.DataFrame(rng.normal(size=(120, 3)) + y[:, None], columns=["x", "y", "z"])
    return frame, np.array(["high", "low", "mid"])[y]


NAMED = {
    "low": {"mid": 1.0, "high": 4.0},
    "mid": {"low": 2.0, "high": 30.0},
    "high": {"low": 7.0, "mid": 5.0, "high": 0.5},
}


@pytest.mark.parametrize("kind", ["array", "frame", "polars", "pipeline", "table"])
def test_any_classifier(kind) -> None:
    X, y = samples()
    model: Any = MinimumCostClassifier(GaussianNB(), NAMED)
    if kind == "pipeline":
        model = make_pipeline(StandardScaler(), model)
    elif kind == "table":
        model = TableClassifier(cost_matrix=NAMED)
    data: Any = {"array": X.to_numpy(), "polars": pl.from_pandas(X)}.get(kind, X)
    model.fit(data, y)
    explorer = CostExplorer.from_estimator(model, data, y, costs=NAMED, abstain=1.0)
    assert explorer.labels == ["low", "mid", "high"], "in the order of the costs"
    assert explorer.costs.tolist() == [[0, 1, 4], [2, 0, 30], [7, 5, 0.5]]
    order = [list(model.classes_).index(label) for label in explorer.labels]
    assert np.array_equal(explorer.probabilities, model.predict_proba(data)[:, order])
    assert np.array(explorer.labels)[explorer.answers].tolist() == model.predict(data).tolist()
    assert np.array(explorer.labels)[explorer.truth].tolist() == y.tolist()
    names = [f"feature {k}" for k in range(3)] if kind == "array" else ["x", "y", "z"]
    assert list(explorer.features) == names
    assert float(explorer.features[names[0]][7]) == pytest.approx(X["x"][7], rel=1e-5)
    own = CostExplorer.from_estimator(model, data)
    assert own.labels == ["high", "low", "mid"], "in the order of classes_"
    assert own.costs.tolist() == [[0.5, 7, 5], [4, 0, 1], [30, 2, 0]]
    assert own.truth is None


def test_a_sample_of_the_rows() -> None:
    X, y = samples()
    X.index = pd.Index([f"patient {k}" for k in range(120)])
    model = MinimumCostClassifier(GaussianNB(), NAMED).fit(X, y)
    blind = LogisticRegression().fit(X, y)
    weight = np.arange(120.0)
    options: dict[str, Any] = {"max_rows": 30, "sample_weight": weight, "costs": NAMED}
    rivals = {"fitted": blind, "given": blind.predict_proba(X)}
    explorer = CostExplorer.from_estimator(model, X, y, rivals=rivals, **options)
    again = CostExplorer.from_estimator(model, X, y, rivals=rivals, **options)
    assert explorer.to_dict() == again.to_dict()
    rows = [int(name.removeprefix("patient ")) for name in explorer.row_names]
    assert len(rows) == 30
    assert rows == sorted(set(rows))
    assert explorer.sample_weight.tolist() == rows
    assert np.array(explorer.labels)[explorer.truth].tolist() == y[rows].tolist()
    order = [list(model.classes_).index(label) for label in explorer.labels]
    for rival in explorer.rivals.values():
        assert rival == pytest.approx(blind.predict_proba(X)[rows][:, order])
    assert explorer.note == "A random sample of 30 of 120 rows."
    assert "A random sample of 30 of 120 rows." in explorer.to_html()
    all_rows = CostExplorer.from_estimator(model, X, y, max_rows=120, rivals=rivals)
    assert all_rows.note is None
    alone = CostExplorer.from_estimator(model, X, y)
    assert alone.note == "No model that was trained without costs is compared here."


def test_plain_numbers() -> None:
    explorer = problem(3, 20, 0, rivals={"blind": np.full((20, 3), 1 / 3)}, abstain=np.float64(2))
    numbers = json.loads(json.dumps(explorer.to_dict()))
    again = CostExplorer(**numbers)
    assert again.to_dict() == explorer.to_dict()
    assert again.to_html() == explorer.to_html()


def test_cells_are_short_texts() -> None:
    frame = pd.DataFrame(
        {
            "long": ["word " * 100] * 2,
            "number": [1 / 3, np.nan],
            "missing": pd.array([1, None], dtype="Int64"),
            "date": pd.to_datetime(["2024-05-31", None]),
            **{f"more {k}": [0, 1] for k in range(20)},
        }
    )
    explorer = CostExplorer(["a", "b"], [[0.5, 0.5]] * 2, [[0, 1], [1, 0]], [0, 1], None, frame)
    assert len(explorer.features) == 12
    assert len(explorer.features["long"][0]) == 60
    assert explorer.features["number"] == ["0.333333", ""]
    assert explorer.features["missing"] == ["1", ""]
    assert explorer.features["date"] == ["2024-05-31 00:00:00", ""]


MISTAKES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "probabilities": ({"probabilities": [[0.5, 0.5]]}, ValueError, r"shape \(n_rows, 3\)"),
    "scores": ({"probabilities": np.full((20, 3), -1.0)}, ValueError, "must be from 0 to 1"),
    "no rows": ({"probabilities": np.zeros((0, 3))}, ValueError, "give at least one"),
    "answers": ({"answers": np.full(20, 3)}, ValueError, "20 whole numbers from 0 to 2"),
    "truth": ({"truth": np.zeros(19, int)}, ValueError, "truth must be 20 whole numbers"),
    "costs": ({"costs": [[0, 1], [1, 0]]}, ValueError, "costs have shape"),
    "abstain": ({"abstain": -1.0}, ValueError, "abstain must be a number at least 0"),
    "rivals": (
        {"truth": None, "rivals": {"a": np.full((20, 3), 1 / 3)}}, ValueError, "truth is known"
    ),
    "rival": ({"rivals": {"a": np.full((9, 3), 1 / 3)}}, ValueError, r"shape \(20, 3\)"),
    "currency": ({"currency": "money of the realm"}, ValueError, "at most 12 letters"),
    "title": ({"title": 3}, TypeError, "title must be a str"),
    "features": ({"features": {"a": [1]}}, ValueError, "where there are 20 rows"),
    "row names": ({"row_names": ["a"]}, ValueError, "a name for each of the 20 rows"),
    "classes": ({"labels": [str(k) for k in range(51)]}, ValueError, "takes 2 to 50"),
    "abstaining class": ({"labels": ["a", "b", "ask a person"]}, ValueError, "rename the class"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name) -> None:
    changes, error, message = MISTAKES[name]
    good = problem(3, 20, 0)
    fields = {key: getattr(good, key) for key in good.__dataclass_fields__}
    with pytest.raises(error, match=message):
        CostExplorer(**fields | changes)


def test_mistakes_about_models() -> None:
    X, y = samples()
    model = MinimumCostClassifier(GaussianNB(), NAMED).fit(X, y)
    for wrong, options, error, message in (
        (GaussianNB(), {}, TypeError, "without classes_: give a fitted classifier"),
        (LinearSVC().fit(X, y), {}, TypeError, 'with calibration="sigmoid"'),
        (GaussianNB().fit(X, y), {}, ValueError, "has no costs of its own: give costs"),
        (model, {"y": y[:5]}, ValueError, "give one label for each row"),
        (model, {"y": ["?"] * 120}, ValueError, "labels that are not among the classes"),
        (model, {"y": y, "rivals": {"two": GaussianNB().fit(X, y == "low")}}, ValueError,
         "other classes than the model"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            CostExplorer.from_estimator(wrong, X, **options)
    plain = MinimumCostClassifier(GaussianNB(), NAMED).fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match="feature_names has 1 names for 3 features"):
        CostExplorer.from_estimator(plain, X.to_numpy(), feature_names=["a"])


def test_rivals_are_trained_without_costs() -> None:
    """Their probabilities are those of a fit to the training samples, whatever the prices."""
    (X, y), (X_test, y_test) = samples(), samples(seed=1)
    model = MinimumCostClassifier(GaussianNB(), NAMED).fit(X, y)
    found = [
        CostExplorer.from_estimator(model, X_test, y_test, train=(X, y), costs=costs).rivals
        for costs in (NAMED, {name: dict.fromkeys(NAMED, 1.0) | {name: 0} for name in NAMED})
    ]
    assert list(found[0]) == ["boosting without costs", "CostBoost"]
    for name, shares in found[0].items():
        np.testing.assert_array_equal(shares, found[1][name])
        labels = np.array(list(NAMED))  # in the order of the costs
        assert (labels[np.argmax(shares, axis=1)] == y_test).mean() > 0.7


def test_figures_of_the_fit_are_told() -> None:
    X, y = samples()
    table = X.assign(grade=y)
    model = TableClassifier(MinimumCostClassifier(GaussianNB()), cost_matrix=NAMED)
    model.fit(table, "grade")
    answers = model.predict(X)
    model.held_out_ = CostSummary.of(
        y, answers, NAMED, classes=model.classes_, rivals={"always right": y}, how="by hand"
    )
    note = CostExplorer.from_estimator(model, X[1:], y[1:]).note
    assert note.startswith("Measured at the fit (120 rows, by hand), under its costs: the model ")
    assert "always right" in note
