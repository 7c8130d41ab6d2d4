"""``modurob studio``: build, understand and move organisms in the browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import click

from modurob import StateError
from modurob.cli import output
from modurob.cli.characters import echo

EXAMPLE = """\b
Examples:
  modurob studio
  modurob studio crab.json
  modurob studio --port 0 --no-browser --folder projects
"""
PORT = 8350


@click.command("studio", epilog=EXAMPLE)
@click.argument("file", required=False, metavar="[FILE]")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
              help="Port to listen at; 0 for any that is free.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--folder", metavar="FOLDER",
              help="Folder of the projects.  [default: the user's data folder]")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen at; one that others can reach needs --token.")  # fmt: skip
@click.option("--token", help="Secret that the address must contain.")
def command(
    file: str | None,
    port: int,
    no_browser: bool,
    folder: str | None,
    host: str,
    token: str | None,
) -> None:
    """Open the studio: build organisms, see their equations, simulate and control them.

    FILE is a project of the studio or an organism that `modurob new` wrote; without one, the
    studio starts empty. Unless --host says otherwise, only this machine can reach it.
    """
    output.check_path("FILE", file)
    output.check_path("--folder", folder)
    if find_spec("nicegui") is None:
        raise StateError("the studio needs NiceGUI: pip install 'modurob[studio]'")
    from modurob.studio.folder import Folder, usual_folder
    from modurob.studio.guard import open_door
    from modurob.studio.studio import Studio

    studio = Studio(Folder(usual_folder() if folder is None else Path(folder)))
    path = "/" if file is None else f"/project/{quote(studio.open_file(Path(file)).name)}"

    with open_door(host, port, token) as door:
        from modurob.studio.server import serve  # takes a second: all that can be wrong goes first

        serve(studio, door, path=path, token=token, browser=not no_browser, show=echo)
