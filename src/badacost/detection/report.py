"""A detector on one page: a single HTML file that needs nothing else, to read, keep and print."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.selection import Selection
from badacost.detection.boxes import Detections
from badacost.detection.cascade import Cascade
from badacost.detection.channels import check_instance
from badacost.detection.detector import Detector
from badacost.detection.drawing import draw
from badacost.detection.evaluation import Alignment, align, evaluate_voc
from badacost.detection.images import Pixels, import_pil, read_image
from badacost.detection.inspection import (
    EfficiencyTable,
    FeatureMapDisplay,
    ScoreTracesDisplay,
    efficiency,
    mean_images,
)
from badacost.detection.report_quality import counted, quality_sections
from badacost.html_page import page, paragraph, picture, plot, table, tiles, write_page

if TYPE_CHECKING:
    from badacost.detection.detector import Source

Progress = Callable[[int, int], None]
_MAX_MEASURED = 12  # pictures that are searched for times, counts and score traces
_MAX_EXAMPLES = 6
_EXAMPLE_WIDTH = 960
_OVERLAP = 0.5


def write_report(
    detector: Detector,
    path: str | os.PathLike[str],
    *,
    images: Iterable[Source] | None = None,
    annotated: Iterable[AnnotatedImage] | None = None,
    selection: Selection | None = None,
    clip: bool = False,
    title: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Write a page on what a detector is, where it looks and how well it does.

    The page is one HTML file: pictures are inside, and it asks for nothing from anywhere. Without
    images it has what the detector itself shows; with images it also has work and time, score
    traces and examples; with annotated images average precision, curves, thresholds, recall by
    view, the confusion of views, misses and false alarms as pictures, and mean images.

    Parameters
    ----------
    detector : Detector
        The detector.
    path : str or path-like
        Where to write; an existing file is replaced once the new one is complete.
    images : iterable of images, optional
        As `Detector.detect` takes them; those of `annotated` by default. Twelve of them, evenly
        spread, are measured.
    annotated : iterable of AnnotatedImage, optional
        What is in pictures. `badacost.detection.evaluation.align` tells what is to be found, what
        is ignored, and how views are compared.
    selection : Selection, optional
        Which annotated objects are to be found, where it is not those of the category of the
        detector.
    clip : bool, default=False
        Whether to cut detections at the borders of annotated pictures before they are judged.
    title : str, optional
        Title of the page; what the detector is of by default.
    n_jobs : int, optional
        Number of threads.
    progress : callable, optional
        Called with the number of steps that are done and the number of all steps; most of them are
        pictures that are looked at.

    Raises
    ------
    ImageError
        Where a picture cannot be read.
    ValueError
        Where annotations and detector do not fit together.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from badacost.detection.models import synthetic_cars
    >>> from badacost.detection.report import write_report
    >>> with TemporaryDirectory() as folder:
    ...     write_report(synthetic_cars(), Path(folder, "page.html"), title="Synthetic cars")
    ...     "<h1>Synthetic cars</h1>" in Path(folder, "page.html").read_text(encoding="utf-8")
    True
    """
    check_instance("detector", detector, Detector)
    if title is not None:
        check_instance("title", title, str)
    evidence = _Evidence(
        detector,
        None if images is None else list(images),
        _checked([] if annotated is None else list(annotated)),
        selection,
        clip,
        n_jobs,
        progress,
    )
    write_page(path, _page(evidence, title or f"Detector of {detector.category}"))


@dataclass(frozen=True, eq=False)
class _Evidence:
    """A detector, the pictures it is shown with, and what it finds there."""

    detector: Detector
    given: list[Source] | None
    annotated: list[AnnotatedImage]
    selection: Selection | None
    clip: bool
    n_jobs: int | None
    progress: Progress | None = None
    _steps: Iterator[int] = field(default_factory=lambda: count(1))

    @cached_property
    def found(self) -> list[Detections]:
        """Detections in the annotated pictures."""
        pictures = (image.load() for image in self.annotated)
        return self._detections(pictures)

    @property
    def n_images(self) -> int:
        """Number of pictures to show."""
        return len(self.annotated if self.given is None else self.given)

    def images(self, max_images: int) -> Iterator[Source]:
        """Read so many pictures, evenly spread."""
        for index in self._spread(max_images):
            yield self._image(index)
            self.tick()

    @cached_property
    def examples(self) -> list[tuple[Pixels, Detections]]:
        """Some pictures, and what is found in them."""
        pictures = [read_image(image) for image in self.images(_MAX_EXAMPLES)]
        if self.given is None:
            found = [self.found[index] for index in self._spread(_MAX_EXAMPLES)]
        else:
            found = self._detections(pictures)
        return list(zip(pictures, found, strict=True))

    @cached_property
    def aligned(self) -> Alignment:
        """Detections and annotated objects by the numbers of pictures, whose names may be equal."""
        return align(
            {str(index): found for index, found in enumerate(self.found)},
            {str(index): image for index, image in enumerate(self.annotated)},
            selection=self.selection,
            clip=self.clip,
        )

    @property
    def n_steps(self) -> int:
        """Pictures to be looked at, once or more often, and one for the end."""
        n_examples = min(_MAX_EXAMPLES, self.n_images)
        n_measured = min(_MAX_MEASURED, self.n_images)
        again = 3 if self.given is not None else 2  # examples: traces, read, and searched if given
        return len(self.annotated) + n_measured + again * n_examples + 1

    def tick(self) -> None:
        """Tell that another step is done."""
        if self.progress is not None:
            self.progress(next(self._steps), self.n_steps)

    def _detections(self, pictures: Iterable[Source]) -> list[Detections]:
        found = []
        for detections in self.detector.detect_many(pictures, n_jobs=self.n_jobs):
            found.append(detections)
            self.tick()
        return found

    def _image(self, index: int) -> Source:
        return self.annotated[index].load() if self.given is None else self.given[index]

    def _spread(self, max_images: int) -> list[int]:
        n_chosen = min(max_images, self.n_images)
        return [index * self.n_images // n_chosen for index in range(n_chosen)]


def _checked(annotated: list[AnnotatedImage]) -> list[AnnotatedImage]:
    for image in annotated:
        check_instance("an annotated image", image, AnnotatedImage)
    return annotated


def _page(evidence: _Evidence, title: str) -> str:
    """Put the sections together."""
    sections = {
        "What it is": _what_it_is(evidence.detector),
        "Work": _work(evidence, title),
        "Where it looks": _where_it_looks(evidence.detector),
    }
    if evidence.n_images:
        sections["Score traces"] = _score_traces(evidence)
    if evidence.annotated:
        sections |= _how_good(evidence)
        sections["Mean images"] = _mean_images(evidence)
    if evidence.n_images:
        sections["Examples"] = _examples(evidence)
    evidence.tick()
    return page(title, _summary(evidence.detector), sections)


def _summary(detector: Detector) -> str:
    """Return the detector in a sentence."""
    n_trees = sum(cascade.forest.n_trees for cascade in detector.cascades)
    return (
        f"Finds {detector.category} in {counted(len(detector.names), 'view')} with "
        f"{counted(len(detector.cascades), 'cascade')} of {counted(n_trees, 'tree')} in all."
    )


def _what_it_is(detector: Detector) -> str:
    """Describe windows, channels, pyramid, thresholds and suppression."""
    cascades, pyramid = detector.cascades, detector.pyramid
    channels, suppression = pyramid.channels, detector.suppression
    filters = "none"
    if detector.filters is not None:
        filters = f"{len(detector.filters)} for each channel, at half the resolution"
    kinds = {
        "greedy": "boxes are removed that overlap a better one that stays",
        "all": "boxes are removed that overlap any better one",
        "none": "none",
    }
    rule = kinds[suppression.kind]
    if suppression.kind != "none":
        of = "union" if suppression.denominator == "union" else "smaller box"
        rule += f" by more than {suppression.overlap:g} of the {of}"
        rule += ", views apart" if suppression.per_class else ""
    if suppression.max_boxes is not None:
        rule += f"; at most {suppression.max_boxes} stay"
    facts = {
        "Object": _distinct(_size(cascade.window) for cascade in cascades) + " pixels",
        "Window around it": _distinct(_size(cascade.padded_window) for cascade in cascades)
        + f" pixels, every {detector.stride} pixels",
        "Channels": f"{channels.n_channels}: L, U, V, gradient magnitude, "
        f"{counted(channels.histogram.n_orientations, 'orientation')}, in cells of "
        f"{channels.shrink} x {channels.shrink} pixels",
        "Decorrelating filters": filters,
        "Features": f"{detector.n_planes} planes of cells of {detector.cell} pixels; "
        + _distinct(str(cascade.forest.n_features) for cascade in cascades)
        + " in a window",
        "Pyramid": f"{counted(pyramid.n_per_octave, 'level')} an octave, "
        f"{pyramid.n_approximated} approximated between computed ones, "
        f"{counted(pyramid.n_octaves_up, 'octave')} up",
        "Rejection": _distinct(_thresholds(cascade) for cascade in cascades),
        "Minimum score": _distinct(f"{cascade.min_score:g}" for cascade in cascades),
        "Suppression": rule,
    }
    return table(facts.items(), n_text=2) + _views(detector)


def _views(detector: Detector) -> str:
    """List the views, unless there is a single one without heading and aspect ratio."""
    columns: dict[str, Sequence[float] | None] = {
        "heading in degrees": detector.angles,
        "width by height": detector.aspect_ratios,
    }
    given = {name: values for name, values in columns.items() if values is not None}
    if len(detector.names) == 1 and not given:
        return ""
    rows = [
        [name, *(f"{values[view] + 0.0:.3g}" for values in given.values())]
        for view, name in enumerate(detector.names)
    ]
    return table(rows, ["view", *given])


def _work(evidence: _Evidence, title: str) -> str:
    """Measure the detector."""
    images = evidence.images(_MAX_MEASURED) if evidence.n_images else None
    work = efficiency(evidence.detector, images, n_jobs=evidence.n_jobs)
    compared = EfficiencyTable({title: work})
    text = (
        "Levels are the tests from the root of a tree to its deepest leaf. In the worst case no "
        "tree rejects a window, and a test is made on each level of all trees of all cascades."
    )
    if work.n_images:
        text += (
            f" The other numbers are means over {counted(work.n_images, 'image')}, the time is the "
            "median on the machine that wrote this page; reading an image is not counted."
        )
    return table(compared.cells, compared.head) + paragraph(text)


def _where_it_looks(detector: Detector) -> str:
    """Draw the maps of features."""
    maps = FeatureMapDisplay.from_detector(detector)
    parts = plot(
        maps.figure_,
        "How often trees test each cell of the window, weighted as the trees are: in all, and in "
        "each channel, with its share of the tests. Each map has its own scale. Angles are those "
        "of edges: 0° is horizontal. White frames mark the object.",
    )
    if detector.filters is not None:
        parts += plot(
            FeatureMapDisplay(maps.maps).plot(by="filter", overall=False).figure_,
            "The same for each of the decorrelating filters.",
        )
    return parts


def _score_traces(evidence: _Evidence) -> str:
    """Draw the scores of windows, of the cascade that finds most if there are several."""
    detector = evidence.detector
    index, which = 0, ""
    if len(detector.cascades) > 1:
        owner = np.repeat(
            np.arange(len(detector.cascades)), [cascade.n_views for cascade in detector.cascades]
        )
        labels = np.concatenate([found.labels for _, found in evidence.examples])
        index = int(np.bincount(owner[labels], minlength=1).argmax())
        views = [name for name, own in zip(detector.names, owner, strict=True) if own == index]
        which = f" This is the cascade of {', '.join(views)}, which finds most here."
    display = ScoreTracesDisplay.from_detector(
        detector, evidence.images(_MAX_EXAMPLES), cascade=index, n_jobs=evidence.n_jobs
    )
    return plot(
        display.figure_,
        "Scores after each tree: of the windows that become boxes, and of some that are rejected, "
        "drawn at random. A threshold closer to the lowest score of a box would reject earlier, at "
        f"the risk of losing objects.{which}",
    )


def _how_good(evidence: _Evidence) -> dict[str, str]:
    """Compare what is found with what is there."""
    aligned = evidence.aligned
    if not any(len(image.positives) for image in aligned.annotations.values()):
        text = "The annotations hold no object that is to be found."
        return {"How good it is": paragraph(text)}
    result = evaluate_voc(*aligned, overlap=_OVERLAP)
    return quality_sections(result, aligned, evidence.detector.names, _OVERLAP)


def _mean_images(evidence: _Evidence) -> str:
    """Show the mean image of each view."""
    detector = evidence.detector
    window = max((cascade.window for cascade in detector.cascades), key=lambda size: size[1])
    annotated = evidence.aligned.annotations.values()
    means, counts = mean_images(annotated, window, len(detector.names))
    seen = np.flatnonzero(counts)
    if not len(seen):
        return ""
    pictures = (
        picture(
            import_pil().fromarray(means[view]),
            f"{detector.names[view]} ({counts[view]})",
            photo=False,
        )
        for view in seen.tolist()
    )
    text = "Mean image of the annotated objects of each view, with their number."
    return paragraph(text) + tiles(pictures, columns=5)


def _examples(evidence: _Evidence) -> str:
    """Show pictures with what is found in them."""
    return "".join(
        picture(
            draw(image, found, width=min(_EXAMPLE_WIDTH, image.shape[1])),
            counted(len(found), "detection"),
        )
        for image, found in evidence.examples
    )


def _thresholds(cascade: Cascade) -> str:
    """Describe the thresholds of a cascade."""
    low, high = cascade.rejections.min(), cascade.rejections.max()
    if low == high:
        return f"after each tree, of scores up to {low:.4g}"
    return f"after each tree, of scores up to a threshold of its own, {low:.4g} to {high:.4g}"


def _size(size: tuple[int, int]) -> str:
    return f"{size[1]} x {size[0]}"


def _distinct(texts: Iterable[str]) -> str:
    """Join what differs; of many, the first and the last."""
    values = sorted(set(texts), key=lambda text: (len(text), text))
    return " or ".join(values) if len(values) < 4 else f"{values[0]} … {values[-1]}"
