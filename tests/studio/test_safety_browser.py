"""Bad input and strangers: a clear message each time, and the session intact."""

import http.client
import json
import shutil
from urllib.parse import urlsplit

from benchmarks import browser as browsers
from modurob import examples
from modurob.organism.files import to_document
from modurob.studio.guard import LARGEST_BODY


def upload(tab, path):
    """A file into the Open dialog; returns what it says."""
    tab.click("open")
    tab.page.locator("input[type=file]").set_input_files(path)
    problem = tab.find("open-problem")
    tab.wait("document.querySelector('[data-testid=open-problem]').innerText.length > 0")
    text = problem.inner_text()
    tab.page.keyboard.press("Escape")
    problem.wait_for(state="detached")
    return text


def test_files_that_are_no_projects_are_refused_with_a_reason(tab, tmp_path):
    tab.open(example="crab")
    broken, newer, large = (tmp_path / f"{name}.json" for name in ("broken", "newer", "large"))
    broken.write_text('{"format": "modurob-project", "version": 1, "organism": {')
    newer.write_text('{"format": "modurob-project", "version": 99}')
    large.write_bytes(b" " * (50 * 2**20))
    assert "broken.json: not valid JSON at line 1" in upload(tab, broken)
    assert "newer modurob" in upload(tab, newer)
    assert "At most 16 MB" in upload(tab, large)
    tab.modules(6)
    tab.cell(0, 2)
    tab.modules(7)


def test_a_shared_project_is_opened_by_another_studio(tab, tmp_path):
    tab.open(example="nine")
    tab.click("export")
    with tab.page.expect_download() as download:
        tab.click("export-project")
    shared = tmp_path / "shared.modurob.json"
    shutil.copy(download.value.path(), shared)
    tab.page.keyboard.press("Escape")
    tab.click("open")
    tab.page.locator("input[type=file]").set_input_files(shared)
    tab.page.wait_for_url("**/project/shared")
    tab.ready()
    tab.modules(9)


def test_projects_cannot_be_written_outside_of_their_folder(tab, server):
    tab.open(example="crab")
    tab.click("project")
    for name in ("../outside", "/etc/passwd", "a/../../b"):
        tab.fill("new-name", name)
        tab.click("rename-ok")
        tab.page.get_by_text(f"'{name}' is no name for a project").wait_for()
        assert "stay in their folder" in tab.text("name-problem")
    assert not [*server.folder.parent.glob("*.modurob.json")]


def test_a_project_on_disk_that_is_broken_is_told_and_left_alone(tab, server):
    file = server.folder / "damaged.modurob.json"
    file.write_text("{")
    tab.page.goto(f"{server.url}/project/damaged")
    tab.find("broken").wait_for()
    assert "not valid JSON" in tab.text("broken")
    assert file.read_text() == "{"
    file.unlink()


def test_a_malicious_module_runs_no_script(tab, tmp_path):
    """Names are checked when a file is read; free texts are shown as text."""
    document = to_document(examples.snake(2))
    document["modules"][1]["name"] = "<img src=x onerror=window.hacked=1>"
    document["dockings"][0]["child"] = document["modules"][1]["name"]
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(document))
    tab.open(example="crab")
    assert "no name for a module" in upload(tab, bad)
    document = to_document(examples.snake(2))
    kind = document["kinds"]["backbone"]
    kind["title"] = kind["source"] = "</script><img src=x onerror=window.hacked=1>"
    evil = tmp_path / "evil.json"
    evil.write_text(json.dumps(document))
    tab.click("open")
    tab.page.locator("input[type=file]").set_input_files(evil)
    tab.page.wait_for_url("**/project/evil")
    tab.ready()
    tab.modules(2)
    tab.cell(0, 1)
    tab.page.get_by_text("<img src=x").first.wait_for()
    tab.click("mode-understand")
    tab.find("aim").wait_for()
    assert tab.page.evaluate("window.hacked") is None


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


def test_with_a_token_only_who_has_it_comes_in(tabs, tmp_path):
    with browsers.serving(tmp_path, "--token", "open sesame") as server:
        assert ask(server)[0] == 401
        tab = tabs(server)
        tab.page.goto(server.opened)
        tab.ready()
        tab.click("blank")
        tab.cell(0, 0)
        tab.modules(1)
        tab.close()
