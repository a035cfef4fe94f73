"""Tables, models and costs that commands read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from badacost.cli.printing import note
from badacost.io.atomic_file import plain_write_errors, replaced_file

if TYPE_CHECKING:
    import pandas as pd

    from badacost.tabular import TableClassifier


def table_with_target(
    path: Path, target: str, model: TableClassifier | None = None
) -> pd.DataFrame:
    """Read a table, for a model if there is one, without the rows whose class is not known.

    Classes that are texts of numbers become numbers.
    """
    from badacost.tabular import read_table
    from badacost.tabular.frames import check_columns
    from badacost.tabular.target import classes_in_text

    frame = read_table(path, like=model, text=[target])
    check_columns(frame, [target], repr(str(path)))
    frame = known_rows(frame, target)
    if frame.empty:
        raise ValueError(f"column {target!r:.80} of {str(path)!r} is empty: fill in classes.")
    return frame.assign(**{target: classes_in_text(frame[target])})


def known_rows(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    """Leave out the rows whose class is not known, and say so unless that is all."""
    known = frame[target].notna()
    n_unknown = int((~known).sum())
    if 0 < n_unknown < len(frame):
        note(
            f"{n_unknown} of {len(frame)} rows have no {target!r:.80} and are left out; NA, N/A, "
            "NaN, null and ? stand for no value in files of text: if one is a class, rename it."
        )
    return frame[known]


def target_of(model: TableClassifier, given: str | None) -> str:
    """Return the column of the classes: the one that is given, or else that of the fit."""
    target: str | None = given or model.target_name_
    if target is None:
        raise ValueError("the model does not know the column of the classes: add --target.")
    return target


def weights_of(frame: pd.DataFrame, column: str | None) -> Any:
    """Return the weights of rows, (n_rows,), or None without a column of weights."""
    if column is None:
        return None
    from badacost._utils.validation import check_sample_weight
    from badacost.tabular.columns import Column
    from badacost.tabular.frames import check_columns, place_of

    check_columns(frame, [column])
    values = frame[column]
    try:
        weight = Column(column, "number").encode(values)
        for wrong, reason in (
            (np.isnan(weight), "is empty in {}: write 0 for a row that should not count."),
            (weight < 0.0, "is negative in {}: write 0 or more."),
        ):
            if wrong.any():
                place = place_of(values, int(np.flatnonzero(wrong)[0]))
                raise ValueError(f"it {reason.format(place)}")
        return check_sample_weight(weight, len(frame), f"column {column!r:.80}")
    except ValueError as error:
        raise ValueError(f"--weight {column!r:.80} is of no use: {error}") from error


def is_classifier(path: Path) -> bool:
    """Tell whether a file is a saved model, and not that of a detector."""
    from badacost.io.model_file import saved_kind

    return path.is_file() and saved_kind(path) not in (None, "Detector")


def check_model(path: Path) -> None:
    """Refuse a model that is not there."""
    if not path.exists():
        raise FileNotFoundError(f"there is no model {str(path)!r}: check its name and folder.")


def table_model(path: Path) -> TableClassifier:
    """Load a classifier that takes tables."""
    from badacost import load
    from badacost.tabular import TableClassifier

    check_model(path)
    model = load(path)
    if not hasattr(model, "classes_"):
        raise ValueError(
            f"{str(path)!r} holds a {type(model).__name__}, which is not for tables: name a model "
            "of badacost fit, or use badacost detect."
        )
    return TableClassifier.of_fitted(model)


def costs_of_classes(path: Path, classes: Iterable[Any] | None) -> dict[Any, dict[Any, float]]:
    """Read a file of costs for these classes, or for those that it names."""
    from badacost.costs import read_costs

    if path.is_dir():
        raise IsADirectoryError(f"--costs {str(path)!r} is a folder: name a file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file of costs {str(path)!r}: check its name.")
    return read_costs(path, classes=classes)


def costs_command(data: Path, target: str) -> str:
    """Return the command that writes a table of costs to fill in."""
    words = ["badacost", "costs", str(data), "--target", target, "--output", "costs.csv"]
    return shlex.join(words)


def check_output(path: Path, force: bool = True, option: str = "--output") -> None:
    """Refuse what cannot be the place of a file, or exists without --force; nothing is made yet."""
    if path.is_dir():
        raise IsADirectoryError(f"{option} {str(path)!r} is a folder: name a file.")
    nearest = next((folder for folder in path.parents if folder.exists()), None)
    if nearest is not None and nearest.is_dir() and not os.access(nearest, os.W_OK):
        raise PermissionError(
            f"{option} {str(path)!r} cannot be written, since the folder {str(nearest)!r} is "
            "read-only: name another."
        )
    for folder in path.parents:
        if folder.is_file():
            raise NotADirectoryError(
                f"{option} {str(path)!r} cannot be written, since {str(folder)!r} is a file: name "
                "a folder."
            )
    if path.exists() and not force:
        raise FileExistsError(f"{str(path)!r} exists: add --force to replace it.")


def make_folder(path: Path) -> Path:
    """Make the folder of a file to write, and return its path."""
    with plain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


def save_picture(picture: Any, path: Path) -> None:
    """Write a picture of PIL in the format of its suffix; an earlier one stays until then."""
    from PIL import Image

    format = Image.registered_extensions().get(path.suffix.lower())
    if format not in Image.SAVE:
        raise ValueError(f"{str(path)!r} must have the suffix of a picture, such as .png.")
    # By name, Pillow 11 looks for another file.
    with replaced_file(make_folder(path)) as temporary, temporary.open("w+b") as file:
        picture.save(file, format)
