"""Forms of the Move panel: settings, numbers of modules, events during the run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from modurob import ModuleType, ModurobError
from modurob.modules.module_type import STRENGTH
from modurob.scenario.fields import FIELDS
from modurob.scenario.settings import BALANCE, RunSettings
from modurob.studio import edits
from modurob.studio.panels.panel import Redrawn, button, icon_button, note, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page

NUMBERS = {
    "mass": "Mass [kg]",
    "size": "Width [m]",
    "inertia": "Inertia [kg m²]",
    "viscous": "Viscous friction [N m s]",
    "coulomb": "Dry friction [N m]",
    "rotor_inertia": "Rotor inertia [kg m²]",
    "gear_ratio": "Gear ratio",
    "stiffness": "Joint spring [N m/rad]",
    "damping": "Damping of it [N m s/rad]",
    "max_effort": "Motor limit [N m]",
    "max_velocity": "Motor limit [rad/s]",
    "max_force": "Connector limit [N]",
    "max_torque": "Connector limit [N m]",
}
TYPING_MS = 600  # without a key until a text is read
LONG = ("points", "pushes")  # fields of several lines
FAULT_BUTTONS = {"die": "It dies", "freeze": "It freezes", "reboot": "It reboots"}


class SettingFields:
    """Fields that edit one setting each, and follow it when another tab edits it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._fields: dict[str, Any] = {}
        self._problems: dict[str, str] = {}
        self._filling = False

    def _now(self, name: str) -> Any:
        """The value that a field shows; a text for one that is typed."""
        value, session = getattr(self._page.session.settings, name), self._page.session
        write = FIELDS[name].write if name in FIELDS else None
        if write is None:
            return value
        try:
            return write(value, session.model())
        except ModurobError:  # no body yet, or none that can move
            return ""

    def _read(self, name: str, value: Any) -> Any:
        """The setting that was entered."""
        field = FIELDS.get(name)
        if field is None or field.read is None:
            return value
        return field.read(name, value or "", self._page.session.model())

    @property
    def problem(self) -> str:
        """The first entry that could not be taken; empty when there is none."""
        return next(iter(self._problems.values()), "")

    def declared(self, name: str) -> None:
        """A field as the table of fields declares it."""
        field = FIELDS[name]
        if field.choices:
            self.choice(name, field.label, {value: value for value in field.choices}, field.help)
        elif field.read is not None:
            made = (ui.textarea if name in LONG else ui.input)(field.label, value=self._now(name))
            made.props("autogrow" if name in LONG else "").style("grid-column: 1 / -1")
            self._add(name, made, field.help, delay_ms=TYPING_MS)
        elif isinstance(self._now(name), bool):
            self.switch(name, field.label)
        else:
            self.number(name, field.label, step=field.step)

    def number(self, name: str, label: str, *, step: float | None = None) -> None:
        """A number."""
        value = self._now(name)
        self._add(name, ui.number(label, value=value, step=step, format="%.6g"))

    def choice(self, name: str, label: str, options: Mapping[Any, str], tip: str = "") -> None:
        """One of several values."""
        value = self._now(name)
        field = ui.select(dict(options), value=value if value in options else None, label=label)
        self._add(name, field.props("options-dense"), tip)

    def text(self, name: str, label: str, tip: str = "") -> None:
        """A word."""
        self._add(name, ui.input(label, value=self._now(name)), tip)

    def switch(self, name: str, label: str) -> None:
        """Yes or no."""
        made = ui.switch(label, value=self._now(name)).style("grid-column: 1 / -1")
        self._add(name, made, outlined=False)

    def _add(
        self, name: str, field: Any, tip: str = "", outlined: bool = True, delay_ms: int = 250
    ) -> None:
        if outlined:
            field.props(f"dense outlined debounce={delay_ms}")
            field.without_auto_validation()  # which would take away what `_mark` shows
        if tip:
            with field:
                ui.tooltip(tip)
        field.on_value_change(lambda event: self._edit(name, event.value))
        self._fields[name] = test_id(field, f"set-{name}")

    def _edit(self, name: str, value: Any) -> None:
        empty = value is None and RunSettings.model_fields[name].default is not None
        if self._filling or empty:
            return
        problem = None
        if value != self._now(name):
            try:
                self._page.session.edit_settings(**{name: self._read(name, value)})
            except ModurobError as error:
                problem = str(error).partition(": ")[2][:90] or str(error)[:90]
                self._page.show_error(str(error))
                self._problems[name] = str(error)
        self._mark(name, problem)

    def _mark(self, name: str, problem: str | None) -> None:
        """Show at a field what is wrong with it; None when nothing is."""
        field = self._fields[name]
        if problem is None:
            self._problems.pop(name, None)
        if isinstance(field, ValidationElement):
            field.error = problem

    def enable(self, on: bool, *names: str) -> None:
        """Let some fields be edited, or not."""
        for name in names:
            self._fields[name].set_enabled(on)

    def fill(self) -> None:
        """Show the settings as they are."""
        self._filling = True
        for name, field in self._fields.items():
            if field.value != self._now(name) and not self._means_the_same(name, field.value):
                field.value = self._now(name)
                self._mark(name, None)
        self._filling = False

    def _means_the_same(self, name: str, text: Any) -> bool:
        """Return whether a text that was typed is the setting, in other words."""
        field = FIELDS.get(name)
        if field is None or field.read is None:
            return False
        try:
            changed = self._page.session.settings.edited(**{name: self._read(name, text)})
        except ModurobError:
            return False
        return getattr(changed, name) == getattr(self._page.session.settings, name)


class ModuleNumbers(Redrawn):
    """Numbers of the chosen module, or of all; empty fields stay as they are."""

    def __init__(self, page: Page) -> None:
        self.page = page
        super().__init__(self._form, lambda: (page.session.organism, page.selected))

    def _form(self) -> None:
        page, organism = self.page, self.page.session.organism
        if organism is None:
            return
        name = page.selected if page.selected in organism else None
        names = [name] if name else list(organism.modules)
        kinds = {organism.kind(each) for each in names}
        whose = f"of {name}" if name else f"of all {len(names)} modules"
        note(f"Numbers {whose}; choose a module in 3D to edit it alone.")
        fields = {}
        with ui.element("div").classes("fields"):
            for key, label in NUMBERS.items():
                values = {_value(kind, key) for kind in kinds}
                value = values.pop() if len(values) == 1 else None
                field = ui.number(label, value=value, format="%.6g").props("dense outlined")
                field.without_auto_validation()
                fields[key] = (test_id(field, f"parameter-{key}"), value)

        def apply() -> None:
            wanted = {k: f.value for k, (f, old) in fields.items() if f.value not in (None, old)}
            try:
                if wanted:
                    page.session.edit_parameters(names, **wanted)
            except ModurobError as error:
                page.show_error(str(error))
                for key in wanted:
                    fields[key][0].error = str(error)[:90]

        button("Apply", apply, "apply-parameters", "outline dense no-caps")


def _value(kind: ModuleType, key: str) -> float | None:
    """A number of a module type, where it has one."""
    if key in ("mass", "size"):
        return getattr(kind, key)
    if key == "inertia":
        massive = [body for body in kind.bodies if body.mass > 0]
        values = {massive[0].inertia[i][i] for i in range(3)} if len(massive) == 1 else set()
    elif key in STRENGTH:
        values = {getattr(port, key) for port in kind.ports}
    else:
        values = {getattr(joint, key) for joint in kind.joints}
    return values.pop() if len(values) == 1 else None


class EventsEditor(Redrawn):
    """Dockings, undockings and faults during a run, and buttons to add one."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._time: float | None = None  # that was typed for the next event [s]
        super().__init__(self._form, self._content)

    def _content(self) -> tuple[Any, ...]:
        page, settings = self.page, self.page.session.settings
        body = page.session.organism, page.selected, page.kind
        return *body, settings.events, settings.motion, settings.duration

    def _form(self) -> None:
        session = self.page.session
        organism = session.organism
        for k, event in enumerate(session.settings.events):
            with ui.element("div").classes("rowbar"):
                whom = event.module
                if event.what == "dock":
                    whom = f"{event.child} ({event.kind}) to {event.module}, side {event.port}"
                note(f"{event.time:g} s: {event.what} {whom}")
                icon_button("close", f"Remove event {k + 1}", partial(self._drop, k))
        if organism is None or len(organism) < 2:
            note("Dock a second module first.")
            return
        chosen = self.page.selected if self.page.selected in organism else organism.modules[-1]
        with ui.element("div").classes("fields"):
            module = ui.select(list(organism.modules), value=chosen, label="Module")
            module.props("dense outlined options-dense")
            at = round(session.settings.duration / 2, 2) if self._time is None else self._time
            time = ui.number("At [s]", value=at, on_change=self._keep_time)
            time.props("dense outlined")
        with ui.element("div").classes("row"):
            if session.settings.motion == BALANCE:
                for what, text in FAULT_BUTTONS.items():
                    button(text, partial(self._add, what, time, module), f"event-{what}")
                return
            button("Undock it", partial(self._add, "undock", time, module), "event-undock")
            dock = partial(self._dock, time, module)
            button(f"Dock a new {self.page.kind} to it", dock, "event-dock")

    def _keep_time(self, change: Any) -> None:
        self._time = change.value

    def _add(self, what: str, time: ui.number, module: ui.select, **more: Any) -> None:
        session = self.page.session
        known = [each.model_dump() for each in session.settings.events]
        event = {"what": what, "time": time.value, "module": module.value, **more}
        wanted = sorted([*known, event], key=lambda each: each["time"] or 0.0)
        self._time = None
        self.page.act(session.edit_settings, events=wanted)
        if len(session.settings.events) == len(known):  # refused: what was typed stays
            self._time = time.value

    def _dock(self, time: ui.number, module: ui.select) -> None:
        session = self.page.session
        organism, kind = session.body(), session.kind(self.page.kind)
        near, events = organism.kind(module.value), session.settings.events
        taken = {e.child for e in events}
        used = {e.port for e in events if e.what == "dock" and e.module == module.value}
        for port in organism.free_ports(module.value):
            if port not in used and edits.mating_ports(near, port, kind):
                number = len(organism)
                while f"m{number}" in organism or f"m{number}" in taken:
                    number += 1
                self._add(
                    "dock", time, module, port=port, kind=kind.name, child=f"m{number}",
                    child_port=edits.usual_port(near, port, kind),
                )  # fmt: skip
                return
        self.page.show_error(f"'{module.value}' has no free port that mates with a {kind.name}.")

    def _drop(self, k: int) -> None:
        rest = [e for i, e in enumerate(self.page.session.settings.events) if i != k]
        self.page.act(self.page.session.edit_settings, events=rest)
