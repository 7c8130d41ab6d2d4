"""The modules that come with modurob, one JSON datasheet each, read on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

from modurob.errors import UnknownNameError, choices
from modurob.modules.module_type import ModuleType


class Catalog(Mapping[str, ModuleType]):
    """The built-in kinds by name: ``catalog["backbone"]``."""

    def names(self) -> list[str]:
        """All kinds, sorted."""
        return list(_names())

    def __getitem__(self, name: str) -> ModuleType:
        if name not in _names():
            raise UnknownNameError(f"no module kind {name!r}: kinds are {choices(_names(), 24)}")
        return _read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())

    def __repr__(self) -> str:
        return f"<catalog: {choices(_names(), 24)}>"

    def by_symbol(self, symbol: str) -> ModuleType:
        """The kind with this letter in an assembly incidence matrix."""
        found = [kind for kind in self.values() if kind.symbol == symbol]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownNameError(
                f"{symbol!r} is the letter of several kinds: {choices(k.name for k in found)}; "
                "give the name"
            )
        letters = choices((f"{kind.symbol} = {kind.name}" for kind in self.values()), len(self))
        raise UnknownNameError(f"no module kind {symbol!r}: letters are {letters}")


@cache
def _names() -> tuple[str, ...]:
    entries = resources.files(__name__).iterdir()
    return tuple(sorted(e.name.removesuffix(".json") for e in entries if e.name.endswith(".json")))


@cache
def _read(name: str) -> ModuleType:
    source = resources.files(__name__) / f"{name}.json"
    with resources.as_file(source) as path:
        return ModuleType.from_file(path)


catalog = Catalog()
