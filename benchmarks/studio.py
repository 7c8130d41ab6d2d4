"""The studio: from a click to the 3D view, a drag of an arm, the script of a frame of many modules.

A headless Chromium without a graphics card looks at a server of its own. A click on the plan docks
a module; the time counts until the stage has drawn the new body. The frame's script is what the
player, the poses of all bodies and the plots' cursors need, without the graphics. An arm of seven
joints is dragged by its tip: an update is a pose that inverse kinematics found and the stage has. A
body of 500 modules is dragged, too, and modules are docked to it in the plan and in the tree.
"""

from __future__ import annotations

import os
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
RUN_S = {MODULES: 2.0, LARGE: 0.2}  # that is played, by the number of modules
WARM = 60  # frames until the browser has compiled the script
SIZE = {"width": 1280, "height": 720}
LONG = 120_000  # [ms]

# clicks the middle of a free cell and waits until a frame with one module more is drawn
CLICK = """async ([x, y]) => {
  const svg = document.querySelector('.plan svg'), S = window.modurob.stage;
  const p = new DOMPoint(x, -y).matrixTransform(svg.getScreenCTM());
  const count = S.bodies.cast.modules.length, begin = performance.now();
  for (const type of ['pointermove', 'pointerdown', 'pointerup'])
    svg.dispatchEvent(new PointerEvent(type,
      { clientX: p.x, clientY: p.y, bubbles: true, isPrimary: true }));
  while (S.bodies.cast.modules.length === count || S.rendered < S.shown)
    await new Promise((done) => requestAnimationFrame(done));
  return S.rendered - begin;
}"""

# drags a module in circles and counts the poses that come back; also the times between two
DRAG = """async ([name, seconds]) => {
  const S = window.modurob.stage, { canvas, hands, camera } = S, r = canvas.getBoundingClientRect();
  const p = S.bodies.center(name, camera.position.clone()).project(camera);
  const x = r.x + ((p.x + 1) * r.width) / 2, y = r.y + ((1 - p.y) * r.height) / 2;
  const send = (type, dx, dy) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1,
    clientX: x + dx, clientY: y + dy, bubbles: true, button: 0, buttons: 1, isPrimary: true }));
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


class Cost:
    """CPU time of a page's main thread and of the server since it was made. [ms]"""

    def __init__(self, page: Any, server: browsers.Server) -> None:
        self._server = server.process.pid
        self._page = page.context.new_cdp_session(page)
        self._page.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._begin = self._read()

    def _read(self) -> dict[str, float]:
        metrics = self._page.send("Performance.getMetrics")["metrics"]
        found = {entry["name"]: 1000 * entry["value"] for entry in metrics}
        times = Path(f"/proc/{self._server}/task").glob("*/schedstat")  # empty without Linux
        server = sum(int(file.read_text().split()[0]) for file in times) / 1e6
        return {
            "page": found["TaskDuration"],
            "script": found["ScriptDuration"],
            "server": server,
        }

    def each(self, count: float) -> dict[str, float]:
        """Of one of so many."""
        now = self._read()
        return {f"{key}_cpu_ms": (now[key] - self._begin[key]) / count for key in now}


def opened(browser: Any, server: browsers.Server, name: str, body: Any) -> Any:
    """A page that shows a body in a project of its own."""
    project = projects.Project(History(SavedBody(body)))
    Folder(server.folder).write(name, projects.to_bytes(project))
    page = browser.new_page(viewport=SIZE)
    page.set_default_timeout(LONG)
    page.goto(f"{server.url}/project/{name}")
    page.wait_for_function(f"window.modurob?.stage?.bodies.cast?.modules.length === {len(body)}")
    return page


def drag(browser: Any, server: browsers.Server, body: Any, module: str, seconds: int) -> Any:
    """Updates a second while a module is dragged, and the page that showed it."""
    page = opened(browser, server, f"drag {len(body)}", body)
    page.get_by_test_id("mode-move").click()
    page.wait_for_timeout(1500)  # the eye has come to rest
    page.evaluate(DRAG, [module, 1])  # routines are compiled
    cost = Cost(page, server)
    found = page.evaluate(DRAG, [module, seconds])
    return {**found, **cost.each(found["updates_per_second"] * seconds)}, page


def large(browser: Any, server: browsers.Server, seconds: int) -> dict[str, float]:
    """A body of many modules: a drag of one, and dockings by the plan and the tree. [ms]"""
    dragged, page = drag(browser, server, examples.snake(LARGE), "m40", seconds)
    page.get_by_test_id("mode-build").click()
    plan = []
    for k in range(5):
        page.wait_for_timeout(1000)  # the eye has come to rest
        plan.append(page.evaluate(CLICK, [1, 2 * k + 1]))  # beside every other module
    page.get_by_test_id("view-tree").click()
    end = f"m{LARGE - 1}"
    page.get_by_test_id(f"row-{end}").click()
    page.get_by_test_id(f"row-{end}:3").wait_for()
    page.wait_for_timeout(1500)
    times, costs = [], []
    for k in range(5):
        cost = Cost(page, server)
        last = LARGE - 1 if k == 0 else LARGE + len(plan) + k - 1
        times.append(page.evaluate(ROW, f"row-m{last}:3"))
        costs.append(cost.each(1))
        page.get_by_test_id(f"row-m{LARGE + len(plan) + k}:3").wait_for()
        page.wait_for_timeout(1000)
    page.close()
    docked = {f"dock_{key}": statistics.median(c[key] for c in costs) for key in costs[0]}
    wall = {"dock_in_tree_ms": statistics.median(times), "fastest_dock_ms": min(times)}
    wall["dock_in_plan_ms"] = statistics.median(plan)
    return {"modules": LARGE, **dragged, **wall, **docked}


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


def playback(browser: Any, server: browsers.Server, modules: int, seconds: int) -> dict[str, float]:
    """Script of a frame while the player runs. [ms]"""
    page = opened(browser, server, f"play {modules}", examples.snake(modules))
    page.get_by_test_id("mode-move").click()
    page.get_by_test_id("set-duration").fill(str(RUN_S[modules]))
    page.get_by_test_id("set-duration").blur()
    page.get_by_test_id("run").click()
    page.wait_for_function("window.modurob.clock.playing")
    page.get_by_test_id("mode-see").click()
    page.wait_for_function("window.modurob.plots.charts.size > 0")
    page.wait_for_function(f"window.modurob.stats.frames > {WARM}")
    cost = Cost(page, server)
    page.evaluate("Object.assign(window.modurob.stats, { frames: 0, script: 0 })")
    page.wait_for_timeout(1000 * seconds)
    stats = page.evaluate("({ ...window.modurob.stats })")
    each = cost.each(stats["frames"])
    solids = page.evaluate("window.modurob.stage.bodies.cast.solids.length")
    page.close()
    return {
        "modules": modules,
        "solids": solids,
        "frames": stats["frames"],
        "frames_per_second": stats["frames"] / seconds,
        "script_per_frame_ms": stats["script"] / stats["frames"],
        "all_script_cpu_ms": each["script_cpu_ms"],  # with that of drawing
        "page_cpu_ms": each["page_cpu_ms"],
    }


def run(quick: bool) -> dict[str, Any]:
    """All measurements."""
    if why := browsers.missing():
        raise SystemExit(f"the studio cannot be measured here: {why}")
    with (
        tempfile.TemporaryDirectory() as folder,
        browsers.browsing() as browser,
        browsers.serving(Path(folder) / "projects") as server,
    ):
        times = click_times(browser, server, QUICK_CLICKS if quick else CLICKS)
        seconds = QUICK_SECONDS if quick else SECONDS
        arm, page = drag(browser, server, examples.arm("bababab"), "m6", seconds)
        page.close()
        many = large(browser, server, seconds)
        played = [playback(browser, server, count, seconds) for count in (MODULES, LARGE)]
    clicks = {
        "clicks": len(times),
        "median_ms": statistics.median(times),
        "slowest_ms": max(times),
    }
    print(
        f"click to 3D: median {clicks['median_ms']:.0f} ms, slowest {clicks['slowest_ms']:.0f} ms"
    )
    for each in played:
        print(
            f"{each['modules']} modules play with {each['script_per_frame_ms']:.2f} ms of script a "
            f"frame ({each['all_script_cpu_ms']:.2f} ms of CPU with drawing), "
            f"{each['frames_per_second']:.0f} frames a second without a graphics card"
        )
    print(
        f"an arm of 7 joints is dragged with {arm['updates_per_second']:.0f} updates a second; "
        f"{LARGE} modules with {many['updates_per_second']:.0f}, and a click in their plan takes "
        f"{many['dock_in_plan_ms']:.0f} ms, in their tree {many['dock_in_tree_ms']:.0f} ms"
    )
    load = os.getloadavg()[0]  # of other programs, too: times of CPU do not depend on it
    found = {"click_to_3d": clicks, "drag": arm, "large": many, "playback": played[0]}
    return {**found, "large_playback": played[1], "load": load}
