"""Ground, connectors, locked joints, formulas and Lagrange's equations in the browser."""

import pytest

from modurob import examples

ARROWS = "window.modurob.stage.playback.contacts.shafts"


def test_joints_are_locked_by_their_sliders_and_formulas_are_overlaid_with_numbers(tab):
    tab.show("pendulum", examples.double_pendulum(), hinges="physical", duration=0.3,
             controller="none", motion="none")  # fmt: skip
    tab.move()
    tab.page.locator("#joint-m1\\.hinge").fill("0.5")
    tab.until(lambda: "m1.hinge" in tab.project().pose)
    tab.find("lock-m1.hinge").focus()
    tab.page.keyboard.press("Enter")
    tab.find("unlock-m1.hinge").wait_for()
    tab.until(lambda: "m1.hinge" in tab.project().settings.locked)  # it is on the disk
    assert tab.project().settings.locked["m1.hinge"] == pytest.approx(0.5, abs=0.02)
    assert not tab.page.locator("#joint-m1\\.hinge").count()
    tab.click("unlock-m1.hinge")
    tab.page.locator("#joint-m1\\.hinge").wait_for()

    tab.unfold("Gravity, integrator, seed, formulas")
    tab.click("set-analytic")
    tab.until(lambda: tab.project().settings.analytic)
    tab.click("run")
    tab.wait("window.modurob.run?.other")
    tab.wait("document.querySelector('[data-testid=run-state]').innerText.includes('differ by')")
    names = "window.modurob.run.main.panels[0].lines.map((line) => line.name)"
    assert tab.page.evaluate(names)[-1] == "m1.hinge (Lagrange)"
    tab.click("mode-understand")
    tab.click("part-lagrange")
    tab.find("lagrange").wait_for()


def test_a_walk_is_one_click_with_forces_support_and_loads(tab):
    body = examples.snake(4).with_parameters(max_torque=0.5)
    tab.show("snake", body, hinges="physical", duration=0.6)
    tab.move()
    tab.unfold("Ground")
    tab.fill("set-slope", "100")
    tab.page.get_by_text("one or two angles below 80 degrees").first.wait_for()
    tab.fill("set-slope", "2")
    tab.until(lambda: tab.project().settings.slope[0] > 0)
    tab.click("walk")
    tab.wait("window.modurob.run && !document.querySelector('[data-testid=run]').disabled")
    assert "Placed on the ground: raised by" in tab.text("run-state")
    tab.find("scrub").fill("900")
    tab.wait(f"{ARROWS}.visible && {ARROWS}.count > 0")
    assert tab.page.evaluate("window.modurob.stage.scenery.grid.quaternion.y") < 0  # it rises
    assert "N for a module's width" in tab.text("forces")
    tab.click("contact")
    tab.wait(f"!{ARROWS}.visible")
    assert "limit" in tab.text("scale")  # colors of the load, as there are limits
    assert tab.page.locator(".event[title*='overload']").count()
