"""One project being worked on: every edit, undo, autosave; no user interface inside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from modurob import (
    DockingError,
    Model,
    ModuleType,
    ModurobError,
    Organism,
    StateError,
    WriteError,
    catalog,
)
from modurob.checks import is_number
from modurob.errors import choices
from modurob.gaits import GAITS
from modurob.modules.files import write_file
from modurob.organism.examples import emulation
from modurob.scenario.exports import ExportRequest
from modurob.scenario.gait_files import gait_fields
from modurob.scenario.scenario import Scenario, model_of
from modurob.scenario.settings import PATHS, TIME, WALKING, RunRecord, RunSettings
from modurob.studio import edits, exports, keyframes, project, subtrees
from modurob.studio.folder import Folder, fingerprint
from modurob.studio.keyframes import KeyFrame
from modurob.studio.live_session import Live
from modurob.studio.project import History, HistoryStep, Project
from modurob.studio.runs import Runner, clipped_pose, scenario_of
from modurob.studio.saver import Saver
from modurob.walking.zoo import HINGES, ZOO, gait_file, zoo_body

FIRST = ("backbone", "scout", "superbot", "superbot_light")  # of the palette
MOST_POINTS = 200  # that are taken of a run
ONE_STEP_S = 1.0  # between equal edits that are undone together
ORIGIN_BEHIND = "The studio has kept everything; Ctrl+S writes it to the file it was opened from."
Listener = Callable[[str], Any]


class SaveState(NamedTuple):
    """State of saving a project: a few words, and the reason if it is not saved."""

    words: str
    reason: str = ""


class Session:
    """A project, edited. Every change is sent to all listeners and written to the folder.

    Args:
        folder: Where projects are.
        name: Of the project.
        content: Of the project.

    Attributes:
        origin: A file that `save` writes to as well, as what it was: a project or an organism.
        notes: Sentences on the file it was made of, for the next page that shows it.
        runner: The run that is being computed.
        live: The robot of its modules as processes.
    """

    def __init__(self, folder: Folder, name: str, content: Project) -> None:
        self.folder, self.name, self.project = folder, name, content
        self.origin: Path | None = None
        self.notes: tuple[str, ...] = ()
        self._origin_format, self._origin_behind = project.FORMAT, False
        self._listeners: list[Listener] = []
        self._last_run = 0
        self._last_edit = ("", 0.0)  # of the pose, and its time [s]
        self._model: tuple[Organism | None, RunSettings, Model] | None = None
        self._stamp = folder.stamp(name)
        self.saver = Saver(self._write)
        self.runner, self.live = Runner(self), Live(self)

    def _write(self, content: bytes) -> None:
        """Write into the folder, unless another program wrote there."""
        found = self.folder.stamp(self.name)
        if found not in (None, self._stamp):
            raise WriteError(self._changed_elsewhere())
        self.folder.write(self.name, content)
        self._stamp = self.folder.stamp(self.name)

    def _changed_elsewhere(self) -> str:
        return (
            f"'{self.name}' was changed by another studio: to keep what is here, click its name "
            "above and save a copy"
        )

    def save_state(self) -> SaveState:
        """State of what is shown: on the disk, or the reason why not."""
        if self.saver.error:
            return SaveState("Not saved!", self.saver.error)
        if not self.saver.idle:
            return SaveState("Saving…")
        found = self.folder.stamp(self.name)
        if found is None and self._stamp is None:
            return SaveState("")  # a new project has nothing to lose
        if found is None:
            why = f"the file of '{self.name}' was removed; change something, or press Ctrl+S"
            return SaveState("Not saved!", why)
        if found != self._stamp:
            return SaveState("Not saved!", self._changed_elsewhere())
        if self.origin is not None and self._origin_behind:
            return SaveState(f"Saved, not yet in {self.origin.name}", ORIGIN_BEHIND)
        return SaveState("Saved")

    # -- looking at it -------------------------------------------------------------------------

    @property
    def organism(self) -> Organism | None:
        """The body as it is; None before the first module."""
        return self.project.organism

    def body(self) -> Organism:
        """The body, or an error that says what to do."""
        if self.organism is None:
            raise StateError("there is no module yet: place one in Build, or open an example")
        return self.organism

    @property
    def settings(self) -> RunSettings:
        """Of the next run."""
        return self.project.settings

    @property
    def runs(self) -> list[RunRecord]:
        """Those done and not removed, oldest first."""
        return [run for run in self.project.runs if not run.removed]

    @property
    def removed_runs(self) -> list[RunRecord]:
        """Those that can be brought back."""
        return [run for run in self.project.runs if run.removed]

    def model(self) -> Model:
        """The equations of the body, as the settings want them; kept until one of them changes."""
        body, settings, model = self._model or (None, None, None)
        if model is None or body is not self.organism or settings is not self.settings:
            model = model_of(self.body(), self.settings)
            self._model = (self.organism, self.settings, model)
        return model

    def configuration(self, model: Model, over: Mapping[str, float] | None = None) -> np.ndarray:
        """(nq,) the pose of the sliders, as far as the model has these joints. [rad, m]

        Args:
            over: Positions of joints that go before those of the sliders.
        """
        q, pose = model.neutral(), {**self.project.pose, **(over or {})}
        q[model.nq - len(model.joint_names) :] = [*clipped_pose(model, pose).values()]
        return q

    def scenario(self) -> Scenario:
        """The next run."""
        kinds = tuple(self.project.kinds.values())
        return scenario_of(self.body(), self.settings, self.project.pose, kinds, self.name)

    def export_request(self, shown: int | None = None) -> ExportRequest:
        """The body as it is, with the run of a number, or the last one."""
        record = None
        if self.runs:
            record = next((run for run in self.runs if run.number == shown), self.runs[-1])
        file = record and self.folder.runs(self.name) / f"{record.number}.npz"
        word = exports.word(self.name)
        return ExportRequest(self.name, word, self.body(), self.settings, file, record)

    def kinds(self) -> dict[str, ModuleType]:
        """The palette: the catalog's modules that can dock, then the user's own that can."""
        names = [*FIRST, *(name for name in catalog.names() if name not in FIRST)]
        built_in = {name: catalog[name] for name in names if not catalog[name].virtual}
        return built_in | {name: kind for name, kind in self.project.kinds.items() if kind.docks}

    def kind(self, name: str) -> ModuleType:
        """A kind of the palette."""
        found = self.kinds().get(name) or catalog.get(name)
        if found is None:
            raise StateError(f"no module kind '{name}': kinds are {choices(self.kinds())}")
        return found

    # -- telling others ------------------------------------------------------------------------

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(topic)` after each change: body, pose, settings, runs, kinds or name.

        The topics "run" and "live" are of a run's progress and a live robot: nothing changes.

        Returns:
            A function that ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    @property
    def watched(self) -> bool:
        """True if a page follows it."""
        return bool(self._listeners)

    def changed(self, topic: str) -> None:
        """Save the project and call all listeners."""
        self._origin_behind = True
        self._submit()
        self.notify(topic)

    def notify(self, topic: str) -> None:
        """Call all listeners."""
        for listener in tuple(self._listeners):
            listener(topic)

    def _submit(self) -> None:
        """Queue a copy of the project for saving: editing continues."""
        now = self.project
        history = History(now.history.now, [*now.history.past], [*now.history.future])
        held = Project(
            history, dict(now.kinds), dict(now.pose), now.settings, [*now.runs], now.source
        )
        self.saver.submit(lambda: project.to_bytes(held))

    # -- editing the body ----------------------------------------------------------------------

    def change(self, label: str, organism: Organism | None) -> None:
        """Any other body, as one step of the history."""
        self._last_edit = ("", 0.0)
        self.project.history.change(label, organism, dict(self.project.pose), self.settings)
        self._drop_locks()
        self.changed("body")

    def dock(
        self,
        kind: str,
        parent: str | None = None,
        port: int | str | None = None,
        child_port: int | str | None = None,
        turn: int | None = None,
    ) -> str:
        """One more module of a kind; returns its name."""
        name = edits.next_name(self.organism)
        organism = edits.dock(self.organism, parent, port, self.kind(kind), child_port, turn)
        self.change(f"dock {name}" if parent else f"place {name}", organism)
        return name

    def remove(self, *names: str) -> None:
        """Modules and all beyond them."""
        organism = self.body()
        rest = subtrees.without(organism, names)
        count = len(organism) - (0 if rest is None else len(rest))
        self.change(f"remove {names[0]}" if count == 1 else f"remove {count} modules", rest)

    def paste(self, clip: subtrees.Clip, parent: str) -> str:
        """A copy docked to a module; returns the name of its first module."""
        organism, name = subtrees.pasted(self.body(), clip, parent)
        self.change(f"paste {name}", organism)
        return name

    def repeat(self, module: str) -> str:
        """A module with all beyond it once more, at its own end; returns its name there."""
        organism, name = subtrees.repeated(self.body(), module)
        self.change(f"repeat {module}", organism)
        return name

    def mirror(self, module: str) -> str:
        """A module with all beyond it, mirrored; returns its name there."""
        organism, name = subtrees.mirrored(self.body(), module)
        self.change(f"mirror {module}", organism)
        return name

    def move(
        self,
        name: str,
        parent: str,
        port: int | str,
        child_port: int | str | None = None,
        turn: int | None = None,
    ) -> None:
        """A module with all beyond it to another port."""
        self.change(f"move {name}", edits.move(self.body(), name, parent, port, child_port, turn))

    def shift(self, name: str, step: int) -> None:
        """A module with all beyond it to the next or the previous port where it can dock."""
        self.change(f"move {name}", edits.shifted(self.body(), name, step))

    def turn(self, name: str) -> None:
        """A module docked in its next way."""
        self.change(f"turn {name}", edits.turned(self.body(), name))

    def rebase(self, name: str) -> None:
        """The same body seen from another base."""
        if name == self.body().base:
            raise DockingError(f"'{name}' is the base already")
        self.change(f"make {name} the base", self.body().rebase(name))

    def rename_module(self, old: str, new: str) -> None:
        """Another name for a module; poses, locks and velocities of its joints go with it."""
        organism = self.body().rename({old: new})

        def moved(joints: dict[str, float]) -> dict[str, float]:
            parts = ((name.partition("."), x) for name, x in joints.items())
            return {
                f"{new if owner == old else owner}{dot}{rest}": x for (owner, dot, rest), x in parts
            }

        self.project.pose = moved(self.project.pose)
        named = {field: moved(getattr(self.settings, field)) for field in ("locked", "rates")}
        self.project.settings = self.settings.edited(**named)
        self.change(f"rename {old} to {new}", organism)

    def edit_parameters(self, names: list[str], **parameters: Any) -> None:
        """Other numbers in the datasheets of some modules."""
        whose = names[0] if len(names) == 1 else f"{len(names)} modules"
        what = ", ".join(parameters)
        self.change(f"{what} of {whose}", self.body().with_parameters(*names, **parameters))

    def _remember(self, label: str, drags: bool = False) -> None:
        """Make a step of the history before the pose or the settings change.

        Args:
            drags: Whether equal edits that follow each other soon are one step, as of a slider.
        """
        last, now = self._last_edit, time.monotonic()
        if label != last[0] or now - last[1] > ONE_STEP_S:
            self.project.history.remember(label, dict(self.project.pose), self.settings)
        self._last_edit = (label, now) if drags else ("", 0.0)

    def undo(self) -> str | None:
        """Take the last edit of body, pose or settings back; returns what it was."""
        return self._gone(self.project.history.undo(self.project.pose, self.settings))

    def redo(self) -> str | None:
        """Do again what was taken back."""
        return self._gone(self.project.history.redo(self.project.pose, self.settings))

    def _gone(self, step: HistoryStep | None) -> str | None:
        if step is None:
            return None
        self._last_edit = ("", 0.0)
        if step.pose is not None:
            self.project.pose = dict(step.pose)
        if step.settings is not None:
            self.project.settings = step.settings
        self._drop_locks()
        self.changed("body")  # which is shown with its pose
        self.notify("settings")
        return step.label

    # -- the rest ------------------------------------------------------------------------------

    def add_kind(self, kind: ModuleType) -> None:
        """A module of the user's own, for the palette."""
        if kind.name in catalog:
            raise StateError(
                f"the catalog has a module '{kind.name}' already; give yours another name"
            )
        if not kind.docks:
            raise StateError(f"'{kind.name}' has no port to dock with")
        self.project.kinds[kind.name] = kind
        self.changed("kinds")

    def set_pose(self, **joints: float) -> None:
        """Set the positions of some joints. [rad, m]"""
        for name, value in joints.items():
            if not is_number(value):
                raise StateError(f"the position of '{name}' must be a number, got {value!r}")
        self._remember(f"pose of {', '.join(joints)}" if len(joints) == 1 else "pose", True)
        self.project.pose.update(joints)
        self.changed("pose")

    def drag(self, body: str, point: list[float], target: list[float]) -> None:
        """Move the joints so that a point of a body comes as near to a place as they can.

        Args:
            point: (3,) in the body's frame. [m]
            target: (3,) in the world. [m]
        """
        pose, _ = next(self._reached(body, point, [target]))
        self.set_pose(**pose)

    def draw_path(self, body: str, point: list[float], path: list[list[float]]) -> float:
        """Make a path that was drawn for a point of a body the motion of the next run.

        Args:
            point: (3,) in the body's frame. [m]
            path: (n, 3) places in the world. [m]

        Returns:
            The largest distance along an axis from the path to what the joints can reach. [m]
        """
        found = [*self._reached(body, point, keyframes.along(path))]
        times = np.linspace(0.0, self.settings.duration, len(found)).round(6).tolist()
        frames = [KeyFrame(time, pose) for time, (pose, _) in zip(times, found, strict=True)]
        self.set_pose(**frames[0].pose)
        self.edit_settings(points=keyframes.rows(frames), motion=self._motion_through_points())
        return max(off for _, off in found)

    def _reached(
        self, body: str, point: list[float], targets: Iterable[Any]
    ) -> Iterator[tuple[dict[str, float], float]]:
        """Poses with a point of a body near places, each from the one before, and how far off."""
        model = self.model()
        if self.settings.base == "free":  # the base stays where it is
            model = model_of(self.body(), self.settings.edited(base="fixed"))
        q = self.configuration(model)
        for target in targets:
            found = model.inverse_kinematics({body: target}, q, points={body: point}, restarts=0)
            q, joints = found.q, found.q[model.joint_slice_q].tolist()
            yield dict(zip(model.joint_names, joints, strict=True)), float(found.residual)

    def reset_pose(self) -> None:
        """All joints at zero."""
        if self.project.pose:
            self._remember("all to zero")
        self.project.pose.clear()
        self.changed("pose")

    def reach_pose(self) -> None:
        """Make the pose of the sliders the target of the next run, which starts at zero."""
        target = {name: x for name, x in clipped_pose(self.model(), self.project.pose).items() if x}
        if not target:
            raise StateError("all joints are at zero: pose the body as it shall end first")
        self.edit_settings(target=target, motion="quintic")
        self.reset_pose()

    def edit_settings(self, **changes: Any) -> None:
        """Other settings for the next run."""
        settings = project.short_enough(self.settings.edited(**changes))
        if changes.get("locked") and self.organism is not None:
            model_of(self.organism, settings)  # raises an error that lists the joints
        if settings != self.settings:
            self._remember(_named(changes))
        self.project.settings = settings
        self._drop_locks()
        self.changed("settings")

    def lock(self, joint: str) -> None:
        """Hold a joint where its slider is."""
        model = self.model()
        model.joint_index(joint)  # raises an error that lists the joints
        position = clipped_pose(model, self.project.pose)[joint]
        self.edit_settings(locked={**self.settings.locked, joint: position})

    def unlock(self, joint: str) -> None:
        """Let a joint move again."""
        rest = {name: x for name, x in self.settings.locked.items() if name != joint}
        self.edit_settings(locked=rest)

    def emulate(self, robot: str) -> None:
        """Hold the roll joints of all SuperBots, so that they move as another robot's modules."""
        self.edit_settings(locked=emulation(self.body(), robot))

    def _drop_locks(self) -> None:
        """Forget locks of joints that the body no longer has."""
        locked = self.settings.locked
        if locked and self.organism is not None:
            with suppress(ModurobError):  # of another setting, which is told when it is used
                free = model_of(self.organism, self.settings.edited(locked={})).joint_names
                rest = {joint: x for joint, x in locked.items() if joint in free}
                self.project.settings = self.settings.edited(locked=rest)

    def prepare_walk(self) -> None:
        """Set what a walk on the ground needs.

        A body of the zoo gets the gait that was tuned for it unless another one is chosen; any
        other body keeps its gait, or gets a wave.
        """
        now, new, body = self.settings, project.NEW_SETTINGS, self.body()
        given = WALKING | {"motion": now.motion if now.motion in GAITS else new.motion}
        if (now.motion, now.gait) == (new.motion, new.gait):
            for name, walker in ZOO.items():
                if walker.build() == body:
                    given = walker_settings(name)
                    break
        self.edit_settings(**given)

    def take_points(self) -> None:
        """The joints of the last run as the motion of the next one."""
        run = self.export_request().run()
        if len(run.parts) > 1 or run.model.joint_names != self.model().joint_names:
            raise StateError("the last run has other joints than this body: run it again first")
        rows = keyframes.spread(len(run.t), MOST_POINTS)
        places = run.q[rows][:, run.model.joint_slice_q].T
        columns = {TIME: run.t[rows], **dict(zip(run.model.joint_names, places, strict=True))}
        points = {name: tuple(values.tolist()) for name, values in columns.items()}
        self.edit_settings(points=points, motion="recorded")

    def keep_keyframe(self, time: float | None) -> None:
        """Keep the pose of the sliders at a time, as a point of the motion. [s]"""
        if not is_number(time):
            raise StateError("a keyframe needs a time: type the seconds")
        frame = KeyFrame(float(time or 0.0), clipped_pose(self.model(), self.project.pose))
        points = keyframes.with_frame(self.settings.points, frame)
        motion = self._motion_through_points()
        duration = max(self.settings.duration, frame.time)
        self.edit_settings(points=points, motion=motion, duration=duration)

    def _motion_through_points(self) -> str:
        """The motion through points that is chosen, else a spline."""
        return self.settings.motion if self.settings.motion in PATHS else "spline"

    def remove_keyframe(self, time: float) -> None:
        """Forget the keyframe at a time."""
        self.edit_settings(points=keyframes.without(self.settings.points, time))

    def show_keyframe(self, time: float) -> None:
        """Move the sliders to the keyframe at a time."""
        for frame in keyframes.frames(self.settings.points):
            if frame.time == time:
                self.set_pose(**frame.pose)

    def add_run(self, run: RunRecord) -> None:
        """A run that was done."""
        self.project.runs.append(run)
        self.changed("runs")

    def edit_run(self, number: int, **changes: Any) -> None:
        """Another title for a run, or `removed`: its files stay, and it can be brought back."""
        if not any(run.number == number for run in self.project.runs):
            raise StateError(f"there is no run {number} in this project any more")
        self.project.runs[:] = [
            run.edited(**changes) if run.number == number else run for run in self.project.runs
        ]
        self.changed("runs")

    def delete_removed_runs(self) -> None:
        """Delete the runs that were removed, with their files."""
        for run in self.removed_runs:
            for file in self.folder.runs(self.name).glob(f"{run.number}.*"):
                file.unlink(missing_ok=True)
        self.project.runs[:] = self.runs
        self.changed("runs")

    def next_run(self) -> int:
        """A new number for a run."""
        last = max((run.number for run in self.project.runs), default=0)
        self._last_run = max(self._last_run, last) + 1
        return self._last_run

    def save(self) -> Path:
        """Write all now, also to the file it was opened from; a `WriteError` if that fails."""
        if self.origin is not None:
            self._write_origin(self.origin)
            self._origin_behind = False
        self._submit()
        self.saver.flush()
        if self.saver.error:
            raise WriteError(self.saver.error)
        return self.origin or self.folder.file(self.name)

    def set_origin(self, file: Path) -> None:
        """Have `save` write to a file as well, as what it is now."""
        self.origin, self._origin_format = file, project.format_of(file)
        self._origin_behind = project.read(file).organism != self.organism

    def _write_origin(self, file: Path) -> None:
        """Write to the file it was opened from, unless another program changed it."""
        if file.exists() and fingerprint(file) != self.project.source:
            raise WriteError(
                f"{file}: changed by another program since it was opened; to keep what is here, "
                "click its name above and save a copy"
            )
        if self._origin_format == project.FORMAT:
            write_file(file, project.to_bytes(self.project))
        else:
            self.body().save(file)
        self.project.source = fingerprint(file)

    def rename(self, name: str) -> None:
        """Another name; the file and the runs go with it."""
        if self.runner.busy:
            raise StateError("a run is being computed: wait for it or cancel it, then rename")
        self.saver.flush()
        if self.saver.error:
            raise WriteError(self.saver.error)
        self.folder.rename(self.name, name)
        self.name = name
        self.changed("name")


def walker_settings(name: str) -> dict[str, Any]:
    """Settings with which a body of the zoo walks."""
    return {"hinges": HINGES, **WALKING, **zoo_body(name).fields, **gait_fields(gait_file(name))}


def _named(changes: dict[str, Any]) -> str:
    """An edit of settings in words."""
    names = [name.replace("_", " ") for name in changes]
    return f"set {names[0]}" if len(names) == 1 else f"set {len(names)} fields"
