"""The UCI data sets of the paper's Table 1: class counts and values that the paper's copies have.

A file may come from anywhere, so nothing in it is trusted: its class counts, and the sum of its
column means weighted 1, 2, ..., must be those of the set that the paper used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost.datasets import load_uci


@dataclass(frozen=True)
class PaperSet:
    """A set as the paper and UCI describe it; `name` is the paper's."""

    name: str
    counts: Mapping[str, int]
    fingerprint: float  # sum of the column means, weighted 1, 2, ...
    note: str = ""


def _counts(text: str) -> dict[str, int]:
    """Return counts by class from a text of classes and counts in turn."""
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


PAPER_SETS: dict[str, PaperSet] = {
    "car": PaperSet(
        name="CarEvaluation",
        counts=_counts("acc 384 good 69 unacc 1210 vgood 65"),
        fingerprint=24.0,
    ),
    "chess": PaperSet(
        name="Chess",
        counts=_counts(
            "draw 2796 zero 27 one 78 two 246 three 81 four 198 five 471 six 592 seven 683 "
            "eight 1433 nine 1712 ten 1985 eleven 2854 twelve 3597 thirteen 4194 fourteen 4553 "
            "fifteen 2166 sixteen 390"
        ),
        fingerprint=81.346877673,
    ),
    "isolet": PaperSet(
        name="Isolet",
        counts={str(letter): 300 for letter in range(1, 27)} | {"6": 298, "13": 299},
        fingerprint=6958.0625458,
    ),
    "satimage": PaperSet(
        name="SatImage",
        counts=_counts("1 1533 2 703 3 1358 4 626 5 707 7 1508"),
        fingerprint=55818.703963,
        note="The paper prints 7 labels; label 6, a mixture, has no instance.",
    ),
    "letter": PaperSet(
        name="Letter",
        counts=_counts(
            "A 789 B 766 C 736 D 805 E 768 F 775 G 773 H 734 I 755 J 747 K 739 L 761 M 792 "
            "N 783 O 753 P 803 Q 783 R 758 S 748 T 796 U 813 V 764 W 752 X 787 Y 786 Z 734"
        ),
        fingerprint=835.5057,
    ),
    "shuttle": PaperSet(
        name="Shuttle",
        counts=_counts("1 45586 2 50 3 171 4 8903 5 3267 6 10 7 13"),
        fingerprint=1279.7982069,
    ),
    "cmc": PaperSet(
        name="ContraMethod",
        counts=_counts("1 629 2 333 3 511"),
        fingerprint=111.24100475,
    ),
    "cnae9": PaperSet(
        name="CNAE9",
        counts=dict.fromkeys("123456789", 120),
        fingerprint=3137.0083333,
    ),
    "optdigits": PaperSet(
        name="OptDigits",
        counts=_counts("0 554 1 571 2 557 3 572 4 568 5 558 6 558 7 566 8 554 9 562"),
        fingerprint=10213.102135,
    ),
    "pendigits": PaperSet(
        name="PenDigits",
        counts=_counts("0 1143 1 1143 2 1144 3 1055 4 1144 5 1055 6 1056 7 1142 8 1055 9 1055"),
        fingerprint=6330.4138464,
    ),
    "segmentation": PaperSet(
        name="Segmentation",
        counts=dict.fromkeys(
            ["BRICKFACE", "CEMENT", "FOLIAGE", "GRASS", "PATH", "SKY", "WINDOW"], 330
        ),
        fingerprint=3002.5458665,
    ),
    "waveform": PaperSet(
        name="Waveform",
        counts=_counts("0 1657 1 1647 2 1696"),
        fingerprint=395.514272,
        note="OpenML's waveform-5000 is version 2, with 40 variables, and another sample.",
    ),
}


def load_paper_set(name: str, folder: Path | None) -> tuple[FloatArray, NDArray[np.str_]]:
    """Return the samples and labels of a set, after checking that they are the paper's.

    Parameters
    ----------
    name : str
        One of `badacost.datasets.UCI_NAMES`.
    folder : Path or None
        Where its file is, see `load_uci`.

    Returns
    -------
    ndarray of shape (n_samples, n_features), ndarray of shape (n_samples,)
        Samples and labels.

    Raises
    ------
    ValueError
        Where class counts or values differ from those of the paper's set.
    """
    known = PAPER_SETS[name]
    loaded: Any = load_uci(name, folder=folder, return_X_y=True)
    X, y = loaded
    found = Counter(label.casefold() for label in y.tolist())
    counts = {label.casefold(): count for label, count in known.counts.items()}
    if found != counts:
        raise ValueError(_difference(known, f"classes have {dict(found)} samples, not {counts}"))
    with np.errstate(over="ignore", invalid="ignore"):  # untrusted values may be huge
        fingerprint = X.mean(axis=0) @ np.arange(1, X.shape[1] + 1)
    if not np.isclose(fingerprint, known.fingerprint, rtol=1e-6, atol=0.0):
        raise ValueError(
            _difference(
                known,
                f"column means, weighted 1, 2, ..., add to {fingerprint:.9g}, not "
                f"{known.fingerprint:.9g} (other values, or columns in another order)",
            )
        )
    return X, y


def _difference(known: PaperSet, found: str) -> str:
    return f"the data are not the paper's {known.name}: {found}. Use UCI's file. {known.note}"
