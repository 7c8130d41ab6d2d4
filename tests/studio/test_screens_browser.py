"""Any screen: no control is cut off or covered, from phones to large windows and zoomed ones."""

from modurob import examples
from modurob.studio import runs
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS
from modurob.studio.session import WALKING
from modurob.studio.studio import Studio

NAME = "screens of a project with a long name"
SMALL = [(390, 844), (640, 360)]  # most of what can go wrong
MODES = ("build", "understand", "move", "see", "live")
PARTS = ("joints", "dh", "equations", "lagrange")
# Of a dialog or a part that opens: its size at the end.
OPENED = """document.getAnimations()
.forEach((a) => a.effect.getTiming().iterations < 9 && a.finish())"""
# Of a plot with no room for its legend: pixels from where that is cut off down to its letters.
LEGEND = """() => { const chart = window.modurob.plots.charts.get('q');
chart.resize({ width: 200 });
const texts = chart.getZr().storage.getDisplayList(true).filter((part) => part.type === 'tspan');
return texts.flatMap((part) => {
  let owner = part;
  while (owner && !owner.getClipPath?.()) owner = owner.parent ?? owner.__hostTarget;
  if (!owner) return [];
  const edge = owner.getClipPath().getBoundingRect().y + owner.getComputedTransform()[5];
  const text = part.getBoundingRect(), size = parseFloat(/[\\d.]+px/.exec(part.style.font)[0]);
  return [text.y + text.height / 2 + part.transform[5] - size / 2 - edge];
}); }"""
# Pixels from the upper end of a plot, where its legend is, down to the line of the player.
ABOVE = """document.querySelector('.plot-cursor').getBoundingClientRect().top
- document.querySelector('.plot-chart').getBoundingClientRect().top"""
WAY = "document.querySelector('.way').innerText.includes('moved by')"


def kept_runs(tab, body, name, count):
    """Runs of a body that falls onto the ground, with their files."""
    settings = NEW_SETTINGS.edited(**WALKING, duration=0.2)
    folder = Folder(tab.server.folder).runs(name)
    scenario = runs.scenario_of(body, settings, {})
    return [
        runs.perform(runs.RunRequest(scenario, settings, folder, k + 1), lambda done: None)
        for k in range(count)
    ]


def test_nothing_is_cut_off_or_covered_on_any_screen(tab):
    tab.open()
    tab.find("guide").wait_for()
    assert tab.faults(SMALL) == []
    tab.click("guide")
    tab.find("tour-text").wait_for()
    assert tab.faults() == []
    assert tab.faults([(768, 1024)]) == []  # the bar has one row here, and hardly the room for it
    body = examples.crab()
    name = Studio(Folder(tab.server.folder)).free_name(NAME)
    tab.show(NAME, body, kept_runs(tab, body, name, 2))
    for mode in MODES:
        tab.click(f"mode-{mode}")
        tab.wait(f"document.querySelector('[data-testid=mode-{mode}][aria-selected=true]')")
        assert (mode, tab.faults()) == (mode, [])
        for part in PARTS if mode == "understand" else ():
            tab.click(f"part-{part}")
            tab.wait(f"document.querySelector('[data-testid=part-{part}][aria-selected=true]')")
            assert (part, tab.faults(SMALL)) == (part, [])
    for dialog in ("open", "export", "help", "project"):
        tab.click(dialog)
        tab.page.locator(".q-dialog .q-card").wait_for()
        tab.page.evaluate(OPENED)
        assert (dialog, tab.faults(SMALL)) == (dialog, [])
        tab.page.keyboard.press("Escape")
        tab.page.locator(".q-dialog").wait_for(state="detached")


def test_nothing_is_cut_off_or_covered_while_a_run_is_played_and_settings_are_open(tab):
    body = examples.crab()
    name = Studio(Folder(tab.server.folder)).free_name(NAME)
    tab.show(NAME, body, kept_runs(tab, body, name, 2))
    tab.move()
    tab.page.locator("[data-testid=run-2]:visible").click()
    tab.find("forces").wait_for()
    tab.find("back-to-pose").wait_for()
    tab.find("scrub").fill("900")
    tab.wait(WAY)  # beside the button
    assert tab.faults() == []
    for head in tab.page.locator(".part > .q-expansion-item__container > .q-item:visible").all():
        head.click()
    tab.page.evaluate(OPENED)
    assert tab.faults(SMALL) == []
    tab.click("mode-see")
    tab.page.locator("[data-plot=q]").wait_for()
    tab.page.locator("[data-testid=compare-1]:visible").click()
    tab.wait("window.modurob.run?.other")
    tab.find("comparison").wait_for()
    assert tab.faults() == []
    assert tab.page.evaluate(ABOVE) > 20  # below the legend
    letters = tab.page.evaluate(LEGEND)
    assert letters
    assert min(letters) >= 0


# The color scheme of the page, and how many rules there are that make browsers style all rows anew.
STYLED_ANEW = """() => [document.getElementById("nicegui-color-scheme").content,
[...document.querySelectorAll("style")].flatMap(({ sheet }) => [...sheet.cssRules])
.filter((rule) => rule.selectorText?.includes("#esm-fallback ~")).length]"""


def test_the_panel_is_resized_and_hidden_by_mouse_and_keys_and_stays_so_like_the_theme(tab):
    tab.show("snake", examples.snake(2))
    width = "document.querySelector('.side').getBoundingClientRect().width"
    x, y, *_ = tab.find("divider").bounding_box().values()
    tab.page.mouse.move(x + 2, y + 40)
    tab.page.mouse.down()
    tab.page.mouse.move(x + 152, y + 40)
    tab.page.mouse.up()
    tab.wait(f"Math.abs({width} - {x + 150}) < 8")
    tab.find("divider").press("ArrowLeft")
    tab.wait(f"{width} < {x + 120}")
    kept = tab.page.evaluate(width)
    dark = "document.body.classList.contains('body--dark')"
    assert not tab.page.evaluate(dark)
    tab.click("light")
    tab.click("light")
    tab.wait(dark)
    assert tab.page.evaluate(STYLED_ANEW) == ["dark", 0]
    tab.open(tab.name).modules(2)
    tab.wait(f"Math.abs({width} - {kept}) < 2 && {dark}")  # after a reload
    tab.click("fold")
    tab.wait(f"{width} < 2 && document.querySelector('.stage-canvas').clientWidth > 1200")
    tab.click("mode-move")  # a mode brings the panel back
    tab.find("run").wait_for()
    assert tab.page.evaluate(width) > kept - 2
    tab.find("divider").dblclick(position={"x": 2, "y": 40})
    tab.wait(f"Math.abs({width} - 400) < 2")
    tab.page.evaluate("localStorage.clear()")
