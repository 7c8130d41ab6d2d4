"""Any screen: no control is cut off or covered, from phones to large windows and zoomed ones."""

from modurob import examples
from modurob.studio import runs
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS
from modurob.studio.studio import Studio

# [px] as the page sees it: a phone, a tablet, 1280 x 720 at 150 % and at 200 %, a large screen
SIZES = [(390, 844), (1024, 768), (853, 480), (640, 360), (1920, 1080)]
SMALL = [SIZES[0], SIZES[3]]  # most of what can go wrong; the others are looked at in one mode
MODES = ("build", "understand", "move", "see", "live")
# Controls and texts that are cut off by something that does not scroll, or covered by another.
FAULTS = """() => {
  const found = [], root = document.querySelector('.q-dialog') ?? document.querySelector('.frame');
  const name = (e) => e.dataset.testid || e.ariaLabel || e.innerText.slice(0, 40) || e.className;
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest('.sr-only') &&
    e.getBoundingClientRect().width > 0;
  const texts = '.note, .title, .saved, h2, h3, .time, [role=separator]';
  const controls = 'button, select, input:not([type=file])';
  const edges = (e) => { const r = e.getBoundingClientRect();
    return { x: [r.left, r.right], y: [r.top, r.bottom] }; };
  for (const e of [...root.querySelectorAll(`${controls}, ${texts}`)].filter(seen)) {
    const own = edges(e);
    let hidden = false;
    for (const axis of ['x', 'y']) {
      let scrolls = false, out = false;
      for (let p = e.parentElement; p; p = p.parentElement) {
        const how = getComputedStyle(p)[axis === 'x' ? 'overflowX' : 'overflowY'];
        if (how === 'visible') continue;
        const [low, high] = edges(p)[axis];
        const middle = (own[axis][0] + own[axis][1]) / 2;
        hidden ||= middle < low || middle > high;
        scrolls ||= how !== 'hidden' && how !== 'clip';
        out ||= !scrolls && (own[axis][0] < low - 1 || own[axis][1] > high + 1);
      }
      const end = axis === 'x' ? innerWidth : innerHeight;
      out ||= !scrolls && (own[axis][0] < -1 || own[axis][1] > end + 1);
      if (out) found.push(`cut off along ${axis}: ${name(e)}`);
    }
    if (e.matches('button, .title, .note') && e.scrollWidth > e.clientWidth + 1)
      found.push(`longer than its place: ${name(e)}`);
    if (hidden || !e.matches(controls)) continue;
    const at = document.elementFromPoint((own.x[0] + own.x[1]) / 2, (own.y[0] + own.y[1]) / 2);
    if (at && !e.contains(at) && !at.contains(e)) found.push(`${name(e)} is below ${name(at)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways');
  return found;
}"""
# Of a dialog that opens: its size at the end.
OPENED = """document.getAnimations()
.forEach((a) => a.effect.getTiming().iterations < 9 && a.finish())"""


def faults(tab, sizes):
    """Of the page as it is, at every size, with the size before each."""
    found = []
    for width, height in sizes:
        tab.page.set_viewport_size({"width": width, "height": height})
        found += [f"{width} x {height}: {fault}" for fault in tab.page.evaluate(FAULTS)]
    return found


def test_nothing_is_cut_off_or_covered_on_any_screen(tab):
    usual = tab.page.viewport_size
    try:
        tab.open()
        tab.find("guide").wait_for()
        assert faults(tab, SMALL) == []
        settings = NEW_SETTINGS.edited(duration=0.1)
        name = Studio(Folder(tab.server.folder)).free_name("screens")
        folder = Folder(tab.server.folder).runs(name)
        scenario = runs.scenario_of(examples.crab(), settings, {})
        record = runs.perform(runs.RunRequest(scenario, settings, folder, 1), lambda done: None)
        tab.show("screens", examples.crab(), [record])
        for mode in MODES:
            tab.click(f"mode-{mode}")
            tab.wait(f"document.querySelector('[data-testid=mode-{mode}][aria-selected=true]')")
            sizes = SIZES if mode == "see" else SMALL
            assert (mode, faults(tab, sizes)) == (mode, [])
        for dialog in ("open", "export", "help", "project"):
            tab.click(dialog)
            tab.page.locator(".q-dialog .q-card").wait_for()
            tab.page.evaluate(OPENED)
            assert (dialog, faults(tab, SMALL)) == (dialog, [])
            tab.page.keyboard.press("Escape")
            tab.page.locator(".q-dialog").wait_for(state="detached")
    finally:
        tab.page.set_viewport_size(usual)


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
