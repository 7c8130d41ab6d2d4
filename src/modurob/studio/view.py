"""Views of a session in stage and plan: the body, its pose, and what a click would dock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modurob import Model, ModurobError, Organism
from modurob.studio import edits, view_data
from modurob.studio.elements import PlanView, Stage

if TYPE_CHECKING:
    from modurob.studio.page import Page

NOTHING = {"cells": [], "links": [], "sites": [], "hidden": 0}


class BodyView:
    """The body in three dimensions and from above, kept in step."""

    def __init__(self, page: Page, stage: Stage, plan: PlanView) -> None:
        self.page, self.stage, self.plan = page, stage, plan
        self._sent: tuple[Any, ...] = ()

    def follow(self, topic: str, fit: bool = False) -> None:
        """Show what changed.

        Args:
            fit: Whether the camera moves to show all.
        """
        if topic == "body":
            self.body(fit)
        elif topic == "pose":
            self.pose()
        elif topic == "settings" and self._model_settings() != self._sent:
            self.body(fit)
        elif topic == "kinds":
            self.palette()

    def body(self, fit: bool = False) -> None:
        """The whole body, and where another module could dock."""
        page, session = self.page, self.page.session
        organism = session.organism
        self._sent = self._model_settings()
        if organism is None:
            self.stage.set_state({"cast": None})
            self.plan.set_plan(NOTHING)
            return
        model = self._model(organism)
        kind = session.kind(page.kind)
        sites = [*edits.sites(organism, kind, page.child_port, page.turn)]
        self.stage.set_state(
            {
                "cast": view_data.scene_data(organism, model),
                "poses": view_data.poses(model, session.configuration(model)),
                "ports": view_data.ports(organism, model, sites),
                "fit": fit,
            }
        )
        self.plan.set_plan(view_data.plan(organism, sites))

    def pose(self) -> None:
        """The same body, its joints elsewhere."""
        session = self.page.session
        if session.organism is not None:
            model = self._model(session.organism)
            self.stage.set_poses(view_data.poses(model, session.configuration(model)))

    def _model(self, organism: Organism) -> Model:
        """The model of the settings; on a fixed base if theirs does not fit."""
        try:
            return self.page.session.model()
        except ModurobError:
            return organism.model(self.page.session.settings.hinges)

    def palette(self) -> None:
        """The module kind that a click docks."""
        kind = self.page.session.kind(self.page.kind)
        self.stage.set_palette(kind)
        self.plan.set_palette(kind)

    def select(self, name: str | None) -> None:
        """Mark a module in both."""
        self.stage.run_method("select", name)
        self.plan.run_method("select", name)

    def _model_settings(self) -> tuple[Any, ...]:
        """The settings that change what is drawn."""
        settings = self.page.session.settings
        return settings.hinges, settings.base
