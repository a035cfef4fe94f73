"""A synthetic world: small cars seen from all sides, with exact boxes and angles, and no download.

A car is a few convex solids with painted panels: lamps and a grille in front, red lamps and a plate
behind, windows and wheels at the sides. It is the same left and right, so that the mirror image of
a scene is a scene. It is painted from the ground up, the order of depth for solids that stand on
one another and are seen from above, over a background of noise, plain solids and patterns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badacost._utils.arrays import FloatArray
from badacost._utils.validation import check_number
from badacost.detection.annotations.image import AnnotatedImage
from badacost.detection.annotations.views import Views
from badacost.detection.boxes import overlaps
from badacost.detection.images import Pixels
from badacost.detection.rendering import Camera, Colours, Layer, Mesh, Solid

_MAX_OVERLAP = 0.02
_TRIES = 60
_MAX_SIDE = 4096
_MAX_OBJECTS = 100
_NEARER = 0.25  # how much larger a car is at the near end of its way than half-way round

_HALF_WIDTH, _WHEEL = 0.56, 0.19
_FOOTPRINT = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * [1.0, _HALF_WIDTH, 0.0]
# Panels of a car are painted with a row of its palette: red, green, blue, and how much it glows.
# The first two are the car's own.
_PAINT, _BAND, _GLASS, _RUBBER, _TRIM, _METAL, _PLATE, _HEAD_LAMP, _TAIL_LAMP = range(9)
_PALETTE = np.array(
    [
        [0, 0, 0, 0], [0, 0, 0, 0], [52, 64, 82, 0], [28, 28, 30, 0], [58, 58, 62, 0],
        [186, 188, 194, 0], [235, 235, 228, 0], [255, 246, 196, 0.6], [214, 26, 24, 0.3],
    ]
)  # fmt: skip


def make_scenes(
    n_images: int,
    *,
    n_views: int = 8,
    size: tuple[int, int] = (240, 320),
    objects_per_image: int | tuple[int, int] = (1, 3),
    object_height: tuple[float, float] = (0.2, 0.45),
    random_state: int = 0,
) -> list[AnnotatedImage]:
    """Render scenes with cars seen from all sides.

    Parameters
    ----------
    n_images : int
        How many scenes.
    n_views : int, default=8
        Views to divide headings into, as `Views.around` does; all are equally frequent.
    size : (int, int), default=(240, 320)
        Height and width in pixels, at least 32.
    objects_per_image : int or (int, int), default=(1, 3)
        Minimum and maximum number of cars in a scene; fewer where there is no room for more. 0
        makes negatives.
    object_height : (float, float), default=(0.2, 0.45)
        Minimum and maximum height of a car, as a part of the shorter side of the picture.
    random_state : int, default=0
        The same number gives the same scenes; a scene does not depend on how many follow it.

    Returns
    -------
    list of AnnotatedImage
        RGB bytes, with boxes exactly around the cars, which overlap each other by 2 % at most,
        their views as `labels`, and the heading of each as KITTI's alpha.

    Examples
    --------
    >>> from badacost.detection.scenes import make_scenes
    >>> scene = make_scenes(3, random_state=1)[2]
    >>> scene
    AnnotatedImage('scene 2', 2 objects)
    >>> scene.load().shape
    (240, 320, 3)
    >>> scene.labels, scene.angles.round()
    (array([3, 6]), array([-125.,   98.]))
    """
    check_number("n_images", n_images, Integral, low=0)
    world, seed = _checked_world(n_views, size, objects_per_image, object_height, random_state)
    return [
        world.scene(f"scene {number}", np.random.default_rng([seed, number]))
        for number in range(n_images)
    ]


def make_drive(
    n_frames: int,
    *,
    n_views: int = 8,
    size: tuple[int, int] = (240, 320),
    n_objects: int = 3,
    object_height: tuple[float, float] = (0.25, 0.4),
    random_state: int = 0,
) -> Iterator[AnnotatedImage]:
    """Render the frames of a video: cars that drive in circles, in front of what stands still.

    Parameters
    ----------
    n_frames : int
        How many frames.
    n_views : int, default=8
        Views to divide headings into, as `Views.around` does.
    size : (int, int), default=(240, 320)
        Height and width in pixels, at least 32.
    n_objects : int, default=3
        Number of cars.
    object_height : (float, float), default=(0.25, 0.4)
        Minimum and maximum height of a car half-way round, as a part of the shorter side of the
        picture.
    random_state : int, default=0
        The same number gives the same frames; a frame does not depend on how many follow it.

    Yields
    ------
    AnnotatedImage
        RGB bytes, with boxes exactly around the cars, and the heading of each as KITTI's alpha. The
        cars are in the same order in all frames; one may hide another.

    Examples
    --------
    >>> from badacost.detection.scenes import make_drive
    >>> frames = list(make_drive(3, n_objects=2, random_state=1))
    >>> frames[2]
    AnnotatedImage('frame 2', 2 objects)
    >>> [frame.angles.round().astype(int).tolist() for frame in frames]
    [[-74, 43], [-72, 41], [-70, 38]]
    """
    check_number("n_frames", n_frames, Integral, low=0)
    check_number("n_objects", n_objects, Integral, low=0, high=_MAX_OBJECTS)
    world, seed = _checked_world(n_views, size, n_objects, object_height, random_state)
    return world.drive(n_frames, seed)


def _checked_world(
    n_views: int, size: Any, objects_per_image: Any, object_height: Any, random_state: Any
) -> tuple[_World, int]:
    """Return what scenes have in common, and the seed."""
    check_number("random_state", random_state, Integral, low=0)
    height, width = _checked_pair("size", size, Integral, 32, _MAX_SIDE)
    if not isinstance(objects_per_image, Sequence):
        objects_per_image = (objects_per_image, objects_per_image)
    n_min, n_max = _checked_pair("objects_per_image", objects_per_image, Integral, 0, _MAX_OBJECTS)
    low, high = _checked_pair("object_height", object_height, Real, 0.05, 0.6)
    if n_min > n_max or low > high:
        raise ValueError(
            "objects_per_image and object_height must not decrease: give the smaller number first."
        )
    world = _World(
        Views.around(n_views), (int(height), int(width)), (int(n_min), int(n_max)), (low, high)
    )
    return world, int(random_state)


@dataclass(frozen=True)
class _World:
    """What all scenes have in common."""

    views: Views
    size: tuple[int, int]
    n_objects: tuple[int, int]
    object_height: tuple[float, float]

    def scene(self, name: str, rng: np.random.Generator) -> AnnotatedImage:
        """Render one scene."""
        light, pixels = self._empty(rng)
        cars = self._placed_cars(rng)
        n = len(cars)
        return replace(
            self._photograph(name, cars, light, pixels, rng),
            truncation=np.zeros(n),
            occlusion=np.zeros(n),
        )

    def drive(self, n_frames: int, seed: int) -> Iterator[AnnotatedImage]:
        """Render the frames of a video, one by one."""
        rng = np.random.default_rng([seed, 0])
        light, background = self._empty(rng)
        ways = [_Way.drawn(self.size, self.object_height, rng) for _ in range(self.n_objects[0])]
        for number in range(n_frames):
            cars = [way.car(number) for way in ways]
            camera = np.random.default_rng([seed, 1])  # which stays as it is
            yield self._photograph(f"frame {number}", cars, light, background.copy(), camera)

    def _empty(self, rng: np.random.Generator) -> tuple[FloatArray, Colours]:
        """Return the light of a scene, and the scene without cars."""
        light = _light(rng)
        pixels = _background(self.size, rng)
        for _ in range(rng.integers(3, 8)):
            _distractor(self.size, light, rng).paint_over(pixels)
        return light, pixels

    def _photograph(
        self,
        name: str,
        cars: Sequence[_Car],
        light: FloatArray,
        pixels: Colours,
        rng: np.random.Generator,
    ) -> AnnotatedImage:
        """Paint cars over a scene, those in front last, and return the picture of it."""
        for car in sorted(cars, key=lambda car: float(car.box[3])):
            car.paint_over(pixels, light)
        headings = np.array([car.heading for car in cars], dtype=np.float64)
        return AnnotatedImage(
            _photographed(pixels, rng),
            np.array([car.box for car in cars]).reshape(-1, 4),
            labels=self.views.label_of(headings),
            angles=headings,
            categories=("Car",) * len(cars),
            name=name,
        )

    def _placed_cars(self, rng: np.random.Generator) -> list[_Car]:
        """Return cars that hardly overlap, entirely inside the picture."""
        cars: list[_Car] = []
        wanted = rng.integers(self.n_objects[0], self.n_objects[1], endpoint=True)
        for _ in range(_TRIES):
            if len(cars) == wanted:
                break
            car = self._car(rng)
            if car is None:
                continue
            boxes = np.array([other.box for other in cars]).reshape(-1, 4)
            if not (overlaps([car.box], boxes) > _MAX_OVERLAP).any():
                cars.append(car)
        return cars

    def _car(self, rng: np.random.Generator) -> _Car | None:
        """Return a car at a random place, or None if the picture is too narrow for it."""
        heading = rng.uniform(-180.0, 180.0)
        camera = Camera(heading, rng.uniform(5.0, 18.0))
        mesh = _car_mesh().scaled(rng.uniform(0.93, 1.07, 3))
        low, high = camera.extent(mesh.corners)
        tall = rng.uniform(*self.object_height) * min(self.size)
        scale = tall / (high[1] - low[1])
        extent = scale * (high - low)
        room = np.array(self.size[::-1]) - extent
        if (room < 0.0).any():
            return None
        first = rng.uniform(0.0, 1.0, 2) * room
        camera = camera.moved(scale, first - scale * low)
        box = np.concatenate([first, first + extent])
        return _Car(box, heading, camera, mesh, _palette(rng))


@dataclass(frozen=True, eq=False)
class _Car:
    """A car in a scene."""

    box: FloatArray
    heading: float
    camera: Camera
    mesh: Mesh
    palette: FloatArray

    def paint_over(self, pixels: Colours, light: FloatArray) -> None:
        """Paint the car and its shadow over a picture."""
        layer = Layer()
        for number, opacity in enumerate((0.16, 0.34, 0.5)):
            reach = [1.14 - 0.08 * number, 1.2 - 0.1 * number, 0.0]
            layer.add(self.camera.seen(_FOOTPRINT * reach), (12.0, 12.0, 16.0), opacity)
        layer.add_mesh(self.mesh, self.palette, self.camera, light)
        layer.paint_over(pixels)


@dataclass(frozen=True, eq=False)
class _Way:
    """A car that drives in a circle on the ground, which is an ellipse in the picture."""

    mesh: Mesh
    palette: FloatArray
    elevation: float
    scale: float
    centre: FloatArray
    radii: FloatArray
    first_heading: float
    turn: float

    @classmethod
    def drawn(
        cls, size: tuple[int, int], object_height: tuple[float, float], rng: np.random.Generator
    ) -> _Way:
        """Return a way at a random place, as wide as the picture allows."""
        height, width = size
        tall = rng.uniform(*object_height) * min(size)
        mesh = _car_mesh().scaled(rng.uniform(0.93, 1.07, 3))
        elevation = rng.uniform(5.0, 18.0)
        low, high = Camera(0.0, elevation).extent(mesh.corners)
        scale = tall / float(high[1] - low[1])
        # Half of the longest side of a car, and what it grows by where it is nearest.
        margin = (1.0 + _NEARER) * scale * float(high[0] - low[0]) / 2.0
        wanted = np.array([rng.uniform(0.2, 0.45) * width, rng.uniform(0.08, 0.2) * height])
        radii = np.clip(np.array([width / 2.0, height / 2.0]) - margin, 0.0, wanted)
        room = np.maximum(np.array([width, height]) - 2.0 * (radii + margin), 0.0)
        centre = np.array([width, height]) / 2.0 + rng.uniform(-0.5, 0.5, 2) * room
        turn = rng.uniform(1.5, 3.0) * rng.choice([-1.0, 1.0])
        heading = rng.uniform(-180.0, 180.0)
        return cls(mesh, _palette(rng), elevation, scale, centre, radii, heading, turn)

    def car(self, number: int) -> _Car:
        """Return the car in a frame."""
        heading = math.remainder(self.first_heading + number * self.turn, 360.0)
        side = math.copysign(1.0, self.turn)
        radians = math.radians(heading)
        # It moves right by the cosine of its heading, and down, towards the viewer, by the sine.
        place = np.array([math.sin(radians), -math.cos(radians)]) * side
        camera = Camera(heading, self.elevation)
        low, high = camera.extent(self.mesh.corners)
        scale = self.scale * (1.0 + _NEARER * float(place[1]))
        middle = self.centre + self.radii * place
        camera = camera.moved(scale, middle - scale * (low + high) / 2.0)
        return _Car(
            np.concatenate(camera.extent(self.mesh.corners)),
            heading,
            camera,
            self.mesh,
            self.palette,
        )


def _palette(rng: np.random.Generator) -> FloatArray:
    """Return the colours of a car; the band is light on dark paint, and dark on light paint."""
    palette = _PALETTE.copy()
    paint = np.array(_colour(rng))
    palette[_PAINT, :3] = paint
    palette[_BAND, :3] = 0.3 * paint + (160.0 if paint.sum() < 330.0 else 0.0)
    return palette


@lru_cache(maxsize=1)
def _car_mesh() -> Mesh:
    """Return a car two units long that stands at the origin."""
    wheels = [_wheel(x, side) for x in (-0.58, 0.58) for side in (-1.0, 1.0)]
    treads, discs = zip(*wheels, strict=True)
    return Mesh.joined([*treads, _body(), _cabin(), *discs])


def _wheel(x: float, side: float) -> tuple[Solid, Solid]:
    """Return the tread of a wheel, and the disc that is seen from its side of the car."""
    turns = np.linspace(0.0, 2.0 * math.pi, 12, endpoint=False)
    rim = _WHEEL * np.stack([np.cos(turns), np.zeros(12), np.sin(turns)], axis=1)
    hub = np.array([x, side * (_HALF_WIDTH + 0.01), _WHEEL])
    inside = hub - [0.0, side * 0.1, 0.0]
    tread, disc = Solid(inside), Solid(inside)
    width = np.array([0.0, side * 0.2, 0.0])
    for a, b in pairwise([*(hub + rim), hub + rim[0]]):
        tread.add([a, b, b - width, a - width], _RUBBER)
    for part, paint in ((1.0, _RUBBER), (0.58, _METAL), (0.2, _TRIM)):
        disc.add(hub + part * rim, paint)
    return tread, disc


def _body() -> Solid:
    """Return the lower part of a car: a profile drawn from side to side."""
    profile = [(-1.0, 0.16), (0.97, 0.16), (1.0, 0.3), (0.95, 0.58), (0.4, 0.68), (-1.0, 0.72)]
    body, half = Solid([0.0, 0.0, 0.4]), _HALF_WIDTH
    around = [
        np.array([[x, -half, z], [x, half, z], [u, half, w], [u, -half, w]])
        for (x, z), (u, w) in pairwise([*profile, profile[0]])
    ]
    _, bumper, front, hood, deck, back = around
    for quad in (front, hood, deck, back):
        body.add(quad, _PAINT)
    body.add(bumper, _TRIM)
    body.add(_part(front, 0.28, 0.1, 0.72, 0.8), _TRIM)
    for left in (0.04, 0.77):
        body.add(_part(front, left, 0.3, left + 0.19, 0.9), _HEAD_LAMP)
    # The last side of the profile runs downwards.
    body.add(_part(back, 0.0, 0.78, 1.0, 1.0), _TRIM)
    body.add(_part(back, 0.34, 0.42, 0.66, 0.64), _PLATE)
    for left in (0.03, 0.83):
        body.add(_part(back, left, 0.05, left + 0.14, 0.62), _TAIL_LAMP)
    for side in (-half, half):
        body.add([[x, side, z] for x, z in profile], _PAINT)
        for low, high, paint in ((0.16, 0.25, _TRIM), (0.46, 0.54, _BAND)):
            ends = [(-0.99, low), (0.95, low), (0.95, high), (-0.99, high)]
            body.add([[x, side, z] for x, z in ends], paint)
    return body


def _cabin() -> Solid:
    """Return the upper part of a car, with a steep back and a slanting front."""
    base = np.array([[-0.97, 0.53, 0.7], [0.42, 0.53, 0.67], [0.42, -0.53, 0.67]])
    base = np.array([*base, [-0.97, -0.53, 0.7]])
    top = np.array([[-0.85, 0.43, 1.14], [-0.02, 0.43, 1.14], [-0.02, -0.43, 1.14]])
    top = np.array([*top, [-0.85, -0.43, 1.14]])
    cabin = Solid([-0.3, 0.0, 0.9])
    left, front, right, back = (
        np.array([base[i], base[(i + 1) % 4], top[(i + 1) % 4], top[i]]) for i in range(4)
    )
    for quad in (left, front, right, back, top):
        cabin.add(quad, _PAINT)
    cabin.add(_part(front, 0.06, 0.08, 0.94, 0.92), _GLASS)
    cabin.add(_part(back, 0.16, 0.35, 0.84, 0.9), _GLASS)
    for quad, panes in (
        (left, ((0.06, 0.47), (0.53, 0.92))),
        (right, ((0.08, 0.47), (0.53, 0.94))),
    ):
        for first, last in panes:
            cabin.add(_part(quad, first, 0.14, last, 0.86), _GLASS)
    return cabin


def _part(quad: FloatArray, left: float, low: float, right: float, high: float) -> FloatArray:
    """Return a part of a quadrilateral, in coordinates from 0 to 1 along its sides."""
    a, b, c, d = quad
    return np.array(
        [
            (1 - v) * ((1 - u) * a + u * b) + v * ((1 - u) * d + u * c)
            for u, v in ((left, low), (right, low), (right, high), (left, high))
        ]
    )


def _distractor(size: tuple[int, int], light: FloatArray, rng: np.random.Generator) -> Layer:
    """Return something that is not a car: a plain solid, an ellipse, stripes, or a polygon."""
    layer = Layer()
    middle = rng.uniform(0.0, 1.0, 2) * size[::-1]
    reach = rng.uniform(0.06, 0.3) * min(size)
    kind = rng.integers(4)
    if kind == 0:
        camera = Camera(rng.uniform(-180.0, 180.0), rng.uniform(5.0, 18.0), reach, tuple(middle))
        palette = np.array([[*_colour(rng), 0.0]])
        layer.add_mesh(_crate(rng.uniform(0.35, 1.0, 3)), palette, camera, light)
        return layer
    turn, flat = rng.uniform(0.0, math.pi), rng.uniform(0.4, 1.0)
    axes = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    axes *= reach * np.array([[1.0], [flat]])
    if kind == 2:
        n_stripes = int(rng.integers(2, 6))
        colours = [_colour(rng), _colour(rng)]
        for number, low in enumerate(np.linspace(-1.0, 1.0, 2 * n_stripes, endpoint=False)):
            high = low + 1.0 / n_stripes
            corners = np.array([[-1.0, low], [1.0, low], [1.0, high], [-1.0, high]])
            layer.add(corners @ axes + middle, colours[number % 2])
    else:
        n_corners = 24 if kind == 1 else int(rng.integers(3, 6))
        turns = np.linspace(0.0, 2.0 * math.pi, n_corners, endpoint=False)
        layer.add(np.stack([np.cos(turns), np.sin(turns)], axis=1) @ axes + middle, _colour(rng))
    return layer


def _crate(half: FloatArray) -> Mesh:
    """Return a box of one colour."""
    x, y, z = half
    solid = Solid([0.0, 0.0, 0.0])
    corners = np.array([[i, j, k] for i in (-x, x) for j in (-y, y) for k in (-z, z)])
    for face in (
        (0, 1, 3, 2),
        (4, 5, 7, 6),
        (0, 1, 5, 4),
        (2, 3, 7, 6),
        (0, 2, 6, 4),
        (1, 3, 7, 5),
    ):
        solid.add(corners[list(face)], _PAINT)
    return Mesh.joined([solid])


def _colour(rng: np.random.Generator) -> tuple[float, ...]:
    """Return a colour: any hue, from grey to vivid, not too dark."""
    hue = np.array([0.0, 2.0, 4.0]) * (math.pi / 3.0) + rng.uniform(0.0, 2.0 * math.pi)
    value, vividness = rng.uniform(70.0, 225.0), rng.uniform(0.0, 0.75)
    colour = value * (1.0 - vividness * (0.5 - 0.5 * np.cos(hue)))
    return tuple(colour.tolist())


def _light(rng: np.random.Generator) -> FloatArray:
    """Return the direction that light comes from: above, and from the side of the camera."""
    light = np.array([rng.uniform(-0.8, 0.8), -rng.uniform(0.5, 1.0), -rng.uniform(0.2, 0.9)])
    return np.asarray(light / np.linalg.norm(light))


def _background(size: tuple[int, int], rng: np.random.Generator) -> Colours:
    """Return a gradient between two colours, with noise of several scales."""
    height, width = size
    top, bottom = np.array(_colour(rng)), np.array(_colour(rng))
    down = np.linspace(0.0, 1.0, height)[:, np.newaxis, np.newaxis]
    pixels = np.broadcast_to(top + (bottom - top) * down, (height, width, 3)).astype(np.float32)
    for pitch in (64, 24, 9, 3):
        grid = rng.standard_normal((height // pitch + 2, width // pitch + 2), dtype=np.float32)
        noise = _stretched(_stretched(grid, pitch, height).T, pitch, width).T
        noise *= np.float32(rng.uniform(2.0, 20.0))
        for channel, tint in enumerate(rng.uniform(0.6, 1.0, 3)):
            pixels[:, :, channel] += np.float32(tint) * noise
    return pixels


def _stretched(values: NDArray[np.float32], pitch: int, length: int) -> NDArray[np.float32]:
    """Return rows that stand at every `pitch` pixels, interpolated to all pixels."""
    row, step = np.divmod(np.arange(length), pitch)
    part = (step / np.float32(pitch)).astype(np.float32)[:, np.newaxis]
    return values[row] + part * (values[row + 1] - values[row])


def _photographed(pixels: Colours, rng: np.random.Generator) -> Pixels:
    """Return the bytes that a camera makes of a scene: exposure, a little blur, noise."""
    blur = np.float32(rng.uniform(0.0, 0.2))
    pixels[:, 1:-1] += blur * (pixels[:, 2:] + pixels[:, :-2] - 2.0 * pixels[:, 1:-1])
    pixels[1:-1] += blur * (pixels[2:] + pixels[:-2] - 2.0 * pixels[1:-1])
    noise = rng.standard_normal(pixels.shape, dtype=np.float32)
    noise *= np.float32(rng.uniform(1.0, 6.0))
    pixels *= np.float32(rng.uniform(0.75, 1.1))
    pixels += noise
    return np.clip(pixels, 0.0, 255.0, out=pixels).astype(np.uint8)


def _checked_pair(name: str, values: Any, kind: type, low: float, high: float) -> tuple[Any, Any]:
    """Return two numbers within limits."""
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != 2:
        raise ValueError(f"{name} must be a pair of numbers; got {values!r:.80}.")
    for value in values:
        check_number(name, value, kind, low=low, high=high)
    return values[0], values[1]
