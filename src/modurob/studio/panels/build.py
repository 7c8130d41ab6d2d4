"""Build: the palette, the plan, and the module that is chosen."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from nicegui import ui

from modurob import ModuleType, ModurobError
from modurob.studio import edits, imports, view_data
from modurob.studio.guard import LARGEST_BODY
from modurob.studio.panels.panel import (
    ModePanel,
    Redrawn,
    button,
    chip,
    mark,
    note,
    problem_line,
    test_id,
    title,
)
from modurob.studio.view import PlanView, TreeView
from modurob.studio.view_data import main_color

if TYPE_CHECKING:
    from modurob.studio.page import Page

AUTO = "auto"
VIEWS = {"plan": "Plan", "tree": "Tree"}


class BuildPanel(ModePanel):
    """Click, drag, right-click."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self.root.style("padding: 0; gap: 0")
        with self.root:
            with ui.element("div").style("padding: 12px 14px 10px").classes("column"):
                self.palette_part = Redrawn(self._palette)
            self._views()
            with ui.element("div").classes("plan-box"):
                self.plan, self.tree = PlanView(), TreeView()
                self.plan.on("dock", lambda e: page.dock(e.args, self.plan))
                self.plan.on("pick", lambda e: page.select(e.args["module"]))
                self.plan.on("remove", lambda e: page.remove(e.args["module"], self.plan))
                self.plan.on("move", lambda e: self.move(e.args, self.plan))
                self.plan.on("turn", lambda e: self.turn(e.args, self.plan))
                self.plan.on("rebase", lambda e: self._rebase(e.args["module"]))
                self.tree.on("dock", lambda e: page.dock(e.args, None))
                self.tree.on("pick", lambda e: page.pick(**e.args))
                self.tree.on("remove", lambda e: page.remove(e.args["module"]))
                self.tree.on("turn", lambda e: self.turn(e.args, None))
                self.tree.on("rebase", lambda e: self._rebase(e.args["module"], None))
                self.tree.on("shift", lambda e: page.act(self.session.shift, **e.args))
                self.tree.on("rename", lambda e: self._rename(**e.args))
            with ui.element("div").style("padding: 10px 14px 12px; min-height: 106px"):
                self.module_part = Redrawn(self._module)
        self.show_view()

    # -- plan or tree ----------------------------------------------------------------------------

    def _views(self) -> None:
        self.view: str | None = None  # that the user chose
        self.views: dict[str, ui.element] = {}
        with ui.element("div").classes("row views").props('role=tablist aria-label="Views"'):
            for name, text in VIEWS.items():
                show = partial(self._choose_view, name)
                props = {"role": "tab", "aria_controls": "panel"}
                self.views[name] = chip(text, False, show, f"view-{name}", **props)

    def _choose_view(self, name: str) -> None:
        self.view = name
        self.show_view()

    def show_view(self) -> None:
        """The plan, or the tree if it was chosen or no module is on a grid."""
        organism = self.session.organism
        flat = organism is None or view_data.on_grid(organism)
        shown = self.view or ("plan" if flat else "tree")
        before = self.tree.visible
        self.plan.set_visibility(shown == "plan")
        self.tree.set_visibility(shown == "tree")
        if self.tree.visible != before and self.page.ready:
            self.page.view.body()  # one that is hidden is not kept up
        mark(self.views, (shown,), "aria-selected")

    def _rename(self, module: str, name: str) -> None:
        self.page.act(self.session.rename_module, module, name)
        if self.session.organism is not None and name in self.session.organism:
            self.page.select(name)

    # -- the palette -----------------------------------------------------------------------------

    def _palette(self) -> None:
        page = self.page
        with ui.element("div").classes("rowbar"):
            title("Modules")
            look = "flat dense size=sm no-caps"
            button("Own module…", self._own, "own-module", look, icon="add")
        with ui.element("div").classes("palette").props('role=group aria-label="Kinds of modules"'):
            for name, kind in self.session.kinds().items():
                choice = ui.element("button").classes("kind")
                choice.props(f"type=button aria-pressed={'true' if name == page.kind else 'false'}")
                choice._props["title"] = kind.title or name
                choice.on("click", lambda _, name=name: page.choose(name))
                with test_id(choice, f"kind-{name}"):
                    swatch = ui.label(kind.symbol).classes("swatch")
                    swatch.style(f"background: {main_color(kind)}")
                    ui.label(view_data.label(kind))
        kind = self.session.kind(page.kind)
        with ui.element("div").classes("row").style("margin-top: 8px"):
            ports = {AUTO: "usual side", **{at: view_data.port_name(at) for at in kind.docks}}
            now = AUTO if page.child_port is None else page.child_port
            docks = ui.select(ports, value=now, label="Dock with", on_change=self._set_port)
            docks.props("dense outlined options-dense").style("width: 130px")
            test_id(docks, "dock-with")
            turns = sorted({turn for port in kind.ports for turn in port.turns})
            if len(turns) > 1:
                chosen = {AUTO: "no turn", **{turn: f"{turn}°" for turn in turns if turn}}
                select = ui.select(
                    chosen, value=page.turn or AUTO, label="Turned by", on_change=self._set_turn
                )
                select.props("dense outlined options-dense").style("width: 110px")
            _dock_picture(kind, page.child_port)
            note(
                "R over a free place turns the new module, else the chosen one; a right-click or "
                "a long press removes a module"
            )

    def _set_port(self, event: Any) -> None:
        self.page.child_port = None if event.value == AUTO else event.value
        self.page.chosen()

    def _set_turn(self, event: Any) -> None:
        self.page.turn = None if event.value == AUTO else event.value
        self.page.chosen()

    def turn(self, where: dict[str, Any], view: Any) -> None:
        """R: turn the module under the cursor, or the next one to dock at a site, or anywhere."""
        page, site = self.page, where.get("site")
        name = where["module"] or (None if site else page.selected)
        if name:
            page.act(self.session.turn, name, where=view)
            return
        kind, organism = self.session.kind(page.kind), self.session.organism
        found: list[tuple[Any, Any]] = [(label, page.turn) for label in kind.docks]
        now: tuple[Any, Any] = (page.child_port, page.turn)
        if site and organism is not None:
            parent, port = organism.kind(site[0]), site[1]
            found = [*edits.ways(parent, port, kind)] or found
            now = edits.usual_way(parent, port, kind, page.child_port, page.turn)
        after = found.index(now) + 1 if now in found else 0
        page.child_port, page.turn = found[after % len(found)]
        page.chosen()

    def _own(self) -> None:
        """A dialog for datasheets of the user's own."""
        with self.page.dialog("Your own module", 440) as dialog:
            note(
                "Choose a datasheet: a JSON or TOML file of the format modurob-module, a URDF "
                "robot, or a CoBRA set of modules. It comes with the project, so whoever opens it "
                "has the modules too."
            )
            problem = problem_line()
            uploader(
                lambda name, data: self._add(name, data, problem, dialog),
                problem.set_text,
                "datasheet",
            )
            button("Close", dialog.close, look="flat no-caps")

    def _add(self, name: str, data: bytes, problem: ui.label, dialog: ui.dialog) -> None:
        try:
            self.add_kinds(imports.kinds(name, data))
        except ModurobError as error:
            problem.set_text(str(error))
            return
        dialog.close()

    def add_kinds(self, kinds: tuple[ModuleType, ...]) -> None:
        """Put modules of a file into the palette, and choose the first one."""
        for kind in kinds:
            self.session.add_kind(kind)
        self.page.choose(kinds[0].name)

    # -- moving modules --------------------------------------------------------------------------

    def move(self, to: dict[str, Any], view: Any) -> None:
        """A module was dropped on a port."""
        how = (to.get("child_port"), to.get("turn"))
        self.page.act(self.session.move, to["name"], to["module"], to["port"], *how, where=view)

    def _rebase(self, name: str, view: Any = ...) -> None:
        self.page.act(self.session.rebase, name, where=self.plan if view is ... else view)

    # -- the chosen module -----------------------------------------------------------------------

    def _module(self) -> None:
        organism, name = self.session.organism, self.page.selected
        if organism is None or name is None or name not in organism:
            title("Chosen module")
            note(
                "Click a module to choose it, with Shift several. Click near a side, or drag a "
                "kind from above onto a port, to dock a new one; drag a module to move it with "
                "all beyond it."
            )
            return
        kind, held = organism.kind(name), organism.docking(name)
        with ui.element("div").classes("rowbar"):
            title(f"{name} · {view_data.label(kind)}")
        chosen = len(self.page.chosen_modules)
        words = f"{chosen} modules chosen; the last: " if chosen > 1 else ""
        words += f"{kind.mass:g} kg, {kind.size:g} m"
        if held is not None:
            mine, there = map(view_data.port_name, (held.child_port, held.port))
            words += f"; {mine} to {there} of {held.parent}"
        note(words + ("; the base" if name == organism.base else ""))
        with ui.element("div").classes("row").style("margin-top: 6px"):
            base = button("Make it the base", lambda: self._rebase(name))
            base.set_enabled(name != organism.base)
            turn = button("Turn", lambda: self.page.act(self.session.turn, name))
            turn.set_enabled(name != organism.base)
            remove = button("Remove", lambda: self.page.remove(name), "remove-module", color=None)
            remove.classes("danger")
        with ui.element("div").classes("row").style("margin-top: 6px"):
            for text, action, keys in (
                ("Copy", self.page.copy, "Ctrl+C"),
                ("Paste here", self.page.paste, "Ctrl+V"),
                ("Repeat", self.page.repeat, "Ctrl+D"),
                ("Mirror", self.page.mirror, "Ctrl+M"),
            ):
                made = button(text, action, f"module-{text.split(' ')[0].lower()}")
                made._props["title"] = f"With all beyond it ({keys})"
                made.set_enabled(text in ("Copy", "Paste here") or name != organism.base)

    def refresh(self, topic: str) -> None:
        if topic in ("kinds",):
            self.palette_part.refresh()
        if topic in ("body", "selected"):
            self.module_part.refresh()
        if topic == "body":
            self.show_view()


def _dock_picture(kind: ModuleType, port: int | str | None) -> None:
    """A neighbor, and the module that docks to its right, with their sides seen from above."""
    right, left = 0, 2  # headings
    if kind.grid:
        sides = {at: edits.heading(kind, at) for at in kind.docks}
        usual = next((at for at in sides if sides[at] == left), kind.docks[0])
        mine = usual if port is None else port
        modules = (sides, {at: (sides[at] + left - sides[mine]) % 4 for at in sides})
    else:
        mine = edits.usual_port(kind, kind.docks[-1], kind) if port is None else port
        other = edits.mating_ports(kind, mine, kind)[:1]
        modules = (dict.fromkeys(other, right), {mine: left})
    parts = []
    for x, shown in zip((1, 38), modules, strict=True):
        parts.append(f'<rect x="{x}" y="1" width="36" height="36" rx="5"/>')
        for at, heading in shown.items():
            dx, dy = ((1, 0), (0, -1), (-1, 0), (0, 1))[heading]
            place = f'x="{x + 18 + (11 if kind.grid else 8) * dx}" y="{19 + 12 * dy}"'
            parts.append(f"<text {place}>{html.escape(str(at))}</text>")
    picture = ui.html(f'<svg viewBox="0 0 75 38">{"".join(parts)}</svg>', sanitize=False)
    words = f"The new module (right) docks with its {view_data.port_name(mine)}"
    picture.classes("dock-picture").props(f'role=img aria-label="{words}"')
    why = ", so that it is not turned" if kind.grid and port is None else ""
    picture._props["title"] = words + why
    test_id(picture, "dock-picture")


class Uploader(ui.upload):
    """An upload that holds nothing once its page is gone.

    FastAPI remembers the functions of the last 4096 routes that were made, and so each upload: with
    its handlers a page of 1 MB would stay.
    """

    def _handle_delete(self) -> None:
        super()._handle_delete()
        self._upload_handlers.clear()
        self._event_listeners.clear()


def uploader(use: Any, tell: Callable[[str], Any], what: str) -> ui.upload:
    """A place to drop a file; what is too large is refused before it travels.

    Args:
        use: Called with the name and the bytes of the file.
        tell: Called with a problem.
    """

    async def received(event: Any) -> None:
        data = await event.file.read()
        upload.reset()
        use(event.file.name, data)

    def rejected() -> None:
        ends = ", ".join(imports.ENDINGS)
        tell(f"At most {LARGEST_BODY // 2**20} MB can be uploaded, and files end with {ends}.")

    upload = Uploader(
        label=f"Choose or drop a {what}",
        auto_upload=True,
        max_file_size=LARGEST_BODY,
        on_upload=received,
        on_rejected=rejected,
    )
    accepted = ",".join(imports.ENDINGS)
    upload.props(f'accept="{accepted}" flat bordered').classes("whole")
    test_id(upload, f"upload-{what.replace(' ', '-')}")
    return upload
