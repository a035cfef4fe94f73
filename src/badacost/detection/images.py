"""Pictures from files, arrays and videos, all as RGB bytes.

A file is untrusted until it is decoded: only common formats are tried, the memory that pixels and
their decoder take is checked before they are read, and whatever a decoder trips over becomes one
`ImageError` that names the file.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Integral
from pathlib import Path, PurePath
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from badacost._utils.validation import check_flag, check_number
from badacost.io.budget import REMEDY, Budget, shown
from badacost.io.user_file import open_regular

if TYPE_CHECKING:
    from av import VideoFrame
    from av.container import InputContainer
    from av.video.stream import VideoStream
    from PIL import Image

Pixels = NDArray[np.uint8]

# Bytes that a pixel takes: in PIL by its mode, in a decoder until the picture is whole, as RGB.
_BYTES_OF_MODE = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
_BYTES_OF_FORMAT = {"JPEG2000": 16, "TIFF": 4, "WEBP": 12}
_BYTES_OF_PROGRESSION = 6  # the coefficients of a JPEG that comes in several scans
_BYTES_OF_RGB = 3
_BYTES_OF_VIDEO = 24  # frames that wait for others, and two as RGB
_SCANS, _START_OF_SCAN = "number of scans", 0xDA
_MAX_RUNS = 20_000_000  # pixels of a BMP in runs, which PIL unpacks one by one
_MAX_SCANS = 100  # each of them goes over the whole picture; encoders make about ten
_STRIP = 2**20  # values that are converted at a time
_INSTALL = 'run pip install "badacost[detection]".'
# Some other formats of PIL and FFmpeg start programs or open further files and addresses.
_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
_CONTAINERS = "asf,avi,flv,matroska,mov,mpeg,mpegts,mpegvideo,ogg"
_IMAGE_SUFFIXES = (
    ".bmp", ".gif", ".jp2", ".jpe", ".jpeg", ".jpg", ".mpo", ".pbm", ".pgm", ".png", ".pnm",
    ".ppm", ".tif", ".tiff", ".webp",
)  # fmt: skip
_TILE = 0x0142, 0x0143  # the tags of TIFF for the width and height of tiles
_ORIENTATION = 0x0112  # the tag of EXIF; values above 4 exchange width and height
# The upright picture, seen as it is stored.
_STORED: Mapping[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.swapaxes(0, 1),
    6: lambda upright: np.rot90(upright),
    7: lambda upright: upright[::-1, ::-1].swapaxes(0, 1),
    8: lambda upright: np.rot90(upright, -1),
}
_FILTERS = Lock()  # those of warnings belong to all threads
_VIDEO_SUFFIXES = (
    ".asf", ".avi", ".flv", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv", ".ts",
    ".webm", ".wmv",
)  # fmt: skip


class ImageError(ValueError):
    """A picture or a video that cannot be read, in one sentence.

    Examples
    --------
    >>> from badacost.detection import ImageError
    >>> from badacost.detection.images import read_image
    >>> try:
    ...     pixels = read_image("no-such-picture.png")
    ... except ImageError as error:
    ...     print(error)
    cannot read the image 'no-such-picture.png': there is no such file.
    """


@dataclass(frozen=True, eq=False)
class ImageSource:
    """Where an image is from: what results say of it, and how to see it again.

    Parameters
    ----------
    name : str
        What results call the image: its path, that of a video with # and the number of the frame,
        or "image 3" for the fourth array of a sequence.
    size : (int, int)
        Height and width in pixels.
    path : Path, optional
        The file, if there is one.
    frame : int, optional
        Number of the frame of a video, from 0.
    time : float, optional
        When the frame is shown, in seconds, if the video says so.
    pixels : ndarray of uint8 of shape (height, width, 3), optional
        RGB bytes, if they are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.images import ImageSource
    >>> source = ImageSource("image 0", (40, 60), pixels=np.zeros((40, 60, 3), np.uint8))
    >>> source.load().shape
    (40, 60, 3)
    """

    name: str
    size: tuple[int, int]
    path: Path | None = None
    frame: int | None = None
    time: float | None = None
    pixels: Pixels | None = field(default=None, repr=False)

    def load(self) -> Pixels:
        """Return the pixels, read again where they are not in memory.

        A video is decoded from its beginning to the frame. Reading may take what
        `badacost.set_max_memory` allows, whatever `max_memory` the first reading had.

        Returns
        -------
        ndarray of uint8 of shape (height, width, 3)
            RGB bytes.

        Raises
        ------
        ImageError
            Where the file cannot be read any more, or there is none.
        """
        if self.pixels is not None:
            return self.pixels
        if self.path is None:
            raise ImageError(f"the pixels of {self.name!r:.200} are not kept: give the image.")
        if self.frame is None:
            return read_image(self.path)
        pixels = next(islice(read_video(self.path), self.frame, None), None)
        if pixels is None:
            raise ImageError(f"the video {str(self.path)!r} has no frame {self.frame} any more.")
        return pixels

    def without_pixels(self) -> ImageSource:
        """Return the source without pixels that a file has, too."""
        return self if self.path is None else replace(self, pixels=None)


class FileStems:
    """Names of files that are made from images, each of them given once."""

    def __init__(self, stems: Mapping[str, str] | None = None):
        self._stems = stems or {}
        self._used: set[str] = set()

    def of(self, source: ImageSource) -> str:
        """Return a name that no other file has; some file systems do not tell A from a."""
        stem = PurePath(source.name).name if source.path is None else source.path.stem
        stem = self._stems.get(str(source.path), stem)
        if source.frame is not None:
            stem += f"-{source.frame:06d}"
        unused, number = stem, 1
        while unused.casefold() in self._used:
            number += 1
            unused = f"{stem}-{number}"
        self.take(unused)
        return unused

    def take(self, stem: str) -> None:
        """Note a name that a file has already."""
        self._used.add(stem.casefold())


def read_image(
    source: str | os.PathLike[str] | Image.Image | NDArray[Any],
    *,
    bgr: bool = False,
    max_memory: int | str | None = None,
) -> Pixels:
    """Read a picture as RGB bytes.

    Pictures of cameras are turned upright by their EXIF orientation. Transparent pictures are laid
    on black. Of several pictures in one file, the first is read.

    Parameters
    ----------
    source : str, path-like, PIL image or ndarray
        A file; a PIL image of any mode that PIL converts to RGB; or an array of shape
        (height, width), or (height, width, n) of grey (n = 1), RGB (3) or RGBA (4) values, which
        are bytes, 16-bit unsigned integers, booleans, or floats from 0 to 1.
    bgr : bool, default=False
        Whether the colours of arrays are blue, green, red, as OpenCV has them. Nothing else tells
        the two orders apart, and with the wrong one a detector finds fewer objects. Files and PIL
        images know their order.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`. 1 GB is enough for 140 million pixels. PIL has a
        limit of its own, ``PIL.Image.MAX_IMAGE_PIXELS``.

    Returns
    -------
    ndarray of uint8 of shape (height, width, 3)
        The pixels; `source` itself if it is such an array.

    Raises
    ------
    ImageError
        Where there is no picture, it is damaged, or an array has no meaning as a picture.

    Examples
    --------
    >>> import numpy as np
    >>> from badacost.detection.images import read_image
    >>> read_image(np.array([[0.0, 1.0]])).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    budget = Budget.of(max_memory)
    check_flag("bgr", bgr)
    if isinstance(source, np.ndarray):
        pixels = _bytes_of_array(source)
        return np.ascontiguousarray(pixels[:, :, ::-1]) if bgr else pixels
    pil = import_pil()
    if isinstance(source, pil.Image):
        with _decoding("the PIL image"):
            return _bytes_of_image(source, budget)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"an image must be a path, a PIL image or an array; got a {type(source).__name__}."
        )
    with _decoding(_described("image", source)), _opened_image(source) as image:
        return _bytes_of_image(image, budget)


def size_of_file(path: str | os.PathLike[str], budget: Budget | None = None) -> tuple[int, int]:
    """Return height and width of a picture, as `read_image` turns it upright, without its pixels.

    An `ImageError` is raised where there is no picture, or one that `read_image` refuses as too
    large.
    """
    with _decoding(_described("image", path)), _opened_image(path) as image:
        _check_memory(image, budget or Budget.of(None))
        turned = _orientation(image) > 4
        return (image.width, image.height) if turned else (image.height, image.width)


def is_image(path: str | os.PathLike[str]) -> bool:
    """Return whether a name ends like that of a picture in a format that `read_image` knows."""
    return Path(path).suffix.lower() in _IMAGE_SUFFIXES


def is_video(path: str | os.PathLike[str]) -> bool:
    """Return whether a name ends like that of a video in a format that `read_video` knows."""
    return Path(path).suffix.lower() in _VIDEO_SUFFIXES


def find_images(folder: str | os.PathLike[str], *, recursive: bool = True) -> list[Path]:
    """Find the pictures in a folder; hidden files and folders are left out.

    Parameters
    ----------
    folder : str or path-like
        Where to look.
    recursive : bool, default=True
        Whether to look into the folders inside; links to folders are not followed.

    Returns
    -------
    list of Path
        Files with the name of a picture, sorted.

    Raises
    ------
    NotADirectoryError
        Where there is no such folder.

    Examples
    --------
    >>> from pathlib import Path, PurePath
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.images import find_images
    >>> with TemporaryDirectory() as folder:
    ...     Path(folder, "night").mkdir()
    ...     for name in ("b.png", "a.JPG", "notes.txt", ".hidden.png", "night/c.jpeg"):
    ...         Path(folder, name).touch()
    ...     [path.name for path in find_images(folder)]
    ...     [path.name for path in find_images(folder, recursive=False)]
    ['a.JPG', 'b.png', 'c.jpeg']
    ['a.JPG', 'b.png']
    """
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"{os.fspath(folder)!r} is not a folder: name one that exists.")
    found: list[Path] = []
    for parent, folders, files in os.walk(folder):
        shown = folders if recursive else []
        folders[:] = [name for name in shown if not name.startswith(".")]
        found += [Path(parent, name) for name in files if not name.startswith(".")]
    return sorted(path for path in found if is_image(path))


def read_video(
    path: str | os.PathLike[str], *, every: int = 1, max_memory: int | str | None = None
) -> Iterator[Pixels]:
    """Read the frames of a video, one after the other, turned upright.

    Parameters
    ----------
    path : str or path-like
        The video file.
    every : int, default=1
        Give every n-th frame, from the first on.
    max_memory : int, str or None, default=None
        Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None is
        the limit of `badacost.set_max_memory`. 1 GB is enough for frames of 41 million pixels.

    Returns
    -------
    iterator of ndarray of uint8 of shape (height, width, 3)
        The frames as RGB bytes.

    Raises
    ------
    ImageError
        When frames are asked for, where there is no video or the rest of it is damaged.

    Examples
    --------
    >>> from pathlib import Path, PurePath
    >>> from tempfile import TemporaryDirectory
    >>> import av
    >>> import numpy as np
    >>> from badacost.detection.images import read_video
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "clip.mp4")
    ...     with av.open(str(path), "w") as clip:
    ...         stream = clip.add_stream("mpeg4", rate=25)
    ...         stream.width, stream.height = 64, 48
    ...         for grey in (0, 60, 120, 180, 240):
    ...             pixels = np.full((48, 64, 3), grey, np.uint8)
    ...             clip.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
    ...         clip.mux(stream.encode())
    ...     for frame in read_video(path, every=2):
    ...         print(frame.shape, round(frame.mean() / 20) * 20)
    (48, 64, 3) 0
    (48, 64, 3) 120
    (48, 64, 3) 240
    """
    check_number("every", every, Integral, low=1)
    return (source.load() for source in _frames(path, every, Budget.of(max_memory)))


def video_frames(path: str | os.PathLike[str], *, every: int = 1) -> Iterator[ImageSource]:
    """Yield the frames that `read_video` reads, each with its name, number, time and pixels."""
    check_number("every", every, Integral, low=1)
    return _frames(path, every, Budget.of(None))


def count_frames(path: str | os.PathLike[str]) -> int | None:
    """Return how many frames a video has, exactly or by duration; None where the file does not say.

    A file cannot claim more frames than it has bytes. An `ImageError` is raised where there is no
    video.
    """
    with (
        _decoding(_described("video", path)),
        _opened(path, Budget.of(None)) as (container, stream),
    ):
        n_frames, rate = stream.frames, stream.average_rate
        if n_frames <= 0:
            duration = container.duration  # in microseconds
            n_frames = round(duration * float(rate) / 1e6) if duration and rate else 0
        return min(n_frames, os.path.getsize(path)) if n_frames > 0 else None


def import_pil() -> ModuleType:
    """Return ``PIL.Image``, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"images need pillow: {_INSTALL}") from error
    return Image


def import_av() -> ModuleType:
    """Return ``av``, or say how to install it."""
    try:
        import av
    except ImportError as error:
        raise ImportError(f"videos need av: {_INSTALL}") from error
    return av


def _described(kind: str, path: str | os.PathLike[str]) -> str:
    """Return a file for a message; a name with line ends stays on one line."""
    return f"the {kind} {os.fspath(path)!r}"


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Turn what decoders raise into an `ImageError`."""
    try:
        yield
    except ImportError:
        raise
    # Damaged bytes lead decoders to any exception there is, from KeyError to struct.error.
    except Exception as error:
        raise ImageError(f"cannot read {what}: {_reason(error)}.") from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings about what PIL has repaired, and about sizes, which are checked here.

    One thread at a time: pixels are decoded outside, where there is no warning.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _reason(error: Exception) -> str:
    """Return why a file could not be read."""
    if type(error).__name__ == "UnidentifiedImageError":
        return "it is not a picture of a known format"
    if type(error).__name__ == "DecompressionBombError":
        return "it has more pixels than PIL allows: set PIL.Image.MAX_IMAGE_PIXELS"
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())[:200].rstrip(".")


@contextmanager
def _opened_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file with contents."""
    try:
        file = open_regular(path)
    except FileNotFoundError:
        raise ImageError("there is no such file") from None
    except OSError as error:
        raise ImageError(str(error)) from error
    with file:
        if os.fstat(file.fileno()).st_size == 0:
            raise ImageError("it is empty")
        yield file


@contextmanager
def _opened_image(path: str | os.PathLike[str]) -> Iterator[Image.Image]:
    """Open a picture of a known format."""
    pil = import_pil()
    with _opened_file(path) as file:
        with _without_warnings():
            image = pil.open(file, formats=_FORMATS)
        with image:
            if image.format in ("JPEG", "MPO"):
                image.info[_SCANS] = _n_scans(file)
            yield image


def _n_scans(file: BinaryIO) -> int:
    """Return how often a JPEG goes over its picture; many times are refused."""
    position, n_scans, last = file.tell(), 0, b""
    file.seek(2)
    while len(segment := file.read(4)) == 4 and segment[0] == 0xFF and segment[1] != _START_OF_SCAN:
        file.seek(max(int.from_bytes(segment[2:], "big") - 2, 0), os.SEEK_CUR)  # such as EXIF
    file.seek(-len(segment), os.SEEK_CUR)
    while n_scans <= _MAX_SCANS and (block := file.read(2**20)):
        n_scans += (last + block).count(bytes([0xFF, _START_OF_SCAN]))
        last = block[-1:]
    file.seek(position)
    if n_scans > _MAX_SCANS:
        raise ImageError(f"it has more than {_MAX_SCANS} scans: save it again")
    return n_scans


def _check_memory(image: Image.Image, budget: Budget) -> None:
    """Refuse a picture before its pixels are decoded."""
    decoding = _BYTES_OF_FORMAT.get(image.format or "", 0)
    if image.info.get("progressive") or image.info.get(_SCANS, 1) > 1:
        decoding = _BYTES_OF_PROGRESSION
    tiles = getattr(image, "tile", ())
    if tiles and tiles[0][0] == "bmp_rle" and image.width * image.height > _MAX_RUNS:
        raise ImageError(f"it is compressed, with more than {_MAX_RUNS} pixels: save it as PNG")
    # The decoder is done when the picture becomes RGB.
    per_pixel = _BYTES_OF_MODE.get(image.mode, 4) + max(decoding, _BYTES_OF_RGB)
    what = f"its {image.width} x {image.height} pixels"
    budget.check(per_pixel * max(image.width * image.height, _pixels_of_tile(image)), what)


def _pixels_of_tile(image: Image.Image) -> int:
    """Return how many pixels a tile of a TIFF has, which can be larger than the picture."""
    tags = getattr(image, "tag_v2", {})
    width, height = (tags.get(tag, 0) for tag in _TILE)
    if not (isinstance(width, int) and isinstance(height, int)):
        raise ImageError("the size of its tiles is no number: save it again")
    return width * height


def _orientation(image: Image.Image) -> int:
    """Return how a picture is to be turned, as EXIF has it; 1 for not at all."""
    with _without_warnings():
        tag = image.getexif().get(_ORIENTATION, 1)
    return tag if tag in _STORED else 1


def _bytes_of_image(image: Image.Image, budget: Budget) -> Pixels:
    """Return the pixels of a PIL image, strip by strip: a copy of the whole would be large."""
    _check_memory(image, budget)
    image.load()
    width, height = image.size
    if not (width and height):
        raise ImageError(f"an image must have pixels; got {width} x {height}")
    orientation = _orientation(image)
    upright = np.empty((width, height, 3) if orientation > 4 else (height, width, 3), np.uint8)
    stored = _STORED.get(orientation, np.asarray)(upright)
    for first, last in _strips(height, width):
        stored[first:last] = _bytes_of_strip(image.crop((0, first, width, last)))
    return upright


def _bytes_of_strip(strip: Image.Image) -> Pixels:
    """Return some rows of a PIL image."""
    if strip.mode == "I":
        values = np.asarray(strip)
        if not 0 <= values.min() <= values.max() < 2**16:
            raise ImageError("its integers are not within 0 and 65535: scale them to bytes")
        return _bytes_of_array(values.astype(np.uint16))
    if strip.mode == "F" or strip.mode.startswith("I;16"):
        return _bytes_of_array(np.asarray(strip))
    mode = "RGBA" if strip.has_transparency_data else "RGB"
    return _bytes_of_array(np.asarray(strip if strip.mode == mode else strip.convert(mode)))


def _strips(height: int, width: int) -> Iterator[tuple[int, int]]:
    """Divide the rows of a picture into parts that take little memory."""
    n_rows = max(1, _STRIP // (4 * width))
    return ((first, min(first + n_rows, height)) for first in range(0, height, n_rows))


def _bytes_of_array(array: NDArray[Any]) -> Pixels:
    """Return an array as RGB bytes, if its shape and type mean a picture."""
    planes = array[:, :, np.newaxis] if array.ndim == 2 else array
    if planes.ndim != 3 or planes.shape[2] not in (1, 3, 4):
        raise ImageError(
            f"an image must have shape (height, width), or (height, width, n) with n 1, 3 or 4; "
            f"got shape {array.shape}: move channels to the last axis."
        )
    if planes.size == 0:
        raise ImageError(f"an image must have pixels; got shape {array.shape}.")
    height, width, n = planes.shape
    if planes.dtype == np.uint8 and n == 3:
        return np.ascontiguousarray(planes)
    pixels = np.empty((height, width, 3), np.uint8)
    for first, last in _strips(height, width):
        values = _bytes_of_values(planes[first:last])
        if n == 4:
            alpha = values[:, :, 3:].astype(np.uint16)
            values = ((values[:, :, :3] * alpha + 127) // 255).astype(np.uint8)
        pixels[first:last] = values
    return pixels


def _bytes_of_values(values: NDArray[Any]) -> Pixels:
    """Return values of a known range as bytes."""
    if values.dtype == np.uint8:
        return values
    if values.dtype == np.bool_:
        return np.where(values, np.uint8(255), np.uint8(0))
    if values.dtype.kind == "u" and values.dtype.itemsize == 2:
        return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if values.dtype.kind != "f":
        raise ImageError(
            f"an image of dtype {values.dtype} has no known range: convert it to uint8."
        )
    if not (values.min() >= 0.0 and values.max() <= 1.0):
        raise ImageError(
            "an image of floats must lie within 0 and 1: divide it by its largest possible value "
            "and replace NaN."
        )
    return (values * 255.0 + 0.5).astype(np.uint8)


@contextmanager
def _opened(
    path: str | os.PathLike[str], budget: Budget
) -> Iterator[tuple[InputContainer, VideoStream]]:
    """Open the first stream of pictures of a video file."""
    av = import_av()
    pixels = {"max_pixels": str(min(budget.max_memory // _BYTES_OF_VIDEO + 1, 2**31 - 1))}
    # A name would be taken for an address if it looks like one; an open file is not.
    options = {"format_whitelist": _CONTAINERS} | pixels
    with _opened_file(path) as file, av.open(file, options=options) as container:
        if not container.streams.video:
            raise ImageError("it has no pictures")
        stream = container.streams.video[0]
        _check_frame(stream, budget)
        stream.codec_context.options = pixels  # frames may be larger than the container says
        try:
            yield container, stream
        except av.error.FFmpegError as error:
            if error.errno != errno.EINVAL:
                raise
            raise ImageError(
                f"a frame is damaged, or would need more than {shown(budget.max_memory)}: {REMEDY}"
            ) from error


def _check_frame(frame: VideoStream | VideoFrame, budget: Budget) -> None:
    """Refuse frames that are too large."""
    what = f"frames of {frame.width} x {frame.height} pixels"
    budget.check(_BYTES_OF_VIDEO * frame.width * frame.height, what)


def _frames(path: str | os.PathLike[str], every: int, budget: Budget) -> Iterator[ImageSource]:
    """Decode a video."""
    number = -1
    with _decoding(_described("video", path)), _opened(path, budget) as (container, stream):
        stream.thread_type = "AUTO"
        for number, frame in enumerate(container.decode(stream)):
            if number % every == 0:
                _check_frame(frame, budget)
                turned = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
                pixels: Pixels = np.ascontiguousarray(turned, np.uint8)
                name = f"{os.fspath(path)}#{number:06d}"
                size = pixels.shape[0], pixels.shape[1]
                yield ImageSource(name, size, Path(path), number, frame.time, pixels)
        if number < 0:
            raise ImageError("it has no frames")
