"""All figures over time: a person can read them, and they show the numbers of the run."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from modurob import Dock, Undock, examples, simulate
from modurob.control import ComputedTorque, plot_closed_loop
from modurob.drawing import charts
from modurob.gaits import ChaoticMaps, Oscillators, Wave, preview
from modurob.sim.output import plots

SMALLEST_PT, LARGEST_PT = 6.5, 12.0  # of letters: from a legend of many lines to a title
THINNEST_PT, THICKEST_PT = 0.7, 2.0  # of lines, grid and limits included
WIDTH_INCH, PANEL_INCH = (8, 9), (1.5, 2.5)  # a page, and a part of it
ROOM = (0.05, 0.15)  # of the range of the curves, above and below them


def crane_run(n=50):
    """A made-up run of a slide and a hinge, with an estimate, as `simulate` records it."""
    t = np.linspace(0.0, 1.0, n)
    q = np.stack([0.1 * np.sin(3 * t), 0.5 - 0.5 * np.cos(4 * t)], axis=1)
    v = np.stack([0.3 * np.cos(3 * t), 2 * np.sin(4 * t)], axis=1)
    sigma = np.tile([0.001, 0.002, 0.003, 0.004], (n, 1))
    sigma[0] = 1.0  # not known at the start
    channels = {"measured_q": q + 0.02, "estimate_q": q + 0.01, "estimate_v": v + 0.03}
    return SimpleNamespace(t=t, q=q, v=v, tau=-10 * q, channels=channels | {"sigma": sigma})


def way(t):
    return SimpleNamespace(q=[0.2 * t, -0.2 * t])


@pytest.fixture(scope="module")
def crane_law():
    return ComputedTorque(examples.crane().model("physical"), torque_limit=[4.0, np.inf])


@pytest.fixture(scope="module")
def fall():
    model = examples.double_pendulum().model("physical")
    return simulate(model, [0.3, 0.2], None, 0.2, None, "RK4", dt=0.01)


@pytest.fixture(scope="module")
def changing():
    model = examples.snake(3).model("physical", base="free", gravity=(0, 0, 0))
    events = [Undock(0.1, "m2"), Dock(0.101, "m1", 2, "n", 5), Undock(0.3, "n")]
    return simulate(model, None, np.full(8, 0.3), 0.4, None, "RK4", dt=0.02, events=events)


@pytest.fixture(scope="module")
def figures(fall, changing, crane_law):
    crab = examples.crab().model()
    long = examples.snake(21).model("physical")
    speeds = np.linspace(0, 1, long.nv)
    found = {
        "fall": fall.plot(title="Fall"),
        "events": changing.plot("q", "energy", title="Events"),
        "many": simulate(long, None, speeds, 0.05, None, "RK4", dt=0.01).plot("q"),
        "loop": plot_closed_loop(crane_run(), crane_law, way, title="Loop"),
        "wave": preview(Wave.for_model(crab)),
        "oscillators": preview(Oscillators.for_model(crab)),
        "chaotic": preview(ChaoticMaps.for_model(crab, coupling=0.5)),
    }
    for figure in found.values():
        figure.draw_without_rendering()
    return found


NAMES = ["fall", "events", "many", "loop", "wave", "oscillators", "chaotic"]
every_figure = pytest.mark.parametrize("name", NAMES)


@every_figure
def test_letters_lines_and_panels_have_a_size_that_can_be_read(figures, name):
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    figure = figures[name]
    width, height = figure.get_size_inches()
    assert WIDTH_INCH[0] <= width <= WIDTH_INCH[1]
    head = height - PANEL_INCH[0] * len(figure.axes)
    assert 0 < head <= (PANEL_INCH[1] - PANEL_INCH[0]) * len(figure.axes) + 1
    for text in figure.findobj(Text):
        if text.get_text():
            assert SMALLEST_PT <= text.get_fontsize() <= LARGEST_PT, text
    for line in figure.findobj(Line2D):
        if line.get_linestyle() != "None" and line.get_visible():
            assert THINNEST_PT <= line.get_linewidth() <= THICKEST_PT or not line.get_xdata().size


@every_figure
def test_nothing_hangs_over_the_edge_or_over_the_curves(figures, name):
    figure = figures[name]
    page = figure.bbox
    for plane in figure.axes:
        around = plane.get_tightbbox()
        assert page.x0 <= around.x0
        assert around.x1 <= page.x1
        assert page.y0 <= around.y0
        assert around.y1 <= page.y1
        legend = plane.get_legend()
        if legend is not None:
            assert legend.get_window_extent().x0 >= plane.bbox.x1  # beside the axes
    for above, below in zip(figure.axes, figure.axes[1:], strict=False):
        assert above.bbox.y0 > below.bbox.y1


@every_figure
def test_axes_are_named_light_and_as_long_as_the_run(figures, name):
    *upper, last = figures[name].axes
    assert last.get_xlabel() == "time [s]"
    for plane in (*upper, last):
        assert plane.get_ylabel()
        assert plane.get_xlim() == last.get_xlim()
        assert plane.xaxis.get_gridlines()[0].get_visible()
        shown = {side for side, spine in plane.spines.items() if spine.get_visible()}
        assert shown == {"left", "bottom"}
        ends = {x for line in plane.get_lines() if len(line.get_xdata()) > 2
                for x in (line.get_xdata()[0], line.get_xdata()[-1])}  # fmt: skip
        assert min(ends) == plane.get_xlim()[0]


@pytest.mark.parametrize("name", ["fall", "events"])
def test_names_of_axes_stand_on_one_line(figures, name):
    left = [plane.yaxis.label.get_window_extent().x0 for plane in figures[name].axes]
    assert len(left) > 1
    assert figures[name].get_suptitle() == name.capitalize()
    assert figures["many"].get_suptitle() == ""
    np.testing.assert_allclose(left, left[0], atol=0.1)  # pixels


@pytest.mark.parametrize("name", ["fall", "events", "many", "wave"])
def test_curves_fill_their_panels_with_a_little_room(figures, name):
    for plane in figures[name].axes:
        values = np.concatenate(
            [line.get_ydata() for line in plane.get_lines() if len(line.get_xdata()) > 2]
        )
        low, high = plane.get_ylim()
        reach = np.ptp(values)
        if reach > 1e-5:
            assert ROOM[0] <= (values.min() - low) / reach <= ROOM[1]
            assert ROOM[0] <= (high - values.max()) / reach <= ROOM[1]


def test_lines_have_colors_that_differ():
    for count in (1, 3, 8, 9, 30):
        found = [to_rgba(color) for color in charts.colors(count)]
        assert len(found) == count
        for k, color in enumerate(found):
            others = np.array([x for j, x in enumerate(found) if j != k])
            if len(others):
                assert np.abs(others - color).max(axis=1).min() > 0.01
            assert min(color[:3]) < 0.5  # seen on white
    assert charts.colors(8) == list(charts.PALETTE)


# -- trajectories ----------------------------------------------------------------------------------


def test_words_of_events_stand_where_there_is_room_for_them(figures):
    """The second one comes 1 ms after the first."""
    figure = figures["events"]
    notes = {text.get_text(): text.xy for text in figure.axes[0].texts}
    assert notes == {"− m2": (0.1, 1.0), "− n": (0.3, 1.0)}
    for plane in figure.axes:
        marks = [
            line.get_xdata()[0] for line in plane.get_lines() if len(set(line.get_xdata())) == 1
        ]
        assert marks == [0.1, 0.101, 0.3]


def test_numbers_without_a_unit_have_no_brackets(changing, fall):
    assert [plane.get_ylabel() for plane in changing.plot("q").axes] == [
        "position [m]", "orientation", "position [rad]"
    ]  # fmt: skip

    class Law:
        def command(self, t, q, v, reference):
            return 0 * v

        def record(self):
            return {"size": 1.0}

    run = simulate(fall.model, None, None, 0.02, Law(), "RK4", dt=0.01)
    assert [plane.get_ylabel() for plane in run.plot("size").axes] == ["size"]


def test_a_dashed_line_is_another_quantity_of_the_same_body(changing):
    (plane, *_) = changing.plot("q").axes
    lines = [line for line in plane.get_lines() if line.get_label()[0] != "_"]
    names = {line.get_label(): (line.get_color(), line._unscaled_dash_pattern) for line in lines}
    bodies = {name.split()[0] for name in names}
    assert len(bodies) == 3
    for body in bodies:
        own = [style for name, style in names.items() if name.split()[0] == body]
        assert len(own) == 3
        assert len({color for color, _ in own}) == 1
        assert len({str(dashes) for _, dashes in own}) == 3


@pytest.mark.parametrize(
    ("middle", "reach", "limits"),
    [
        (5.0, 4.9e-6, (0.0, 10.0)),  # less than a millionth of it: flat
        (5.0, 5.1e-6, None),
        (0.0, 0.9e-12, (-1e-3, 1e-3)),
        (0.0, 1.1e-12, None),
    ],
)
def test_a_line_is_flat_when_it_varies_by_less_than_a_millionth(middle, reach, limits):
    from matplotlib.figure import Figure

    plane = Figure().subplots()
    y = middle + reach * np.array([-0.5, 0.5])
    plots._keep_flat_lines_flat(plane, plots.PlotPanel("", "", [plots.PlotLine("", y, y)]))
    if limits is None:
        assert plane.get_ylim() == (0, 1)  # as it was
    else:
        np.testing.assert_allclose(plane.get_ylim(), limits, atol=1e-5 * abs(limits[1]))


# -- closed loops ----------------------------------------------------------------------------------


def curves(plane, points):
    return [line for line in plane.get_lines() if len(line.get_xdata()) == points]


def test_a_closed_loop_shows_its_run_in_degrees_and_meters(figures):
    run, planes = crane_run(), figures["loop"].axes
    assert [plane.get_ylabel() for plane in planes] == [
        "position [°]", "position [m]", "velocity [°/s]", "velocity [m/s]",
        "torque [N m]", "force [N]", "error [°]", "error [m]",
    ]  # fmt: skip
    degree = 180 / np.pi
    wanted = np.stack([0.2 * run.t, -0.2 * run.t], axis=1)
    for k, scale, (place, speed, force, error) in ((1, degree, planes[::2]), (0, 1, planes[1::2])):
        true, reference = curves(place, 50)
        np.testing.assert_allclose(true.get_ydata(), scale * run.q[:, k])
        np.testing.assert_allclose(reference.get_ydata(), scale * wanted[:, k])
        dots, estimate = curves(place, 49)
        np.testing.assert_allclose(dots.get_ydata(), scale * (run.q[:-1, k] + 0.02))
        np.testing.assert_allclose(estimate.get_ydata(), scale * (run.q[:-1, k] + 0.01))
        np.testing.assert_allclose(curves(speed, 50)[0].get_ydata(), scale * run.v[:, k])
        np.testing.assert_allclose(curves(speed, 49)[0].get_ydata(), scale * (run.v[:-1, k] + 0.03))
        (drawn,) = curves(force, 49)
        np.testing.assert_allclose(drawn.get_ydata(), run.tau[:-1, k])
        assert drawn.get_drawstyle() == "steps-post"  # held between samples
        np.testing.assert_allclose(
            curves(error, 50)[0].get_ydata(), scale * (run.q[:, k] - wanted[:, k])
        )
        assert [line.get_ydata()[0] for line in curves(error, 2)] == [0]
        assert len({line.get_color() for line in (true, estimate, drawn, dots)}) == 1


def test_the_band_of_an_estimate_is_three_sigmas_wide_and_tight_at_the_start(figures):
    planes, run = figures["loop"].axes, crane_run()
    for plane, scale, k, middle in (
        (planes[0], 180 / np.pi, 1, run.q[:, 1] + 0.01), (planes[1], 1, 0, run.q[:, 0] + 0.01),
        (planes[2], 180 / np.pi, 3, run.v[:, 1] + 0.03), (planes[3], 1, 2, run.v[:, 0] + 0.03),
    ):  # fmt: skip
        (band,) = plane.collections
        sigma = 0.001 * (k + 1)
        corners = band.get_paths()[0].vertices
        for row, half in ((0, 30 * sigma), (20, 3 * sigma)):  # ten times the median at most
            at = corners[np.isclose(corners[:, 0], run.t[row])][:, 1]
            np.testing.assert_allclose(
                (at.min(), at.max()), scale * (middle[row] + np.array([-half, half]))
            )
        assert 0 < band.get_alpha() < 0.5


def test_positions_and_torques_are_in_view_and_measurements_need_not_be(figures):
    run, planes = crane_run(), figures["loop"].axes
    for plane, shown in (
        (planes[1], [run.q[:, 0], 0.2 * run.t]), (planes[5], [run.tau[:-1, 0]])
    ):  # fmt: skip
        values = np.concatenate(shown)
        room = 0.12 * np.ptp(values)
        np.testing.assert_allclose(plane.get_ylim(), (values.min() - room, values.max() + room))
    assert [line.get_ydata()[0] for line in curves(planes[5], 2)] == [-4, 4]  # limits of the slide
    assert curves(planes[4], 2) == []  # the hinge has none


def test_a_legend_says_what_is_reference_estimate_and_measurement(figures, crane_law):
    def legends(figure):
        found = [plane.get_legend() for plane in figure.axes]
        return [[t.get_text() for t in legend.get_texts()] for legend in found if legend]

    both = ["reference", "estimate, ±3σ", "measured"]
    assert legends(figures["loop"]) == [["m1.hinge", *both], ["m0.slide", *both]]
    run = crane_run()
    run.channels = {}
    bare = plot_closed_loop(run, crane_law, way)
    assert legends(bare) == [["m1.hinge", "reference"], ["m0.slide", "reference"]]
    assert bare.get_suptitle() == ""
    assert figures["loop"].get_suptitle() == "Loop"


def test_of_many_measurements_some_hundred_are_drawn(crane_law):
    for n, dots in ((600, 599), (1199, 1198), (1200, 600), (6000, 600)):
        plane = plot_closed_loop(crane_run(n), crane_law, way).axes[0]
        (seen,) = [line for line in plane.get_lines() if line.get_marker() == "."][:1]
        assert len(seen.get_xdata()) == dots


# -- gaits -----------------------------------------------------------------------------------------


def test_synchrony_is_shown_on_a_scale_of_its_own(figures):
    above, below = figures["oscillators"].axes
    assert below.get_ylabel() == "synchrony"
    assert below.get_ylim() == (0, 1.08)
    assert below.get_yticks().tolist() == [0, 0.5, 1]
    assert 1.3 < above.bbox.height / below.bbox.height < 1.9
    joints, below = figures["chaotic"].axes
    assert below.get_ylabel() == "difference"
    low, high = below.get_ylim()
    values = [line.get_ydata().min() for line in below.get_lines()]
    assert high == 10
    assert low == pytest.approx(min(min(values) / 3, 0.03))
    dashes = {line.get_label(): line.is_dashed() for line in below.get_lines()}
    assert dashes == {"between joints": False, "predicted": True}
    assert not any(line.is_dashed() for line in joints.get_lines())


def test_previews_show_ten_seconds_unless_told(figures):
    for name in ("wave", "oscillators", "chaotic"):
        line = figures[name].axes[0].get_lines()[0]
        assert (line.get_xdata()[0], line.get_xdata()[-1]) == (0, 10)
        assert len(line.get_xdata()) == 2000
