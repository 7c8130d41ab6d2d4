"""Bad input and strangers: a clear message each time, and the session intact."""

import http.client
import json
from urllib.parse import urlsplit

from modurob import examples
from modurob.organism.files import to_document
from modurob.studio.guard import LARGEST_BODY

SCRIPT = "<img src=x onerror=window.hacked=1>"


def upload(tab, path):
    """A file into the Open dialog; returns what it says."""
    tab.find("open-problem").wait_for(state="detached")
    tab.click("open")
    tab.page.locator(".q-dialog input[type=file]").set_input_files(path)
    tab.wait("document.querySelector('[data-testid=open-problem]').innerText.length > 0")
    text = tab.text("open-problem")
    tab.page.keyboard.press("Escape")
    return text


def opened(tab, path, count):
    """A file into the Open dialog; until its project is there."""
    tab.click("open")
    tab.page.locator(".q-dialog input[type=file]").set_input_files(path)
    tab.page.wait_for_url(f"**/project/{path.name.split('.')[0]}", wait_until="commit")
    tab.wait("window.modurob?.stage?.state && window.modurob?.plan")
    tab.modules(count)


def test_what_is_no_project_and_what_is_no_name_is_refused_with_a_reason(tab, tmp_path):
    tab.show("crab", examples.crab())
    broken, newer, named, large = (
        tmp_path / f"{name}.json" for name in ("broken", "newer", "named", "large")
    )
    broken.write_text('{"format": "modurob-project", "version": 1, "organism": {')
    newer.write_text('{"format": "modurob-project", "version": 99}')
    document = to_document(examples.snake(2))
    document["modules"][1]["name"] = document["dockings"][0]["child"] = SCRIPT
    named.write_text(json.dumps(document))
    large.touch()
    with large.open("r+b") as file:
        file.truncate(50 * 2**20)
    assert "broken.json: not valid JSON at line 1" in upload(tab, broken)
    assert "newer modurob" in upload(tab, newer)
    assert "no name for a module" in upload(tab, named)
    assert "At most 16 MB" in upload(tab, large)

    # projects stay in their folder
    tab.find("open-problem").wait_for(state="detached")
    name = tab.name
    tab.click("project")
    for wish in ("../outside", "/etc/passwd", "a/../../b"):
        tab.fill("new-name", wish)
        tab.click("rename-ok")
        tab.page.get_by_text(f"'{wish}' is no name for a project").wait_for()
        assert "stay in their folder" in tab.text("name-problem")
    tab.page.keyboard.press("Escape")
    tab.find("name-problem").wait_for(state="detached")
    assert not [*tab.server.folder.parent.glob("*.modurob.json")]

    # and all is as it was
    assert tab.name == name
    assert tab.page.evaluate("window.hacked") is None
    tab.modules(6)
    tab.cell(0, 2)
    tab.modules(7)


def test_a_shared_project_is_opened_and_scripts_of_a_stranger_are_but_text(tab, tmp_path):
    tab.show("snake", examples.snake(3))
    tab.click("export")
    shared = tmp_path / "shared.modurob.json"
    shared.write_bytes(tab.downloaded("export-project")[1])
    tab.page.keyboard.press("Escape")
    tab.find("export-project").wait_for(state="detached")
    opened(tab, shared, 3)
    document = to_document(examples.snake(2))
    kind = document["kinds"]["backbone"]
    kind["title"] = kind["source"] = f"</script>{SCRIPT}"
    evil = tmp_path / "evil.json"
    evil.write_text(json.dumps(document))
    opened(tab, evil, 2)
    tab.cell(0, 1)
    tab.page.get_by_text("<img src=x").first.wait_for()
    tab.click("mode-understand")
    tab.find("aim").wait_for()
    assert tab.page.evaluate("window.hacked") is None


def test_a_project_on_disk_that_is_broken_is_told_and_left_alone(tab, server):
    file = server.folder / "damaged.modurob.json"
    file.write_text("{")
    tab.page.goto(f"{server.url}/project/damaged")
    tab.find("broken").wait_for()
    assert "not valid JSON" in tab.text("broken")
    assert file.read_text() == "{"
    file.unlink()


def ask(server, path="/api/health", **headers):
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


def test_strangers_are_refused_on_every_door(server):
    assert ask(server)[0] == 200
    assert ask(server, Host="evil.example")[0] == 403
    assert ask(server, Origin="http://evil.example")[0] == 403
    socket = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    socket["Sec-WebSocket-Key"] = "MDEyMzQ1Njc4OTAxMjM0NQ=="
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert ask(server, path, **socket, Origin="http://evil.example")[0] == 403
    assert ask(server, path, **socket, Origin=server.url)[0] == 101
    status, text = ask(server, "/", **{"Content-Length": str(LARGEST_BODY + 1)})
    assert status == 413
    assert "At most" in text
    for path in ("/api/runs/..%2F..%2Fetc/1.bin", "/api/runs/x/1.py", "/studio/../session.py"):
        assert ask(server, path)[0] == 404
