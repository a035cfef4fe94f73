"""Pictures of every kind as RGB bytes, and one sentence for everything that is none."""

from __future__ import annotations

import struct
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as arrays
from PIL import Image

from badacost.detection.images import (
    ImageError,
    count_frames,
    find_images,
    is_image,
    is_video,
    read_image,
    read_video,
    size_of_file,
)

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
GREY = RNG.integers(0, 256, (5, 7), dtype=np.uint8)


def check_sentence(error: ImageError) -> None:
    assert len(str(error).splitlines()) == 1
    assert str(error).endswith(".")


def write_video(path: Path, n_frames: int = 8, codec: str = "mpeg4") -> Path:
    """A video of grey frames that grow lighter by 20, with a white left third."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for number in range(n_frames):
            pixels = np.full((32, 48, 3), 20 * number, np.uint8)
            pixels[:, :16] = 255
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


class TestArrays:
    def test_rgb_bytes_are_returned_as_they_are(self) -> None:
        assert read_image(RGB) is RGB

    @pytest.mark.parametrize("image", [GREY, GREY[:, :, np.newaxis]])
    def test_grey_is_repeated(self, image) -> None:
        assert (read_image(image) == GREY[:, :, np.newaxis]).all()
        assert read_image(image).shape == (5, 7, 3)

    def test_result_is_contiguous(self) -> None:
        flipped = read_image(RGB[::-1, ::2])
        assert flipped.flags.c_contiguous
        assert (flipped == RGB[::-1, ::2]).all()

    @pytest.mark.parametrize("order", ["<", ">"])
    def test_sixteen_bits_are_divided_by_257(self, order) -> None:
        wide = np.arange(2**16, dtype=f"{order}u2").reshape(256, 256)
        assert (read_image(wide)[:, :, 0] == np.rint(wide / 257.0)).all()

    def test_booleans_are_black_and_white(self) -> None:
        assert read_image(np.array([[True, False]]))[0, :, 0].tolist() == [255, 0]

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_floats_give_back_the_bytes_they_came_from(self, dtype) -> None:
        assert (read_image((RGB / 255.0).astype(dtype)) == RGB).all()

    def test_alpha_is_laid_on_black(self) -> None:
        image = np.array([[[200, 100, 51, 255], [200, 100, 51, 0], [200, 100, 51, 128]]], np.uint8)
        assert read_image(image).tolist() == [[[200, 100, 51], [0, 0, 0], [100, 50, 26]]]

    @pytest.mark.parametrize(
        ("image", "message"),
        [
            (np.zeros((0, 5, 3), np.uint8), "must have pixels"),
            (np.zeros((5, 0), np.uint8), "must have pixels"),
            (np.zeros(5, np.uint8), "move channels to the last axis"),
            (np.zeros((3, 5, 5), np.uint8), "move channels to the last axis"),
            (np.zeros((1, 5, 5, 3), np.uint8), "must have shape"),
            (np.zeros((5, 5, 3), np.int64), "convert it to uint8"),
            (np.zeros((5, 5), np.complex128), "convert it to uint8"),
            (np.full((5, 5), "x"), "convert it to uint8"),
            (np.full((5, 5, 3), 200.0), "divide it by"),
            (np.full((5, 5, 3), -0.01), "divide it by"),
            (np.full((5, 5, 3), np.nan), "replace NaN"),
            (np.full((5, 5, 3), np.inf), "divide it by"),
        ],
    )
    def test_what_is_no_picture(self, image, message) -> None:
        with pytest.raises(ImageError, match=message):
            read_image(image)

    @given(
        arrays.arrays(
            arrays.scalar_dtypes(), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0)
        )
    )
    @settings(max_examples=200)
    def test_any_array_is_a_picture_or_an_image_error(self, image) -> None:
        try:
            result = read_image(image)
        except ImageError as error:
            check_sentence(error)
        else:
            assert result.dtype == np.uint8
            assert result.shape == (*image.shape[:2], 3)

    @pytest.mark.parametrize("image", [None, 3, [[1, 2]], b"a.png"])
    def test_other_types(self, image) -> None:
        with pytest.raises(TypeError, match="a path, a PIL image or an array"):
            read_image(image)


class TestPILImages:
    @pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV"])
    def test_modes_that_pil_converts(self, mode) -> None:
        image = Image.fromarray(RGB).convert(mode)
        assert (read_image(image) == np.asarray(image.convert("RGB"))).all()

    def test_palette_with_transparency(self) -> None:
        image = Image.new("P", (2, 1))
        image.putpalette([10, 20, 30, 40, 50, 60])
        image.putpixel((1, 0), 1)
        image.info["transparency"] = 0
        assert read_image(image).tolist() == [[[0, 0, 0], [40, 50, 60]]]

    def test_wide_integers(self) -> None:
        wide = GREY.astype(np.uint16) * 257
        assert (read_image(Image.fromarray(wide))[:, :, 0] == GREY).all()
        assert (read_image(Image.fromarray(wide.astype(np.int32)))[:, :, 0] == GREY).all()
        with pytest.raises(ImageError, match="scale them to bytes"):
            read_image(Image.fromarray(np.full((2, 2), 2**20, np.int32)))

    def test_floats(self) -> None:
        assert (read_image(Image.fromarray(GREY / np.float32(255)))[:, :, 0] == GREY).all()
        with pytest.raises(ImageError, match="divide it by"):
            read_image(Image.fromarray(GREY.astype(np.float32)))

    def test_no_pixels(self) -> None:
        with pytest.raises(ImageError, match="must have pixels"):
            read_image(Image.new("RGB", (0, 3)))

    def test_limit(self) -> None:
        with pytest.raises(ImageError, match="its 7 x 5 pixels would need 245 bytes, limit 244"):
            read_image(Image.fromarray(RGB), max_memory=244)
        assert read_image(Image.fromarray(RGB), max_memory=245).shape == RGB.shape


class TestFiles:
    @pytest.mark.parametrize("suffix", [".png", ".bmp", ".tiff", ".ppm", ".webp"])
    def test_lossless_formats(self, tmp_path: Path, suffix) -> None:
        path = tmp_path / f"a{suffix}"
        Image.fromarray(RGB).save(path, **({"lossless": True} if suffix == ".webp" else {}))
        assert (read_image(path) == RGB).all()
        assert (read_image(str(path)) == RGB).all()

    @pytest.mark.parametrize("suffix", [".png", ".tiff"])
    def test_sixteen_bits(self, tmp_path: Path, suffix) -> None:
        path = tmp_path / f"a{suffix}"
        Image.fromarray(GREY.astype(np.uint16) * 257).save(path)
        assert (read_image(path)[:, :, 0] == GREY).all()

    def test_cmyk_jpeg(self, tmp_path: Path) -> None:
        Image.new("RGB", (16, 16), (200, 30, 60)).convert("CMYK").save(tmp_path / "a.jpg")
        assert np.abs(read_image(tmp_path / "a.jpg").astype(int) - [200, 30, 60]).max() <= 3

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_exif_orientation(self, tmp_path: Path, orientation) -> None:
        turns = {
            1: lambda a: a,
            2: lambda a: a[:, ::-1],
            3: lambda a: a[::-1, ::-1],
            4: lambda a: a[::-1],
            5: lambda a: a.swapaxes(0, 1),
            6: lambda a: np.rot90(a, -1),
            7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
            8: lambda a: np.rot90(a, 1),
        }
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(RGB).save(tmp_path / "a.png", exif=exif)
        assert (read_image(tmp_path / "a.png") == turns[orientation](RGB)).all()

    def test_first_picture_of_an_animation(self, tmp_path: Path) -> None:
        frames = [Image.new("L", (4, 4), value) for value in (40, 200)]
        frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
        assert (read_image(tmp_path / "a.gif") == 40).all()

    @pytest.mark.parametrize(
        ("name", "contents", "message"),
        [
            ("absent.png", None, "there is no such file"),
            ("empty.png", b"", "it is empty"),
            ("text.jpg", b"this is no picture", "not a picture of a known format"),
            ("script.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "known format"),
            ("line\nend.png", b"no", "known format"),
        ],
    )
    def test_one_sentence_names_file_and_reason(self, tmp_path: Path, name, contents, message):
        if contents is not None:
            (tmp_path / name).write_bytes(contents)
        with pytest.raises(ImageError, match=message) as caught:
            read_image(tmp_path / name)
        assert repr(name)[1:-1] in str(caught.value)
        assert str(caught.value).startswith("cannot read the image '")
        check_sentence(caught.value)

    def test_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ImageError, match="is a folder: name a file"):
            read_image(tmp_path)

    @pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tiff"])
    def test_every_truncation(self, tmp_path: Path, suffix) -> None:
        image = Image.fromarray(RNG.integers(0, 256, (40, 40, 3), dtype=np.uint8))
        image.save(tmp_path / f"whole{suffix}")
        whole = (tmp_path / f"whole{suffix}").read_bytes()
        for share in (0.05, 0.3, 0.6, 0.9):
            path = tmp_path / f"part{suffix}"
            path.write_bytes(whole[: int(share * len(whole))])
            with pytest.raises(ImageError, match=f"part{suffix}"):
                read_image(path)

    @pytest.mark.parametrize("suffix", [".jpg", ".png", ".bmp", ".gif", ".tiff", ".webp", ".ppm"])
    def test_damage_is_never_another_error(self, tmp_path: Path, suffix) -> None:
        rng = np.random.default_rng(len(suffix))
        path = tmp_path / f"a{suffix}"
        Image.fromarray(RGB).save(path)
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        for _ in range(60):
            damaged = whole.copy()
            spots = rng.integers(0, len(whole), rng.integers(1, 8))
            damaged[spots] = rng.integers(0, 256, len(spots))
            path.write_bytes(damaged.tobytes())
            try:
                assert read_image(path, max_memory=10**7).dtype == np.uint8
            except ImageError as error:
                check_sentence(error)

    def test_bomb_is_refused_before_it_is_decoded(self, tmp_path: Path) -> None:
        for side, message in ((12_000, "12000 pixels would need 1.01 GB"), (60_000, "MAX_IMAGE")):
            header = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54, 0, 0, 54, 40, side, side, 1, 24,
                                 0, 0, 0, 0, 0, 0)  # fmt: skip
            (tmp_path / "bomb.bmp").write_bytes(header)
            with pytest.raises(ImageError, match=message):
                read_image(tmp_path / "bomb.bmp")

    def test_large_pictures_do_not_warn(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
        Image.fromarray(RGB).save(tmp_path / "a.png")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (read_image(tmp_path / "a.png") == RGB).all()

    def test_threads_leave_the_filters_of_warnings_alone(self, tmp_path: Path) -> None:
        Image.fromarray(RGB).resize((300, 300)).save(tmp_path / "a.png")
        before = list(warnings.filters)
        with ThreadPoolExecutor(4) as pool:
            for function in (read_image, size_of_file):
                list(pool.map(function, [tmp_path / "a.png"] * 100))
        assert warnings.filters == before

    def test_size_is_read_of_the_same_formats(self, tmp_path: Path) -> None:
        Image.fromarray(RGB).save(tmp_path / "a.png")
        assert size_of_file(tmp_path / "a.png") == (5, 7)
        Image.fromarray(RGB).save(tmp_path / "a.tga")
        for function in (read_image, size_of_file):
            with pytest.raises(ImageError, match="not a picture of a known format"):
                function(tmp_path / "a.tga")

    def test_missing_package(self, monkeypatch) -> None:
        monkeypatch.setitem(sys.modules, "PIL", None)
        with pytest.raises(ImportError, match=r'pip install "badacost\[detection\]"'):
            read_image("a.png")
        assert read_image(RGB) is RGB


class TestFolders:
    def test_names(self) -> None:
        assert is_image("a/B.JPG")
        assert not is_image("a.jpg.txt")
        assert is_video(Path("a.MP4"))
        assert not is_video("a.png")

    def test_find_images(self, tmp_path: Path) -> None:
        for name in (
            "b.png",
            "a.JPG",
            "c.txt",
            ".hidden.png",
            "in/d.png",
            ".git/e.png",
            "in/f.mp4",
        ):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        expected = [tmp_path / name for name in ("a.JPG", "b.png", "in/d.png")]
        assert find_images(tmp_path) == expected
        assert find_images(str(tmp_path), recursive=False) == expected[:2]

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(NotADirectoryError, match="not a folder"):
            find_images(tmp_path / "absent")


class TestVideos:
    @pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv"])
    def test_frames(self, tmp_path: Path, suffix) -> None:
        path = write_video(tmp_path / f"a{suffix}")
        frames = list(read_video(path))
        assert count_frames(path) == len(frames) == 8
        for number, frame in enumerate(frames):
            assert frame.shape == (32, 48, 3)
            assert abs(float(frame[:, 24:].mean()) - 20 * number) < 6
            assert frame[:, :8].mean() > 240

    def test_every(self, tmp_path: Path) -> None:
        path = write_video(tmp_path / "a.mp4")
        frames = list(read_video(path, every=3))
        every = list(read_video(path))[::3]
        assert all((a == b).all() for a, b in zip(frames, every, strict=True))

    def test_turned_upright(self, tmp_path: Path) -> None:
        path = write_video(tmp_path / "a.mp4", n_frames=2)
        data = bytearray(path.read_bytes())
        matrix = data.index(b"tkhd") + 44
        assert struct.unpack(">9i", data[matrix : matrix + 36])[0] == 2**16
        quarter = (0, 2**16, 0, -(2**16), 0, 0, 0, 0, 2**30)  # clockwise
        data[matrix : matrix + 36] = struct.pack(">9i", *quarter)
        path.write_bytes(data)
        frame = next(read_video(path))
        assert frame.shape == (48, 32, 3)
        assert frame.flags.c_contiguous
        assert frame[:8].mean() > 240  # the left side is on top

    @pytest.mark.parametrize(
        ("contents", "message"),
        [
            (None, "there is no such file"),
            (b"", "it is empty"),
            (b"this is no video" * 20, "Invalid"),
            (b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\na.ts\n#EXT-X-ENDLIST\n", "Invalid"),
        ],
    )
    def test_one_sentence_names_file_and_reason(self, tmp_path: Path, contents, message) -> None:
        path = tmp_path / "a.mp4"
        if contents is not None:
            path.write_bytes(contents)
        for read in (count_frames, lambda path: next(read_video(path))):
            with pytest.raises(
                ImageError, match=rf"^cannot read the video '.*a\.mp4': .*{message}"
            ):
                read(path)

    def test_truncated_video_gives_what_is_left(self, tmp_path: Path) -> None:
        path = write_video(tmp_path / "a.avi", n_frames=8)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        n_frames = 0
        try:
            for frame in read_video(path):
                n_frames += 1
                assert frame.shape == (32, 48, 3)
        except ImageError as error:
            check_sentence(error)
        assert n_frames < 8

    def test_limit(self, tmp_path: Path) -> None:
        path = write_video(tmp_path / "a.mp4", n_frames=1)
        with pytest.raises(ImageError, match=r"would need more than 30 kB: pass max_memory="):
            next(read_video(path, max_memory=30_000))

    def test_parameters_are_checked_at_once(self) -> None:
        with pytest.raises(ValueError, match="every must be an integer at least 1"):
            read_video("a.mp4", every=0)

    def test_missing_package(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setitem(sys.modules, "av", None)
        with pytest.raises(ImportError, match=r'pip install "badacost\[detection\]"'):
            count_frames(tmp_path / "a.mp4")
