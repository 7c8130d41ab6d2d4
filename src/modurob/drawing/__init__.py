"""Pictures of organisms: text for the terminal, PNG and SVG for documents."""

from modurob.drawing.picture import picture
from modurob.drawing.terminal import draw

__all__ = ["draw", "picture"]
