"""CUDA sources are compiled by NVIDIA's compiler, where there is one."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from badacost.backends.device import OPTIONS, PACKAGE, _code

NAMES = sorted(str(path.relative_to(PACKAGE).with_suffix("")) for path in PACKAGE.rglob("*.cu"))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is missing")
@pytest.mark.parametrize("name", NAMES)
def test_it_compiles(name, tmp_path) -> None:
    source, binary = str(tmp_path / "kernels.cu"), str(tmp_path / "kernels.cubin")
    (tmp_path / "kernels.cu").write_text(_code(name))
    command = ["nvcc", *OPTIONS, "-arch=sm_90", "-cubin", "-Werror=all-warnings", source]
    done = subprocess.run([*command, "-o", binary], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sources_use_no_header_of_the_system() -> None:
    """CUDA's compiler at run time has none."""
    for path in [*PACKAGE.rglob("*.cu"), *PACKAGE.rglob("*.cuh")]:
        assert "#include <" not in path.read_text()
