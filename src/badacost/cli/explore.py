"""``badacost explore``: a page to move prices on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.options import Force, MaxMemory, Model, Page, Title
from badacost.cli.printing import note, plain_errors, warnings_as_notes
from badacost.cli.table_inputs import (
    check_output,
    costs_of_classes,
    known_rows,
    make_folder,
    table_model,
)

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular import TableClassifier


@plain_errors("Stopped: nothing was written.")
def explore(
    model: Model,
    data: Annotated[
        Path,
        typer.Option(
            help="A table of rows that the model was not fitted to, with or without the classes."
        ),
    ],
    output: Page = Path("explorer.html"),
    target: Annotated[
        str | None, typer.Option(help="Column of the classes; that of the fit by default.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="The table that the model was fitted to: adds boosting that is trained on it "
            "without any costs."
        ),
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(help="CSV file of other costs than those of the fit.")
    ] = None,
    abstain: Annotated[
        float | None, typer.Option(help="Price of asking a person.", metavar="PRICE")
    ] = None,
    currency: Annotated[str | None, typer.Option(help="Unit of the costs, as EUR.")] = None,
    title: Title = None,
    max_rows: Annotated[
        int, typer.Option(help="Maximum number of rows: of more, a random sample.")
    ] = 20_000,
    max_memory: MaxMemory = None,
    force: Force = False,
) -> None:
    """Write a page on which prices can be moved, to see at once what follows for the decisions.

    The page is one HTML file for any browser, without a server: an editable matrix of prices, the
    average price against other ways to decide, the rows whose decision changes, and how far each
    price can move. It saves prices as the file that `badacost fit --costs` reads.

    Without the classes of the rows, figures are expected prices under the probabilities.

    Exit status: 0 if all went well, 1 if not, 130 after Ctrl-C.
    """
    from badacost.cost_report import CostExplorer

    check_output(output, force)
    fitted = table_model(model)
    frame, truth = _rows(data, fitted, target)
    options: dict[str, Any] = {"abstain": abstain, "currency": currency, "title": title}
    if train is not None:
        X, y = _rows(train, fitted, target)
        if y is None or truth is None:
            raise ValueError("--train compares by what was true: give tables with the classes.")
        options |= {"train": (X, y), "n_jobs": -1}
    prices = None if costs is None else costs_of_classes(costs, fitted.classes_.tolist())
    with warnings_as_notes():
        explorer = CostExplorer.from_estimator(
            fitted, frame, truth, costs=prices, max_rows=max_rows, **options
        )
    note(explorer.note)
    explorer.save(make_folder(output))
    typer.echo(f"The page is in {output}.")


def _rows(path: Path, model: TableClassifier, target: str | None) -> tuple[pd.DataFrame, Any]:
    """Read a table for a model, and its classes if it has them."""
    from badacost.tabular import read_table
    from badacost.tabular.frames import check_columns
    from badacost.tabular.target import known_labels

    frame = read_table(path, like=model)
    check_columns(frame, [*model.feature_names_in_, *([target] if target else [])], repr(str(path)))
    name = target or model.target_name_
    if name is None or name not in frame.columns or frame[name].isna().all():
        note("the classes of the rows are not known: all figures are expected prices.")
        return frame, None
    frame = known_rows(frame, name)
    return frame, known_labels(frame[name], model.classes_, str(name))
