"""
Finding objects and their views
===============================

A detector answers two questions at once: where is something, and from which side is it seen? The
one that comes with the package finds the cars of a synthetic world, without any download.
"""

# %%
# The detector knows eight views, named by heading in degrees: 0 faces the right of the image, 90
# the viewer, -90 away from the viewer.
import matplotlib.pyplot as plt

from badacost.detection.drawing import contact_sheet, draw
from badacost.detection.evaluation import evaluate_voc
from badacost.detection.models import synthetic_cars
from badacost.detection.scenes import make_scenes

detector = synthetic_cars()
print(detector)
print("views:", *detector.names)

# %%
# Four scenes that it has never seen. ``detect`` takes a file name, a PIL image or an array and
# returns ``Detections``: boxes x1, y1, x2, y2 in pixels, scores and views, best first.
scenes = make_scenes(4, n_views=8, objects_per_image=(2, 4), random_state=11)
found = [detector.detect(scene.load()) for scene in scenes]
first = found[0]
for box, score, label in zip(first.boxes, first.scores, first.labels, strict=True):
    print(f"{first.names[label]:>6} at {box.round().astype(int)}, score {score:.1f}")

# %%
# The colour of a box and the arrow in it show the view: down is towards the viewer. Low scores are
# doubtful ones. How many to take is a choice between missed cars and false alarms; here, all.
pictures = [draw(s.load(), f, width=600) for s, f in zip(scenes, found, strict=True)]
figure, axis = plt.subplots(figsize=(10, 7.6), layout="constrained")
axis.imshow(contact_sheet(pictures, columns=2, width=1200))
axis.set_axis_off()

# %%
# Since the scenes are synthetic, the truth is known. A car counts as found if the box of a
# detection shares more than half with its own.
names = [scene.name for scene in scenes]
result = evaluate_voc(
    dict(zip(names, found, strict=True)), dict(zip(names, scenes, strict=True)), overlap=0.5
)
print(
    f"{result.n_true} of {result.n_objects} cars found, {result.n_false} false alarms, "
    f"{result.view_accuracy:.0%} of the views right"
)

# %%
# On photographs this detector is useless: it was trained on synthetic scenes only.
# Detectors for real cars and faces were published by the authors of the paper, and
# ``badacost.detection.load_detector`` reads them.
figure.savefig("finding_cars.png", dpi=120)
print("\nThe picture is in finding_cars.png")
