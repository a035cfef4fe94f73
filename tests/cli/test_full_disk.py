"""A disk that is full: every command that writes says so in one line, and spoils nothing."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from badacost import load
from badacost.cli.app import app
from badacost.io.atomic_file import write_error
from badacost.tabular import TableClassifier
from tests.file_size_limit import file_size_limit
from tests.tabular.patients import patients, small_model

PROGRAM = "from badacost.cli import main; main()"
COMMANDS = {
    "fit": ["data.csv", "--target", "risk", "--costs", "costs.csv", "--trees", "2", "--depth", "2"],
    "predict": ["m.badacost", "data.csv"],
    "report": ["m.badacost", "--data", "data.csv"],
    "explore": ["m.badacost", "--data", "data.csv", "--force"],
    "export": ["m.badacost", "--force"],
    "costs": ["data.csv", "--target", "risk", "--force"],
    "demo": ["detect", "--scenes", "1"],
}
OUTPUTS = {"predict": "out.csv", "costs": "out.csv", "export": "out.onnx", "demo": "out.png"}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a table, its costs and a model."""
    folder = tmp_path_factory.mktemp("full")
    frame = patients()[["age", "ward", "risk"]]
    frame.to_csv(folder / "data.csv", index=False)
    small_model().fit(frame, "risk").save(folder / "m.badacost")
    (folder / "costs.csv").write_text("truth,high,low,mid\nhigh,,5,9\nlow,1,,2\nmid,1,1,\n")
    return folder


@pytest.fixture(autouse=True)
def folder(place, monkeypatch) -> None:
    monkeypatch.chdir(place)


@pytest.mark.filterwarnings("ignore::badacost._utils.kernel_cache.KernelCacheWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_lost(name) -> None:
    output = Path(OUTPUTS.get(name, "out.html" if name in ("report", "explore") else "out"))
    output.write_text("earlier")
    before = sorted(os.listdir())
    with file_size_limit(20):
        result = CliRunner().invoke(app, [name, *COMMANDS[name], "--output", str(output)])
    assert result.exit_code == 1, result.output
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert errors == [
        f"Error: cannot write '{output}': the file-size limit is reached: raise it (ulimit -f)."
    ]
    assert "Traceback" not in result.output
    assert output.read_text() == "earlier"
    assert sorted(os.listdir()) == before
    output.unlink()


def test_a_model_is_saved_elsewhere(tmp_path, monkeypatch) -> None:
    save = TableClassifier.save

    def save_unless_full(model, path) -> None:
        if Path(path) == Path("m.full"):
            raise write_error(path, OSError(errno.ENOSPC, "full"))
        save(model, path)

    monkeypatch.setattr(TableClassifier, "save", save_unless_full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["fit", *COMMANDS["fit"], "--output", "m.full"])
    assert result.exit_code == 1
    (spare,) = tmp_path.glob("badacost-*/m.full")
    assert result.stderr.splitlines()[-1] == (
        "Error: cannot write 'm.full': the disk is full: make room there, or name a file on "
        f"another disk. The model was saved as '{spare}' instead."
    )
    assert load(spare).classes_.tolist() == ["high", "low", "mid"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_standard_output() -> None:
    command = [sys.executable, "-c", PROGRAM, "predict", "m.badacost", "data.csv"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "Error: cannot write 'standard output': the disk is full: make room there, or name a file "
        "on another disk.\n"
    )


def test_a_read_only_folder_is_told_before_the_work(monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    command = ["fit", *COMMANDS["fit"], "--output", "new/m"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: --output 'new/m' cannot be written, since the folder '.' is read-only: name "
        "another.\n"
    )
