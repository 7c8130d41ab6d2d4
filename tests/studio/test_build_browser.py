"""Build, in the browser: clicks make organisms, and mistakes are explained in place."""

from benchmarks import browser as browsers
from modurob import catalog, examples
from modurob.studio.folder import Folder

CRAB = [(0, 1, None), (1, 1, None), (1, 2, "side 2"), (-1, 1, None), (-1, 2, "side 5")]


def saved(server, name):
    """The project as it is on disk."""
    return Folder(server.folder).read(name)


def wait_saved(tab):
    tab.wait("document.querySelector('[data-testid=saved]').innerText === 'Saved'")


def shown_aim(tab):
    rows = tab.page.eval_on_selector_all(
        "[data-testid=aim] tr", "rows => rows.map(r => [...r.cells].map(c => c.innerText))"
    )
    return [[0 if text == "·" else int(text) for text in row[1:-1]] for row in rows[1:-1]]


def test_the_crab_by_clicks_has_the_right_matrix(tab, server):
    tab.open()
    tab.click("blank")
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
    wait_saved(tab)
    assert saved(server, tab.text("project")).organism == examples.crab()


def test_twenty_steps_are_undone_and_redone_by_keys_and_buttons(tab):
    tab.open()
    tab.click("blank")
    tab.cell(0, 0)
    tab.modules(1)
    tab.page.locator(".plan").focus()
    for count in range(2, 21):
        tab.page.keyboard.press("ArrowUp")
        tab.page.keyboard.press("Enter")
        tab.modules(count)
    for _ in range(19):
        tab.page.keyboard.press("Control+z")
    tab.modules(1)
    tab.click("undo")
    tab.modules(0)
    tab.wait("document.querySelector('[data-testid=undo]').disabled")
    for _ in range(19):
        tab.page.keyboard.press("Control+y")
    tab.modules(19)
    tab.click("redo")
    tab.modules(20)
    tab.wait("document.querySelector('[data-testid=redo]').disabled")


def test_docks_that_cannot_be_are_explained_where_they_were_wanted(tab, server):
    tab.open(example="crab")
    name = tab.text("project")
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
    wait_saved(tab)
    assert len(saved(server, name).organism) == 7


def test_a_side_is_chosen_by_clicking_near_it_and_modules_move_and_go(tab):
    tab.open()
    tab.click("blank")
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


def test_free_ports_of_the_3d_view_dock_modules_that_know_no_grid(tab):
    tab.open()
    tab.click("blank")
    tab.click("kind-superbot")
    tab.page.mouse.click(900, 400)  # an empty stage: the first module
    tab.modules(1)
    tab.page.wait_for_timeout(400)  # the eye flies to it
    port = tab.page.evaluate(
        """() => { const S = window.modurob.stage, V = S.camera.position.constructor;
        // the port nearest to the eye is seen for sure
        const M = S.camera.matrixWorld.clone(); let best = null;
        S.state.ports.forEach((p, k) => { S.ports.getMatrixAt(k, M);
          const d = new V().setFromMatrixPosition(M).distanceTo(S.camera.position);
          if (!best || d < best.d) best = { d, module: p.module, port: p.port }; });
        return best; }"""
    )
    tab.page.mouse.move(*tab.port(port["module"], port["port"]))
    tab.wait("window.modurob.stage.ghost.cast")  # what a click would dock
    tab.page.mouse.click(*tab.port(port["module"], port["port"]))
    tab.modules(2)
    assert "no cubes on a grid" in tab.page.locator(".plan-empty").inner_text()


def test_two_tabs_do_not_disturb_each_other_and_two_on_one_project_see_the_same(tabs):
    one, two = tabs().open(), tabs().open()
    for tab in (one, two):
        tab.click("blank")
    one.cell(0, 0)
    one.modules(1)
    assert two.page.evaluate("window.modurob.stage.bodies.cast") is None
    assert one.text("project") != two.text("project")
    two.open(one.text("project"))
    two.modules(1)
    two.page.locator(".plan").focus()
    two.page.keyboard.press("ArrowRight")
    two.page.keyboard.press("Enter")
    one.modules(2)


def test_nothing_is_lost_when_the_server_is_killed(tabs, tmp_path):
    first = browsers.started(tmp_path)
    tab = tabs(first).open(example="snake")
    name = tab.text("project")
    tab.cell(0, 6)
    tab.modules(7)
    tab.page.keyboard.press("Control+s")
    tab.wait("document.querySelector('.q-notification')?.innerText.includes('Saved')")
    tab.cell(0, 7)
    tab.modules(8)
    wait_saved(tab)
    tab.close()
    first.process.kill()  # SIGKILL: no farewell
    first.process.wait(10)
    second = browsers.started(tmp_path)
    try:
        again = tabs(second).open(name)
        again.modules(8)
        again.click("undo")
        again.modules(7)
        again.click("undo")
        again.modules(6)
        again.close()
    finally:
        browsers.stopped(second)


def test_a_module_of_the_users_own_comes_with_the_project(tab, tmp_path, server):
    kind = catalog["backbone"].with_parameters(mass=3.0)
    own = kind.model_copy(update={"name": "heavy", "title": "<img src=x onerror=alert(1)>"})
    (tmp_path / "heavy.json").write_text(own.model_dump_json())
    tab.open()
    tab.click("blank")
    tab.click("own-module")
    tab.page.locator("input[type=file]").set_input_files(tmp_path / "heavy.json")
    tab.find("kind-heavy").wait_for()
    tab.cell(0, 0)
    tab.modules(1)
    tab.cell(0, 0)
    tab.page.get_by_text("<img src=x").wait_for()  # as text: nothing was run
    wait_saved(tab)
    assert saved(server, tab.text("project")).organism.kind("m0").mass == 3.0


def test_a_file_on_the_command_line_is_opened_and_saved_to(tabs, tmp_path):
    from modurob import load

    file = tmp_path / "snake.json"
    examples.snake(3).save(file)
    with browsers.serving(tmp_path / "p", str(file)) as server:
        tab = tabs(server)
        tab.page.goto(server.opened)
        tab.ready()
        tab.modules(3)
        tab.cell(0, 3)
        tab.modules(4)
        assert len(load(file)) == 3  # not before it is saved
        tab.click("save")
        tab.wait("document.querySelector('.q-notification')?.innerText.includes('snake.json')")
        assert load(file) == examples.snake(4)
        tab.close()


def test_the_guide_leads_to_a_crab_that_walks(tab):
    tab.open()
    tab.click("guide")
    for x, y in [(0, 0), (0, 1), (1, 1), (1, 2), (-1, 1), (-1, 2)]:
        tab.wait(f"window.modurob.plan.hint?.x === {x} && window.modurob.plan.hint?.y === {y}")
        tab.cell(x, y)
    tab.modules(6)
    tab.click("tour-walk")
    tab.wait("window.modurob.clock.playing && window.modurob.clock.t > 0.3")
