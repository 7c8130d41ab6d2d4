"""What goes wrong in real life, in the browser: lost connections, typing errors, keys, haste."""

from modurob import examples
from modurob.studio import formulas

SIZES = [(600, 800), (800, 600), (1024, 700), (1366, 768), (1920, 1080)]
LINE = 20  # [px]: a line of text is higher than this
# Widths and heights that are seen of: a row of entries, the formula, the 3D view, the last button.
SEEN = """['.wide:has(.entries)', '[data-testid=formula]', '.stage', '[data-testid=light]']
.map((name) => {
const element = document.querySelector(name), r = element.getBoundingClientRect();
const right = Math.min(r.right, innerWidth) - Math.max(r.left, 0);
return [right, element.clientHeight, element.scrollHeight]; })"""

# A page that was just loaded anew because of a lost message does not do so again.
LOST_TWICE = """async () => {
sessionStorage.setItem("modurob-lost", Date.now());
let why = null;
try { window.modurob.plan.received.read('{"number": -1, "lists": {}}'); }
catch (error) { why = error.message; }
await new Promise((done) => setTimeout(done, 100));
return [why, window.same]; }"""

# Modules that are not drawn in their own color.
TINTED = """() => { const { meshes, cast } = window.modurob.stage.bodies, found = new Set();
const own = new window.modurob.stage.scene.background.constructor(), drawn = own.clone();
for (const { userData, instanceColor } of meshes) userData.colors.forEach((color, k) => {
  drawn.fromBufferAttribute(instanceColor, k);
  const far = [drawn.r - own.set(color).r, drawn.g - own.g, drawn.b - own.b];
  if (Math.max(...far.map(Math.abs)) > 0.01) found.add(cast.modules[userData.modules[k]].name);
});
return [...found]; }"""

WARNS = """() => { const event = new Event("beforeunload", { cancelable: true });
dispatchEvent(event);
return event.defaultPrevented; }"""


def test_a_tab_that_lost_its_connection_comes_back_to_where_it_was(tab):
    tab.show("snake", examples.snake(3))
    tab.page.evaluate("window.same = true; window.socket.io.engine.close()")
    tab.wait("!window.socket.connected")
    tab.wait("window.socket.connected")
    tab.cell(0, 3)
    tab.modules(4)
    tab.page.keyboard.press("Control+z")
    tab.modules(3)
    tab.click("mode-move")
    tab.fill("set-duration", 0.2)
    assert "done" in tab.run()  # its process is still there, too
    assert tab.page.evaluate("window.same")  # no message was lost, and nothing was loaded anew
    assert tab.page.evaluate(LOST_TWICE) == ["a message was lost: reload the page", True]

    # without a server "Saved" is not shown, and leaving is warned about only if work is lost
    tab.saved()
    assert not tab.page.evaluate(WARNS)
    shown = tab.page.evaluate(
        """() => { const popup = document.getElementById("popup");
        popup.ariaHidden = "false";
        const label = document.querySelector("[data-testid=saved]");
        const shown = [null, "::after"].map((part) => getComputedStyle(label, part))
          .map((style, k) => (k ? style.content : style.fontSize));
        popup.ariaHidden = "true";
        return shown; }"""
    )
    assert shown == ["0px", '"No connection"']
    tab.page.evaluate("document.querySelector('[data-testid=saved]').textContent = 'Not saved!'")
    assert tab.page.evaluate(WARNS)


def test_delete_removes_one_module_and_no_key_reaches_through_a_dialog(tab):
    tab.show("crab", examples.crab())
    tab.cell(-1, 2)  # m5, the end of a leg
    tab.find("remove-module").wait_for()
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")  # the cursor is on m3 now, m5 is still chosen
    tab.page.keyboard.press("Delete")
    tab.modules(5)
    assert "m5" in tab.page.evaluate("window.modurob.stage.bodies.cast.modules.map((m) => m.name)")
    assert tab.page.evaluate(TINTED) == ["m5"]  # still chosen
    tab.click("help")
    tab.page.get_by_text("Guide me through the crab").wait_for()
    tab.page.keyboard.press("Delete")
    tab.page.keyboard.press("Control+z")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Control+z")  # at once: nothing is lost after a dialog
    tab.modules(6)
    tab.wait("document.querySelector('[data-testid=redo]').ariaLabel === 'Redo: remove m3'")
    tab.wait("document.querySelector('[data-testid=undo]').disabled")  # that was the only step

    # a button that moves while it is pressed is pressed all the same
    tab.find("redo").hover()
    tab.page.mouse.down()
    tab.page.evaluate("document.querySelector('.bar').style.paddingLeft = '120px'")
    tab.page.mouse.up()
    tab.modules(5)


def test_a_base_that_does_not_fit_is_told_where_it_matters_and_nothing_breaks(tab):
    tab.show("crab", examples.crab())
    tab.click("mode-move")
    tab.fill("set-base", "xx")
    tab.wait("document.body.innerText.includes(\"'xx'\")")
    tab.page.get_by_text("All to zero").locator("visible=true").click()
    tab.click("mode-understand")
    tab.click("part-equations")
    assert "'xx'" in tab.problem()
    tab.click("mode-move")
    tab.fill("set-base", "fixed")
    tab.page.locator("#joint-m1\\.hinge").wait_for()


def test_another_formula_may_be_asked_for_while_one_is_computed(tab):
    tab.show("crab", examples.crab(), hinges="physical")
    tab.click("mode-understand")
    tab.click("part-equations")
    tab.find("formula-N").wait_for()
    # in one go, faster than the server can answer: the last one counts
    tab.page.evaluate(
        """() => { for (const matrix of ["C", "N", "M"])
        document.querySelector(`[data-testid=formula-${matrix}]`).click(); }"""
    )
    tab.wait(
        "document.querySelector('[data-testid=formula-state]').innerText.startsWith('M[1,1]:')"
    )
    assert [tab.find(f"formula-{x}").get_attribute("aria-pressed") for x in "MCN"] == [
        *("true", "false", "false")
    ]
    assert tab.page.locator(".q-notification").count() == 0

    # of a long one only the first terms are seen, until the others are unfolded
    terms = tab.page.locator("[data-testid=formula] math:visible")
    terms.first.wait_for()
    assert terms.count() == formulas.UNFOLDED
    more = tab.page.locator("[data-testid=formula] summary").inner_text()
    tab.page.get_by_text(more, exact=True).click()
    assert more == f"{terms.count() - formulas.UNFOLDED} more terms"
    assert terms.count() > formulas.UNFOLDED

    # formula and entries are seen in windows of any size
    usual = tab.page.viewport_size
    try:
        for width, height in SIZES:
            tab.page.set_viewport_size({"width": width, "height": height})
            tab.wait(f"innerWidth === {width} && document.querySelector('.stage-canvas').width > 0")
            seen = tab.page.evaluate(SEEN)
            entries, formula, *_ = seen
            assert min(right for right, _, _ in seen) > LINE, (width, seen)
            assert entries[1] == entries[2] > 3 * LINE, (width, seen)  # three rows
            assert formula[1] == formula[2] > LINE, (width, seen)
    finally:
        tab.page.set_viewport_size(usual)
