"""Live, in the browser: modules are found, moved, killed, restarted and recorded."""

import os

import pytest

from modurob import examples

SMALL = [(390, 844), (640, 360)]  # [px] windows in which most can go wrong
GOAL = 0.5  # [rad]
NEAR = 0.05  # [rad] a slider has steps, and the loop of a busy machine is late
SENT_MS = 50  # a slider sends its value after 40 ms: earlier than what is clicked after this
STATE = "document.querySelector('[data-testid=live-m1]')?.innerText"
MEASURED = "parseFloat(document.querySelector('.goals .measured').innerText) * Math.PI / 180"


@pytest.mark.skipif(os.name == "nt", reason="modules are processes of POSIX systems")
def test_a_live_robot_is_found_moved_killed_restarted_and_kept_as_a_run(tab):
    tab.show("snake", examples.snake(2))
    tab.click("mode-live")
    tab.click("live-start")
    tab.find("legend").wait_for()
    tab.page.locator("[data-testid=live-record]:enabled").wait_for()
    tab.wait("window.modurob.stage.bodies.cast?.modules.length === 2")
    tab.wait("window.modurob.stage.live.links[0].level > 0.5")  # messages come back
    assert tab.faults() == []

    tab.click("live-record")
    slider = tab.page.locator("#goal-m0\\.hinge")
    slider.evaluate(
        f"""(s) => {{ s.value = {GOAL}; s.dispatchEvent(new Event('input'));
        return new Promise((done) => setTimeout(done, {SENT_MS})); }}"""
    )
    tab.fill("live-seconds", 0.5)
    tab.click("live-go")
    tab.wait(f"Math.abs({MEASURED} - {GOAL}) < {NEAR}")
    # the second cube turns about the hinge of the first, in its middle
    angle = """(() => { const { bodies } = window.modurob.stage;
        const body = bodies.cast?.modules.find((m) => m.name === 'm1')?.body;
        const [x, y, z] = bodies.frames[body]?.elements.slice(12, 15) ?? [0, 0, 0];
        return Math.abs(Math.atan2(z, Math.hypot(x, y))); })()"""
    tab.wait(f"Math.abs({angle} - {GOAL}) < {NEAR}")

    tab.click("live-follow")
    tab.wait("document.querySelector('[data-testid=live-mode]').innerText === 'Moves: gait sine'")
    tab.click("live-stop")

    tab.click("live-m1")
    tab.find("live-kill").wait_for()
    assert tab.faults(SMALL) == []
    tab.click("live-kill")
    tab.wait(f"{STATE} === 'm1 · dead'")
    tab.find("live-faults").wait_for()
    tab.click("live-restart")
    tab.wait(f"{STATE} === 'm1'")

    # a reload finds it as it was
    tab.open(tab.name)
    tab.wait("window.modurob.stage.live.active")
    tab.click("live-record")
    tab.until(lambda: len(tab.project().runs) == 1)
    tab.click("live-end")
    tab.find("live-start").wait_for()
    tab.wait("!window.modurob.stage.live.active")
    tab.click("mode-see")
    tab.wait("window.modurob.run?.main.parts.length >= 1")
    tab.page.locator("[data-plot=q] canvas").first.wait_for()
