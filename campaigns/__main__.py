"""``python -m campaigns``: the programs and their options."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

_ABOUT = "Attacks on the library. Each call is made in a child process with limits."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program, and return the exit status.

    It is 1 where something was found, and 3 where the time was too short to find anything.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("Stopped. The same command resumes where it stopped.", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2


def run_fuzz(options: Namespace) -> int:
    """Try seeded cases for some minutes, or one case again."""
    from campaigns import fuzz

    if options.case:
        return fuzz.run_case(options.case)
    return fuzz.run(options.folder, options.seed, options.minutes, options.kinds)


def run_limits(options: Namespace) -> int:
    """Measure the list of hostile files."""
    from campaigns import limits

    return limits.run(options.cases, options.source, options.output, options.before)


def run_soak(options: Namespace) -> int:
    """Kill so often, or for so long."""
    _keep_kernels(options.folder)
    from campaigns import soak

    return soak.run(options.folder, options.seed, options.kills, options.minutes)


def run_bits(options: Namespace) -> int:
    """Compare all models in all cases, or those that are named."""
    _keep_kernels(options.folder)
    from campaigns import bits

    return bits.run(options.folder, options.cases, options.models)


def _keep_kernels(folder: Path) -> None:
    """Set where compiled functions are kept, before numba is imported."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder.absolute() / "numba"))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m campaigns", description=_ABOUT)
    programs = parser.add_subparsers(dest="program", required=True)

    text = "Seeded cases of every kind of file and every estimator; the same command resumes."
    fuzzing = programs.add_parser("fuzz", help=text, description=text)
    fuzzing.set_defaults(run=run_fuzz)
    add = fuzzing.add_argument
    add("--minutes", type=float, default=10.0, help="how long (default 10)")
    add("--seed", type=int, default=0, help="random seed (default 0)")
    add(
        "--folder",
        type=Path,
        default=Path("build/fuzz"),
        help="journal and findings (default build/fuzz)",
    )
    add("--kinds", type=_names, help="names with commas (default all)")
    add("--case", metavar="KIND:SEED:NUMBER", help="run one case again, and show what it does")

    text = "Files that would take gigabytes or minutes: seconds, megabytes and message of each."
    bounds = programs.add_parser("limits", help=text, description=text)
    bounds.set_defaults(run=run_limits)
    add = bounds.add_argument
    add("--cases", type=_names, help="names with commas (default all)")
    add("--source", type=Path, help="folder src of another checkout, to measure that one")
    add("--output", type=Path, help="file for the table, .md or .json")
    add("--before", type=Path, help=".json of another checkout, to compare with in .md")

    text = "Kill -9 at random moments of fits, trainings, detections and experiments; what is "
    text += "resumed must end in the same bytes, with nothing left over. The same command resumes."
    soaking = programs.add_parser("soak", help=text, description=text)
    soaking.set_defaults(run=run_soak)
    add = soaking.add_argument
    add("--kills", type=int, default=100, help="how often (default 100)")
    add("--minutes", type=float, help="stop after so long (default never)")
    add("--seed", type=int, default=0, help="random seed (default 0)")
    add(
        "--folder",
        type=Path,
        default=Path("build/soak"),
        help="journal and files (default build/soak)",
    )

    text = "All estimators and detectors, with threads, in processes, with a damaged cache and "
    text += "after Ctrl-C: the same bits as on one thread."
    comparing = programs.add_parser("bits", help=text, description=text)
    comparing.set_defaults(run=run_bits)
    add = comparing.add_argument
    add("--cases", type=_names, help="names with commas (default all)")
    add(
        "--models",
        type=_names,
        help="beginnings of names with commas (default all; four with a bad cache)",
    )
    add(
        "--folder",
        type=Path,
        default=Path("build/bits"),
        help="compiled functions (default build/bits)",
    )
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
