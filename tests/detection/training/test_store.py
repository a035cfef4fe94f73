"""The window store: pictures are decoded once, wherever they are kept; known bins stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from badacost._utils.parallel import Threads
from badacost.detection import ImageError
from badacost.detection.annotations import AnnotatedImage
from badacost.detection.training import store as module
from badacost.detection.training.samples import Variation, WindowFeatures, WindowList
from badacost.detection.training.store import BinnedWindows, WindowStore, allocated, named
from campaigns.tiny_training import TINY, VIEWS

VARIATION = Variation(rotation=3.0, contrast=0.15, noise=2.0)


def decoded(images, views, threads, folder=None, verbose=False) -> WindowStore:
    store = WindowStore(images, views, VARIATION, threads, folder, verbose)
    store.decode()
    return store


@pytest.fixture(scope="module")
def files(scenes, tmp_path_factory) -> list[AnnotatedImage]:
    folder = tmp_path_factory.mktemp("pictures")
    for scene in scenes:
        Image.fromarray(scene.load()).save(folder / f"{scene.name}.png")
    return [
        replace(scene, image=folder / f"{scene.name}.png", size=None)
        for scene in scenes
    ]  # fmt: skip


@pytest.fixture(scope="module")
def features() -> WindowFeatures:
    pyramid = TINY.pyramid((0.0, 0.0, 0.0))
    return WindowFeatures(
        replace(TINY, n_filters=0).shape, pyramid.channels, pyramid.smoothing, None
    )


@pytest.fixture(scope="module")
def windows(store, features) -> WindowList:
    """Windows of all objects, half of them varied."""
    found = WindowList.of(
        [(k, features.shape.fitted(image.boxes)) for k, image in enumerate(store.images)]
    )
    return replace(found, seeds=np.arange(len(found)) % 2 * (np.arange(len(found)) + 1))


class TestPictures:
    def test_mirror_images_of_pictures_with_objects_follow(self, scenes, threads) -> None:
        empty = AnnotatedImage(np.zeros((40, 50, 3), np.uint8), name="empty")
        store = decoded([*scenes[:2], empty], VIEWS, threads)
        assert store.n_pictures == 3
        assert store.origins.tolist() == [0, 1, 2, 0, 1]
        np.testing.assert_array_equal(store.pixels(3), scenes[0].load()[:, ::-1])
        np.testing.assert_array_equal(
            store.images[3].boxes[:, [0, 2]], 80 - scenes[0].boxes[:, [2, 0]]
        )
        np.testing.assert_array_equal(
            store.images[4].labels, np.take(VIEWS.mirror, scenes[1].labels)
        )

    def test_without_mirror_images(self, scenes, threads) -> None:
        store = WindowStore(scenes, None, VARIATION, threads, None, False)
        assert len(store.images) == store.n_pictures == len(scenes)

    @pytest.mark.parametrize("max_memory", [2**32, 0], ids=["memory", "file"])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_files_are_decoded_once(
        self, scenes, files, tmp_path, monkeypatch, max_memory, n_jobs
    ) -> None:
        loaded: list[str] = []
        load = AnnotatedImage.load

        def counted(self: AnnotatedImage) -> np.ndarray:
            loaded.append(self.name)
            return load(self)

        monkeypatch.setattr(AnnotatedImage, "load", counted)
        monkeypatch.setattr(module, "_MAX_MEMORY", max_memory)
        threads = Threads(n_jobs)
        store = WindowStore(files, VIEWS, VARIATION, threads, tmp_path, False)
        assert loaded == []
        store.decode()
        for index, scene in enumerate(scenes):
            for _ in range(2):
                np.testing.assert_array_equal(store.pixels(index), scene.image)
            np.testing.assert_array_equal(
                store.pixels(len(scenes) + index), scene.image[:, ::-1]
            )  # fmt: skip
        assert sorted(loaded) == sorted(scene.name for scene in scenes)
        assert list(tmp_path.iterdir()) == []  # the file has no name

    def test_a_picture_that_cannot_be_read(self, files, tmp_path, threads) -> None:
        (tmp_path / "broken.png").write_bytes(b"no picture")
        broken = replace(files[0], image=tmp_path / "broken.png")
        with pytest.raises(ImageError, match=r"broken\.png"):
            decoded([*files, broken], VIEWS, threads)

    def test_bars(self, files, threads, capsys) -> None:
        decoded(files, VIEWS, threads, verbose=True)
        assert "pictures [" in capsys.readouterr().err
        decoded(files, VIEWS, threads)
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("max_memory", [1000, 999])
    def test_memory_can_be_written(self, tmp_path, monkeypatch, max_memory) -> None:
        monkeypatch.setattr(module, "_MAX_MEMORY", max_memory)
        memory = allocated(1000, tmp_path)
        memory[:] = 7
        assert type(memory) is np.ndarray
        assert memory.sum() == 7000

    def test_mistakes_name_the_image(self, scenes) -> None:
        with pytest.raises(ValueError, match=f"^'{scenes[0].name}': too large"), named(scenes[0]):
            raise ValueError("too large.")
        with pytest.raises(ImageError, match=r"^as it is"), named(scenes[0]):
            raise ImageError("as it is.")


class TestWindows:
    def test_features_are_those_of_cut_outs(self, store, windows, features) -> None:
        got = store.features(windows, features, "")
        for place in (0, 1, len(windows) - 1):
            one = windows.chosen(np.array([place]))
            crops = features.shape.cut(
                store.pixels(int(one.images[0])), one.boxes, one.seeds, store.variation
            )
            np.testing.assert_array_equal(got[place], features.of(crops)[0])

    def test_the_number_of_threads_does_not_matter(self, scenes, store, windows, features) -> None:
        three = Threads(3)
        other = decoded(scenes, VIEWS, three)
        np.testing.assert_array_equal(
            other.features(windows, features, ""), store.features(windows, features, "")
        )

    def test_seeds_vary_the_pixels(self, store, windows, features) -> None:
        plain, varied, again, other = (
            store.features(replace(windows, seeds=np.full(len(windows), seed)), features, "")
            for seed in (0, 1, 1, 2)
        )
        np.testing.assert_array_equal(varied, again)
        assert (np.abs(plain - varied).max(axis=1) > 1e-3).all()
        assert (np.abs(other - varied).max(axis=1) > 1e-3).all()

    def test_mistakes_name_the_image(self, store, features) -> None:
        absurd = WindowList.of([(1, np.array([[0.0, 0.0, 1500.0, 1000.0]]))])
        with pytest.raises(ValueError, match=f"^'{store.images[1].name}': .*correct its box"):
            store.features(absurd, features, "")


class TestBins:
    def binned(self, store, features, windows, **options) -> BinnedWindows:
        settings = {"max_bins": 16, "seed": 0} | options
        return BinnedWindows(store, features, windows, **settings)

    def test_are_those_of_the_features(self, store, features, windows) -> None:
        data = self.binned(store, features, windows).data(windows)
        expected = data.mapper.transform(store.features(windows, features, ""))
        np.testing.assert_array_equal(data.bins, expected)
        assert data.bins.max() > 8

    @pytest.mark.parametrize("max_memory", [2**32, 0], ids=["memory", "file"])
    def test_known_windows_survive_any_others(
        self, store, features, windows, monkeypatch, tmp_path, max_memory
    ) -> None:
        monkeypatch.setattr(module, "_MAX_MEMORY", max_memory)
        monkeypatch.setattr(store, "folder", tmp_path)
        binned = self.binned(store, features, windows)
        whole = binned.data(windows).bins.copy()
        computed: list[int] = []
        of = WindowFeatures.of

        def counted(self: WindowFeatures, crops, threads=None):
            computed.append(len(crops))
            return of(self, crops, threads)

        monkeypatch.setattr(WindowFeatures, "of", counted)
        everything = list(range(len(windows)))
        for chosen, n_new in (
            ([4, 2, 0], 0),
            ([0, 2, 4, 1], 1),
            (everything, len(windows) - 4),
            ([1, 3], 0),
            ([3, 1, 1, 5], 1),
        ):
            computed.clear()
            bins = binned.data(windows.chosen(np.array(chosen))).bins
            np.testing.assert_array_equal(bins, whole[:, chosen])
            assert sum(computed) == n_new

    def test_copies_with_other_seeds_are_other_windows(self, store, features, windows) -> None:
        binned = self.binned(store, features, windows)
        before = binned.data(windows).bins.copy()
        after = binned.data(replace(windows, seeds=windows.seeds + 100)).bins
        assert (before != after).any(axis=0).all()

    def test_are_chosen_by_a_part_of_many_windows(
        self, store, features, windows, monkeypatch
    ) -> None:
        monkeypatch.setattr(module, "_MAX_BINNED_WINDOWS", 8)
        edges = [
            self.binned(store, features, windows, seed=seed).data(windows).bins.copy()
            for seed in (0, 0, 1)
        ]
        np.testing.assert_array_equal(edges[0], edges[1])
        assert (edges[0] != edges[2]).any()
