"""The tests with each Python at hand, and with the oldest dependencies: ``make versions``."""

import re
from collections.abc import Sequence
from pathlib import Path

import nox

_NOT_FREE = re.compile(r"^\s*(import|from) (polars|pycocotools)\b", re.MULTILINE)
nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def newest(session: nox.Session) -> None:
    """The newest dependencies."""
    _test(session)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """The oldest that pyproject.toml allows, which may use what newer ones below them deprecate."""
    _test(session, "--resolution=lowest-direct", ignore=["-W", "ignore::DeprecationWarning"])


@nox.session(python="3.14t")
def free_threaded(session: nox.Session) -> None:
    """The newest but polars, which has no wheel for it; pycocotools would switch the lock on."""
    excluded = Path(session.create_tmp(), "excluded.txt")
    excluded.write_text("polars\n")
    files = [file for file in Path("tests").rglob("*.py") if _NOT_FREE.search(file.read_text())]
    _test(session, f"--excludes={excluded}", ignore=[f"--ignore={file}" for file in files])


def _test(session: nox.Session, *options: str, ignore: Sequence[str] = ()) -> None:
    """Install what the tests need, and run them with compiled loops of their own."""
    session.install(*options, "--editable", ".[all]", "--group", "test")
    cache = {"NUMBA_CACHE_DIR": str(session.cache_dir.resolve() / session.name)}
    session.run("pytest", *ignore, *session.posargs, env=cache)
