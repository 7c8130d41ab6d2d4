"""Everybody can use it: axe finds nothing serious, in light and dark; keys reach everything."""

import pytest

SERIOUS = ("serious", "critical")
MODES = ("build", "understand", "move", "see")


def findings(tab, axe):
    """What axe objects to, in short, when nothing fades in any more."""
    tab.wait("document.getAnimations().every((a) => a.playState !== 'running')")
    found = axe.run(tab.page).response["violations"]
    return [
        f"{v['id']}: {v['help']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for v in found
        if v["impact"] in SERIOUS
        for node in v["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(tabs, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = tabs(color_scheme=scheme).open()
    tab.find("guide").wait_for()
    assert findings(tab, axe) == []
    tab.open(example="crab")
    for mode in MODES if scheme == "light" else ("move", "see"):
        tab.click(f"mode-{mode}")
        tab.wait(f"document.querySelector('[data-testid=mode-{mode}][aria-selected=true]')")
        assert findings(tab, axe) == []
    tab.click("export")
    tab.find("export-urdf").wait_for()
    tab.page.wait_for_timeout(600)  # the dialog has come to rest
    assert findings(tab, axe) == []


def test_everything_fits_on_a_small_screen_and_the_theme_is_remembered(tab):
    tab.open(example="crab")
    for mode in MODES:
        tab.click(f"mode-{mode}")
        sizes = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        assert tab.page.evaluate(sizes) == [1280, 720]
    tab.click("light")
    tab.click("light")
    tab.wait("document.body.classList.contains('body--dark')")
    tab.page.reload()
    tab.ready()
    tab.wait("document.body.classList.contains('body--dark')")
    tab.page.evaluate("localStorage.clear()")


def test_the_keyboard_alone_builds_and_runs(tab):
    tab.open()
    tab.find("blank").focus()
    tab.page.keyboard.press("Enter")
    tab.page.locator(".plan").focus()
    tab.page.keyboard.press("Enter")
    tab.modules(1)
    tab.page.keyboard.press("ArrowUp")
    tab.page.keyboard.press("Enter")
    tab.modules(2)
    tab.page.keyboard.press("r")  # the module under the cursor is turned
    tab.wait("window.modurob.plan.plan.cells.find((c) => c.name === 'm1').quarter !== 0")
    tab.page.keyboard.press("b")
    tab.wait("window.modurob.plan.plan.cells.find((c) => c.name === 'm1').base")
    tab.page.keyboard.press("Alt+3")
    tab.find("run").wait_for()
    tab.find("run").focus()
    tab.page.keyboard.press("Enter")
    tab.wait("document.querySelector('[data-testid=run-state]').innerText.includes('done')")
