"""Plots, pictures and animations: they show what was recorded, and say so when they cannot."""

import dataclasses
import os
import stat
import subprocess
import sys
import textwrap
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from modurob import (
    Dock,
    FileError,
    StateError,
    Undock,
    UnknownNameError,
    WriteError,
    examples,
    simulate,
)
from modurob.drawing import charts
from modurob.sim.output import plots, video
from oracles import complains

SMALL = 96  # pixels: enough to see that something moves


@pytest.fixture(scope="module")
def crab():
    organism = examples.crab()
    return simulate(
        organism.model("physical"), np.full(6, 0.2), None, 0.4, None, "RK4", dt=0.01,
        organism=organism,
    )  # fmt: skip


@pytest.fixture(scope="module")
def crane():
    built = examples.crane().model("physical")
    model = dataclasses.replace(built, organism=None, options=None)  # made by hand
    return simulate(model, [0, 0.7], None, 1.0, lambda t, q, v: -0.1 * v, record=0.05)


@pytest.fixture(scope="module")
def changing():
    organism = examples.snake(3)
    model = organism.model("physical", base="free", gravity=(0, 0, 0))
    events = [Undock(0.1, "m2"), Dock(0.2, "m1", 2, "n", 5, approach=(0, 0, 0.1, 0, 0, 0))]
    v = np.array([0, 0, 2.0, 0, 0, 0, 0.1, 0.2])
    return simulate(
        model, None, v, 0.4, None, "RK4", dt=0.02, events=events, organism=organism
    )  # fmt: skip


def pixels(path, frame=0):
    """(height, width, 3) of a picture, or of a frame of an animation."""
    with Image.open(path) as image:
        image.seek(frame)
        return np.asarray(image.convert("RGB"), dtype=float)


def lines(axes):
    return [line for line in axes.get_lines() if len(line.get_xdata()) > 2]


# -- plots -----------------------------------------------------------------------------------------


def test_each_unit_has_its_panel_and_the_lines_are_the_numbers(crane):
    figure = crane.plot("q", "v", "energy")
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "position [m]", "position [rad]", "velocity [m/s]", "velocity [rad/s]", "energy [J]"
    ]  # fmt: skip
    (slide,) = lines(figure.axes[0])
    np.testing.assert_array_equal(slide.get_xdata(), crane.t)
    np.testing.assert_array_equal(slide.get_ydata(), crane.q[:, 0])
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert figure.axes[-1].get_xlim() == (0, 1)
    total = lines(figure.axes[-1])[2]
    np.testing.assert_array_equal(total.get_ydata(), crane.energy)
    figure.canvas.draw()
    labels = [axes.yaxis.label.get_window_extent().x1 for axes in figure.axes]
    np.testing.assert_allclose(labels, labels[0])  # however wide the numbers are


def test_words_and_letters_mean_the_same(crane):
    words = crane.plot("position", "velocity", "acceleration", "torque")
    letters = crane.plot("q", "v", "a", "tau")
    assert [a.get_ylabel() for a in words.axes] == [a.get_ylabel() for a in letters.axes]


def test_without_a_wish_torques_are_shown_where_there_are_some(crane, crab):
    assert "torque [N m]" in [a.get_ylabel() for a in crane.plot().axes]
    assert "energy [J]" in [a.get_ylabel() for a in crab.plot().axes]


def test_degrees_and_chosen_joints(crab):
    (axes,) = crab.plot("q", degrees=True, joints=["m2.hinge"]).axes
    (line,) = lines(axes)
    np.testing.assert_allclose(line.get_ydata(), np.rad2deg(crab.q[:, 2]))
    assert axes.get_ylabel() == "position [°]"


def test_channels_can_be_plotted():
    class Law:
        def command(self, t, q, v, reference):
            self.error = q - 1
            return -self.error

        def record(self):
            return {"error": self.error, "size": float(np.abs(self.error).max())}

    model = examples.double_pendulum().model("physical")
    found = simulate(model, None, None, 0.2, Law())
    figure = found.plot("error", "size")
    assert len(lines(figure.axes[0])) == 2
    np.testing.assert_array_equal(lines(figure.axes[1])[0].get_ydata(), found.channels["size"])
    assert figure.axes[1].get_legend() is None  # its name stands at the axis


def test_a_joint_keeps_its_color_and_a_legend_is_not_repeated(crab):
    figure = crab.plot("q", "v")
    first, second = (
        {line.get_label(): line.get_color() for line in lines(axes)} for axes in figure.axes
    )
    assert first == second
    assert figure.axes[0].get_legend() is not None
    assert figure.axes[1].get_legend() is None


def test_lines_of_several_bodies_have_their_names_but_joints_need_none(changing):
    assert {part.name for part in changing.parts} == {"m0", "m2"}

    def names(quantity):
        axes = changing.plot(quantity).axes
        return {line.get_label() for each in axes for line in lines(each)}

    assert {name for name in names("energy") if name[0] != "_"} == {"m0 total", "m2 total"}
    assert {"m0 x", "m2 x", "m1.hinge"} <= names("q")


def test_events_are_marked(changing):
    figure = changing.plot("q", "energy")
    joints = figure.axes[2]
    marks = [line.get_xdata()[0] for line in joints.get_lines() if len(set(line.get_xdata())) == 1]
    assert {0.1, 0.2} <= set(marks)
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == ["− m2", "+ n"]


def test_many_lines_have_a_short_legend():
    model = examples.snake(21).model("physical")
    found = simulate(model, None, np.linspace(0, 1, model.nv), 0.05, None, "RK4", dt=0.01)
    legend = found.plot("q").axes[0].get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["m0.hinge", "m19.hinge"]
    assert legend.get_title().get_text() == "20 lines"


def test_rounding_errors_do_not_fill_a_panel():
    model = examples.snake(2).model("physical", base="free", gravity=(0, 0, 0))
    found = simulate(model, None, np.full(7, 0.3), 0.2, None, "RK4", dt=0.01)
    axes = found.plot("momentum").axes[1]
    low, high = axes.get_ylim()
    assert high - low > 1e-3


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plots_are_written_as_the_ending_says(crane, tmp_path, ending):
    crane.plot("q", path=tmp_path / f"a.{ending}", title="Crane")
    start = (tmp_path / f"a.{ending}").read_bytes()[:5]
    assert start.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF-"}[ending])


def test_the_same_plot_is_the_same_file(crane, tmp_path):
    for name in ("a", "b"):
        crane.plot("v", path=tmp_path / f"{name}.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert pixels(tmp_path / "a.png").var() > 100


def test_pyplot_does_not_hear_of_plots(crane):
    crane.plot()
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_plots_that_cannot_be(crane, tmp_path):
    with complains(UnknownNameError, "'mood'", "position", "energy"):
        crane.plot("mood")
    with complains(FileError, ".jpg", ".png, .svg, .pdf"):
        crane.plot(path=tmp_path / "a.jpg")
    with complains(WriteError, "cannot be written"):
        crane.plot(path=tmp_path / "nowhere" / "a.png")
    batch = simulate(crane.model, np.zeros((2, 2)), None, 0.1, None, "RK4")
    with complains(StateError, "a plot shows one motion", "member(0)"):
        batch.plot()


# -- pictures and animations -----------------------------------------------------------------------


def test_a_picture_shows_the_body_at_its_time(crab, tmp_path):
    for k, t in enumerate((0.0, 0.4)):
        crab.picture(tmp_path / f"{k}.png", t, size=SMALL)
    images = [pixels(tmp_path / f"{k}.png") for k in range(2)]
    assert images[0].shape == images[1].shape  # one camera for the whole run
    assert max(images[0].shape) <= SMALL + 4
    assert np.abs(images[0] - images[1]).mean() > 1  # it moved
    crab.picture(tmp_path / "strip.png", [0.0, 0.2, 0.4], size=SMALL)
    assert pixels(tmp_path / "strip.png").shape[1] == 3 * images[0].shape[1]


def test_an_animation_is_a_gif_in_real_time(changing, tmp_path):
    changing.animate(tmp_path / "a.gif", fps=10, size=SMALL)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 5
        assert film.info["duration"] == 100
    frames = [pixels(tmp_path / "a.gif", k) for k in range(5)]
    assert all(np.abs(a - b).mean() > 0.3 for a, b in pairwise(frames))
    assert frames[0][-1, -1].tolist() == [255, 255, 255]


def test_slow_motion_has_more_frames(crab, tmp_path):
    crab.animate(tmp_path / "a.gif", fps=5, speed=0.5, size=64)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 5


def test_a_free_body_is_drawn_where_it_flies():
    from modurob.sim.output.film import Film

    organism = examples.snake(2)
    model = organism.model("dyad", base="free", gravity=(0, 0, 0))
    v = np.zeros(model.nv)
    v[0] = 1.0
    found = simulate(model, None, v, 1.0, None, "RK4", dt=0.1, organism=organism)
    film = Film(found, None, None, SMALL)
    moved = film._scene(1.0).points - film._scene(0.0).points
    np.testing.assert_allclose(moved, np.tile([1.0, 0, 0], (len(moved), 1)), atol=1e-9)


def test_a_trajectory_that_does_not_know_its_body_is_told(crane, tmp_path):
    with complains(StateError, "organism="):
        crane.picture(tmp_path / "a.png")
    crane.picture(tmp_path / "a.png", organism=examples.crane(), size=64)
    with complains(StateError, "not the one"):
        crane.picture(tmp_path / "a.png", organism=examples.crab())


def test_pictures_that_cannot_be(crab, tmp_path):
    with complains(FileError, "unknown ending '.jpg'"):
        crab.picture(tmp_path / "a.jpg")
    with complains(FileError, "unknown ending '.avi'", ".gif, .mp4"):
        crab.animate(tmp_path / "a.avi")
    with complains(WriteError, "no folder"):
        crab.animate(tmp_path / "nowhere" / "a.gif")
    with complains(StateError, "between 0 and 0.4 s"):
        crab.picture(tmp_path / "a.png", 2.0)
    with complains(StateError, "64 to 2048 pixels"):
        crab.picture(tmp_path / "a.png", size=10)
    for bad in ({"fps": 0}, {"fps": 100}, {"speed": 0}):
        with complains(StateError, next(iter(bad))):
            crab.animate(tmp_path / "a.gif", **bad)


def test_mp4_needs_ffmpeg(crab, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with complains(FileError, "pip install imageio-ffmpeg", ".gif"):
        crab.animate(tmp_path / "a.mp4")


def test_an_mp4_holds_the_frames_that_were_drawn(crab, tmp_path, monkeypatch):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setenv("PATH", str(tmp_path))  # not the system's ffmpeg
    crab.animate(tmp_path / "a.mp4", fps=5, size=128)
    crab.animate(tmp_path / "a.gif", fps=5, size=128)
    decode = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", tmp_path / "a.mp4"]
    decode += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    film = np.frombuffer(subprocess.run(decode, stdout=subprocess.PIPE, check=True).stdout, "u1")
    drawn = np.array([pixels(tmp_path / "a.gif", k) for k in range(3)])
    apart = np.abs(drawn[:, None] - film.reshape(drawn.shape)[None]).mean(axis=(-1, -2, -3))
    assert np.diag(apart).max() < 2  # of 255: both compress, each in its way
    assert apart.argmin(axis=1).tolist() == [0, 1, 2]  # each frame is like its own


def fake_ffmpeg(folder, code):
    """A program that keeps what it is piped, as bytes, in its last argument."""
    path = folder / "ffmpeg"
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(code), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.skipif(os.name == "nt", reason="the fake ffmpeg is a script")
def test_frames_are_piped_to_ffmpeg(crab, tmp_path, monkeypatch):
    fake_ffmpeg(
        tmp_path,
        """
        import sys
        data, size = sys.stdin.buffer.read(), sys.argv[sys.argv.index("-s") + 1]
        width, height = map(int, size.split("x"))
        assert width % 2 == height % 2 == 0
        open(sys.argv[-1], "w").write(f"{len(data) / (3 * width * height):g} frames")
        """,
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    crab.animate(tmp_path / "a.mp4", fps=5, size=64)
    assert (tmp_path / "a.mp4").read_text() == "3 frames"


@pytest.mark.skipif(os.name == "nt", reason="the fake ffmpeg is a script")
def test_an_error_while_frames_are_drawn_goes_through(tmp_path, monkeypatch):
    fake_ffmpeg(tmp_path, "import sys; sys.stdin.buffer.read()")
    monkeypatch.setenv("PATH", str(tmp_path))

    def frames():
        yield np.zeros((4, 6, 3), dtype=np.uint8)
        raise KeyError("a frame")

    with pytest.raises(KeyError, match="a frame"):
        video.write(tmp_path / "a.mp4", frames(), 5.0)
    assert not (tmp_path / "a.mp4").exists()


@pytest.mark.skipif(os.name == "nt", reason="the fake ffmpeg is a script")
@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("sys.exit('no such codec')", "no such codec"),
        ("open(sys.argv[-1], 'w').write('half'); sys.exit(3)", "3"),
        ("sys.stdin.buffer.read()", "0"),  # without a file
    ],
)
def test_what_ffmpeg_complains_about_is_passed_on(crab, tmp_path, monkeypatch, ends, said):
    fake_ffmpeg(tmp_path, f"import sys; {ends}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with complains(WriteError, f"a.mp4: cannot be written: ffmpeg failed: {said}"):
        crab.animate(tmp_path / "a.mp4", fps=5, size=64)
    assert not (tmp_path / "a.mp4").exists()


def test_lines_of_one_body_share_a_color_and_differ_by_their_dashes(changing):
    figure = changing.plot("momentum")
    height, panel = 0.75, 2.05  # inches: title and times, each panel
    np.testing.assert_allclose(figure.get_size_inches(), [8.4, height + 2 * panel])
    first = [line for line in lines(figure.axes[0]) if line.get_label()[0] != "_"]
    looks = {line.get_label(): (line.get_color(), line.get_linestyle()) for line in first}
    dashes = {name: line._unscaled_dash_pattern for name, line in zip(looks, first, strict=True)}
    assert set(looks) == {f"{body} p{axis}" for body in ("m0", "m2") for axis in "xyz"}
    for axis in "xyz":
        assert dashes[f"m0 p{axis}"] == dashes[f"m2 p{axis}"]
        assert looks[f"m0 p{axis}"][0] == looks["m0 px"][0] != looks[f"m2 p{axis}"][0]
    assert len({str(dashes[f"m0 p{axis}"]) for axis in "xyz"}) == 3


@pytest.mark.parametrize(("count", "named"), [(14, 14), (15, 2)])
def test_up_to_fourteen_lines_are_named(count, named):
    lined = [plots.PlotLine(f"j{k}", np.arange(3.0), np.arange(3.0)) for k in range(count)]
    panel, plane = plots.PlotPanel("position", "rad", lined), charts.blank((4, 3)).add_subplot()
    plots._draw(plane, panel, plots._colors([panel]), True)
    assert len(plane.get_legend().get_texts()) == named
    assert bool(plane.get_legend().get_title().get_text()) == (named == 2)


def test_the_fourth_dashes_are_those_of_the_second_and_the_dots_of_the_third():
    solid, *others = plots.DASHES
    (_, dashes), (_, dots), (_, both) = others
    assert solid == "-"
    assert {begin for begin, _ in others} == {0}
    assert both == (dashes[0], dots[1], *dots)
    assert dots[0] < dots[1] < dashes[1] < dashes[0]


def test_another_run_is_drawn_over_in_thin_dashes(crab):
    model = examples.double_pendulum().model("physical")
    one, other = (simulate(model, [x, 0.2], None, 0.1, None, "RK4", dt=0.01) for x in (0.1, 0.3))
    axes = one.plot("q", overlay=other).axes[0]
    drawn = lines(axes)
    np.testing.assert_array_equal([line.get_ydata() for line in drawn[:2]], one.q.T)
    np.testing.assert_array_equal([line.get_ydata() for line in drawn[2:]], other.q.T)
    assert {line.get_linestyle() for line in drawn[:2]} == {"-"}
    assert {line.get_linestyle() for line in drawn[2:]} == {"--"}
    assert drawn[2].get_linewidth() < drawn[0].get_linewidth()
    with complains(StateError, "overlay must be a run of the same body"):
        one.plot("q", overlay=simulate(examples.crane().model("physical"), None, None, 0.01))


def test_constant_lines_are_drawn_in_the_middle_of_their_panel():
    for values, ends in (
        (5 + 1e-7 * np.arange(4), (0, 10)),
        (-2e-7 * np.ones(4), (-1e-3, 1e-3)),
        (np.array([5.0, np.nan, 5.1]), None),
        (np.full(3, np.nan), None),
    ):
        plane = charts.blank((4, 3)).add_subplot()
        before = plane.get_ylim()
        line = plots.PlotLine("x", np.arange(len(values)), values)
        plots._keep_flat_lines_flat(plane, plots.PlotPanel("x", "m", [line]))
        np.testing.assert_allclose(plane.get_ylim(), before if ends is None else ends, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "power"), [(2e4, "4"), (3e3, ""), (2e-2, ""), (3e-4, "\N{MINUS SIGN}4")]
)
def test_large_and_small_numbers_share_their_power_of_ten(size, power):
    line = plots.PlotLine("x", np.arange(3.0), size * np.array([1.0, 1.5, 2.0]))
    figure, panel = charts.blank((4, 3)), plots.PlotPanel("force", "N", [line])
    plane = figure.add_subplot()
    plots._draw(plane, panel, plots._colors([panel]), False)
    figure.draw_without_rendering()
    words = plane.yaxis.get_offset_text()
    assert words.get_text() == (
        f"$\\times\\mathdefault{{10^{{{power}}}}}\\mathdefault{{}}$" if power else ""
    )
    assert words.get_color() == charts.INK
    assert words.get_fontsize() == 8


def test_words_of_events_that_would_overlap_are_left_out():
    class Run:
        audit = ()

    def named(*times):
        Run.audit = [SimpleNamespace(time=t, what="undock m12 (m1, 2)") for t in times]
        plane = charts.blank((4, 3)).add_subplot()
        plots._name_events(plane, Run, 10.0)
        assert {text.get_text() for text in plane.texts} <= {"− m12"}
        return [text.xy[0] for text in plane.texts]

    room = 0.013 * 10.0 * len("− m12")
    assert named(1.0, 1.0 + 0.99 * room, 1.0 + 1.01 * room) == [1.0, 1.0 + 1.01 * room]
    assert named(0.0, 5.0) == [0.0, 5.0]
