"""Make the pictures of the studio's guide anew: ``python -m benchmarks.studio_screenshots``.

They show every panel as it is, light and dark: a server of its own, a headless Chromium, the same
clicks each time. Names of pictures as arguments make only these.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks import browser as browsers

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "studio"
SIZE = {"width": 1280, "height": 720}
LONG = 120_000  # [ms]
COLORS = 256
RICH = "localStorage.setItem('modurob-shadows', 'on')"  # also without a graphics card
THUMBNAILS = "[...document.querySelectorAll('.example img')].every((i) => i.naturalWidth > 0)"


class Camera:
    """A tab that is photographed."""

    def __init__(self, browser: Any, server: browsers.Server, dark: bool) -> None:
        self.server = server
        self.page = browser.new_page(viewport=SIZE, color_scheme="dark" if dark else "light")
        self.page.set_default_timeout(LONG)
        self.page.add_init_script(RICH)

    def open(self) -> None:
        """A new project."""
        self.page.goto(self.server.url)
        self.page.wait_for_function("window.modurob?.stage?.state && window.modurob.plan")

    def example(self, name: str, mode: str = "build") -> None:
        """An example as a project."""
        self.open()
        self.click(f"example-{name}")
        self.page.wait_for_function("window.modurob?.stage?.bodies.cast")
        self.click(f"mode-{mode}")

    def click(self, name: str) -> None:
        """An element by its name for tests."""
        self.page.locator(f"[data-testid='{name}']:visible").first.click()

    def choose(self, name: str, option: str) -> None:
        """An option of a select."""
        self.click(name)
        self.page.get_by_role("option", name=option, exact=True).click()
        self.page.get_by_role("listbox").wait_for(state="hidden")

    def fill(self, name: str, value: str) -> None:
        """A field."""
        field = self.page.get_by_test_id(name)
        field.fill(value)
        field.blur()

    def run(self, button: str = "run") -> None:
        """A run, stopped at a moment that shows something."""
        count = "document.querySelectorAll('.chip[data-testid^=run-]').length"
        before = self.page.evaluate(count)
        self.click(button)
        self.page.wait_for_function(f"{count} > {before}")
        self.page.wait_for_function("window.modurob.clock.playing")
        self.click("play")

    def cell(self, x: float, y: float) -> None:
        """Hover a place of the plan."""
        place = self.page.evaluate(
            """([x, y]) => { const svg = document.querySelector('.plan svg');
            const p = new DOMPoint(x, -y).matrixTransform(svg.getScreenCTM());
            return [p.x, p.y]; }""",
            [x, y],
        )
        self.page.mouse.move(*place)

    def unfold(self, part: str) -> None:
        """A part of the settings."""
        self.page.get_by_text(part, exact=True).click()

    def shoot(self, name: str) -> None:
        """Take the picture when everything has come to rest."""
        self.page.wait_for_timeout(1500)
        image = Image.open(io.BytesIO(self.page.screenshot()))
        path = FOLDER / f"{name}.png"
        # a palette: a third of the size, and nobody sees the difference
        image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"wrote {path}")


def welcome(camera: Camera) -> None:
    camera.open()
    camera.page.wait_for_function(THUMBNAILS)


def guide(camera: Camera) -> None:
    camera.open()
    camera.click("guide")
    for x, y in ((0, 0), (0, 1), (1, 1)):
        camera.page.wait_for_function(
            f"window.modurob.plan.hint?.x === {x} && window.modurob.plan.hint?.y === {y}"
        )
        camera.cell(x, y)
        camera.page.mouse.down()
        camera.page.mouse.up()


def build(camera: Camera) -> None:
    camera.example("crab")
    camera.page.wait_for_timeout(800)
    camera.cell(0, 2)


def ports(camera: Camera) -> None:
    camera.example("superbot_tree")
    camera.click("kind-superbot")


def tree(camera: Camera) -> None:
    camera.example("arm")
    camera.page.locator("#row-m4").click()
    camera.page.locator("[id='row-m4:out']").wait_for()
    camera.page.locator("#row-m4").press("ArrowDown")


def drag(camera: Camera) -> None:
    camera.example("arm", "move")
    camera.page.wait_for_timeout(1200)
    place = camera.page.evaluate(
        """() => { const S = window.modurob.stage, r = S.canvas.getBoundingClientRect();
        const p = S.bodies.center("m4", S.camera.position.clone()).project(S.camera);
        return [r.x + (p.x + 1) * r.width / 2, r.y + (1 - p.y) * r.height / 2]; }"""
    )
    camera.page.mouse.click(*place)
    camera.page.mouse.move(*place)
    camera.page.mouse.down()
    camera.page.mouse.move(place[0] + 170, place[1] + 130, steps=12)


def understand(camera: Camera) -> None:
    camera.example("crab", "understand")
    camera.page.locator("[data-testid=aim] td[data-module=m3]").nth(2).hover()


def joints(camera: Camera) -> None:
    camera.example("crab", "understand")
    camera.click("part-joints")
    camera.page.locator("[data-testid=joints] td[data-joint='m1.hinge']").first.hover()


def dh(camera: Camera) -> None:
    camera.example("arm", "understand")
    camera.click("part-dh")
    camera.page.locator("[data-testid=dh] td[data-joint]").nth(12).hover()


def equations(camera: Camera) -> None:
    camera.example("double_pendulum", "understand")
    camera.click("part-equations")
    camera.page.wait_for_function("document.querySelector('[data-testid=formula] math')")
    camera.page.locator("[data-testid=formula] [data-joint]").first.hover()


def lagrange(camera: Camera) -> None:
    camera.example("double_pendulum", "move")
    camera.page.locator("#joint-m0\\.hinge").fill("1.2")
    camera.page.wait_for_timeout(300)
    camera.click("mode-understand")
    camera.click("part-lagrange")
    camera.page.locator("[data-testid=part-lagrange][aria-selected=true]").wait_for()


def move(camera: Camera) -> None:
    camera.example("crab", "move")
    camera.page.locator("#joint-m1\\.hinge").fill("0.5")
    camera.unfold("Mass, length, springs, connectors of modules")


def events(camera: Camera) -> None:
    camera.example("snake", "move")
    camera.choose("set-hinges", "physical")
    camera.choose("set-motion", "hold the pose")
    camera.fill("set-duration", "0.8")
    camera.unfold("Events during the run")
    camera.click("event-undock")
    camera.page.get_by_text("undock m5").first.wait_for()
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.page.get_by_test_id("scrub").fill("720")


def balance(camera: Camera) -> None:
    camera.example("superbot_tree", "move")
    camera.choose("set-motion", "balance by messages")
    camera.fill("set-duration", "3")
    camera.unfold("Balancing by messages")
    camera.unfold("Events during the run")
    camera.page.get_by_test_id("event-die").wait_for()
    camera.click("event-die")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.page.get_by_test_id("tint").select_option("sent")
    camera.page.get_by_test_id("scrub").fill("700")


def walk(camera: Camera) -> None:
    camera.example("snake", "move")
    camera.choose("set-hinges", "physical")
    camera.page.locator("[id='joint-m0.hinge']").wait_for()  # what is below has its place then
    camera.unfold("Ground")
    camera.page.get_by_test_id("walk").wait_for()
    camera.run("walk")
    camera.page.get_by_test_id("scrub").fill("620")


def loads(camera: Camera) -> None:
    camera.example("superbot_tree", "move")
    camera.choose("set-motion", "hold the pose")
    camera.unfold("Mass, length, springs, connectors of modules")
    camera.fill("parameter-max_torque", "0.5")
    camera.click("apply-parameters")
    camera.fill("set-duration", "1")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.page.get_by_test_id("scrub").fill("620")


def locks(camera: Camera) -> None:
    camera.example("superbot_tree", "move")
    camera.click("emulate-m-tran")
    camera.page.get_by_test_id("unlock-m0.roll").wait_for()


def formulas(camera: Camera) -> None:
    camera.example("double_pendulum", "move")
    camera.page.locator("#joint-m0\\.hinge").fill("1.2")
    camera.choose("set-controller", "none")
    camera.unfold("Gravity, integrator, seed, formulas")
    camera.click("set-analytic")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.click("mode-see")
    camera.page.wait_for_function("window.modurob.run?.other")
    camera.click("plot-energy")
    camera.page.get_by_test_id("scrub").fill("380")


def see(camera: Camera) -> None:
    camera.example("crab", "move")
    camera.choose("set-controller", "PD with gravity compensation")
    camera.run()
    camera.choose("set-controller", "computed torque")
    camera.choose("set-estimator", "EKF")
    camera.unfold("Noise and filter")
    camera.fill("set-noise_q", "0.01")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.click("mode-see")
    camera.page.locator("[data-plot=q]").wait_for()
    camera.click("compare-1")
    camera.page.wait_for_function("window.modurob.run?.other")
    camera.click("plot-tau")
    camera.page.get_by_test_id("scrub").fill("380")


def live(camera: Camera) -> None:
    camera.example("crab", "live")
    camera.click("live-start")
    camera.page.wait_for_function("window.modurob.stage.bodies.cast?.modules.length === 6")
    camera.page.locator("[data-testid=live-record]:enabled").wait_for()
    for joint, angle in (("m0.rotation", 0.3), ("m2.hinge", 0.5), ("m4.hinge", 0.5)):
        camera.page.locator(f"[id='goal-{joint}']").fill(str(angle))
    camera.page.wait_for_timeout(500)
    camera.click("live-record")
    camera.click("live-go")
    camera.page.wait_for_timeout(3000)
    camera.click("live-m5")
    camera.page.get_by_test_id("live-unplug").wait_for()
    camera.click("live-unplug")
    camera.page.get_by_test_id("live-plug").wait_for()
    camera.page.wait_for_function("window.modurob.stage.bodies.cast?.modules.length === 5")


def files(camera: Camera) -> None:
    camera.example("crab")
    camera.click("open")
    camera.page.wait_for_function(THUMBNAILS)


def export(camera: Camera) -> None:
    camera.example("crab", "move")
    camera.fill("set-duration", "0.5")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.click("export")


def keys(camera: Camera) -> None:
    camera.example("crab")
    camera.click("help")


PICTURES: dict[str, Callable[[Camera], None]] = {
    picture.__name__: picture
    for picture in (
        welcome, guide, build, ports, tree, drag, understand, joints, dh, equations, lagrange, move,
        locks, walk, loads, formulas, events, balance, see, live, files, export, keys,
    )
}  # fmt: skip


def main() -> None:
    """All pictures, or those whose names are given."""
    if why := browsers.missing():
        raise SystemExit(f"no pictures can be taken here: {why}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browsers.browsing() as browser:
        for theme, ending in (("light", ""), ("dark", "-dark")):
            with browsers.serving(Path(folder) / theme) as server:
                for name in sys.argv[1:] or PICTURES:
                    camera = Camera(browser, server, dark=theme == "dark")
                    PICTURES[name](camera)
                    camera.shoot(f"{name}{ending}")
                    camera.page.close()


if __name__ == "__main__":
    main()
