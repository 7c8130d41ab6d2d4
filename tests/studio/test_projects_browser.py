"""Files are dropped on the page; projects have pictures, are found, duplicated and deleted."""

from modurob import examples
from modurob.interop import write_urdf

# A file dropped in the middle of the window, as a person does.
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const fire = (kind, target) => target.dispatchEvent(
    new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data }));
  fire("dragenter", document.body);
  return new Promise((done) => requestAnimationFrame(() => {
    const at = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    for (const kind of ["dragenter", "dragover"]) fire(kind, at);
    requestAnimationFrame(() => {
      fire("drop", document.elementFromPoint(innerWidth / 2, innerHeight / 2)); done(); });
  }));
}"""


def test_urdf_is_dropped_and_projects_are_found_duplicated_and_deleted(tab, tmp_path):
    tab.show("crab", examples.crab())
    write_urdf(examples.snake(3).model("physical"), tmp_path / "drop.urdf")
    tab.page.evaluate(DROP, ["drop.urdf", (tmp_path / "drop.urdf").read_text()])
    tab.page.wait_for_url("**/project/drop", wait_until="commit")
    tab.wait("window.modurob?.stage?.bodies.cast?.modules.length === 1")
    tab.saved()

    tab.click("open")
    tab.find("open-drop").wait_for()
    tab.fill("search-projects", "DROP")
    tab.wait("document.querySelectorAll('.project-row').length === 1")
    tab.wait("document.querySelector('.project-row img').naturalWidth > 0")
    tab.click("copy-drop")
    tab.find("open-drop copy").wait_for()
    tab.click("delete-drop")  # the one that is open
    tab.click("delete-drop-ok")
    tab.wait("document.querySelector('[data-testid=open-problem]').innerText.includes('is open')")
    tab.click("delete-drop copy")
    tab.click("delete-drop copy-ok")
    tab.find("open-drop copy").wait_for(state="detached")
    assert [*tab.server.folder.glob("drop*.modurob.json")] == [
        tab.server.folder / "drop.modurob.json"
    ]

    # what is no such file is told, and the project stays
    tab.page.keyboard.press("Escape")
    tab.page.locator(".q-dialog").wait_for(state="detached")
    tab.page.evaluate(DROP, ["bad.json", '{"format": "song"}'])
    assert "This file cannot be opened. bad.json: its format is 'song'" in tab.problem()
    assert tab.name == "drop"
