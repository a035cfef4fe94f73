"""Detectors that come with the package."""

from __future__ import annotations

from importlib.resources import as_file, files

from badacost.detection.detector import Detector

_FOLDER = "trained"


def synthetic_cars() -> Detector:
    """Return a detector of the cars of `badacost.detection.scenes.make_scenes`, in 8 views.

    It was trained on 200 synthetic scenes with the configuration `TrainingConfig.small`. It is here
    to try things out; on photographs it finds nothing useful.

    Examples
    --------
    >>> from badacost.detection.scenes import make_scenes
    >>> from badacost.detection.models import synthetic_cars
    >>> (scene,) = make_scenes(1, objects_per_image=2, random_state=7)
    >>> found = synthetic_cars().detect(scene.load())
    >>> len(found), found.category
    (2, 'Car')
    """
    resource = files("badacost.detection").joinpath(_FOLDER, "synthetic_cars.badacost")
    with as_file(resource) as path:
        return Detector.load(path)
