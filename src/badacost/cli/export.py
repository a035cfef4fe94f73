"""``badacost export``: a model for runtimes without this library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from badacost.cli.options import AsJson, Force, MaxMemory
from badacost.cli.printing import plain_errors, write_json
from badacost.cli.table_inputs import check_model, check_output, make_folder


@plain_errors("Stopped: nothing was written.")
def export(
    model: Annotated[Path, typer.Argument(help="A saved classifier, as of `badacost fit`.")],
    output: Annotated[Path, typer.Option(help="The ONNX file to write.")],
    input_type: Annotated[
        Literal["double", "float"],
        typer.Option(help="Precision of the numbers that the exported model takes."),
    ] = "double",
    ml_opset: Annotated[
        Literal["5", "3"],
        typer.Option(help="Version of the operators for trees; 3 is for older runtimes."),
    ] = "5",
    abstain: Annotated[
        float | None,
        typer.Option(
            help="Price of asking a person: adds an output, named asked, that says when to ask.",
            metavar="PRICE",
        ),
    ] = None,
    max_memory: MaxMemory = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Write a classifier as an ONNX file, which runs without Python and without this library.

    Prints the inputs and outputs of the file. A model of `badacost fit` has an input for each
    column: texts for categories, written as in the training table; numbers for all others, with
    booleans as 0 and 1, dates as days since 1970, and NaN for a missing value.

    Exit status: 0 if all went well, 1 if not, 130 after Ctrl-C.
    """
    from badacost import load
    from badacost.export import to_onnx
    from badacost.io.atomic_file import replaced_file

    check_output(output, force)
    check_model(model)
    fitted = load(model)
    if not hasattr(fitted, "classes_"):
        raise ValueError(
            f"{str(model)!r} holds a {type(fitted).__name__}, which has no counterpart in ONNX: "
            "name a classifier."
        )
    version: Literal[5, 3] = 5 if ml_opset == "5" else 3
    try:
        exported = to_onnx(fitted, input_type=input_type, ml_opset=version, abstain=abstain)
    except TypeError as error:
        raise ValueError(str(error)) from error
    with replaced_file(make_folder(output)) as path:
        path.write_bytes(exported.SerializeToString(deterministic=True))
    values = {"inputs": exported.graph.input, "outputs": exported.graph.output}
    facts = {kind: {value.name: _type(value) for value in part} for kind, part in values.items()}
    if as_json:
        write_json({"output": str(output), "n_bytes": output.stat().st_size, **facts})
        return
    for kind, part in facts.items():
        typer.echo(f"{kind}: " + ", ".join(f"{name} ({what})" for name, what in part.items()))
    typer.echo(f"The model is in {output}.", err=True)


def _type(value: Any) -> str:
    """Type and shape of a value, as in ``double[n, 3]``."""
    from onnx import TensorProto

    tensor = value.type.tensor_type
    shape = [str(size.dim_value) if size.dim_value else "n" for size in tensor.shape.dim]
    return f"{TensorProto.DataType.Name(tensor.elem_type).lower()}[{', '.join(shape)}]"
