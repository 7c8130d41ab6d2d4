"""Previews: what is drawn, where, and into which files."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from modurob import FileError, StateError, WriteError, examples
from modurob.drawing import charts
from modurob.gaits import GAITS, ChaoticMaps, Oscillators, Sine, Wave, preview
from oracles import complains

CRAB = examples.crab().model()


def lines(plane):
    return {line.get_label(): line.get_ydata() for line in plane.get_lines()}


@pytest.mark.parametrize("name", GAITS)
def test_every_gait_has_a_picture(name, tmp_path):
    preview(GAITS[name].for_model(CRAB, ramp=1.0), tmp_path / "gait.png", duration=4)
    image = Image.open(tmp_path / "gait.png")
    pixels = np.asarray(image.convert("RGB"), dtype=float)
    assert image.width > 1000
    assert np.mean(np.ptp(pixels, axis=2) > 60) > 0.005  # colored lines
    assert [path.name for path in tmp_path.iterdir()] == ["gait.png"]


def test_the_lines_are_the_reference():
    gait = Wave.for_model(CRAB)
    (plane,) = preview(gait, duration=3).axes
    t = plane.get_lines()[0].get_xdata()
    assert (t[0], t[-1]) == (0, 3)
    for k, name in enumerate(gait.joints):
        np.testing.assert_array_equal(lines(plane)[name], gait(t).q[:, k])
    assert plane.get_ylabel() == "joints [rad]"
    assert plane.get_title(loc="left") == "wave, period 1 s"


def test_joints_that_slide_have_a_panel_of_their_own():
    turning, sliding = preview(Sine.for_model(examples.arm("bac").model())).axes
    assert set(lines(turning)) == {"m0.joint", "m1.joint"}
    assert set(lines(sliding)) == {"m2.joint"}
    assert sliding.get_ylabel() == "joints [m]"
    (plane,) = preview(Sine(["hip"], 0.1)).axes
    assert plane.get_ylabel() == "joints [rad, m]"  # nobody said which


def test_synchronization_stands_below():
    oscillators = Oscillators.for_model(CRAB)
    _, below = preview(oscillators, duration=2).axes
    t = below.get_lines()[0].get_xdata()
    np.testing.assert_array_equal(lines(below)["order parameter"], oscillators.order(t))
    assert (below.get_yscale(), below.get_ylabel()) == ("linear", "synchrony")
    above, below = preview(ChaoticMaps.for_model(CRAB, coupling=0.5)).axes
    assert above.get_yscale() == "linear"
    assert (below.get_yscale(), below.get_ylabel()) == ("log", "difference")
    assert set(lines(below)) == {"between joints", "predicted"}


def test_panels_show_all_of_their_lines_and_the_whole_scale_of_an_order_parameter():
    gaits = Oscillators.for_model(CRAB, coupling=20.0), ChaoticMaps.for_model(CRAB, coupling=0.5)
    for gait in gaits:
        above, below = preview(gait, duration=3).axes
        for plane in (above, below):
            low, high = plane.get_ylim()
            values = np.concatenate(list(lines(plane).values()))
            assert low < values.min()
            assert values.max() < high
            assert plane.get_xlim() == (0, 3)
        joints = np.concatenate(list(lines(above).values()))
        room = np.abs(above.get_ylim() - np.array([joints.min(), joints.max()])) / np.ptp(joints)
        np.testing.assert_allclose(room, 0.08)
        if not gait.logarithmic:
            assert below.get_ylim()[0] == 0 < 1 < below.get_ylim()[1] < 1.2
        tall, short = (plane.get_position().height for plane in (above, below))
        assert tall > 1.2 * short


def test_a_preview_can_be_drawn_into_other_figures():
    figure = Figure()
    above, below = figure.subplots(2)
    gait = Oscillators.for_model(CRAB)
    assert preview(gait, axes=[above, below], title="mine") is figure
    assert above.get_title(loc="left") == "mine"
    assert len(above.get_lines()) == 3
    assert len(below.get_lines()) == 1
    alone = Figure().subplots()
    preview(gait, axes=alone)
    assert len(alone.get_lines()) == 3
    assert alone.get_xlabel() == "time [s]"
    part = Figure()
    inner = part.subfigures(1, 2)[1].subplots()
    assert preview(gait, axes=inner) is part
    innermost = part.subfigures(1, 2)[0].subfigures(1, 2)[1].subplots()
    assert preview(gait, axes=innermost) is part


def test_many_joints_share_a_scale_of_colors():
    (plane,) = preview(Wave.for_model(examples.snake(30).model())).axes
    assert len(plane.get_lines()) == 29
    assert [text.get_text() for text in plane.get_legend().get_texts()] == [
        "m1.hinge", "m29.hinge"
    ]  # fmt: skip
    assert plane.get_legend().get_title().get_text() == "29 joints"
    (few,) = preview(Wave.for_model(CRAB)).axes
    assert few.get_legend().get_title().get_text() == ""


@pytest.mark.parametrize(("count", "named"), [(14, 14), (15, 2)])
def test_up_to_fourteen_lines_are_named(count, named):
    (plane,) = preview(Sine([f"j{k}" for k in range(count)], 0.1)).axes
    assert len(plane.get_legend().get_texts()) == named
    assert bool(plane.get_legend().get_title().get_text()) == (named == 2)


def test_previews_are_files_of_the_kind_their_name_says(tmp_path):
    gait = Sine(["hip"], 0.1)
    for ending, begin in ((".svg", b"<?xml"), (".pdf", b"%PDF")):
        preview(gait, tmp_path / f"gait{ending}")
        assert (tmp_path / f"gait{ending}").read_bytes().startswith(begin)


def test_files_that_cannot_be_written_are_told():
    gait = Sine(["hip"], 0.1)
    with complains(FileError, ".bmp", ".png, .svg, .pdf"):
        preview(gait, "gait.bmp")
    with complains(WriteError, "nowhere"):
        preview(gait, "/nowhere/gait.png")
    with complains(StateError, "duration", "-1"):
        preview(gait, duration=-1)


def test_differences_share_a_scale_of_whole_decades_whatever_they_are():
    gaits = [ChaoticMaps.for_model(CRAB, coupling=c) for c in (0.02, 0.5)]
    weak, strong = (preview(gait, duration=8).axes[1] for gait in gaits)
    assert weak.get_ylim() == (0.03, 10.0)  # these do not vanish
    least = min(y.min() for y in lines(strong).values())
    assert strong.get_ylim() == pytest.approx((least / 3, 10.0))
    for plane in (weak, strong):
        assert plane.yaxis.get_minorticklocs().size == 0
    far = preview(ChaoticMaps.for_model(CRAB, coupling=0.5), duration=60).axes[1]
    for plane in (strong, far):
        low, high = plane.get_ylim()
        seen = [y for y in plane.get_yticks() if low <= y <= high]
        assert 3 <= len(seen) <= 6


def test_what_is_predicted_is_dashed_and_an_order_parameter_has_three_ticks():
    _, below = preview(ChaoticMaps.for_model(CRAB, coupling=0.5), duration=4).axes
    drawn = {line.get_label(): line.is_dashed() for line in below.get_lines()}
    assert drawn == {"between joints": False, "predicted": True}
    assert [line.get_color() for line in below.get_lines()] == [charts.INK, charts.PALETTE[1]]
    above, below = preview(Oscillators.for_model(CRAB), duration=2).axes
    assert not any(line.is_dashed() for line in (*above.get_lines(), *below.get_lines()))
    assert below.get_yticks().tolist() == [0, 0.5, 1]


def test_panels_are_as_high_above_others_as_alone():
    """Title and time axis have room of their own."""
    heights = []
    for gait in (Sine.for_model(CRAB), Oscillators.for_model(CRAB)):
        figure = preview(gait, duration=2)
        figure.draw_without_rendering()
        heights.append(figure.axes[0].get_position().height * figure.get_size_inches()[1])
    assert heights[1] == pytest.approx(heights[0], rel=0.06)
