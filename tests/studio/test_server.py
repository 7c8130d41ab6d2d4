"""The server of the studio, without a port: small pictures, and words at its start."""

from types import SimpleNamespace

import pytest

from modurob import Organism, catalog, examples
from modurob.drawing.picture import AXIS, DPI

pytest.importorskip("nicegui")

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
    monkeypatch.setattr(server, "gc", SimpleNamespace(freeze=lambda: None))
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
    assert ended == [True]
    (check,) = checks
    assert check(None)
    Server.should_exit = True
    assert not check(None)  # what is cut off by Ctrl+C is no error
