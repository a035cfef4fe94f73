"""``badacost predict``: decisions of a model for the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.options import MaxMemory, Model, Table
from badacost.cli.printing import plain_errors, warnings_as_notes, write_json
from badacost.cli.table_inputs import check_output, make_folder, table_model

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular import TableClassifier

_ANSWER = "prediction"


@plain_errors("Stopped: nothing was written.")
def predict(
    model: Model,
    data: Table,
    output: Annotated[
        Path | None,
        typer.Option(help="File for the decisions, .csv or .parquet; - or nothing is stdout."),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add P(CLASS) for each class.")
    ] = False,
    expected_costs: Annotated[
        bool,
        typer.Option("--expected-costs", help="Add cost(CLASS): the expected cost of each answer."),
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column to copy to the output; may be repeated.")
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Copy all columns of the table to the output.")
    ] = False,
    max_memory: MaxMemory = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write rows as JSON; with --output a summary as JSON."),
    ] = False,
) -> None:
    """Decide for each row of a table, in its order.

    The column of the answers is called prediction. The table needs the columns that the model was
    fitted to, in any order; others are ignored. Categories that the model has not seen are missing
    values to it. Columns that are copied stand before it, as they are in the table. In CSV files,
    an apostrophe is put before texts that a spreadsheet would take for formulae.

    Exit status: 0 if all went well, 1 if not, 130 after Ctrl-C.
    """
    from badacost.tabular.files import check_table_name, read_table, to_csv, write_table
    from badacost.tabular.frames import check_columns

    path = None if output is None or str(output) == "-" else output
    if path is not None:
        check_output(path)
        check_table_name(path)
    fitted = table_model(model)
    frame = read_table(data, like=fitted)
    check_columns(frame, [*fitted.feature_names_in_, *(keep or [])], repr(str(data)))
    kept = frame[[]]
    if keep_all or keep:  # as they are in the file, not as the model sees them
        cells = read_table(data, like=())
        kept = cells if keep_all else cells[list(dict.fromkeys(keep or []))]
    with warnings_as_notes():
        answers = _answers(fitted, frame, kept, probabilities, expected_costs)
    if path is not None:
        write_table(answers, make_folder(path))
        counts = answers[_ANSWER].astype(str).value_counts().to_dict()
        if as_json:
            write_json({"output": str(path), "n_rows": len(answers), "counts": counts})
        else:
            shown = ", ".join(f"{count} x {name}" for name, count in list(counts.items())[:10])
            typer.echo(f"{len(answers)} decisions are in {path}: {shown:.300}.", err=True)
    elif as_json:
        write_json(_records(answers))
    else:
        sys.stdout.write(to_csv(answers))
        sys.stdout.flush()


def _answers(
    model: TableClassifier,
    frame: pd.DataFrame,
    kept: pd.DataFrame,
    probabilities: bool,
    expected_costs: bool,
) -> pd.DataFrame:
    """The table to write."""
    import pandas as pd

    if (probabilities or expected_costs) and not hasattr(model, "predict_proba"):
        raise ValueError(
            f"this {type(model.estimator_).__name__} has no probabilities: leave out "
            "--probabilities and --expected-costs."
        )
    columns: dict[str, Any] = {_ANSWER: model.predict(frame)}
    if probabilities:
        shares = model.predict_proba(frame)
        columns |= {f"P({name})": shares[:, k] for k, name in enumerate(model.classes_)}
    if expected_costs:
        costs = model.predict_costs(frame)
        columns |= {f"cost({name})": costs[:, k] for k, name in enumerate(model.classes_)}
    for name in kept:
        if name in columns:
            raise ValueError(f"{name!r:.80} to keep is the name of a column of results: rename it.")
    return pd.concat([kept.reset_index(drop=True), pd.DataFrame(columns)], axis=1)


def _records(answers: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON has them, null where a value is missing."""
    plain = answers.astype(object).where(answers.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]
