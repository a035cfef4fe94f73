"""What is handed out: an sdist and a wheel, built once and installed where nothing else is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import badacost

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "badacost"
MADE = {"__pycache__", "build", "dist", "_build", "gallery", "generated", "shared"}
FIT = """
import importlib, pkgutil, badacost
from badacost.detection.models import synthetic_cars
for found in pkgutil.walk_packages(badacost.__path__, "badacost."):
    importlib.import_module(found.name)
model = badacost.MinimumCostClassifier(cost_matrix=[[0, 1], [99, 0]])
labels = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[1.0]])
print(badacost.__version__, badacost.__file__, labels, len(synthetic_cars().names))
"""


def run(*words: object, cwd: Path) -> str:
    """What a command prints, without the variables that would lead it to the source."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    found = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=kept,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, cwd=ROOT)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all packages of this environment but ours."""
    folder = tmp_path_factory.mktemp("dependencies")
    for installed in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(installed).iterdir():
            if "badacost" not in entry.name and entry.suffix != ".pth":
                (folder / entry.name).symlink_to(entry)
    return folder


def test_pages_of_an_index_can_show_them(built: tuple[Path, Path]) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *built, cwd=ROOT)


def test_the_sdist_holds_the_repository(built: tuple[Path, Path]) -> None:
    """All that is not hidden; nothing that was made from it, or lies beside it."""
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = set()
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and path.name not in MADE and path.suffix != ".png":
            files |= {path, *path.rglob("*")}
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.is_file() and not MADE.intersection(path.parts)
    }
    assert {name for name in names if not name.startswith(".")} == expected | {"PKG-INFO"}


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    """Sources for GPUs, templates, a trained detector and the marker of types among it."""
    with ZipFile(built[1]) as archive:
        names = set(archive.namelist())
    ours = {name for name in names if ".dist-info/" not in name}
    files = {
        path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert ours == {path.relative_to(SOURCE.parent).as_posix() for path in files}
    endings = {".cu", ".cuh", ".html", ".css", ".js", ".badacost"}
    assert endings <= {Path(name).suffix for name in ours}
    assert "badacost/py.typed" in ours
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_in_an_empty_environment(
    built: tuple[Path, Path], dependencies: Path, tmp_path: Path
) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", built[1], cwd=tmp_path)
    (installed,) = environment.glob("lib/python*/site-packages")
    (installed / "dependencies.pth").write_text(f"{dependencies}\n")
    version, file, label, n_views = run(python, "-c", FIT, cwd=tmp_path).split()
    assert (version, label, n_views) == (badacost.__version__, "[1]", "8")
    assert environment in Path(file).parents
    assert run(environment / "bin" / "badacost", "--version", cwd=tmp_path).strip() == version


def test_a_copy_of_the_source_works_without_metadata(dependencies: Path, tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "badacost", ignore=shutil.ignore_patterns("__pycache__"))
    said = run(
        sys.executable,
        "-S",  # without what is installed here
        "-c",
        f"import sys; sys.path += [{str(dependencies)!r}]; sys.argv[1:] = ['--version']\n"
        "import badacost, badacost.cli, importlib.metadata\n"
        "assert not list(importlib.metadata.distributions(name='badacost'))\n"
        "print(badacost.__file__); badacost.cli.main()",
        cwd=tmp_path,
    )
    assert said.split() == [str(tmp_path / "badacost" / "__init__.py"), badacost.__version__]


def test_the_versions_that_are_tested_are_those_that_are_named() -> None:
    """In the classifiers, and in what `make versions` runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = "\n".join(project["classifiers"])
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", classifiers)
    assert project["requires-python"] == f">={named[0]}"
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', noxfile.partition("def newest")[0]) == named
