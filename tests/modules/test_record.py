"""Records: nothing is lost, nothing damaged passes, and the bytes are those of the guide."""

import contextlib
import json
import math
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modurob import DatasheetError, FileError, ModuleType, catalog
from modurob.modules.dh import connector_pairs
from modurob.modules.record import decode, describe, encode, id_text, read_json, write_json
from modurob.modules.record_fields import (
    ByteReader,
    Tag,
    floats,
    several,
    split_fields,
    word,
    write_count,
)
from oracles import WRIST, complains
from oracles.two_part_modules import two_part_module

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "records.md"
UID, TEXT = 0x0242AC110002, "02:42:ac:11:00:02"
HEADER = 30  # bytes, its own checksum included
MOTOR = catalog["superbot"].with_parameters(rotor_inertia=1e-6, gear_ratio=50.0)
SPRING = MOTOR.with_parameters(joint="yaw", stiffness=20.0, damping=0.1)
FRAGILE = catalog["backbone"].with_parameters(max_torque=2.0)
FULL = ModuleType(
    **WRIST.model_dump(exclude={"bodies", "ports"})
    | {
        "name": "full",
        "nominal": True,
        "bodies": [{**b.model_dump(), "imu": b.name in ("plate", "cap")} for b in WRIST.bodies],
        "ports": [
            {**p.model_dump(), "max_force" if p.label == 3 else "max_torque": 5.0 * p.label}
            for p in WRIST.ports
        ],
        "shapes": [
            {"body": "cap", "form": "cylinder", "size": (0.03, 0.07), "position": (0, 0.01, -0.02),
             "rpy": (0.1, 0, -0.3), "color": "#102030"},
            {"body": "plate", "form": "sphere", "size": (0.02,)},
        ],
        "meshes": [
            {"body": "forearm", "file": "arm.stl", "scale": (1.0, 0.0, -2.0),
             "position": (0.3, 0, 0.1), "rpy": (0, -0.2, 0)},
        ],
    }
).with_parameters(viscous=0.3, joint="push", max_velocity=2.5)  # fmt: skip
FULL = FULL.with_parameters(coulomb=0.2, joint="bend", max_effort=7.0)
TWO_PART = [two_part_module(seed, 3).kind for seed in range(0, 72, 9)]
KINDS = [*catalog.values(), WRIST, FULL, MOTOR, SPRING, FRAGILE, *TWO_PART]
RECORD = encode(catalog["giusti_a"], UID)


def sealed(record):
    """The bytes with right length and checksums, as a writer with other contents makes them."""
    body = bytearray(record[:-4])
    body[6:10] = struct.pack("<I", len(record))
    body[26:30] = struct.pack("<I", zlib.crc32(body[:26]))
    return bytes(body) + struct.pack("<I", zlib.crc32(body))


def with_field(tag, payload, record=RECORD):
    """The record with one more field at its end."""
    return sealed(record[:-4] + bytes([tag, len(payload)]) + payload + record[-4:])


# -- nothing is lost -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_module_comes_back_to_the_last_bit(kind):
    data = encode(kind, UID)
    record = decode(data)
    assert record.kind == kind
    assert (record.uid, record.version, record.skipped) == (UID, 1, ())
    right = connector_pairs(kind)
    assert len(record.pairs) == len(right)
    for found, pair in zip(record.pairs, right, strict=True):
        assert found[:7] == pair[:7]
        for a, b in zip(found[7:9], pair[7:9], strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


odd = st.floats(-1e100, 1e100) | st.sampled_from([-0.0, 5e-324])
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(
    title=words,
    numbers=st.lists(odd, min_size=8, max_size=8),
    labels=st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=2, unique=True),
    uid=st.integers(0, 2**128 - 1),
)
def test_odd_numbers_and_texts_come_back(title, numbers, labels, uid):
    data = catalog["giusti_b"].model_dump()
    data["title"] = title
    data["joints"][0].update(position=numbers[:3], rpy=numbers[3:6])
    data["joints"][0].update(lower=min(numbers[6:]), upper=max(numbers[6:]))
    for port, label in zip(data["ports"], labels, strict=True):
        port["label"] = label
    kind = ModuleType(**data)
    record = decode(encode(kind, uid))
    assert (record.kind, record.uid) == (kind, uid)


@pytest.mark.parametrize("uid", [0, 2**128 - 1, b"\x02\x42\xac\x11\x00\x02", bytes(range(16))])
def test_ids_are_numbers_or_bytes(uid):
    number = int.from_bytes(uid, "big") if isinstance(uid, bytes) else uid
    assert decode(encode(catalog["giusti_c"], uid)).uid == number


def test_the_json_twin_is_the_datasheet_with_the_id(tmp_path):
    path = tmp_path / "module.json"
    for kind in (catalog["giusti_a"], WRIST):
        write_json(decode(encode(kind, UID)), path)
        data = json.loads(path.read_text(encoding="utf-8"))
        assert data["uid"] == TEXT
        assert ModuleType(**data["datasheet"]) == kind
        found = read_json(path)
        assert (found.uid, found.kind, len(found.pairs)) == (UID, kind, len(data["pairs"]))
    write_json(decode(RECORD), path)
    (pair,) = json.loads(path.read_text(encoding="utf-8"))["pairs"]
    assert pair["proximal"]["alpha"] == -math.pi / 2
    assert pair["delta_j"] == math.pi


def test_describe_tells_the_size_and_the_fields():
    text = describe(RECORD)
    assert text == describe(decode(RECORD))
    for piece in (TEXT, "giusti_a", "joint (revolute)", f"{len(RECORD)} bytes", "2 BODY", "1 PAIR"):
        assert piece in text
    listed = sum(int(size) for size in re.findall(r"^  .* (\d+) bytes$", text, re.MULTILINE))
    assert listed == len(RECORD)
    assert "0x55 (skipped)" in describe(with_field(0x55, b"new"))


# -- nothing damaged passes ------------------------------------------------------------------------


def test_every_flipped_bit_is_refused_with_the_id_where_it_can_be_read():
    for bit in range(8 * len(RECORD)):
        damaged = bytearray(RECORD)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FileError) as caught:
            decode(bytes(damaged))
        assert (TEXT in str(caught.value)) == (bit >= 8 * HEADER), bit


@given(st.data())
def test_flipped_bits_of_any_module_are_refused(data):
    record = bytearray(encode(data.draw(st.sampled_from(KINDS)), UID))
    bits = data.draw(st.sets(st.integers(0, 8 * len(record) - 1), min_size=1, max_size=3))
    for bit in bits:
        record[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FileError):
        decode(bytes(record))


def test_records_cut_off_or_too_long_are_refused():
    for size in range(len(RECORD)):
        with pytest.raises(FileError) as caught:
            decode(RECORD[:size])
        assert (TEXT in str(caught.value)) == (size >= HEADER)
    with complains(FileError, TEXT, f"{len(RECORD) + 1} bytes, but its header gives {len(RECORD)}"):
        decode(RECORD + b"\0")


@given(st.binary(max_size=200), st.integers(0, len(RECORD)))
@example(b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", len(RECORD) - 4)
def test_rubbish_with_right_checksums_raises_nothing_but_file_errors(rubbish, at):
    at = max(at, HEADER)
    with contextlib.suppress(FileError):
        decode(sealed(RECORD[:at] + rubbish + RECORD[at:]))


def test_nan_in_a_record_is_refused_by_its_name():
    mass = struct.pack("<d", 0.5)
    at = RECORD.index(b"proximal" + mass) + 8
    for bad in (math.nan, math.inf):
        data = sealed(RECORD[:at] + struct.pack("<d", bad) + RECORD[at + 8 :])
        with complains(FileError, TEXT, "bodies[0].mass"):
            decode(data)
    angle = struct.pack("<d", -math.pi / 2)
    at = RECORD.rindex(angle)  # the last one is in the PAIR field
    data = sealed(RECORD[:at] + struct.pack("<d", math.nan) + RECORD[at + 8 :])
    with complains(FileError, TEXT, "ports in and out", "not all finite"):
        decode(data)


def test_parameters_that_contradict_the_geometry_are_refused():
    for wrong in (-1.5, math.pi / 2):
        at = RECORD.rindex(struct.pack("<d", -math.pi / 2))
        data = sealed(RECORD[:at] + struct.pack("<d", wrong) + RECORD[at + 8 :])
        with complains(FileError, TEXT, "contradict its geometry"):
            decode(data)


def test_pairs_that_do_not_fit_their_module_are_refused():
    """A second PAIR field, the first one's with one byte or number changed."""
    (pair,) = (payload for tag, payload in split_fields(RECORD[HEADER:-4]) if tag == Tag.PAIR)
    assert pair[:3] == b"\0\1\1"  # from port 0 to port 1 by joint 1

    def with_pair(payload):
        field = bytes([Tag.PAIR]) + write_count(len(payload)) + payload
        return sealed(RECORD[:-4] + field + RECORD[-4:])

    assert len(decode(with_pair(pair)).pairs) == 2
    half = struct.pack("<d", 0.5)  # the mass of both parts
    proximal, distal = pair.index(half), pair.rindex(half)
    assert proximal < distal
    heavier = struct.pack("<d", 0.5 + 1e-8)
    for wrong, *pieces in (
        (b"\0\1\0" + pair[3:], "ports in and out contradict its geometry"),
        (b"\0\1\2" + pair[3:], "joint number 1 of 1"),
        (b"\2\1\1" + pair[3:], "port number 2 of 2"),
        (b"\1\0\1" + pair[3:], "no parameters are possible between ports out and in"),
        (pair[:proximal] + heavier + pair[proximal + 8 :], "contradict its geometry"),
        (pair[:distal] + heavier + pair[distal + 8 :], "contradict its geometry"),
    ):
        with complains(FileError, TEXT, *pieces):
            decode(with_pair(wrong))


def test_ids_are_written_in_six_bytes_or_as_many_as_they_need():
    assert id_text(0) == "00:00:00:00:00:00"
    assert id_text(2**48 - 1) == "ff:ff:ff:ff:ff:ff"
    assert id_text(2**48) == "01:00:00:00:00:00:00"


# -- newer writers ---------------------------------------------------------------------------------


def test_a_future_version_is_refused_with_the_id():
    newer = bytearray(RECORD)
    newer[4:6] = struct.pack("<H", 2)
    with complains(FileError, TEXT, "version 2", "reads up to version 1", "Update modurob"):
        decode(sealed(newer))
    newer[4:6] = struct.pack("<H", 0)
    with complains(FileError, TEXT, "version must be 1, got 0"):
        decode(sealed(newer))


def test_unknown_fields_are_skipped_unless_they_are_needed():
    record = decode(with_field(0x7F, b"something newer"))
    assert (record.kind, record.skipped) == (catalog["giusti_a"], (0x7F,))
    with complains(FileError, TEXT, "0x80", "Update modurob"):
        decode(with_field(0x80, b""))


def test_entries_appended_to_a_field_are_left():
    title = catalog["giusti_a"].title.encode()
    at = RECORD.index(title)
    longer = bytearray(RECORD[: at + len(title)] + b"newer" + RECORD[at + len(title) :])
    longer[at - 2] += 5  # the length of the field; the next byte is the text's own
    assert decode(sealed(bytes(longer))).kind == catalog["giusti_a"]


def test_fields_that_are_missing_or_there_twice_are_refused():
    with complains(FileError, TEXT, "0 KIND fields"):
        decode(sealed(RECORD[:HEADER] + RECORD[-4:]))
    with complains(FileError, TEXT, "2 TITLE fields"):
        decode(with_field(0x02, b"\x01x"))
    with complains(FileError, TEXT, "body number 9 of 2"):
        decode(with_field(0x13, b"\x09\x02\x01" + struct.pack("<d", 1.0) + b"\0\0\x07#ffffff"))


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("uid", [-1, 2**128, b"", bytes(17), "02:42", True, None, 1.5])
def test_other_ids_are_refused(uid):
    with complains(DatasheetError, "up to 128 bits"):
        encode(catalog["giusti_a"], uid)


def test_what_is_no_record_is_refused(tmp_path):
    with complains(FileError, "not a module's record"):
        decode(b"PNG and so on")
    with complains(FileError, "a record is bytes, got str"):
        decode("MROB")  # pyright: ignore[reportArgumentType]
    (tmp_path / "x.json").write_text('{"format": "modurob-record", "version": 1, "uid": "me"}')
    with complains(FileError, "x.json", "uid must be", "'me'"):
        read_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"format": "modurob-record", "version": 2}')
    with complains(FileError, "newer modurob"):
        read_json(tmp_path / "x.json")


def test_a_label_beyond_64_bits_does_not_fit():
    data = catalog["giusti_a"].model_dump()
    data["ports"][0]["label"] = 2**70
    with complains(DatasheetError, "giusti_a does not fit into a record", "64 bits"):
        encode(ModuleType(**data), UID)


def test_lengths_that_overflow_do_not_fit():
    data = catalog["giusti_a"].model_dump()
    data["joints"][0]["position"] = (1e308, -1e308, 1e308)
    data["joints"][0]["rpy"] = (0.3, 0.2, 1.0)
    with complains(DatasheetError, "giusti_a does not fit into a record", "too large"):
        encode(ModuleType(**data), UID)


# -- the guide -------------------------------------------------------------------------------------


class Bytes:
    """Reads the types that the guide describes; knows nothing of modurob."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size : self.at]

    def entry(self, kind):
        name, _, inner = kind.rstrip(")").partition("(")
        if name == "byte":
            return self.take(1)[0]
        if name == "count":
            digits = [self.take(1)[0]]
            while digits[-1] & 0x80:
                digits.append(self.take(1)[0])
            return sum((digit & 0x7F) << 7 * place for place, digit in enumerate(digits))
        if name == "text":
            return self.take(self.entry("count")).decode()
        if name == "f64":
            return struct.unpack("<d", self.take(8))[0]
        if name == "floats":
            mask = self.take(-(-int(inner) // 8))
            there = [mask[k // 8] >> k % 8 & 1 for k in range(int(inner))]
            return [self.entry("f64") if bit else 0.0 for bit in there]
        if name in ("limits", "motor"):
            mask = self.entry("byte")
            return [self.entry("f64") if mask & bit else None for bit in (1, 2)]
        if name in ("drive", "strength"):
            if self.at == len(self.data):
                return None
            mask, bits = self.entry("byte"), (1, 2, 4, 8) if name == "drive" else (1, 2)
            return [self.entry("f64") if mask & bit else None for bit in bits]
        if name == "label":
            if self.entry("byte"):
                return self.entry("text")
            coded = self.entry("count")
            return -(coded + 1) // 2 if coded % 2 else coded // 2
        assert name == "list"
        return [self.entry(inner) for _ in range(self.entry("count"))]


def guide_tables():
    text = PAGE.read_text(encoding="utf-8")
    header = re.findall(r"^\| (\S+) \| (\d+|…) \| (.*) \|$", text, re.MULTILINE)
    rows = re.findall(r"^\| 0x(\w\w) \| (\w+) \| [\w ]+ \| (.*) \|$", text, re.MULTILINE)
    fields = {
        int(tag, 16): (name, [entry.split(": ") for entry in entries.split(", ")])
        for tag, name, entries in rows
    }
    return header, fields


def read_by_the_guide(data):
    """Field name -> list of entries."""
    _, fields = guide_tables()
    reader, found = Bytes(data[HEADER:-4]), {name: [] for name, _ in fields.values()}
    while reader.at < len(reader.data):
        name, entries = fields[reader.take(1)[0]]
        inner = Bytes(reader.take(reader.entry("count")))
        found[name].append({entry: inner.entry(kind) for entry, kind in entries})
        assert inner.at == len(inner.data)
    return found


def test_the_header_is_that_of_the_guide():
    header, _ = guide_tables()
    places = [(int(at.replace("−", "-")), size) for at, size, _ in header]
    assert places == [(0, "4"), (4, "2"), (6, "4"), (10, "16"), (26, "4"), (30, "…"), (-4, "4")]
    assert "`MROB`" in header[0][2]
    assert RECORD[:4] == b"MROB"
    assert struct.unpack_from("<HI", RECORD, 4) == (1, len(RECORD))
    assert int.from_bytes(RECORD[10:26], "big") == UID
    assert struct.unpack_from("<I", RECORD, 26)[0] == zlib.crc32(RECORD[:26])
    assert struct.unpack("<I", RECORD[-4:])[0] == zlib.crc32(RECORD[:-4])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_fields_are_those_of_the_guide(kind):
    found = read_by_the_guide(encode(kind, UID))
    (whole,) = found["KIND"]
    assert (whole["name"], whole["symbol"], whole["size"]) == (kind.name, kind.symbol, kind.size)
    assert whole["flags"] == kind.nominal + 2 * kind.grid + 4 * kind.virtual
    assert whole["dyad_joint"] == (kind.dyad_joint or "")
    assert [field["title"] for field in found["TITLE"]] == ([kind.title] if kind.title else [])
    names = [body["name"] for body in found["BODY"]]
    for body, field in zip(kind.bodies, found["BODY"], strict=True):
        assert (body.name, body.mass) == (field["name"], field["mass"])
        assert list(body.center_of_mass) == field["center_of_mass"]
        assert np.array_equal(np.ravel(body.inertia), field["inertia"])
    for joint, field in zip(kind.joints, found["JOINT"], strict=True):
        assert joint.kind == ("fixed", "revolute", "prismatic")[field["kind"]]
        assert (joint.parent, joint.child) == (names[field["parent"]], names[field["child"]])
        assert [joint.lower, joint.upper] == field["limits"]
        assert [joint.viscous, joint.coulomb] == field["friction"]
        drive = [joint.rotor_inertia, joint.gear_ratio, joint.stiffness, joint.damping]
        assert field["drive"] == (drive if joint.rotor_inertia else None)
        assert [*joint.position, *joint.rpy] == field["position"] + field["rpy"]
        assert list(joint.axis) == field["axis"]
    for port, field in zip(kind.ports, found["PORT"], strict=True):
        assert (port.label, port.side) == (field["label"], field["side"])
        assert (port.body, list(port.turns)) == (names[field["body"]], field["turns"])
        assert (port.connector, list(port.mates)) == (field["connector"], field["mates"])
        strength = [port.max_force, port.max_torque]
        assert field["strength"] == (None if strength == [None, None] else strength)
    for shape, field in zip(kind.shapes, found["SHAPE"], strict=True):
        assert shape.form == ("box", "cylinder", "sphere")[field["form"]]
        assert (list(shape.size), shape.color) == (field["size"], field["color"])
        assert [*shape.position, *shape.rpy] == field["position"] + field["rpy"]
    for mesh, field in zip(kind.meshes, found["MESH"], strict=True):
        assert (mesh.body, mesh.file) == (names[field["body"]], field["file"])
        assert list(mesh.scale) == field["scale"]
        assert [*mesh.position, *mesh.rpy] == field["position"] + field["rpy"]
    assert {field["joint"]: field["motor"] for field in found["MOTOR"]} == {
        k: [joint.max_effort, joint.max_velocity]
        for k, joint in enumerate(kind.joints)
        if joint.max_effort or joint.max_velocity
    }
    assert [names[field["body"]] for field in found["IMU"]] == [
        b.name for b in kind.bodies if b.imu
    ]
    for pair, field in zip(connector_pairs(kind), found["PAIR"], strict=True):
        labels = [port["label"] for port in found["PORT"]]
        assert (pair.input.label, pair.output.label) == tuple(
            labels[field[end]] for end in ("input", "output")
        )
        assert field["kinematics"] == [*pair.proximal, *pair.distal, pair.delta_j]
        joint = 0 if pair.joint is None else kind.joints.index(pair.joint) + 1
        assert field["joint"] == joint
        for part, numbers in ((pair.proximal_mass, "proximal"), (pair.distal_mass, "distal")):
            (xx, xy, xz), (_, yy, yz), (_, _, zz) = part.inertia
            mass = [part.mass, *part.center, xx, yy, zz, xy, xz, yz]
            assert field[numbers] == mass


def test_the_guide_s_example_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert f"{len(RECORD)} bytes" in block
    names = {}
    exec(block, names)
    assert names["tau"].shape == (2,)
    assert read_json("module.json").uid == UID


def test_codecs_refuse_what_no_writer_wrote():
    kinds = word(("fixed", "revolute"))
    assert kinds.read(ByteReader(kinds.write("revolute"))) == "revolute"
    with pytest.raises(ValueError, match="byte 2 is none of fixed, revolute"):
        kinds.read(ByteReader(b"\x02"))
    numbers = several(floats(1))
    assert numbers.read(ByteReader(numbers.write([(1.5,), (0.0,)]))) == ((1.5,), (0.0,))
    with pytest.raises(ValueError, match="a list of 5 entries in 4 bytes"):
        numbers.read(ByteReader(b"\x05" + 4 * b"\0"))
    assert len(numbers.read(ByteReader(b"\x05" + 5 * b"\0"))) == 5
    with pytest.raises(ValueError, match="a mask names more than 1 numbers"):
        floats(1).read(ByteReader(b"\x02"))


@pytest.mark.parametrize(("count", "mask"), [(1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_a_mask_has_a_bit_for_each_number(count, mask):
    codec = floats(count)
    assert codec.write([0.0] * count) == bytes(mask)
    values = (*[0.0] * (count - 1), 1.5)
    data = codec.write(values)
    assert len(data) == mask + 8
    assert codec.read(ByteReader(data)) == values


@pytest.mark.parametrize(("name", "joint"), [("giusti_a", "joint"), ("chen_link", None)])
def test_a_twin_lists_the_ports_and_the_joint_of_each_pair(tmp_path, name, joint):
    record = decode(encode(catalog[name], UID))
    write_json(record, tmp_path / "it.json")
    listed = json.loads((tmp_path / "it.json").read_text())["pairs"]
    assert len(listed) == len(record.pairs)
    for entry, pair in zip(listed, record.pairs, strict=True):
        assert (entry["input"], entry["output"]) == (pair.input.label, pair.output.label)
        assert entry["joint"] == joint
        assert entry["delta_j"] == pair.delta_j
        for part in ("proximal", "distal"):
            assert tuple(entry[part].values()) == getattr(pair, part)
            assert list(entry[part]) == ["a", "alpha", "p", "n", "delta"]


def test_a_twin_without_a_datasheet_is_refused(tmp_path):
    file = tmp_path / "it.json"
    write_json(decode(RECORD), file)
    data = json.loads(file.read_text())
    for wrong in (None, [], "giusti_a"):
        file.write_text(json.dumps({**data, "datasheet": wrong}))
        with complains(FileError, "it.json", "no datasheet"):
            read_json(file)


@pytest.mark.parametrize("label", [-1, -2, -300, 0, 70, "in"])
def test_labels_of_ports_survive_a_record(label):
    data = catalog["backbone"].model_dump(mode="json")
    data["ports"][0]["label"] = label
    kind = ModuleType(**data)
    assert decode(encode(kind, 1)).kind.ports[0].label == label
