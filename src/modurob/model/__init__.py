"""From an organism to the flat arrays that the numerics see."""

from modurob.model.model import Model

__all__ = ["Model"]
