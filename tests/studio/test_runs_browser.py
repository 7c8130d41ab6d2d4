"""Runs belong to the project: in every tab, compared, renamed, exported, removed, sorted."""

import io

import numpy as np

from modurob import Trajectory, examples
from modurob.studio import runs
from modurob.studio.folder import Folder
from modurob.studio.project import NEW_SETTINGS


def computed(server, name, body, *changes):
    """Runs with some settings each, in the folder of a project."""
    found = []
    for number, given in enumerate(changes, 1):
        settings = NEW_SETTINGS.edited(**{"duration": 0.1, **given})
        scenario = runs.scenario_of(body, settings, {})
        folder = Folder(server.folder).runs(name)
        request = runs.RunRequest(scenario, settings, folder, number)
        found.append(runs.perform(request, lambda done: None))
    return found


def menu(tab, number, item):
    tab.page.locator(f"[data-testid=more-{number}]:visible").click()
    tab.page.locator(".q-menu").get_by_text(item, exact=True).click()


def order(tab):
    """Numbers of the runs as they are listed."""
    chips = tab.page.locator(".chip.run:visible").all_inner_texts()
    return [int(text.split(":")[0]) for text in chips]


def test_runs_are_compared_renamed_exported_removed_and_sorted_in_every_tab(tabs):
    one, body = tabs(), examples.snake(2)
    changes = {"frequency": 0.5}, {"duration": 0.2}, {"frequency": 2.0}
    made = computed(one.server, "three", body, *changes)
    one.show("three", body, made)
    assert one.name == "three"
    two = tabs().open("three")
    two.click("mode-see")
    one.front()
    one.click("mode-see")
    tags = one.page.locator("[data-testid=tags-1]:visible").inner_text()
    assert tags == "duration 0.1, frequency 0.5"

    # plots first: the list is below them, and the run is chosen above
    one.page.locator(".plot canvas").first.wait_for()
    one.choose("see-other", f"1: {made[0].title}")
    table = one.find("comparison")
    table.get_by_text("frequency").wait_for()
    assert table.get_by_role("row").nth(1).inner_text().split() == [
        *("frequency", "2", "0.5", "-1.5")
    ]
    one.wait(  # in one look: the choice of a run to compare with draws the plots anew
        """(([plot, name]) => plot && name && plot.getBoundingClientRect().bottom
        <= name.getBoundingClientRect().top)(['.plot', '.chip.run'].map((css) =>
        [...document.querySelectorAll(css)].find((x) => x.offsetParent)))"""
    )

    # any run is exported again, also one that is not shown
    menu(one, 1, "Export…")
    _, data = one.downloaded("export-npz")
    npz = np.load(io.BytesIO(data))
    expected = Trajectory.load(Folder(one.server.folder).runs("three") / "1.npz")
    shown = Trajectory.load(Folder(one.server.folder).runs("three") / "3.npz")
    found = next(npz[key] for key in npz if key.endswith("q") and npz[key].ndim == 2)
    assert np.array_equal(found, expected.q)
    assert not np.array_equal(found, shown.q)
    one.page.keyboard.press("Escape")
    one.page.locator(".q-dialog").wait_for(state="detached")

    menu(one, 1, "Rename…")
    one.fill("run-name", "slow")
    one.click("run-name-ok")
    one.page.locator("[data-testid=run-1]:visible").get_by_text("1: slow, 0.1 s").wait_for()
    menu(one, 3, "Remove")
    one.page.locator("[data-testid=restore-3]:visible").wait_for()
    one.saved()
    two.front()  # the other tab has followed, and shows nothing that is gone
    two.page.locator("[data-testid=run-1]:visible").get_by_text("1: slow, 0.1 s").wait_for()
    assert two.page.evaluate("window.modurob.run") is None
    two.page.locator("[data-testid=restore-3]:visible").click()
    two.page.locator("[data-testid=run-3]:visible").wait_for()
    two.saved()
    assert [(run.title, run.removed) for run in two.project().runs] == [
        ("slow", False),
        *((run.title, False) for run in made[1:]),
    ]
    assert order(two) == [3, 2, 1]
    for words, sorted_ in {"by name": [2, 3, 1], "longest first": [2, 1, 3]}.items():
        two.page.locator("[data-testid=run-order]:visible").click()
        two.page.get_by_role("option", name=words, exact=True).click()
        two.until(lambda expected=sorted_: order(two) == expected)
