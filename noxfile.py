"""The tests with each Python at hand, and with the oldest dependencies: ``make versions``."""

import nox

nox.options.default_venv_backend = "uv"
nox.options.error_on_missing_interpreters = False


@nox.session(python=["3.11", "3.12", "3.13", "3.14", "3.14t"])
def newest(session: nox.Session) -> None:
    """The newest dependencies."""
    _test(session)


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """The oldest dependencies that pyproject.toml allows."""
    _test(session, "--resolution=lowest-direct")


def _test(session: nox.Session, *options: str) -> None:
    """Install what the tests need, and run them with compiled loops of their own."""
    session.install(*options, "--editable", ".[all]", "--group", "test")
    session.run(
        "pytest", *session.posargs, env={"NUMBA_CACHE_DIR": f"{session.cache_dir}/{session.name}"}
    )
