"""Move and See, in the browser: run, cancel, play, scrub, compare, plot, export."""

import csv
import io
import json

import numpy as np
from PIL import Image

from modurob import Trajectory, examples
from modurob.studio.folder import Folder

QUIET = 12  # websocket messages in two seconds of playback: heartbeats and the saved-or-not timer


def clock(tab):
    return tab.page.evaluate("window.modurob.clock.t")


def body_place(tab, module):
    """Where a module is drawn. [m]"""
    return tab.page.evaluate(
        """(name) => { const { bodies } = window.modurob.stage;
        const body = bodies.cast.modules.find((m) => m.name === name).body;
        return bodies.frames[body].elements.slice(12, 15); }""",
        module,
    )


def test_computed_torque_and_ekf_run_play_back_and_are_compared(tab, server):
    tab.open(example="crab")
    name = tab.text("project")
    tab.click("mode-move")
    tab.choose("set-estimator", "EKF")
    tab.fill("set-duration", 2)
    tab.page.get_by_text("Noise", exact=True).click()
    tab.fill("set-noise_q", 0.01)
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")
    assert "done" in tab.run()

    # it plays: time advances in the browser, and hardly anything is sent
    tab.wait("window.modurob.clock.playing && window.modurob.clock.t > 0.2")
    before = tab.page.evaluate("[window.modurob.stats.frames, window.traffic]")
    tab.page.wait_for_timeout(2000)
    after = tab.page.evaluate("[window.modurob.stats.frames, window.traffic]")
    assert after[0] > before[0] + 5
    assert after[1] - before[1] < QUIET

    # scrubbed, the body stands where the trajectory says
    tab.click("play")
    tab.find("scrub").fill("500")
    tab.wait("Math.abs(window.modurob.clock.t - 1.0) < 0.01")
    trajectory = Trajectory.load(Folder(server.folder).runs(name) / "1.npz")
    q, _ = trajectory.at(clock(tab))
    T = trajectory.model.forward_kinematics(q)
    for module in ("m3", "m5"):
        expected = T[trajectory.model.modules[module], :3, 3]
        assert np.allclose(body_place(tab, module), expected, atol=1e-3)

    # the plots: the estimate with its band, and a cursor at the player's time
    tab.click("mode-see")
    tab.page.locator("[data-plot=estimate] canvas").first.wait_for()
    place = "(k) => window.modurob.plots.cursors.get('estimate').getBoundingClientRect().x"
    here = tab.page.evaluate(place)
    tab.find("scrub").fill("250")
    tab.wait(f"({place})() < {here} - 20")
    option = tab.page.evaluate(
        "window.modurob.plots.charts.get('estimate').getOption().series.length"
    )
    assert option == 9  # three joints, each with a line and the two edges of its band

    # a second run with another law, compared with the first
    tab.click("mode-move")
    tab.choose("set-estimator", "none")
    tab.fill("set-noise_q", 0)
    tab.choose("set-controller", "PD with gravity compensation")
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")
    assert "done" in tab.run()
    tab.click("mode-see")
    tab.page.locator("[data-testid=compare-1]:visible").click()
    tab.wait("window.modurob.run?.other")
    tab.wait("window.modurob.plots.charts.get('q')?.getOption().series.length === 6")
    tab.find("scrub").fill("600")
    tab.wait("window.modurob.stage.other.cast?.modules.length === 6")


def test_a_run_is_cancelled_and_the_page_stays_alive(tab):
    tab.open(example="snake")
    tab.click("mode-move")
    tab.choose("set-hinges", "physical")
    tab.fill("set-duration", 600)
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")
    tab.click("run")
    tab.wait("parseFloat(document.querySelector('[data-testid=run-state]').innerText) >= 0")
    tab.click("undo") if tab.find("undo").is_enabled() else None
    tab.click("cancel")
    tab.wait("document.querySelector('[data-testid=run-state]').innerText === 'cancelled'")
    tab.fill("set-duration", 0.2)
    assert "done" in tab.run()


def test_a_run_that_diverges_says_why_and_leaves_the_session_intact(tab, server):
    tab.open(example="crab")
    tab.click("mode-move")
    tab.choose("set-motion", "go to zero")
    tab.page.get_by_text("Gravity, integrator, seed").click()
    tab.choose("set-integrator", "RK4")
    tab.fill("set-dt", 0.05)
    tab.page.get_by_text("Gait and controller").click()
    tab.fill("set-settling_time", 0.001)
    tab.page.locator("#joint-m1\\.hinge").fill("1")
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")
    assert tab.run() == "it stopped early"
    assert "diverged" in tab.problem()
    assert "Try a smaller step" in tab.problem()
    tab.find("run-1").first.wait_for()  # what was computed until then is there
    tab.modules(6)


def test_sliders_pose_the_body_and_bad_numbers_are_explained_at_the_field(tab, server):
    tab.open(example="crab")
    tab.click("mode-move")
    before = body_place(tab, "m5")
    slider = tab.page.locator("#joint-m1\\.hinge")
    slider.fill("1.5707963267948966")
    model = examples.crab().model()
    expected = model.forward_kinematics([np.pi / 2, 0, 0])[model.modules["m5"], :3, 3]
    tab.wait(f"Math.abs(window.modurob.stage.bodies.frames[5].elements[14] - {expected[2]}) < 1e-3")
    assert not np.allclose(before, body_place(tab, "m5"), atol=1e-2)
    tab.page.get_by_label("Velocity of m1.hinge at the start").fill("90")
    tab.page.keyboard.press("Enter")
    name = tab.text("project")
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")
    tab.page.wait_for_timeout(600)
    assert np.isclose(Folder(server.folder).read(name).settings.rates["m1.hinge"], np.pi / 2)
    tab.fill("set-duration", -3)
    assert "Duration" in tab.problem()
    tab.page.get_by_text("greater than 0").first.wait_for()


def test_a_module_lets_go_during_a_run_and_the_timeline_shows_it(tab):
    tab.open(example="snake")
    tab.click("mode-move")
    tab.choose("set-hinges", "physical")
    tab.choose("set-motion", "hold the pose")
    tab.fill("set-duration", 0.6)
    tab.page.get_by_text("Events during the run").click()
    tab.click("event-undock")
    tab.page.get_by_text("undock m5").first.wait_for()
    assert "done" in tab.run()
    event = tab.page.locator(".player .event")
    assert "undock m5" in event.inner_text()
    tab.find("scrub").fill("1000")
    tab.wait("Math.abs(window.modurob.clock.t - 0.6) < 1e-3")
    fallen = body_place(tab, "m5")[2] - body_place(tab, "m0")[2]
    assert fallen < -0.2  # it fell freely from 0.3 s on: g t^2 / 2 = 0.44 m


def test_exports_come_as_files_that_open(tab, tmp_path):
    tab.open(example="crab")
    tab.click("mode-move")
    tab.fill("set-duration", 0.2)
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")
    tab.run()
    tab.click("play")
    tab.click("export")

    def exported(name):
        with tab.page.expect_download() as download:
            tab.click(f"export-{name}")
        return download.value.suggested_filename, download.value.path().read_bytes()

    name, project = exported("project")
    assert name.endswith(".modurob.json")
    assert json.loads(project)["format"] == "modurob-project"
    image = Image.open(io.BytesIO(exported("png")[1])).convert("RGB")
    assert len(image.getcolors(1 << 20)) > 20  # not blank
    rows = [*csv.reader(io.StringIO(exported("csv")[1].decode()))]
    assert rows[0][:2] == ["time [s]", "q m1.hinge [rad]"]
    report = tmp_path / "report.html"
    report.write_bytes(exported("report")[1])
    tab.page.goto(f"file://{report}")
    assert tab.page.locator("h1").inner_text().startswith("crab")
    assert tab.page.locator("math").count() > 3
    tab.outside = [url for url in tab.outside if not url.startswith("file://")]


def test_equations_are_shown_as_formulas_and_their_symbols_light_up_the_body(tab):
    tab.open(example="crab")
    tab.click("mode-understand")
    tab.click("part-equations")
    tab.wait("document.querySelector('[data-testid=formula] math')")
    tab.wait("document.querySelector('[data-testid=formula-state]').innerText.startsWith('M[1,1]')")
    assert "M" in tab.page.locator("[data-testid=formula] math").text_content()
    tab.find("entry-M[2,2]").click()
    tab.wait("document.querySelector('[data-testid=formula-state]').innerText.startsWith('M[2,2]')")
    tab.page.locator("[data-testid=formula] [data-module=m3]").first.hover()
    tab.wait("window.modurob.stage.over === 'm3'")
    tab.click("part-joints")
    tab.page.locator("[data-testid=joints] td[data-joint='m1.hinge']").first.hover()
    tab.wait("window.modurob.stage.axis.visible")
    tab.page.get_by_text("lie on one line").first.wait_for()  # why a hinge is locked
