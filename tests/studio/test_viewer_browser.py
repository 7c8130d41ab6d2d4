"""The viewer in a browser: it draws and plays a run, and asks for nothing from outside."""

import io
import re

import numpy as np
from PIL import Image

from .test_viewer import walk

__all__ = ["walk"]  # a fixture


def picture(page):
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), dtype=int)


def test_a_browser_draws_it_and_plays_it(walk, chromium, tmp_path):
    run, ground = walk
    run.view(ground=ground).save(tmp_path / "walk.html")
    page, asked, wrong = chromium.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    try:
        page.goto(f"file://{tmp_path}/walk.html")
        page.wait_for_function(
            "window.modurob?.stage?.playback.active && window.modurob.plots?.charts.size"
        )
        page.get_by_test_id("play").click()
        seek = "t => { modurob.stage.playback.show(t); modurob.stage.rendered = 0; }"
        drawn = "modurob.stage.rendered > 0"
        page.evaluate(seek, 0.0)
        page.wait_for_function(drawn)
        first = picture(page)
        page.evaluate(seek, 0.3)
        page.wait_for_function(drawn)
        stage = page.locator(".stage-canvas").bounding_box()
        top, bottom = int(stage["y"]), int(stage["y"] + stage["height"])
        assert len(np.unique(first[top:bottom].reshape(-1, 3), axis=0)) > 50  # a body, a floor
        assert (
            np.mean(np.abs(picture(page) - first)[top:bottom].max(axis=-1) > 20) > 0.005
        )  # it moves
        assert page.locator(".plot canvas").count()
        assert "0.40 s" in page.get_by_test_id("time").inner_text()
        lines = "[...Array(12).keys()].map(k => ({name: `${k}`, t: [], y: []}))"
        tints = page.evaluate(
            f"modurob.plots.option({{lines: {lines}}}).series.map(s => s.lineStyle.color)"
        )
        # of other forms ECharts draws no line under the cursor
        assert all(re.fullmatch(r"hsl\([\d.]+, 65%, 50%\)", tint) for tint in tints)
    finally:
        page.close()
    assert not wrong
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
