"""Experiments in the browser: figures of the papers by one click, and fields that are typed."""

from modurob import examples


def test_a_figure_of_the_papers_is_one_click(tab):
    """The figure and its verdict appear in a dialog; another one becomes a project.

    ``test_panels.py`` opens the dialogs of all figures, ``tests/scenario`` and ``tests/papers``
    compute, judge and draw each of them.
    """
    tab.open()
    tab.click("preset-gutenkunst2012-fig6.6")
    tab.find("preset-figure").wait_for()
    assert "✓" in tab.text("preset-state")
    assert "✗" not in tab.text("preset-state")
    tab.wait("document.querySelector('[data-testid=preset-figure]').naturalWidth > 1000")
    tab.click("preset-close")
    tab.page.locator(".q-dialog").first.wait_for(state="detached")
    tab.click("preset-giusti2015-fig7")
    tab.click("preset-open")
    tab.modules(5)
    settings = tab.project().settings
    assert settings.gains == {"kp": 250.0, "kd": 30.0}
    assert settings.controller == "PdGravity"


def test_typed_fields_are_kept_and_mistakes_are_told_in_one_line(tab):
    tab.show("crab", examples.crab(), duration=0.3, motion="step")
    tab.move()
    tab.unfold("Target, points, gait")
    tab.fill("set-target", "20, -10, 5")
    tab.unfold("Gains, poles, limits")
    tab.fill("set-gains", "k0=30,20,20 k1=10")
    tab.unfold("Payload and pushes")
    tab.fill("set-payload", "m3 mass=0.1")
    tab.fill("set-pushes", "m3 force=0,0,2 begin=0.1 length=0.1")
    tab.until(lambda: tab.project().settings.pushes)
    assert "done" in tab.run()
    (record,) = tab.project().runs
    assert record.settings.gains == {"k0": (30.0, 20.0, 20.0), "k1": 10.0}
    assert record.settings.payload.mass == 0.1
    assert record.settings.pushes[0].force == (0.0, 0.0, 2.0)

    tab.fill("set-gains", "k0=")  # cannot be read: Run does not go on with the old value
    assert "takes numbers with commas" in tab.problem()
    tab.click("run")
    tab.fill("set-gains", "k0=30,20 k1=10")  # can be read, but is wrong for three joints
    tab.until(lambda: tab.project().settings.gains.get("k0") == (30.0, 20.0))
    tab.click("run")
    tab.reads("run-state", "it did not run")
    assert len(tab.project().runs) == 1
