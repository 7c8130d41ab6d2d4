"""Frames into files: GIF and PNG by Pillow, MP4 by ffmpeg."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from modurob.drawing.charts import INK, check_ending
from modurob.errors import FileError, StateError
from modurob.modules.files import write_file, writing

ENDINGS = (".gif", ".mp4")
FASTEST_GIF = 50  # frames a second; GIF counts hundredths of a second, players refuse one
COLORS = 128  # of a GIF's palette
MARGIN = 0.025  # of the width, around the time in the corner


def check(path: str | os.PathLike[str], fps: float) -> None:
    """Raise errors before the work, not after it."""
    ending = check_ending(path, "animations", ENDINGS)
    if not (np.isfinite(fps) and 0 < fps <= (FASTEST_GIF if ending == ".gif" else 240)):
        raise StateError(f"fps must lie between 0 and {FASTEST_GIF} for a GIF, got {fps!r}")
    if ending == ".mp4" and ffmpeg() is None:
        raise FileError(
            f"{path}: MP4 needs ffmpeg, which is not installed: pip install imageio-ffmpeg, "
            "or write a .gif"
        )


def ffmpeg() -> str | None:
    """The program's path: the system's, or the one that the package imageio-ffmpeg brings."""
    found = shutil.which("ffmpeg")
    if found is None:
        with contextlib.suppress(ImportError, RuntimeError):  # not installed; not for this system
            from imageio_ffmpeg import get_ffmpeg_exe

            found = get_ffmpeg_exe()
    return found


def write(path: str | os.PathLike[str], frames: Iterator[np.ndarray], fps: float) -> None:
    """An animation, as the file's ending says."""
    with writing(path):  # ffmpeg needs a folder of its own, on a disk that may be full too
        film = (_gif if Path(path).suffix.lower() == ".gif" else _mp4)(frames, fps)
    write_file(path, film)


def _gif(frames: Iterator[np.ndarray], fps: float) -> bytes:
    images = [Image.fromarray(frame) for frame in frames]
    # one palette for all frames, from a few of them: colors do not flicker
    some = images[:: max(1, len(images) // 6)]
    strip = Image.fromarray(np.concatenate([np.asarray(image) for image in some]))
    palette = strip.quantize(COLORS, method=Image.Quantize.MEDIANCUT)
    flat = [_with_palette(image, palette) for image in images]
    stream = io.BytesIO()
    flat[0].save(
        stream, format="GIF", save_all=True, append_images=flat[1:],
        duration=round(1000 / fps), loop=0, optimize=False,
    )  # fmt: skip
    return stream.getvalue()


def _with_palette(image: Image.Image, palette: Image.Image) -> Image.Image:
    """The nearest colors; Pillow looks them up in steps of four, so white is put back by hand."""
    colors = np.array(palette.getpalette()).reshape(-1, 3)
    white = int(np.argmax(colors.sum(axis=1)))
    colors[white] = 255
    found = np.array(image.quantize(palette=palette, dither=Image.Dither.NONE))
    found[(np.asarray(image) == 255).all(axis=-1)] = white
    result = Image.fromarray(found)
    result.putpalette(colors.ravel().tolist())
    return result


def _mp4(frames: Iterator[np.ndarray], fps: float) -> bytes:
    first = next(frames)
    height, width = first.shape[:2]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "film.mp4"
        command = [
            ffmpeg() or "ffmpeg", "-loglevel", "error", "-y",
            "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}",
            "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18",
            "-movflags", "+faststart", str(target),
        ]  # fmt: skip
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=complaints)
            try:
                _pipe(process, itertools.chain([first], frames))
            except BaseException:
                process.kill()
                raise
            finally:
                code = process.wait()
            complaints.seek(0)
            said = " ".join(complaints.read().decode("utf-8", "replace").split())
        if code != 0 or not target.is_file():
            raise OSError(f"ffmpeg failed: {said[:300] or code}")
        return target.read_bytes()


def _pipe(process: subprocess.Popen[bytes], frames: Iterable[np.ndarray]) -> None:
    stream = process.stdin
    if stream is None:
        return
    with contextlib.suppress(BrokenPipeError), stream:  # if it goes away, it says why
        for frame in frames:
            stream.write(frame.tobytes())


def write_png(path: str | os.PathLike[str], frames: Sequence[np.ndarray]) -> None:
    """Frames side by side."""
    stream = io.BytesIO()
    Image.fromarray(np.concatenate(frames, axis=1)).save(stream, format="PNG")
    write_file(path, stream.getvalue())


def stamped(frame: np.ndarray, text: str) -> np.ndarray:
    """The frame with a few words in its upper left corner."""
    image = Image.fromarray(frame)
    draw = ImageDraw.Draw(image)
    size = max(11.0, 0.03 * max(image.size))
    place = round(MARGIN * max(image.size))
    draw.text((place, place), text, fill=INK, font=ImageFont.load_default(size), stroke_width=0)
    return np.asarray(image)
