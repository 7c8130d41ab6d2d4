"""Everybody can use it: axe finds nothing serious, in light and dark; keys reach everything."""

import pytest

SERIOUS = ("serious", "critical")
MODES = ("build", "understand", "move", "live", "see")
WISH = {"resultTypes": ["violations"], "preload": False}  # no style sheets of others to load
# The page is the same in the other scheme but for its colors: only rules about them are run again.
COLORS = {**WISH, "runOnly": ["color-contrast", "link-in-text-block"]}
SIZES = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"


@pytest.fixture
def axe(tab):
    """Looks at the page in light and in dark; returns what is serious, in short."""
    schemes = ["dark", "light"]
    library = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def look(scheme, wish):
        tab.page.emulate_media(color_scheme=scheme)
        dark = str(scheme == "dark").lower()
        tab.wait(f"document.body.classList.contains('body--dark') === {dark}")
        tab.page.evaluate("document.getAnimations().forEach((a) => a.finish())")  # no half tones
        if not tab.page.evaluate("Boolean(window.axe)"):
            tab.page.evaluate(library.axe_script)
        found = tab.page.evaluate("(wish) => axe.run(wish)", wish)
        return [
            f"{scheme}: {v['id']}: {v['help']}: {node['html'][:160]} {node['failureSummary'][:300]}"
            for v in found["violations"]
            if v["impact"] in SERIOUS
            for node in v["nodes"]
        ]

    def both():
        schemes.reverse()  # the one that is there first
        return [*look(schemes[0], WISH), *look(schemes[1], COLORS)]

    yield both
    tab.page.emulate_media(color_scheme="light")


def test_axe_finds_nothing_serious_in_light_and_dark_and_everything_fits(tab, axe):
    """From the start page by an example of the gallery through all modes to a dialog."""
    tab.open()
    tab.find("guide").wait_for()
    assert axe() == []
    tab.click("example-crab")
    tab.page.wait_for_url("**/project/crab*")
    tab.wait("window.modurob?.stage?.bodies.cast")
    tab.modules(6)
    for mode in MODES:
        tab.click(f"mode-{mode}")
        tab.wait(f"document.querySelector('[data-testid=mode-{mode}][aria-selected=true]')")
        assert axe() == []
        assert tab.page.evaluate(SIZES) == [1280, 720]
        if mode == "build":
            tab.click("view-tree")
            tab.find("row-m3").click()
            tab.page.locator(".tree-row.port").first.wait_for()
            assert axe() == []
    tab.click("export")
    tab.find("export-urdf").wait_for()
    assert axe() == []


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
