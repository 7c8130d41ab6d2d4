"""All sessions of one server, and the ways to open a project."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

from modurob import FileError, StateError, catalog
from modurob.scenario.bodies import example
from modurob.scenario.presets import preset
from modurob.scenario.settings import RunSettings
from modurob.studio import imports
from modurob.studio import project as projects
from modurob.studio.folder import Folder, checked, fingerprint
from modurob.studio.imports import Imported
from modurob.studio.project import History, Project, SavedBody
from modurob.studio.session import Session, walker_settings
from modurob.studio.subtrees import Clip
from modurob.walking.zoo import zoo_body

RESERVED_S = 60.0  # of a name for its page
MOST_RESERVED = 100  # names at once


class Studio:
    """Open projects by name, kept in a folder. Two tabs on one project share its session."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.sessions: dict[str, Session] = {}
        self.clip: Clip | None = None  # that was copied last, in any project
        self._reserved: dict[str, float] = {}

    def session(self, name: str) -> Session:
        """The session of a project, opened if need be."""
        if name not in self.sessions:
            self.sessions[name] = Session(self.folder, name, self.folder.read(name))
        return self.sessions[name]

    def open(self, name: str) -> Session:
        """A project by its name; one that is not there is new."""
        if name in self.sessions or self.folder.has(name):
            return self.session(name)
        self._reserved.pop(name, None)
        return self.new(name)

    def new(self, wanted: str = "organism", content: Project | None = None) -> Session:
        """A new project; its file comes with the first change."""
        name = self.free_name(wanted)
        session = Session(self.folder, name, content or Project())
        self.sessions[name] = session
        if content is not None:
            session.changed("body")
        return session

    def free_name(self, wanted: str = "organism") -> str:
        """A name that is free."""
        name = wanted = self.folder.clean(wanted)
        number = 1
        while self._taken(name):
            number += 1
            name = f"{wanted} {number}"
        return name

    def reserve(self) -> str:
        """A name for a page that will open soon; it is reserved in the meantime."""
        now = time.monotonic()
        recent = [(n, t) for n, t in self._reserved.items() if now - t < RESERVED_S]
        self._reserved = dict(recent[-MOST_RESERVED:])
        name = self.free_name()
        self._reserved[name] = now
        return name

    def _taken(self, name: str) -> bool:
        return name in self.sessions or name in self._reserved or self.folder.has(name)

    def _free(self, name: str) -> str:
        """The name, if it is valid and free."""
        if self._taken(checked(name)):
            raise FileError(f"there is a project '{name}' already; choose another name")
        return name

    def new_from_example(self, name: str) -> Session:
        """A new project with a body of the gallery."""
        chosen = example(name)
        content = Project(history=History(SavedBody(chosen.shown_body())))
        content.settings = content.settings.edited(hinges=chosen.hinges)
        return self.new(name.replace("_", " "), content)

    def new_from_walker(self, name: str) -> Session:
        """A new project with a body of the zoo, its gait and the ground."""
        content = Project(history=History(SavedBody(zoo_body(name).build())))
        content.settings = content.settings.edited(**walker_settings(name))
        return self.new(f"{name} walks", content)

    def new_from_preset(self, name: str) -> Session:
        """A new project with the body and settings of a preset's first run."""
        scenario = next(iter(preset(name).build().values()))
        fields = {field: getattr(scenario, field) for field in RunSettings.model_fields}
        content = Project(history=History(SavedBody(scenario.organism)), pose=dict(scenario.pose))
        content.settings = RunSettings(**fields)
        return self.new(name, content)

    def open_file(self, path: Path) -> Session:
        """A project for a file given on the command line; saving writes to the file, too.

        Edits that were not saved to the file are found again as long as the file is the same.
        """
        mark, wanted = fingerprint(path), self.folder.clean(path.name.split(".")[0])
        for entry in self.folder.entries():
            if entry.name.split(" ")[0] != wanted.split(" ")[0]:
                continue
            if projects.source_of(self.folder.file(entry.name)) == mark:
                session = self.session(entry.name)
                session.set_origin(path)
                return session
        content = projects.read(path)
        content.source = mark
        content.runs.clear()  # their files stayed elsewhere
        session = self.new(wanted, content)
        session.set_origin(path)
        return session

    def upload(self, name: str, content: bytes) -> Session:
        """A new project from a file's name and bytes."""
        return self.new_from_import(name, imports.read(name, content))

    def new_from_import(self, name: str, found: Imported) -> Session:
        """A new project with the content of a file; one without a body has its modules."""
        content = found.project or Project()
        content.kinds |= {kind.name: kind for kind in found.kinds if kind.name not in catalog}
        session = self.new(name.split(".")[0], content)
        if found.runs:
            self.folder.write_runs(session.name, found.runs)
        session.notes = found.notes
        return session

    def duplicate(self, name: str) -> str:
        """A copy of a project with its runs; returns the name of the copy."""
        return self.copy(self.session(name), self.free_name(f"{name} copy")).name

    def delete(self, name: str) -> Path:
        """Move a project and its runs to the folder of deleted ones; returns that folder."""
        session = self.sessions.get(name)
        if session is not None and (session.watched or session.runner.busy):
            raise StateError(f"'{name}' is open in a tab, or a run is computed: close it first")
        self.sessions.pop(name, None)
        if session is not None:
            session.saver.flush()
        return self.folder.delete(name)

    def rename(self, session: Session, name: str) -> None:
        """Give a project another name."""
        if name == session.name:
            return
        self._free(name)
        old = session.name
        session.rename(name)
        self.sessions.pop(old, None)
        self.sessions[name] = session

    def copy(self, session: Session, name: str) -> Session:
        """The project as it is, with its runs, under a second name."""
        content = replace(session.project, source=None)  # the file stays with the first one
        self.folder.write(self._free(name), projects.to_bytes(content))
        self.folder.copy_runs(session.name, name)
        return self.session(name)

    def end(self) -> None:
        """Write what is left of all projects, and switch off what is live."""
        for session in tuple(self.sessions.values()):
            session.saver.flush()
            session.live.close()

    def close(self, session: Session) -> None:
        """Write what is left, and let it go once no page shows it and no run is computed."""
        session.saver.flush()
        if session.watched:
            return
        if session.live.on:
            threading.Thread(target=session.live.close).start()  # it may wait for processes
        if session.runner.busy:
            return
        session.runner.worker.close()
        if session.origin is None and self.sessions.get(session.name) is session:
            del self.sessions[session.name]
