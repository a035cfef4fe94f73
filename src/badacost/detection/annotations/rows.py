"""The objects of one picture while its annotations are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from badacost.detection.annotations.image import UNKNOWN_VIEW, AnnotatedImage, wrapped


@dataclass
class Rows:
    """Objects of one picture, one after the other."""

    boxes: list[Sequence[float]] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    angles: list[float] = field(default_factory=list)
    truncation: list[float] = field(default_factory=list)
    occlusion: list[float] = field(default_factory=list)
    ignore: list[bool] = field(default_factory=list)
    ellipses: list[Sequence[float]] = field(default_factory=list)

    def add(
        self,
        box: Sequence[float],
        *,
        category: str = "object",
        label: int = UNKNOWN_VIEW,
        angle: float = math.nan,
        truncation: float = math.nan,
        occlusion: float = math.nan,
        ignore: bool = False,
        ellipse: Sequence[float] | None = None,
    ) -> None:
        """Add an object that was checked; all objects have an ellipse, or none."""
        self.boxes.append(box)
        self.categories.append(category)
        self.labels.append(label)
        self.angles.append(angle)
        self.truncation.append(truncation)
        self.occlusion.append(occlusion)
        self.ignore.append(ignore)
        if ellipse is not None:
            self.ellipses.append(ellipse)

    def annotated(
        self, image: Path | None, name: str, size: tuple[int, int] | None = None
    ) -> AnnotatedImage:
        """Return the picture with these objects, angles within half a turn of 0."""
        return AnnotatedImage(
            image,
            np.array(self.boxes, dtype=np.float64).reshape(-1, 4),
            labels=np.array(self.labels, dtype=np.int64),
            angles=wrapped(np.array(self.angles, dtype=np.float64)),
            ignore=np.array(self.ignore, dtype=np.bool_),
            categories=tuple(self.categories),
            truncation=np.array(self.truncation, dtype=np.float64),
            occlusion=np.array(self.occlusion, dtype=np.float64),
            size=size,
            ellipses=np.array(self.ellipses, dtype=np.float64) if self.ellipses else None,
            name=name,
        )
