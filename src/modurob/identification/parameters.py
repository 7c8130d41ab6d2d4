"""Numbers of the datasheets that joint forces depend on, as coordinates without bounds.

The pseudo-inertia of a body is ``P = A U U^T A^T`` with the datasheet's ``P_0 = A A^T``,
``A = [[C, sqrt(m) c], [0, sqrt(m)]]``, and U upper triangular with exponentials on its diagonal (a
log-Cholesky form): P is positive definite for any coordinates x of U, and the datasheet's at x = 0.
U_33 changes only the mass, the rest of its last column only the center of mass, and the others only
the inertia about it: coordinates are fields of a datasheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from modurob.equations.links import friction
from modurob.model import Model
from modurob.model.shapes import body_place
from modurob.modules import Body, ModuleType
from modurob.organism import Organism
from modurob.regressor import BASIS, PARAMETERS, parameters, regressor
from modurob.spatial.inertia import from_pseudo_inertia, pseudo_inertia

ROW = np.array([3, 0, 1, 2, 0, 0, 0, 1, 1, 2])  # place in U of each coordinate of a body
COLUMN = np.array([3, 3, 3, 3, 0, 1, 2, 1, 2, 2])
DIAGONAL = ROW == COLUMN
FIELDS = {"mass": slice(0, 1), "center_of_mass": slice(1, 4), "inertia": slice(4, 10)}
SPREAD = 0.05  # of the module's size: radius of gyration below which a body counts as a point
UNCHANGED = 1e-9  # of a coordinate: rounding of a body that no run depends on
NEAR_ZERO = 1e-5  # where the divergence of one coordinate is its square to rounding


class BodyParameters(NamedTuple):
    """A body with mass, of one module or of all modules of a kind.

    Attributes:
        owner: The module, or the kind.
        body: Its index in the kind.
        places: Where it is: body of the model, and its pose there.
        P: (4, 4) the datasheet's pseudo-inertia.
        A: (4, 4) its root, after a point mass got a small extent.
    """

    owner: str
    kind: ModuleType
    body: int
    places: tuple[tuple[int, np.ndarray], ...]
    P: np.ndarray
    A: np.ndarray


class FrictionParameter(NamedTuple):
    """Friction of a joint of one module or of all modules of a kind.

    Attributes:
        field: ``viscous`` or ``coulomb``.
        joints: Their indices in the model.
        given: The datasheet's number.
    """

    owner: str
    joint: str
    field: str
    joints: tuple[int, ...]
    given: float


class FieldRange(NamedTuple):
    """A field of a datasheet, and its coordinates in x."""

    owner: str
    name: str
    place: slice


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """All bodies and frictions that are identified.

    ``theta``: ten numbers a body (see `modurob.regressor.PARAMETERS`), then frictions; ``x``: as
    many coordinates.

    Attributes:
        shared: Whether modules of one kind have the same numbers.
    """

    model: Model
    organism: Organism
    shared: bool
    bodies: tuple[BodyParameters, ...]
    frictions: tuple[FrictionParameter, ...]

    @property
    def size(self) -> int:
        """Of theta and of x."""
        return 10 * len(self.bodies) + len(self.frictions)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of theta: ``m1.distal.Jxx`` or ``m1.joint.viscous``."""
        inertial = [
            f"{b.owner}.{b.kind.bodies[b.body].name}.{p}" for b in self.bodies for p in PARAMETERS
        ]
        return (*inertial, *(f"{f.owner}.{f.joint}.{f.field}" for f in self.frictions))

    @cached_property
    def fields(self) -> tuple[FieldRange, ...]:
        """Fields of the datasheets, in the order of x."""
        inertial = [
            FieldRange(
                entry.owner,
                f"{entry.kind.bodies[entry.body].name}.{name}",
                slice(10 * k + at.start, 10 * k + at.stop),
            )
            for k, entry in enumerate(self.bodies)
            for name, at in FIELDS.items()
        ]
        friction = [
            FieldRange(f.owner, f"{f.joint}.{f.field}", slice(k, k + 1))
            for k, f in enumerate(self.frictions, start=10 * len(self.bodies))
        ]
        return (*inertial, *friction)

    @cached_property
    def given(self) -> np.ndarray:
        """(size,) theta of the datasheets."""
        P = np.array([entry.P for entry in self.bodies]).reshape(-1, 4, 4)
        return np.concatenate([parameters(P).ravel(), [f.given for f in self.frictions]])

    @cached_property
    def _roots(self) -> np.ndarray:
        return np.array([entry.A for entry in self.bodies]).reshape(-1, 4, 4)

    def _factors(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(bodies, 4, 4) A U, and (bodies, 10) the derivative of each entry of U."""
        each = x[: 10 * len(self.bodies)].reshape(-1, 10)
        values = np.where(DIAGONAL, np.exp(np.where(DIAGONAL, each, 0.0)), each)
        U = np.zeros((len(each), 4, 4))
        U[:, ROW, COLUMN] = values
        return self._roots @ U, np.where(DIAGONAL, values, 1.0)

    def pseudo_inertias(self, x: np.ndarray) -> np.ndarray:
        """(bodies, 4, 4) P, positive definite."""
        AU, _ = self._factors(x)
        return AU @ np.swapaxes(AU, -1, -2)

    def theta(self, x: np.ndarray) -> np.ndarray:
        """(size,) parameters that joint forces are linear in."""
        n = 10 * len(self.bodies)
        friction = self.given[n:] * np.exp(x[n:])
        return np.concatenate([parameters(self.pseudo_inertias(x)).ravel(), friction])

    def theta_derivative(self, x: np.ndarray) -> np.ndarray:
        """(size, size) of theta by x; bodies and frictions do not mix."""
        AU, slope = self._factors(x)
        n = len(self.bodies)
        # dP = A dU (A U)^T + its transpose, dU one entry of U
        half = self._roots[:, :, ROW, None] * np.moveaxis(AU, -1, 1)[:, COLUMN][:, None]
        half = np.moveaxis(half, 2, 1) * slope[:, :, None, None]
        inertial = parameters(half + np.swapaxes(half, -1, -2))  # (bodies, x, theta)
        result = np.zeros((self.size, self.size))
        for k in range(n):
            at = slice(10 * k, 10 * k + 10)
            result[at, at] = inertial[k].T
        rest = range(10 * n, self.size)
        result[rest, rest] = self.theta(x)[10 * n :]
        return result

    def prior(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(size,) residuals of the prior and their derivatives, for datasheet errors of 100 %.

        The sum of their squares is twice the divergence ``tr(P P_0^-1) - log det(P P_0^-1) - 4`` of
        each body (the Bregman divergence of -log det), plus the squared logarithms of frictions.
        """
        divergence = np.zeros(self.size, dtype=bool)
        divergence[: 10 * len(self.bodies)] = np.tile(DIAGONAL, len(self.bodies))
        curved = divergence & (np.abs(x) > NEAR_ZERO)
        scale = np.where(divergence, 2.0, np.sqrt(2.0))
        scale[10 * len(self.bodies) :] = 1.0
        y = np.where(curved, x, 1.0)
        root = np.sign(y) * np.sqrt((np.expm1(2 * y) - 2 * y) / 2)
        value, slope = np.where(curved, root, x), np.where(curved, np.expm1(2 * y) / 2 / root, 1.0)
        return scale * value, scale * slope

    def columns(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(N, nv, size) derivative of the joint forces by theta."""
        model = self.model
        Y = regressor(model, q, v, a)
        result = np.zeros((*v.shape, self.size))
        for k, entry in enumerate(self.bodies):
            for body, T in entry.places:
                seen = T.T @ Y[:, :, body] @ T
                result[..., 10 * k : 10 * k + 10] += np.einsum("niab,kab->nik", seen, BASIS)
        first = model.joint_slice_v.start
        for k, entry in enumerate(self.frictions, start=10 * len(self.bodies)):
            for joint in entry.joints:
                rate = v[:, first + joint]
                unit = (1.0, 0.0) if entry.field == "viscous" else (0.0, 1.0)
                result[:, first + joint, k] += friction(*unit, rate)
        return result

    def organism_with(self, x: np.ndarray) -> Organism:
        """The organism with the numbers of x in its datasheets; a body at x = 0 keeps its own."""
        edits: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        for k, (entry, P) in enumerate(zip(self.bodies, self.pseudo_inertias(x), strict=True)):
            if np.abs(x[10 * k : 10 * k + 10]).max() > UNCHANGED:
                body = entry.kind.bodies[entry.body]
                edits.setdefault(entry.owner, {})["bodies", body.name] = _solid(P)
        for entry, value in zip(
            self.frictions, self.theta(x)[10 * len(self.bodies) :], strict=True
        ):
            joint = edits.setdefault(entry.owner, {}).setdefault(("joints", entry.joint), {})
            joint[entry.field] = float(value)
        owners = dict(_owners(self.organism, self.shared))
        kinds = {
            module: _edited(self.organism.kind(module), edits[owner])
            for module, owner in owners.items()
            if owner in edits
        }
        return self.organism.with_kinds(kinds)

    def field_values(self, x: np.ndarray, field: FieldRange) -> tuple[Any, Any]:
        """The number or array of one field: the datasheet's, and that of x."""
        k, name = field.place.start // 10, field.name.rpartition(".")[2]
        if k < len(self.bodies):
            entry, P = self.bodies[k], self.pseudo_inertias(x)[k]
            values = getattr(entry.kind.bodies[entry.body], name), _solid(P)[name]
        else:
            k = field.place.start
            values = self.given[k], self.theta(x)[k]
        given, found = (np.array(value) if np.ndim(value) else float(value) for value in values)
        return given, found


def parameter_set(model: Model, organism: Organism, shared: bool) -> ParameterSet:
    """Bodies with mass that can move, and frictions that datasheets state."""
    owners = dict(_owners(organism, shared))
    bodies: dict[tuple[str, int], list[tuple[int, np.ndarray]]] = {}
    for module, owner in owners.items():
        kind = organism.kind(module)
        for k, body in enumerate(kind.bodies):
            place = body_place(model, organism, module, body.name)
            if body.mass > 0 and model._moving_columns[model.body_link[place[0]]].any():
                bodies.setdefault((owner, k), []).append(place)
    kinds = {owner: organism.kind(module) for module, owner in owners.items()}
    frictions: dict[tuple[str, str, str], list[int]] = {}
    for index, name in enumerate(model.joint_names):
        module, _, joint = name.partition(".")
        for field in ("viscous", "coulomb"):
            if module in organism and getattr(model, field)[index] > 0:
                frictions.setdefault((owners[module], joint, field), []).append(index)
    return ParameterSet(
        model,
        organism,
        shared,
        tuple(_body_entry(owner, kinds[owner], k, at) for (owner, k), at in bodies.items()),
        tuple(
            FrictionParameter(*key, tuple(at), float(getattr(model, key[2])[at[0]]))
            for key, at in frictions.items()
        ),
    )


def _owners(organism: Organism, shared: bool) -> Iterator[tuple[str, str]]:
    """Each module, and the name that its numbers go by."""
    names: dict[ModuleType, str] = {}
    for module in organism.modules:
        kind = organism.kind(module)
        if shared and kind not in names:  # two datasheets may have one name
            names[kind] = kind.name if kind.name not in names.values() else f"{kind.name}@{module}"
        yield module, names[kind] if shared else module


def _body_entry(
    owner: str, kind: ModuleType, body: int, places: Sequence[tuple[int, np.ndarray]]
) -> BodyParameters:
    data: Body = kind.bodies[body]
    P = pseudo_inertia(data.mass, data.center_of_mass, data.inertia)
    m, c = data.mass, np.array(data.center_of_mass)
    spread, axes = np.linalg.eigh(P[:3, :3] - m * np.outer(c, c))
    A = np.zeros((4, 4))
    A[:3, :3] = axes * np.sqrt(np.maximum(spread, m * (SPREAD * kind.size) ** 2))
    A[:3, 3], A[3, 3] = np.sqrt(m) * c, np.sqrt(m)
    return BodyParameters(owner, kind, body, tuple(places), P, A)


def _solid(P: np.ndarray) -> dict[str, Any]:
    """Fields of a body with this pseudo-inertia."""
    mass, center, inertia = from_pseudo_inertia(P)
    return {"mass": float(mass), "center_of_mass": center, "inertia": inertia}


def _edited(kind: ModuleType, edits: dict[tuple[str, str], dict[str, Any]]) -> ModuleType:
    data = kind.model_dump()
    for part in ("bodies", "joints"):
        data[part] = [entry | edits.get((part, entry["name"]), {}) for entry in data[part]]
    return ModuleType(**data)
