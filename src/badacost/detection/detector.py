"""`Detector`: an image in, `Detections` out."""

from __future__ import annotations

import math
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray, Positions
from badacost._utils.parallel import Threads, number_of_threads
from badacost._utils.validation import check_choice, check_number
from badacost.backends.device import cuda_device
from badacost.classifiers.saving import forest_from_arrays, forest_to_arrays
from badacost.detection.backend import Backend, CPUBackend, Layout
from badacost.detection.boxes import Detections, with_aspect_ratios
from badacost.detection.cascade import MAX_NODES, Cascade
from badacost.detection.channels import ChannelParameters, GradientParameters, HistogramParameters
from badacost.detection.cuda_backend import CudaBackend
from badacost.detection.decorrelation import as_filters
from badacost.detection.images import Pixels, read_image
from badacost.detection.plan import IdlePlans, Plan, Sighting
from badacost.detection.pose import PoseRegression
from badacost.detection.pyramid import PyramidParameters
from badacost.detection.score_curve import ScoreCurve
from badacost.detection.suppression import Suppression
from badacost.io.model_file import ModelFile, load_model, refuse, save_model, saved_model

if TYPE_CHECKING:
    from PIL.Image import Image

    Source = str | os.PathLike[str] | Image | NDArray[Any]

DeviceName = Literal["cpu", "cuda"]
BACKENDS: dict[str, Callable[[Layout], Backend]] = {"cpu": CPUBackend, "cuda": CudaBackend}
MAX_CASCADES = 256
_HEADER = {
    "pyramid", "cascades", "n_filters", "stride", "suppression", "names", "angles", "category",
    "aspect_ratios", "curve",
}  # fmt: skip
_POSE_ARRAYS = ("weights", "intercepts", "costs")
_MAX_DEFAULT_JOBS = 4  # images at a time by default: each takes memory


def images_at_a_time(n_jobs: int | None) -> int:
    """Number of images to search at the same time: by default one on each core, four at most."""
    n_threads = number_of_threads(n_jobs)
    return min(n_threads, _MAX_DEFAULT_JOBS) if n_jobs is None else n_threads


@saved_model
@dataclass(frozen=True, eq=False)
class Detector:
    """Finds objects of several views in images of any size.

    One cascade of all views (BAdaCost, SAMME), or one for each view (SubCat), look at every window
    of a pyramid of channel features.

    Parameters
    ----------
    pyramid : PyramidParameters
        Levels and channels.
    cascades : sequence of Cascade
        What looks at the windows; their views are numbered one after the other.
    names : sequence of str
        Name of each view.
    filters : ndarray of shape (n_filters, n_channels, size, size), optional
        Filters of locally decorrelated channels, which halve the resolution.
    stride : int, default=4
        Pixels from one window to the next, a multiple of a cell.
    suppression : Suppression, optional
        How boxes of the same object are reduced to one.
    aspect_ratios : sequence of float, optional
        Width by height of the objects of each view; boxes keep their height and centre.
    angles : sequence of float, optional
        Heading of each view in degrees, see `Detections`.
    category : str, default="object"
        What all the views are of.
    curve : ScoreCurve, optional
        Turns the scores of windows into probabilities, which then are the scores of detections.
    device : {"cpu", "cuda"}, default="cpu"
        What looks at images: compiled loops, or a GPU (``pip install badacost[gpu]``), with the
        same results to the last bit. It is not saved with the detector.

    Examples
    --------
    A detector of one tree that finds dark left halves, in an image that has one:

    >>> import numpy as np
    >>> from badacost.detection import Cascade, ChannelParameters, Detector, PyramidParameters
    >>> from badacost.tree.forest import Forest
    >>> forest = Forest(
    ...     feature=np.array([0, 0, 0], np.int32),
    ...     threshold=np.array([0.1, np.nan, np.nan]),
    ...     left=np.array([1, 1, 2], np.int32),
    ...     missing_left=np.ones(3, bool),
    ...     value=np.array([0, 0, 1], np.int32),
    ...     gain=np.zeros(3, np.float32),
    ...     count=np.zeros(3, np.int32),
    ...     weight=np.zeros(3, np.float32),
    ...     offsets=np.array([0, 3]),
    ...     tree_weights=np.ones(1),
    ...     table=np.array([[1.0], [-1.0]]),
    ...     n_features=10 * 4 * 4,
    ... )
    >>> detector = Detector(
    ...     pyramid=PyramidParameters(ChannelParameters(shrink=4), min_size=(16, 16)),
    ...     cascades=[Cascade(forest, (16, 16), (16, 16), cell=4, rejections=0.0)],
    ...     names=["dark"],
    ... )
    >>> image = np.full((16, 32, 3), 255, np.uint8)
    >>> image[:, :4] = 0
    >>> detector.detect(image).boxes
    array([[ 0.,  0., 16., 16.]])
    """

    pyramid: PyramidParameters
    cascades: Sequence[Cascade]
    names: Sequence[str]
    filters: NDArray[np.float32] | None = None
    stride: int = 4
    suppression: Suppression = field(default_factory=Suppression)
    aspect_ratios: Sequence[float] | None = None
    angles: Sequence[float] | None = None
    category: str = "object"
    curve: ScoreCurve | None = None
    device: DeviceName = "cpu"
    _plans: IdlePlans = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "cascades", tuple(self.cascades))
        if not 1 <= len(self.cascades) <= MAX_CASCADES:
            raise ValueError(f"a detector has 1 to {MAX_CASCADES} cascades.")
        if self.filters is not None:
            set_(self, "filters", as_filters(self.filters, self.pyramid.channels.n_channels))
        check_number("stride", self.stride, Integral, low=self.cell, high=256)
        if self.stride % self.cell:
            raise ValueError(f"stride must be a multiple of {self.cell} pixels; got {self.stride}.")
        for cascade in self.cascades:
            if cascade.cell != self.cell or cascade.n_planes != self.n_planes:
                raise ValueError(
                    f"a cascade for {cascade.n_planes} planes of cells of {cascade.cell} pixels "
                    f"does not fit {self.n_planes} planes of cells of {self.cell} pixels."
                )
        largest = np.max([cascade.padded_window for cascade in self.cascades], axis=0)
        if (self.pyramid.pad > largest).any():
            raise ValueError(f"the padding {self.pyramid.pad} must not exceed the largest window.")
        if sum(cascade.n_complete_nodes for cascade in self.cascades) > MAX_NODES:
            raise ValueError(f"the trees of a detector have at most {MAX_NODES} nodes in all.")
        empty = Detections.empty(self.names, self.angles, self.category)
        set_(self, "names", empty.names)
        set_(self, "angles", empty.angles)
        n_views = sum(cascade.n_views for cascade in self.cascades)
        if len(self.names) != n_views:
            raise ValueError(f"names must have one name for each of {n_views} views.")
        if self.aspect_ratios is not None:
            ratios = tuple(self.aspect_ratios)
            if len(ratios) != n_views:
                raise ValueError(f"aspect_ratios must be {n_views} numbers; got {len(ratios)}.")
            for ratio in ratios:
                check_number("aspect_ratios", ratio, low=1e-3, high=1e3)
            set_(self, "aspect_ratios", ratios)
        check_device(self.device)
        set_(self, "_plans", IdlePlans())

    def __repr__(self) -> str:
        n_trees = sum(cascade.forest.n_trees for cascade in self.cascades)
        return (
            f"Detector({self.category!r} in {len(self.names)} views, {len(self.cascades)} "
            f"cascade{'s' if len(self.cascades) > 1 else ''} of {n_trees} trees)"
        )

    @property
    def cell(self) -> int:
        """Pixels of a side of a cell of features."""
        return self.pyramid.channels.shrink * (1 if self.filters is None else 2)

    @property
    def n_planes(self) -> int:
        """Number of planes of features."""
        return self.pyramid.channels.n_channels * (1 if self.filters is None else len(self.filters))

    def detect(self, image: Source, *, n_jobs: int | None = None) -> Detections:
        """Find the objects in an image.

        Parameters
        ----------
        image : str, path-like, PIL image or ndarray
            See `badacost.detection.images.read_image`: RGB, grey, RGBA; bytes, 16 bits, floats.
        n_jobs : int, optional
            Number of threads, by default one for each core; boxes are the same for any number.

        Returns
        -------
        Detections
            Best first. An image smaller than the window has none.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.boxes import overlaps
        >>> from badacost.detection.models import synthetic_cars
        >>> (scene,) = make_scenes(1, objects_per_image=2, random_state=7)
        >>> found = synthetic_cars().detect(scene.load(), n_jobs=2)
        >>> len(found), found.category, len(found.names)
        (2, 'Car', 8)
        >>> overlaps(scene.boxes, found.boxes).max(axis=1) > 0.5  # each car is found
        array([ True,  True])
        """
        threads = Threads(n_jobs)
        return self.suppressed(self._candidates(image, threads))

    def detect_many(
        self, images: Iterable[Source], *, n_jobs: int | None = None
    ) -> Iterator[Detections]:
        """Find the objects in one image after the other, several at a time.

        Parameters
        ----------
        images : iterable
            Images as `detect` takes them; they are read as they are needed.
        n_jobs : int, optional
            Images that are searched at the same time, -1 for one on each core; by default one on
            each core, four at most.

        Yields
        ------
        Detections
            Of each image, in their order.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> scenes = make_scenes(2, objects_per_image=2, random_state=7)
        >>> images = (scene.load() for scene in scenes)
        >>> [len(found) for found in synthetic_cars().detect_many(images, n_jobs=2)]
        [2, 2]
        """
        n_threads = images_at_a_time(n_jobs)
        if n_threads == 1:
            yield from (self.detect(image, n_jobs=1) for image in images)
            return
        waiting: deque[Future[Detections]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                for image in images:
                    waiting.append(pool.submit(self.detect, image, n_jobs=1))
                    if len(waiting) > n_threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    @overload
    def predict(
        self,
        source: Any,
        *,
        stream: Literal[False] = ...,
        conf: float | None = ...,
        bgr: bool = ...,
        n_jobs: int | None = ...,
    ) -> list[Detections]: ...

    @overload
    def predict(
        self,
        source: Any,
        *,
        stream: Literal[True],
        conf: float | None = ...,
        bgr: bool = ...,
        n_jobs: int | None = ...,
    ) -> Iterator[Detections]: ...

    def predict(
        self,
        source: Any,
        *,
        stream: bool = False,
        conf: float | None = None,
        bgr: bool = False,
        n_jobs: int | None = None,
    ) -> list[Detections] | Iterator[Detections]:
        """Find the objects in everything that shows images.

        Parameters
        ----------
        source : str, path-like, array, PIL image, or iterable of these
            A picture; a folder with all folders inside; a pattern, as ``"drive/*.png"``; a video;
            an array as `detect` takes it, or several in an array with four axes; or an iterable of
            such things, as the frames of a camera.
        stream : bool, default=False
            Whether to return a generator that reads images as they are needed, keeps no more than a
            few in memory, and has their pixels at hand for `Detections.plot`. By default the
            result is a list, which reads a file again for a plot.
        conf : float, optional
            Keep objects of at least this probability; see `with_confidence`. By default those that
            the detector was made to report.
        bgr : bool, default=False
            Whether arrays are blue, green, red: the frames of OpenCV are, and nothing in an array
            says so. A detector that takes one order for the other finds fewer objects, silently.
        n_jobs : int, optional
            Images that are worked on at the same time, -1 for one on each core. By default one on
            each core, four at most. A single image is searched by as many threads.

        Returns
        -------
        list of Detections, or generator of Detections
            Of each image, in their order, with its `source`: name, path, and number and time of
            the frame of a video.

        Raises
        ------
        ImageError
            Where an image cannot be read; a generator first gives the results of those before.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> detector = synthetic_cars()
        >>> frames = (scene.load() for scene in make_scenes(3, random_state=7))
        >>> for found in detector.predict(frames, stream=True):
        ...     print(found.source.name, len(found))
        image 0 2
        image 1 1
        image 2 2
        """
        from badacost.detection.stream import predict

        detector = self if conf is None else self.with_confidence(conf)
        return predict(detector, source, stream=stream, bgr=bgr, n_jobs=n_jobs)

    def candidates(self, image: Source, *, n_jobs: int | None = None) -> Detections:
        """Return all windows that no tree rejects, before aspect ratios and suppression.

        Parameters
        ----------
        image : str, path-like, PIL image or ndarray
            As `detect` takes it.
        n_jobs : int, optional
            Number of threads.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> (scene,) = make_scenes(1, objects_per_image=1, random_state=7)
        >>> detector = synthetic_cars()
        >>> image = scene.load()
        >>> len(detector.candidates(image)) > len(detector.detect(image))
        True
        """
        threads = Threads(n_jobs)
        return self._candidates(image, threads)

    def suppressed(self, candidates: Detections) -> Detections:
        """Return the boxes that `detect` makes of candidates, best first.

        Parameters
        ----------
        candidates : Detections
            What `candidates` returns.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> (scene,) = make_scenes(1, objects_per_image=2, random_state=7)
        >>> detector = synthetic_cars()
        >>> candidates = detector.candidates(scene.load())
        >>> len(detector.suppressed(candidates))
        2
        """
        return self.suppression.apply(self._reshaped(candidates))

    def survivors(self, candidates: Detections) -> Positions:
        """Return the indices of the candidates that `suppressed` keeps, best first.

        Parameters
        ----------
        candidates : Detections
            What `candidates` returns.
        """
        return self.suppression.survivors(self._reshaped(candidates))

    def sightings(self, image: Source, threads: Threads | None = None) -> Iterator[Sighting]:
        """Look at an image level by level; each cascade reports once for each of them.

        Parameters
        ----------
        image : str, path-like, PIL image or ndarray
            As `detect` takes it.
        threads : Threads, optional
            Threads to share the work among.

        Yields
        ------
        Sighting
            What a cascade found on a level; see `badacost.detection.plan.Sighting`.
        """
        pixels = read_image(image)
        with self._plan(pixels) as plan:
            yield from plan.sightings(pixels, threads)

    def _plan(self, pixels: Pixels) -> AbstractContextManager[Plan]:
        """Lend a plan for the size of an image."""
        size = (pixels.shape[0], pixels.shape[1])
        return self._plans.lent(size, lambda: Plan(self, size, BACKENDS[self.device]))

    def with_pyramid(self, **changes: Any) -> Detector:
        """Return the detector with other parameters of its pyramid, as ``n_octaves_up=1``.

        Examples
        --------
        >>> from badacost.detection.models import synthetic_cars
        >>> detector = synthetic_cars().with_pyramid(n_octaves_up=1)  # and smaller objects
        >>> detector.pyramid.n_octaves_up
        1
        """
        return replace(self, pyramid=replace(self.pyramid, **changes))

    def with_device(self, device: DeviceName) -> Detector:
        """Return the detector that looks at images on another device.

        Parameters
        ----------
        device : {"cpu", "cuda"}
            Results are the same. With "cuda", `predict` and `detect_many` prepare images and sort
            out boxes in threads while the GPU works on others.

        Raises
        ------
        ImportError, RuntimeError
            Where CuPy, or a GPU, is missing.

        Examples
        --------
        >>> from badacost.detection.models import synthetic_cars
        >>> synthetic_cars().with_device("cpu").device
        'cpu'
        """
        return replace(self, device=device)

    def with_rejections(self, rejections: float | Sequence[FloatArray | float]) -> Detector:
        """Return the detector with other rejection thresholds.

        Parameters
        ----------
        rejections : float or sequence
            One threshold for everything, or for each cascade a threshold or one for each tree.

        Examples
        --------
        >>> from badacost.detection.models import synthetic_cars
        >>> detector = synthetic_cars().with_rejections(-0.5)
        >>> detector.cascades[0].rejections[:3]
        array([-0.5, -0.5, -0.5])
        """
        given: Any = rejections
        if isinstance(given, Real):
            given = [float(given)] * len(self.cascades)
        pairs = zip(self.cascades, given, strict=True)
        return replace(self, cascades=[cascade.with_rejections(given) for cascade, given in pairs])

    def with_threshold(self, score: float) -> Detector:
        """Return the detector that keeps windows from another score on.

        Parameters
        ----------
        score : float
            Minimum score of a window, before it becomes a probability. Below the present one, the
            rejection thresholds go down by the same amount: more is found, and it takes longer.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> (scene,) = make_scenes(1, objects_per_image=2, random_state=7)
        >>> detector, image = synthetic_cars(), scene.load()
        >>> n_windows = [len(detector.with_threshold(t).candidates(image)) for t in (-2, 0, 2)]
        >>> n_windows[0] > n_windows[1] > n_windows[2]
        True
        """
        check_number("score", score, low=-1e9, high=1e9)
        cascades = []
        for cascade in self.cascades:
            # Without a minimum, the last threshold decides.
            floor = max(cascade.min_score, float(cascade.rejections[-1]))
            lower = min(0.0, score - floor) if floor > -math.inf else 0.0
            cascades.append(
                replace(cascade, min_score=float(score), rejections=cascade.rejections + lower)
            )
        return replace(self, cascades=cascades)

    def with_confidence(self, conf: float) -> Detector:
        """Return the detector that keeps what is an object with at least this probability.

        Parameters
        ----------
        conf : float
            A probability, at least 0 and less than 1. With 0 the detector stays as it is.

        Raises
        ------
        ValueError
            If the detector does not tell probabilities, as those of the paper's authors.

        Examples
        --------
        >>> from dataclasses import replace
        >>> from badacost.detection.models import synthetic_cars
        >>> from badacost.detection.score_curve import ScoreCurve
        >>> detector = replace(synthetic_cars(), curve=ScoreCurve(slope=2.0, intercept=-1.0))
        >>> detector.with_confidence(0.5).cascades[0].min_score
        0.5
        """
        if self.curve is None:
            raise ValueError(
                "the scores of this detector are not probabilities: use a threshold of scores "
                "(with_threshold, --threshold), or train a detector."
            )
        return self if conf == 0.0 else self.with_threshold(self.curve.score(conf))

    def fast(self, rejection_factor: float = 0.1) -> Detector:
        """Return the detector as the authors run it when speed counts.

        Eight levels an octave, no enlarged image, and thresholds multiplied by a factor. It misses
        small and doubtful objects.

        Parameters
        ----------
        rejection_factor : float, default=0.1
            Below 1, negative thresholds come closer to zero and reject earlier.

        Examples
        --------
        >>> from badacost.detection.models import synthetic_cars
        >>> detector = synthetic_cars().fast()
        >>> detector.pyramid.n_per_octave, detector.pyramid.n_approximated
        (8, 7)
        """
        quick = self.with_pyramid(n_per_octave=8, n_octaves_up=0, n_approximated=7)
        return quick.with_rejections(
            [cascade.rejections * rejection_factor for cascade in self.cascades]
        )

    def calibrated(
        self,
        images: Iterable[Source],
        *,
        keep: Literal["windows", "boxes"] = "windows",
        n_jobs: int | None = None,
    ) -> Detector:
        """Return a faster detector that finds the same objects in these images.

        After each tree, windows are rejected whose score is below the lowest that any window to
        keep had there: one threshold for each tree instead of a common one (direct backward
        pruning). On other images, objects that are less certain than all those may be lost.

        Parameters
        ----------
        images : iterable
            Images like those to come, with many objects.
        keep : {"windows", "boxes"}, default="windows"
            Keep all windows that end with a detection, or only the best one of each object, which
            is faster and less safe.
        n_jobs : int, optional
            Number of threads.

        Examples
        --------
        >>> from badacost.detection.scenes import make_scenes
        >>> from badacost.detection.models import synthetic_cars
        >>> detector = synthetic_cars()
        >>> images = [scene.load() for scene in make_scenes(2, random_state=7)]
        >>> quick = detector.calibrated(images)
        >>> bool(quick.cascades[0].rejections[-1] > detector.cascades[0].rejections[-1])
        True
        >>> [len(quick.detect(image)) == len(detector.detect(image)) for image in images]
        [True, True]
        """
        check_choice("keep", keep, ("windows", "boxes"))
        lowest = [np.full(cascade.forest.n_trees, np.inf) for cascade in self.cascades]
        threads = Threads(n_jobs)
        for image in images:
            self._lower(lowest, image, keep, threads)
        if not any(np.isfinite(traces).any() for traces in lowest):
            raise ValueError("nothing was found to calibrate with: give images with objects.")
        return replace(
            self,
            cascades=[
                # A cascade that found nothing keeps its thresholds.
                cascade.calibrated(traces[None]) if np.isfinite(traces).all() else cascade
                for cascade, traces in zip(self.cascades, lowest, strict=True)
            ],
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the detector to a file that `Detector.load` and `badacost.load` read.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced once the new one is complete.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from badacost.detection import Detector
        >>> from badacost.detection.models import synthetic_cars
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "cars.badacost")
        ...     synthetic_cars().fast().save(path)
        ...     again = Detector.load(path)
        >>> again.pyramid.n_per_octave
        8
        """
        save_model(self, path)

    def _to_model_file(self) -> ModelFile:
        header = {
            "pyramid": asdict(self.pyramid),
            "cascades": [
                {
                    "window": cascade.window,
                    "padded_window": cascade.padded_window,
                    "cell": cascade.cell,
                    # JSON has no infinity.
                    "min_score": None if cascade.min_score == -math.inf else cascade.min_score,
                }
                for cascade in self.cascades
            ],
            "n_filters": 0 if self.filters is None else len(self.filters),
            "stride": self.stride,
            "suppression": asdict(self.suppression),
            "names": self.names,
            "angles": self.angles,
            "category": self.category,
            "aspect_ratios": self.aspect_ratios,
            "curve": None if self.curve is None else asdict(self.curve),
        }
        arrays: dict[str, NDArray[Any]] = {}
        if self.filters is not None:
            arrays["filters"] = self.filters.reshape(-1, *self.filters.shape[2:])
        for index, cascade in enumerate(self.cascades):
            arrays |= forest_to_arrays(cascade.forest, f"cascade{index}_")
            arrays[f"cascade{index}_rejections"] = cascade.rejections
            if cascade.pose is not None:
                pose = cascade.pose
                parts: tuple[NDArray[Any], ...] = (pose.weights, pose.intercepts, pose.view_costs)
                for name, part in zip(_POSE_ARRAYS, parts, strict=True):
                    arrays[f"cascade{index}_pose_{name}"] = part
        return ModelFile("Detector", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_memory: int | str | None = None) -> Detector:
        """Read a detector that was saved.

        Parameters
        ----------
        path : str or path-like
            The file. It may come from anyone: nothing in it is executed.
        max_memory : int, str or None, default=None
            Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None
            is the limit of `badacost.set_max_memory`.

        Raises
        ------
        ModelFileError
            Where the file is damaged, was altered, or holds no detector.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from badacost.detection import Detector
        >>> from badacost.detection.models import synthetic_cars
        >>> with TemporaryDirectory() as folder:
        ...     synthetic_cars().save(Path(folder, "cars.badacost"))
        ...     Detector.load(Path(folder, "cars.badacost"))
        Detector('Car' in 8 views, 1 cascade of 256 trees)
        """
        loaded: Detector = load_model(path, _check_is_detector, max_memory=max_memory)
        return loaded

    @classmethod
    def _from_model_file(cls, model: ModelFile) -> Detector:
        """Rebuild a detector from the checked contents of a file."""
        header, arrays = {"curve": None, **model.header}, dict(model.arrays)
        if set(header) != _HEADER:
            refuse(f"it lacks or should not have {min(set(header) ^ _HEADER)[:80]!r}")
        pyramid = dict(header["pyramid"])
        channels = dict(pyramid.pop("channels"))
        channels["gradient"] = GradientParameters(**channels["gradient"])
        channels["histogram"] = HistogramParameters(**channels["histogram"])
        parameters = PyramidParameters(channels=ChannelParameters(**channels), **pyramid)
        filters = arrays.pop("filters", None)
        if filters is not None:
            check_number("n_filters", header["n_filters"], Integral, low=1, high=len(filters))
            shape = (header["n_filters"], parameters.channels.n_channels, *filters.shape[1:])
            filters = filters.reshape(shape)
        elif header["n_filters"] != 0:
            refuse("its filters are missing")
        unknown = list[str]()
        cascades, groups = [], defaultdict[str, dict[str, NDArray[Any]]](dict)
        for name in arrays:
            groups[name.partition("_")[0]][name] = arrays[name]
        for index, given in enumerate(header["cascades"]):
            prefix = f"cascade{index}_"
            own = groups.pop(prefix[:-1])
            rejections = own.pop(f"{prefix}rejections")
            if rejections.dtype != np.float64 or rejections.ndim != 1:
                refuse("the thresholds of a cascade are not numbers in a row")
            parts = [own.pop(f"{prefix}pose_{name}", None) for name in _POSE_ARRAYS]
            forest = forest_from_arrays(own, prefix, model.budget)
            unknown += own.keys() - forest_to_arrays(forest, prefix)
            cascades.append(
                Cascade(
                    forest,
                    window=tuple(given["window"]),
                    padded_window=tuple(given["padded_window"]),
                    cell=given["cell"],
                    rejections=rejections,
                    min_score=-math.inf if given["min_score"] is None else given["min_score"],
                    pose=_pose(parts),
                )
            )
        unknown += [name for group in groups.values() for name in group]
        if unknown:
            refuse(f"it should not have {min(unknown)[:80]!r}")
        return cls(
            pyramid=parameters,
            cascades=cascades,
            filters=filters,
            suppression=Suppression(**header["suppression"]),
            curve=None if header["curve"] is None else ScoreCurve(**header["curve"]),
            **{
                name: header[name]
                for name in ("stride", "names", "angles", "category", "aspect_ratios")
            },
        )

    def _candidates(self, image: Source, threads: Threads) -> Detections:
        pixels = read_image(image)
        with self._plan(pixels) as plan:
            candidates = plan.detections(plan.sightings(pixels, threads))
        if self.curve is None:
            return candidates
        return replace(candidates, scores=self.curve.probabilities(candidates.scores))

    def _reshaped(self, candidates: Detections) -> Detections:
        if self.aspect_ratios is None:
            return candidates
        return with_aspect_ratios(candidates, self.aspect_ratios)

    def _lower(self, lowest: list[FloatArray], image: Source, keep: str, threads: Threads) -> None:
        """Lower the lowest scores after each tree to those of windows in an image."""
        parts, traces, cascades = [], [], []
        for seen in self.sightings(image, threads):
            parts.append(seen.detections)
            traces.append(seen.trace())
            cascades.append(np.full(len(parts[-1]), seen.cascade))
        if not parts:
            return
        chosen = np.arange(sum(map(len, parts)))
        if keep == "boxes":
            chosen = self.survivors(Detections.concatenate(parts))
        owner = np.concatenate(cascades)
        for index, low in enumerate(lowest):
            own = chosen[owner[chosen] == index]
            first = 0
            for part in traces:
                inside = own[(own >= first) & (own < first + len(part))] - first
                np.minimum(low, part[inside].min(axis=0, initial=np.inf), out=low)
                first += len(part)


def check_device(device: Any) -> None:
    """Raise unless images can be looked at on a device."""
    check_choice("device", device, tuple(BACKENDS))
    if device == "cuda":
        cuda_device()


def _check_is_detector(kind: str) -> None:
    """Refuse the file of a model of another kind."""
    if kind != "Detector":
        refuse(
            f"it holds a {kind[:80]}, not a detector: badacost.load reads it, and badacost predict "
            "decides with it"
        )


def _pose(parts: list[NDArray[Any] | None]) -> PoseRegression | None:
    """The pose of a cascade in a file, if it has one."""
    weights, intercepts, costs = parts
    if weights is None and intercepts is None and costs is None:
        return None
    if weights is None or intercepts is None or costs is None:
        refuse("the pose of a cascade is not complete")
    if weights.ndim != 2 or intercepts.dtype != np.float64 or costs.dtype != np.float64:
        refuse("the pose of a cascade is not made of numbers")
    return PoseRegression(weights, intercepts, costs)
