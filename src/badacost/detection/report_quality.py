"""How good a detector is, on its page: figures, curves, thresholds, views, mistakes as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from badacost._utils.arrays import FloatArray
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.boxes import Detections, overlaps
from badacost.detection.drawing import draw
from badacost.detection.evaluation import (
    Alignment,
    PrecisionRecallDisplay,
    RocCurve,
    RocDisplay,
    VocResult,
)
from badacost.detection.evaluation.outcomes import FALSE
from badacost.detection.inspection import ViewConfusionDisplay
from badacost.html_page import paragraph, picture, plot, shorten, table, tiles

_MAX_MISTAKES = 12  # pictures of misses, and of false alarms
_CROP_WIDTH = 180  # pages show it larger, and so its frames
_NEAR = 0.1  # overlap from which boxes are shown and told of beside a mistake
_MAX_NAME = 24  # characters of the name of a picture


def quality_sections(
    result: VocResult, aligned: Alignment, names: Sequence[str], overlap: float
) -> dict[str, str]:
    """Return the sections of a page; `names` are those of views, and `overlap` that of `result`."""
    return {
        "How good it is": _figures(result, names, overlap),
        "Misses": _misses(result, aligned, names),
        "False alarms": _false_alarms(result, aligned),
    }


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "image"), counted(2, "image")
    ('1 image', '2 images')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _figures(result: VocResult, names: Sequence[str], overlap: float) -> str:
    """Draw curves and the confusion of views, and tell what thresholds bring."""
    n_images = len(result.outcomes)
    low, high = result.ap_range
    figures = {
        "average precision": f"{result.ap:.4f}",
        "its range": f"{low:.3f} to {high:.3f}",
        "at 11 recalls": f"{result.ap_11:.3f}",
        "objects": str(result.n_objects),
        "found": str(result.n_true),
        "false boxes": str(result.n_false),
    }
    if np.isfinite(result.view_accuracy):
        figures["views right"] = f"{result.view_accuracy:.1%}"
    n_found = np.arange(1.0, len(result.curve.recall) + 1.0)
    n_false = n_found - np.rint(result.curve.recall * result.n_objects)
    roc = RocCurve(n_false, result.curve.recall, result.curve.scores)
    curves: Mapping[str, Any] = {
        "Precision and recall": PrecisionRecallDisplay({"detector": result.curve}).plot(),
        "Objects found and false boxes": RocDisplay(
            {"detector": roc}, false_positives=n_images
        ).plot(),
    }
    parts = [
        table([list(figures.values())], list(figures), n_text=0),
        paragraph(
            f"On {counted(n_images, 'annotated image')}, by the rules of PASCAL VOC: "
            f"a box is right if it overlaps an object by more than {overlap:g} of their union, "
            "and no better box has that object. The range holds 95 % of 500 draws of the images "
            "with replacement."
        ),
        tiles((plot(display.figure_, name) for name, display in curves.items()), columns=2),
        _thresholds_table(result),
    ]
    if result.objects_per_view.any() and len(names) > 1:
        parts.append(_view_recalls(result, names))
    if result.view_confusion.sum() and len(names) > 1:
        display = ViewConfusionDisplay(result.view_confusion, names).plot()
        parts.append(
            plot(
                display.figure_,
                "Views of the objects that are found: annotated in rows, found in columns.",
            )
        )
    return "".join(parts)


def _thresholds_table(result: VocResult) -> str:
    """Tell what thresholds of the score bring."""
    rows = [
        [f"{p.threshold:.4g}", f"{p.precision:.3f}", f"{p.recall:.3f}", f"{p.false_alarms:.3g}"]
        for p in result.operating_points()
    ]
    head = ["minimum score", "precision", "recall", "false alarms an image"]
    text = (
        "What is left of the detections with at least a score, and how good that is. The scores of "
        "trained detectors are probabilities: --conf of badacost detect."
    )
    return paragraph(text) + table(rows, head, n_text=0) if rows else ""


def _view_recalls(result: VocResult, names: Sequence[str]) -> str:
    """List the objects of each view, and how many of them are found."""
    found = result.view_confusion.sum(axis=1)
    rows = [
        [name, str(n), str(found[view]), f"{recall:.1%}" if n else ""]
        for view, (name, n, recall) in enumerate(
            zip(names, result.objects_per_view, result.view_recall, strict=True)
        )
    ]
    head = ["annotated view", "objects", "found", "recall"]
    text = "Objects of each view that are found, in whatever view."
    return paragraph(text) + table(rows, head, shares=result.view_recall.tolist())


def _misses(result: VocResult, aligned: Alignment, names: Sequence[str]) -> str:
    """Show the largest objects that were not found."""
    truth = aligned.annotations
    missed = [(key, int(i)) for key, outcome in result.outcomes.items() for i in outcome.missed]
    if not missed:
        return ""
    missed.sort(key=lambda miss: -truth[miss[0]].sizes[miss[1]].prod())
    pictures = []
    for key, index in missed[:_MAX_MISTAKES]:
        image = truth[key]
        width, height = image.sizes[index]
        label = int(image.labels[index])
        view = f"{names[label]}, " if label >= 0 else ""
        caption = f"{shorten(image.name, _MAX_NAME)}: {view}{width:.0f} x {height:.0f} pixels"
        found = aligned.detections[key].boxes
        pictures.append(_cut_out(image, image.boxes[index], found, "missed", caption))
    text = (
        f"{len(missed)} of {counted(result.n_objects, 'object')} not found. The largest are shown "
        "in pink frames; green frames are detections that overlap them too little."
    )
    return paragraph(text) + tiles(pictures, columns=4)


def _false_alarms(result: VocResult, aligned: Alignment) -> str:
    """Show the wrong detections of the highest scores."""
    alarms = [
        (key, int(i))
        for key, outcome in result.outcomes.items()
        for i in np.flatnonzero(outcome.verdicts == FALSE)
    ]
    if not alarms:
        return ""
    alarms.sort(key=lambda alarm: -result.outcomes[alarm[0]].detections.scores[alarm[1]])
    pictures = []
    for key, index in alarms[:_MAX_MISTAKES]:
        image, outcome = aligned.annotations[key], result.outcomes[key]
        box = outcome.detections.boxes[index]
        shared = overlaps([box], image.boxes).max(initial=0.0)
        if outcome.owners[index] >= 0:
            reason = "a better box has the object"
        elif shared >= _NEAR:
            reason = f"overlaps an object by {shared:.2f}"
        else:
            reason = "no object"
        score = f"score {outcome.detections.scores[index]:.3g}"
        caption = f"{shorten(image.name, _MAX_NAME)}: {score}, {reason}"
        pictures.append(_cut_out(image, box, image.boxes, "false alarm", caption))
    text = (
        f"{counted(len(alarms), 'wrong detection')}. Those of the highest scores are shown in pink "
        "frames; green frames are annotated objects that they overlap."
    )
    return paragraph(text) + tiles(pictures, columns=4)


def _cut_out(
    image: AnnotatedImage, box: FloatArray, others: FloatArray, what: str, caption: str
) -> str:
    """Show a box with what is around it, and other boxes that overlap it."""
    pixels = image.load()
    height, width = pixels.shape[:2]
    margin = 0.6 * max(*(box[2:] - box[:2]), 16.0)
    left, top, right, bottom = np.rint(box + margin * np.array([-1, -1, 1, 1])).astype(int)
    left, top = min(max(left, 0), width - 1), min(max(top, 0), height - 1)
    right, bottom = max(min(right, width), left + 1), max(min(bottom, height), top + 1)
    near = others[overlaps([box], others)[0] >= _NEAR] if len(others) else others
    boxes = np.concatenate([near, [box]]) - np.array([left, top, left, top])
    is_near = np.arange(len(boxes)) < len(near)
    marked = Detections(
        boxes, -is_near.astype(np.float64), is_near.astype(np.int64), (what, "beside")
    )
    part = np.ascontiguousarray(pixels[top:bottom, left:right])
    return picture(draw(part, marked, width=_CROP_WIDTH, labels=False), caption)
