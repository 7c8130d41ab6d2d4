"""Our own components of the page; the JavaScript is in ``web``."""

from __future__ import annotations

from typing import Any

from nicegui.element import Element

# imported for what they bring to the browser: three.js and ECharts
from nicegui.elements.echart import EChart as EChart
from nicegui.elements.scene import Scene as Scene

from modurob import ModuleType
from modurob.studio.view_data import kind_data


class Stage(Element, component="web/organism.js", esm={"modurob-web": "web"}):
    """The organism in three dimensions. Says: dock, pick, remove, command (a key)."""

    def set_building(self, on: bool) -> None:
        """True if free ports are shown and clicks dock."""
        self._props["building"] = on

    def set_state(self, state: dict[str, Any]) -> None:
        """Another body."""
        self.run_method("set_state", state)

    def set_poses(self, poses: list[list[float]]) -> None:
        """The same body in another pose."""
        self.run_method("set_poses", poses)

    def set_palette(self, kind: ModuleType) -> None:
        """The module kind that a click docks."""
        self.run_method("set_palette", kind_data(kind))


class PlanView(Element, component="web/plan.js"):
    """The organism from above. Says: dock, pick, remove, move, turn, rebase."""

    def set_plan(self, plan: dict[str, Any]) -> None:
        """Another body."""
        self.run_method("set_plan", plan)

    def set_palette(self, kind: ModuleType) -> None:
        """The module kind that a click docks."""
        self.run_method("set_palette", kind_data(kind))


class Player(Element, component="web/player.js"):
    """Play, pause, scrub. Time lives in the browser: it says nothing."""


class Plots(Element, component="web/plots.js"):
    """Quantities over time, with the player's cursor. Says: panels, when it has another run."""


class Sliders(Element, component="web/sliders.js"):
    """The joints of the pose. Says: pose."""
