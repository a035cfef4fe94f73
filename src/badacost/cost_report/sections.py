"""The sections of the report, as HTML; those that a model gives no reason for are empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from badacost.arrays import FloatArray
from badacost.cost_report.comparison import LEVEL, N_RESAMPLES, Comparison
from badacost.cost_report.evidence import Evidence, out_of_fold_cost
from badacost.cost_report.known_rows import known_rows_remark
from badacost.cost_report.money import Money, number
from badacost.cost_report.sensitivity import shift
from badacost.costs import minimum_cost_decision
from badacost.costs.decisions import is_asked
from badacost.html_page import heat_table, key_figures, paragraph, plot, shorten, table
from badacost.plotting.canvas import COST_UNIT, PALETTE, canvas
from badacost.plotting.confusion import CostConfusionDisplay
from badacost.plotting.cost_curve import CostCurveDisplay
from badacost.plotting.importances import FeatureImportancesDisplay

_FEW_COSTLY = 10  # decisions that cost something; with fewer an interval says too little
_MAX_MISTAKES = 15
_MAX_PRICES_LISTED = 10
_ASKING_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the price of asking a person
_RELIABILITY_GROUPS = 10
_MIN_IN_GROUP = 20
_MAX_CELL_LENGTH = 40
_MIN_CELL_WIDTH = 34  # pixels of a cell in a picture whose numbers can be read
_MAX_NAME_LENGTH = 18  # in pictures, which have no tooltips


def _in_short(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Return the figures to be seen first, and what they mean in a few sentences."""
    averages, n_samples = compared.averages, len(evidence.truth)
    cost, interval = money.rate(averages[0]), money.between(compared.intervals[0])
    total = money.amount(averages[0] * n_samples)
    facts = [
        ("average cost of a decision", cost, f"{LEVEL} % interval {interval}"),
        ("in all", total, f"for {n_samples:,} decisions"),
    ]
    sentences = [
        f"{n_samples:,} decisions of the model cost {cost} each ({LEVEL} % interval {interval}), "
        f"{total} in all."
    ]
    out_of_fold = out_of_fold_cost(evidence.booster, evidence.costs)
    if out_of_fold is not None:
        sentences.append(f"Out of fold, the training expected {money.rate(out_of_fold)} for each.")
    other_ways = {
        "constant": ("the best constant", "The cheapest constant answer"),
    }
    doubtful = []
    for kind, (name, subject) in other_ways.items():
        for index in (i for i, way in enumerate(compared.ways) if way.kind == kind):
            other, saved = averages[index], compared.saved[index]
            share = f"{saved / other:.0%}" if other > 0 else money.rate(saved)
            fact, remark = f"saved against {name}", f"that costs {money.rate(other)} each"
            if not compared.is_clear(index):
                doubtful.append(fact)
                bounds = money.between(compared.saved_intervals[index])
                remark += f"; the saving may be chance: {bounds} each"
            facts.append((fact, share, remark))
            verdict = _verdict(compared, index, money)
            sentences.append(f"{subject} would have cost {money.rate(other)} each: {verdict}.")
    return (
        _known_rows(evidence)
        + key_figures(facts, doubtful=doubtful)
        + paragraph(" ".join(sentences))
        + paragraph(_cheapest(compared, money))
        + _few_costly(compared)
    )


def _known_rows(evidence: Evidence) -> str:
    """Warn if the model knows these samples."""
    remark = known_rows_remark(evidence.classifier, len(evidence.truth), evidence.n_known)
    if remark is None:
        return ""
    return f"<p><strong>{escape(remark[0].upper() + remark[1:])}</strong></p>\n"


def _cheapest(compared: Comparison, money: Money) -> str:
    """Name the cheapest of all ways, or the next one if none is cheaper than the model."""
    first, second = np.argsort(compared.averages, kind="stable")[:2].tolist()
    n_ways = len(compared.ways)
    if first == 0:
        start, named = f"None of the {n_ways - 1} other ways is cheaper; the next is", second
    else:
        start, named = f"The cheapest of the {n_ways} ways is", first
    way, cost = compared.ways[named].name, money.rate(compared.averages[named])
    verdict = _verdict(compared, named, money)
    return f"Other ways to decide are compared below. {start} {way}, at {cost} each: {verdict}."


def _verdict(compared: Comparison, index: int, money: Money) -> str:
    """Say whether the model or another way is cheaper, if that is more than chance."""
    saved, bounds = compared.saved[index], compared.saved_intervals[index]
    if bounds[0] > 0:
        return f"the model saves {money.rate(saved)} a decision ({money.between(bounds)})"
    if bounds[1] < 0:
        excess = money.between(-bounds[::-1])
        return f"the model costs {money.rate(-saved)} more a decision ({excess})"
    if not bounds.any():
        return "that is the same"
    return f"the difference may be chance (the model saves {money.between(bounds)} a decision)"


def _few_costly(compared: Comparison) -> str:
    """Warn if there are too few mistakes for an interval."""
    if compared.n_costly >= _FEW_COSTLY:
        return ""
    return paragraph(
        f"Decisions that cost anything: {compared.n_costly}. That is too few for a "
        "reliable interval: evaluate the model on more samples."
    )


def _prices(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Show the cost matrix."""
    costs = evidence.costs
    mistakes = np.where(np.eye(len(costs), dtype=bool), -np.inf, costs)
    i, j = np.unravel_index(mistakes.argmax(), costs.shape)
    truth, answer = (shorten(evidence.labels[k], _MAX_CELL_LENGTH) for k in (i, j))
    text = (
        money.unit("The price of each answer, given the truth")
        + f". The most expensive mistake is to answer “{answer}” where “{truth}” is true: "
        f"{money.amount(costs[i, j])}."
    )
    trained = getattr(evidence.classifier, "cost_matrix_", None)
    if evidence.prices.of_samples:
        text += " Prices differ from sample to sample: these are their averages."
    elif trained is not None and not np.allclose(_of_mistakes(trained), _of_mistakes(costs)):
        text += " These are not the costs that the model was made for."
    return paragraph(text) + _matrix(
        evidence,
        costs / (costs.max() or 1.0),
        [[number(cost) if cost else "" for cost in row] for row in costs],
        [[money.amount(cost) for cost in row] for row in costs],
    )


def _of_mistakes(costs: FloatArray) -> FloatArray:
    """Return what mistakes cost more than being right, which is all that decisions depend on."""
    return np.asarray(costs - np.diagonal(costs)[:, np.newaxis])


def _confusion(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Show what each answer cost, and how often it was given."""
    counts = evidence.counts
    display = CostConfusionDisplay(
        evidence.charged, counts, display_labels=[_drawn(label) for label in evidence.labels]
    ).plot(colorbar=False)
    display.ax_.set(xlabel="answer", ylabel="truth", title="")
    return paragraph(f"{np.trace(counts) / counts.sum():.1%} of the answers are right.") + plot(
        display.figure_,
        money.unit("What the answers cost in all")
        + ", by truth and answer, and below it how often they were given. The darker, the larger "
        "the share of the whole cost.",
        min_width=_MIN_CELL_WIDTH * len(counts),
    )


def _where_money_goes(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """List costs by class and by kind of mistake, the most expensive first."""
    total = evidence.charged.sum()
    if not total:
        return paragraph("No decision cost anything.")
    return (
        paragraph("By truth:")
        + _costs_by_class(evidence, total, money)
        + paragraph("By kind of mistake:")
        + _costs_by_mistake(evidence, total, money)
    )


def _costs_by_class(evidence: Evidence, total: float, money: Money) -> str:
    by_class, n_samples = evidence.charged.sum(axis=1), evidence.counts.sum(axis=1)
    right = np.diagonal(evidence.counts)
    order = [i for i in np.argsort(-by_class, kind="stable").tolist() if n_samples[i]]
    rows = [
        [
            evidence.labels[i],
            f"{n_samples[i]:,}",
            f"{right[i] / n_samples[i]:.0%}",
            money.rate(by_class[i] / n_samples[i]),
            money.amount(by_class[i]),
            f"{by_class[i] / total:.1%}",
        ]
        for i in order
    ]
    head = ["truth", "samples", "right", "cost each", "cost in all", "share"]
    bars = (by_class[order] / by_class.max()).tolist()
    return table(rows, head, max_length=_MAX_CELL_LENGTH, shares=bars)


def _costs_by_mistake(evidence: Evidence, total: float, money: Money) -> str:
    charged, labels = evidence.charged, evidence.labels
    costly = [cell for cell in _descending(charged) if charged[cell] > 0]
    shown, others = costly[:_MAX_MISTAKES], costly[_MAX_MISTAKES:]
    rows = [
        [
            labels[i],
            labels[j] if i != j else f"{labels[j]} (right)",
            f"{evidence.counts[i, j]:,}",
            money.amount(evidence.costs[i, j]),
            money.amount(charged[i, j]),
            f"{charged[i, j] / total:.1%}",
        ]
        for i, j in shown
    ]
    bars = [charged[cell] / charged.max() for cell in shown]
    if others:
        count = sum(int(evidence.counts[cell]) for cell in others)
        rest = sum(float(charged[cell]) for cell in others)
        rows.append([f"{len(others):,} other kinds", "", f"{count:,}", "", money.amount(rest),
                     f"{rest / total:.1%}"])  # fmt: skip
        bars.append(0.0)
    head = ["truth", "answer", "count", "price", "cost in all", "share"]
    return table(rows, head, n_text=2, max_length=_MAX_CELL_LENGTH, shares=bars)


def _other_ways(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Compare ways to decide, in a picture and a table."""
    rows = [
        [
            way.name,
            money.rate(average),
            money.between(compared.intervals[i]),
            money.amount(average * len(evidence.truth)),
            f"{(way.answers != evidence.truth).mean():.1%}",
            money.rate(compared.saved[i]) if i else "",
            money.between(compared.saved_intervals[i]) if i else "",
        ]
        for i, (way, average) in enumerate(zip(compared.ways, compared.averages, strict=True))
    ]
    interval = f"{LEVEL} % interval"
    head = ["", "average cost", interval, "in all", "wrong", "model saves", interval]
    text = (
        "All ways decide on the same samples. The best constant is chosen with hindsight, on these "
        "very samples. What the model saves is negative where it costs more; an interval with "
        "zero inside is no clear difference."
    )
    text += "".join(f" {way.remark}" for way in compared.ways if way.remark)
    if evidence.training is None:
        text += " Given the training samples, there would be rivals here that are fitted to them."
    return _bars(compared, money) + table(rows, head, max_length=60) + paragraph(text)


def _bars(compared: Comparison, money: Money) -> str:
    """Draw the average costs."""
    averages, places = compared.averages, range(len(compared.ways))
    reach = np.abs(compared.intervals - averages[:, np.newaxis]).T
    figure, axes = canvas(None, 7.2, 0.9 + 0.42 * len(places))
    colours = [PALETTE[3 if way.kind == "model" else 0] for way in compared.ways]
    axes.barh(places, averages, xerr=reach, color=colours, ecolor="black", capsize=3)
    axes.set_yticks(places, [_drawn(way.name, 60) for way in compared.ways])
    axes.set(
        xlabel=_drawn(money.unit(COST_UNIT), 60), xlim=(0, None), ylim=(len(places) - 0.4, -0.6)
    )
    axes.spines[["top", "right"]].set_visible(False)
    return plot(figure, f"Average cost of a decision, with {LEVEL} % intervals.")


def _asking(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Tell what decisions cost if a person may be asked, at that price and at others."""
    if evidence.abstain is None:
        return ""
    if evidence.probabilities is None:
        return paragraph("The model has no probabilities, so it cannot tell when to ask a person.")
    expected = evidence.prices.expected(evidence.probabilities)
    alone = evidence.prices.paid(evidence.truth, expected.argmin(axis=1))

    def outcome(price: float) -> tuple[float, float]:
        """Share of the samples that are handed to a person, and the average cost then."""
        asked = is_asked(expected, price)
        return float(asked.mean()), float(np.where(asked, price, alone).mean())

    share, cost = outcome(evidence.abstain)
    never = float(alone.mean())
    text = (
        f"A person is asked where no answer is expected to cost less than that. At "
        f"{money.amount(evidence.abstain)} each, {share:.1%} of the samples are handed to a "
        f"person, and a decision costs {money.rate(cost)} on average, asking included; without "
        f"asking it costs {money.rate(never)}. All these decisions are those of minimum expected "
        "cost by the probabilities of the model; the person is taken to be always right."
    )
    rows = []
    for price in (factor * evidence.abstain for factor in _ASKING_FACTORS):
        share, cost = outcome(price)
        rows.append(
            [money.amount(price), f"{share:.1%}", money.rate(cost), money.rate(never - cost)]
        )
    head = ["price of asking", "asked", "average cost", "saved by asking"]
    return paragraph(text) + table(rows, head)


def _curve(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Draw the cost after each round."""
    if not hasattr(evidence.classifier, "staged_predict") or evidence.prices.of_samples:
        return ""
    classes = np.asarray(evidence.classifier.classes_)
    sets = {"these samples": (evidence.features, classes[evidence.truth])}
    if evidence.training is not None:
        features, truth = evidence.training
        sets = {"training samples": (features, classes[truth])} | sets
    try:
        display = CostCurveDisplay.from_estimator(
            evidence.classifier, sets=sets, cost_matrix=evidence.costs
        )
    except AttributeError:  # its rule needs probabilities after each round, which not all have
        return ""
    display.ax_.set_ylabel(_drawn(money.unit(COST_UNIT), 60))
    return plot(
        display.figure_,
        "What a decision costs if only the first trees decide. The circle is the minimum cost on "
        "these samples, which is hindsight: choose the number of trees on other samples, as early "
        "stopping does.",
    )


def _sensitivity(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Show which prices matter for the decisions."""
    if evidence.probabilities is None:
        return paragraph("The model has no probabilities, so this is not known.")
    if evidence.prices.of_samples:
        return paragraph("Every sample has prices of its own, so this was not tried.")
    beliefs, costs, labels = evidence.probabilities, evidence.costs, evidence.labels
    doubled, halved = (shift(beliefs, costs, evidence.truth, factor) for factor in (2.0, 0.5))
    text = (
        "Share of the decisions that change if one price is doubled and all others stay. The "
        "decisions are those of minimum expected cost under the probabilities that the model has "
        "now: training is not repeated, and a model that is trained anew may shift more, or less. "
        "Where nothing changes, the exact price hardly matters."
    )
    remarks = [
        [
            f"{money.amount(costs[i, j])}; if doubled {doubled.changed[i, j]:.2%}, "
            f"if halved {halved.changed[i, j]:.2%} of the decisions change"
            for j in range(len(labels))
        ]
        for i in range(len(labels))
    ]
    parts = paragraph(text) + _matrix(
        evidence,
        doubled.changed / (doubled.changed.max() or 1.0),
        [[_percent(share) for share in row] for row in doubled.changed],
        remarks,
    )
    strongest = np.maximum(doubled.changed, halved.changed)
    now = evidence.confusion(minimum_cost_decision(beliefs, costs))
    rows = [
        [
            labels[i],
            labels[j],
            money.amount(costs[i, j]),
            f"{doubled.changed[i, j]:.1%}",
            f"{now[i, j]} → {doubled.mistakes[i, j]}",
            f"{halved.changed[i, j]:.1%}",
            f"{now[i, j]} → {halved.mistakes[i, j]}",
        ]
        for i, j in _descending(strongest)[:_MAX_PRICES_LISTED]
        if strongest[i, j] > 0
    ]
    if not rows:
        return parts + paragraph("No decision changes, whichever price is doubled or halved.")
    head = ["truth", "answer", "price", "if doubled", "this mistake", "if halved", "this mistake"]
    return (
        parts
        + paragraph("The prices that matter most, and how often that mistake is made then:")
        + table(rows, head, n_text=2, max_length=_MAX_CELL_LENGTH)
    )


def _reliability(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Compare probabilities with what happened, and expected with paid costs."""
    beliefs = evidence.probabilities
    if beliefs is None:
        return ""
    charges = evidence.prices.expected(beliefs)
    expected = charges[np.arange(len(beliefs)), evidence.answers].mean()
    parts = paragraph(
        f"By its own probabilities the decisions of the model should cost {money.rate(expected)} "
        f"each; they cost {money.rate(compared.averages[0])}."
    )
    n_groups = min(_RELIABILITY_GROUPS, len(beliefs) // _MIN_IN_GROUP)
    if n_groups < 2:
        return parts
    confidence, is_right = beliefs.max(axis=1), beliefs.argmax(axis=1) == evidence.truth
    groups = np.array_split(np.argsort(confidence, kind="stable"), n_groups)
    said, right = ([float(of[group].mean()) for group in groups] for of in (confidence, is_right))
    figure, axes = canvas(None, 4.6, 4.2)
    axes.plot(
        [0, 1], [0, 1], color="gray", linestyle="dashed", linewidth=1, label="as it should be"
    )
    axes.plot(said, right, color=PALETTE[0], marker="o", label="the model")
    limits = (min(*said, *right, 0.9) - 0.05, 1.02)
    axes.set(xlabel="probability of the most probable class", ylabel="share that is right",
             aspect=1, xlim=limits, ylim=limits)  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(edgecolor="none")
    sizes = " or ".join(str(size) for size in sorted({len(group) for group in groups}))
    return parts + plot(
        figure,
        f"{n_groups} groups of {sizes} samples each, by how sure the model is. Below the dashed "
        "line it is more confident than it should be.",
    )


def _importances(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Draw the features that matter most."""
    owners = [evidence.classifier, getattr(evidence.classifier, "estimator_", None)]
    owner = next((owner for owner in owners if hasattr(owner, "feature_importances_")), None)
    if owner is None:
        return ""
    names = evidence.feature_names
    display = FeatureImportancesDisplay(
        owner.feature_importances_,
        feature_names=None if names is None else [_drawn(str(name), 30) for name in names],
    ).plot()
    return plot(
        display.figure_,
        "How much the splits on each feature gain, as a share of all. Features that say the same "
        "share their importance, and an important one need not be a cause.",
    )


def _method(evidence: Evidence, compared: Comparison, money: Money) -> str:
    """Say how the figures came about."""
    text = (
        f"Samples: {len(evidence.truth):,}; decisions that cost something: {compared.n_costly:,}. "
        f"Intervals hold the middle {LEVEL} % of {N_RESAMPLES:,} averages over samples that are "
        "drawn again from these (percentile bootstrap); they do not tell what another training "
        "would change. If the model was trained on any of these samples, these costs are too low."
    )
    booster, parameters = evidence.booster, {}
    if hasattr(booster, "n_estimators_"):
        parameters["rounds kept"] = booster.n_estimators_
    for owner in {id(owner): owner for owner in (booster, evidence.classifier)}.values():
        parameters |= owner.get_params(deep=False) if hasattr(owner, "get_params") else {}
    rows = [
        [name, " ".join(repr(value).split())]
        for name, value in parameters.items()
        if name not in ("estimator", "cost_matrix", "callbacks", "verbose")
    ]
    return paragraph(text) + (
        table(rows, ["parameter", "value"], n_text=2, max_length=_MAX_CELL_LENGTH) if rows else ""
    )


Section = Callable[[Evidence, Comparison, Money], str]
SECTIONS: dict[str, Section] = {
    "In short": _in_short,
    "What mistakes cost": _prices,
    "What was answered": _confusion,
    "Where the money goes": _where_money_goes,
    "Other ways to decide": _other_ways,
    "If a person is asked": _asking,
    "Cost and number of trees": _curve,
    "If a price were different": _sensitivity,
    "Can the probabilities be trusted?": _reliability,
    "Features": _importances,
    "How this was measured": _method,
}


def _matrix(
    evidence: Evidence,
    shades: FloatArray,
    texts: Sequence[Sequence[str]],
    remarks: Sequence[Sequence[str]],
) -> str:
    """Show a matrix by truth and answer, with remarks that name the cell."""
    labels = evidence.labels
    named = [
        [f"truth {truth}, answer {answer}: {remarks[i][j]}" for j, answer in enumerate(labels)]
        for i, truth in enumerate(labels)
    ]
    return heat_table(shades.tolist(), texts, labels, remarks=named)


def _descending(matrix: FloatArray) -> list[tuple[int, int]]:
    """Return the cells of a matrix, those of the largest values first."""
    order = np.argsort(-matrix.ravel(), kind="stable").tolist()
    return [divmod(cell, len(matrix)) for cell in order]


def _drawn(text: str, max_length: int = _MAX_NAME_LENGTH) -> str:
    """Return text for a picture: short, and without formulas."""
    return shorten(text, max_length).replace("$", r"\$")


def _percent(share: float) -> str:
    """Return a share for a small cell; nothing if it is zero."""
    if not share:
        return ""
    return f"{share:.0%}" if share >= 0.095 else f"{share:.1%}"
