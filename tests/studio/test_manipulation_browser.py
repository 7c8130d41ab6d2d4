"""Direct manipulation, in the browser: drag bodies, turn joints, carry modules to ports."""

import numpy as np

from modurob import examples
from modurob.studio import subtrees

GRIP = 1e-5  # between a grip and the pointer [m]: poses are sent in micrometers
TURN = 0.05  # of a joint turned by its ring [rad]: the pointer moves by whole pixels

# Pixels of a place of the world.
PIXELS = """([x, y, z]) => { const S = window.modurob.stage, r = S.canvas.getBoundingClientRect();
S.camera.updateMatrixWorld();
const p = S.camera.position.clone().set(x, y, z).project(S.camera);
return [r.x + (p.x + 1) * r.width / 2, r.y + (1 - p.y) * r.height / 2]; }"""
PLACE = """(name) => { const { bodies } = window.modurob.stage;
const body = bodies.cast.modules.find((m) => m.name === name).body;
return bodies.frames[body].elements.slice(12, 15); }"""
# The grip where it is now, and where the pointer wants it.
PULLED = """(() => { const S = window.modurob.stage, { drag } = S.hands;
return [drag.point.clone().applyMatrix4(S.bodies.frames[drag.body]), drag.target]
  .map((p) => p.toArray()); })()"""
# A place of the ring of the chosen module's joint, at an angle.
ON_RING = """(angle) => { const [ring] = window.modurob.stage.hands.rings.children;
const p = ring.position.clone().set(Math.cos(angle), Math.sin(angle), 0);
return ring.localToWorld(p).toArray(); }"""
# What a press at a place of the screen grips when the rings are there but not drawn yet.
GRIPPED = """([clientX, clientY]) => { const { hands, aimed } = window.modurob.stage;
const event = { button: 0, clientX, clientY };
hands.show_rings();
hands.press(event, aimed(event));
const kind = hands.drag?.kind;
hands.drag = null;
return kind; }"""
# What is sent of three poses of a drag when the first answer comes after the third.
LATE = """(() => { const { hands } = window.modurob.stage, sent = [];
const mine = Object.assign(Object.create(hands), { asked: 0, emit: (event, x) => sent.push(x) });
mine.send("pose", 1);
mine.send("pose", 2);
mine.asked -= 1000;
mine.send("pose", 3);
mine.answered();
return sent; })()"""
# The tree of the same body comes again, and another choice: rows are drawn anew.
AGAIN = """(chosen) => { const { tree } = window.modurob, { modules, sites, kind } = tree;
tree.set_tree({ modules, sites, kind });
tree.select(chosen); }"""
# True if a box is found to be out of sight of which only the lower corner is, nearest to the eye.
MISSED = """(() => { const { eye, camera, bodies } = window.modurob.stage;
const at = (x, y) => eye.controls.target.clone().add({ x, y, z: 0 });
const seen = (p) => Math.max(...p.clone().project(camera).toArray().map(Math.abs)) < 1;
for (let h = 0.01; h < 9; h += 0.01) {
  if (!seen(at(h, -h)) && seen(at(-h, -h)) && seen(at(h, h))) {
    const box = bodies.box();
    return eye.misses(new box.constructor(at(-h, -h), at(h, h)));
  } } })()"""
CALM = "window.modurob.stage.hands.asked === 0"
CHOSEN = "[...window.modurob.stage.chosen].join()"


def pixels(tab, module):
    """Of a module's middle, when the eye rests."""
    tab.rest()
    return tab.page.evaluate(PIXELS, tab.page.evaluate(PLACE, module))


def dragged(tab, start, *ways):
    """Press at a place and go to others."""
    tab.page.mouse.move(*start)
    tab.page.mouse.down()
    for way in ways:
        tab.page.mouse.move(*way, steps=4)


def corner(tab, share):
    """A place of the 3D view: this far from its upper left to its lower right corner."""
    box = tab.page.locator(".stage-canvas").bounding_box()
    return [box["x"] + share * box["width"], box["y"] + share * box["height"]]


def test_a_body_is_dragged_with_its_joints_and_a_joint_is_turned_by_its_ring(tab):
    tab.show("arm", examples.arm("babacab"), hinges="physical")
    tab.move()
    start = pixels(tab, "m6")
    assert tab.page.evaluate(MISSED) is True
    dragged(tab, start, [start[0] + 90, start[1] + 60])
    tab.wait(f"window.modurob.stage.other.cast && {CALM}")  # the ghost of the start is there
    assert np.allclose(*tab.page.evaluate(PULLED), atol=GRIP)
    tab.page.mouse.move(start[0] - 2000, start[1])  # out of reach: as near as the limits allow
    tab.wait(f"{CALM} && window.modurob.stage.hands.drag.target.x !== 0")
    tab.page.keyboard.press("Escape")  # as it was
    tab.wait(f"{CALM} && window.modurob.stage.state.values.every((x) => x === 0)")
    tab.page.mouse.up()
    tab.wait("!window.modurob.stage.other.cast")
    dragged(tab, start, [start[0] + 20, start[1]])
    tab.wait("window.modurob.stage.hands.drag.on")
    tab.page.evaluate("window.modurob.stage.hands.again()")  # another tab has changed the body
    tab.wait("!window.modurob.stage.hands.drag && !window.modurob.stage.other.cast")
    tab.page.mouse.up()
    tab.page.get_by_text("All to zero").locator("visible=true").click()
    tab.wait(f"{CALM} && window.modurob.stage.state.values.every((x) => x === 0)")

    tab.page.mouse.click(*pixels(tab, "m5"))  # its joint is across the arm
    tab.wait("window.modurob.stage.hands.rings.children.length === 1")
    tab.rest()  # its ring is seen
    ring = [tab.page.evaluate(PIXELS, tab.page.evaluate(ON_RING, a)) for a in (0, 0.5, 1)]
    assert tab.page.evaluate(GRIPPED, ring[0]) == "joint"
    assert tab.page.evaluate(LATE) == [1, 3]  # not an older one last
    dragged(tab, *ring)
    tab.page.mouse.up()
    tab.until(lambda: abs(tab.project().pose.get("m5.joint", 0) - 1) < TURN)
    assert all(abs(x) < TURN for name, x in tab.project().pose.items() if name != "m5.joint")

    # the arrow of a joint that slides is beside its module, which can be dragged all the same
    tab.page.mouse.click(*pixels(tab, "m4"))
    tab.wait("window.modurob.stage.hands.rings.children[0]?.userData.joint.slides")
    tab.rest()
    arrow = tab.page.evaluate("window.modurob.stage.hands.rings.children[0].position.toArray()")
    grips = [tab.page.evaluate(PIXELS, arrow), pixels(tab, "m4")]
    assert [tab.page.evaluate(GRIPPED, grip) for grip in grips] == ["joint", "body"]

    # the pose is kept at two times: keyframes, seen as ghosts
    tab.unfold("Motion by hand: keyframes, a path")
    for count in (1, 2):
        tab.click("keyframe-keep")
        tab.wait(f"document.querySelectorAll('.keyframe').length === {count}")
    tab.wait("window.modurob.stage.keyframes.cast?.bodies.length === 2 * 14")

    # a path for the end of the arm: its poses are ghosts, and the motion of the next run
    tab.click("draw-path")
    tab.page.get_by_text("Drag a body along the path").wait_for()
    start = pixels(tab, "m6")
    dragged(tab, start, [start[0] + 60, start[1] + 40], [start[0] - 20, start[1] + 60])
    tab.page.mouse.up()
    tab.wait("window.modurob.stage.keyframes.cast?.bodies.length === 12 * 14")
    tab.wait("document.querySelectorAll('.keyframe').length === 16")
    tab.saved()
    assert tab.project().settings.motion == "spline"
    assert abs(tab.project().pose["m5.joint"] - 1) < TURN  # from where it was
    tab.click("mode-build")
    tab.wait("!window.modurob.stage.keyframes.group.visible")


def test_modules_are_carried_to_ports_chosen_mirrored_and_measured(tab):
    tab.show("half a crab", subtrees.without(examples.crab(), ["m4"]))
    tab.page.mouse.click(*pixels(tab, "m2"))
    tab.wait(f"{CHOSEN} === 'm2'")
    tab.page.keyboard.press("Control+m")
    tab.modules(6)
    tab.until(lambda: tab.project().organism == examples.crab())

    # Shift: several, with the distances of their middles and the angle between them
    tab.page.mouse.click(*pixels(tab, "m0"))
    tab.wait(f"{CHOSEN} === 'm0'")
    for k, name in enumerate(("m1", "m4")):
        tab.page.keyboard.down("Shift")
        tab.page.mouse.click(*pixels(tab, name))
        tab.page.keyboard.up("Shift")
        tab.wait(f"{CHOSEN} === '{','.join(['m0', 'm1', 'm4'][: k + 2])}'")
    tab.wait("document.querySelectorAll('.tag-measure').length === 3")
    assert tab.text("measures").split("\n") == ["100 mm", "100 mm", "90.0°"]

    # a rectangle around all of them; a leg is copied to the base
    tab.page.keyboard.down("Shift")
    dragged(tab, corner(tab, 0.02), corner(tab, 0.85))
    tab.page.keyboard.up("Shift")
    tab.page.mouse.up()
    tab.wait("window.modurob.stage.chosen.size === 6")
    tab.page.mouse.click(*pixels(tab, "m4"))
    tab.wait(f"{CHOSEN} === 'm4'")
    tab.page.keyboard.press("Control+c")
    tab.page.get_by_text("Copied 2 modules").wait_for()
    tab.page.mouse.click(*pixels(tab, "m0"))
    tab.wait(f"{CHOSEN} === 'm0'")
    tab.page.keyboard.press("Control+v")
    tab.modules(8)
    tab.saved()
    assert tab.project().organism.parent("m6") == "m0"
    tab.page.keyboard.press("Control+z")
    tab.modules(6)

    # a kind of the palette over a port; R turns its ghost
    box = tab.find("kind-scout").bounding_box()
    x, y = pixels(tab, "m5")
    port = "window.modurob.stage.hands.drag?.port"
    dragged(tab, (box["x"] + 9, box["y"] + 9), (640, 400), (x + 10, y - 20))
    tab.wait(f"{port} && window.modurob.stage.ghost.cast")
    before = tab.page.evaluate(port)
    tab.page.keyboard.press("r")
    tab.wait(f"{port}.child_port !== {before['child_port']} && window.modurob.stage.ghost.cast")
    way = tab.page.evaluate(port)
    tab.page.mouse.up()
    tab.modules(7)
    tab.saved()
    held = tab.project().organism.docking("m6")
    assert (held.parent, held.child_port) == (way["module"], way["child_port"])

    # a leg with all beyond it to the base
    base, leg = pixels(tab, "m0"), pixels(tab, "m2")
    dragged(tab, leg, (leg[0] + 10, leg[1] + 30))
    tab.wait("window.modurob.stage.hands.drag.sites")
    tab.page.mouse.move(base[0] + 40, base[1] + 30, steps=3)
    tab.wait(f"{port} && window.modurob.stage.ghost.cast")
    tab.page.mouse.up()
    tab.until(lambda: tab.project().organism.parent("m2") == "m0")
    assert tab.project().organism.parent("m3") == "m2"


def test_the_tree_docks_renames_and_finds_modules_by_keys(tab):
    tab.show("arm", examples.arm("ba"))
    press = tab.page.keyboard.press
    tab.find("row-m1").click()  # an arm is on no grid: the tree is in the place of the plan
    tab.find("row-m1:out").wait_for()
    assert "dock Arm a, bends here" in tab.text("row-m1:out")
    tab.page.get_by_text("m1 · Arm a, bends").wait_for()  # as in the palette
    press("ArrowDown")
    press("Enter")
    tab.modules(3)
    tab.wait("document.activeElement.id === 'row-m2'")
    press("F2")
    tab.page.keyboard.type("ha")
    for chosen in ([], ["m2"]):  # answers of the server that come while a name is typed
        tab.page.evaluate(AGAIN, chosen)
    tab.page.keyboard.type("nd")
    press("Enter")
    tab.page.evaluate(AGAIN, ["m2"])  # and before it has heard of the name
    tab.wait("document.activeElement.id === 'row-hand'")
    assert tab.page.evaluate(CHOSEN) == "hand"
    press("Control+d")
    tab.modules(4)
    tab.find("tree-search").fill("HAN")
    tab.wait("document.querySelectorAll('.tree-row:not(.port)').length === 1")
    tab.find("tree-search").fill("")
    tab.saved()
    assert tab.project().organism.modules == ("m0", "m1", "hand", "m3")
    tab.find("row-m3").click()
    press("Alt+ArrowDown")  # to the next free port, which is that of the base
    tab.until(lambda: tab.project().organism.parent("m3") == "m0")
    tab.wait("document.activeElement.id === 'row-m3'")

    # tabs answer arrows
    tab.find("view-tree").focus()
    press("ArrowLeft")
    tab.wait("document.activeElement.dataset.testid === 'view-plan'")
    tab.page.locator(".plan-empty").wait_for()
    tab.find("mode-build").focus()
    press("End")
    tab.wait("document.querySelector('[data-testid=mode-live][aria-selected=true]')")
    marks = tab.page.evaluate(
        """import("modurob-web/player.js").then(({ marks }) => marks(
        [0, 1, 50, 80, 300].map((time) => ({ time, what: `undock m${time}` })), (t) => t))"""
    )
    assert [m["text"] for m in marks] == ["▼2", "▼", "▼", "▼ undock m300"]
