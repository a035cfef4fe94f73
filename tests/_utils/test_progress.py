"""The progress bar: two lines in a file, one line redrawn on a terminal."""

from __future__ import annotations

import io

import pytest

from badacost._utils.progress import ProgressBar, tracked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_two_lines_in_a_file() -> None:
    stream = io.StringIO()
    bar = ProgressBar(200, "fit", stream)
    for done in range(1, 201):
        bar.update(done, train=1 / done, validation=None)
    bar.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("fit [###############---------------] 100/200  train 0.01  ")
    assert lines[-1].startswith("fit [##############################] 200/200  train 0.005  ")
    assert all(line.endswith(" s left") for line in lines)
    assert "validation" not in stream.getvalue()
    assert "\r" not in stream.getvalue()


@pytest.mark.parametrize(("total", "lines"), [(1, 1), (2, 2), (3, 2), (25, 2)])
def test_number_of_lines(total, lines) -> None:
    stream = io.StringIO()
    bar = ProgressBar(total, "fit", stream)
    for done in range(1, total + 1):
        bar.update(done)
    assert stream.getvalue().count("\n") == lines
    assert f" {total}/{total} " in stream.getvalue().splitlines()[-1]


def test_figures() -> None:
    stream = io.StringIO()
    ProgressBar(1, "fit", stream).update(1, train=0.123456, validation=2e-7)
    assert "  train 0.1235  validation 2e-07  " in stream.getvalue()


def test_one_line_on_a_terminal() -> None:
    stream = Terminal()
    bar = ProgressBar(1000, "fit", stream)
    for done in range(1, 1001):
        bar.update(done, train=0.5)
    bar.close()
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    frames = text.split("\r\033[K")[1:]
    assert frames[0].startswith("fit [")
    assert " 1/1000 " in frames[0]
    assert " 1000/1000 " in frames[-1]
    assert len(frames) < 1000  # at most ten a second, and the last one


def test_time_left(monkeypatch) -> None:
    clock = iter([0.0, 3.0])
    monkeypatch.setattr("badacost._utils.progress.time.monotonic", lambda: next(clock))
    stream = Terminal()
    ProgressBar(4, "fit", stream).update(1)
    assert "  9 s left" in stream.getvalue()


def test_standard_error_by_default(capsys) -> None:
    bar = ProgressBar(1, "fit")
    bar.update(1)
    bar.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fit [#")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0 s"), (119, "119 s"), (121, "2 min"), (7300, "2.0 h")]
)
def test_time_left_in_a_fitting_unit(monkeypatch, seconds, shown) -> None:
    clock = iter([0.0, seconds / 3])
    monkeypatch.setattr("badacost._utils.progress.time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    ProgressBar(2, "fit", stream).update(1, fraction=0.25)  # half of the steps
    assert stream.getvalue().endswith(f"  {shown} left\n")


def test_tracked_items_are_all_there(capsys) -> None:
    assert list(tracked("abc", 3, "letters")) == ["a", "b", "c"]
    shown = capsys.readouterr().err.splitlines()
    assert [line.split("]")[1].split()[0] for line in shown] == ["2/3", "3/3"]


@pytest.mark.parametrize(("items", "shown"), [("abc", False), ("", True)])
def test_nothing_is_tracked_in_silence(capsys, items, shown) -> None:
    assert "".join(tracked(items, len(items), "letters", shown=shown)) == items
    assert capsys.readouterr().err == ""


def test_a_bar_learns_its_length() -> None:
    stream = io.StringIO()
    bar = ProgressBar(1, "report", stream)
    for done in (1, 2):
        bar.show(done, 2)
    assert " 1/2 " in stream.getvalue().splitlines()[0]
    assert " 2/2 " in stream.getvalue().splitlines()[1]
