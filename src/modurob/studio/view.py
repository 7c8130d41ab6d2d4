"""Components of the page (their JavaScript is in ``web``), and the views of the body in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from nicegui.element import Element

# imported for what they bring to the browser: three.js and ECharts
from nicegui.elements.echart import EChart as EChart
from nicegui.elements.scene import Scene as Scene

from modurob import Model, ModurobError, Organism
from modurob.scenario.settings import PATHS
from modurob.studio import edits, keyframes, view_data
from modurob.studio.differences import Sender

if TYPE_CHECKING:
    from modurob.studio.page import Page

MOST_GHOSTS = 12  # of a motion through points
SCENE = ("bodies", "modules", "solids", "joints", "poses", "values", "ports")  # lists of the stage
PLAN = ("cells", "links", "sites")
TREE = ("modules", "sites")


class Stage(Element, component="web/organism.js", esm={"modurob-web": "web"}):
    """The organism in three dimensions.

    Events: dock, pick, remove, turn, carry and move of modules; drag and path of a body, pose of
    joints; command (a key).
    """

    def set_mode(self, mode: str) -> None:
        """The panel that is open: in "build" modules are docked, in "move" joints are posed."""
        self._props["mode"] = mode


class PlanView(Element, component="web/plan.js"):
    """The organism from above. Events: dock, pick, remove, move, turn, rebase."""


class TreeView(Element, component="web/tree.js"):
    """The modules as a tree. Events: dock, pick, remove, turn, shift, rebase, rename."""


class Player(Element, component="web/player.js"):
    """Play, pause, scrub. Time lives in the browser: it says nothing."""


class Plots(Element, component="web/plots.js"):
    """Quantities over time, with the player's cursor. Event: panels, when it has another run."""


class Sliders(Element, component="web/sliders.js"):
    """The joints of the pose, or goals of a live robot. Events: pose, rate."""


class Saved(Element, component="web/saved.js"):
    """A few words on whether everything is written, and the reason if not; it says nothing."""


class Divider(Element, component="web/divider.js"):
    """The border between panel and stage, which sizes and hides the panel; it says nothing."""


class DropPlace(Element, component="web/drop.js"):
    """A place for files over the whole page; what it holds takes them."""


class BodyView:
    """The body in three dimensions and from above, kept in step."""

    def __init__(self, page: Page, stage: Stage, plan: PlanView, tree: TreeView) -> None:
        self.page, self.stage, self.plan, self.tree = page, stage, plan, tree
        self._states = Sender(stage, "set_state")
        self._plans, self._trees = Sender(plan, "set_plan"), Sender(tree, "set_tree")
        self._drawn: tuple[Any, ...] = ()
        self._ghosts: list[Any] = []

    def follow(self, topic: str, fit: bool = False) -> None:
        """Show what changed; with `fit` the camera moves to show all."""
        if topic == "body" or (topic == "settings" and self._model_settings() != self._drawn):
            self.body(fit)
        elif topic == "pose":
            self.pose()
        elif topic == "settings":
            self.keyframes()
        elif topic == "kinds":
            self.palette()

    def body(self, fit: bool = False) -> None:
        """The whole body, and where another module could dock."""
        page, session = self.page, self.page.session
        organism = session.organism
        self._drawn = self._model_settings()
        if organism is None:
            self._states.send(dict.fromkeys(SCENE, ()), fit=False)
            self._plans.send(dict.fromkeys(PLAN, ()), hidden=0)
            self._trees.send(dict.fromkeys(TREE, ()), kind="")
            self.keyframes()
            return
        model = self._model(organism)
        kind = session.kind(page.kind)
        sites = [*edits.sites(organism, kind, page.child_port, page.turn)]
        scene = {**view_data.scene_data(organism, model), **self._posed(model)}
        ports = view_data.ports(organism, model, sites)
        self._states.send({**scene, "ports": ports}, fit=fit)
        if self.plan.visible:
            plan = view_data.plan(organism, sites)
            self._plans.send({name: plan[name] for name in PLAN}, hidden=plan["hidden"])
        else:
            self._plans.send(dict.fromkeys(PLAN, ()), hidden=len(organism))
        if self.tree.visible:
            tree = view_data.tree(organism, kind, sites)
            lists = {"modules": tree["modules"], "sites": [*tree["sites"].items()]}
            self._trees.send(lists, kind=tree["kind"])
        self.keyframes()

    def pose(self) -> None:
        """The same body, its joints elsewhere."""
        session = self.page.session
        if session.organism is not None:
            posed = self._posed(self._model(session.organism))
            self.stage.run_method("set_poses", posed["poses"], posed["values"])

    def keyframes(self) -> None:
        """Ghosts of the motion through points that is chosen."""
        session = self.page.session
        ghosts: list[Any] = []
        points = session.settings.points if session.settings.motion in PATHS else {}
        if session.organism is not None and points:
            model = self._model(session.organism)
            found = keyframes.frames(points)
            rows = keyframes.spread(len(found), MOST_GHOSTS)
            q = [session.configuration(model, found[row].pose) for row in rows]
            ghosts = view_data.poses(model, np.stack(q))
        if ghosts != self._ghosts:
            self._ghosts = ghosts
            self.stage.run_method("set_keyframes", ghosts)

    def _posed(self, model: Model) -> dict[str, Any]:
        """Poses of the bodies, and positions of the joints."""
        q = self.page.session.configuration(model)
        values = q[model.joint_slice_q].tolist()
        return {"poses": view_data.poses(model, q), "values": values}

    def carry(self, module: str, step: int) -> None:
        """Tell the stage where a module could dock with all beyond it."""
        organism = self.page.session.body()
        model, kind = self._model(organism), organism.kind(module)
        sites = [*edits.moves(organism, module, step)]
        self.stage.run_method(
            "set_carry",
            {
                "module": module,
                "names": organism.subtree(module),
                "sites": view_data.ports(organism, model, sites),
                "ports": {
                    label: view_data.port_place(organism, model, module, label)
                    for label in kind.docks
                },
            },
        )

    def _model(self, organism: Organism) -> Model:
        """The model of the settings; on a fixed base if theirs does not fit."""
        try:
            return self.page.session.model()
        except ModurobError:
            return organism.model(self.page.session.settings.hinges)

    def palette(self) -> None:
        """The module kind that a click docks."""
        kind = view_data.kind_data(self.page.session.kind(self.page.kind))
        self.stage.run_method("set_palette", kind)
        self.plan.run_method("set_palette", kind)

    def select(self, name: str | None, chosen: list[str]) -> None:
        """Mark the chosen module, and all that are chosen."""
        self.stage.run_method("select", name, chosen)
        self.plan.run_method("select", name, chosen)
        self.tree.run_method("select", chosen)

    def _model_settings(self) -> tuple[Any, ...]:
        """The settings that change what is drawn."""
        settings = self.page.session.settings
        return settings.hinges, settings.base, settings.locked
