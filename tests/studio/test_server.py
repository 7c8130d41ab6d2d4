"""The server of the studio, without a port: small pictures, and words at its start."""

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import ClassVar

import pytest

from modurob import Organism, __version__, catalog, examples
from modurob.drawing.picture import AXIS, DPI

pytest.importorskip("nicegui")

import httpx
from nicegui import Client, core, ui

from modurob.studio import server
from modurob.studio.folder import Folder
from modurob.studio.project import History, Project, SavedBody, to_bytes
from modurob.studio.studio import Studio

PNG = b"\x89PNG"


def test_projects_have_a_small_picture_as_of_their_last_write_or_the_icon(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(server, "_drawn", lambda body: drawn.append(len(body)) or PNG)
    monkeypatch.setattr(server, "MOST_DRAWN", 3)
    folder, icon = Folder(tmp_path), server.ICON.read_bytes()
    assert icon.startswith(b"<svg")
    bodies = {"three": examples.snake(3), "four": examples.snake(4), "none": None}
    for name, body in bodies.items():
        folder.write(name, to_bytes(Project(History(SavedBody(body)))))
    found = {name: server._project_thumbnail(folder, name, folder.stamp(name)) for name in bodies}
    assert found == {"three": PNG, "four": icon, "none": icon}
    server._project_thumbnail(folder, "three", folder.stamp("three"))
    assert drawn == [3]  # kept
    folder.write("three", to_bytes(Project(History(SavedBody(examples.snake(2))))))
    server._project_thumbnail(folder, "three", folder.stamp("three"))
    assert drawn == [3, 2]


def test_a_small_picture_has_neither_names_nor_axes(monkeypatch):
    drawn = []
    monkeypatch.setattr(server.charts, "rendered", lambda figure, dpi: drawn.append(figure))
    server._drawn(examples.snake(3))
    (figure,) = drawn
    assert not [text for axes in figure.axes for text in axes.texts if text.get_text()]
    assert not [line for axes in figure.axes for line in axes.lines if line.get_color() == AXIS]
    pixels = figure.get_size_inches() * DPI
    assert max(pixels) == pytest.approx(240)


def test_a_body_without_shapes_has_the_icon(tmp_path):
    bare = catalog["scout"].model_copy(update={"shapes": (), "name": "bare"})
    folder = Folder(tmp_path)
    folder.write("bare", to_bytes(Project(History(SavedBody(Organism.start(bare, "m0"))))))
    assert server._project_thumbnail(folder, "bare", None) == server.ICON.read_bytes()


@pytest.mark.parametrize(
    ("host", "token", "browser", "lines"),
    [
        (
            "127.0.0.1", None, True,
            ["modurob studio: http://127.0.0.1:8350/project/a"],
        ),
        (
            "192.168.0.7", "a long secret", False,
            [
                "modurob studio: http://192.168.0.7:8350/project/a?token=a%20long%20secret",
                "for other machines: http://192.168.0.7:8350/project/a?token=a%20long%20secret",
                "warning: there is no TLS",
            ],
        ),
    ],
)  # fmt: skip
def test_a_server_tells_its_address_serves_at_its_door_and_writes_what_is_left(
    tmp_path, monkeypatch, host, token, browser, lines
):
    studio, door = Studio(Folder(tmp_path)), SimpleNamespace(getsockname=lambda: (host, 8350, 0, 0))
    said, opened, ran, guards, checks = [], [], [], [], []

    class Timer:
        def __init__(self, seconds, action, arguments):
            self.action, self.arguments = action, arguments
            assert seconds == 1.0  # the server is there by then

        def start(self):
            opened.append(self.arguments[0])

    class Server:
        should_exit = False

        def __init__(self, config):
            self.config = config

        def run(self, sockets):
            ran.append((self.config, sockets))
            raise KeyboardInterrupt

    monkeypatch.setattr(server, "build", lambda studio: "app")
    monkeypatch.setattr(server, "Guard", lambda *args, **named: guards.append((args, named)))
    uvicorn = SimpleNamespace(Config=lambda app, **options: options, Server=Server)
    monkeypatch.setattr(server, "uvicorn", uvicorn)
    monkeypatch.setattr(server, "threading", SimpleNamespace(Timer=Timer))
    frozen: list[bool] = []
    monkeypatch.setattr(server, "gc", SimpleNamespace(freeze=lambda: frozen.append(True)))
    log = SimpleNamespace(addFilter=checks.append)
    monkeypatch.setattr(server, "logging", SimpleNamespace(getLogger=lambda name: log))
    ended = []
    monkeypatch.setattr(studio, "end", lambda: ended.append(True))
    server.serve(
        studio, door, path="/project/a", token=token, browser=browser, show=said.append
    )  # fmt: skip
    assert len(said) == len(lines) + 1
    assert all(line.startswith(start) for line, start in zip(said, lines, strict=False))
    assert said[-1] == f"projects are in {tmp_path}; Ctrl+C ends the studio"
    address = lines[0].removeprefix("modurob studio: ")
    assert opened == ([address] if browser else [])
    assert guards == [(("app", 8350, token), {"local": host == "127.0.0.1"})]
    ((config, sockets),) = ran
    assert sockets == [door]
    assert config["proxy_headers"] is False  # a header could tell any address of a sender
    assert config["timeout_graceful_shutdown"] == 2  # [s]: pages keep their sockets open
    assert frozen == [True]  # else clicks wait for collections of what was imported
    assert inspect.signature(server.serve).parameters["browser"].default is True
    assert ended == [True]
    (check,) = checks
    assert check(None)
    Server.should_exit = True
    assert not check(None)  # what is cut off by Ctrl+C is no error


# -- the page of a project -------------------------------------------------------------------------


@pytest.fixture
def visit(tmp_path, monkeypatch):
    """Opens the page of a project for a browser: texts, head, and whether it was let go."""

    def run(name, answers=True, theme=None):
        async def javascript(code, timeout):
            assert (code, timeout) == ("localStorage.getItem('modurob-theme')", 20)
            if theme is TimeoutError:
                raise TimeoutError
            return theme

        async def main():
            monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
            monkeypatch.setattr(server, "Page", Shown)
            monkeypatch.setattr(ui, "run_javascript", javascript)
            client = Client(ui.page("/robot"), request=None)

            async def connected(self, timeout):
                assert timeout >= 10  # [s] that a busy browser may take
                if not answers:
                    raise server.ClientConnectionTimeout(client)

            monkeypatch.setattr(Client, "connected", connected)
            with client:
                await server._project_page(Studio(Folder(tmp_path)), name)
                texts = [e.text for e in client.elements.values() if isinstance(e, ui.label)]
                head = client.head_html
            deleted = client.is_deleted
            if not deleted:
                client.delete()
            return texts, head, deleted

        with ThreadPoolExecutor(1) as other:  # a browser's loop may run in this thread
            return other.submit(asyncio.run, main()).result()

    return run


class Shown:
    """A page that tells what happens to it."""

    told: ClassVar[list[object]] = []

    def __init__(self, studio, session, client):
        self.bar = SimpleNamespace(set_theme=self.told.append)
        self.told[:] = [session.name]

    def build(self):
        self.told.append("build")

    def start(self):
        self.told.append("start")

    def leave(self):
        self.told.append("leave")


@pytest.mark.parametrize(
    ("theme", "dark"), [("True", [True]), ("False", [False]), (None, [None]), (TimeoutError, [])]
)
def test_a_page_starts_when_its_browser_is_there_with_the_theme_of_the_last_time(
    visit, theme, dark
):
    _, head, deleted = visit("robot", theme=theme)
    assert Shown.told == ["robot", "build", "start", *dark, "leave"]
    assert f"/studio/studio.css?{__version__}" in head
    assert not deleted


def test_a_page_that_no_browser_asks_for_is_let_go(visit):
    _, _, deleted = visit("robot", answers=False)
    assert deleted
    assert Shown.told == ["robot", "build", "leave"]


def test_a_project_that_cannot_be_opened_says_why_and_offers_a_new_one(visit, monkeypatch):
    Shown.told.clear()
    texts, _, _ = visit("a/b")
    assert "a/b" in texts[0]
    assert texts[1:] == ["The file is as it was. Open another project, or start a new one."]
    monkeypatch.setattr(server, "MOST_PAGES", len(Client.instances) + 1)
    texts, _, _ = visit("robot")
    assert texts == []
    Shown.told.clear()
    monkeypatch.setattr(server, "MOST_PAGES", len(Client.instances))
    texts, _, _ = visit("robot")  # one more
    assert texts[0].endswith("pages are open already: close some, and reload this one")
    assert Shown.told == []


def test_errors_that_nobody_foresaw_are_printed_and_shown_where_there_is_a_page(
    monkeypatch, capsys
):
    shown = []
    monkeypatch.setattr(server, "unforeseen", shown.append)
    error = ValueError("a slip")
    server._report(error)
    assert shown == [error]
    assert "ValueError: a slip" in capsys.readouterr().err
    monkeypatch.setattr(server, "unforeseen", lambda error: {}[error])
    with pytest.raises(KeyError):
        server._report(error)

    def nowhere(error):
        raise RuntimeError("no page is concerned")

    monkeypatch.setattr(server, "unforeseen", nowhere)
    server._report(error)


# -- files for the browser -------------------------------------------------------------------------


class Files:
    """Asks a server for files, without a network."""

    def __init__(self, app, awaited):
        self._transport, self._awaited = httpx.ASGITransport(app), awaited

    def get(self, path):
        async def asked():
            async with httpx.AsyncClient(transport=self._transport, base_url="http://x") as client:
                return await client.get(path)

        return self._awaited(asked())


@pytest.fixture
def web(tmp_path, monkeypatch, awaited):
    """A browser without a page: it asks the server for files only."""
    told = SimpleNamespace(
        add_static_files=lambda *given: None, on_exception=lambda act: None,
        on_shutdown=lambda act: None,
    )  # fmt: skip
    monkeypatch.setattr(server, "nicegui_app", told)
    monkeypatch.setattr(ui, "page", lambda *given, **named: lambda function: function)
    monkeypatch.setattr(ui, "run_with", lambda *given, **named: None)
    studio = Studio(Folder(tmp_path))
    return studio, Files(server.build(studio), awaited)


def test_the_app_serves_its_files_reports_errors_and_ends_with_the_server(tmp_path, monkeypatch):
    asked: dict[str, object] = {}

    def heard(name):
        return lambda *given, **named: asked.update({name: given, **named})

    names = ("add_static_files", "on_exception", "on_shutdown")
    monkeypatch.setattr(server, "nicegui_app", SimpleNamespace(**{x: heard(x) for x in names}))
    monkeypatch.setattr(ui, "page", lambda *given, **named: heard("page"))
    monkeypatch.setattr(ui, "run_with", heard("app"))
    studio = Studio(Folder(tmp_path))
    app = server.build(studio)
    assert asked["app"] == (app,)
    assert asked["add_static_files"] == ("/studio", server.HERE / "web")
    assert (asked["on_exception"], asked["on_shutdown"]) == ((server._report,), (studio.end,))
    assert (asked["reconnect_timeout"], asked["tailwind"]) == (20, False)  # styles are our own
    assert asked["show_welcome_message"] is False
    assert asked["favicon"].is_file()


def test_the_server_tells_that_it_is_well_and_leads_to_a_new_project(web):
    studio, browser = web
    assert browser.get("/api/health").json() == {
        "status": "ok", "version": __version__, "sessions": 0
    }  # fmt: skip
    answer = browser.get("/")
    assert answer.status_code == 303
    name = answer.headers["location"].removeprefix("/project/").replace("%20", " ")
    assert not studio.folder.has(name)
    assert browser.get("/").headers["location"] != answer.headers["location"]  # another one
    for page in ("/docs", "/redoc", "/openapi.json"):
        assert browser.get(page).status_code == 404


def test_pictures_are_those_of_examples_and_projects_or_the_icon(web, monkeypatch):
    studio, browser = web
    monkeypatch.setattr(server, "_drawn", lambda body: PNG + str(len(body)).encode())
    server._thumbnail.cache_clear()
    answer = browser.get("/api/examples/crab.png")
    assert (answer.headers["content-type"], answer.content) == ("image/png", PNG + b"6")
    server._thumbnail.cache_clear()
    answer = browser.get("/api/examples/lobster.png")
    assert answer.status_code == 404
    assert answer.text.startswith("no example 'lobster'")
    studio.folder.write("a b", to_bytes(Project(History(SavedBody(examples.snake(3))))))
    answer = browser.get("/api/projects/a%20b.png")
    assert (answer.headers["content-type"], answer.content) == ("image/png", PNG + b"3")
    answer = browser.get("/api/projects/gone.png")
    assert (answer.headers["content-type"], answer.content) == (
        "image/svg+xml", server.ICON.read_bytes()
    )  # fmt: skip


def test_runs_are_given_by_their_number_and_nothing_else_is(web):
    studio, browser = web
    folder = studio.folder.runs("crab")
    folder.mkdir()
    for name in ("1.bin", "1.json", "1.npz"):
        (folder / name).write_bytes(name.encode())
    for name, kind in (("1.bin", "application/octet-stream"), ("1.json", "application/json")):
        answer = browser.get(f"/api/runs/crab/{name}")
        assert (answer.status_code, answer.text) == (200, name)
        assert answer.headers["content-type"] == kind
        assert answer.headers["cache-control"] == "no-cache"  # a number may be given again
    for path in ("crab/1.npz", "crab/2.json", "lobster/1.json"):
        answer = browser.get(f"/api/runs/{path}")
        assert (answer.status_code, answer.text) == (404, "There is no such run.")
    answer = browser.get("/api/runs/..%5Cx/1.json")
    assert answer.status_code == 404
    assert answer.text != "There is no such run."  # it is no name
