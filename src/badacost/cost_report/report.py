"""The report: what goes on the page, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numpy.typing import ArrayLike

from badacost.cost_report import sections
from badacost.cost_report.comparison import Way, compare, own_ways, trained_without_costs
from badacost.cost_report.evidence import Evidence, gather
from badacost.cost_report.known_rows import known_rows_remark
from badacost.cost_report.money import Money
from badacost.cost_report.naming import model_name
from badacost.html_page import missing_glyphs_ignored, page, write_page

Progress = Callable[[int, int], None]
_MAX_CURRENCY_LENGTH = 12


def write_cost_report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    *,
    costs: Any = None,
    train: tuple[Any, ArrayLike] | None = None,
    title: str | None = None,
    currency: str | None = None,
    feature_names: Sequence[Any] | None = None,
    sample_cost: ArrayLike | None = None,
    abstain: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> None:
    """Write a page that tells what the decisions of a classifier cost, and what others would.

    The page is one HTML file: pictures are inside, and it asks for nothing from anywhere. It has
    the average cost with an interval, the costs by class and by kind of mistake, other ways to
    decide on the same samples, and, as far as the model has trees, probabilities and importances,
    the cost after each round, what a change of each price would do, how far probabilities can be
    trusted, and the features that matter.

    Parameters
    ----------
    model : fitted classifier
        Any with ``predict`` and ``classes_``: those of this package, a
        `badacost.MinimumCostClassifier`, a `badacost.tabular.TableClassifier`, or a pipeline that
        ends in one of them.
    path : str or path-like
        Where to write; an existing file is replaced once the new one is complete.
    X : array-like or data frame of n_samples rows
        Samples that the model was not trained on, as its ``predict`` takes them.
    y : array-like of shape (n_samples,)
        Their classes.
    costs : array-like of shape (K, K), mapping or data frame, optional
        ``C[truth, prediction]``: rows are the truth, in the order of ``classes_``. By default
        those of the model. Being right is charged, too, if it has a price.
    train : tuple of X and y, optional
        What the model was trained on. It adds the cost of training to the curve, and boosting that
        is trained and tuned on these samples without any costs, which decides by most likely class
        and by minimum expected cost.
    title : str, optional
        Title of the page.
    currency : str, optional
        Unit of the costs, such as "€" or "EUR".
    feature_names : sequence of str, optional
        Names of the features, if neither model nor samples have them.
    sample_cost : array-like of shape (n_samples, K) or (n_samples, K, K), optional
        Prices of each sample, in the place of `costs`; see `badacost.metrics.average_cost`. A model
        that has `decide` decides by them.
    abstain : float, optional
        The price of asking a person. It adds how many samples would be handed to one, and what
        that would save.
    random_state : int, default=0
        Seed of the resamples that intervals are from, and of the rivals.
    n_jobs : int, optional
        Threads for fitting the rivals; None is one, -1 is one for each core.
    progress : callable, optional
        Called with the number of steps that are done and the number of all steps.
    note : callable, optional
        Called with a sentence if the samples seem to be those of the training. The page has it,
        too.

    Raises
    ------
    TypeError
        Where the model is no classifier.
    ValueError
        Where model, samples and costs do not fit together.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from badacost import BAdaCostClassifier
    >>> from badacost.cost_report import write_cost_report
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]  # C[truth, prediction]
    >>> model = BAdaCostClassifier(costs, n_estimators=5, max_depth=1).fit(X[::2], y[::2])
    >>> with TemporaryDirectory() as folder:
    ...     write_cost_report(model, Path(folder, "page.html"), X[1::2], y[1::2], title="Irises")
    ...     "<h1>Irises</h1>" in Path(folder, "page.html").read_text(encoding="utf-8")
    True
    """
    for name, text in (("title", title), ("currency", currency)):
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{name} must be a str; got {type(text).__name__}.")
    if currency is not None and len(currency) > _MAX_CURRENCY_LENGTH:
        raise ValueError(
            f"currency {currency!r} is too long: give at most {_MAX_CURRENCY_LENGTH} letters, "
            "as 'EUR'."
        )
    evidence = gather(model, X, y, costs, train, feature_names, sample_cost, abstain)
    known = known_rows_remark(evidence.classifier, len(evidence.truth), evidence.n_known)
    if known is not None and note is not None:
        note(known)
    rivals: list[Callable[[], list[Way]]] = []
    if evidence.training is not None:
        rivals = [lambda: trained_without_costs(evidence, random_state, n_jobs)]
    n_steps = len(rivals) + 1 + len(sections.SECTIONS)
    written = {}
    steps = _steps(evidence, rivals, currency or None, random_state)
    for done, (name, body) in enumerate(steps, start=1):
        written[name] = body
        if progress is not None:
            progress(done, n_steps)
    n_samples = len(evidence.truth)
    lead = (
        f"What {n_samples:,} decision{'s' * (n_samples != 1)} of {model_name(evidence.classifier)} "
        "cost, and what other ways to decide would have cost on the same samples."
    )
    write_page(path, page(title or "What the decisions cost", lead, written))


def _steps(
    evidence: Evidence, rivals: list[Callable[[], list[Way]]], currency: str | None, seed: int
) -> Iterator[tuple[str, str]]:
    """Fit the rivals, compare, and write one section after the other."""
    ways = own_ways(evidence)
    for rival in rivals:
        ways += rival()
        yield "", ""
    compared = compare(evidence, ways, seed)
    yield "", ""
    (constant,) = (i for i, way in enumerate(ways) if way.kind == "constant")
    money = Money(currency, float(compared.averages[constant]))
    for name, section in sections.SECTIONS.items():
        with missing_glyphs_ignored():
            body = section(evidence, compared, money)
        yield name, body
