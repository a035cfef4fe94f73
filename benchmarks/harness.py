"""What the benchmark programs share: figures with targets, timers, and the JSON of the results."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import badacost

PACKAGES = ("numpy", "scikit-learn", "numba", "lightgbm", "badacost")


@dataclass(frozen=True)
class Figure:
    """A measured number; with a target if one was set, which is a bound from below or above."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.at_least is not None:
            return bool(self.value >= self.at_least)
        return None if self.at_most is None else bool(self.value <= self.at_most)

    def __str__(self) -> str:
        line = f"  {self.name:<52} {self.value:>10.4g} {self.unit:<14}"
        if self.met is None:
            return line.rstrip()
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        return f"{line} {bound:<8} {'met' if self.met else 'MISSED'}"


Figures = Iterator[Figure]
Measurement = Callable[[float], Figures]


def best_times(
    contenders: dict[str, Callable[[], object]],
    repeats: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """CPU seconds, or those of another clock, of each contender: the best of runs in turn."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, work in contenders.items():
            start = clock()
            work()
            best[name] = min(best[name], clock() - start)
    return best


def scaled(size: int, scale: float, least: int = 500) -> int:
    """Rows or columns of a smoke run."""
    return max(round(size * scale), min(size, least))


def calibration() -> Figures:
    """Speed of the machine at the moment: memory bandwidth, and a sort that stays in the cache."""
    source, target = np.ones(2**25, np.float32), np.empty(2**25, np.float32)
    keys = np.random.default_rng(0).integers(0, 2**32, 2**16)
    best = best_times(
        {"copy": lambda: np.copyto(target, source), "sort": lambda: np.sort(keys, kind="stable")}, 7
    )
    bandwidth = 2 * source.nbytes / best["copy"] / 1e9
    yield Figure("calibration: copy, read and written", bandwidth, "GB/s")
    yield Figure("calibration: stable sort of 65 536 integers", 1e3 * best["sort"], "CPU-ms")


def waited_seconds() -> float:
    """Seconds that the threads of this process were ready to run but had no core, so far."""
    tasks = Path("/proc/self/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[1]) for task in tasks) / 1e9


def memory_status(field: str) -> int:
    """Bytes of a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def process_times(code: str, cache: str) -> tuple[float, float]:
    """Wall and CPU seconds of a new interpreter that runs some code."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def circumstances(scale: float, packages: tuple[str, ...] = ()) -> dict[str, object]:
    """When, where and with what a measurement was made."""
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), cpu)
    sources = sorted(Path(badacost.__file__).parent.rglob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        **{name: version(name) for name in (*PACKAGES, *packages)},
        "badacost_sources": digest.hexdigest()[:12],
        "scale": scale,
    }


def run(
    description: str,
    measurements: dict[str, Measurement],
    results: Path,
    packages: tuple[str, ...] = (),
) -> None:
    """Read the command line, make the measurements, print the figures and write them as JSON.

    Versions of `packages` are written beside those of the usual ones.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", nargs="+", choices=measurements, default=list(measurements))
    parser.add_argument("--scale", type=float, default=1.0, help="shrink the data, for a smoke run")
    parser.add_argument("--output", type=Path, help=f"default: {results.name}, unless scaled")
    options = parser.parse_args()
    output = options.output or (results if options.scale == 1.0 else None)
    for name in options.only:
        measure = measurements[name]
        result = {**circumstances(options.scale, packages), "figures": []}
        print(f"{name}: {(measure.__doc__ or name).splitlines()[0]}", flush=True)
        with threadpool_limits(1):  # OpenMP and BLAS; the threads of badacost are its own
            for figure in measure(options.scale):
                print(figure, flush=True)
                result["figures"].append({**asdict(figure), "met": figure.met})
        if output is not None:  # measurements that were not repeated stay as they are
            known = json.loads(output.read_text()) if output.exists() else {}
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps({**known, name: result}, indent=1) + "\n")
