"""Models for tables by the name of their algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import badacost
from badacost._utils.validation import check_choice
from badacost.classifiers import BAdaCostClassifier, CostBoostClassifier, ImportedForestClassifier
from badacost.costs import as_cost_matrix, is_irreducible
from badacost.tabular.classifier import TableClassifier

ALGORITHMS: Mapping[str, str] = {
    "costboost": "CostBoostClassifier",
    "badacost": "BAdaCostClassifier",
    "samme": "SAMMEClassifier",
    "adaboost-m1": "AdaBoostM1Classifier",
    "adac2m1": "AdaC2M1Classifier",
    "piboost": "PIBoostClassifier",
    "lp-csb": "LpCSBClassifier",
    "wang-multiboost": "WangMultiBoostClassifier",
    "cs-adaboost": "CSAdaBoostClassifier",
    "cost-generalized": "CostGeneralizedAdaBoostClassifier",
}
"""Names of algorithms, as the command line has them, and their classes."""


def new_model(
    algorithm: str,
    costs: Mapping[Any, Mapping[Any, float]],
    *,
    decision: Literal["margin", "bayes"] | None = None,
    **options: Any,
) -> TableClassifier:
    """Return a model for tables that decides by minimum expected cost, if it can.

    Parameters
    ----------
    algorithm : str
        One of `badacost.tabular.ALGORITHMS`.
    costs : mapping
        ``{truth: {prediction: cost}}``.
    decision : {"margin", "bayes"}, optional
        "bayes" is minimum expected cost, the default where there are probabilities; "margin" is
        the algorithm's own rule.
    **options
        Parameters of the estimator.

    Returns
    -------
    TableClassifier
        A model to be fitted.

    Raises
    ------
    ValueError
        Where the algorithm is not known, or cannot decide in this way.

    Examples
    --------
    >>> from badacost.tabular import new_model
    >>> costs = {"ham": {"spam": 5}, "spam": {"ham": 1}}
    >>> new_model("samme", costs, n_estimators=50).decision
    'bayes'
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    estimator = getattr(badacost, ALGORITHMS[algorithm])
    has_probabilities = hasattr(estimator, "predict_proba")
    if estimator is CostBoostClassifier and decision == "margin":
        raise ValueError("costboost decides by minimum expected cost only: leave out the decision.")
    if decision == "bayes" and not has_probabilities:
        raise ValueError(
            f"the decision bayes needs probabilities, which {algorithm} does not have: leave it "
            "out."
        )
    if estimator is BAdaCostClassifier:
        has_probabilities = is_irreducible(as_cost_matrix(costs, costs))
    rule = decision or ("bayes" if has_probabilities else "margin")
    if estimator is BAdaCostClassifier:
        options["decision"] = rule
    by_itself = rule == "margin" or estimator in (BAdaCostClassifier, CostBoostClassifier)
    return TableClassifier(
        estimator(**options), cost_matrix=costs, decision="own" if by_itself else "bayes"
    )


def contenders(
    costs: Mapping[Any, Mapping[Any, float]],
    *,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> tuple[dict[str, TableClassifier], list[str]]:
    """Return models that are worth a comparison on any table.

    CostBoost, BAdaCost, SAMME and, where they are installed, LightGBM and CatBoost; all of them
    decide by minimum expected cost (BAdaCost by its margin rule where so many mistakes are free
    that it has no probabilities).

    Parameters
    ----------
    costs : mapping
        ``{truth: {prediction: cost}}``.
    n_jobs : int or None, default=None
        Threads. None is one, -1 is one for each core.
    random_state : int or None, default=None
        Seed.

    Returns
    -------
    models : dict of str to TableClassifier
        The models by name, for `fit_and_try`.
    not_installed : list of str
        Libraries that would add another one.

    Examples
    --------
    >>> models, not_installed = contenders({"ham": {"spam": 5}, "spam": {"ham": 1}})
    >>> [*models][:3]
    ['CostBoost', 'BAdaCost', 'SAMME']
    """
    common: dict[str, Any] = {"n_jobs": n_jobs, "random_state": random_state}
    models = {
        ALGORITHMS[name].removesuffix("Classifier"): new_model(name, costs, **common)
        for name in ("costboost", "badacost", "samme")
    }
    not_installed = []
    for name, make in (("LightGBM", _lightgbm), ("CatBoost", _catboost)):
        try:
            other = make(n_jobs or 1, random_state)
        except ImportError:
            not_installed.append(name.lower())
        else:
            imported = ImportedForestClassifier(other, n_jobs=n_jobs)
            models[name] = TableClassifier(imported, cost_matrix=costs)
    return models, not_installed


def _lightgbm(n_jobs: int, seed: int | None) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_jobs=n_jobs, random_state=seed, verbose=-1, deterministic=True, force_col_wise=True
    )


def _catboost(n_jobs: int, seed: int | None) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=n_jobs, random_seed=seed, verbose=False, allow_writing_files=False
    )
