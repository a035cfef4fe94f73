"""
Training a detector, and what false alarms are good for
=======================================================

A detector learns what an object is from annotated boxes, and what it is not from its own false
alarms: a first cascade is let loose on the training images, and what it wrongly finds are examples
for the next one. Two tiny detectors show the difference, on a scale of seconds.
"""

# %%
# Synthetic scenes with cars in four views: some to train with, others to try. For your own
# pictures, ``badacost.detection.annotations`` reads KITTI, VOC, COCO, YOLO, FDDB and CSV files.
import time

import matplotlib.pyplot as plt

from badacost.detection import TrainingConfig, train_detector
from badacost.detection.annotations import Views
from badacost.detection.drawing import draw
from badacost.detection.evaluation import PrecisionRecallDisplay, evaluate_voc
from badacost.detection.scenes import make_scenes

views = Views.around(4)
scenes = make_scenes(20, n_views=4, random_state=0)
fresh = {scene.name: scene for scene in make_scenes(20, n_views=4, random_state=1)}

# %%
# A configuration that is far too small for real images: large cells, no filters, few trees.
# ``trees`` has a number for each round. Both detectors end with a cascade of 48 trees; the first
# has seen random background only, the second also the false alarms of the round before. A fifth of
# the objects is held out, which sets the thresholds and turns scores into probabilities; without
# ``refit``, which would train once more on all scenes and their false alarms.
small = {
    "window": (32, 48),
    "max_depth": 4,
    "n_negatives": 300,
    "n_accumulated": 900,
    "negative_overlap": 0.2,
    "n_filters": 0,
    "shrink": 4,
    "n_jittered": 1,
    "refit": False,
}
rounds = {"random background": (48,), "and false alarms": (32, 48)}
found, results = {}, {}
for name, trees in rounds.items():
    start = time.perf_counter()
    config = TrainingConfig(trees=trees, **small)
    detector = train_detector(scenes, views, config, category="Car", n_jobs=2)
    seconds = time.perf_counter() - start
    boxes = detector.detect_many((scene.load() for scene in fresh.values()), n_jobs=2)
    found[name] = dict(zip(fresh, boxes, strict=True))
    results[name] = evaluate_voc(found[name], fresh)
    print(f"{name:18} trained in {seconds:.0f} s")

# %%
# On scenes that neither has seen, all boxes and those that are objects rather than not:
print(f"{'':18}{'found':>12}{'false alarms':>14}{'AP':>7}{'views right':>13}")
for name, result in results.items():
    sure = evaluate_voc({key: boxes.above(0.5) for key, boxes in found[name].items()}, fresh)
    for title, part in ((name, result), ("  above 0.5", sure)):
        hits = f"{part.n_true} of {part.n_objects}"
        print(f"{title:18}{hits:>12}{part.n_false:14}{part.ap:7.3f}{part.view_accuracy:13.0%}")

# %%
# The scene with most false alarms of the first detector above 0.3, seen by both, and all scenes
# together.
shown = {
    name: {key: part.above(0.3) for key, part in boxes.items()} for name, boxes in found.items()
}
worst = max(fresh, key=lambda name: len(shown["random background"][name]) - len(fresh[name]))
figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
for axis, (name, boxes) in zip(axes, shown.items(), strict=False):
    axis.imshow(draw(fresh[worst].load(), boxes[worst], width=640, labels=False))
    axis.set_title(f"{name}: {len(boxes[worst])} boxes, {len(fresh[worst])} cars")
    axis.set_axis_off()
curves = {name: result.curve for name, result in results.items()}
PrecisionRecallDisplay(curves).plot(ax=axes[2])

# %%
# One round of false alarms teaches more than as many trees on random background: fewer wrong boxes,
# and objects that are separated from them with more certainty. Real trainings have hundreds of
# objects and more rounds (``TrainingConfig``), and write checkpoints to resume from.
figure.savefig("training_a_detector.png", dpi=120)
print("\nThe picture is in training_a_detector.png")
