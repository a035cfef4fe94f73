"""What the tests of training share: scenes, and windows of their objects."""

from __future__ import annotations

import pytest

from badacost._utils.parallel import Threads
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.training.samples import Variation
from badacost.detection.training.store import WindowStore
from campaigns.tiny_training import VIEWS, tiny_scenes


@pytest.fixture(scope="session")
def scenes() -> list[AnnotatedImage]:
    return tiny_scenes()


@pytest.fixture(scope="session")
def threads() -> Threads:
    return Threads()


@pytest.fixture(scope="session")
def store(scenes, threads) -> WindowStore:
    """The scenes and their mirror images."""
    store = WindowStore(scenes, VIEWS, Variation(3.0, 0.15, 2.0), threads, None, False)
    store.decode()
    return store
