"""From an organism to the flat arrays that the numerics see."""

from modurob.model.model import Model
from modurob.model.options import ModelOptions

__all__ = ["Model", "ModelOptions"]
