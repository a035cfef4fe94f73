"""Arrays in temporary files: they leave nothing behind, and a full disk is told in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from badacost.scratch_file import mapped_array
from tests.file_size_limit import file_size_limit


def test_the_file_goes_with_the_array(tmp_path) -> None:
    array = mapped_array((3, 4), np.uint16, tmp_path, "")
    array[:] = np.arange(12).reshape(3, 4)
    assert array.sum() == 66
    assert (array.dtype, array.shape) == (np.uint16, (3, 4))
    assert not list(tmp_path.iterdir())


def test_files_that_may_not_grow(tmp_path) -> None:
    """A map of what is not there would end the process."""
    message = rf"^cannot keep 3 MiB in the folder '{tmp_path}' \(File too .*\): move\.$"
    with file_size_limit(2**20), pytest.raises(OSError, match=message):
        mapped_array((3 * 2**20,), np.uint8, tmp_path, "move")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory\): move"):
        mapped_array((3,), np.uint8, tmp_path / "no", "move")
