"""
Tracking in a video
===================

A detector looks at each frame by itself. Which box is the same car as a frame ago is the question
of a tracker, and a detector that knows views helps to answer it: cars do not turn round at once.
"""

# %%
# A synthetic video: three cars that drive in circles and hide each other now and then. It is
# written to a file, as a camera would have done it.
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from badacost.detection.boxes import overlaps
from badacost.detection.drawing import contact_sheet
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_drive

truth = list(make_drive(90, size=(270, 480), object_height=(0.22, 0.34), random_state=8))
folder = TemporaryDirectory()
path = Path(folder.name, "drive.mp4")
with av.open(str(path), "w") as video:
    stream = video.add_stream("mpeg4", rate=25)
    stream.width, stream.height, stream.bit_rate = 480, 270, 4_000_000
    for frame in truth:
        video.mux(stream.encode(av.VideoFrame.from_ndarray(frame.load(), format="rgb24")))
    video.mux(stream.encode())

# %%
# ``predict`` with ``stream=True`` is a generator: it reads a few frames ahead, searches two at a
# time on two cores, and keeps none of them. Each result knows its frame and its time, and has the
# pixels for a plot. Doubtful boxes are left out: a track of false alarms is worse than a gap.
results, shown = [], []
for found in synthetic_cars().predict(path, stream=True):
    sure = found.above(8.0)
    if sure.source.frame % 30 == 15:
        shown.append(sure.plot(width=500))
    results.append(sure)
print(results[1].to_frame()[["frame", "time", "x1", "y1", "score", "view"]].round(2))

# %%
# The tracker is a small one. A track expects its car where it was, moved as it moved last. Boxes go
# to the tracks that they overlap best, less a fine for a change of the heading. A track without a
# box waits, since its car may be hidden; a box that no track expects begins a new one.


class Tracker:
    def __init__(self, fine, min_overlap=0.3, patience=15):
        self.fine, self.min_overlap, self.patience = fine, min_overlap, patience
        self.boxes, self.moves = np.empty((0, 4)), np.empty((0, 2))
        self.headings, self.missed = np.empty(0), np.empty(0)

    def update(self, found):
        """Return the number of the track of each box."""
        headings = np.array(found.angles)[found.labels]
        alive = np.flatnonzero(self.missed <= self.patience)
        self.boxes[alive] += np.tile(self.moves[alive], 2)
        shared = overlaps(found.boxes, self.boxes[alive])
        turned = np.abs((headings[:, None] - self.headings[alive] + 180) % 360 - 180)
        boxes, places = linear_sum_assignment(self.fine * turned / 180 - shared)
        good = shared[boxes, places] >= self.min_overlap
        good &= self.fine * turned[boxes, places] <= 50
        tracks = np.full(len(found), -1)
        tracks[boxes[good]] = alive[places[good]]
        self.missed += 1
        for box, track in enumerate(tracks):
            if track < 0:
                tracks[box] = track = len(self.boxes)
                self.boxes = np.vstack([self.boxes, found.boxes[box]])
                self.moves = np.vstack([self.moves, np.zeros(2)])
                self.headings, self.missed = np.append(self.headings, 0), np.append(self.missed, 0)
            late = found.boxes[box] - self.boxes[track]
            self.boxes[track] += late
            self.moves[track] += 0.3 * (late[:2] + late[2:]) / 2
            self.headings[track], self.missed[track] = headings[box], 0
        return tracks


# %%
# The truth is known: which tracks does each car have, and in how many frames? By boxes alone, cars
# take over the tracks of others as they pass them; in this video, the headings keep them apart.
for fine in (0.0, 0.5):
    tracker = Tracker(fine)
    tables = [found.to_frame().assign(track=tracker.update(found)) for found in results]
    owned = [{}, {}, {}]
    for frame, table in zip(truth, tables, strict=True):
        shared = overlaps(frame.boxes, table[["x1", "y1", "x2", "y2"]])
        for car, box in zip(*linear_sum_assignment(-shared), strict=True):
            if shared[car, box] > 0.5:
                track = int(table["track"].iloc[box])
                owned[car][track] = owned[car].get(track, 0) + 1
    print(f"\nfine {fine}:")
    for car, frames in enumerate(owned):
        told = ", ".join(f"track {track} in {count}" for track, count in sorted(frames.items()))
        print(f"  car {car}, found in {sum(frames.values())} of {len(truth)} frames: {told}")

# %%
# Three frames, the ways of the tracks, and their headings: the view goes in steps of 45 degrees,
# the car turns smoothly (grey).
table = pd.concat(tables, ignore_index=True)
figure = plt.figure(figsize=(11, 7), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1, 1.6])
sheet = above.subplots()
sheet.imshow(contact_sheet(shown, columns=3, width=1500))
sheet.set_axis_off()
ways, headings = below.subplots(1, 2, width_ratios=[1.3, 1])
ways.imshow(truth[-1].load(), alpha=0.7)
ways.set_axis_off()
headings.plot(np.arange(90) / 25, [frame.angles for frame in truth], ".", ms=1.5, color="grey")
for track, rows in table.groupby("track"):
    ways.plot((rows.x1 + rows.x2) / 2, (rows.y1 + rows.y2) / 2, ".-", lw=1, label=f"track {track}")
    headings.plot(rows.time, rows.angle, ".", ms=4)
ways.legend(loc="upper left")
headings.set(xlabel="seconds", ylabel="heading in degrees", yticks=range(-180, 181, 90))

# %%
# Trackers with more to them are in the package `trackers <https://trackers.roboflow.com>`_ (Apache
# 2.0), which took them over from supervision. It takes what ``to_supervision`` returns; scores are
# not probabilities, so its thresholds are given in scores:
#
# .. code-block:: python
#
#     tracker = ByteTrackTracker(track_activation_threshold=8.0, high_conf_det_threshold=8.0)
#     for found in detector.predict("drive.mp4", stream=True):
#         tracked = tracker.update(found.to_supervision())  # tracker_id, data["heading"], ...
folder.cleanup()
figure.savefig("tracking.png", dpi=120)
print("\nThe picture is in tracking.png")
