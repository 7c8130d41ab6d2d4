"""A studio and a browser for the tests; both are skipped where Chromium or NiceGUI is missing."""

import asyncio
import threading

import pytest

from benchmarks import browser as browsers

SIZE = {"width": 1280, "height": 720}
LONG = 45_000  # [ms] that anything may take: the machine may be busy with other tests
# Counts websocket messages inside the page: Playwright's own mirror would stall it.
COUNT = """
window.traffic = 0;
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...args) { super(...args); this.addEventListener("message", () => window.traffic++); }
  send(data) { window.traffic++; super.send(data); }
};
"""


@pytest.fixture(scope="session")
def awaited():
    """Runs a coroutine in a thread of its own: Playwright keeps a loop in this one."""

    def run(coroutine):
        kept = []

        def work():
            try:
                kept.append(asyncio.run(coroutine))
            except BaseException as error:
                kept.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if isinstance(kept[0], BaseException):
            raise kept[0]
        return kept[0]

    return run


@pytest.fixture(scope="session")
def needs_browser():
    why = browsers.missing()
    if why:
        pytest.skip(why)


@pytest.fixture(scope="session")
def server(needs_browser, tmp_path_factory):
    with browsers.serving(tmp_path_factory.mktemp("projects")) as running:
        yield running


@pytest.fixture(scope="session")
def chromium(needs_browser):
    """One profile for all tabs: what was loaded once is loaded from its cache."""
    with browsers.browsing() as browser:
        context = browser.new_context(viewport=SIZE, accept_downloads=True)
        context.add_init_script(COUNT)
        context.set_default_timeout(LONG)
        yield context


class Tab:
    """A page with the words that tests need; it remembers errors and strange requests."""

    def __init__(self, chromium, server, color_scheme="light"):
        self.server, self.page = server, chromium.new_page()
        self.page.emulate_media(color_scheme=color_scheme)
        self.errors, self.outside = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.on("request", self._asked)

    def _asked(self, request):
        own = (self.server.url, self.server.url.replace("http", "ws"), "data:", "blob:")
        if not request.url.startswith(own):
            self.outside.append(request.url)

    def open(self, project="", example=None):
        """A project by its name, a new one, or an example in a project of its own."""
        self.page.goto(f"{self.server.url}/project/{project}" if project else self.server.url)
        self.ready()
        if example:
            self.click(f"example-{example}")
            self.page.wait_for_function(
                "document.querySelectorAll('.welcome:not(.hidden)').length == 0"
            )
            self.wait("window.modurob?.stage?.bodies.cast")
        return self

    def ready(self):
        """Until the server has filled the page."""
        self.wait("window.modurob?.stage?.state && window.modurob?.plan")

    def wait(self, condition):
        self.page.wait_for_function(condition)

    def find(self, name):
        return self.page.get_by_test_id(name)

    def click(self, name):
        self.find(name).click()

    def text(self, name):
        return self.find(name).inner_text()

    def modules(self, count):
        """Until stage and plan show so many modules."""
        self.wait(
            f"""(window.modurob.stage.bodies.cast?.modules.length ?? 0) === {count} &&
            window.modurob.plan.plan.cells.length + window.modurob.plan.plan.hidden === {count}"""
        )

    def cell(self, x, y, **options):
        """Click a cell of the plan."""
        self.page.mouse.click(*self.at(x, y), **options)

    def at(self, x, y):
        """Pixels of a place on the plan."""
        return self.page.evaluate(
            """([x, y]) => { const svg = document.querySelector('.plan svg');
            const p = new DOMPoint(x, -y).matrixTransform(svg.getScreenCTM());
            return [p.x, p.y]; }""",
            [x, y],
        )

    def port(self, module, port):
        """Pixels of a free port in the 3D view, seen from outside."""
        return self.page.evaluate(
            """([module, port]) => { const S = window.modurob.stage;
            const V = S.camera.position.constructor;
            const k = S.state.ports.findIndex((p) => p.module === module && p.port === port);
            const M = S.camera.matrixWorld.clone(); S.ports.getMatrixAt(k, M);
            const p = new V().setFromMatrixPosition(M).project(S.camera);
            const r = S.canvas.getBoundingClientRect();
            return [r.x + (p.x + 1) * r.width / 2, r.y + (1 - p.y) * r.height / 2]; }""",
            [module, port],
        )

    def choose(self, name, option):
        """An option of a select."""
        self.click(name)
        self.page.get_by_role("option", name=option, exact=True).click()
        self.page.get_by_role("listbox").wait_for(state="hidden")

    def fill(self, name, value):
        """A number or word into a field."""
        field = self.page.locator(f"[data-testid={name}]")
        field.fill(str(value))
        field.blur()

    def run(self):
        """Press Run and wait until there is one run more; returns what the panel says."""
        count = "document.querySelectorAll('.chip[data-testid^=run-]').length"
        before = self.page.evaluate(count)
        self.click("run")
        self.wait(f"{count} > {before} && !document.querySelector('[data-testid=run]').disabled")
        return self.text("run-state")

    def problem(self):
        """The text of the notification below."""
        note = self.page.locator(".error-note").first
        note.wait_for()
        return note.inner_text()

    def close(self):
        """The end of the tab, unless it was there already: nothing may have gone wrong."""
        if not self.page.is_closed():
            errors, outside = [*self.errors], [*self.outside]
            self.page.close()
            assert not errors, errors
            assert not outside, outside


@pytest.fixture
def tabs(server, chromium):
    """Makes tabs; at the end none may have met an error or asked another host for anything."""
    opened = []

    def make(other=None, **options):
        opened.append(Tab(chromium, other or server, **options))
        return opened[-1]

    yield make
    for tab in opened:
        tab.close()


@pytest.fixture
def tab(tabs):
    return tabs()
