"""``badacost experiment``: the paper's tables as programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from badacost.cli.errors import plain_errors
from badacost.cli.jobs import check_jobs

if TYPE_CHECKING:
    from badacost.experiments.uci import Settings
    from badacost.experiments.uci_table import UCITable

_STOPPED = "Stopped. The same command resumes where it stopped."
_Output = Annotated[
    Path, typer.Option(help="Folder for the results; a stopped run is resumed there.")
]
_QuickTables = Annotated[
    bool, typer.Option("--quick", help="Two small data sets, short fits: under a minute.")
]
_Tables = Annotated[
    Path | None, typer.Option(help="Folder of the data sets; see badacost.datasets.load_uci.")
]
_Sets = Annotated[
    str | None, typer.Option(help="Data sets, separated by commas; all twelve by default.")
]
_Published = Annotated[
    list[Path] | None,
    typer.Option(help="File of a published detector to compare with; may be repeated."),
]
_Quick = Annotated[bool, typer.Option("--quick", help="Few trees and images: two minutes.")]
_Paper = Annotated[
    bool, typer.Option("--paper", help="The sizes of the paper, for full data sets: many hours.")
]
_Jobs = Annotated[int, typer.Option(help="Threads; -1 is one for each core.")]
_Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
_Fresh = Annotated[
    bool, typer.Option("--fresh", help="Discard the results of an earlier run in OUTPUT.")
]

app = typer.Typer(help="The paper's tables as programs.", no_args_is_help=True)


@app.callback()
def _experiments() -> None:
    """The paper's tables as programs."""


@app.command()
def uci(
    output: _Output = Path("results"),
    quick: _QuickTables = False,
    data: _Tables = None,
    sets: _Sets = None,
    reading: Annotated[
        str, typer.Option(help="Whose confusion makes the costs: full, tree or training.")
    ] = "full",
    depth: Annotated[int, typer.Option(min=1, help="Depth of the built-in tree.")] = 4,
    rate: Annotated[float, typer.Option(help="Learning rate of its boosters.")] = 0.1,
    folds: Annotated[int | None, typer.Option(min=2, max=10, help="Folds; 5.")] = None,
    pool: Annotated[
        int | None, typer.Option(min=3, help="Trees in the pool of Wang's MultiBoost; 6000.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one for each core.")] = -1,
    seed: _Seed = 0,
    fresh: _Fresh = False,
) -> None:
    """Table 1: average costs of boosting algorithms on twelve UCI data sets.

    Writes uci.md, uci.json, uci.csv and diagrams of the ranks to OUTPUT. Every finished fit is
    recorded at once: after an interruption, the same command resumes where it stopped. With another
    --reading, --depth or --rate, the paper's four algorithms are run and uci-VARIANT.json is
    written; the page of a later main run tells of it.
    """
    with plain_errors(_STOPPED):
        from badacost.experiments.uci import header, run
        from badacost.experiments.uci_report import write_report

        check_jobs(jobs)
        settings = _settings(
            quick,
            sets,
            reading=reading,
            max_depth=depth,
            learning_rate=rate,
            n_folds=folds,
            n_pool=pool,
            seed=seed,
        )
        journal = output / f"{'-'.join(filter(None, ['uci', settings.variant]))}.jsonl"
        _check_folder(output)
        if fresh:
            journal.unlink(missing_ok=True)
        records = run(settings, journal, data=data, n_jobs=jobs)
        table = write_report(header(settings), records, output)
        _show(table)
        typer.echo(f"The page and the numbers are in {output}.")


@app.command()
def rivals(
    output: _Output = Path("results"),
    quick: _QuickTables = False,
    data: _Tables = None,
    sets: _Sets = None,
    contenders: Annotated[
        str | None, typer.Option(help="Contenders, separated by commas; all by default.")
    ] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Splits of each data set; 5.")] = None,
    timing: Annotated[
        bool,
        typer.Option("--timing", help="Measure time on one and on two threads, on one split."),
    ] = False,
    jobs: Annotated[int, typer.Option(help="Fits at the same time; -1 is one for each core.")] = 1,
    seed: _Seed = 0,
    fresh: _Fresh = False,
) -> None:
    """The contest with the rivals: minimum-cost decisions of today's classifiers.

    Writes rivals.md, rivals.json and a diagram of the ranks to OUTPUT. Every finished fit is
    recorded at once: the same command resumes after an interruption, and other contenders, sets or
    splits are added to what is there. --timing has a record of its own, and the page tells of both.
    """
    with plain_errors(_STOPPED):
        from badacost.experiments.rivals import RivalSettings, header, run
        from badacost.experiments.rivals_report import RivalTable, write_report

        check_jobs(jobs)
        if timing and jobs != 1:
            raise ValueError("--timing measures one fit after the other: leave out --jobs.")
        given: dict[str, Any] = {"seed": seed}
        if splits is not None:
            given["n_splits"] = splits
        if sets is not None:
            given["data_sets"] = _names("--sets", "data sets", sets)
        if contenders is not None:
            given["contenders"] = _names("--contenders", "contenders", contenders)
        settings = replace(RivalSettings.of(quick=quick, timing=timing), **given)
        _check_folder(output)
        contest, clock = output / "rivals.jsonl", output / "rivals-timing.jsonl"
        journal = clock if timing else contest
        if fresh:
            journal.unlink(missing_ok=True)
        run(settings, journal, data=data, n_jobs=jobs)
        if not contest.exists():
            typer.echo("The times are recorded: the command without --timing writes the page.")
            return
        table, times = (RivalTable.read(path, header(settings)) for path in (contest, clock))
        write_report(table, times, output)
        if table.can_compare:
            typer.echo(table.comparison(table.costs).to_markdown())
        typer.echo(f"The page and the numbers are in {output}.")


@app.command()
def cars(
    output: _Output = Path("results"),
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the images, laid out as KITTI's, with lists train.txt and val.txt."
        ),
    ] = None,
    views: Annotated[
        int | None, typer.Option(help="Views around a car, an even number; 8.")
    ] = None,
    published: _Published = None,
    quick: _Quick = False,
    paper: _Paper = False,
    jobs: _Jobs = -1,
    seed: _Seed = 0,
    fresh: _Fresh = False,
) -> None:
    """Cars from all sides: CostBoost, BAdaCost, SAMME and SubCat, trained and tried on KITTI.

    Writes cars.md, and numbers and curves as cars-N-views.json and .png, to OUTPUT; the page tells
    of all numbers of views that were run. Every finished part is recorded at once: after an
    interruption, the same command resumes where it stopped, inside a training too.
    """
    with plain_errors(_STOPPED):
        from badacost.experiments.cars import CarSettings, run_cars
        from badacost.experiments.cars_report import write_report

        check_jobs(jobs)
        given = {"seed": seed} if views is None else {"seed": seed, "n_views": views}
        settings = replace(_sized(CarSettings, quick, paper), **given)
        _prepare(output, settings.name, fresh)
        result = run_cars(settings, output, data=data, published=published or [], n_jobs=jobs)
        page = write_report(result, output)
        rows = {
            name: [found["kitti"]["0.7"][level]["ap_40"] for level in ("easy", "moderate", "hard")]
            + [found["voc"]["0.5"]["ap"]]
            for name, found in result["detectors"].items()
        }
        heads = ["easy", "moderate", "hard", "overlap 0.5"]
        _show_precision("Average precision, overlap 0.7, and area at 0.5", heads, rows)
        typer.echo(f"The page is {page}.")


@app.command()
def faces(
    output: _Output = Path("results"),
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with faces-train.csv, faces-val.csv and images."),
    ] = None,
    negatives: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of pictures without faces, may be repeated; by default negatives_bsds and "
            "negatives_voc2012 beside the faces."
        ),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(help="Yaw between views to one side, in degrees; 15,45 (paper: 20,60)."),
    ] = None,
    published: _Published = None,
    quick: _Quick = False,
    paper: _Paper = False,
    jobs: _Jobs = -1,
    seed: _Seed = 0,
    fresh: _Fresh = False,
) -> None:
    """Faces in five views: CostBoost, BAdaCost, SAMME and SubCat, trained and tried on FDDB.

    Writes faces.md, and numbers and curves as faces-LIMITS.json and .png, to OUTPUT; the page tells
    of all limits that were run. Every finished part is recorded at once: after an interruption, the
    same command resumes where it stopped, inside a training too.
    """
    with plain_errors(_STOPPED):
        from badacost.experiments.faces import FaceSettings, run_faces
        from badacost.experiments.faces_report import write_report

        check_jobs(jobs)
        given: dict[str, Any] = {"seed": seed}
        if limits is not None:
            given["limits"] = _numbers("--limits", limits)
        settings = replace(_sized(FaceSettings, quick, paper), **given)
        _prepare(output, settings.name, fresh)
        result = run_faces(
            settings,
            output,
            data=data,
            negatives=negatives,
            published=published or [],
            n_jobs=jobs,
        )
        page = write_report(result, output)
        rows = {
            name: [found["voc"]["1"]["ap"], found["voc"]["5"]["ap"]]
            for name, found in result["detectors"].items()
        }
        _show_precision("Average precision, overlap 0.5", ["as found", "refined boxes"], rows)
        typer.echo(f"The page is {page}.")


def _sized(kind: type[Any], quick: bool, paper: bool) -> Any:
    """Settings of the size that the options ask for."""
    if quick and paper:
        raise ValueError("--quick and --paper exclude each other: choose one of them.")
    return kind.quick() if quick else kind.paper() if paper else kind()


def _prepare(output: Path, name: str, fresh: bool) -> None:
    """Check the folder of the results, and remove those of an earlier run if that is wanted."""
    from badacost.experiments.contest import forget

    _check_folder(output)
    if fresh:
        forget(output / name)


def _check_folder(output: Path) -> None:
    """Raise where the folder of the results is a file."""
    if output.exists() and not output.is_dir():
        raise NotADirectoryError(f"--output {output} is a file: name a folder.")


def _names(option: str, what: str, text: str) -> tuple[str, ...]:
    """Names that are separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError(f"{option} names no {what}: separate their names by commas.")
    return names


def _numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers that are separated by commas."""
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise ValueError(
            f"{option} must be numbers separated by commas; got {text!r:.80}."
        ) from None


def _show_precision(title: str, heads: list[str], rows: dict[str, list[float | None]]) -> None:
    """Average precision in percent on the terminal."""
    from rich.console import Console
    from rich.table import Table

    from badacost.experiments.detection_report import percent

    shown = Table("detector", title=title)
    for head in heads:
        shown.add_column(head, justify="right")
    for name, shares in rows.items():
        shown.add_row(name, *map(percent, shares))
    Console().print(shown)


def _settings(quick: bool, sets: str | None, **options: Any) -> Settings:
    """Settings from the options; those that are None keep their default."""
    from badacost.experiments import uci as protocol
    from badacost.validation import check_choice, check_number

    check_choice("--reading", options["reading"], protocol.READINGS)
    check_number("--rate", options["learning_rate"], low=0.0, open_low=True)
    given = {name: value for name, value in options.items() if value is not None}
    if sets is not None:
        given["data_sets"] = _names("--sets", "data sets", sets)
    base = protocol.Settings.quick() if quick else protocol.Settings()
    return replace(base, contenders=(), **given).complete()


def _show(table: UCITable) -> None:
    """The table on the terminal: a line for each algorithm, best average rank first."""
    from rich.console import Console
    from rich.table import Table

    from badacost.experiments.uci_table import TITLES, cheapest, short

    means = table.means()
    best = cheapest(means, table.rows)
    comparison = table.comparison()
    ranks = comparison.average_ranks if comparison else dict.fromkeys(table.rows, float("nan"))
    shown = Table(title="Average cost, in 1e-4")
    shown.add_column("algorithm")
    for name in table.data_sets:
        shown.add_column(TITLES.get(name, name), justify="right")
    shown.add_column("rank", justify="right")
    for row in sorted(table.rows, key=lambda row: ranks[row]):
        cells = [
            f"[bold]{short(means[name][row])}[/bold]"
            if best[name] == row
            else short(means[name][row])
            for name in table.data_sets
        ]
        shown.add_row(row, *cells, f"{ranks[row]:.2f}")
    Console().print(shown)
