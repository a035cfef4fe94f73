"""`WindowStore`: the pictures of a training, decoded once, and `BinnedWindows` cut out of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import IndexArray, Positions
from badacost._utils.large_samples import mapped_array
from badacost._utils.parallel import Threads
from badacost._utils.progress import ProgressBar
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.views import Views
from badacost.detection.images import ImageError, Pixels
from badacost.detection.training.samples import Variation, WindowFeatures, WindowList, WindowShape
from badacost.tree.binning import BinMapper, BinnedData

_MAX_MEMORY = 2**32  # bytes; more are kept in a file
_MAX_BINNED_WINDOWS = 3000  # whose values choose the bins


class WindowStore:
    """Annotated pictures and, behind them, the mirror images of those with objects.

    `decode` reads the pictures once, into memory or, where they are many, into a temporary file in
    `folder`. `origins` says for each image which picture it shows; the first `n_pictures` are the
    pictures themselves.
    """

    def __init__(
        self,
        pictures: Sequence[AnnotatedImage],
        views: Views | None,
        variation: Variation,
        threads: Threads,
        folder: Path | None,
        verbose: bool,
    ):
        self.threads, self.verbose, self.folder = threads, verbose, folder
        self.variation = variation
        self.n_pictures = len(pictures)
        seen = [image.measured() for image in pictures]
        mirrored = [] if views is None else [k for k, image in enumerate(seen) if len(image)]
        self.images = [*seen, *(seen[k].mirrored(views) for k in mirrored)]
        self.origins: IndexArray = np.array([*range(len(seen)), *mirrored], np.int64)
        self._pixels: list[Pixels] = []
        self.digests: list[bytes] = []  # hashes of the pictures, once they are decoded

    def decode(self) -> None:
        """Read the pixels of the pictures; those that are given as arrays stay where they are."""
        pictures = self.images[: self.n_pictures]
        files = [k for k, image in enumerate(pictures) if isinstance(image.image, Path)]
        shapes = {k: (*(pictures[k].size or (0, 0)), 3) for k in files}
        ends = np.cumsum([0, *(math.prod(shapes[k]) for k in files)])
        memory = allocated(int(ends[-1]), self.folder)
        places = dict(zip(files, ends[:-1].tolist(), strict=True))
        bar = self.bar(len(files), "pictures")
        done: list[int] = []

        def decode(index: int) -> tuple[Pixels, bytes]:
            image = pictures[index]
            with named(image):
                pixels = image.load()
            digest = hashlib.sha256(np.ascontiguousarray(pixels).data).digest()
            if index not in places:
                return pixels, digest
            kept = memory[places[index] : places[index] + pixels.size].reshape(pixels.shape)
            kept[:] = pixels
            done.append(index)
            if bar is not None:
                bar.update(len(done))
            return kept, digest

        decoded = self.threads.run(decode, [(k,) for k in range(len(pictures))])
        self._pixels = [pixels for pixels, _ in decoded]
        self.digests = [digest for _, digest in decoded]
        if bar is not None:
            bar.close()

    def pixels(self, index: int) -> Pixels:
        """Pixels of an image."""
        pixels = self._pixels[self.origins[index]]
        return pixels if index < self.n_pictures else np.ascontiguousarray(pixels[:, ::-1])

    def bar(self, total: int, title: str) -> ProgressBar | None:
        """A progress bar, if they are wanted."""
        return ProgressBar(total, title) if self.verbose and total else None

    def for_windows(
        self,
        windows: WindowList,
        shape: WindowShape,
        title: str,
        work: Callable[[Positions, Pixels], None],
    ) -> None:
        """Cut windows out of their images; `work` takes their places in the list and pixels."""
        groups = windows.by_image()
        bar = self.bar(len(groups), title)
        done: list[int] = []

        def one(first: int, last: int) -> None:
            for index, places in groups[first:last]:
                with named(self.images[index]):
                    boxes, seeds = windows.boxes[places], windows.seeds[places]
                    work(places, shape.cut(self.pixels(index), boxes, seeds, self.variation))
            done.append(first)
            if bar is not None:
                bar.update(len(done))

        self.threads.map(one, len(groups), grain=1)
        if bar is not None:
            bar.close()

    def features(
        self, windows: WindowList, features: WindowFeatures, title: str
    ) -> NDArray[np.float32]:
        """Features of windows, shape (n_windows, n_features)."""
        found = np.empty((len(windows), features.n_features), np.float32)

        def fill(places: Positions, crops: Pixels) -> None:
            found[places] = features.of(crops)

        self.for_windows(windows, features.shape, title, fill)
        return found


class BinnedWindows:
    """Binned features of windows; those that were in the last matrix are not computed again.

    Bins are chosen by a part of the windows `first`.
    """

    def __init__(
        self,
        store: WindowStore,
        features: WindowFeatures,
        first: WindowList,
        *,
        max_bins: int,
        seed: int,
        title: str = "",
    ):
        self._store, self._features, self._title = store, features, title
        rng = np.random.default_rng([seed, 5])
        n_chosen = min(len(first), _MAX_BINNED_WINDOWS)
        chosen = first.chosen(np.sort(rng.choice(len(first), n_chosen, replace=False)))
        values = store.features(chosen, features, f"{title}bins")
        self._mapper = BinMapper.fit(values, max_bins=max_bins, threads=store.threads)
        self._bins = self._mapper.transform(values)
        self._known = {key: place for place, key in enumerate(_keys(chosen))}

    def data(self, windows: WindowList) -> BinnedData:
        """Return the windows in bins, in their order."""
        keys = _keys(windows)
        column = np.array([self._known.get(key, -1) for key in keys])
        shape = (len(self._bins), len(windows))
        bins = allocated(math.prod(shape), self._store.folder).reshape(shape)
        old = np.flatnonzero(column >= 0)
        for row, known in zip(bins, self._bins, strict=True):
            row[old] = known[column[old]]
        new = np.flatnonzero(column < 0)

        def fill(places: Positions, crops: Pixels) -> None:
            bins[:, new[places]] = self._mapper.transform(self._features.of(crops))

        missing = windows.chosen(new)
        self._store.for_windows(missing, self._features.shape, f"{self._title}features", fill)
        self._bins = bins
        self._known = {key: place for place, key in enumerate(keys)}
        return BinnedData(self._mapper, bins)


def _keys(windows: WindowList) -> list[tuple[int, int, bytes]]:
    """What tells windows apart."""
    columns = zip(windows.images, windows.seeds, windows.boxes, strict=True)
    return [(int(image), int(seed), box.tobytes()) for image, seed, box in columns]


def allocated(n_bytes: int, folder: Path | None) -> NDArray[np.uint8]:
    """Memory, or a temporary file if it is much, whose room is taken at once."""
    if n_bytes <= _MAX_MEMORY:
        return np.empty(n_bytes, np.uint8)
    remedy = "give a folder of checkpoints on a disk with more room"
    return mapped_array((n_bytes,), np.uint8, folder, remedy)


@contextmanager
def named(image: AnnotatedImage) -> Iterator[None]:
    """Say in which image something is wrong; what cannot be read says so itself."""
    try:
        yield
    except ImageError:
        raise
    except ValueError as error:
        raise ValueError(f"{image.name!r:.80}: {error}") from error
