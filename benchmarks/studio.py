"""The studio: from a click to the 3D view, a drag of an arm, the script of a frame of 100 modules.

A headless Chromium without a graphics card looks at a server of its own. A click on the plan docks
a module; the time counts until the stage has drawn the new body. The frame's script is what the
player, the poses of all bodies and the plots' cursors need, without the graphics. An arm of seven
joints is dragged by its tip: an update is a pose that inverse kinematics found and the stage has. A
body of 500 modules is dragged, too, and a module is docked to it in the tree.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import browser as browsers
from modurob import examples
from modurob.studio import project as projects
from modurob.studio.folder import Folder
from modurob.studio.project import History, SavedBody

CLICKS, QUICK_CLICKS = 30, 8
MODULES, LARGE = 100, 500
SECONDS, QUICK_SECONDS = 8, 3  # of playback
SIZE = {"width": 1280, "height": 720}
LONG = 120_000  # [ms]

# clicks the middle of a free cell and waits until a frame with one module more is drawn
CLICK = """async ([x, y]) => {
  const svg = document.querySelector('.plan svg'), S = window.modurob.stage;
  const p = new DOMPoint(x, -y).matrixTransform(svg.getScreenCTM());
  const count = S.bodies.cast.modules.length, begin = performance.now();
  for (const type of ['pointermove', 'pointerdown', 'pointerup'])
    svg.dispatchEvent(new PointerEvent(type, { clientX: p.x, clientY: p.y, bubbles: true }));
  while (S.bodies.cast.modules.length === count || S.rendered < S.shown)
    await new Promise((done) => requestAnimationFrame(done));
  return S.rendered - begin;
}"""

# drags a module in circles and counts the poses that come back; also the times between two
DRAG = """async ([name, seconds]) => {
  const S = window.modurob.stage, { canvas, hands, camera } = S, r = canvas.getBoundingClientRect();
  const p = S.bodies.center(name, camera.position.clone()).project(camera);
  const x = r.x + ((p.x + 1) * r.width) / 2, y = r.y + ((1 - p.y) * r.height) / 2;
  const send = (type, dx, dy) => canvas.dispatchEvent(new PointerEvent(type,
    { clientX: x + dx, clientY: y + dy, bubbles: true, button: 0, buttons: 1, pointerId: 1 }));
  canvas.setPointerCapture = () => {};
  const shown = [], answered = hands.answered.bind(hands);
  hands.answered = () => { shown.push(performance.now()); answered(); };
  send('pointerdown', 0, 0);
  const begin = performance.now();
  for (let t = 0; t < seconds; t = (performance.now() - begin) / 1000) {
    send('pointermove', -60 * Math.sin(2 * t), 40 * (1 - Math.cos(2 * t)));
    await new Promise((done) => setTimeout(done, 8));
  }
  send('pointerup', 0, 0);
  hands.answered = answered;
  const gaps = shown.slice(1).map((t, k) => t - shown[k]).sort((a, b) => a - b);
  return { updates_per_second: shown.length / seconds, median_gap_ms: gaps[gaps.length >> 1] };
}"""
# clicks a row of the tree and waits until a frame with one module more is drawn
ROW = """async (row) => {
  const S = window.modurob.stage, count = S.bodies.cast.modules.length, begin = performance.now();
  document.getElementById(row).click();
  while (S.bodies.cast.modules.length === count || S.rendered < S.shown)
    await new Promise((done) => requestAnimationFrame(done));
  return S.rendered - begin;
}"""


def drag(browser: Any, server: browsers.Server, body: Any, module: str, seconds: int) -> Any:
    """Updates a second while a module is dragged, and the page that showed it."""
    project = projects.Project(History(SavedBody(body)))
    name = f"drag {len(body)}"
    Folder(server.folder).write(name, projects.to_bytes(project))
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(LONG)
    page.goto(f"{server.url}/project/{name}")
    page.wait_for_function(f"window.modurob?.stage?.bodies.cast?.modules.length === {len(body)}")
    page.get_by_test_id("mode-move").click()
    page.wait_for_timeout(1500)  # the eye has come to rest
    return page.evaluate(DRAG, [module, seconds]), page


def large(browser: Any, server: browsers.Server, seconds: int) -> dict[str, float]:
    """A body of many modules: a drag of one, and a docking by the tree. [ms]"""
    dragged, page = drag(browser, server, examples.snake(LARGE), "m40", seconds)
    page.get_by_test_id("mode-build").click()
    page.get_by_test_id("view-tree").click()
    end = f"m{LARGE - 1}"
    page.get_by_test_id(f"row-{end}").click()
    page.get_by_test_id(f"row-{end}:3").wait_for()
    page.wait_for_timeout(1500)
    times = []
    for k in range(3):
        times.append(page.evaluate(ROW, f"row-m{LARGE - 1 + k}:3"))
        page.get_by_test_id(f"row-m{LARGE + k}:3").wait_for()
        page.wait_for_timeout(500)
    page.close()
    return {"modules": LARGE, **dragged, "dock_in_tree_ms": statistics.median(times)}


def click_times(browser: Any, server: browsers.Server, count: int) -> list[float]:
    """Milliseconds from a click to the new body on the stage."""
    page = browser.new_page(viewport=SIZE)
    page.goto(f"{server.url}/project/clicks")
    page.set_default_timeout(LONG)
    page.get_by_test_id("blank").click()
    page.wait_for_function("window.modurob?.stage?.state && window.modurob.plan")
    page.locator(".plan").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("window.modurob.stage.bodies.cast?.modules.length === 1")
    times = []
    for k in range(count):
        page.wait_for_function(f"window.modurob.plan.plan.cells.length === {k + 1}")
        page.wait_for_timeout(300)  # the eye has come to rest
        x, y = (k // 12 + 1, 0) if k % 12 == 0 else (k // 12 + 1, k % 12)
        times.append(page.evaluate(CLICK, [x, y]))
    page.close()
    return times


def playback(browser: Any, server: browsers.Server, seconds: int) -> dict[str, float]:
    """Script of a frame while the player runs. [ms]"""
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(LONG)
    page.goto(server.opened)
    page.wait_for_function(f"window.modurob?.stage?.bodies.cast?.modules.length === {MODULES}")
    page.get_by_test_id("mode-move").click()
    page.get_by_test_id("set-duration").fill("2")
    page.get_by_test_id("set-duration").blur()
    page.get_by_test_id("run").click()
    page.wait_for_function("window.modurob.clock.playing")
    page.get_by_test_id("mode-see").click()
    page.wait_for_function("window.modurob.plots.charts.size > 0")
    page.evaluate("Object.assign(window.modurob.stats, { frames: 0, script: 0 })")
    page.wait_for_timeout(1000 * seconds)
    stats = page.evaluate("({ ...window.modurob.stats })")
    solids = page.evaluate("window.modurob.stage.bodies.cast.solids.length")
    page.close()
    return {
        "modules": MODULES,
        "solids": solids,
        "frames": stats["frames"],
        "frames_per_second": stats["frames"] / seconds,
        "script_per_frame_ms": stats["script"] / stats["frames"],
    }


def run(quick: bool) -> dict[str, Any]:
    """Both measurements."""
    if why := browsers.missing():
        raise SystemExit(f"the studio cannot be measured here: {why}")
    with tempfile.TemporaryDirectory() as folder, browsers.browsing() as browser:
        body = Path(folder) / "snake.json"
        examples.snake(MODULES).save(body)
        with browsers.serving(Path(folder) / "projects", str(body)) as server:
            times = click_times(browser, server, QUICK_CLICKS if quick else CLICKS)
            seconds = QUICK_SECONDS if quick else SECONDS
            arm, page = drag(browser, server, examples.arm("bababab"), "m6", seconds)
            page.close()
            many = large(browser, server, seconds)
            played = playback(browser, server, seconds)
    clicks = {
        "clicks": len(times),
        "median_ms": statistics.median(times),
        "slowest_ms": max(times),
    }
    print(
        f"click to 3D: median {clicks['median_ms']:.0f} ms, slowest {clicks['slowest_ms']:.0f} ms"
    )
    print(
        f"{played['modules']} modules play with {played['script_per_frame_ms']:.2f} ms of script a "
        f"frame, {played['frames_per_second']:.0f} frames a second without a graphics card"
    )
    print(
        f"an arm of 7 joints is dragged with {arm['updates_per_second']:.0f} updates a second; "
        f"{LARGE} modules with {many['updates_per_second']:.0f}, and a click in their tree takes "
        f"{many['dock_in_tree_ms']:.0f} ms"
    )
    return {"click_to_3d": clicks, "drag": arm, "large": many, "playback": played}
