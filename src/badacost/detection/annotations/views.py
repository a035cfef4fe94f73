"""`Views`: the directions that objects are seen from, as classes.

A view is a range of headings. Headings are those of KITTI's alpha, in degrees: 0 faces the right of
the image, 90 the viewer, 180 the left, -90 away from the viewer. In a mirror, a heading of a is one
of 180 - a.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from badacost._utils.arrays import FloatArray, IndexArray
from badacost._utils.validation import check_number
from badacost.detection.boxes import check_name

TOWARDS_VIEWER = 90.0
_PROFILE = 90.0
_TOLERANCE = 1e-6
_MAX_VIEWS = 360


def heading_of_yaw(yaw: ArrayLike) -> FloatArray:
    """Return the heading of a face that is turned by `yaw` degrees.

    Parameters
    ----------
    yaw : array-like of float
        0 looks at the viewer, negative angles towards the right side of the image, positive ones
        towards the left side.

    Returns
    -------
    ndarray of float
        Headings in degrees.

    Examples
    --------
    >>> from badacost.detection.annotations import heading_of_yaw
    >>> heading_of_yaw([0, -90, 45])  # at the viewer, to the right, half to the left
    array([ 90.,   0., 135.])
    """
    return np.asarray(yaw, dtype=np.float64) + TOWARDS_VIEWER


def turn_between(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Return the angle from headings to others in degrees, from -180 (included) to 180.

    >>> turn_between(170.0, [-170.0, 90.0, -10.0])
    array([  20.,  -80., -180.])
    """
    return np.asarray((np.subtract(second, first) + 180.0) % 360.0 - 180.0)


def nearest_view(headings: ArrayLike, angles: ArrayLike) -> IndexArray:
    """Return the view whose angle is nearest to each heading, the first of those equally near.

    All are in degrees. For views that are known by their angles only; `Views.label_of` knows where
    each one ends.

    >>> nearest_view([-170.0, 60.0, 45.0], angles=[0.0, 90.0, 180.0])
    array([2, 1, 0])
    """
    away = turn_between(np.asarray(headings, dtype=np.float64)[..., np.newaxis], angles)
    return np.abs(away).argmin(axis=-1).astype(np.int64)


@dataclass(frozen=True)
class Views:
    """Ranges of headings that together make the full circle, each a class; or classes by name.

    `Views.around` and `Views.of_yaw` make the usual ones.

    Parameters
    ----------
    names : sequence of str
        Name of each view.
    angles : sequence of float, default=()
        Heading in degrees that stands for each view; empty for views that are names only.
    starts : sequence of float, default=()
        Heading at which each view begins, in degrees; it ends where the next one begins. The start
        belongs to the view. Empty for views that are names only.
    turn : {1, -1}, default=1
        Whether headings grow or fall from one view to the next.

    Examples
    --------
    >>> from badacost.detection.annotations import Views
    >>> views = Views.around(8)
    >>> views.names
    ('0°', '-45°', '-90°', '-135°', '-180°', '135°', '90°', '45°')
    >>> views.label_of([0.0, -90.0, 100.0])
    array([0, 2, 6])
    >>> views.mirror
    (4, 3, 2, 1, 0, 7, 6, 5)
    >>> Views(["front", "rear"]).angles
    ()
    """

    names: tuple[str, ...]
    angles: tuple[float, ...] = ()
    starts: tuple[float, ...] = ()
    turn: int = 1

    def __post_init__(self) -> None:
        names = checked_names(self.names)
        if self.turn not in (1, -1):
            raise ValueError(f"turn must be 1 or -1; got {self.turn!r}.")
        length = len(names) if self.angles or self.starts else 0
        for field in ("angles", "starts"):
            object.__setattr__(self, field, _checked_angles(field, getattr(self, field), length))
        object.__setattr__(self, "names", names)
        if length and not (np.diff([*self._edges, 360.0]) > 0.0).all():
            raise ValueError(
                "starts must follow one another in the direction of turn, within one full turn."
            )

    @classmethod
    def around(cls, n_views: int, names: Sequence[str] | None = None) -> Views:
        """Divide the circle into equal views, as the paper does for the cars of KITTI.

        The first view is centred on a heading of 0, which faces the right of the image, and the
        next ones turn against alpha: with 4 views, 0, -90 (seen from behind), 180 and 90 degrees.

        Parameters
        ----------
        n_views : int
            Number of views, 360 at most.
        names : sequence of str, optional
            Name of each view; its heading by default.

        Returns
        -------
        Views
            An even number of views has mirror images.
        """
        check_number("n_views", n_views, Integral, low=1, high=_MAX_VIEWS)
        width = 360.0 / n_views
        angles = [_within_half_turn(-width * view) for view in range(n_views)]
        starts = [width / 2.0 - width * view for view in range(n_views)]
        default = [f"{round(angle, 1):g}°" for angle in angles]
        return cls(_named(names, default), tuple(angles), tuple(starts), -1)

    @classmethod
    def of_yaw(
        cls,
        limits: Sequence[float] = (-60.0, -20.0, 20.0, 60.0),
        names: Sequence[str] | None = None,
    ) -> Views:
        """Divide faces by the angle that they are turned to the side, as the paper does.

        Parameters
        ----------
        limits : sequence of float, default=(-60, -20, 20, 60)
            Yaw between one view and the next, in degrees: rising, between -90 and 90, both
            excluded. A yaw of 0 looks at the viewer, a negative one towards the right side of the
            image. A limit itself belongs to the view above it.
        names : sequence of str, optional
            Name of each view, from the lowest yaw to the highest; "view 1" and so on by default.

        Returns
        -------
        Views
            The first view also has all that is turned further, up to the back of the head; the
            heading that stands for it lies between its limit and the full profile. The last view
            is like it.

        Examples
        --------
        >>> from badacost.detection.annotations import Views, heading_of_yaw
        >>> views = Views.of_yaw()
        >>> views.label_of(heading_of_yaw([-75.0, 0.0, 20.0]))
        array([0, 2, 3])
        >>> views.angles
        (15.0, 50.0, 90.0, 130.0, 165.0)
        """
        yaws = _checked_angles("limits", limits, None)
        inside = [-_PROFILE, *yaws, _PROFILE]
        if any(low >= high for low, high in pairwise(inside)):
            raise ValueError("limits must increase and lie between -90 and 90, both excluded.")
        n_views = len(yaws) + 1
        angles = [(low + high) / 2.0 + TOWARDS_VIEWER for low, high in pairwise(inside)]
        starts = [yaw + TOWARDS_VIEWER for yaw in (-180.0, *yaws)]
        default = [f"view {view + 1}" for view in range(n_views)]
        return cls(_named(names, default), tuple(angles), tuple(starts), 1)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def _edges(self) -> FloatArray:
        """How far each view begins from the first one, in the direction of turn."""
        starts = np.array(self.starts)
        return np.asarray(self.turn * (starts - starts[0]))

    @property
    def mirror(self) -> tuple[int, ...]:
        """The view in which a mirror shows each view.

        Raises
        ------
        ValueError
            Where views do not mirror onto views, or have no headings.
        """
        if len(self) == 1:
            return (0,)
        if not self.starts:
            raise ValueError(
                "these views have no headings that a mirror could turn: do not mirror their images."
            )
        ends = [*self.starts[1:], self.starts[0] + self.turn * 360.0]
        mirror = []
        for end in ends:
            away = np.abs(turn_between(180.0 - end, self.starts))
            if away.min() > _TOLERANCE:
                raise ValueError(
                    "these views are not symmetric, a mirror shows parts of several of them: use "
                    "an even number of views around, or limits that are symmetric."
                )
            mirror.append(int(away.argmin()))
        return tuple(mirror)

    def label_of(self, angles: ArrayLike) -> IndexArray:
        """Return the view of headings.

        Parameters
        ----------
        angles : array-like of float
            In degrees, of any size; NaN where it is not known.

        Returns
        -------
        ndarray of int64
            Indices of views, in the shape of `angles`; -1 for what is not finite, and where views
            have no headings.
        """
        headings = np.asarray(angles, dtype=np.float64)
        if not self.starts:
            return np.full(headings.shape, -1, dtype=np.int64)
        known = np.isfinite(headings)
        turned = self.turn * (np.where(known, headings, 0.0) - self.starts[0]) % 360.0
        labels = np.searchsorted(self._edges, turned, side="right") - 1
        return np.where(known, labels, -1).astype(np.int64)


def _within_half_turn(angle: float) -> float:
    """Return an angle of one negative turn at most within -180 and 180; never minus zero."""
    return (angle if angle >= -180.0 else angle + 360.0) + 0.0


def _named(names: Sequence[str] | None, default: list[str]) -> tuple[str, ...]:
    """Return the names given, or the default ones."""
    if names is None:
        return tuple(default)
    checked = checked_names(names)
    if len(checked) != len(default):
        raise ValueError(f"names must be {len(default)}, one for each view; got {len(checked)}.")
    return checked


def checked_names(names: Any) -> tuple[str, ...]:
    """Return distinct names, at least one."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a sequence of strings; got {type(names).__name__}.")
    checked = tuple(names)
    for name in checked:
        check_name("a name", name)
    if not checked or len(set(checked)) < len(checked):
        raise ValueError("names must be distinct, at least one.")
    return checked


def _checked_angles(what: str, values: Any, length: int | None) -> tuple[float, ...]:
    """Return finite angles."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a sequence of angles; got {type(values).__name__}.")
    angles = tuple(values)
    if length is not None and len(angles) != length:
        raise ValueError(f"{what} must be {length}, one for each view; got {len(angles)}.")
    for angle in angles:
        check_number(what, angle, low=-1e6, high=1e6)
    return tuple(map(float, angles))
