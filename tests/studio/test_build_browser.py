"""Build, in the browser: clicks make organisms, and mistakes are explained in place."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from benchmarks import browser as browsers
from modurob import catalog, examples, load
from modurob.studio.folder import Folder
from modurob.studio.guard import TRIES

CRAB = [(0, 1, None), (1, 1, None), (1, 2, "side 2"), (-1, 1, None), (-1, 2, "side 5")]
TURNS = 14  # with the six modules of the crab: twenty steps


def shown_aim(tab):
    rows = tab.page.eval_on_selector_all(
        "[data-testid=aim] tr", "rows => rows.map(r => [...r.cells].map(c => c.innerText))"
    )
    return [[0 if text == "·" else int(text) for text in row[1:-1]] for row in rows[1:-1]]


def steps(tab, which):
    """How many steps the project's file can take back or do again."""
    return len(json.loads(Folder(tab.server.folder).file(tab.name).read_bytes())[which])


def last_step(tab, which, label):
    """Until a button says which step it takes back or does again."""
    tab.wait(f"document.querySelector('[data-testid={which}]').ariaLabel === '{label}'")


def test_the_crab_by_clicks_has_the_right_matrix_and_twenty_steps_go_back_and_forth(tab):
    tab.blank()
    tab.click("kind-scout")
    tab.cell(0, 0)
    tab.modules(1)
    for k, (x, y, side) in enumerate(CRAB):
        if side:
            tab.choose("dock-with", side)
        tab.cell(x, y - 0.3 if side or x == 0 else y)  # near the edge to the module it docks to
        tab.modules(k + 2)
        if side:
            tab.choose("dock-with", "usual side")
    tab.click("mode-understand")
    tab.find("aim").wait_for()
    assert shown_aim(tab) == examples.crab().aim().matrix.tolist()
    tab.click("mode-build")
    tab.saved()
    assert tab.project().organism == examples.crab()

    # fourteen steps more: the foot m5, where the last click was, is turned
    tab.page.locator(".plan").focus()
    for _ in range(TURNS):
        tab.page.keyboard.press("r")
    last_step(tab, "undo", "Undo: turn m5")
    tab.until(lambda: steps(tab, "past") == 6 + TURNS)
    last = tab.project().organism
    assert last != examples.crab()

    # all twenty are taken back, by keys and a button
    for _ in range(TURNS):
        tab.page.keyboard.press("Control+z")
    last_step(tab, "undo", "Undo: dock m5")
    tab.saved()
    assert tab.project().organism == examples.crab()
    for _ in range(5):
        tab.page.keyboard.press("Control+z")
    tab.modules(1)
    tab.click("undo")
    tab.modules(0)
    tab.wait("document.querySelector('[data-testid=undo]').disabled")

    # and done again
    for _ in range(6 + TURNS - 1):
        tab.page.keyboard.press("Control+y")
    tab.until(lambda: steps(tab, "future") == 1)
    tab.click("redo")
    tab.wait("document.querySelector('[data-testid=redo]').disabled")
    tab.modules(6)
    tab.saved()
    assert tab.project().organism == last


def test_r_turns_the_new_piece_over_a_free_cell_and_else_the_chosen_module(tab):
    tab.blank()
    tab.click("kind-scout")
    tab.cell(0, 0)
    tab.modules(1)
    tab.cell(0, 1)
    tab.modules(2)
    tab.page.mouse.move(*tab.at(0, 2))
    tab.wait("window.modurob.plan.ghost")
    side = "window.modurob.plan.ghost?.site.child_port"
    before = tab.page.evaluate(side)
    tab.page.keyboard.press("r")
    tab.wait(f"{side} && {side} !== {before!r}")  # it is shown again, with another side
    last_step(tab, "undo", "Undo: dock m1")  # the body is as it was
    tab.page.mouse.move(*tab.at(0, 1))
    tab.wait("!window.modurob.plan.ghost")
    tab.page.keyboard.press("r")
    last_step(tab, "undo", "Undo: turn m1")


def test_docks_that_cannot_be_are_explained_where_they_were_wanted(tab):
    tab.show("crab", examples.crab())
    bubble = tab.page.locator(".plan .bubble")
    tab.cell(0, 2)  # between the two feet
    tab.modules(7)
    tab.cell(3, 0)
    bubble.wait_for()
    assert "choose a cell beside a module" in bubble.inner_text()
    tab.click("kind-superbot")
    tab.wait("window.modurob.plan.plan.sites.every((s) => s.why)")
    tab.cell(0.0, -1)
    tab.wait("document.querySelector('.plan .bubble')?.innerText.includes('does not mate')")
    tab.cell(0, 0, button="right")  # the base
    tab.wait("document.querySelector('.plan .bubble')?.innerText.includes('is the base')")
    tab.modules(7)
    tab.saved()
    assert len(tab.project().organism) == 7


def test_a_side_is_chosen_by_clicking_near_it_and_modules_move_and_go(tab):
    tab.blank()
    tab.click("kind-backbone")
    tab.cell(0, 0)
    tab.modules(1)
    tab.cell(0.4, 0)  # on the module, near its side 2
    tab.modules(2)
    tab.cell(0, 0.4)
    tab.modules(3)
    tab.page.mouse.move(*tab.at(0, 1))  # drag m2 from above the base to beside m1
    tab.page.mouse.down()
    tab.page.mouse.move(*tab.at(1, 0.5), steps=4)
    tab.page.mouse.move(*tab.at(2, 0), steps=4)
    tab.page.mouse.up()
    tab.wait("window.modurob.plan.plan.cells.find((c) => c.name === 'm2').x === 2")
    tab.cell(1, 0)
    tab.find("remove-module").wait_for()
    tab.page.keyboard.press("Delete")  # takes m2 along, which hangs on it
    tab.modules(1)
    tab.page.keyboard.press("Control+z")
    tab.modules(3)
    tab.cell(2, 0, button="right")
    tab.modules(2)


# The port nearest to the eye is seen for sure; where it is, in pixels, when the eye rests.
NEAREST_PORT = """() => { const S = window.modurob.stage, V = S.camera.position.constructor;
const M = S.camera.matrixWorld.clone(), p = new V(); let best = null;
S.state.ports.forEach((port, k) => { S.ports.getMatrixAt(k, M); p.setFromMatrixPosition(M);
  const d = p.distanceTo(S.camera.position);
  if (!best || d < best.d) best = { d, at: p.clone().project(S.camera) }; });
const r = S.canvas.getBoundingClientRect();
return [r.x + (best.at.x + 1) * r.width / 2, r.y + (1 - best.at.y) * r.height / 2]; }"""


def nearest_port(tab):
    tab.rest()
    return tab.page.evaluate(NEAREST_PORT)


def test_free_ports_of_the_3d_view_dock_modules_that_know_no_grid(tab):
    tab.blank()
    tab.click("kind-superbot")
    tab.page.mouse.click(900, 400)  # an empty stage: the first module
    tab.modules(1)
    port = nearest_port(tab)
    tab.page.mouse.move(*port)
    tab.wait("window.modurob.stage.ghost.cast")  # what a click would dock
    tab.page.mouse.click(*port)
    tab.modules(2)
    assert "no cubes on a grid" in tab.page.locator(".plan-empty").inner_text()


def test_two_tabs_do_not_disturb_each_other_and_two_on_one_project_see_the_same(tabs):
    one, two = tabs().blank(), tabs().blank()
    one.front()
    one.cell(0, 0)
    one.modules(1)
    assert two.page.evaluate("window.modurob.stage.bodies.cast") is None
    assert one.name != two.name
    two.front()
    two.open(one.name)
    two.modules(1)
    two.page.locator(".plan").focus()
    two.page.keyboard.press("ArrowRight")
    two.page.keyboard.press("Enter")
    two.modules(2)
    one.front()
    one.modules(2)


def status(url, headers):
    """Of the answer to a request without cookies."""
    try:
        with urlopen(Request(url, headers=headers), timeout=60) as answer:
            return answer.status
    except HTTPError as error:
        return error.code


def refused(tab):
    """Whether the server turns away who has no token."""
    return tab.page.request.get(f"{tab.server.url}/api/health").status == 401


def test_a_files_edits_survive_kill_9_and_a_token_keeps_others_out(tabs, tmp_path, capfd):
    """Two servers of their own: a file on the command line, and the same folder again."""
    file = tmp_path / "snake.json"
    examples.snake(3).save(file)
    first = browsers.started(tmp_path / "projects", str(file))
    try:
        tab = tabs(first).go(first.opened)
        tab.modules(3)
        tab.cell(0, 3)
        tab.modules(4)
        assert len(load(file)) == 3  # not before it is saved
        tab.page.keyboard.press("Alt+3")
        tab.find("set-duration").fill("3")
        tab.page.keyboard.press("Control+s")  # in the field: what was typed is saved, too
        tab.wait("document.querySelector('.q-notification')?.innerText.includes('snake.json')")
        assert load(file) == examples.snake(4)
        assert tab.project().settings.duration == 3
        tab.page.keyboard.press("Alt+1")
        tab.cell(0, 4)
        tab.modules(5)
        tab.reads("saved", "Saved, not yet in snake.json")  # the project is, that waits for Ctrl+S
        name = tab.name
        assert not refused(tab)
        tab.page.goto("about:blank")
    finally:
        first.process.kill()  # SIGKILL: no farewell
        first.process.wait(10)
    with browsers.serving(tmp_path / "projects", "--token", "open sesame") as second:
        tab.server = second
        assert refused(tab)
        tab.go(second.opened)  # the address that was printed has the token
        assert "token=" in second.opened
        assert "token" not in tab.page.url  # and the browser leaves it at once
        tab.open(name)
        tab.modules(5)
        tab.click("undo")
        tab.modules(4)
        tab.click("undo")  # the duration
        tab.click("undo")
        tab.modules(3)
        guesses = [
            status(f"{second.url}/api/health?token=barley{k}", {"X-Forwarded-For": f"10.0.0.{k}"})
            for k in range(TRIES + 1)  # from one address, whatever they say
        ]
        assert guesses == [401] * TRIES + [429]
        tab.page.goto("about:blank")  # before the server ends
    written = "".join(capfd.readouterr())
    assert "sesame" not in written  # no token is in the logs
    assert "barley" not in written


def test_a_module_of_the_users_own_comes_with_the_project(tab, tmp_path):
    kind = catalog["backbone"].with_parameters(mass=3.0)
    own = kind.model_copy(update={"name": "heavy", "title": "<img src=x onerror=alert(1)>"})
    (tmp_path / "heavy.json").write_text(own.model_dump_json())
    tab.blank()
    tab.click("own-module")
    tab.page.locator(".q-dialog input[type=file]").set_input_files(tmp_path / "heavy.json")
    tab.find("kind-heavy").wait_for()
    tab.cell(0, 0)
    tab.modules(1)
    tab.cell(0, 0)
    tab.page.get_by_text("<img src=x").first.wait_for()  # as text: nothing was run
    tab.saved()
    assert tab.project().organism.kind("m0").mass == 3.0


def test_the_guide_follows_what_was_clicked_and_leads_to_a_crab_that_moves(tab):
    tab.open()
    tab.click("guide")
    for k, (x, y) in enumerate([(0, 0), (0, 1), (1, 1), (1, 2), (-1, 1), (-1, 2)]):
        tab.wait(f"window.modurob.plan.hint?.x === {x} && window.modurob.plan.hint?.y === {y}")
        if k == 2:  # one module more, which no crab has, and a leg at another side than it has
            tab.cell(0, -1)
            tab.modules(3)
            tab.choose("dock-with", "side 3")
            tab.cell(0.4, 1)  # on m1, near its side 2
            tab.modules(4)
            tab.page.get_by_text("the crab has side 5 of a Scout there").wait_for()
            tab.page.keyboard.press("Control+z")
            tab.wait("window.modurob.plan.hint?.click")
        tab.cell(x, y)
    tab.modules(7)
    assert "fixed base" in tab.text("tour-play")
    tab.click("tour-play")
    tab.find("tour-play").wait_for(state="hidden")
    tab.wait("window.modurob.clock.playing && window.modurob.clock.t > 0.3")
