"""The record parser of the C runtime reads what Python wrote, and refuses the rest."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from modurob.errors import FileError
from modurob.modules.record import decode, encode
from modurob.modules.record_fields import split_fields, write_count
from oracles.organisms import WRIST
from oracles.runtime import KINDS

EXACT = 1e-15  # products of two rotations, in another order
MUTANTS = 200
SIZE, MASS, MINUS, NAN = (struct.pack("<d", x) for x in (WRIST.size, 0.7, -0.7, np.nan))
EMPTY_BODY = b"\x10\x0d\x01x" + bytes(11)  # called x, of no mass


def pose_of(pose) -> np.ndarray:
    return np.column_stack([np.reshape(pose.R, (3, 3)), pose.p])


def sealed(record: bytes) -> bytes:
    """The record with length and checksums that match its content."""
    header = record[:6] + struct.pack("<I", len(record)) + record[10:26]
    data = header + struct.pack("<I", zlib.crc32(header)) + record[30:-4]
    return data + struct.pack("<I", zlib.crc32(data))


def changed(record: bytes, tag: int, change) -> bytes:
    """The record with other content in its fields of one tag; None leaves them out."""
    fields = [(t, change(p) if t == tag else p) for t, p in split_fields(record[30:-4])]
    body = b"".join(bytes([t]) + write_count(len(p)) + p for t, p in fields if p is not None)
    return sealed(record[:30] + body + record[-4:])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_datasheet_survives_the_way_through_its_record(double_runtime, kind):
    kind = kind.with_parameters(rotor_inertia=1e-6, gear_ratio=50.0, stiffness=9.0, damping=0.5)
    status, found = double_runtime.read(encode(kind, 5))
    assert status == "ok"
    assert (found.body_count, found.joint_count, found.port_count) == (
        len(kind.bodies), len(kind.joints), len(kind.ports)
    )  # fmt: skip
    for body, solid in zip(kind.bodies, found.bodies, strict=False):
        assert (solid.mass, *solid.center) == (body.mass, *body.center_of_mass)
        assert np.array_equal(np.reshape(solid.inertia, (3, 3)), body.inertia)
    for k, rest in enumerate(kind.rest_poses):
        np.testing.assert_allclose(pose_of(found.rest[k]), rest[:3], rtol=0, atol=EXACT)
    for joint, read in zip(kind.joints, found.joints, strict=False):
        np.testing.assert_allclose(pose_of(read.pose), joint.pose[:3], rtol=0, atol=EXACT)
        assert (read.viscous, read.coulomb) == (joint.viscous, joint.coulomb)
        assert (read.stiffness, read.damping) == (joint.stiffness, joint.damping)
        assert read.armature == pytest.approx(joint.armature, rel=EXACT)
        assert (read.lower if read.has_lower else None) == joint.lower
        assert (read.upper if read.has_upper else None) == joint.upper
    for port, read in zip(kind.ports, found.ports, strict=False):
        np.testing.assert_allclose(pose_of(read.pose), port.pose[:3], rtol=0, atol=EXACT)
        assert tuple(read.turns[: read.turn_count]) == port.turns
        assert read.connector == zlib.crc32(port.connector.encode())
        if isinstance(port.label, int):
            assert (read.is_named, read.number) == (0, port.label)


def test_every_cut_and_every_flipped_bit_of_a_record_is_refused(double_runtime):
    record = encode(WRIST, 5)
    for size in range(len(record)):
        assert double_runtime.read(record[:size])[0] != "ok"
    for bit in range(0, 8 * len(record), 7):
        wrong = bytearray(record)
        wrong[bit // 8] ^= 1 << bit % 8
        assert double_runtime.read(bytes(wrong))[0] != "ok"


def test_the_parser_refuses_nothing_that_python_reads(double_runtime):
    """Mutants with good checksums: fields cut, bytes changed, and lists that are too long."""
    rng, seen = np.random.default_rng(1), set()
    for number in range(MUTANTS):
        kind = KINDS[number % len(KINDS)]
        body = bytearray(encode(kind, 5))
        place = int(rng.integers(30, len(body) - 4))
        if number % 3:
            body[place] = int(rng.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.integers(256)]))
        else:
            del body[place : place + int(rng.integers(1, 9))]
        record = sealed(bytes(body))
        status, _ = double_runtime.read(record)
        seen.add(status)
        if status not in ("ok", "too many"):
            with pytest.raises(FileError):
                decode(record)
    assert {"ok", "too short", "field", "number", "datasheet"} <= seen


@pytest.mark.parametrize(
    ("status", "change"),
    [
        ("not a record", lambda r: b"MROP" + r[4:]),
        ("too short", lambda r: r[:29]),
        ("header sum", lambda r: r[:12] + b"x" + r[13:]),
        ("sum", lambda r: r[:40] + bytes([r[40] ^ 1]) + r[41:]),
        ("length", lambda r: r + b"\0"),
        ("newer", lambda r: sealed(r[:4] + b"\2\0" + r[6:])),
        ("newer", lambda r: sealed(r[:-4] + b"\x81\0" + r[-4:])),
        ("datasheet", lambda r: sealed(r[:-4] + b"\2\1\0" * 2 + r[-4:])),
        ("too short", lambda r: sealed(r[:-4] + b"\x20\x7f" + r[-4:])),
        ("field", lambda r: sealed(r[:-4] + b"\x20" + b"\xff" * 10 + b"\2" + r[-4:])),
        ("ok", lambda r: sealed(r[:-4] + b"\x30\2ab" + r[-4:])),
        ("datasheet", lambda r: changed(r, 0x01, lambda field: None)),
        ("datasheet", lambda r: changed(r, 0x11, lambda field: None)),
        ("too short", lambda r: changed(r, 0x10, lambda field: field[:-1])),
        ("too short", lambda r: changed(r, 0x12, lambda field: field[:-1])),
        ("number", lambda r: changed(r, 0x01, lambda field: field.replace(SIZE, NAN))),
        ("number", lambda r: changed(r, 0x10, lambda field: field.replace(MASS, MINUS))),
        ("index", lambda r: changed(r, 0x12, lambda field: field[:2] + b"\x07" + field[3:])),
        ("field", lambda r: changed(r, 0x12, lambda field: b"\x02" + field[1:])),
        ("field", lambda r: changed(r, 0x12, lambda f: f[:3] + bytes([f[3] | 8]) + f[4:])),
        ("too many", lambda r: sealed(r[:-4] + EMPTY_BODY + r[-4:])),
    ],
)
def test_a_malformed_record_gives_its_own_status(double_runtime, status, change):
    record = encode(WRIST.model_copy(update={"title": "", "shapes": ()}), 5)
    assert double_runtime.read(change(record))[0] == status
