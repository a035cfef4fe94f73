"""``make fuzz``: seeded cases of every kind, each in a child with limits.

Every case ends in a result or in a sentence, within the limits and without a trace outside of its
folder. What does not is a finding: its smallest form is kept in the folder ``findings``, with the
line that runs it again. Cases are seeded mutations, not strategies of hypothesis: a number is a
case, so that a journal resumes after the last one, and its list of changes is cut in halves until
it is small.
"""

from __future__ import annotations

import gc
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import badacost
from badacost.progress import ProgressBar, duration
from badacost.validation import check_choice, check_number
from campaigns.cases import Case, Kind
from campaigns.child import Limits, Outcome, run_in_children
from campaigns.detection_cases import DETECTION_KINDS
from campaigns.estimator_cases import ESTIMATOR_KINDS
from campaigns.model_cases import MODEL_KINDS
from campaigns.table_cases import TABLE_KINDS
from experiments.journal import Journal

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (*MODEL_KINDS, *TABLE_KINDS, *DETECTION_KINDS, *ESTIMATOR_KINDS)
}
# A machine may be busy, or compile; up to a gigabyte is what this program takes itself.
LIMITS = Limits(seconds=60.0, memory=2_500_000_000)
_BATCH_SECONDS = 2.0
_MAX_BATCH = 400
_MAX_TRIALS = 40


def run(folder: Path, seed: int, minutes: float, kinds: Sequence[str] | None = None) -> int:
    """Try cases until the time is over; return 1 if there are findings, of earlier runs as well.

    Parameters
    ----------
    folder : Path
        Where the journal and the findings go; a journal of the same seed is continued.
    seed : int
        Seed of all cases.
    minutes : float
        How long to try.
    kinds : sequence of str, optional
        Names of kinds, all by default.
    """
    check_number("minutes", minutes, low=0.0, open_low=True)
    names = list(KINDS if kinds is None else kinds)
    for name in names:
        check_choice("kinds", name, KINDS)
    header = {"seed": seed, "version": badacost.__version__}
    with Journal(folder / "fuzz.jsonl", header) as journal:
        _fill(journal, seed, minutes, names)
        records = journal.records
    print(summary(records))
    return int(any(record["findings"] for record in records))


def _fill(journal: Journal, seed: int, minutes: float, names: Sequence[str]) -> None:
    """Try cases of these kinds until the time is over, and record them."""
    end = time.monotonic() + 60 * minutes
    bar = ProgressBar(max(round(60 * minutes), 1), "Fuzzing")
    for kind, numbers in _batches(names, journal, end):
        begin, findings = time.monotonic(), []
        outcomes: Counter[str] = Counter()
        for number, outcome in zip(numbers, _tried(kind, seed, numbers), strict=True):
            outcomes[outcome.status] += 1
            if outcome.is_finding:
                findings.append(
                    _kept(kind, seed, number, outcome, journal.path.parent / "findings")
                )
        journal.append(
            {
                "kind": kind.name,
                "first": numbers.start,
                "n": len(numbers),
                "seconds": time.monotonic() - begin,
                "outcomes": dict(outcomes),
                "findings": findings,
            }
        )
        left = max(end - time.monotonic(), 0.0)
        bar.update(
            min(round(60 * minutes - left), bar.total),
            cases=sum(record["n"] for record in journal.records),
            findings=sum(len(record["findings"]) for record in journal.records),
        )
    bar.close()


def run_case(text: str) -> int:
    """Run a case again, ``KIND:SEED:NUMBER``, and say what it is and what becomes of it."""
    kind, seed, number = _parsed(text)
    case = kind.case(seed, number)
    with TemporaryDirectory() as folder:
        (outcome,) = run_in_children([partial(kind.run, case, Path(folder))], Path(folder), LIMITS)
    print(f"{case.base}: {json.dumps(list(case.edits))}")
    print(_line(outcome))
    return int(outcome.is_finding)


def summary(records: Iterable[dict[str, Any]]) -> str:
    """Return cases, outcomes and time of each kind, and the findings, as text."""
    totals: dict[str, Counter[str]] = {}
    seconds: Counter[str] = Counter()
    findings = []
    for record in records:
        totals.setdefault(record["kind"], Counter()).update(record["outcomes"])
        seconds[record["kind"]] += record["seconds"]
        findings += record["findings"]
    lines = [f"{'kind':<14}{'cases':>8}{'results':>9}{'refused':>9}{'findings':>10}{'time':>8}"]
    for kind, found in totals.items():
        n_cases, value, error = found.total(), found["value"], found["error"]
        lines.append(
            f"{kind:<14}{n_cases:>8}{value:>9}{error:>9}{n_cases - value - error:>10}"
            f"{duration(seconds[kind]):>8}"
        )
    n_cases = sum(found.total() for found in totals.values())
    lines.append(f"{n_cases} cases, {len(findings)} findings.")
    lines += [f"{finding['outcome']}\n    {finding['again']}" for finding in findings]
    return "\n".join(lines)


def _batches(names: Sequence[str], journal: Journal, end: float) -> Iterator[tuple[Kind, range]]:
    """Yield kinds in turn with the numbers of their next cases, until the time is over.

    Kinds get about the same time: a batch is as large as the speed so far suggests.
    """
    while True:
        for name in names:
            if time.monotonic() >= end:
                return
            records = [record for record in journal.records if record["kind"] == name]
            first = max((record["first"] + record["n"] for record in records), default=0)
            seconds = sum(record["seconds"] for record in records)
            n_cases = sum(record["n"] for record in records)
            pace = seconds / n_cases if n_cases else 0.1
            size = min(max(int(_BATCH_SECONDS / max(pace, 1e-3)), 1), _MAX_BATCH)
            yield KINDS[name], range(first, first + size)


def _tried(kind: Kind, seed: int, numbers: Iterable[int]) -> Iterator[Outcome]:
    """Run cases in children."""
    _ = kind.bases
    gc.freeze()  # what is there already is not copied when children collect garbage
    with TemporaryDirectory() as folder:
        calls = [partial(_run, kind, seed, number, Path(folder)) for number in numbers]
        yield from run_in_children(calls, Path(folder), LIMITS)


def _run(kind: Kind, seed: int, number: int, folder: Path) -> None:
    """Run one case in a folder of its own."""
    _run_in(kind, kind.case(seed, number), folder / str(number))


def _run_in(kind: Kind, case: Case, folder: Path) -> None:
    folder.mkdir()
    try:
        kind.run(case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(kind: Kind, seed: int, number: int, outcome: Outcome, findings: Path) -> dict[str, Any]:
    """Look for the smallest case with the same finding, and keep its files."""
    name = f"{kind.name}:{seed}:{number}"
    smallest = smaller(kind.case(seed, number), partial(_is_same, kind, outcome))
    kept = findings / name.replace(":", "-")
    kept.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:  # the files stay where the child left them
        list(run_in_children([partial(kind.run, smallest, Path(folder))], Path(folder), LIMITS))
        shutil.copytree(folder, kept, dirs_exist_ok=True)
    again = f"python -m campaigns fuzz --case {name}"
    text = [again, _line(outcome), smallest.base, json.dumps(list(smallest.edits)), ""]
    (kept / "finding.txt").write_text("\n".join(text))
    print(f"\n{_line(outcome)}\n    {again}", file=sys.stderr)
    return {"again": again, "outcome": f"{kind.name}: {_line(outcome)}", "folder": str(kept)}


def smaller(case: Case, is_same: Callable[[Case], bool]) -> Case:
    """Return a case with as few changes as possible that is still the same finding."""
    edits, size, n_trials = list(case.edits), max(len(case.edits) // 2, 1), 0
    while True:
        place, removed = 0, False
        while place < len(edits) and n_trials < _MAX_TRIALS:
            fewer = edits[:place] + edits[place + size :]
            n_trials += 1
            if is_same(Case(case.base, fewer)):
                edits, removed = fewer, True
            else:
                place += size
        if n_trials >= _MAX_TRIALS or (size == 1 and not removed):
            return Case(case.base, edits)
        size = max(size // 2, 1)


def _is_same(kind: Kind, wanted: Outcome, case: Case) -> bool:
    with TemporaryDirectory() as folder:
        calls = [partial(_run_in, kind, case, Path(folder, "case"))]
        (outcome,) = run_in_children(calls, Path(folder), LIMITS)
    same_place = not wanted.where or outcome.where == wanted.where
    return (outcome.status, outcome.error) == (wanted.status, wanted.error) and same_place


def _line(outcome: Outcome) -> str:
    """Return an outcome for people."""
    told = ": ".join(part for part in (outcome.error, outcome.message) if part)
    where = f" at {outcome.where}" if outcome.where else ""
    return (
        f"{outcome.status}{where}, {outcome.seconds:.1f} s, {outcome.megabytes:.0f} MB: "
        f"{told or 'no message'}"
    )


def _parsed(text: str) -> tuple[Kind, int, int]:
    """Return kind, seed and number of a case."""
    name, *numbers = text.split(":")
    if name not in KINDS or len(numbers) != 2 or not all(part.isdigit() for part in numbers):
        raise ValueError(f"a case is KIND:SEED:NUMBER, as in model:0:17; got {text!r:.80}.")
    return KINDS[name], int(numbers[0]), int(numbers[1])
