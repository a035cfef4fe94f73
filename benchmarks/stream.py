"""A video, frame by frame: frames a second, memory as it grows longer, and the same boxes.

The video is synthetic, of 300 frames of 640 x 360, and the detector is the one of the package.
Results go to results/stream.json.

    python benchmarks/stream.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from harness import Figure, Figures, best_times, run, scaled, waited_seconds

from badacost.detection import Detections
from badacost.detection.images import read_video
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_drive

HERE = Path(__file__).resolve().parent
N_FRAMES = 300
N_TIMED = 60
PEAKS = """
import sys
from harness import memory_status
from badacost.detection.models import synthetic_cars
path, stream, marks = sys.argv[1], sys.argv[2] == "stream", set(map(int, sys.argv[3:]))
for number, found in enumerate(synthetic_cars().predict(path, stream=stream, n_jobs=2), start=1):
    if number in marks:
        print(memory_status("VmHWM"), flush=True)
"""


def write_video(path: Path, n_frames: int) -> None:
    """Render a drive into a file."""
    with av.open(str(path), "w") as video:
        stream = video.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.bit_rate = 640, 360, 6_000_000
        frames = make_drive(n_frames, size=(360, 640), n_objects=4, random_state=8)
        for frame in frames:
            picture = av.VideoFrame.from_ndarray(frame.load(), format="rgb24")
            video.mux(stream.encode(picture))
        video.mux(stream.encode())


def peaks(path: Path, how: str, *marks: int) -> list[float]:
    """Peak memory of a new process in MB, after so many frames."""
    command = [sys.executable, "-c", PEAKS, str(path), how, *map(str, marks)]
    process = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE)
    return [int(line) / 2**20 for line in process.stdout.split()]


def cores(results: Iterator[Detections]) -> tuple[float, float]:
    """Cores that a stream had while it ran, and those it could have used: other work takes some."""
    next(results)
    before = time.perf_counter(), time.process_time(), waited_seconds()
    for _ in islice(results, N_TIMED - 10):
        pass
    after = time.perf_counter(), time.process_time(), waited_seconds()
    wall, cpu, waited = (b - a for a, b in zip(before, after, strict=True))
    return cpu / wall, (cpu + waited) / wall


def video(scale: float) -> Figures:
    """A stream of frames, two at a time, against one frame after the other."""
    n_frames = scaled(N_FRAMES, scale, least=60)
    detector = synthetic_cars()
    with TemporaryDirectory() as folder:
        path = Path(folder, "drive.mp4")
        write_video(path, n_frames)
        detector.detect(next(read_video(path)), n_jobs=2)  # compiled before it is timed
        ways = {
            "one by one": lambda: map(detector.detect, read_video(path)),
            "stream, 1 at a time": lambda: detector.predict(path, stream=True, n_jobs=1),
            "stream, 2 at a time": lambda: detector.predict(path, stream=True, n_jobs=2),
        }
        some = {name: lambda way=way: list(islice(way(), N_TIMED)) for name, way in ways.items()}
        for name, seconds in best_times(some, 3, time.perf_counter).items():
            yield Figure(f"{name}: frames a second", N_TIMED / seconds, "frames/s")
        for name, seconds in best_times(some, 1).items():
            yield Figure(f"{name}: a frame", 1e3 * seconds / N_TIMED, "CPU-ms")
        had, could_use = cores(ways["stream, 2 at a time"]())
        yield Figure("stream, 2 at a time: cores that it had", had, "")
        yield Figure("stream, 2 at a time: cores that it could use", could_use, "", at_least=1.9)
        pairs = list(zip(ways["one by one"](), ways["stream, 2 at a time"](), strict=True))
        yield Figure("frames", len(pairs), "")
        yield Figure("boxes", sum(len(found) for found, _ in pairs), "")
        differ = sum(
            not (np.array_equal(a.boxes, b.boxes) and np.array_equal(a.scores, b.scores))
            for a, b in pairs
        )
        yield Figure("frames with other boxes in a stream", differ, "", at_most=0)
        early, late = peaks(path, "stream", 50, n_frames)
        yield Figure("stream: peak memory after 50 frames", early, "MB")
        yield Figure(f"stream: peak memory after {n_frames} frames", late, "MB")
        yield Figure("stream: growth from 50 frames on", late - early, "MB", at_most=10)
        (listed,) = peaks(path, "list", n_frames)
        yield Figure(f"list: peak memory of {n_frames} frames", listed, "MB")


if __name__ == "__main__":
    run(__doc__.splitlines()[0], {"video": video}, HERE / "results" / "stream.json")
