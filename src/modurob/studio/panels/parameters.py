"""Mass, length, inertia and friction of modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from modurob.studio.panels.panel import Redrawn, test_id

if TYPE_CHECKING:
    from modurob.studio.page import Page

NUMBERS = {
    "mass": "Mass [kg]",
    "size": "Width [m]",
    "inertia": "Inertia [kg m²]",
    "viscous": "Viscous friction [N m s]",
    "coulomb": "Dry friction [N m]",
}


class Parameters:
    """Numbers of the chosen module, or of all; empty fields stay as they are."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.form_part = Redrawn(self._form, lambda: (page.session.organism, page.selected))

    def _form(self) -> None:
        page, organism = self.page, self.page.session.organism
        if organism is None:
            return
        name = page.selected if page.selected in organism else None
        names = [name] if name else list(organism.modules)
        kinds = {organism.kind(each) for each in names}
        whose = f"of {name}" if name else f"of all {len(names)} modules"
        ui.label(f"Numbers {whose}; choose a module in 3D to edit it alone.").classes("note")
        fields = {}
        with ui.element("div").classes("fields"):
            for key, label in NUMBERS.items():
                values = {_value(kind, key) for kind in kinds}
                value = values.pop() if len(values) == 1 else None
                field = ui.number(label, value=value, format="%.6g").props("dense outlined")
                test_id(field, f"parameter-{key}")
                fields[key] = (field, value)

        def apply() -> None:
            wanted = {k: f.value for k, (f, old) in fields.items() if f.value not in (None, old)}
            if wanted:
                page.act(page.session.edit_parameters, names, **wanted)

        button = ui.button("Apply", on_click=apply).props("outline dense no-caps")
        test_id(button, "apply-parameters")

    def refresh(self) -> None:
        """Another body, or another module chosen."""
        self.form_part.refresh()


def _value(kind: object, key: str) -> float | None:
    """A kind's number, where it has one."""
    from modurob import ModuleType

    assert isinstance(kind, ModuleType)
    if key in ("mass", "size"):
        return getattr(kind, key)
    if key == "inertia":
        massive = [body for body in kind.bodies if body.mass > 0]
        moments = {massive[0].inertia[i][i] for i in range(3)} if len(massive) == 1 else set()
        return moments.pop() if len(moments) == 1 else None
    values = {getattr(joint, key) for joint in kind.joints}
    return values.pop() if len(values) == 1 else None
