"""Files that are written as a whole."""

from __future__ import annotations

from fnmatch import fnmatch

import pytest

from badacost.atomic_file import TEMPORARY_NAMES, replaced_file


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path) -> None:
    path = tmp_path / "file"
    for text in ("old", "new"):
        with replaced_file(str(path)) as temporary:
            temporary.write_text(text)
            assert temporary.parent == tmp_path
            assert fnmatch(temporary.name, TEMPORARY_NAMES)
            assert not path.exists() or path.read_text() == "old"
        assert path.read_text() == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("begun", [True, False])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error, begun) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(type(error)), replaced_file(path) as temporary:  # noqa: PT012
        if begun:
            temporary.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_replaced(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"), replaced_file(tmp_path / "folder") as temporary:
        temporary.write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
