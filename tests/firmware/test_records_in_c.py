"""The record parser of the C runtime reads what Python wrote, and refuses the rest."""

from __future__ import annotations

import ctypes
import struct
import zlib

import numpy as np
import pytest

from modurob import ModuleType, catalog
from modurob.errors import FileError
from modurob.modules.record import decode, encode
from modurob.modules.record_fields import Tag, read_field, split_fields, write_count, write_field
from oracles.organisms import WRIST
from oracles.runtime import KINDS

EXACT = 1e-15  # products of two rotations, in another order
MUTANTS = 100
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


def fields_of(record: bytes, tag: int) -> bytes:
    """The bytes of all fields of one tag."""
    found = [p for t, p in split_fields(record[30:-4]) if t == tag]
    return b"".join(bytes([tag]) + write_count(len(p)) + p for p in found)


def header_only(record: bytes) -> bytes:
    """A whole header with nothing behind it, not even a checksum."""
    header = record[:6] + struct.pack("<I", 30) + record[10:26]
    return header + struct.pack("<I", zlib.crc32(header))


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
        ("datasheet", lambda r: changed(r, 0x12, lambda field: None)),
        ("field", lambda r: changed(r, 0x11, lambda field: field[:5] + b"\x03" + field[6:])),
        ("length", lambda r: header_only(r)),
        ("too short", lambda r: sealed(r[:-4] + b"\x30" + b"\xff" * 9 + b"\1" + r[-4:])),
        ("field", lambda r: sealed(r[:-4] + b"\x30" + b"\x80" * 10 + b"\1" + r[-4:])),
        ("newer", lambda r: sealed(r[:4] + b"\0\1" + r[6:])),
        ("too many", lambda r: sealed(r[:-4] + fields_of(r, 0x11) + r[-4:])),
        ("too many", lambda r: sealed(r[:-4] + fields_of(r, 0x12) * 2 + r[-4:])),
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


SOFT = WRIST.with_parameters(rotor_inertia=1e-6, gear_ratio=50.0, stiffness=9.0, damping=0.5)


def edited(tag: Tag, changes: dict | bytes) -> bytes:
    """A record with other entries in the first field of a tag; bytes are a joint's drive."""
    record = encode(WRIST, 5)
    fields = split_fields(record[30:-4])
    place = [found for found, _ in fields].index(tag)
    if isinstance(changes, bytes):
        payload = fields[place][1] + changes
        new = bytes([tag]) + write_count(len(payload)) + payload
    else:
        new = write_field(tag, {**DEFAULTS, **read_field(tag, fields[place][1]), **changes})
    parts = [bytes([t]) + write_count(len(p)) + p for t, p in fields]
    parts[place] = new
    return sealed(record[:30] + b"".join(parts) + record[-4:])


DEFAULTS = dict.fromkeys(("rotor_inertia", "gear_ratio", "stiffness", "damping"))
DEFAULTS |= dict.fromkeys(("max_force", "max_torque"))
CUBE = [1.0, 0, 0, 0, 1, 0, 0, 0, 1]


def drive(mask: int, *numbers: float) -> bytes:
    return struct.pack(f"<B{len(numbers)}d", mask, *numbers)


def crooked(place: int) -> dict:
    return {"inertia": [0.5 * (k == place) + x for k, x in enumerate(CUBE)]}


WRONG_ENTRIES = [
    ("number", Tag.KIND, {"size": 0.0}),
    ("datasheet", Tag.KIND, {"dyad_joint": "none"}),
    ("datasheet", Tag.KIND, {"dyad_joint": "push"}),
    ("number", Tag.BODY, {"mass": 0.0}),
    *(("number", Tag.BODY, crooked(place)) for place in (1, 2, 5)),
    ("index", Tag.JOINT, {"parent": 300}),
    ("index", Tag.JOINT, {"parent": 4}),
    ("index", Tag.JOINT, {"child": 300}),
    ("index", Tag.JOINT, {"child": 9}),
    ("datasheet", Tag.JOINT, {"child": 1}),
    ("number", Tag.JOINT, {"axis": (0.0, 0.0, 0.0)}),
    ("ok", Tag.JOINT, {"axis": (0.0, 1e200, 1e200)}),
    ("ok", Tag.JOINT, {"axis": (0.0, 1e-200, 0.0)}),
    ("number", Tag.JOINT, {"lower": 1.0, "upper": -1.0}),
    ("number", Tag.JOINT, {"viscous": -1.0}),
    ("number", Tag.JOINT, {"coulomb": -1.0}),
    ("field", Tag.JOINT, drive(2, 5.0)),
    ("number", Tag.JOINT, drive(11, -1.0, 1.0, 0.0)),
    ("number", Tag.JOINT, drive(11, 1.0, 0.0, 0.0)),
    ("number", Tag.JOINT, drive(15, 1.0, 1.0, 0.0, 0.0)),
    ("number", Tag.JOINT, drive(15, 1.0, 1.0, 1.0, -1.0)),
    ("datasheet", Tag.JOINT, drive(15, 0.0, 1.0, 1.0, 1.0)),
    ("datasheet", Tag.JOINT, drive(11, 0.0, 2.0, 0.0)),
    ("datasheet", Tag.JOINT, drive(11, 0.0, 0.5, 0.0)),
    ("ok", Tag.JOINT, drive(11, 0.0, 1.0, 0.0)),
    ("datasheet", Tag.JOINT, drive(11, 1.0, 1.0, 1.0)),
    ("ok", Tag.PORT, {"label": -7}),
    ("ok", Tag.PORT, {"label": "left"}),
    ("too many", Tag.PORT, {"label": 2**40}),
    ("datasheet", Tag.PORT, {"label": 3}),
    ("number", Tag.PORT, {"reference": (1.0, 0.0, 0.0)}),
    ("number", Tag.PORT, {"normal": (0.0, 0.0, 0.0)}),
    ("field", Tag.PORT, {"turns": ()}),
    ("too many", Tag.PORT, {"turns": (0, 1, 2, 3, 4)}),
    ("number", Tag.PORT, {"turns": (360,)}),
    ("field", Tag.PORT, {"mates": ()}),
    ("too many", Tag.PORT, {"mates": ("a", "b")}),
    ("number", Tag.PORT, {"side": 0}),
]


@pytest.mark.parametrize(("status", "tag", "changes"), WRONG_ENTRIES)
def test_an_entry_outside_its_range_is_refused(double_runtime, status, tag, changes):
    record = edited(tag, changes)
    assert double_runtime.read(record)[0] == status
    if status not in ("ok", "too many"):
        with pytest.raises(FileError):
            decode(record)


def cuts(record: bytes, *tags: Tag):
    """The record with the first field of each tag cut anywhere."""
    fields = split_fields(record[30:-4])
    for place in ([t for t, _ in fields].index(tag) for tag in tags):
        tag, payload = fields[place]
        for size in range(len(payload)):
            short = [*fields[:place], (tag, payload[:size]), *fields[place + 1 :]]
            body = b"".join(bytes([t]) + write_count(len(p)) + p for t, p in short)
            yield sealed(record[:30] + body + record[-4:])


def test_a_field_cut_anywhere_is_refused_unless_python_reads_it(double_runtime):
    soft, named = encode(SOFT, 5), encode(catalog["giusti_a"], 5)
    for cut in (*cuts(soft, Tag.KIND, Tag.BODY, Tag.JOINT, Tag.PORT), *cuts(named, Tag.PORT)):
        status, _ = double_runtime.read(cut)
        if status == "ok":
            decode(cut)
        else:
            assert status in ("too short", "field")


def test_a_cut_pair_is_refused(double_runtime):
    pair = double_runtime.types.Pair()
    for cut in cuts(encode(catalog["giusti_a"], 5), Tag.PAIR):
        given = (ctypes.c_size_t(len(cut)), 0, 1, ctypes.byref(pair))
        assert double_runtime.lib.mr_record_pair(cut, *given) == -2


def test_a_name_and_a_number_are_different_labels(double_runtime):
    """Even where the number is the one under which the name is kept."""
    number = zlib.crc32(b"left") >> 1
    data = WRIST.model_dump()
    for port, label in zip(data["ports"], ("left", number), strict=False):
        port["label"] = label
    status, kind = double_runtime.read(encode(ModuleType(**data), 5))
    assert status == "ok"
    at = ctypes.byref(kind)
    assert double_runtime.lib.mr_port_named(at, b"left") == 0
    assert double_runtime.lib.mr_port_named(at, b"right") == -1
    assert double_runtime.lib.mr_port_numbered(at, number) == 1


def test_a_record_ends_inside_the_head_of_a_field(double_runtime):
    record = encode(WRIST, 5)
    assert double_runtime.read(sealed(record[:-4] + b"\x30" + record[-4:]))[0] == "too short"
    assert double_runtime.read(sealed(record[:4] + b"\1\1" + record[6:]))[0] == "newer"
    assert double_runtime.read(sealed(record[:4] + b"\0\0" + record[6:]))[0] == "field"
    long = b"\x82\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00ab"  # the count 2, in eleven bytes
    assert double_runtime.read(sealed(record[:-4] + b"\x30" + long + record[-4:]))[0] == "ok"


def test_the_id_is_known_while_the_header_is_whole(double_runtime):
    record, found = encode(WRIST, 0x0242AC110002), (ctypes.c_uint8 * 16)()

    def read_id(data: bytes) -> tuple[int, bytes]:
        return double_runtime.lib.mr_record_id(data, ctypes.c_size_t(len(data)), found), bytes(
            found
        )

    newer = sealed(record[:4] + b"\2\0" + record[6:])
    wrong = record[:50] + bytes([record[50] ^ 1]) + record[51:]
    for damaged in (record, newer, record + b"x", wrong):
        assert read_id(damaged) == (0, (0x0242AC110002).to_bytes(16, "big"))
    assert read_id(record[:20])[0] == -2


def test_ports_and_pairs_that_are_not_there_have_no_number(double_runtime):
    _, kind = double_runtime.read(encode(WRIST, 5))
    lib, at = double_runtime.lib, ctypes.byref(kind)
    assert [lib.mr_port_numbered(at, label) for label in (2, 3, 4, 5)] == [0, 1, 2, -1]
    _, kind = double_runtime.read(encode(catalog["giusti_a"], 5))
    at = ctypes.byref(kind)
    assert [lib.mr_port_named(at, label) for label in (b"in", b"out", b"up")] == [0, 1, -1]
    assert lib.mr_port_numbered(at, 2) == -1
    record, pair = encode(catalog["giusti_a"], 5), double_runtime.types.Pair()
    for ends in ((1, 0), (0, 0)):
        given = (ctypes.c_size_t(len(record)), *ends, ctypes.byref(pair))
        assert lib.mr_record_pair(record, *given) == -13
        assert lib.mr_record_pair(b"x" + record[1:], *given) == -1
    cut = sealed(record[:-4] + b"\x30\x09" + record[-4:])
    assert lib.mr_record_pair(cut, ctypes.c_size_t(len(cut)), 1, 0, ctypes.byref(pair)) == -2
