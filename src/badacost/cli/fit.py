"""``badacost fit``: from a table and prices of mistakes to a model in a file."""

from __future__ import annotations

import math
import shlex
import time
from dataclasses import asdict
from enum import StrEnum
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.cost_tables import money, show_contest, show_trials
from badacost.cli.errors import plain_errors, refuse_options
from badacost.cli.jobs import check_jobs
from badacost.cli.json_output import note, warnings_as_notes, write_json
from badacost.cli.table_inputs import (
    check_output_file,
    check_place,
    costs_of_classes,
    table_with_target,
    weights_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular import TableClassifier, Trial

_HOLDOUT = 0.2
_WORTH_A_HINT = 0.95


class Algorithm(StrEnum):
    """What to fit."""

    costboost = "costboost"
    auto = "auto"
    badacost = "badacost"
    samme = "samme"
    adaboost_m1 = "adaboost-m1"
    adac2m1 = "adac2m1"
    piboost = "piboost"
    lp_csb = "lp-csb"
    wang_multiboost = "wang-multiboost"
    cs_adaboost = "cs-adaboost"
    cost_generalized = "cost-generalized"


_CLASSES = {
    Algorithm.costboost: "CostBoostClassifier",
    Algorithm.badacost: "BAdaCostClassifier",
    Algorithm.samme: "SAMMEClassifier",
    Algorithm.adaboost_m1: "AdaBoostM1Classifier",
    Algorithm.adac2m1: "AdaC2M1Classifier",
    Algorithm.piboost: "PIBoostClassifier",
    Algorithm.lp_csb: "LpCSBClassifier",
    Algorithm.wang_multiboost: "WangMultiBoostClassifier",
    Algorithm.cs_adaboost: "CSAdaBoostClassifier",
    Algorithm.cost_generalized: "CostGeneralizedAdaBoostClassifier",
}


class Decision(StrEnum):
    """Rules of decision."""

    margin = "margin"
    bayes = "bayes"


def fit(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .tsv, either with .gz, .parquet.")],
    target: Annotated[str, typer.Option(help="Column of the classes.")],
    costs: Annotated[
        Path | None,
        typer.Option(help="CSV file with the price of each mistake; badacost costs makes one."),
    ] = None,
    output: Annotated[Path, typer.Option(help="File for the model.")] = Path("model.badacost"),
    algorithm: Annotated[
        Algorithm,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(_CLASSES)}. Or auto: the cheapest of costboost, badacost, samme and, "
            "if they are installed, LightGBM and CatBoost, in cross-validation.",
        ),
    ] = Algorithm.costboost,
    trees: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Maximum number of boosting rounds; costboost stops where more do not pay.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Depth of a tree. By default the cheapest in cross-validation, 1 to 8; costboost "
            "has a depth of its own.",
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Factor of every step.")
    ] = None,
    decision: Annotated[
        Decision | None,
        typer.Option(
            help="bayes: minimum expected cost, the default where there are probabilities. margin: "
            "the algorithm's own rule, if it has another one."
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.9,
            metavar="SHARE",
            help=f"Share of the rows held out for evaluation; {_HOLDOUT}.",
        ),
    ] = None,
    refit: Annotated[
        bool, typer.Option(help="Fit the model again to all rows after the evaluation.")
    ] = True,
    compare: Annotated[
        bool, typer.Option(help="Also evaluate boosting without costs on the same rows.")
    ] = True,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out; may be repeated.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weights of rows.")] = None,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping",
            help="Stop when a tenth of the training rows gets neither cheaper nor surer; costboost "
            "always stops early, and needs no rows for it.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed, 0 or more.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Threads; -1 is one for each core.")] = -1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the results as JSON.")] = False,
) -> None:
    """Fit a classifier to a table under the prices of mistakes, and tell what it saves.

    Numbers, True and False, dates and text can be columns; empty cells are missing values. A part
    of the rows, the same share of each class, is held out: what decisions on them cost is shown
    beside boosting that does not know the prices, and beside the best constant answer. The depth
    of trees is chosen on the other rows, unless --depth is given; costboost needs no such choice.
    Then the model is fitted again to all rows, unless --no-refit; the figures remain those of the
    first one. With --algorithm auto, cross-validation on all rows tells what decisions cost.

    Costs are a table whose first column names the truth and whose first line names the answers.
    `badacost costs DATA --target COLUMN --output costs.csv` writes one to fill in.

    Exit status: 0 if the model was written, 1 if not, 130 after Ctrl-C.
    """
    with plain_errors("Stopped: no model was written."):
        from badacost.validation import check_number

        begin = time.monotonic()
        check_jobs(jobs)
        check_number("--seed", seed, Integral, low=0, high=2**32 - 1)
        check_place(output)
        if target in (drop or []) or target == weight:
            raise ValueError(
                f"--target {target!r:.80} cannot be left out or be the weight, too: name other "
                "columns as --drop and --weight."
            )
        if costs is None:
            raise ValueError(_explanation(data, target))
        if algorithm is Algorithm.auto:
            refuse_options(
                {
                    "--trees": trees,
                    "--depth": depth,
                    "--learning-rate": learning_rate,
                    "--decision": decision,
                    "--early-stopping": early_stopping,
                    "--holdout": holdout is not None,
                    "--no-refit": not refit,
                    "--no-compare": not compare,
                },
                "--algorithm auto compares algorithms as they are, on all rows",
            )
        from badacost.tabular.frames import check_columns
        from badacost.tabular.target import target_labels
        from badacost.tabular.training import DEPTHS, fit_and_try

        frame = table_with_target(data, target)
        check_columns(frame, drop or [], repr(str(data)))
        weights = weights_of(frame, weight)
        frame = frame.drop(columns=list({*(drop or []), *([weight] if weight else [])}))
        labels = target_labels(frame[target], target)
        prices = costs_of_classes(costs, sorted(set(labels.tolist())))
        common: dict[str, Any] = {
            "sample_weight": weights,
            "random_state": seed,
            "announce": None if quiet else lambda text: typer.echo(text, err=True),
        }
        trials: list[Trial] = []
        with warnings_as_notes():
            if algorithm is Algorithm.auto:
                model, trials = _fit_cheapest(frame, target, prices, jobs, quiet, common)
            else:
                options = _given(
                    n_estimators=trees,
                    max_depth=depth,
                    learning_rate=learning_rate,
                    early_stopping=early_stopping or None,
                ) | {"n_jobs": jobs, "random_state": seed, "verbose": int(not quiet)}
                rule = _decision(algorithm, decision, prices)
                model = fit_and_try(
                    _model(algorithm, rule, prices, options),
                    frame,
                    target,
                    holdout=_HOLDOUT if holdout is None else holdout,
                    refit=refit,
                    compare=compare,
                    depths=DEPTHS if depth is None else None,
                    **common,
                )
                model.classifier_.set_params(verbose=0)
        replaced = output.exists()
        check_output_file(output)
        model.save(output)
        for text in model.encoder_.notes_ if not quiet else []:
            note(text)
        if as_json:
            write_json(
                _results(model, output, algorithm, trials)
                | {"refitted": refit and model.held_out_ is not None}
                | {"replaced": replaced, "seconds": time.monotonic() - begin}
            )
        elif not quiet:
            if model.held_out_ is not None:
                _show_costs(model, algorithm, trials)
            _show_model(model, output, refit, replaced)


def _explanation(data: Path, target: str) -> str:
    command = shlex.join(
        ["badacost", "costs", str(data), "--target", target, "--output", "costs.csv"]
    )
    return (
        f"mistakes have no prices yet: write a table of them with `{command}`, put your prices in "
        "the place of the ones, and add --costs costs.csv."
    )


def _fit_cheapest(
    frame: pd.DataFrame,
    target: str,
    prices: Any,
    jobs: int,
    quiet: bool,
    common: dict[str, Any],
) -> tuple[TableClassifier, list[Trial]]:
    """Compare algorithms, and fit the cheapest."""
    from badacost.tabular import contenders, fit_cheapest
    from badacost.tabular.training import DEPTHS

    models, not_installed = contenders(prices, n_jobs=jobs, random_state=common["random_state"])
    if not_installed and not quiet:
        remedy = 'pip install "badacost[boosters]"'
        typer.echo(f"not installed: {', '.join(not_installed)} ({remedy})", err=True)
    return fit_cheapest(models, frame, target, depths=DEPTHS, verbose=not quiet, **common)


def _given(**options: Any) -> dict[str, Any]:
    """Options that have a value; the others are left to the algorithm."""
    return {name: value for name, value in options.items() if value is not None}


def _decision(algorithm: Algorithm, asked: Decision | None, costs: Any) -> Decision:
    """The rule that was asked for, or minimum expected cost where there are probabilities."""
    import badacost
    from badacost.costs import as_cost_matrix, is_irreducible

    if algorithm is Algorithm.costboost and asked is Decision.margin:
        raise ValueError("costboost decides by minimum expected cost only: leave --decision out.")
    has_probabilities = hasattr(getattr(badacost, _CLASSES[algorithm]), "predict_proba")
    if asked is Decision.bayes and not has_probabilities:
        raise ValueError(
            f"--decision bayes needs probabilities, which {algorithm.value} has not: leave it out."
        )
    if asked is not None:
        return asked
    if algorithm is Algorithm.badacost:
        has_probabilities = is_irreducible(as_cost_matrix(costs, costs))
    return Decision.bayes if has_probabilities else Decision.margin


def _model(
    algorithm: Algorithm, decision: Decision, costs: Any, options: dict[str, Any]
) -> TableClassifier:
    """What the options ask for, not yet fitted."""
    import badacost
    from badacost.tabular import TableClassifier

    cls = getattr(badacost, _CLASSES[algorithm])
    if algorithm is Algorithm.badacost:
        return TableClassifier(cls(decision=decision.value, **options), cost_matrix=costs)
    by_itself = algorithm is Algorithm.costboost or decision is Decision.margin
    rule: Any = "own" if by_itself else "bayes"
    return TableClassifier(cls(**options), cost_matrix=costs, decision=rule)


def _results(
    model: TableClassifier, output: Path, algorithm: Algorithm, trials: list[Trial]
) -> dict[str, Any]:
    from badacost.cost_report.evidence import out_of_fold_cost
    from badacost.cost_report.naming import kind_name

    classifier = model.classifier_
    return {
        "model": str(output),
        "algorithm": algorithm.value,
        "chosen": kind_name(classifier),
        "decision": _rule_of(model),
        "target": model.target_name_,
        "classes": model.classes_,
        "costs": model.charged_costs_,
        "n_rows": model.n_rows_,
        "columns": model.feature_names_in_,
        "depth": getattr(classifier, "max_depth", None),
        "n_trees": getattr(classifier, "n_estimators_", classifier.forest_.n_trees),
        "held_out": None if model.held_out_ is None else model.held_out_.to_dict(),
        "out_of_fold_cost": out_of_fold_cost(classifier, model.charged_costs_),
        "contest": [asdict(trial) for trial in trials],
        "notes": model.encoder_.notes_,
    }


def _rule_of(model: TableClassifier) -> str:
    """How a model decides."""
    if model.decision == "bayes" or hasattr(model.classifier_, "log_prior_"):
        return Decision.bayes.value
    return str(getattr(model.classifier_, "decision", Decision.margin.value))


def _show_costs(model: TableClassifier, algorithm: Algorithm, trials: list[Trial]) -> None:
    """The table of costs."""
    from badacost.cost_report.naming import model_name
    from badacost.tabular.training import COST_IN_DECISION

    summary: Any = model.held_out_
    if trials:
        title = f"What a decision costs, in cross-validation on {summary.n_rows} rows"
        show_trials(trials, summary, title)
        return
    title = f"What a decision costs, on {summary.n_rows} rows held out"
    show_contest(summary, model_name(model), title)
    recipe = summary.rivals.get(COST_IN_DECISION, math.inf)
    if recipe < _WORTH_A_HINT * summary.average_cost and algorithm is not Algorithm.samme:
        typer.echo("Costs in the decision alone are cheaper here: try --algorithm auto.")


def _show_model(model: TableClassifier, output: Path, refit: bool, replaced: bool) -> None:
    """What the file holds."""
    from badacost.cost_report.evidence import out_of_fold_cost
    from badacost.cost_report.naming import kind_name

    classifier = model.classifier_
    expected = out_of_fold_cost(classifier, model.charged_costs_)
    if expected is not None:
        typer.echo(f"Out of fold: {money(expected)} expected for each decision.")
    if hasattr(classifier, "n_estimators_"):
        n_rounds = classifier.n_estimators_
        size = f"{n_rounds} round{'s' * (n_rounds != 1)} of depth {classifier.max_depth}"
    else:
        size = f"{classifier.forest_.n_trees} trees"
    fitted_to = f"fitted to {'all ' * (refit or model.held_out_ is None)}{model.n_rows_} rows"
    typer.echo(
        f"The model, {kind_name(classifier)} with {size}, {fitted_to}, is in {output}"
        f"{', where it replaced another' * replaced}.\n"
        f"Decisions for other rows: badacost predict {shlex.quote(str(output))} OTHER.csv"
    )
