"""A studio and a browser for the tests; both are skipped where Chromium or NiceGUI is missing."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from benchmarks import browser as browsers
from modurob.studio import project as projects
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS, History, SavedBody
from modurob.studio.studio import Studio

SIZE = {"width": 1280, "height": 720}
LONG = 90_000  # [ms] that anything may take: the machine may be busy with other tests
LOOK = 50  # [ms] between two looks at something outside of the page
# [px] as the page sees it: a phone, a tablet, 1280 x 720 at 150 % and at 200 %, a large screen
SIZES = [(390, 844), (1024, 768), (853, 480), (640, 360), (1920, 1080)]
REDRAWS = 20  # looks at a new size of the window until it is drawn, a second apart
FAULTS = Path(__file__).with_name("faults.js").read_text()
# Half the pixels of the 3D view and the plots each way, drawn without a graphics card: layout and
# places stay. Few frames too: the eye does not fly (`reduced_motion`).
COARSE = 'Object.defineProperty(window, "devicePixelRatio", { get: () => 0.5 });'
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
        context = browser.new_context(viewport=SIZE, accept_downloads=True, reduced_motion="reduce")
        context.add_init_script(COUNT + COARSE)
        context.set_default_timeout(LONG)
        yield context


class Tab:
    """A page with the words that tests need; it remembers errors and strange requests."""

    def __init__(self, page, server):
        self.server, self.page = server, page
        self.errors, self.outside = [], []
        self._ears = {"pageerror": self._failed, "console": self._said, "request": self._asked}
        for event, ear in self._ears.items():
            page.on(event, ear)

    def _failed(self, error):
        self.errors.append(str(error))

    def _said(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, request):
        own = (self.server.url, self.server.url.replace("http", "ws"), "data:", "blob:", "file:")
        if not request.url.startswith(own):
            self.outside.append(request.url)

    # -- pages ---------------------------------------------------------------------------------

    def go(self, url):
        """A page of the studio, until the server has filled it."""
        self.page.goto(url, wait_until="commit")
        self.wait("window.modurob?.stage?.state && window.modurob?.plan")
        return self

    def open(self, project=""):
        """A project by its name, or a new one."""
        return self.go(f"{self.server.url}/project/{project}" if project else self.server.url)

    def blank(self):
        """A new project, its grid empty."""
        self.open().click("blank")
        return self

    def show(self, name, body, runs=(), **settings):
        """A body in a project of its own."""
        project = projects.Project(History(SavedBody(body)), runs=list(runs))
        project.settings = NEW_SETTINGS.edited(**settings)
        folder = Folder(self.server.folder)
        name = Studio(folder).free_name(name)
        folder.write(name, projects.to_bytes(project))
        self.open(name).modules(len(body))
        return self

    def judge(self):
        """The end of the test: nothing may have gone wrong."""
        for event, ear in self._ears.items():
            self.page.remove_listener(event, ear)
        assert not self.errors, self.errors
        assert not self.outside, self.outside

    # -- looking -------------------------------------------------------------------------------

    @property
    def name(self):
        """Of the project."""
        return self.text("project")

    def project(self):
        """The project as it is on disk."""
        return Folder(self.server.folder).read(self.name)

    def wait(self, condition):
        """Look now and then, not in every frame: frames that nothing else needs cost time."""
        self.page.wait_for_function(condition, polling=LOOK)

    def until(self, check):
        """Until something outside of the page is true."""
        deadline = time.monotonic() + LONG / 1000
        while not check():
            assert time.monotonic() < deadline, "it never came true"
            self.page.wait_for_timeout(LOOK)

    def find(self, name):
        return self.page.get_by_test_id(name)

    def text(self, name):
        return self.find(name).inner_text()

    def reads(self, name, text):
        """Until an element says exactly this."""
        self.wait(f"document.querySelector('[data-testid={name}]')?.innerText === {text!r}")

    def saved(self):
        """Until everything that is shown is on disk; the word may lag behind the body a little."""
        self.page.wait_for_timeout(300)
        self.reads("saved", "Saved")

    def modules(self, count):
        """Until stage and plan show so many modules; the page may still be loading."""
        self.wait(
            f"""(window.modurob?.stage?.bodies.cast?.modules.length ?? 0) === {count} &&
            window.modurob.plan?.plan.cells.length + window.modurob.plan?.plan.hidden === {count}"""
        )

    def rest(self):
        """Until the eye rests, and the stage is drawn as it is."""
        self.wait("!window.modurob.stage.eye.flight && !window.modurob.stage.stale")

    def problem(self):
        """The text of the notification below."""
        note = self.page.locator(".error-note").first
        note.wait_for()
        return note.inner_text()

    def at(self, x, y):
        """Pixels of a place on the plan."""
        return self.page.evaluate(
            """([x, y]) => { const svg = document.querySelector('.plan svg');
            const p = new DOMPoint(x, -y).matrixTransform(svg.getScreenCTM());
            return [p.x, p.y]; }""",
            [x, y],
        )

    def faults(self, sizes=SIZES):
        """What is cut off or covered, at every size of the window, with the size before each."""
        usual, found = self.page.viewport_size, []
        for width, height in sizes:
            self.page.set_viewport_size({"width": width, "height": height})
            faults = self.page.evaluate(FAULTS)
            for _ in range(REDRAWS):  # the page may still be drawn for the size before
                if not faults:
                    break
                self.page.wait_for_timeout(1000)
                faults = self.page.evaluate(FAULTS)
            found += [f"{width} x {height}: {fault}" for fault in faults]
        self.page.set_viewport_size(usual)
        return found

    # -- doing ---------------------------------------------------------------------------------

    def front(self):
        """Before the other tabs: Chromium hardly draws those behind."""
        self.page.bring_to_front()

    def click(self, name):
        self.find(name).click()

    def move(self):
        """The Move panel, with its sliders: what is below them has its place."""
        self.click("mode-move")
        self.page.locator(".slide").first.wait_for()

    def unfold(self, text):
        """A part of the settings, until it is open."""
        self.page.get_by_text(text, exact=True).click()
        self.wait("document.getAnimations().every((a) => a.playState !== 'running')")

    def cell(self, x, y, **options):
        """Click a cell of the plan, once it is shown at its size and no dialog covers it."""
        self.page.locator(".q-dialog").first.wait_for(state="detached")
        self.wait(
            """(({ $el, size }) => size[0] === $el.clientWidth && size[1] === $el.clientHeight)(
            window.modurob.plan)"""
        )
        self.page.mouse.click(*self.at(x, y), **options)

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

    def downloaded(self, name):
        """What a button gives: the name of a file, and its bytes."""
        with self.page.expect_download() as download:
            self.click(name)
        return download.value.suggested_filename, download.value.path().read_bytes()


@pytest.fixture(scope="session")
def page(chromium):
    """A page that is there: a new one costs more than leading this one elsewhere."""
    return chromium.new_page()


@pytest.fixture
def tabs(server, chromium, page):
    """Makes tabs; at the end none may have met an error or asked another host for anything."""
    opened = []

    def make(other=None):
        opened.append(Tab(chromium.new_page() if opened else page, other or server))
        return opened[-1]

    yield make
    for tab in opened[1:]:
        tab.page.close()
    page.goto("about:blank")
    for tab in opened:
        tab.judge()


@pytest.fixture
def tab(tabs):
    return tabs()


@pytest.fixture
def touch_tab(server, chromium):
    """A tab of a phone: no mouse, several fingers."""
    phone = {"width": SIZES[0][0], "height": SIZES[0][1]}
    context = chromium.browser.new_context(viewport=phone, has_touch=True, reduced_motion="reduce")
    context.add_init_script(COUNT + COARSE)
    context.set_default_timeout(LONG)
    tab = Tab(context.new_page(), server)
    yield tab
    tab.judge()
    context.close()
