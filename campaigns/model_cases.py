"""Files that hold models: those of every estimator, of tables and of detectors, and MATLAB's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

import badacost
from badacost.detection import load_detector, train_detector
from badacost.detection.models import synthetic_cars
from badacost.detection.training.checkpoint import CHECKPOINTS, Checkpoint
from badacost.export import to_onnx
from badacost.tabular import TableClassifier
from campaigns.cases import FileKind
from campaigns.matlab_detectors import LAYOUTS, matlab_bytes
from campaigns.mutations import BYTES, MODEL
from campaigns.plain import (
    COSTS,
    ESTIMATORS,
    frame,
    n_classes_of,
    new_estimator,
    pixels,
    samples,
    saved,
    takes_costs,
)
from campaigns.tiny_training import TINY, VIEWS, tiny_scenes

_CONTENTS = {name: MODEL[name] for name in ("document", "array")}
_ALL = {**MODEL, **BYTES}
_NAME = "m.badacost"
_MAX_FEATURES = 1000  # a model that claims more is asked with none


class _Stopped(BaseException):
    """Ends a training."""


def _fitted_models() -> dict[str, Any]:
    """Return a small fitted model of each class, and of some forms of labels and costs."""
    X, y = samples()
    words = np.array(["red", "green", "blue"])[y]
    models = {name: new_estimator(name) for name in ESTIMATORS}
    for name, model in models.items():
        n_classes = n_classes_of(name)
        if takes_costs(name):
            model.set_params(cost_matrix=COSTS[:n_classes, :n_classes])
        model.fit(X, y % n_classes)
    models["categories"] = new_estimator("CostBoostClassifier", categorical_features=[2])
    models["categories"].fit(X, words)
    models["table"] = TableClassifier(new_estimator("BAdaCostClassifier")).fit(*frame())
    models["calibrated"] = new_estimator("MinimumCostClassifier", calibration="temperature")
    models["calibrated"].fit(X, words)
    return models


def _questions(model: Any) -> Any:
    """Return rows that a model can be asked about."""
    if isinstance(model, TableClassifier):
        table = frame()[0]
        known = [name for name in model.feature_names_in_ if name in table]
        return table[known] if len(known) == len(model.feature_names_in_) else None
    n_features = int(model.n_features_in_)
    if n_features > _MAX_FEATURES:
        return None
    return np.random.default_rng(0).normal(size=(5, n_features))


class ModelFiles(FileKind):
    """Saved estimators: loaded, asked for everything and saved again."""

    name = "model"
    mutations = _ALL

    def build(self) -> Mapping[str, Any]:
        """Return the files of small models."""
        return {name: {_NAME: saved(model)} for name, model in _fitted_models().items()}

    def use(self, path: Path, base: str) -> None:
        """Load the model; one that can be loaded can be used."""
        model = badacost.load(path)
        _ = repr(model), getattr(model, "feature_importances_", None)
        data = _questions(model)
        if data is not None:
            model.predict(data)
            for method in ("predict_proba", "cost_scores", "decision_function", "apply"):
                if hasattr(model, method):
                    getattr(model, method)(data)
        model.save(path.with_name("again.badacost"))


class ExportedModels(ModelFiles):
    """Odd models that can be loaded, exported to ONNX."""

    name = "export"
    mutations = _CONTENTS

    def use(self, path: Path, base: str) -> None:
        """Load the model and export it."""
        to_onnx(badacost.load(path)).SerializeToString()


class DetectorFiles(FileKind):
    """Saved detectors: loaded, and used on a picture."""

    name = "detector"
    mutations = _ALL

    def build(self) -> Mapping[str, Any]:
        """Return a detector with all parts, and small ones of other forms."""
        found = {"trained": {_NAME: saved(train_detector(tiny_scenes(), VIEWS, TINY))}}
        for name in LAYOUTS:
            with TemporaryDirectory() as folder:
                path = Path(folder, "m.mat")
                path.write_bytes(matlab_bytes(LAYOUTS[name]()))
                found[name] = {_NAME: saved(load_detector(path))}
        synthetic_cars().detect(pixels())
        return found

    def use(self, path: Path, base: str) -> None:
        """Load the detector and look at a picture."""
        detector = load_detector(path)
        detector.detect(pixels())
        detector.save(path.with_name("again.badacost"))


class MatlabFiles(DetectorFiles):
    """Detectors as they were published."""

    name = "matlab"
    mutations = BYTES

    def build(self) -> Mapping[str, Any]:
        """Return made-up detectors of each layout, with and without compression."""
        found = {}
        for name, layout in LAYOUTS.items():
            for compress in (False, True):
                key = f"{name} compressed" if compress else name
                found[key] = {"m.mat": matlab_bytes(layout(), compress)}
        return found


class Checkpoints(FileKind):
    """Checkpoints of a training, that the same call resumes from."""

    name = "checkpoint"
    mutations = _ALL

    def build(self) -> Mapping[str, Any]:
        """Return the checkpoints of a training that was stopped at some moments."""
        return {f"after {n_saved}": self.stopped(n_saved) for n_saved in (1, 3, 5, 1000)}

    def stopped(self, n_saved: int) -> dict[str, bytes]:
        """Return the files of a training that is stopped after it saved so often."""
        save, n_left = Checkpoint.save, n_saved

        def counted(checkpoint: Any, progress: Any) -> None:
            nonlocal n_left
            save(checkpoint, progress)
            n_left -= 1
            if not n_left:
                raise _Stopped

        with TemporaryDirectory() as folder, patch.object(Checkpoint, "save", counted):
            with suppress(_Stopped):
                self._train(Path(folder))
            return {path.name: path.read_bytes() for path in sorted(Path(folder).glob(CHECKPOINTS))}

    def use(self, path: Path, base: str) -> None:
        """Resume the training."""
        self._train(path.parent)

    def _train(self, folder: Path) -> None:
        train_detector(tiny_scenes(), VIEWS, TINY, folder=folder)


MODEL_KINDS = (ModelFiles(), ExportedModels(), DetectorFiles(), MatlabFiles(), Checkpoints())
