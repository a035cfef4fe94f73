"""Functions that only kernels call: compiled in part, while all other functions are left alone."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from badacost._utils import inner_kernels
from badacost._utils.inner_kernels import inner

EXPONENTIALS = """
import numpy as np
from badacost._utils.portable_kernels import exp_of

values = np.linspace(-800.0, 800.0, 99)
exp_of(values, values)
print(values.tobytes().hex())
"""


def run(code: str, cache: object) -> str:
    """Output of a new process, which finds no compiled functions."""
    program = f"import numba; numba.config.CACHE_DIR = {str(cache)!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


def pair():
    """A kernel that calls an inner function, neither of them compiled yet."""

    @inner()
    def square(x):
        return x * x

    @numba.njit
    def total(x):
        sum_of_squares = 0.0
        for i in range(x.shape[0]):
            sum_of_squares += square(x[i])
        return sum_of_squares

    return total


@pytest.mark.parametrize(
    "change",
    ["del numba.core.codegen.JITCPUCodegen", "del numba.core.codegen.CPUCodeLibrary"],
)
def test_a_numba_of_other_parts(tmp_path, change) -> None:
    """Results are equal, and numba is not changed."""
    unchanged = (
        "import numba.core.codegen\n"
        "assert numba.njit(lambda x: x)(1) == 1\n"  # the compiler is complete
        "library = numba.core.codegen.CPUCodeLibrary\n"
        f"{change}\n"
        "import badacost._utils.inner_kernels\n"
        "assert library._optimize_final_module.__code__.co_filename == "
        "numba.core.codegen.__file__\n"
    )
    assert run(unchanged + EXPONENTIALS, tmp_path) == run(EXPONENTIALS, tmp_path / "other")


def machine_code(function) -> str:
    (code,) = function.inspect_asm().values()
    return code


def test_functions_of_users_are_compiled_in_full() -> None:
    def cube(x):
        return x**3 + np.sqrt(x)

    before = numba.njit(cube)
    assert before(2.0) == 8.0 + 2.0**0.5
    total = pair()
    assert total(np.arange(4.0)) == 14.0
    after = numba.njit(cube)
    assert after(2.0) == before(2.0)
    assert len(machine_code(after)) == len(machine_code(before))
    assert after.overloads[after.signatures[0]].library._finalized
    assert not inner_kernels._compiles.get()


def test_an_error_in_an_inner_function_leaves_no_trace() -> None:
    total = pair()
    with pytest.raises(numba.TypingError):
        total(None)
    assert not inner_kernels._compiles.get()


def test_threads_compile_at_the_same_time() -> None:
    """Whether a function is an inner one is known to its thread alone."""

    def compile_pair(number: int) -> float:
        return pair()(np.arange(float(number)))

    def compile_plain(number: int) -> int:
        return numba.njit(lambda x: x + number)(1)

    with ThreadPoolExecutor(4) as pool:
        sums = [pool.submit(compile_pair, number) for number in range(8)]
        plain = [pool.submit(compile_plain, number) for number in range(8)]
        assert [task.result() for task in sums] == [
            float((np.arange(number) ** 2).sum()) for number in range(8)
        ]
        assert [task.result() for task in plain] == [1 + number for number in range(8)]
