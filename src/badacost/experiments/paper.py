"""Table 1 of the BAdaCost paper: average costs on twelve UCI data sets, as printed.

Costs are in units of 1e-4: `MEANS` holds the averages over five folds and `STANDARD_DEVIATIONS` the
numbers the paper prints behind them, both as ``[data set][algorithm]`` in the order of the table.
`CRITICAL_DIFFERENCES` are the Bonferroni-Dunn distances of its section 5.1 by significance level.

The conclusions of that section do not follow from its table. The text finds BAdaCost significantly
better than AdaC2.M1 and Lp-CSB at 0.05 and at 0.10, and better than MultiBoost, 1.25 ranks behind,
at 0.10 only. By the table the differences in average rank are 1.92 to AdaC2.M1, 1.50 to MultiBoost
and 0.92 to Lp-CSB: the first two are significant at both levels, the last at neither.

Examples
--------
>>> from badacost.experiments.paper import MEANS, STANDARD_DEVIATIONS
>>> MEANS["shuttle"]["AdaC2.M1"], STANDARD_DEVIATIONS["shuttle"]["AdaC2.M1"]
(2.1, 0.07)
"""

from __future__ import annotations

ALGORITHMS = ("AdaC2.M1", "MultiBoost", "Lp-CSB", "BAdaCost")

_TABLE = {
    "car": ((26, 9), (232, 36), (38, 15), (24, 15)),
    "chess": ((29, 5), (262, 34), (4, 3), (160, 9)),
    "isolet": ((289, 48), (140, 15), (149, 18), (66, 14)),
    "satimage": ((478, 62), (187, 23), (170, 26), (132, 11)),
    "letter": ((491, 78), (319, 53), (161, 23), (66, 7)),
    "shuttle": ((2.1, 0.07), (8.9, 0.08), (3.5, 0.13), (3.9, 0.3)),
    "cmc": ((980, 129), (1058, 214), (938, 359), (928, 253)),
    "cnae9": ((397, 103), (171, 57), (241, 108), (191, 51)),
    "optdigits": ((366, 120), (134, 27), (170, 34), (30, 8)),
    "pendigits": ((326, 29), (193, 34), (162, 72), (18, 5)),
    "segmentation": ((242, 123), (154, 48), (94, 18), (50, 30)),
    "waveform": ((905, 113), (515, 128), (632, 201), (367, 96)),
}

DATA_SETS = tuple(_TABLE)


def _column(position: int) -> dict[str, dict[str, float]]:
    """Return the means (0) or the standard deviations (1) by data set and algorithm."""
    return {
        data_set: {
            algorithm: float(cell[position])
            for algorithm, cell in zip(ALGORITHMS, cells, strict=True)
        }
        for data_set, cells in _TABLE.items()
    }


MEANS = _column(0)
STANDARD_DEVIATIONS = _column(1)

CRITICAL_DIFFERENCES = {0.05: 1.2617, 0.10: 1.1216}
