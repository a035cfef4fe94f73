"""Table 1 of the BAdaCost paper: average costs on twelve UCI data sets over five folds, in 1e-4.

The conclusions of its section 5.1 do not follow from the table. The text finds BAdaCost
significantly better than AdaC2.M1 and Lp-CSB at 0.05 and at 0.10, and better than MultiBoost, 1.25
ranks behind, at 0.10 only. By the table the differences in average rank are 1.92 to AdaC2.M1, 1.50
to MultiBoost and 0.92 to Lp-CSB: the first two are significant at both levels, the last at neither.
"""

from __future__ import annotations

import pandas as pd

ALGORITHMS = ("AdaC2.M1", "MultiBoost", "Lp-CSB", "BAdaCost")
MEANS = pd.DataFrame(
    {
        "car": (26, 232, 38, 24),
        "chess": (29, 262, 4, 160),
        "isolet": (289, 140, 149, 66),
        "satimage": (478, 187, 170, 132),
        "letter": (491, 319, 161, 66),
        "shuttle": (2.1, 8.9, 3.5, 3.9),
        "cmc": (980, 1058, 938, 928),
        "cnae9": (397, 171, 241, 191),
        "optdigits": (366, 134, 170, 30),
        "pendigits": (326, 193, 162, 18),
        "segmentation": (242, 154, 94, 50),
        "waveform": (905, 515, 632, 367),
    },
    index=ALGORITHMS,
    dtype=float,
).T
