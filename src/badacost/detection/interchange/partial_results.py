"""`PartialResults`: results so far, as lines of JSON that a later run can go on with.

The first line says what the results are made from; then an image follows in each line, with its
size and the name of its file of KITTI. A killed run leaves at most half a line, which is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Self

from badacost import __version__
from badacost.detection.boxes import Detections
from badacost.detection.images import ImageSource
from badacost.detection.interchange.json_lines import from_json_lines, to_json_line
from badacost.io.atomic_file import plain_write_errors
from badacost.io.budget import UNLIMITED, Budget, BudgetError
from badacost.io.json_document import JSONError, parse_json
from badacost.io.user_file import open_regular

_MAX_SIDE = 2**31
_MAX_NAME = 255 - len(".txt")  # bytes
_VERSION = "version of badacost"


@dataclass(frozen=True)
class Failure:
    """An image that could not be searched, and why."""

    name: str
    reason: str


_BEGIN = json.dumps({_VERSION: ""})[:-3].encode()  # of a file that is ours


class PartialResults:
    """A file of results that grows line by line; with `resume` an earlier one goes on.

    Without it an earlier one that has results is refused. `n_done` and `n_failed` count the images
    that are there already, `stems` are their names of files.
    """

    def __init__(self, path: Path, made_from: Mapping[str, Any], *, resume: bool):
        self._path = path
        self._head = json.loads(json.dumps({_VERSION: __version__, **made_from}))
        self._budget = Budget.of(None)
        self.n_done = self.n_failed = 0
        stems: list[str] = []
        end = 0
        try:
            if path.exists():
                self._check_begin()
                if resume:
                    end = self._end_of_head()
                elif self._has_results():
                    raise ValueError(
                        f"{str(path)!r:.300} has results of an interrupted run: pass resume=True "
                        "(--resume) to go on with them, or remove this file to start again."
                    )
            if end:
                for found, stem, last in self._lines(end):
                    end = last
                    self.n_done += 1
                    self.n_failed += isinstance(found, Failure)
                    stems.append(stem)
        except BudgetError as error:
            raise self._useless(str(error)) from error
        self.stems = tuple(stems)
        with plain_write_errors(path):
            self._file = open(path, "r+b" if end else "wb", buffering=0)  # noqa: SIM115
            self._file.truncate(end)
        self._end = end
        if not end:
            try:
                self._put(json.dumps(self._head))
            except BaseException:
                self.remove()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, found: Detections, source: ImageSource, stem: str) -> None:
        """Add what was found in an image."""
        if not _is_stem(stem):
            raise ValueError(f"{stem!r:.80} is no name of a file in a folder: give another stem.")
        self._put(to_json_line(source.name, found, size=list(source.size), stem=stem))
        self.n_done += 1

    def fail(self, name: str, reason: str, stem: str) -> None:
        """Add an image that could not be searched."""
        self._put(json.dumps({"image": name, "error": reason, "stem": stem}))
        self.n_done += 1

    def all(self) -> Iterator[tuple[Detections | Failure, str]]:
        """Yield all results, each with the name of its file, in the order of the images."""
        n_found = 0
        self._budget = UNLIMITED  # these are our own lines
        for found, stem, _ in self._lines(self._end_of_head()):
            n_found += 1
            yield found, stem
        if n_found != self.n_done:
            raise ValueError(
                f"cannot finish {str(self._path)!r:.300}: it has {n_found} results where "
                f"{self.n_done} were written: keep other programs from changing it, and pass "
                "resume=True (--resume) to search for the rest again."
            )

    def remove(self) -> None:
        """Close the file and remove it."""
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _put(self, line: str) -> None:
        """Write a line as a whole: what cannot be written leaves nothing."""
        rest = memoryview(line.encode() + b"\n")
        try:
            with plain_write_errors(self._path):
                self._file.seek(self._end)
                while rest:
                    rest = rest[self._file.write(rest) or 0 :]
        except BaseException:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise
        self._end = self._file.tell()

    def _check_begin(self) -> None:
        """Refuse a file that somebody else wrote."""
        with open_regular(self._path) as file:
            begin = file.read(len(_BEGIN))
        if not _BEGIN.startswith(begin):
            raise ValueError(
                f"{str(self._path)!r:.300} has no results of this version of badacost: move it "
                "away, or choose another output."
            )

    def _has_results(self) -> bool:
        """Whether the file has more than its first line."""
        with open_regular(self._path) as file:
            try:
                return bool(self._next_line(file) and self._next_line(file))
            except BudgetError:  # a line that is too long now
                return True

    def _end_of_head(self) -> int:
        """Return where results begin in a file that is made from the same; 0 if there is none."""
        with open_regular(self._path) as file:
            line = self._next_line(file)
            if not line:
                return 0
            try:
                head = parse_json(line, self._budget)
            except JSONError:
                head = None
        if not isinstance(head, dict):
            raise self._useless("it is damaged")
        for name in sorted({*head, *self._head}):
            if head.get(name) != self._head.get(name):
                raise self._useless(f"it was made with another {name:.80}")
        return len(line)

    def _useless(self, reason: str) -> ValueError:
        return ValueError(
            f"cannot resume from {str(self._path)!r:.300}: {reason}; remove this file to start "
            "again."
        )

    def _lines(self, end: int) -> Iterator[tuple[Detections | Failure, str, int]]:
        """Yield results, names of files and ends of lines, up to the first line that is none."""
        with open_regular(self._path) as file:
            file.seek(end)
            while line := self._next_line(file):
                end += len(line)
                try:
                    found, stem = self._parsed(line)
                except BudgetError:  # the line may be whole
                    raise
                except ValueError:
                    return
                yield found, stem, end

    def _next_line(self, file: BinaryIO) -> bytes:
        """Return a whole line, or nothing at the end."""
        line = file.readline(self._budget.max_memory)
        if line.endswith(b"\n"):
            return line
        self._budget.check(len(line) + len(file.read(1)), "a line of it", at_least=True)
        return b""

    def _parsed(self, line: bytes) -> tuple[Detections | Failure, str]:
        """Return what a line tells of an image, or raise ValueError."""
        entry = parse_json(line, self._budget)
        if not isinstance(entry, dict) or not isinstance(entry.get("image"), str):
            raise ValueError("this is no image")
        size, stem = entry.get("size"), entry.get("stem")
        if not isinstance(stem, str) or not _is_stem(stem):
            raise ValueError("this is no image")
        if isinstance(entry.get("error"), str):
            return Failure(entry["image"], entry["error"]), stem
        if (
            not isinstance(size, list)
            or len(size) != 2
            or not all(type(side) is int and 0 < side < _MAX_SIDE for side in size)
        ):
            raise ValueError("this is no image")
        ((name, found),) = from_json_lines(
            line.decode(), max_memory=self._budget.max_memory
        ).items()
        return replace(found, source=ImageSource(name, (size[0], size[1]))), stem


def _is_stem(stem: str) -> bool:
    """Whether a name stays in the folder it is put into, and is no longer than names can be."""
    path = PurePath(stem)
    is_inside = bool(path.name) and not path.anchor and ".." not in path.parts
    longest = max((len(part.encode(errors="replace")) for part in path.parts), default=0)
    return is_inside and "\0" not in stem and longest <= _MAX_NAME
