"""From anything that shows images to `Detections`: files, folders, videos, arrays and iterators."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost.detection.images import (
    FileStems,
    ImageError,
    ImageSource,
    count_frames,
    find_images,
    import_av,
    import_pil,
    is_video,
    read_image,
    video_frames,
)
from badacost.io.user_file import open_regular

if TYPE_CHECKING:
    from badacost.detection.boxes import Detections
    from badacost.detection.detector import Detector


@dataclass(frozen=True)
class Unreadable:
    """An image that could not be read, and why."""

    name: str
    error: ImageError

    @property
    def source(self) -> ImageSource:
        """The image, of which nothing but its name is known."""
        return ImageSource(self.name, (0, 0), Path(self.name))


class InputFiles:
    """The files that paths, folders and patterns name, each once, and what is made from them."""

    def __init__(self, paths: Iterable[Path]):
        self._files: dict[Path, ImageError | None] = {}
        stems: dict[str, str] = {}
        folders = []
        for path in paths:
            folders.append(os.path.abspath(path if path.is_dir() else path.parent))
            try:
                found = files_of(path)
            except ImageError as error:
                self._files.setdefault(path, error)
                continue
            for file in found:
                stem = str(file.relative_to(path).with_suffix("")) if path.is_dir() else file.stem
                stems.setdefault(str(file), stem)
                self._files.setdefault(file, None)
        for file in self._files:  # before any work is done
            import_av() if is_video(file) else import_pil()
        self.folder = Path(os.path.commonpath(folders))  # that all inputs are in, or are
        self.stems = FileStems(stems)
        self._stems = stems

    def n_images(self, every: int = 1) -> int:
        """Return how many images to expect; an unreadable video counts as one."""
        total = 0
        for file in self._files:
            n_frames: int | None = None
            if is_video(file):
                with suppress(ImageError):  # the reason is told when its turn comes
                    n_frames = count_frames(file)
            total += -(-(n_frames or 1) // every)
        return total

    def images(self, every: int = 1, first: int = 0) -> Iterator[ImageSource | Unreadable]:
        """Yield all images, one by one, from the one with the number `first` on."""
        for file, error in self._files.items():
            if first and not (error is None and is_video(file)):  # one image, not to be read
                first -= 1
            elif error is not None:
                yield Unreadable(str(file), error)
            else:
                for image in file_images(file, every=every):
                    if first:
                        first -= 1
                    else:
                        yield image

    def digest(self) -> str:
        """Return what tells these files from others: their names in results and their contents."""
        digest = hashlib.sha256()
        for file in self._files:
            facts = [str(file), os.path.abspath(file), self._stems.get(str(file))]
            with suppress(OSError), open_regular(file) as opened:
                facts.append(hashlib.file_digest(opened, "sha256").hexdigest())
            digest.update(json.dumps(facts).encode())
        return digest.hexdigest()


def predict(
    detector: Detector, source: Any, *, stream: bool, bgr: bool, n_jobs: int | None
) -> Iterator[Detections] | list[Detections]:
    """Return what is found in each image of a source; `Detector.predict` documents it."""
    from badacost.detection.detector import images_at_a_time

    found = _predicted(detector, images_of(source, bgr=bgr), images_at_a_time(n_jobs))
    if stream:
        return found
    return [_without_pixels(detections) for detections in found]


def images_of(source: Any, *, bgr: bool = False) -> Iterator[ImageSource | Unreadable]:
    """Return an iterator over the images of a source; files are looked for at once, read later."""
    if isinstance(source, str | os.PathLike):
        return chain.from_iterable(map(file_images, files_of(source)))
    if not isinstance(source, Iterable) or (isinstance(source, np.ndarray) and source.ndim != 4):
        source = [source]
    return _images_of_items(source, bgr)


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """Return the images that a path, a folder or a pattern with wildcards stands for."""
    name = os.fspath(path)
    if os.path.isdir(name):
        files = find_images(name)
        if not files:
            raise ImageError(f"the folder {name!r} has no pictures.")
        return files
    if not os.path.exists(name) and glob.has_magic(name):
        found = sorted(file for file in glob.glob(name, recursive=True) if os.path.isfile(file))
        if not found:
            raise ImageError(f"no file matches the pattern {name!r}: check its folder.")
        return [Path(file) for file in found]
    return [Path(name)]


def file_images(path: Path, *, every: int = 1) -> Iterator[ImageSource | Unreadable]:
    """Yield the picture in a file or the frames of a video, and why there are no more."""
    try:
        if is_video(path):
            yield from video_frames(path, every=every)
        else:
            pixels = read_image(path)
            yield ImageSource(str(path), _size(pixels), path, pixels=pixels)
    except ImageError as error:
        yield Unreadable(str(path), error)


def search(
    detector: Detector, images: Iterable[ImageSource | Unreadable], *, n_jobs: int | None
) -> Iterator[tuple[ImageSource | Unreadable, Detections | Exception]]:
    """Yield each image with what was found in it, or with what went wrong, in their order.

    Several images are searched at the same time; a single one is searched by all threads.
    """
    upcoming = iter(images)
    ahead = list(islice(upcoming, 2))
    if len(ahead) == 1 and isinstance(ahead[0], ImageSource):
        yield ahead[0], _searched(detector, ahead[0], n_jobs)
        return
    upcoming = chain(ahead, upcoming)
    del ahead  # or it would keep their pixels
    waiting: deque[ImageSource | Unreadable] = deque()
    broken: list[Exception] = []

    def pixels() -> Iterator[Any]:
        """Give the detector what it had not finished when it failed, and then new images."""
        yield from [image.load() for image in waiting if isinstance(image, ImageSource)]
        while not broken:
            try:
                image = next(upcoming)
            except StopIteration:
                return
            except Exception as error:  # of an iterator of the user
                broken.append(error)
                return
            waiting.append(image)
            if isinstance(image, ImageSource):
                yield image.load()

    finished = False
    while not finished:
        try:
            for found in detector.detect_many(pixels(), n_jobs=n_jobs):
                yield from _unreadable_first(waiting)
                image = waiting.popleft()
                assert isinstance(image, ImageSource)
                yield image, replace(found, source=image)
            finished = True
        except (ValueError, MemoryError) as error:
            yield from _unreadable_first(waiting)
            if not waiting:
                raise
            yield waiting.popleft(), error
    yield from _unreadable_first(waiting)
    if broken:
        raise broken[0]


def _predicted(
    detector: Detector, images: Iterator[ImageSource | Unreadable], n_jobs: int
) -> Iterator[Detections]:
    """Yield what is found; raise the first error."""
    for _, found in search(detector, images, n_jobs=n_jobs):
        if isinstance(found, Exception):
            raise found
        yield found


def _searched(detector: Detector, image: ImageSource, n_jobs: int | None) -> Detections | Exception:
    """Return what is in one image, or what went wrong."""
    try:
        return replace(detector.detect(image.load(), n_jobs=n_jobs), source=image)
    except (ValueError, MemoryError) as error:
        return error


def _unreadable_first(
    waiting: deque[ImageSource | Unreadable],
) -> Iterator[tuple[Unreadable, ImageError]]:
    """Take the images that could not be read from the head of a queue."""
    while waiting and isinstance(waiting[0], Unreadable):
        image = waiting[0]
        waiting.popleft()
        yield image, image.error


def _images_of_items(source: Iterable[Any], bgr: bool) -> Iterator[ImageSource | Unreadable]:
    """Yield the images of a sequence of paths, arrays and PIL images."""
    for number, item in enumerate(source):
        if isinstance(item, str | os.PathLike):
            yield from images_of(item)
            continue
        name = f"image {number}"
        try:
            pixels = read_image(item, bgr=bgr)
        except ImageError as error:
            yield Unreadable(name, error)
        else:
            yield ImageSource(name, _size(pixels), pixels=pixels)


def _without_pixels(found: Detections) -> Detections:
    """Return detections that keep no pixels which can be read again."""
    assert found.source is not None
    return replace(found, source=found.source.without_pixels())


def _size(pixels: Any) -> tuple[int, int]:
    """Return height and width."""
    return pixels.shape[0], pixels.shape[1]
