"""README of the package, made by hatchling while it builds: an index has none of our files.

Relative links become plain text and pictures of ours are left out; addresses of the web stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


def without_relative_links(text: str) -> str:
    """Markdown that reads without the files of the repository."""
    return LINK.sub(r"\1", PICTURE.sub("", text))


class CustomMetadataHook(MetadataHookInterface):
    """The field `readme` of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        readme = {"content-type": "text/markdown", "text": without_relative_links(text)}
        metadata["readme"] = readme
