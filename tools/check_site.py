"""Check the built documentation: `python tools/check_site.py`, after `make docs` has filled site/.

Every link and picture of the pages, and of the Markdown files at the top of the repository, has to
lead to a file and an anchor that are there; no page may load anything from elsewhere. Where
Chromium is installed, the search is tried on a page that is opened as a file. Addresses of the web
are not visited.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks import browser as browsers  # noqa: E402

SITE = ROOT / "site"
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
QUERY, ANSWER = "computed torque", "ComputedTorque"
PATIENCE_MS = 20_000


class Page(HTMLParser):
    """Anchors and links of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := given.get(key))}
        if tag == "a" and (target := given.get("href")):
            self.links.append(target)
        if tag in LOADED and (target := given.get(LOADED[tag])):
            self.loads.append(target)


def broken_links(site: Path) -> list[str]:
    """Links and loads of the pages that lead nowhere, one line each."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        if where.name == "404.html":  # its links are made for the root of a server
            continue
        for target in page.loads:
            if urlsplit(target).netloc:
                found.append(f"{where}: loads {target}")
        for target in page.links + page.loads:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.is_file():
                found.append(f"{where}: no file {target}")
            elif file in pages and unquote(parts.fragment) not in pages[file].anchors | {""}:
                found.append(f"{where}: no anchor {target}")
    return found


def broken_in_markdown(root: Path) -> list[str]:
    """Relative links of the Markdown files at the top of the repository that lead nowhere."""
    found = []
    for path in sorted(root.glob("*.md")):
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text):
            parts = urlsplit("".join(target))
            if not parts.scheme and parts.path and not (root / unquote(parts.path)).exists():
                found.append(f"{path.name}: no file {parts.path}")
    return found


def search_fails(site: Path) -> str | None:
    """What is wrong with the search of a page opened as a file; None where it answers."""
    from playwright.sync_api import Error

    with browsers.browsing() as browser:
        page = browser.new_page()
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("Control+k")
        try:
            page.get_by_placeholder("Search").press_sequentially(QUERY, timeout=PATIENCE_MS)
            page.get_by_text(ANSWER).first.wait_for(timeout=PATIENCE_MS)
        except Error as error:
            return f"search: no answer {ANSWER!r} to {QUERY!r}: {error.message.splitlines()[0]}"
    return None


def main() -> int:
    if not (SITE / "index.html").is_file():
        print("no site/index.html: run `make docs` first", file=sys.stderr)
        return 2
    found = broken_links(SITE) + broken_in_markdown(ROOT)
    if missing := browsers.missing():
        print(f"the search was not tried: {missing}")
    elif wrong := search_fails(SITE):
        found.append(wrong)
    for line in found:
        print(line, file=sys.stderr)
    pages = sum(1 for _ in SITE.rglob("*.html"))
    print(f"{pages} pages: {len(found)} broken links or features")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
