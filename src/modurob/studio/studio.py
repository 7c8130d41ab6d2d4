"""All sessions of one server: which projects are open, and how one is opened."""

from __future__ import annotations

import tempfile
from pathlib import Path

from modurob import ModuleType
from modurob.studio import project as projects
from modurob.studio.folder import Folder, fingerprint
from modurob.studio.gallery import example
from modurob.studio.history import History, Step
from modurob.studio.project import Project
from modurob.studio.session import Session


class Studio:
    """Open projects by name. Two tabs on one project share its session.

    Args:
        folder: Where projects are kept.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.sessions: dict[str, Session] = {}

    def session(self, name: str) -> Session:
        """The session of a project, opened if need be."""
        if name not in self.sessions:
            self.sessions[name] = Session(self.folder, name, self.folder.read(name))
        return self.sessions[name]

    def new(self, wish: str = "organism", content: Project | None = None) -> Session:
        """A new project; its file comes with the first change."""
        name = self.folder.free_name(wish)
        number = 1
        while name in self.sessions or self.folder.has(name):
            number += 1
            name = f"{self.folder.free_name(wish)} {number}"
        session = Session(self.folder, name, content or Project())
        self.sessions[name] = session
        if content is not None:
            session.changed("body")
        return session

    def new_from_example(self, name: str) -> Session:
        """A new project with a body of the gallery."""
        chosen = example(name)
        content = Project(history=History(Step("", chosen.make())))
        content.settings = content.settings.edited(hinges=chosen.hinges)
        return self.new(name.replace("_", " "), content)

    def open_file(self, path: Path) -> Session:
        """A project for a file given on the command line; saving writes to the file, too.

        Edits that were not saved to the file are found again as long as the file is the same.
        """
        mark, wish = fingerprint(path), path.name.split(".")[0]
        for entry in self.folder.entries():
            if entry.name.split(" ")[0] == wish.split(" ")[0]:
                session = self.session(entry.name)
                if session.project.source == mark:
                    session.origin = path
                    return session
        content = projects.read(path)
        content.source = mark
        content.runs.clear()  # their files stayed elsewhere
        session = self.new(wish, content)
        session.origin = path
        return session

    def upload(self, name: str, content: bytes) -> Session:
        """A new project from a file's name and bytes."""
        with _Temporary(name, content) as path:
            found = projects.read(path, where=name)
        found.runs.clear()
        return self.new(name.split(".")[0], found)

    def rename(self, session: Session, name: str) -> None:
        """Give a project another name; the old file goes."""
        if name == session.name:
            return
        session.saver.flush()
        old = session.name
        if self.folder.has(old):
            self.folder.copy(old, name)
        elif self.folder.has(name):
            self.folder.copy(old, name)  # says that the name is taken
        self.sessions.pop(old, None)
        session.name = name
        self.sessions[name] = session
        session.changed("name")
        self.folder.delete(old)

    def close(self, session: Session) -> None:
        """Nobody looks at it any more: write what is left and let it go."""
        session.saver.flush()
        if not session.watched and self.sessions.get(session.name) is session:
            del self.sessions[session.name]


def read_kind(name: str, content: bytes) -> ModuleType:
    """A datasheet from an uploaded file."""
    with _Temporary(name, content) as path:
        try:
            return ModuleType.from_file(path)
        except Exception as error:
            raise type(error)(str(error).replace(str(path), name)) from None


class _Temporary:
    """An uploaded file on disk, under a name of ours."""

    def __init__(self, name: str, content: bytes) -> None:
        self._ending = ".toml" if name.lower().endswith(".toml") else ".json"
        self._content = content

    def __enter__(self) -> Path:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / f"upload{self._ending}"
        path.write_bytes(self._content)
        return path

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
