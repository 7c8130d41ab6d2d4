"""Make the pictures of the studio's guide anew: ``python -m benchmarks.studio_screenshots``.

They show the studio as it is: a server of its own, a headless Chromium, the same clicks each time.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import browser as browsers

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "studio"
SIZE = {"width": 1280, "height": 720}
LONG = 120_000  # [ms]
RICH = "localStorage.setItem('modurob-shadows', 'on')"  # also without a graphics card
THUMBNAILS = "[...document.querySelectorAll('.example img')].every((i) => i.naturalWidth > 0)"


class Camera:
    """A tab that is photographed."""

    def __init__(self, browser: Any, server: browsers.Server, dark: bool = False) -> None:
        self._browser, self.server = browser, server
        self.page = browser.new_page(viewport=SIZE, color_scheme="dark" if dark else "light")
        self.page.set_default_timeout(LONG)
        self.page.add_init_script(RICH)

    def open(self, project: str) -> None:
        """A project; one that is not there is new."""
        self.page.goto(f"{self.server.url}/project/{project}")
        self.page.wait_for_function("window.modurob?.stage?.state && window.modurob.plan")

    def example(self, name: str, project: str) -> None:
        """An example as a project."""
        self.open(project)
        self.click(f"example-{name}")
        self.page.wait_for_function("window.modurob?.stage?.bodies.cast")

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

    def run(self) -> None:
        """A run, stopped at a moment that shows something."""
        count = "document.querySelectorAll('.chip[data-testid^=run-]').length"
        before = self.page.evaluate(count)
        self.click("run")
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

    def shoot(self, name: str) -> None:
        """Take the picture when everything has come to rest."""
        self.page.wait_for_timeout(1500)
        self.page.screenshot(path=FOLDER / f"{name}.png")
        print(f"wrote {FOLDER / name}.png")


def main() -> None:
    """All pictures, or those whose names are given."""
    if why := browsers.missing():
        raise SystemExit(f"no pictures can be taken here: {why}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:] or [*PICTURES]
    with (
        tempfile.TemporaryDirectory() as folder,
        browsers.browsing() as browser,
        browsers.serving(Path(folder)) as server,
    ):
        for name in wanted:
            camera = Camera(browser, server, dark=name == "move")
            PICTURES[name](camera)
            camera.shoot(name)
            camera.page.close()


def welcome(camera: Camera) -> None:
    camera.open("new organism")
    camera.page.wait_for_function(THUMBNAILS)


def build(camera: Camera) -> None:
    camera.example("crab", "a")
    camera.page.wait_for_timeout(800)
    camera.cell(0, 2)


def understand(camera: Camera) -> None:
    camera.example("crab", "b")
    camera.click("mode-understand")
    camera.page.locator("[data-testid=aim] td[data-module=m3]").nth(2).hover()


def equations(camera: Camera) -> None:
    camera.example("double_pendulum", "c")
    camera.click("mode-understand")
    camera.click("part-equations")
    camera.page.wait_for_function("document.querySelector('[data-testid=formula] math')")
    camera.page.locator("[data-testid=formula] [data-joint]").first.hover()


def move(camera: Camera) -> None:
    camera.example("superbot_tree", "d")
    camera.click("mode-move")
    camera.fill("set-duration", "3")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.page.get_by_test_id("scrub").fill("470")


def see(camera: Camera) -> None:
    camera.example("crab", "e")
    camera.click("mode-move")
    camera.choose("set-controller", "PD with gravity compensation")
    camera.run()
    camera.choose("set-controller", "computed torque")
    camera.choose("set-estimator", "EKF")
    camera.page.get_by_text("Noise", exact=True).click()
    camera.fill("set-noise_q", "0.01")
    camera.page.wait_for_timeout(500)
    camera.run()
    camera.click("mode-see")
    camera.click("compare-1")
    camera.page.wait_for_function("window.modurob.run?.other")
    camera.click("plot-tau")
    camera.page.get_by_test_id("scrub").fill("380")


PICTURES = {
    "welcome": welcome,
    "build": build,
    "understand": understand,
    "equations": equations,
    "move": move,
    "see": see,
}


if __name__ == "__main__":
    main()
