"""
Inside a detector
=================

A detector without a neural network can be inspected: what it sees of an image, where in
the window its trees look, and how soon it rejects a window.
"""

# %%
# What it sees
# ------------
# An image becomes ten channels: three of colour (L, U, V), the strength of edges, and edges in six
# directions, all in cells of a few pixels.
import matplotlib.pyplot as plt
import numpy as np

from badacost.detection.channels import compute_channels, rgb_to_luv
from badacost.detection.inspection import (
    FeatureMapDisplay,
    ScoreTracesDisplay,
    channel_names,
    efficiency,
    feature_map,
)
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes

detector = synthetic_cars()
scenes = [scene.load() for scene in make_scenes(4, random_state=21)]
parameters = detector.pyramid.channels
planes = compute_channels(rgb_to_luv(scenes[0]), parameters)
figure, axes = plt.subplots(3, 4, figsize=(12, 7.2), layout="constrained")
axes = axes.ravel()
axes[0].imshow(scenes[0])
axes[0].set_title("image")
for axis, plane, name in zip(axes[1:], planes, channel_names(parameters), strict=False):
    axis.imshow(plane, cmap="gray")
    axis.set_title(name)
for axis in axes:
    axis.set_axis_off()

# %%
# Where it looks
# --------------
# The tests of all trees, counted by cell and weighted as the trees are. The frame is the car inside
# the window. The tests concentrate where the lamps and the corners of the body are, and along the
# slopes of the cabin; the margin around the car and the ground are rarely tested.
tests = FeatureMapDisplay.from_detector(detector)
uses = feature_map(detector)
shares = uses.by_channel.sum(axis=(1, 2)) / uses.uses.sum()
print("share of the tests:")
for name, share in zip(uses.channel_names, shares, strict=True):
    print(f"  {name:10}{share:6.1%}")

# %%
# How soon it rejects a window
# ----------------------------
# Each tree adds to the score of a window; a window whose score falls to the threshold is left
# alone. Most are after a few trees, which is what makes the search quick.
traces = ScoreTracesDisplay.from_detector(detector, scenes, n_rejected=200)
last = traces.n_trees_of_rejected
print(f"of {len(last)} rejected windows, half are gone after {np.median(last):.0f} trees,")
print(f"the last one after {last.max()} of {len(traces.thresholds)} trees")
work = efficiency(detector, scenes)
print(f"{work.windows_per_image:.0f} windows an image, {work.trees_per_window:.1f} trees a window")

pictures = {"channels": figure, "where_it_looks": tests.figure_, "how_soon": traces.figure_}
for name, picture in pictures.items():
    picture.savefig(f"inside_a_detector_{name}.png", dpi=120)
print("\nThe pictures are in", *(f"inside_a_detector_{name}.png" for name in pictures))
