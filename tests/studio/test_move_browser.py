"""Move and See, in the browser: run, cancel, play, scrub, compare, plot."""

import numpy as np

from modurob import Trajectory, examples
from modurob.studio.folder import Folder

FRAMES = 40  # of playback
QUIET = 12  # websocket messages meanwhile: heartbeats and the saved-or-not timer


def body_place(tab, module):
    """Where a module is drawn. [m]"""
    return tab.page.evaluate(
        """(name) => { const { bodies } = window.modurob.stage;
        const body = bodies.cast.modules.find((m) => m.name === name).body;
        return bodies.frames[body].elements.slice(12, 15); }""",
        module,
    )


# How far from the middle of the view the outermost body is; its edge is at 1.
OUTERMOST = """(() => { const { bodies, camera } = window.modurob.stage;
camera.updateMatrixWorld();
return Math.max(...bodies.frames.map((frame) => {
  const p = camera.position.clone().setFromMatrixPosition(frame).project(camera);
  return Math.max(Math.abs(p.x), Math.abs(p.y)); })); })()"""


def test_computed_torque_and_ekf_run_play_back_are_plotted_zoomed_and_compared(tab):
    tab.show("crab", examples.crab(), duration=1.0)
    tab.move()
    tab.choose("set-estimator", "EKF")
    tab.unfold("Noise and filter")
    tab.fill("set-noise_q", 0.01)
    assert "done" in tab.run()
    (record,) = tab.project().runs
    assert record.title == "computed torque, wave, EKF"
    assert record.settings.noise_q == 0.01

    # it plays: time advances in the browser, and hardly anything is sent
    tab.wait("window.modurob.clock.playing && window.modurob.clock.t > 0.2")
    counts = "[window.modurob.stats.frames, window.modurob.clock.t, window.traffic]"
    before = tab.page.evaluate(counts)
    tab.wait(f"window.modurob.stats.frames > {before[0]} + {FRAMES}")
    after = tab.page.evaluate(counts)
    assert after[1] != before[1]
    assert after[2] - before[2] < QUIET

    # scrubbed, the body stands where the trajectory says
    tab.click("play")
    tab.find("scrub").fill("500")
    tab.wait("Math.abs(window.modurob.clock.t - 0.5) < 0.01")
    trajectory = Trajectory.load(Folder(tab.server.folder).runs(tab.name) / "1.npz")
    q, _ = trajectory.at(tab.page.evaluate("window.modurob.clock.t"))
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

    # a cursor stays at its time when its plot is zoomed
    tab.find("scrub").fill("600")
    tab.page.evaluate(
        """() => { window.modurob.plots.charts.get('q')
        .dispatchAction({ type: 'dataZoom', start: 50, end: 100 }); }"""
    )
    tab.wait("window.modurob.plots.charts.get('tau').getOption().dataZoom[0].start === 50")
    expected = tab.page.evaluate(
        """() => { const chart = window.modurob.plots.charts.get('tau');
        const { x } = chart.getDom().getBoundingClientRect();
        return x + chart.convertToPixel({ xAxisIndex: 0 }, 0.6); }"""
    )
    place = "window.modurob.plots.cursors.get('tau').getBoundingClientRect().x"
    tab.wait(f"Math.abs({place} - {expected}) < 2")  # the other plots are zoomed with it
    tab.find("scrub").fill("200")
    tab.wait("window.modurob.plots.cursors.get('q').style.visibility === 'hidden'")

    # a second run with another law, compared with the first
    tab.move()
    tab.choose("set-estimator", "none")
    tab.fill("set-noise_q", 0)
    tab.choose("set-controller", "PD with gravity compensation")
    assert "done" in tab.run()
    tab.click("mode-see")
    tab.page.locator("[data-plot=q] canvas").first.wait_for()  # Move has such a button too
    tab.page.locator("[data-testid=compare-1]:visible").click()
    tab.wait("window.modurob.run?.other")
    tab.wait("window.modurob.plots.charts.get('q')?.getOption().series.length === 6")
    tab.find("scrub").fill("600")
    tab.wait("window.modurob.stage.other.cast?.modules.length === 6")

    # a run is seen where its player is, and hides no other body if its files arrive late
    active = "window.modurob.stage.playback.active"
    for mode in ("live", "build"):
        tab.click("mode-see")
        tab.wait(active)
        tab.click("play")
        tab.wait("window.modurob.clock.playing")
        tab.click(f"mode-{mode}")
        tab.wait(f"!{active} && !window.modurob.clock.playing")
    tab.page.evaluate(
        'import("modurob-web/bus.js").then(({ say }) => say("run", window.modurob.run))'
    )
    assert not tab.page.evaluate(active)


def test_runs_that_are_canceled_or_diverge_say_so_and_leave_the_session_intact(tab):
    tab.show(
        "crab", examples.crab(), duration=600, motion="zero", integrator="RK4", settling_time=0.5
    )
    tab.move()
    tab.page.locator("#joint-m1\\.hinge").fill("1")
    tab.click("run")
    tab.wait("parseFloat(document.querySelector('[data-testid=run-state]').innerText) >= 0")

    # a reload does not end it: the page that comes back shows how far it is
    tab.open(tab.name)
    tab.find("cancel").wait_for()
    tab.wait("parseFloat(document.querySelector('[data-testid=run-state]').innerText) >= 0")
    tab.click("cancel")
    tab.reads("run-state", "canceled")
    assert not tab.project().runs

    tab.unfold("Gravity, integrator, seed, formulas")
    tab.fill("set-dt", 0.05)
    tab.unfold("Gains, poles, limits")
    tab.fill("set-settling_time", 0.001)
    assert tab.run() == "it stopped early"
    assert "diverged" in tab.problem()
    assert "Try a smaller step" in tab.problem()
    tab.find("run-1").or_(tab.find("run-2")).first.wait_for()  # what was computed is there

    # the same body, alive: it can be edited
    tab.click("mode-build")
    tab.modules(6)
    tab.cell(0, 2)
    tab.modules(7)


def test_sliders_pose_the_body_and_bad_numbers_are_explained_at_the_field(tab):
    tab.show("crab", examples.crab())
    tab.move()
    before = body_place(tab, "m5")
    rate = tab.page.get_by_label("Velocity of m1.hinge at the start")
    rate.fill("9")  # half a number: the server's answer to a slider must not take it away
    slider = tab.page.locator("#joint-m1\\.hinge")
    slider.evaluate("(it) => { it.value = Math.PI / 2; it.dispatchEvent(new Event('input')); }")
    model = examples.crab().model()
    expected = model.forward_kinematics([np.pi / 2, 0, 0])[model.modules["m5"], :3, 3]
    tab.wait(f"Math.abs(window.modurob.stage.bodies.frames[5].elements[14] - {expected[2]}) < 1e-3")
    assert not np.allclose(before, body_place(tab, "m5"), atol=1e-2)
    tab.until(lambda: "m1.hinge" in tab.project().pose)
    assert rate.input_value() == "9"
    rate.press("0")
    rate.press("Enter")
    tab.until(lambda: "m1.hinge" in tab.project().settings.rates)
    assert np.isclose(tab.project().settings.rates["m1.hinge"], np.pi / 2)
    tab.fill("set-duration", -3)
    assert "Duration" in tab.problem()
    tab.page.get_by_text("greater than 0").first.wait_for()


def test_a_module_lets_go_during_a_run_and_the_timeline_shows_it(tab):
    """With motion, unlike the other tests: the eye flies, and a journey goes on meanwhile."""
    tab.page.emulate_media(reduced_motion="no-preference")
    tab.show("snake", examples.snake(4), hinges="physical", motion="hold", duration=0.6)
    tab.move()
    tab.unfold("Events during the run")
    tab.click("event-undock")
    tab.page.get_by_text("undock m3").first.wait_for()
    assert "done" in tab.run()
    event = tab.page.locator(".player .event")
    assert "undock m3" in event.inner_text()
    tab.find("scrub").fill("1000")
    tab.wait("Math.abs(window.modurob.clock.t - 0.6) < 1e-3")
    fallen = body_place(tab, "m3")[2] - body_place(tab, "m0")[2]
    assert fallen < -0.2  # it fell freely from 0.3 s on: g t^2 / 2 = 0.44 m
    assert tab.page.evaluate(OUTERMOST) < 1  # and is in view

    # all of it falls: the eye goes along, unless it shall not
    tab.fill("set-base", "free")
    tab.page.get_by_label("Remove event 1").click()
    tab.fill("set-duration", 2)
    tab.until(lambda: (s := tab.project().settings).duration == 2 and s.base == "free")
    assert "done" in tab.run()
    tab.wait("window.modurob.clock.playing && window.modurob.clock.end === 2")
    for k in (0, 500, 1000):
        tab.find("scrub").fill(str(k))
        tab.wait(f"Math.abs(window.modurob.clock.t - {k / 500}) < 1e-3")
        assert tab.page.evaluate(OUTERMOST) < 1
    fallen = body_place(tab, "m0")[2]
    assert fallen < -15  # g t^2 / 2 = 19.6 m
    aim = "window.modurob.stage.eye.controls.target.z"
    assert abs(tab.page.evaluate(aim) - fallen) < 1
    tab.click("follow")  # the center of mass
    tab.wait("!window.modurob.stage.eye.flight")
    tab.find("scrub").fill("500")
    tab.wait("window.modurob.clock.t === 1")
    assert abs(tab.page.evaluate(aim) - body_place(tab, "m0")[2]) < 1
    tab.click("follow")  # it stays
    tab.wait("!window.modurob.stage.eye.flight")
    still = tab.page.evaluate(aim)
    tab.find("scrub").fill("0")
    tab.wait("window.modurob.clock.t === 0")
    assert tab.page.evaluate(aim) == still

    # near the start it falls out of sight: an arrow leads to it
    assert tab.page.locator(".arrow").count() == 0
    tab.page.evaluate("(({ eye, bodies }) => eye.fit(bodies.box(), false))(window.modurob.stage)")
    tab.wait("document.querySelector('[data-testid=scale-bar]').innerText.endsWith('cm')")
    tab.find("scrub").fill("1000")
    tab.page.locator(".arrow", has_text="m0 20 m").click()
    tab.wait(f"!window.modurob.stage.eye.flight && {OUTERMOST} < 1")
    tab.page.locator(".arrow").wait_for(state="detached")
    tab.click("follow")
    tab.page.emulate_media(reduced_motion="reduce")


# Colors of all solids as they are drawn, by module; the colors of the scale, and solids' own.
PAINTED = """() => { const { bodies, axis } = window.modurob.stage;
const C = axis.material.color.constructor;
const found = { painted: {}, own: {}, scale: {} };
for (const mesh of bodies.meshes) mesh.userData.modules.forEach((m, i) => {
  const name = bodies.cast.modules[m].name, at = mesh.instanceColor.array.slice(3 * i, 3 * i + 3);
  (found.painted[name] ??= []).push([...at]);
});
for (const mesh of bodies.meshes) mesh.userData.modules.forEach((m, i) =>
  (found.own[bodies.cast.modules[m].name] ??= []).push(new C(mesh.userData.colors[i]).toArray()));
const css = getComputedStyle(document.body);
for (const end of ["low", "high"])
  found.scale[end] = new C(css.getPropertyValue(`--tint-${end}`).trim()).toArray();
return found; }"""


def same(a, b):
    return np.allclose(a, b, atol=1e-3)


def levels(found, module):
    """How high a module is on the scale of colors, from 0 to 1, one number for each solid."""
    low, high = (np.array(found["scale"][end]) for end in ("low", "high"))
    painted = np.array(found["painted"][module])
    level = (painted - low) @ (high - low) / np.sum((high - low) ** 2)
    assert same(painted, low + level[:, None] * (high - low))  # nothing but a mix of the two
    return level


def test_modules_that_balance_are_tinted_by_their_messages_and_faults_are_on_the_timeline(tab):
    """The base of a small tree has two neighbors, a tip has one: it sends half as much."""
    tree = examples.superbot_tree(2, 2, np.random.default_rng(3))
    tip = tree.modules[-1]
    tab.show("tree", tree, hinges="physical", duration=0.2)
    tab.move()
    tab.choose("set-motion", "balance by messages")
    tab.unfold("Events during the run")
    tab.click("event-die")
    tab.page.get_by_text(f"0.1 s: die {tip}").first.wait_for()
    assert "done" in tab.run()
    event = tab.page.locator(".player .event")
    assert f"die {tip}" in event.inner_text()

    # what a module takes for the centre is off at first; then the news has arrived
    tab.find("scrub").fill("0")
    assert "Error of the center of mass" in tab.text("scale")
    assert same(levels(tab.page.evaluate(PAINTED), tip), 1.0)
    tab.find("scrub").fill("250")
    assert max(levels(tab.page.evaluate(PAINTED), tip)) < 0.1

    # how much is sent, before and after the fault
    tab.find("tint").select_option("messages sent")
    tab.wait("document.querySelector('[data-testid=scale]').innerText.includes('Messages sent')")
    assert "2000 1/s" in tab.text("scale")
    sending = tab.page.evaluate(PAINTED)
    assert same(levels(sending, tree.base), 1.0)
    assert same(levels(sending, tip), 0.5)
    event.click()
    tab.find("scrub").fill("900")
    dead = tab.page.evaluate(PAINTED)
    assert same(levels(dead, tip), 0.0)
    assert same(levels(dead, tree.base), 1.0)

    # the pointer on a module lights it, and takes no other module's tint away
    light = f"window.modurob.stage.over === '{tip}'"
    tab.page.locator(f".slide[data-module={tip}] label").first.hover()
    tab.wait(light)
    lit = tab.page.evaluate(PAINTED)
    assert not same(lit["painted"][tip], dead["painted"][tip])
    assert lit["painted"][tree.base] == dead["painted"][tree.base]
    tab.find("time").hover()
    tab.wait(f"!({light})")
    assert tab.page.evaluate(PAINTED)["painted"] == dead["painted"]

    tab.find("tint").select_option("module colors")
    tab.find("scale").wait_for(state="detached")
    plain = tab.page.evaluate(PAINTED)
    assert all(same(plain["painted"][m], plain["own"][m]) for m in tree.modules)
    assert not same(plain["painted"][tip], dead["painted"][tip])
