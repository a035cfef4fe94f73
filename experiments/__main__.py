"""``python -m experiments``: the programs, and what they share in their options."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from badacost.cli.options import check_jobs

try:
    from experiments import contest, detection, rivals, rivals_report, table1, table1_report
    from experiments.journal import forget, read_records
    from experiments.pages import frame, percent, short, table
except ModuleNotFoundError as missing:
    sys.exit(f"Error: {missing.name} is missing: install it with pip install --group experiments.")


_ABOUT = """The paper's tables and our contests. Every finished part is recorded at once: after an
interruption, the same command resumes where it stopped. Pages, numbers and pictures go to OUTPUT.
"""
_PROGRAMS = {
    "table1": "Average costs of boosting algorithms on twelve UCI data sets: Table 1, or, with "
    "another --reading, --depth or --rate, a variant of it that the page tells of.",
    "rivals": "Minimum-cost decisions of today's classifiers on the same data sets. What is run "
    "later is added; --timing has a record of its own.",
    "cars": "CostBoost, BAdaCost, SAMME and SubCat on images that are laid out as those of KITTI.",
    "faces": "CostBoost, BAdaCost, SAMME and SubCat on faces-train.csv, faces-val.csv and images.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program, and return the exit status; mistakes of users are told in one line."""
    options = _parser().parse_args(arguments)
    try:
        check_jobs(options.jobs)
        if options.output.exists() and not options.output.is_dir():
            raise NotADirectoryError(f"--output {options.output} is a file: name a folder.")
        programs = {"table1": run_table1, "rivals": run_rivals}
        programs.get(options.program, run_detection)(options)
    except KeyboardInterrupt:
        print("Stopped. The same command resumes where it stopped.", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def run_table1(options: Namespace) -> None:
    """Run Table 1, or a variant of it."""
    usual = table1.Settings.quick() if options.size else table1.Settings()
    settings = _changed(usual, options).complete()
    if not options.page:
        journal = options.output / f"{settings.name}.jsonl"
        if options.fresh:
            forget(journal)
        records = table1.run(settings, journal, data=options.data, n_jobs=options.jobs)
        found = table1_report.write_numbers(table1.header(settings), records, options.output)
        print("Average cost, in 1e-4:", table(frame(found["mean"]).T.map(short)), sep="\n\n")
    if not settings.variant:
        print(f"The page is {table1_report.write_page(options.output)}.")


def run_rivals(options: Namespace) -> None:
    """Run the contest with the rivals, or measure their time."""
    if options.timing and options.jobs != 1:
        raise ValueError("--timing measures one fit after the other: leave out --jobs.")
    usual = rivals.RivalSettings.of(quick=bool(options.size), timing=options.timing)
    settings = _changed(usual, options)
    if not options.page:
        paths = [options.output / "rivals.jsonl", options.output / "rivals-timing.jsonl"]
        journal = paths[options.timing]
        if options.fresh:
            forget(journal)
        rivals.run(settings, journal, data=options.data, n_jobs=options.jobs)
        if not paths[0].exists():
            print("The times are recorded: the command without --timing writes the page.")
            return
        header = rivals.header(settings)
        records, times = (read_records(path, header) for path in paths)
        found = rivals_report.write_numbers(header, records, times, options.output)
        print("Average cost:", table(frame(found["costs"]).map(short)), sep="\n\n")
    print(f"The page is {rivals_report.write_page(options.output)}.")


def run_detection(options: Namespace) -> None:
    """Run a contest of detectors, of cars or of faces."""
    kind = detection.SETTINGS[options.program]
    settings = _changed(getattr(kind, options.size)() if options.size else kind(), options)
    if not options.page:
        if options.fresh:
            contest.forget(options.output / settings.name)
        result = detection.run_contest(
            settings,
            options.output,
            data=options.data,
            negatives=getattr(options, "negatives", None),
            published=options.published,
            n_jobs=options.jobs,
        )
        detection.write_numbers(result, options.output)
        shares = {name: settings.precisions(one) for name, one in result["detectors"].items()}
        print("Average precision:", table(frame(shares).map(percent)), sep="\n\n")
    print(f"The page is {detection.write_page(settings, options.output)}.")


def _changed(settings: Any, options: Namespace) -> Any:
    """Return settings with the values of those options that are named as their fields."""
    given = {field.name: getattr(options, field.name, None) for field in fields(settings)}
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _limits(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(","))


def _parser() -> ArgumentParser:
    """Return the parser; options that change settings are stored by the names of their fields."""
    parser = ArgumentParser(prog="python -m experiments", description=_ABOUT)
    programs = parser.add_subparsers(dest="program", required=True)
    kinds = {
        name: programs.add_parser(name, help=text, description=text)
        for name, text in _PROGRAMS.items()
    }
    for name, kind in kinds.items():
        add = kind.add_argument
        add("--output", type=Path, default=Path("results"), help="folder for the results")
        add("--data", type=Path, help="folder of the data sets, or of the images")
        jobs = 1 if name == "rivals" else -1
        add("--jobs", type=int, default=jobs, help="processes or threads; -1 is one for each core")
        add("--seed", type=int, help="random seed (default 0)")
        add("--fresh", action="store_true", help="discard the results of an earlier run in OUTPUT")
        add("--page", action="store_true", help="only write the page again, from the numbers there")
        size = kind.add_mutually_exclusive_group().add_argument
        to_size: dict[str, Any] = {"dest": "size", "action": "store_const"}
        size("--quick", **to_size, const="quick", help="short fits to little data: two minutes")
        if name in detection.SETTINGS:
            size("--paper", **to_size, const="paper", help="the sizes of the paper: many hours")
            add("--published", type=Path, action="append", default=[], help="file of a detector")
        else:
            add("--sets", dest="data_sets", type=_names, help="names with commas (default all)")
    add = kinds["table1"].add_argument
    add("--reading", help=f"whose confusion makes the costs: {', '.join(table1.READINGS)}")
    add("--depth", dest="max_depth", type=int, help="depth of the built-in tree (default 4)")
    add("--rate", dest="learning_rate", type=float, help="learning rate (default 0.1)")
    add("--folds", dest="n_folds", type=int, help="folds (default 5)")
    add("--pool", dest="n_pool", type=int, help="pool of Wang's MultiBoost (default 6000 trees)")
    add = kinds["rivals"].add_argument
    add("--contenders", type=_names, help="names with commas (default all)")
    add("--splits", dest="n_splits", type=int, help="splits of each data set (default 5)")
    add("--timing", action="store_true", help="measure time on one and two threads, on one split")
    add = kinds["cars"].add_argument
    add("--views", dest="n_views", type=int, help="views around a car, an even number (default 8)")
    add = kinds["faces"].add_argument
    add("--limits", type=_limits, help="yaw between views to one side, in degrees (default 15,45)")
    add("--negatives", type=Path, action="append", help="folder of pictures without faces")
    return parser


if __name__ == "__main__":
    sys.exit(main())
