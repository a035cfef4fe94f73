"""`TrainingConfig`: everything that a detector's training depends on, apart from its data."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_choice, check_flag, check_number
from badacost.costs import as_cost_matrix, zero_one_costs
from badacost.detection.channels import ChannelParameters, HistogramParameters
from badacost.detection.pyramid import PyramidParameters
from badacost.detection.suppression import Suppression
from badacost.detection.training.samples import WindowShape
from badacost.detection.view_costs import background_costs, circular_view_costs
from badacost.io.budget import Budget, BudgetError
from badacost.io.user_file import open_regular
from badacost.tree.grower import DrawPer

Algorithm = Literal["costboost", "badacost", "samme", "subcat"]
ALGORITHMS: tuple[Algorithm, ...] = ("costboost", "badacost", "samme", "subcat")
_BYTES_OF_TOML = 300  # in memory, for a byte of the text
_MAX_CLASSES = 256
_MAX_PARTS = 100  # of a key: the parser takes the square of their number in memory
_PART = rb"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rb"(?<![\w.-])%b(?:[ \t]*+\.[ \t]*+%b){%d}" % (_PART, _PART, _MAX_PARTS))
_WINDOW_MARGIN = 8  # a padded window is larger by one part in this


@dataclass(frozen=True)
class TrainingConfig:
    """How to train a detector; sizes are those of the paper's car detector, but smaller.

    Parameters
    ----------
    window : tuple of int, default=(48, 48)
        Height and width of the smallest object to find, in pixels.
    padded_window : tuple of int, optional
        Height and width of what is looked at; an eighth more than the window by default, rounded
        up to whole cells.
    algorithm : {"costboost", "badacost", "samme", "subcat"}, default="costboost"
        One cascade of objects against background with the boosting of `CostBoostClassifier`; one
        for all views under costs, as in the paper; the same with 0|1 costs; or a cascade of its own
        for each view. With all of them boxes are fitted to objects by a regression; with
        "costboost" it also tells the view of minimum expected cost, with the others cascades do.
    alpha, beta, gamma : float, default=1.0, 3.0, 3.0
        Price of a false alarm, of a missed object, and of taking a view for the opposite one. With
        "costboost", objects weigh beta / alpha times as much as the background. With "badacost",
        the loss of a class falls the faster the higher its costs are, so that a high beta leaves
        the later trees to the background and need not find more: lower the threshold instead.
    cost_matrix : sequence of K sequences of K numbers, optional
        Costs of the background, which is first, and of the K - 1 views, a row for each truth,
        instead of those of alpha, beta and gamma.
    views_in_circle : bool, default=True
        Whether views turn around the object, so that their mistakes cost more the farther apart
        they are; otherwise each costs gamma.
    trees : sequence of int, default=(64, 128, 256, 1024)
        Trees of each round; between rounds, false alarms become negative examples.
    max_depth : int, default=5
        Levels of tests in a tree.
    learning_rate : float, default=0.1
        Factor of every step.
    max_features : float, default=1/16
        Share of the features that are looked at in each node.
    draw_per : {"level", "node"}, default="level"
        Whether all nodes of a level have the same features to choose from, which is faster, or each
        has its own, as in the paper.
    min_samples_split : int, default=11
        Minimum number of windows in a node that is split.
    max_bins : int, default=64
        Bins of a feature.
    n_negatives : int, default=5000
        Negative examples to find in each round.
    n_accumulated : int, default=10000
        Maximum number of negative examples of all rounds together.
    n_per_image : int, default=25
        Maximum number of negative examples from one image in a round.
    negative_overlap : float, default=0.1
        Windows that overlap an object by less than this (intersection by union) may be negative
        examples; with more, parts of objects become such.
    shrink : int, default=2
        Side of a cell of channels, in pixels.
    n_orientations : int, default=6
        Orientations of gradients.
    soft : bool, default=True
        Whether gradients spread over neighbouring cells.
    n_filters, filter_size : int, default=4, 5
        Filters of locally decorrelated channels, which halve the resolution; 0 for none.
    n_per_octave, n_octaves_up : int, default=8, 0
        Levels of the pyramid from one size to half of it, and doublings of the image.
    n_approximated : int, optional
        Levels that are approximated between two that are computed; all but one of an octave by
        default.
    overlap : float, default=0.3
        Boxes that overlap more than this (intersection by union) are one object.
    mirror : bool, default=True
        Whether to add mirror images.
    n_jittered : int, default=2
        Copies of each object that are moved, scaled and varied a little.
    jitter : float, default=1.0
        How far copies are moved and scaled; with 1, by at most half a cell and half a level.
    rotation, contrast, noise : float, default=3.0, 0.15, 2.0
        How copies vary: degrees of rotation, share of contrast and brightness, grey levels of
        noise, all up to this much.
    validation : float, default=0.2
        Share of the objects whose images are held out: they say which round was the best, and set
        thresholds and probabilities. 0 for none; with fewer than 4 images nothing is held out.
    refit : bool, default=True
        Whether the cascade is trained once more at the end, on all images.
    false_alarms : float, default=10.0
        Wrong boxes in an image held out, on average, that the floor of scores lets through; fewer
        where the lowest floor that is tried, a unit below zero, has no more.
    seed : int, default=0
        Seed of everything that is drawn.

    Examples
    --------
    >>> from badacost.detection import TrainingConfig
    >>> config = TrainingConfig(window=(48, 84), alpha=1, beta=3, gamma=3)
    >>> config.shape.padded_window
    (56, 96)
    >>> config.costs(4)[1]
    array([3. , 0. , 1.5, 3. , 1.5])
    """

    window: tuple[int, int] = (48, 48)
    padded_window: tuple[int, int] | None = None
    algorithm: Algorithm = "costboost"
    alpha: float = 1.0
    beta: float = 3.0
    gamma: float = 3.0
    cost_matrix: tuple[tuple[float, ...], ...] | None = None
    views_in_circle: bool = True
    trees: tuple[int, ...] = (64, 128, 256, 1024)
    max_depth: int = 5
    learning_rate: float = 0.1
    max_features: float = 1 / 16
    draw_per: DrawPer = "level"
    min_samples_split: int = 11
    max_bins: int = 64
    n_negatives: int = 5000
    n_accumulated: int = 10000
    n_per_image: int = 25
    negative_overlap: float = 0.1
    shrink: int = 2
    n_orientations: int = 6
    soft: bool = True
    n_filters: int = 4
    filter_size: int = 5
    n_per_octave: int = 8
    n_octaves_up: int = 0
    n_approximated: int | None = None
    overlap: float = 0.3
    mirror: bool = True
    n_jittered: int = 2
    jitter: float = 1.0
    rotation: float = 3.0
    contrast: float = 0.15
    noise: float = 2.0
    validation: float = 0.2
    refit: bool = True
    false_alarms: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("window", "padded_window"):
            value = getattr(self, name)
            if name == "padded_window" and value is None:
                continue
            if not isinstance(value, tuple | list) or len(value) != 2:
                raise ValueError(f"{name} must be a height and a width; got {value!r:.80}.")
            for length in value:
                check_number(name, length, Integral, low=8, high=1024)
            object.__setattr__(self, name, tuple(map(int, value)))
        if not isinstance(self.trees, tuple | list) or not 1 <= len(self.trees) <= 32:
            raise ValueError(f"trees must be 1 to 32 numbers of trees; got {self.trees!r:.80}.")
        for number in self.trees:
            check_number("trees", number, Integral, low=1, high=2**16)
        object.__setattr__(self, "trees", tuple(map(int, self.trees)))
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_choice("draw_per", self.draw_per, ("node", "level"))
        for name in ("views_in_circle", "soft", "mirror", "refit"):
            check_flag(name, getattr(self, name))
            object.__setattr__(self, name, bool(getattr(self, name)))
        for name, low, high in (
            ("max_depth", 1, 12),
            ("min_samples_split", 2, 2**30),
            ("max_bins", 2, 256),
            ("n_negatives", 1, 2**24),
            ("n_accumulated", 1, 2**24),
            ("n_per_image", 1, 2**16),
            ("n_filters", 0, 16),
            ("n_jittered", 0, 64),
            ("filter_size", 1, 5),
            ("shrink", 1, 32),
            ("n_orientations", 1, 36),
            ("n_per_octave", 1, 64),
            ("n_octaves_up", 0, 4),
            ("n_approximated", 0, 256),
            ("seed", 0, 2**31 - 1),
        ):
            value = getattr(self, name)
            if name == "n_approximated" and value is None:
                continue
            check_number(name, value, Integral, low=low, high=high)
            object.__setattr__(self, name, int(value))
        for name, upper in (
            ("alpha", 1e6),
            ("beta", 1e6),
            ("gamma", 1e6),
            ("learning_rate", 1.0),
            ("max_features", 1.0),
            ("negative_overlap", 1.0),
        ):
            check_number(name, getattr(self, name), low=0.0, high=upper, open_low=True)
            object.__setattr__(self, name, float(getattr(self, name)))
        for name, upper in (
            ("overlap", 1.0),
            ("jitter", 4.0),
            ("rotation", 10.0),
            ("contrast", 0.9),
            ("noise", 64.0),
            ("validation", 0.9),
            ("false_alarms", 1e4),
        ):
            check_number(name, getattr(self, name), low=0.0, high=upper)
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.cost_matrix is not None:
            object.__setattr__(self, "cost_matrix", _checked_costs(self.cost_matrix))
            if self.algorithm in ("samme", "subcat"):
                raise ValueError(
                    f"{self.algorithm} has no costs: leave out cost_matrix, or use costboost or "
                    "badacost."
                )
        self._check_windows()

    def _check_windows(self) -> None:
        """Raise unless filters fit each other and the window, before hours have gone by."""
        n_cells = min(self.shape.padded_window) // self.shrink
        if self.n_filters:
            if self.filter_size % 2 == 0 or self.n_filters > self.filter_size**2:
                raise ValueError(
                    f"filter_size must be odd, and n_filters at most its square; got "
                    f"{self.filter_size} and {self.n_filters}."
                )
            if n_cells < self.filter_size:
                raise ValueError(
                    f"window must have at least {self.filter_size} cells of {self.shrink} pixels "
                    f"on each side; enlarge it, or reduce filter_size or shrink."
                )
        if min(self.window) < self.cell:
            raise ValueError(f"window must be at least a cell of {self.cell} pixels; enlarge it.")
        self.pyramid((0.0, 0.0, 0.0))  # which checks the rest

    @classmethod
    def small(cls, **changes: Any) -> TrainingConfig:
        """Return a configuration for a few hundred images, which trains in minutes.

        Parameters
        ----------
        **changes
            Parameters that are to differ from it.

        Examples
        --------
        >>> from badacost.detection import TrainingConfig
        >>> TrainingConfig.small(window=(32, 48)).trees
        (64, 128, 512)
        """
        given: dict[str, Any] = {
            "trees": (64, 128, 512),
            "n_negatives": 3000,
            "n_accumulated": 8000,
            "negative_overlap": 0.4,
        }
        return cls(**(given | changes))

    @property
    def cell(self) -> int:
        """Side of a cell of features, in pixels."""
        return self.shrink * (2 if self.n_filters else 1)

    @property
    def shape(self) -> WindowShape:
        """Sizes of the window."""
        return self.shape_of(self.window)

    def shape_of(self, window: tuple[int, int]) -> WindowShape:
        """Sizes of a window like that of the detector."""
        if self.padded_window is not None and window == self.window:
            padded = self.padded_window
        else:
            margins = [length // _WINDOW_MARGIN for length in window]
            if self.padded_window is not None:
                sides = zip(self.padded_window, self.window, strict=True)
                margins = [padded - length for padded, length in sides]
            height, width = (
                -(-(length + margin) // self.cell) * self.cell
                for length, margin in zip(window, margins, strict=True)
            )
            padded = (height, width)
        if any(a > b for a, b in zip(window, padded, strict=True)):
            raise ValueError(f"padded_window {padded} must hold the window {window}.")
        return WindowShape(window, padded, self.cell)

    @property
    def suppression(self) -> Suppression:
        """How boxes of the same object become one."""
        return Suppression(overlap=self.overlap)

    def costs(self, n_views: int) -> FloatArray:
        """Costs of the background, class 0, and the views: ``C[truth, prediction]``."""
        if self.algorithm == "samme":
            return zero_one_costs(n_views + 1)
        if self.cost_matrix is not None:
            if len(self.cost_matrix) != n_views + 1:
                raise ValueError(
                    f"cost_matrix must have {n_views + 1} rows, for the background and "
                    f"{n_views} views; got {len(self.cost_matrix)}."
                )
            return as_cost_matrix(self.cost_matrix, range(n_views + 1))
        if self.views_in_circle:
            costs = circular_view_costs(n_views, alpha=self.alpha, beta=self.beta, gamma=self.gamma)
        else:
            costs = background_costs(n_views, alpha=self.alpha, beta=self.beta)
            costs[1:, 1:] *= self.gamma
        return as_cost_matrix(costs, range(n_views + 1))

    @property
    def odds(self) -> float:
        """How much all objects together weigh, relative to the background: by the prices."""
        if self.cost_matrix is None:
            return self.beta / self.alpha
        false_alarms = self.cost_matrix[0][1:]
        misses = [row[0] for row in self.cost_matrix[1:]]
        return sum(misses) / sum(false_alarms)

    def pyramid(self, lambdas: tuple[float, float, float]) -> PyramidParameters:
        """Parameters of the pyramid."""
        channels = ChannelParameters(
            shrink=self.shrink,
            histogram=HistogramParameters(n_orientations=self.n_orientations, soft=self.soft),
        )
        shape = self.shape
        pad_y, pad_x = (
            -(-(padded - length) // (2 * self.shrink)) * self.shrink
            for padded, length in zip(shape.padded_window, shape.window, strict=True)
        )
        approximated = self.n_approximated
        return PyramidParameters(
            channels=channels,
            n_per_octave=self.n_per_octave,
            n_octaves_up=self.n_octaves_up,
            n_approximated=self.n_per_octave - 1 if approximated is None else approximated,
            lambdas=lambdas,
            pad=(pad_y, pad_x),
            min_size=self.window,
        )

    @classmethod
    def from_toml(
        cls,
        path: str | os.PathLike[str],
        *,
        small: bool = False,
        max_memory: int | str | None = None,
    ) -> TrainingConfig:
        r"""Read a configuration from a TOML file with a line for each parameter to change.

        Parameters
        ----------
        path : str or path-like
            The file; what it does not name keeps its default.
        small : bool, default=False
            Whether the defaults are those of `TrainingConfig.small`.
        max_memory : int, str or None, default=None
            Maximum memory that reading the file may take: bytes, or a string such as "4 GB". None
            is the limit of `badacost.set_max_memory`.

        Raises
        ------
        FileNotFoundError
            Where there is no such file.
        ValueError
            Where it is not TOML, or names a parameter or a value that does not exist.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from badacost.detection import TrainingConfig
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "small.toml")
        ...     size = path.write_text("window = [40, 64]\ntrees = [16, 64]\n")
        ...     config = TrainingConfig.from_toml(path)
        >>> config.window, config.trees
        ((40, 64), (16, 64))
        """
        source = Path(path)
        budget = Budget.of(max_memory)
        try:
            with open_regular(source) as file:
                budget.check(_BYTES_OF_TOML * os.fstat(file.fileno()).st_size)
                data = file.read()
            if _LONG_KEY.search(data):
                raise ValueError(f"a key has more than {_MAX_PARTS} parts: shorten it")
            given = tomllib.loads(data.decode())
        except BudgetError as error:
            raise ValueError(f"cannot read the configuration {str(source)!r}: {error}.") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{source} is not a TOML file: {error}.") from error
        known = [item.name for item in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            nearest = get_close_matches(unknown[0], known, n=3, cutoff=0.0)
            raise ValueError(
                f"{source} has the unknown parameter {unknown[0][:80]!r}; there are "
                f"{', '.join(nearest)} and others, which TrainingConfig documents."
            )
        try:
            return cls.small(**given) if small else cls(**given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}: {error}") from error

    def to_toml(self) -> str:
        """Return the text of a file that `from_toml` reads."""
        lines = [
            f"{name} = {_toml_value(value)}"
            for name, value in asdict(self).items()
            if value is not None
        ]
        return "\n".join(lines) + "\n"


def _checked_costs(costs: Any) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a cost matrix as numbers."""
    rows = costs if isinstance(costs, tuple | list) else ()
    if not 2 <= len(rows) <= _MAX_CLASSES or not all(
        isinstance(row, tuple | list) and len(row) == len(rows) for row in rows
    ):
        raise ValueError(
            f"cost_matrix must be 2 to {_MAX_CLASSES} rows of as many numbers; got {costs!r:.80}."
        )
    for number in (number for row in rows for number in row):
        check_number("cost_matrix", number, low=0.0, high=1e6)
    checked = tuple(tuple(map(float, row)) for row in rows)
    try:
        as_cost_matrix(checked, range(len(checked)))
    except ValueError as error:
        raise ValueError(f"cost_matrix: {error}") from error
    return checked


def _toml_value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
