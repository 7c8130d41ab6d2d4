"""Fingers instead of a mouse: tap to dock and choose, drag bodies and joints, turn and zoom."""

import numpy as np
import pytest

from modurob import examples

TURN = 0.05  # of a joint turned by a finger [rad]: places on the screen are rounded
STEPS = 6  # of a drag
TREMBLE = 8  # of a finger that taps [px]
# Pixels of a place of the world, of a module, of a free port, and of a joint's ring at an angle.
PIXELS = """([x, y, z]) => { const S = window.modurob.stage, r = S.canvas.getBoundingClientRect();
S.camera.updateMatrixWorld();
const p = S.camera.position.clone().set(x, y, z).project(S.camera);
return [r.x + (p.x + 1) * r.width / 2, r.y + (1 - p.y) * r.height / 2]; }"""
MODULE = """(name) => { const S = window.modurob.stage;
return S.bodies.center(name, S.camera.position.clone()).toArray(); }"""
ON_RING = """(angle) => { const [ring] = window.modurob.stage.hands.rings.children;
return ring.localToWorld(ring.position.clone().set(Math.cos(angle), Math.sin(angle), 0)).toArray();
}"""
# A place of a port's mark that is seen, of those where the module can dock.
PORT = """() => { const S = window.modurob.stage, m = S.camera.matrix.clone(), seen = [];
S.state.ports.forEach((port, k) => { if (port.why) return; S.ports.getMatrixAt(k, m);
  seen.push(S.camera.position.clone().setFromMatrixPosition(m)); });
seen.sort((a, b) => a.distanceTo(S.camera.position) - b.distanceTo(S.camera.position));
return seen[0].toArray(); }"""
EYE = """() => { const { camera, eye } = window.modurob.stage;
return [camera.position.toArray(), eye.controls.target.toArray()]; }"""

# Touches by the protocol of the browser make none.
LONG_PRESS = """([clientX, clientY]) => document.elementFromPoint(clientX, clientY).dispatchEvent(
new PointerEvent("contextmenu", { clientX, clientY, pointerType: "touch", bubbles: true }))"""
# The ghost of the start is there, and the server has answered.
DRAGGED = "window.modurob.stage.other.cast && window.modurob.stage.hands.asked === 0"
FLOOR = """() => { const r = window.modurob.stage.canvas.getBoundingClientRect();
return [r.x + 30, r.bottom - 40]; }"""


class Fingers:
    """Touches of the screen, by the protocol of the browser."""

    def __init__(self, tab):
        self.wire = tab.page.context.new_cdp_session(tab.page)

    def send(self, kind, *places, number=0):
        """Of fingers with numbers from `number` on."""
        points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(places, number)]
        self.wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def drag(self, *ways, down=False):
        """One way from a start to an end for each finger; they come down one after the other.

        Args:
            down: True if they are down.
        """
        begin, end = (np.array([way[k] for way in ways], float) for k in (0, 1))
        for count in range(1, len(ways) + 1 if not down else 0):
            self.send("touchStart", *begin[:count].tolist())
        for share in np.linspace(0.0, 1.0, STEPS + 1)[1:]:
            self.send("touchMove", *(begin + share * (end - begin)).tolist())

    def lift(self, *places, number=0):
        """All fingers, or those at the places."""
        self.send("touchEnd", *places, number=number)


@pytest.fixture
def fingers(touch_tab):
    return Fingers(touch_tab)


def pixels(tab, what, *given):
    """Of a place, when the eye rests."""
    tab.rest()
    return tab.page.evaluate(PIXELS, tab.page.evaluate(what, *given))


def eye(tab):
    """Its place and where it looks, when it rests."""
    tab.rest()
    return [np.array(place) for place in tab.page.evaluate(EYE)]


def arm(tab):
    """An arm that can be moved, and its pose."""
    tab.show("arm", examples.arm("babacab"), hinges="physical")
    tab.move()
    return tab.project().pose


def bent(tab, before):
    """Until the first joint, far from the finger, is elsewhere on disk."""
    tab.until(lambda: tab.project().pose.get("m1.joint", 0.0) != before.get("m1.joint", 0.0))


def floor(tab):
    """Pixels of a place with nothing but the floor."""
    return tab.page.evaluate(FLOOR)


def test_a_tap_on_a_port_docks_a_module_though_the_finger_trembles(touch_tab, fingers):
    tab = touch_tab
    tab.show("snake", examples.snake(2), hinges="physical")
    x, y = pixels(tab, PORT)  # in the 3D view
    fingers.drag(([x, y], [x + TREMBLE, y]))
    fingers.lift()
    tab.modules(3)
    tab.page.locator(".plan").scroll_into_view_if_needed()
    tab.page.touchscreen.tap(*tab.at(1, 0))  # in the plan, beside the base
    tab.modules(4)
    tab.until(lambda: len(tab.project().organism) == 4)


def test_a_long_press_on_the_plan_removes_a_module_and_neither_it_nor_two_fingers_dock(
    touch_tab, fingers
):
    tab = touch_tab
    tab.show("snake", examples.snake(3), hinges="physical")
    tab.page.locator(".plan").scroll_into_view_if_needed()
    end, beside = tab.at(0, 2), tab.at(1, 0)
    fingers.send("touchStart", end)
    tab.page.evaluate(LONG_PRESS, end)
    tab.modules(2)
    fingers.lift()
    fingers.drag((beside, beside), (end, end))
    fingers.lift()
    tab.page.touchscreen.tap(*beside)
    tab.modules(3)  # by the tap
    tab.saved()
    tab.modules(3)


def test_a_long_press_removes_a_module_and_docks_none(touch_tab, fingers):
    tab = touch_tab
    tab.show("arm", examples.arm("babacab"))
    place = pixels(tab, MODULE, "m6")
    fingers.send("touchStart", place)
    tab.page.evaluate(LONG_PRESS, place)
    tab.modules(6)
    fingers.lift()
    tab.until(lambda: len(tab.project().organism) == 6)
    tab.saved()
    tab.modules(6)


def test_a_finger_turns_a_joint_by_its_ring(touch_tab, fingers):
    tab = touch_tab
    arm(tab)
    tab.page.touchscreen.tap(*pixels(tab, MODULE, "m5"))
    tab.wait("window.modurob.stage.hands.rings.children.length === 1")
    fingers.drag((pixels(tab, ON_RING, 0.0), pixels(tab, ON_RING, 0.8)))
    fingers.lift()
    tab.until(lambda: abs(tab.project().pose.get("m5.joint", 0.0) - 0.8) < TURN)


def test_a_finger_drags_a_body_and_a_second_one_does_not_disturb_it(touch_tab, fingers):
    tab = touch_tab
    before = arm(tab)
    start = eye(tab)
    x, y = pixels(tab, MODULE, "m6")
    fingers.send("touchStart", [x, y])
    tab.page.evaluate(LONG_PRESS, [x, y])  # it was held before it moves
    fingers.drag(([x, y], [x + 40, y + 30]), down=True)
    tab.wait(f"{DRAGGED} && window.modurob.stage.state.values[1] !== 0")
    fingers.send("touchCancel")  # the system takes the finger away: as it was
    tab.wait(f"!({DRAGGED}) && window.modurob.stage.state.values.every((x) => x === 0)")

    fingers.drag(([x, y], [x + 40, y + 30]))
    tab.wait(DRAGGED)
    fingers.send("touchStart", [x + 40, y + 30], [x - 60, y])
    fingers.send("touchMove", [x + 40, y + 30], [x - 60, y + 60])
    fingers.lift([x - 60, y + 60], number=1)
    assert tab.page.evaluate("window.modurob.stage.hands.drag?.on")
    fingers.lift()
    tab.wait("!window.modurob.stage.other.cast")
    bent(tab, before)
    assert np.allclose(eye(tab), start)


def test_one_finger_on_the_floor_turns_the_view(touch_tab, fingers):
    tab = touch_tab
    arm(tab)
    place, target = eye(tab)
    x, y = floor(tab)
    fingers.drag(([x, y], [x + 80, y]))
    fingers.lift()
    turned, still = eye(tab)
    assert np.linalg.norm(turned - place) > 0.1 * np.linalg.norm(place - target)
    assert np.allclose(still, target)


def test_two_fingers_zoom_and_move_the_view_and_drag_no_body(touch_tab, fingers):
    tab = touch_tab
    before = arm(tab)
    place, target = eye(tab)
    x, y = pixels(tab, MODULE, "m6")  # the first finger is on a body that it could drag
    u, v = floor(tab)
    fingers.drag(([x, y], [x - 50, y - 60]), ([u, v], [u - 20, v]))
    fingers.lift()
    near, aim = eye(tab)
    assert abs(np.linalg.norm(near - aim) / np.linalg.norm(place - target) - 1) > 0.02
    assert not np.allclose(aim, target)  # both moved to the left
    assert tab.page.evaluate("window.modurob.stage.hands.drag === null")
    assert tab.project().pose == before

    x, y = pixels(tab, MODULE, "m6")  # one finger again
    fingers.drag(([x, y], [x + 40, y + 30]))
    tab.wait(DRAGGED)
    fingers.lift()
    bent(tab, before)
