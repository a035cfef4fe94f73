"""The text of an annotation file, and complaints about it that say where.

Files are untrusted: they must be text in UTF-8, and what is read from them has a limit. Whatever is
wrong with one is an `AnnotationError`, in one sentence: which file, which line, what is expected.
"""

from __future__ import annotations

import io
import math
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from badacost.detection.boxes import MAX_COORDINATE
from badacost.detection.images import is_image
from badacost.io.budget import Budget, BudgetError
from badacost.io.csv_dialect import as_number
from badacost.io.user_file import open_regular

# Bytes that the parts of a file become: an object for a line of text; a list of its fields for a
# byte of the longest line; the text itself, which may take 4 bytes a character.
_BYTES_OF_LINE = {b"\n": 900, b"\r": 900}
_BYTES_OF_FIELDS = 25
_BYTES_OF_TEXT = 6
_INTEGER = re.compile(r"[0-9]{1,18}")


class AnnotationError(ValueError):
    r"""An annotation file that cannot be read, in one sentence.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.annotations import AnnotationError, read_annotations
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "faces.csv")
    ...     size = table.write_text("image,x1,y1,x2,y2\na.jpg,10,10,left,40\n")
    ...     try:
    ...         read_annotations(table)
    ...     except AnnotationError as error:
    ...         print(str(error).replace(str(table), table.name))
    'faces.csv', line 2: x2 must be a finite number; got 'left'.
    """


@dataclass(frozen=True)
class Place:
    """Where in a file something is: `part` is the line or record, "" for the whole file."""

    path: Path
    part: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, [f"{os.fspath(self.path)!r:.300}", self.part]))

    def at(self, part: str) -> Place:
        """Return a part of this place."""
        return replace(self, part=", ".join(filter(None, [self.part, part])))

    def refuse(self, complaint: str) -> NoReturn:
        """Raise an error that says what is wrong here."""
        raise AnnotationError(f"{self}: {complaint}.")

    def check(self, budget: Budget, n_bytes: int) -> None:
        """Refuse what takes too much memory."""
        try:
            budget.check(n_bytes)
        except BudgetError as error:
            self.refuse(str(error))

    def number(self, text: str, what: str, low: float = -math.inf, high: float = math.inf) -> float:
        """Return the finite number that text stands for."""
        return self.checked_number(as_number(text), what, low, high, shown=text)

    def checked_number(
        self,
        value: object,
        what: str,
        low: float = -math.inf,
        high: float = math.inf,
        shown: object = None,
    ) -> float:
        """Return a finite number between two limits."""
        number = math.nan
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Integers of JSON may be too large for a float.
            number = float(value) if abs(value) <= 1e300 else math.nan
        if not (math.isfinite(number) and low <= number <= high):
            wanted = "a finite number"
            if math.isfinite(low):
                wanted += f" of {low:g} to {high:g}" if math.isfinite(high) else f" >= {low:g}"
            self.refuse(
                f"{what} must be {wanted}; got {described(value if shown is None else shown)}"
            )
        return number

    def integer(self, text: str, what: str) -> int:
        """Return the integer, not negative, that text stands for."""
        if not _INTEGER.fullmatch(text):
            self.refuse(f"{what} must be an integer that is not negative; got {text!r:.80}")
        return int(text)

    def box(self, x1: float, y1: float, x2: float, y2: float) -> tuple[float, float, float, float]:
        """Return the corners if they are those of a box."""
        if not (x1 <= x2 and y1 <= y2):
            self.refuse("the box ends before it begins; expected x1 <= x2 and y1 <= y2")
        if not max(abs(x1), abs(y1), abs(x2), abs(y2)) <= MAX_COORDINATE:
            self.refuse(f"the box must lie within {MAX_COORDINATE:g} pixels of 0")
        return x1, y1, x2, y2

    def category(self, text: object) -> str:
        """Return the name of a category if it can be printed."""
        if not isinstance(text, str) or not text or not text.isprintable():
            self.refuse(f"the category must be non-empty printable text; got {described(text)}")
        return text


def described(value: object) -> str:
    """Return a value for a message; only the type of one that may be too large or deep to print."""
    if isinstance(value, str | float | bool | None):
        return f"{value!r:.80}"
    if isinstance(value, int) and abs(value) < 2**64:
        return repr(value)
    return f"a value of type {type(value).__name__}"


def read_bytes(path: Path, budget: Budget) -> bytes:
    """Return the contents of a regular file; an `AnnotationError` is raised where there is none."""
    place = Place(path)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            place.check(budget, size)
            return file.read(size)
    except FileNotFoundError:
        place.refuse("there is no such file, check its name and folder")
    except OSError as error:
        place.refuse(f"it cannot be read: {error}".removesuffix("."))


def read_text(path: Path, budget: Budget, bytes_of: Mapping[bytes, int] = _BYTES_OF_LINE) -> str:
    """Return the text of a file, in UTF-8 with or without a byte order mark.

    `bytes_of` tells the memory that each occurrence of a mark in the text will lead to. An
    `AnnotationError` is raised where there is no such text, or it takes too much.
    """
    data, place = read_bytes(path, budget), Place(path)
    longest = max(map(len, io.BytesIO(data)), default=0)
    marks = sum(size * data.count(mark) for mark, size in bytes_of.items())
    place.check(budget, _BYTES_OF_TEXT * len(data) + _BYTES_OF_FIELDS * longest + marks)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place.at(f"line {line}").refuse("this is not text in UTF-8: convert the file")


def read_lines(path: Path, budget: Budget) -> Iterator[tuple[Place, str]]:
    """Yield the lines of a file that are not blank, and where they are."""
    place = Place(path)
    for number, line in enumerate(read_text(path, budget).split("\n"), start=1):
        if line.strip():
            yield place.at(f"line {number}"), line.strip()


def label_files(folder: Path, suffix: str) -> list[Path]:
    """Return the files of a folder with this suffix, sorted; hidden ones are left out.

    Folders inside are not searched. An `AnnotationError` is raised where there is no such file.
    """
    found = sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() == suffix and not entry.name.startswith(".") and entry.is_file()
    )
    if not found:
        Place(folder).refuse(f"there is no {suffix} file in this folder")
    return found


def is_image_list(path: Path, budget: Budget) -> bool:
    """Return whether a file is a list of pictures, by its first line."""
    if path.suffix.lower() != ".txt" or not path.is_file():
        return False
    first = next(read_lines(path, budget), None)
    return first is not None and is_image(first[1])


def listed_images(
    path: Path, budget: Budget, images: str | os.PathLike[str] | None = None
) -> Iterator[tuple[Place, Path]]:
    """Yield the pictures in a list, one to a line, relative to the folder of the list."""
    if images is not None:
        raise ValueError("images must not be given with a list, which names its pictures itself.")
    for place, line in read_lines(path, budget):
        if "\0" in line or not is_image(line):
            place.refuse(f"expected the name of a picture; got {line!r:.80}")
        image = path.parent / line
        if not _is_file(image):
            place.refuse(f"there is no picture {os.fspath(image)!r:.300}")
        yield place, image


@dataclass(frozen=True)
class Pictures:
    """Where the pictures of annotations are.

    `folders` are searched in their order; `required` tells that a missing picture is an error.
    """

    folders: tuple[Path, ...]
    required: bool
    _listings: dict[Path, set[str] | None] = field(default_factory=dict, compare=False, repr=False)

    _SUFFIXES = (".jpg", ".png", ".jpeg", ".JPG", ".PNG", ".JPEG", ".bmp", ".ppm", ".tif", ".webp")

    @classmethod
    def given_or_beside(
        cls, images: str | os.PathLike[str] | None, candidates: Sequence[Path]
    ) -> Pictures:
        """Return the folder that the user named, or those of the usual ones that exist.

        Every picture must be in a folder that the user named; it may be missing in the usual ones.
        """
        if images is None:
            return cls(tuple(folder for folder in candidates if folder.is_dir()), False)
        folder = Path(images)
        if not folder.is_dir():
            raise NotADirectoryError(f"images is {os.fspath(images)!r}: name a folder that exists.")
        return cls((folder,), True)

    def find(self, name: str, place: Place) -> Path | None:
        """Return the picture of this name, with or without its suffix.

        The name is relative to a folder, or begins with the name of the folder, and must not lead
        out of it. The result is None if the picture is not there and need not be.
        """
        parts = Path(name.replace("\\", "/"))
        if not name.isprintable() or not parts.name or parts.is_absolute() or ".." in parts.parts:
            place.refuse(f"the name of a picture must lie in its folder; got {name!r:.80}")
        wholes = [folder / parts for folder in self.folders]
        if len(parts.parts) > 1:
            own = [folder for folder in self.folders if folder.name == parts.parts[0]]
            wholes += [folder.parent / parts for folder in own]
        for whole in wholes:
            listing, folded = self._listing(whole.parent), _folded(whole.name)
            for suffix in ("", *self._SUFFIXES):
                if listing is not None and folded + suffix.casefold() not in listing:
                    continue
                path = whole.with_name(whole.name + suffix)
                if _is_file(path):
                    return path
        if self.required:
            (folder,) = self.folders
            place.refuse(f"there is no picture {name!r:.80} in {os.fspath(folder)!r:.300}")
        return None

    def _listing(self, folder: Path) -> set[str] | None:
        """Return the folded names in a folder, read once; None if it cannot be listed."""
        if folder not in self._listings:
            try:
                self._listings[folder] = set(map(_folded, os.listdir(folder)))
            except (FileNotFoundError, NotADirectoryError):
                self._listings[folder] = set()
            except (OSError, ValueError):
                self._listings[folder] = None
        return self._listings[folder]


def _folded(name: str) -> str:
    """Return one spelling for all those that some file system takes for the same name."""
    return unicodedata.normalize("NFC", name).casefold()


def _is_file(path: Path) -> bool:
    """Return whether there is such a file; a name too long for the system has none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
