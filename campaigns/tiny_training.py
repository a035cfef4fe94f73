"""Few small scenes and a training of a second, for what does not depend on how well is learned."""

from __future__ import annotations

from badacost.detection import TrainingConfig
from badacost.detection.annotations import AnnotatedImage, Views
from badacost.detection.scenes import make_scenes

VIEWS = Views.around(4)
TINY = TrainingConfig(
    window=(16, 24), trees=(2, 4), max_depth=2, n_negatives=20, n_accumulated=30, n_per_image=8,
    max_features=0.2, n_per_octave=4, mirror=False, n_jittered=1,
)  # fmt: skip


def tiny_scenes() -> list[AnnotatedImage]:
    """Six scenes with eleven objects, of each view in at least two of them."""
    return make_scenes(
        6, n_views=4, size=(64, 80), object_height=(0.3, 0.5), objects_per_image=(1, 2),
        random_state=15,
    )  # fmt: skip
