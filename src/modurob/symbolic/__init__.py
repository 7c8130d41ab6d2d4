"""Equations of motion for people: closed forms in a canonical normal form, exact, and printed."""

from modurob.symbolic.equations import Equations

__all__ = ["Equations"]
