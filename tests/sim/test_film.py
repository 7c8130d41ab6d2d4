"""Films: the camera, the bodies that are there at a time, and the files."""

import io

import numpy as np
import pytest
from PIL import Image

from modurob import Dock, StateError, Undock, examples, simulate
from modurob.drawing import raster
from modurob.drawing import scene as scenes
from modurob.sim.output import video
from modurob.sim.output.film import Film, _view
from oracles import complains

SMALL = 96  # pixels
TOUCHED = 200  # of 255: letters are darker, paper and shadows are not


@pytest.fixture(scope="module")
def changing():
    """Three modules, two of which go apart at 0.1 s; a fourth one comes at 0.2 s."""
    organism = examples.snake(3)
    model = organism.model("physical", base="free", gravity=(0, 0, 0))
    events = [Undock(0.1, "m2"), Dock(0.2, "m1", 2, "n", 5)]
    v = np.array([0, 0, 1.0, 0, 0, 0, 0.1, 0.2])
    return simulate(model, None, v, 0.4, None, "RK4", dt=0.02, events=events, organism=organism)


@pytest.fixture(scope="module")
def film(changing):
    return Film(changing, None, None, SMALL)


def seen(scene):
    """Each facet as text: where it is, and the color of its surface."""
    return sorted(
        (facet.corners.round(9).tolist(), scene.colors[facet.surface].tolist())
        for facet in scene.facets
    )


@pytest.mark.parametrize("t", [0.05, 0.15, 0.3])
def test_bodies_drawn_together_look_as_each_alone(changing, film, t):
    there = [part for part in changing.parts if part.t[0] <= t <= part.t[-1]]
    alone = [scenes.build(part.organism, part.model, part.at(t)[0]) for part in there]
    together = film._scene(t)
    assert seen(together) == sorted(facet for scene in alone for facet in seen(scene))
    assert set(together.owner) == set(range(sum(len(scene.centers) for scene in alone)))
    for facet in together.facets:  # a surface belongs to the module that it is near
        row = together.owner[facet.surface]
        nearest = np.linalg.norm(together.centers - facet.corners.mean(axis=0), axis=1)
        assert nearest[row] < 0.12
    (first,) = [scene for part, scene in zip(there, alone, strict=True) if part.name == "m0"]
    np.testing.assert_array_equal(together.centers[0], first.centers[0])  # it gets the outline
    assert len(together.points) == sum(len(scene.points) for scene in alone)


def test_an_event_belongs_to_what_comes_after_it(film):
    modules = {t: len(film._scene(t).centers) for t in (0.0, 0.0999, 0.1, 0.1999, 0.2, 0.4)}
    assert modules == {0.0: 3, 0.0999: 3, 0.1: 3, 0.1999: 3, 0.2: 4, 0.4: 4}


def test_everything_stays_in_view_and_fills_it(film):
    camera = film._camera
    width, height = camera.size
    pixels = np.concatenate(
        [camera.project(film._scene(t).points)[0] for t in np.linspace(0, 0.4, 21)]
    )
    assert (pixels > 0).all()
    assert (pixels < [width, height]).all()
    assert (np.ptp(pixels, axis=0) / [width, height]).max() > 0.7
    assert (film.begin, film.end) == (0, 0.4)


@pytest.mark.parametrize("body", ["superbots", "arm"])
def test_long_modules_stay_in_view_and_fill_it(body):
    # a SuperBot is twice as long as its size says; links of the arm end far from their frames
    organism = examples.superbot_tree(2, 2) if body == "superbots" else examples.arm("babac")
    model = organism.model("physical", gravity=(0, 0, 0))
    run = simulate(model, None, np.ones(model.nv), 0.4, None, "RK4", dt=0.02, organism=organism)
    film = Film(run, None, None, SMALL)
    pixels = np.concatenate(
        [film._camera.project(film._scene(t).points)[0] for t in np.linspace(0, 0.4, 5)]
    )
    assert (pixels > 0).all()
    assert (pixels < film._camera.size).all()
    assert (np.ptp(pixels, axis=0) / film._camera.size).max() > 0.85


@pytest.mark.parametrize(
    ("reach", "view"),
    [
        ((2.0, 1.0, 1.0), (-62.0, 18.0)),  # across the longer side
        ((1.0, 1.0, 1.0), (-62.0, 18.0)),
        ((1.0, 2.0, 1.0), (-28.0, 18.0)),
        ((2.0, 1.0, 0.89), (-62.0, 40.0)),  # flatter than 0.45 of it: from higher up
        ((2.0, 1.0, 0.91), (-62.0, 18.0)),
        ((1.0, 2.0, 0.89), (-28.0, 40.0)),
    ],
)
def test_the_eye_looks_across_the_longer_side(reach, view):
    assert _view(np.array([np.zeros(3), reach])) == view


def test_frames_have_64_to_2048_pixels_and_an_even_number(changing):
    for size in (64, 65, 2048):
        height, width = np.array(Film(changing, None, (30.0, 20.0), size)._camera.size) // 2
        assert width % 2 == height % 2 == 0
        assert size <= max(width, height) <= size + 2
    for size in (63, 2049):
        with complains(StateError, "64 to 2048 pixels", str(size)):
            Film(changing, None, None, size)


def test_a_frame_is_the_floor_with_a_shadow_and_the_body(film):
    image = film.frame(0.0)
    height, width, _ = image.shape
    assert (width, height) == tuple(np.array(film._camera.size) // 2)
    assert image.dtype == np.uint8
    assert (image[0] == 255).all()  # nothing at the top
    dark = (image.min(axis=2) < TOUCHED).mean()
    assert 0.02 < dark < 0.7
    body = film._camera.project(film._scene(0.0).centers)[0] / 2
    for x, y in body.round().astype(int):
        assert image[height - 1 - y, x].min() < TOUCHED  # top row first


def test_the_base_of_the_first_body_has_the_outline(film, changing, monkeypatch):
    drawn = []

    def paint(scene, buffers, camera, samples, base):
        drawn.append(scene.centers[base])
        return raster.paint(scene, buffers, camera, samples, base)

    monkeypatch.setattr("modurob.sim.output.film.paint", paint)
    film.frame(0.0)
    model = changing.parts[0].model
    place = model.forward_kinematics(changing.parts[0].q[0])[model.modules["m0"], :3, 3]
    np.testing.assert_allclose(drawn, [place], atol=1e-9)


def test_bodies_are_in_view_between_and_at_the_few_times_that_were_recorded():
    model = examples.snake(2).model("physical", base="free", gravity=(0, 0, 0))
    v = np.array([1.0, 0, 0, 0, 0, 3.0, 0])
    run = simulate(model, None, v, 0.9, None, "RK4", dt=0.05, record=[0.0, 0.3, 0.6, 0.9])
    film = Film(run, None, None, SMALL)
    for t in (0.0, 0.15, 0.9):
        pixels = film._camera.project(film._scene(t).points)[0]
        assert (pixels > 0).all()
        assert (pixels < film._camera.size).all()


def test_progress_is_told_before_each_frame(film):
    told = []
    times = np.linspace(0, 0.4, 4)
    frames = list(film.frames(times, told.append))
    assert told == [0, 0.25, 0.5, 0.75]
    assert len(frames) == 4


def test_the_time_stands_in_the_upper_left_corner():
    paper = np.full((100, 200, 3), 255, dtype=np.uint8)
    stamped = video.stamped(paper, "1.25 s")
    rows, columns = np.nonzero(stamped.min(axis=2) < TOUCHED)
    assert 5 <= rows.min() <= columns.min() + 4
    assert 5 <= columns.min() <= 8  # a margin of a fortieth
    assert rows.max() < 20
    assert columns.max() < 60
    assert 7 <= np.ptp(rows) <= 11  # letters that can be read
    large = video.stamped(np.full((500, 1000, 3), 255, dtype=np.uint8), "1.25 s")
    assert 17 <= np.ptp(np.nonzero(large.min(axis=2) < TOUCHED)[0]) <= 22  # 3 % of the width


@pytest.mark.parametrize(("speed", "frames"), [(1.0, 5), (2.0, 3), (0.5, 9), (100.0, 2)])
def test_a_film_has_a_frame_for_each_tenth_of_a_second(film, monkeypatch, speed, frames):
    written = []
    monkeypatch.setattr(video, "write", lambda path, found, fps: written.append((list(found), fps)))
    monkeypatch.setattr(Film, "frame", lambda self, t: np.full((20, 40, 3), 255, dtype=np.uint8))
    film.animate("a.gif", 10.0, speed)
    ((found, fps),) = written
    assert (len(found), fps) == (frames, 10.0)


@pytest.mark.parametrize("speed", [0, -1, float("nan")])
def test_a_film_runs_forward(film, speed):
    with complains(StateError, "speed must be positive"):
        film.animate("a.gif", 10.0, speed)


def test_pictures_are_taken_from_the_first_to_the_last_moment(film, tmp_path):
    film.picture(tmp_path / "a.png", [0.0, 0.4])
    film.picture(tmp_path / "b.png", None)
    for t in (-1e-9, 0.4 + 1e-9, float("nan"), [[0.0]]):
        with complains(StateError, "the time must lie between 0 and 0.4 s"):
            film.picture(tmp_path / "c.png", t)
    both, last = (np.asarray(Image.open(tmp_path / f"{name}.png")) for name in "ab")
    np.testing.assert_array_equal(both[:, both.shape[1] // 2 :], last)


# -- files -----------------------------------------------------------------------------------------


def gif(fps, count=13):
    """A film of a red square that moves over white paper."""

    def frames():
        for k in range(count):
            frame = np.full((20, 40, 3), 255, dtype=np.uint8)
            frame[5:15, 2 * k : 2 * k + 10] = (200, 30, 10)
            yield frame

    return Image.open(io.BytesIO(video._gif(frames(), fps)))


def test_a_gif_shows_every_frame_for_its_time_again_and_again():
    for fps, milliseconds in ((10, 100), (50, 20), (40, 20), (3, 330), (0.1, 10_000)):
        film = gif(fps)
        assert film.n_frames == 13
        assert film.info["duration"] == milliseconds  # in hundredths of a second
        assert film.info["loop"] == 0
    for k in range(13):
        film.seek(k)
        image = np.asarray(film.convert("RGB")).astype(int)
        assert image[0, 0].tolist() == [255, 255, 255]
        assert np.abs(image[10, 2 * k + 5] - (200, 30, 10)).max() <= 4


def test_a_gif_has_a_palette_of_128_colors():
    """That of each frame is the same, so that colors do not flicker."""
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 255, (40, 60, 3)).astype(np.uint8) for _ in range(8)]
    film, used = Image.open(io.BytesIO(video._gif(iter(frames), 10))), set()
    for k in range(8):
        film.seek(k)
        used |= {tuple(x) for x in np.asarray(film.convert("RGB")).reshape(-1, 3).tolist()}
    assert len(used) == 128


@pytest.mark.parametrize(
    ("name", "fps", "fits"),
    [("a.gif", 50, True), ("a.gif", 50.1, False), ("a.gif", 0.5, True), ("a.gif", 0, False),
     ("a.mp4", 240, True), ("a.mp4", 241, False), ("a.gif", float("nan"), False)],
)  # fmt: skip
def test_a_gif_has_up_to_50_frames_a_second_and_a_film_240(monkeypatch, name, fps, fits):
    monkeypatch.setattr(video, "ffmpeg", lambda: "ffmpeg")
    if fits:
        video.check(name, fps)
    else:
        with complains(StateError, "fps must lie between 0 and"):
            video.check(name, fps)
