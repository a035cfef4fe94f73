"""The stories of the gallery run, draw and keep to the form that the gallery needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
STORIES = sorted(FOLDER.glob("*.py"))
# The first prints what the README shows: test_readme runs it.
ELSEWHERE = {"0010_mistakes_with_prices"}
# Left to the build of the documentation, which runs all of them.
SLOW = {
    "0065_reading_cheques",
    "0080_against_calibration",
    "0090_tuning",
    "0095_a_large_table",
    "0100_confusion_in_money",
    "0140_training_a_detector",
    "0150_tracking_in_a_video",
}
QUICK = [path for path in STORIES if path.stem not in ELSEWHERE | SLOW]
# Numbers that stories are as good without here: what they tell of is seen in the documentation.
SMALLER = {
    r'(n_estimators"?[=:] ?)\d+': r"\g<1>8",
    r"(StratifiedKFold\()\d+": r"\g<1>2",
    r"(make_scenes\(\s*)\d+": r"\g<1>2",
}


@pytest.fixture(autouse=True)
def _without_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    plt.close("all")
    yield
    plt.close("all")


def small(path: Path) -> str:
    """Return the source of a story with fewer trees, folds and scenes."""
    source = path.read_text()
    for number, smaller in SMALLER.items():
        source = re.sub(number, smaller, source)
    return source


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_story_prints_and_draws(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(small(path), str(path), "exec"), {"__name__": "story"})
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(axis.has_data() for figure in figures for axis in figure.axes if axis.axison)
    (told,) = re.findall(
        r"^The pictures? (?:is|are) in (.+)$", capsys.readouterr().out, re.MULTILINE
    )
    assert set(told.split()) == {saved.name for saved in tmp_path.glob("*.png")}


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story_has_the_form_of_the_gallery(path: Path) -> None:
    source = path.read_text()
    title, line, gap, lead, *_ = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert not gap
    assert lead
    assert len(re.findall(r"^# %%$", source, re.MULTILINE)) >= 3
    assert "plt.show()" not in source  # stories also run where there is no screen


def test_stories_are_numbered_apart() -> None:
    numbers = [re.fullmatch(r"(\d{4})_[a-z_]+", path.stem) for path in STORIES]
    assert all(numbers)
    assert len({match[1] for match in numbers if match}) == len(STORIES)


def test_lists_name_stories_that_exist() -> None:
    assert {path.stem for path in STORIES} >= ELSEWHERE | SLOW
