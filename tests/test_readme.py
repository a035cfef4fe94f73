"""What the README and the examples promise to newcomers."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_code_in_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert "average price" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_example(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Examples run and draw; what the README shows of the first one is what it prints."""
    runpy.run_path(str(path))
    assert list(tmp_path.glob("*.png"))
    if path.stem.startswith("0010"):
        printed = capsys.readouterr().out.splitlines()
        (shown,) = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        ours = [line for line in shown.splitlines() if "BAdaCost" in line]
        assert len(ours) == 3
        assert set(ours) <= set(printed)
