"""The gallery of the docs, made from the programs in examples/gallery.

    python tools/gallery.py                     docs/gallery.md, its pictures and the README's film
    python tools/gallery.py viewers FOLDER      the HTML files it leads to; part of `make docs`

Each program defines `view`, and `run` where something moves. The first line of its docstring is the
title. Viewers hold code of three.js and are therefore made anew instead of being committed.
"""

from __future__ import annotations

import ast
import contextlib
import runpy
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from modurob import Trajectory
from modurob.drawing import picture
from modurob.sim.output.film import Film

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "examples" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "images" / "gallery"
ORDER = ("crab", "docking", "caterpillar", "roller", "cross", "arm", "balance")
README_FILM = ROOT / "docs" / "images" / "walkers.webp"
IN_README = ("caterpillar", "cross", "roller")
FPS, WIDTH, HEIGHT, QUALITY = 12, 400, 300, 70
HEAD = """# Gallery

Every picture is made by the program below it, and leads to the same scene in three dimensions: turn
it, play it, drag the time. A viewer is one HTML file that needs no network, made by
`view.save("file.html")`. The programs are in `examples/gallery`; `python tools/gallery.py` makes
this page from them.
"""


def title_and_text(source: str) -> tuple[str, str, str]:
    """Title, description and code of a program."""
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or "").partition("\n\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    return title.rstrip("."), text, code


def page() -> str:
    """The Markdown of the page."""
    parts = [HEAD]
    for name in ORDER:
        title, text, code = title_and_text((PROGRAMS / f"{name}.py").read_text(encoding="utf-8"))
        block = textwrap.indent(f"```python\n{code}\n```", "    ")
        image = f'<img src="images/gallery/{name}.webp" alt="{title}" loading="lazy">'
        parts += [
            f"## {title}\n",
            f'<a class="shot" href="gallery/{name}.html">{image}</a>\n',
            f"{text}\n",
            f'??? example "Program"\n\n{block}\n',
        ]
    return "\n".join(parts)


def executed(name: str) -> dict[str, Any]:
    """What a program defines, run in the present folder."""
    return runpy.run_path(str(PROGRAMS / f"{name}.py"))


def frames(run: Trajectory) -> list[Image.Image]:
    """Frames of equal size with the body in the middle, on white."""
    film = Film(run, None, None, WIDTH)
    times = np.linspace(film.begin, film.end, round(FPS * (film.end - film.begin)))
    return [fitted(Image.fromarray(film.frame(t))) for t in times.tolist()]


def fitted(image: Image.Image) -> Image.Image:
    image.thumbnail((WIDTH, HEIGHT))
    canvas = Image.new("RGB", (WIDTH, HEIGHT), "white")
    canvas.paste(image, ((WIDTH - image.width) // 2, (HEIGHT - image.height) // 2))
    return canvas


def save(images: list[Image.Image], path: Path) -> None:
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=round(1000 / FPS), loop=0,
        quality=QUALITY, method=6,
    )  # fmt: skip
    print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size / 1024:.0f} kB", flush=True)


def make_page() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    moving = {}
    for name in ORDER:
        made = executed(name)
        if "run" in made:
            moving[name] = frames(made["run"])
            save(moving[name], PICTURES / f"{name}.webp")
        else:
            still = Path(f"{name}.png")
            picture(made["body"], still, q=made["q"], view=(-72.0, 24.0), labels=False)
            save([fitted(Image.open(still).convert("RGB"))], PICTURES / f"{name}.webp")
    strips = zip(*(moving[name] for name in IN_README), strict=True)
    save([Image.fromarray(np.concatenate(row, axis=1)) for row in strips], README_FILM)


def make_viewers() -> None:
    for name in ORDER:
        executed(name)
    print(f"{len(ORDER)} viewers")


def main() -> None:
    match sys.argv[1:]:
        case []:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                make_page()
        case ["viewers", folder]:
            Path(folder).mkdir(exist_ok=True)
            with contextlib.chdir(folder):
                make_viewers()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
