"""The web server: pages, and files for the browser."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import threading
import traceback
import webbrowser
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import RedirectResponse
from nicegui import Client, ui
from nicegui import app as nicegui_app
from nicegui.client import ClientConnectionTimeout

from modurob import DatasheetError, ModurobError, Organism, __version__
from modurob.checks import is_loopback
from modurob.drawing import charts, picture
from modurob.drawing.picture import DPI as PICTURE_DPI
from modurob.scenario.bodies import example
from modurob.studio.folder import Folder
from modurob.studio.guard import Guard, addresses
from modurob.studio.page import Page, unforeseen
from modurob.studio.studio import Studio

HERE = Path(__file__).parent
ICON = HERE / "web" / "icon.svg"
LANGUAGE = "en-US"
MOST_PAGES = 100  # open at once: each needs memory
MOST_DRAWN = 150  # modules of a body with a picture in the list of projects
CONNECT_S = 30.0  # in which a browser that has asked for a page has to open its socket
RECONNECT_S = 20.0  # in which a tab may lose its connection and come back


def build(studio: Studio) -> FastAPI:
    """The app of a studio; one for a process, as NiceGUI has one app."""
    api = FastAPI(title="modurob studio", docs_url=None, redoc_url=None, openapi_url=None)

    @api.get("/api/health")
    def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__, "sessions": len(studio.sessions)}

    @api.get("/api/examples/{name}.png")
    def example_picture(name: str) -> Response:
        try:
            return Response(_thumbnail(name), media_type="image/png")
        except ModurobError as error:
            return Response(str(error), status_code=404, media_type="text/plain")

    @api.get("/api/projects/{name}.png")
    def project_picture(name: str) -> Response:
        try:
            stamp = studio.folder.stamp(name)
            found = _project_thumbnail(studio.folder, name, stamp)
        except ModurobError:  # deleted since the list was drawn
            found = ICON.read_bytes()
        return Response(found, media_type="image/svg+xml" if found[:1] == b"<" else "image/png")

    @api.get("/api/runs/{project}/{number}.{ending}")
    def run_file(project: str, number: int, ending: str) -> Response:
        try:
            path = studio.folder.runs(project) / f"{number:d}.{ending}"
        except ModurobError as error:
            return Response(str(error), status_code=404, media_type="text/plain")
        kinds = {"bin": "application/octet-stream", "json": "application/json"}
        if ending not in kinds or not path.is_file():
            return Response("There is no such run.", status_code=404, media_type="text/plain")
        headers = {"cache-control": "no-cache"}
        return Response(path.read_bytes(), media_type=kinds[ending], headers=headers)

    nicegui_app.add_static_files("/studio", HERE / "web")

    @api.get("/")
    def start() -> Response:
        return RedirectResponse(f"/project/{quote(studio.reserve())}", status_code=303)

    @ui.page("/project/{name}", title="modurob studio")
    async def project(name: str) -> None:
        await _project_page(studio, name)

    nicegui_app.on_exception(_report)
    nicegui_app.on_shutdown(studio.end)
    ui.run_with(
        api,
        title="modurob studio",
        favicon=HERE / "web" / "icon.svg",
        language=LANGUAGE,
        reconnect_timeout=RECONNECT_S,
        show_welcome_message=False,
        tailwind=False,
    )
    return api


@lru_cache(maxsize=32)
def _thumbnail(name: str) -> bytes:
    """A small PNG of an example."""
    return _drawn(example(name).shown_body())


@lru_cache(maxsize=256)
def _project_thumbnail(folder: Folder, name: str, stamp: object) -> bytes:
    """A small PNG of a project's body as of its last write; the icon where none is drawn."""
    organism = folder.read(name).organism
    with contextlib.suppress(DatasheetError):  # modules without shapes
        if organism is not None and len(organism) <= MOST_DRAWN:
            return _drawn(organism)
    return ICON.read_bytes()


def _drawn(organism: Organism) -> bytes:
    drawn = picture(organism, labels=False, axes=False, size=240)
    return charts.rendered(drawn, dpi=PICTURE_DPI)


async def _project_page(studio: Studio, name: str) -> None:
    sheet = f"/studio/studio.css?{__version__}"  # browsers keep it: not that of another version
    ui.add_head_html(f'<link rel="stylesheet" href="{sheet}">')
    client = ui.context.client
    if len(Client.instances) > MOST_PAGES:
        _broken(f"{MOST_PAGES} pages are open already: close some, and reload this one")
        return
    try:
        session = studio.open(name)
    except ModurobError as error:
        _broken(str(error))
        return
    page = Page(studio, session, client)
    client.on_delete(page.leave)
    page.build()
    try:
        await client.connected(timeout=CONNECT_S)
    except ClientConnectionTimeout:  # no browser asked for it
        if not client.is_deleted:
            client.delete()
    if client.is_deleted:
        return
    page.start()
    with contextlib.suppress(TimeoutError):  # a browser that is busy gets its theme another time
        theme = await ui.run_javascript("localStorage.getItem('modurob-theme')", timeout=20)
        page.bar.set_theme({"True": True, "False": False}.get(theme or ""))


def _broken(text: str) -> None:
    """A project that cannot be opened: show the reason, and offer a new one."""
    with ui.element("main").classes("welcome"), ui.element("div").classes("welcome-card"):
        ui.html("<h2>This project cannot be opened</h2>", sanitize=False)
        ui.label(text).classes("bad-note").props("role=alert data-testid=broken")
        ui.label("The file is as it was. Open another project, or start a new one.").classes("note")
        ui.button("Start a new project", on_click=lambda: ui.navigate.to("/"), color=None).props(
            "unelevated no-caps"
        ).classes("primary")


def _report(error: Exception) -> None:
    """Something we did not foresee, in the handler of an event."""
    traceback.print_exception(error)
    with contextlib.suppress(RuntimeError):  # where no page is concerned, there is no one to inform
        unforeseen(error)


def serve(
    studio: Studio,
    door: socket.socket,
    *,
    path: str = "/",
    token: str | None = None,
    browser: bool = True,
    show: Callable[[str], Any] = print,
) -> None:
    """Run a studio until it is interrupted.

    Args:
        door: Where it listens; see `guard.open_door`.
        path: What the browser shows first.
        show: Called with each line for the user.
    """
    host, port = door.getsockname()[:2]
    guarded = Guard(build(studio), port, token, local=is_loopback(host))
    here, others = addresses(host, port)
    rest = path + (f"?token={quote(token)}" if token else "")
    url = f"{here}{rest}"
    show(f"modurob studio: {url}")
    if others:
        show(f"for other machines: {others}{rest}")
        show(
            "warning: there is no TLS, so the token and the projects cross the network in plain "
            "text; outside of a network you trust, use an SSH tunnel to 127.0.0.1 instead"
        )
    show(f"projects are in {studio.folder.path}; Ctrl+C ends the studio")
    server = uvicorn.Server(
        uvicorn.Config(
            guarded,
            log_level="warning",
            lifespan="on",
            timeout_graceful_shutdown=2,
            proxy_headers=False,  # else a program of this machine guesses tokens from any address
        )
    )
    # what is cut off by Ctrl+C is no error
    logging.getLogger("uvicorn.error").addFilter(lambda record: not server.should_exit)
    if browser:
        threading.Timer(1.0, webbrowser.open, [url]).start()
    gc.freeze()  # what was imported stays: to look through it again and again costs clicks time
    try:
        with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
            server.run(sockets=[door])
    finally:
        studio.end()
