"""A studio that runs, and a browser that looks at it: for measurements, pictures and tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--disable-gpu",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    # whatever a page asks for, no other machine is there
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
PATIENCE = 60.0  # [s] for a server to start


def chromium() -> str | None:
    """The path of a browser; the variable CHROMIUM goes first."""
    given = os.environ.get("CHROMIUM")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str:
    """What is not there; empty when all is."""
    for package in ("nicegui", "playwright"):
        if find_spec(package) is None:
            return f"{package} is not installed: pip install 'modurob[studio]' playwright"
    return "" if chromium() else "there is no Chromium: install it, or set CHROMIUM to its path"


class Server(NamedTuple):
    """A running studio.

    Attributes:
        url: Without a path.
        opened: The whole address it printed.
    """

    url: str
    opened: str
    process: subprocess.Popen[str]
    folder: Path


def started(folder: Path, *options: str) -> Server:
    """A studio of its own on a free port."""
    command = [sys.executable, "-m", "modurob", "studio", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--folder", str(folder), *options], stdout=subprocess.PIPE, text=True
    )
    with process.stdout or contextlib.nullcontext() as lines:  # it prints nothing more than this
        opened = lines.readline().partition(": ")[2].strip() if lines else ""
        if lines:
            lines.readline()
    parts = urlsplit(opened)
    server = Server(f"{parts.scheme}://{parts.netloc}", opened, process, folder)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{server.url}/api/health?{parts.query}", timeout=5).close()
            return server
        time.sleep(0.05)
    raise RuntimeError("the studio did not start")


def stopped(server: Server) -> None:
    """End a studio as Ctrl+C does."""
    server.process.terminate()
    try:
        server.process.wait(15)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait(15)


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """A studio for a while."""
    server = started(folder, *options)
    try:
        yield server
    finally:
        stopped(server)


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    """A headless Chromium driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        # Playwright's driver, and the browser as its child, do not start without a home folder
        given = {} if _has_home() else {"HOME": home}
        with mock.patch.dict(os.environ, given):
            driver = sync_playwright().start()
        try:
            browser = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
            yield browser
            browser.close()
        finally:
            driver.stop()


def _has_home() -> bool:
    try:
        return Path.home().is_dir()
    except RuntimeError:  # neither a variable nor an entry in the list of users
        return False
