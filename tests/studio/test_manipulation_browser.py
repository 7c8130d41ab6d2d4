"""Direct manipulation, in the browser: drag bodies, turn joints, carry modules to ports."""

import numpy as np

from modurob import examples

# Pixels of a place of the world, when the eye rests; and of a module's middle.
AT = """([x, y, z]) => { const S = window.modurob.stage, r = S.canvas.getBoundingClientRect();
S.camera.updateMatrixWorld();
const p = S.camera.position.clone().set(x, y, z).project(S.camera);
return [r.x + (p.x + 1) * r.width / 2, r.y + (1 - p.y) * r.height / 2]; }"""


def place(tab, module):
    """Where a module is drawn. [m]"""
    return tab.page.evaluate(
        """(name) => { const { bodies } = window.modurob.stage;
        const body = bodies.cast.modules.find((m) => m.name === name).body;
        return bodies.frames[body].elements.slice(12, 15); }""",
        module,
    )


def rested(tab):
    """Until the eye has stopped."""
    eye, before = "window.modurob.stage.camera.matrixWorld.elements.join()", None
    while before != (now := tab.page.evaluate(eye)):
        before = now
        tab.page.wait_for_timeout(120)


def test_a_body_that_is_dragged_takes_its_joints_along_within_their_limits(tab):
    tab.show("arm", examples.arm("babacab"), hinges="physical")
    tab.move()
    rested(tab)
    before, start = place(tab, "m6"), tab.page.evaluate(AT, place(tab, "m6"))
    goal = [start[0] + 90, start[1] + 60]
    tab.page.mouse.move(*start)
    tab.page.mouse.down()
    tab.page.mouse.move(*goal, steps=8)
    tab.wait("window.modurob.stage.other.cast && !window.modurob.stage.hands.asked")
    grip = tab.page.evaluate(
        """(() => { const S = window.modurob.stage, { drag } = S.hands;
        return [drag.point.clone().applyMatrix4(S.bodies.frames[drag.body]).toArray(),
                drag.target.toArray()]; })()"""
    )
    assert np.allclose(*grip, atol=1e-5)  # the grip is below the pointer
    tab.page.mouse.up()
    assert np.linalg.norm(np.subtract(place(tab, "m6"), before)) > 0.05
    tab.wait("!window.modurob.stage.other.cast")
    tab.saved()
    print(tab.project().pose)
