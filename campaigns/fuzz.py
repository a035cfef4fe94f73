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
from badacost._utils.progress import ProgressBar, duration
from badacost._utils.validation import check_choice, check_number
from campaigns import TOO_SHORT
from campaigns.cases import Case, Kind
from campaigns.child import Limits, Outcome, run_in_children
from campaigns.cost_cases import COST_KINDS
from campaigns.detection_cases import DETECTION_KINDS
from campaigns.estimator_cases import ESTIMATOR_KINDS
from campaigns.frame_cases import FRAME_KINDS
from campaigns.model_cases import MODEL_KINDS
from campaigns.table_cases import TABLE_KINDS
from experiments.journal import Journal

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kinds in (
        MODEL_KINDS, TABLE_KINDS, FRAME_KINDS, DETECTION_KINDS, ESTIMATOR_KINDS, COST_KINDS
    )
    for kind in kinds
}  # fmt: skip
# A case may compile; up to a gigabyte is what this program takes itself.
LIMITS = Limits(seconds=60.0, memory=2_500_000_000)
_BATCH_SECONDS = 2.0
_MAX_BATCH = 400
_MAX_TRIALS = 40


def run(folder: Path, seed: int, minutes: float, kinds: Sequence[str] | None = None) -> int:
    """Try cases until the time is over; return 1 if there are findings, of earlier runs as well.

    Findings of earlier runs are tried again first: those that are mended do not count. If there are
    none, but the time was too short for a case of each kind, this returns 3.

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
    header = {"campaign": "fuzz", "seed": seed, "version": badacost.__version__}
    with Journal(folder / "fuzz.jsonl", header) as journal:
        _try_again(journal)
        _fill(journal, seed, minutes, names)
        records = journal.records
    print(summary(records))
    if _split_findings(records)[0]:
        return 1
    tried = {record.get("kind") for record in records}
    missing = [name for name in names if name not in tried]
    if missing:
        print(f"The time was too short for {', '.join(missing)}: give it more --minutes.")
        return TOO_SHORT
    return 0


def _try_again(journal: Journal) -> None:
    """Run the findings of earlier runs, and record which of them are mended."""
    findings = [finding for finds in _split_findings(journal.records) for finding in finds]
    if not findings:
        return
    mended = []
    for finding in findings:
        case = Case(finding["base"], finding["edits"])
        if not _alone(KINDS[finding["kind"]], case).is_finding:
            mended.append(finding["again"])
            print(f"mended: {finding['again']}")
    journal.append({"mended": mended})


def _split_findings(
    records: Iterable[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return findings that are there still, and those that were not the last time they were run."""
    findings: list[dict[str, Any]] = []
    mended: list[str] = []
    for record in records:
        findings += record.get("findings", [])
        mended = record.get("mended", mended)
    return (
        [finding for finding in findings if finding["again"] not in mended],
        [finding for finding in findings if finding["again"] in mended],
    )


def _fill(journal: Journal, seed: int, minutes: float, names: Sequence[str]) -> None:
    """Try cases of these kinds until the time is over, and record them."""
    end = time.monotonic() + 60 * minutes
    bar = ProgressBar(max(round(60 * minutes), 1), "Fuzzing")
    for kind, numbers in _batches(names, journal, end):
        _ = kind.bases  # made here, so that this is not taken for the time of its cases
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
            cases=sum(record.get("n", 0) for record in journal.records),
            findings=len(_split_findings(journal.records)[0]),
        )
    bar.close()


def run_case(text: str) -> int:
    """Run a case again, ``KIND:SEED:NUMBER``, and say what it is and what becomes of it."""
    kind, seed, number = _parsed(text)
    case = kind.case(seed, number)
    outcome = _alone(kind, case)
    print(f"{case.base}: {json.dumps(list(case.edits))}")
    print(_line(outcome))
    return int(outcome.is_finding)


def summary(records: Iterable[dict[str, Any]]) -> str:
    """Return cases, outcomes and time of each kind, and the findings, as text."""
    records = list(records)
    totals: dict[str, Counter[str]] = {}
    seconds: Counter[str] = Counter()
    for record in records:
        if "kind" in record:
            totals.setdefault(record["kind"], Counter()).update(record["outcomes"])
            seconds[record["kind"]] += record["seconds"]
    findings, mended = _split_findings(records)
    lines = [f"{'kind':<14}{'cases':>8}{'results':>9}{'refused':>9}{'findings':>10}{'time':>8}"]
    for kind, found in totals.items():
        n_cases, value, error = found.total(), found["value"], found["error"]
        lines.append(
            f"{kind:<14}{n_cases:>8}{value:>9}{error:>9}{n_cases - value - error:>10}"
            f"{duration(seconds[kind]):>8}"
        )
    n_cases = sum(found.total() for found in totals.values())
    lines.append(f"{n_cases} cases, {len(findings)} findings, {len(mended)} that are mended.")
    lines += [f"{finding['outcome']}\n    {finding['again']}" for finding in findings]
    return "\n".join(lines)


def _batches(names: Sequence[str], journal: Journal, end: float) -> Iterator[tuple[Kind, range]]:
    """Yield kinds with the numbers of their next cases, at least once, until the time is over.

    The next kind is the one that had the least time; a batch is as large as its speed suggests.
    """
    while True:
        records = {name: [r for r in journal.records if r.get("kind") == name] for name in names}
        seconds = {name: sum(r["seconds"] for r in records[name]) for name in names}
        name = min(names, key=lambda name: seconds[name])
        n_cases = sum(record["n"] for record in records[name])
        first = max((record["first"] + record["n"] for record in records[name]), default=0)
        pace = seconds[name] / n_cases if n_cases else 0.1
        size = min(max(int(_BATCH_SECONDS / max(pace, 1e-3)), 1), _MAX_BATCH)
        yield KINDS[name], range(first, first + size)
        if time.monotonic() >= end:
            return


def _tried(kind: Kind, seed: int, numbers: Iterable[int]) -> Iterator[Outcome]:
    """Run cases in children; what may be due to a busy machine counts if it happens again alone."""
    gc.freeze()  # what is there already is not copied when children collect garbage
    with TemporaryDirectory() as folder:
        calls = [partial(_run, kind, seed, number, Path(folder)) for number in numbers]
        for number, outcome in zip(
            numbers, run_in_children(calls, Path(folder), LIMITS), strict=True
        ):
            is_unsure = outcome.status in ("time", "memory") or outcome.error == "SIGKILL"
            yield _alone(kind, kind.case(seed, number)) if is_unsure else outcome


def _run(kind: Kind, seed: int, number: int, folder: Path) -> None:
    """Run one case in a folder of its own, which is removed."""
    place = folder / str(number)
    place.mkdir()
    try:
        kind.run(kind.case(seed, number), place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _alone(kind: Kind, case: Case, kept: Path | None = None) -> Outcome:
    """Run one case in a child of its own; its files can be kept in a folder."""
    with TemporaryDirectory() as folder:
        call = partial(kind.run, case, Path(folder))
        (outcome,) = run_in_children([call], Path(folder), LIMITS)
        if kept is not None:
            shutil.copytree(folder, kept, dirs_exist_ok=True)
    return outcome


def _kept(kind: Kind, seed: int, number: int, outcome: Outcome, findings: Path) -> dict[str, Any]:
    """Look for the smallest case with the same finding, and keep its files."""
    name = f"{kind.name}:{seed}:{number}"
    smallest = smaller(kind.case(seed, number), partial(_is_same, kind, outcome))
    kept = findings / name.replace(":", "-")
    _alone(kind, smallest, kept)
    again = f"python -m campaigns fuzz --case {name}"
    text = [again, _line(outcome), smallest.base, json.dumps(list(smallest.edits)), ""]
    (kept / "finding.txt").write_text("\n".join(text))
    print(f"\n{_line(outcome)}\n    {again}", file=sys.stderr)
    return {
        "again": again,
        "outcome": f"{kind.name}: {_line(outcome)}",
        "kind": kind.name,
        "base": smallest.base,
        "edits": list(smallest.edits),
    }


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
    outcome = _alone(kind, case)
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
