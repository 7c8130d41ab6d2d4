"""The studio: from a click to the 3D view, and the script of a frame while 100 modules play.

A headless Chromium without a graphics card looks at a server of its own. A click on the plan docks
a module; the time counts until the stage has drawn the new body. The frame's script is what the
player, the poses of all bodies and the plots' cursors need, without the graphics.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import browser as browsers
from modurob import examples

CLICKS, QUICK_CLICKS = 30, 8
MODULES = 100
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
            played = playback(browser, server, QUICK_SECONDS if quick else SECONDS)
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
    return {"click_to_3d": clicks, "playback": played}
