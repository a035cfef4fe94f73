"""``badacost fit``: from a table and prices of mistakes to a model in a file."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from badacost.cli import options
from badacost.cli.cost_tables import show_contest
from badacost.cli.printing import note, plain_errors, warnings_as_notes, write_json
from badacost.cli.table_inputs import (
    check_output,
    costs_command,
    costs_of_classes,
    make_folder,
    table_with_target,
    weights_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular import CostSummary, TableClassifier

ALGORITHMS = (
    "costboost", "badacost", "samme", "adaboost-m1", "adac2m1", "piboost", "lp-csb",
    "wang-multiboost", "cs-adaboost", "cost-generalized",
)  # fmt: skip
"""Names of `badacost.tabular.ALGORITHMS`, which takes long to import."""
_AUTO = "auto"
_NOT_FOR_AUTO = {
    "--trees", "--depth", "--learning-rate", "--decision", "--early-stopping", "--holdout",
    "--no-refit",
}  # fmt: skip


@plain_errors("Stopped: no model was written.")
def fit(
    context: typer.Context,
    data: options.Table,
    target: options.Target,
    costs: Annotated[
        Path | None,
        typer.Option(help="CSV file with the price of each mistake; badacost costs makes one."),
    ] = None,
    output: Annotated[Path, typer.Option(help="File for the model.")] = Path("model.badacost"),
    algorithm: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(ALGORITHMS)}. Or {_AUTO}: the cheapest of costboost, badacost, samme "
            "and, if they are installed, LightGBM and CatBoost, in cross-validation.",
        ),
    ] = "costboost",
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
        Literal["margin", "bayes"] | None,
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
            help="Share of the rows held out for evaluation, 0 for no evaluation. By default 0.2, "
            "and 5-fold cross-validation of up to 2000 rows.",
        ),
    ] = None,
    no_refit: Annotated[
        bool,
        typer.Option("--no-refit", help="Keep the model of the rows that are not held out."),
    ] = False,
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
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    max_memory: options.MaxMemory = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit a classifier to a table under the prices of mistakes, and tell what it saves.

    Numbers, True and False, dates and text can be columns; empty cells are missing values. What
    decisions cost is measured on rows that the model was not fitted to, in cross-validation or, for
    more than 2000 rows, on a fifth of them. It is shown beside boosting that was trained and tuned
    without any prices, and beside the best constant answer; the model file keeps these figures.
    The depth of trees is chosen on the rows of each fit, unless --depth is given; costboost needs
    no such choice. Then the model is fitted to all rows.

    Costs are a table whose first column names the truth and whose first line names the answers.
    `badacost costs DATA --target COLUMN --output costs.csv` writes one to fill in.

    Exit status: 0 if the model was written, 1 if not, 130 after Ctrl-C.
    """
    from badacost._utils.validation import check_choice

    begin = time.monotonic()
    options.check_jobs(jobs)
    check_choice("--algorithm", algorithm, (*ALGORITHMS, _AUTO))
    check_output(output)
    if target in (drop or []) or target == weight:
        raise ValueError(
            f"--target {target!r:.80} cannot be left out or be the weight, too: name other "
            "columns as --drop and --weight."
        )
    if costs is None:
        raise ValueError(
            "mistakes have no prices yet: write a table of them with "
            f"`{costs_command(data, target)}`, put your prices in the place of the ones, and add "
            "--costs costs.csv."
        )
    if algorithm == _AUTO:
        options.refuse(
            [name for name in options.given(context) if name in _NOT_FOR_AUTO],
            "--algorithm auto compares algorithms as they are, on all rows",
        )
    from badacost.costs import is_template
    from badacost.tabular import contenders, fit_and_try, new_model
    from badacost.tabular.trials import DEPTHS

    frame, prices, weights = _inputs(data, target, costs, drop or [], weight)
    if is_template(prices):
        note(f"every mistake costs 1, as in a new template: write your prices into {costs}.")
    models: Any
    if algorithm == _AUTO:
        models, not_installed = contenders(prices, n_jobs=jobs, random_state=seed)
        if not_installed and not quiet:
            remedy = 'pip install "badacost[boosters]"'
            note(f"not compared: {', '.join(not_installed)}; to add them, type {remedy}.")
    else:
        given = {
            "n_estimators": trees,
            "max_depth": depth,
            "learning_rate": learning_rate,
            "early_stopping": early_stopping or None,
            "n_jobs": jobs,
            "random_state": seed,
            "verbose": int(not quiet),
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        models = new_model(algorithm, prices, decision=decision, **chosen)
    with warnings_as_notes():
        model = fit_and_try(
            models,
            frame,
            target,
            sample_weight=weights,
            holdout=holdout,
            refit=not no_refit,
            depths=DEPTHS if depth is None else None,
            random_state=seed,
            n_jobs=jobs,
            announce=None if quiet else lambda text: typer.echo(text, err=True),
            verbose=not quiet,
        )
    if "verbose" in model.estimator_.get_params(deep=False):
        model.estimator_.set_params(verbose=0)
    replaced = output.exists()
    _save(model, output)
    for text in model.encoder_.notes_:
        note(text)
    if as_json:
        write_json(
            _results(model, output, algorithm)
            | {"replaced": replaced, "seconds": time.monotonic() - begin}
        )
    elif not quiet:
        _show(model, output, algorithm, replaced)


def _save(model: TableClassifier, output: Path) -> None:
    """Save a model, elsewhere where its file cannot be written: the fit may have taken long."""
    try:
        model.save(make_folder(output))
    except OSError as error:
        try:
            folder = tempfile.mkdtemp(prefix="badacost-")
        except OSError:
            raise error from None
        spare = Path(folder, output.name)
        try:
            model.save(spare)
        except OSError:
            shutil.rmtree(folder)
            raise error from None
        raise OSError(f"{error} The model was saved as '{spare}' instead.") from error


def _inputs(
    data: Path, target: str, costs: Path, drop: list[str], weight: str | None
) -> tuple[pd.DataFrame, dict[Any, dict[Any, float]], Any]:
    """Read the table, the prices and the weights of rows."""
    from badacost.tabular.frames import check_columns
    from badacost.tabular.target import target_labels

    frame = table_with_target(data, target)
    check_columns(frame, drop, repr(str(data)))
    weights = weights_of(frame, weight)
    frame = frame.drop(columns=list({*drop, *([weight] if weight else [])}))
    labels = target_labels(frame[target], target)
    return frame, costs_of_classes(costs, sorted(set(labels.tolist()))), weights


def _results(model: TableClassifier, output: Path, algorithm: str) -> dict[str, Any]:
    from badacost.cost_report.evidence import out_of_fold_cost
    from badacost.cost_report.naming import kind_name, rule_of

    estimator = model.estimator_
    return {
        "model": str(output),
        "algorithm": algorithm,
        "chosen": kind_name(estimator),
        "decision": rule_of(model),
        "target": model.target_name_,
        "classes": model.classes_,
        "costs": model.cost_matrix_,
        "n_rows": model.n_rows_,
        "columns": model.feature_names_in_,
        "depth": getattr(estimator, "max_depth", None),
        "n_trees": getattr(estimator, "n_estimators_", estimator.forest_.n_trees),
        "held_out": None if model.held_out_ is None else model.held_out_.to_dict(),
        "out_of_fold_cost": out_of_fold_cost(estimator, model.cost_matrix_),
        "notes": model.encoder_.notes_,
    }


def _verdict(summary: CostSummary, algorithm: str) -> str:
    """Say what the table of costs cannot say: what is cheaper, and what is not in it."""
    cheapest = min(summary.rivals, key=lambda way: summary.rivals[way])
    if summary.absent:
        return "Mistakes on classes without rows are not in these figures: collect more rows.\n"
    if summary.rivals[cheapest] < summary.average_cost:
        sure = "" if summary.is_clear(cheapest) else "; the difference may be chance"
        remedy = "" if algorithm == _AUTO else " Try --algorithm auto."
        return f"Cheaper than the model: {cheapest}{sure}.{remedy}\n"
    if summary.average_cost == 0.0 < summary.constant_cost:
        return (
            "No decision cost anything: check that no column is known only afterwards, and leave "
            "such columns out with --drop.\n"
        )
    return ""


def _show(model: TableClassifier, output: Path, algorithm: str, replaced: bool) -> None:
    """What decisions cost, and what the file holds."""
    from badacost.cost_report.naming import kind_name, model_name

    estimator, summary = model.estimator_, model.held_out_
    if summary is not None:
        title = f"What a decision costs: {summary.rows}"
        show_contest(summary, model_name(model), title)
        typer.echo(_verdict(summary, algorithm), nl=False)
    if hasattr(estimator, "n_estimators_"):
        n_rounds = estimator.n_estimators_
        size = f"{n_rounds} round{'s' * (n_rounds != 1)} of depth {estimator.max_depth}"
    else:
        size = f"{estimator.forest_.n_trees} trees"
    quoted = shlex.quote(str(output))
    typer.echo(
        f"The model, {kind_name(estimator)} with {size}, fitted to {model.n_rows_} rows, is in "
        f"{output}{', where it replaced another' * replaced}.\n"
        f"Decisions for other rows: badacost predict {quoted} OTHER.csv\n"
        f"Prices to try out:        badacost explore {quoted} --data OTHER.csv"
    )
