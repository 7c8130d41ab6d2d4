"""Files of gaits: the fields of a scenario that say how joints move."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from modurob.errors import FileError, StateError, UnknownNameError
from modurob.gaits import gait_class
from modurob.modules.files import read_document, write_document
from modurob.scenario.settings import FrozenRecord, Name, NotNegative, Positive, RunSettings

FORMAT, VERSION = "modurob-gait", 1


class GaitRecord(FrozenRecord):
    """A gait with its numbers; the fields are those of `RunSettings`."""

    format: Literal["modurob-gait"] = FORMAT
    version: Literal[1] = VERSION
    motion: Name
    amplitude: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.5
    frequency: Positive = 1.0
    ramp: NotNegative = 0.0
    gait: dict[str, int | FiniteFloat | dict[str, FiniteFloat]] = Field(default_factory=dict)

    @classmethod
    def of(cls, settings: RunSettings) -> GaitRecord:
        """The gait of a run."""
        fields = ("motion", "amplitude", "frequency", "ramp", "gait")
        return cls(**{name: getattr(settings, name) for name in fields})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file."""
        write_document(path, self.model_dump(mode="json"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GaitRecord:
        """Read a gait that `save` wrote."""
        try:
            found = cls(**read_document(path, FORMAT, VERSION))
            gait_class(found.motion)
        except (StateError, UnknownNameError) as error:
            raise FileError(f"{path}: {error}") from None
        return found

    def fields(self) -> dict[str, Any]:
        """The fields of a scenario that were given."""
        return {n: getattr(self, n) for n in self.model_fields_set - {"format", "version"}}


def gait_fields(gait: str | os.PathLike[str]) -> dict[str, Any]:
    """Fields of a scenario for a gait: the name of a kind, or a ``.json`` file of one."""
    if isinstance(gait, os.PathLike) or (isinstance(gait, str) and gait.endswith(".json")):
        return GaitRecord.load(gait).fields()
    return {"motion": gait_class(gait).name}
