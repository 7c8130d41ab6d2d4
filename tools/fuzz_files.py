"""Mutate valid files of every readable format and read them: ``python tools/fuzz_files.py``.

Each case is made of a seed and its number alone, so that ``--case 4711`` makes it again. Cases run
in worker processes with 1 GB of memory above what the imports take. A reader may accept a file (it
is then used: dynamics, another save) or refuse it with an error of modurob in one line. All else is
a failure: a foreign error, a crash, more than 2 s of processor time, more than 1 GB. Files of
failures are kept in ``--samples``.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import math
import os
import random
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

import modurob as mr
from modurob import interop
from modurob.distributed.bus import motions
from modurob.modules import record
from modurob.modules.files import read_bytes, read_text
from modurob.modules.record_fields import split_fields, write_count
from modurob.scenario.gait_files import GaitRecord
from modurob.scenario.settings import RunRecord
from modurob.search import BodySpace, EvolutionRecord, Genotype
from modurob.sim import Trajectory
from modurob.studio import imports, project

MEMORY = 2**30  # bytes above what the imports take
SLOW_S = 2.0  # of processor time
STUCK_S = 30.0  # of wall time: the machine may be shared
PROGRESS = 10_000  # cases between two lines
LONGEST_LINE = 2000  # characters of an error
FAILURES = ("foreign error", "error of several lines", "crash", "hang", "memory")

# -- odd values ------------------------------------------------------------------------------------

RAW = {  # tokens that json.dumps does not write, put in the place of a text
    "@nan": "NaN",
    "@inf": "-Infinity",
    "@overflow": "1e999",
    "@digits": "9" * 5000,
    "@deep": "[" * 2000 + "]" * 2000,
    "@deeper": '{"a":' * 100_000 + "0" + "}" * 100_000,
    "@levels": "[" * 60 + "]" * 60,
    "@half": '"\\ud800"',
    "@twice": '{"name": 1, "name": 2}',
    "@bare": "abc",
}
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3.5, -0.0, 1e308, -1e308, 5e-324, 1e-300, 1e16, 2**31, 2**63,
    -(2**63), 2**64, 10**30, 10**400, "", " ", "a", "m0", "x" * 3000, "a\0b", "\n", "é", "\u2028",
    "../../x", "1", "1e5", "NaN", [], {}, [[]], [0] * 3, [1e308] * 3, [0.0] * 4, [None], {"a": 1},
    {"": ""}, [{}] * 50, list(range(300)), [[1, 0, 0], [0, 1, 0], [0, 0, 1]], *RAW,
]  # fmt: skip
FACTORS = [1 + 1e-12, 1 + 1e-7, 0.5, 2, -1, 10, 1e-9, 1e9, 1e-160, 1e160]
NUMERIC = [0, 0.0, 1, -1, 1e-300, 1e-20, 1e20, 1e154, 1e300, 90, 180, 0.1, 3]
CHUNKS = [bytes([c]) for c in b"\0\xff{[\"'\\\n<&|"] + [b"\xef\xbb\xbf", b"PK", b"B^", b"--"]


def places(node: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """(container, key) of all values of a document."""
    found = [] if found is None else found
    for key in node if isinstance(node, dict) else range(len(node)):
        found.append((node, key))
        if isinstance(node[key], dict | list):
            places(node[key], found)
    return found


def odd_document(data: Any, rng: random.Random) -> Any:
    """A copy with one to three values replaced, removed, moved or repeated."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        spots = places(data)
        if not spots:
            break
        node, key = rng.choice(spots)
        value, what = node[key], rng.random()
        if what < 0.35 and type(value) in (int, float):  # may well be accepted
            scaled = min(value, 10**300) * rng.choice(FACTORS)  # floats hold no larger numbers
            node[key] = scaled if rng.random() < 0.7 else rng.choice(NUMERIC)
        elif what < 0.45:
            node[key] = copy.deepcopy(rng.choice(ODD))
        elif what < 0.6 and isinstance(value, int | float) and not isinstance(value, bool):
            node[key] = rng.choice((-value, value * 10**6, value + 1, str(value), [value], 1e-9))
        elif what < 0.7:
            other, at = rng.choice(spots)
            node[key] = copy.deepcopy(other[at])
        elif what < 0.8:
            del node[key]
        elif what < 0.9 and isinstance(node, list):
            node.insert(key, copy.deepcopy(value))
        elif isinstance(node, dict):
            node[rng.choice(("", "a", "name", "format", "$schema", f"{key}s"))] = value
        else:
            node[key] = copy.deepcopy(rng.choice(ODD))
    return data


def json_text(data: Any) -> bytes:
    """The document with the raw tokens in it."""
    text = json.dumps(data)
    for name, token in RAW.items():
        text = text.replace(json.dumps(name), token)
    return text.encode()


def odd_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut, repeated or put in, without regard to what they mean."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 4, 16, 100)))
        what = rng.randrange(7)
        if what == 0:
            data[at:end] = rng.randbytes(end - at)
        elif what == 1:
            del data[at:end]
        elif what == 2:
            data[at:at] = rng.choice(CHUNKS) * rng.choice((1, 1, 2, 300))
        elif what == 3:
            data[at:at] = data[at:end] * rng.choice((1, 2, 50))
        elif what == 4 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif what == 5 and rng.random() < 0.3:
            del data[at:]
        else:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + rng.choice((4, 30, 200))]
    return bytes(data)


def odd_json(content: bytes, rng: random.Random) -> bytes:
    """JSON with odd values, or with odd bytes."""
    if rng.random() < 0.25:
        return odd_bytes(content, rng)
    return json_text(odd_document(json.loads(content), rng))


TOML_VALUES = [
    "nan", "-inf", "1e999", "0x" + "F" * 3000, "9" * 5000, "1979-05-27T07:32:00Z", "07:32:00",
    '"\\uD800"', '"' + "x" * 3000 + '"', "[" * 3000 + "]" * 3000, "{a = " * 500 + "1" + "}" * 500,
    "true", '""', "[]", "{}", "'''\n'''", "-0.0", "1_000", "0b1", "{a.b.c = 1}", "[[1, 2], [3.0]]",
]  # fmt: skip


NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


def odd_number(text: str, rng: random.Random) -> str:
    """A text with one of its numbers replaced by another that may well be accepted."""
    found = rng.choice(list(NUMBER.finditer(text)))
    scaled = float(found[0]) * rng.choice(FACTORS)
    new = repr(scaled) if rng.random() < 0.7 else str(rng.choice(NUMERIC))
    return text[: found.start()] + new + text[found.end() :]


def odd_toml(content: bytes, rng: random.Random) -> bytes:
    """TOML with odd values, keys and lines, or with odd bytes."""
    if rng.random() < 0.25:
        return odd_bytes(content, rng)
    lines = content.decode().split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, what = rng.randrange(len(lines)), rng.random()
        key, equals, _ = lines[at].partition("=")
        if what < 0.4 and NUMBER.search(lines[at]):
            lines[at] = odd_number(lines[at], rng)
        elif what < 0.6 and equals:
            lines[at] = f"{key}= {rng.choice(TOML_VALUES)}"
        elif what < 0.7:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif what < 0.8:
            del lines[at]
        elif what < 0.9:
            lines.insert(at, ".".join("a" * rng.choice((2, 30, 50_000))) + " = 1")
        else:
            lines.insert(at, rng.choice(("[a]", "[[a]]", "[bodies]", "[a.b.c]", "a = {", "\ufeff")))
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


XML_VALUES = [
    "", " ", "nan", "inf", "-1", "0", "1e308", "1e999", "1e-320", "0 0 0", "1 0", "a b c", "0x10",
    "1 0 0", "x" * 3000, "9" * 5000, "é", "revolute", "fixed", "world", "1,0,0", "１", "1_0",
]  # fmt: skip


def odd_xml(content: bytes, rng: random.Random) -> bytes:
    """XML with odd attributes and elements, or with odd bytes."""
    if rng.random() < 0.25:
        return odd_bytes(content, rng)
    root = ElementTree.fromstring(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        parents = [node for node in root.iter() if len(node)]
        if not parents:
            break
        node, what = rng.choice(list(root.iter())), rng.random()
        parent = rng.choice(parents)
        child = rng.choice(list(parent))
        key = rng.choice(list(node.attrib)) if node.attrib else ""
        if what < 0.3 and key and NUMBER.search(node.attrib[key]):
            node.set(key, odd_number(node.attrib[key], rng))
        elif what < 0.5 and key:
            node.set(key, rng.choice(XML_VALUES))
        elif what < 0.6 and node.attrib:
            del node.attrib[rng.choice(list(node.attrib))]
        elif what < 0.7:
            parent.remove(child)
        elif what < 0.8:
            parent.append(copy.deepcopy(child))
        elif what < 0.9:
            node.append(copy.deepcopy(child))
        else:
            node.tag = rng.choice(("a", "link", "joint", "robot", "mimic", "inertial", "{u}x"))
    text = ElementTree.tostring(root)
    what = rng.random()
    if what < 0.02:
        return b'<!DOCTYPE a [<!ENTITY b "c">]>' + text
    if what < 0.04:
        return b'<?xml version="1.0" encoding="%s"?>' % rng.choice((b"utf-16", b"x", b"")) + text
    if what < 0.06:
        return b"<a>" * 5000 + text + b"</a>" * 5000
    return text


def odd_table(content: bytes, rng: random.Random) -> bytes:
    """A table with odd numbers, or with odd bytes."""
    if rng.random() < 0.5:
        return odd_bytes(content, rng)
    text = odd_number(content.decode(), rng)
    return (odd_number(text, rng) if rng.random() < 0.5 else text).encode()


# -- NPZ -------------------------------------------------------------------------------------------

NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -1.0, 1e9, 2.0]
INTEGERS = [-1, -2, 2**31, -(2**31), 2**62, -(2**62), 99, 10**9, 0]


def npz_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a valid file."""
    with np.load(io.BytesIO(content)) as found:
        return {name: found[name] for name in found.files}


def odd_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Another shape, type or number."""
    what = rng.randrange(13)
    if what >= 9 and array.dtype.kind == "f":  # may well be accepted
        return array * rng.choice(FACTORS)
    if what <= 3 and array.size:
        array = array.copy()
        odd = INTEGERS if array.dtype.kind == "i" else NUMBERS
        for _ in range(rng.choice((1, 1, 3))):
            value = rng.choice(odd)
            flat = array.reshape(-1)
            where = rng.randrange(flat.size)
            with contextlib.suppress(ValueError, OverflowError, TypeError):
                flat[where : where + rng.choice((1, 1, 10**9))] = value
        return array
    if what == 4:
        return array[: rng.randrange(len(array) + 1)] if array.ndim else array[None]
    if what == 5:
        kinds = ("<f4", ">f8", "<i4", ">i8", "<i8", "|b1", "<f8", "|u1", "<c16", "<U3", "<f2")
        return array.astype(rng.choice(kinds), casting="unsafe")
    if what == 6:
        return rng.choice((array.T, array[None], array[..., None], np.asfortranarray(array)))
    if what == 7:
        return np.concatenate([array, array]) if array.ndim else array[None]
    return np.zeros(rng.choice(((), (0,), (1,), (3,), (0, 6), (2, 0), (1, 1, 1))))


def npy(array: np.ndarray, rng: random.Random, odd: bool) -> bytes:
    """NumPy's format, with a header that lies or odd bytes if it shall be odd."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array)
    data = stream.getvalue()
    if odd and rng.random() < 0.7:
        old, new = rng.choice(
            [
                (b"(", b"(99999999999, "), (b"<f8", b"|O8"), (b"<f8", b"<f4"), (b"<f8", b"|V8"),
                (b"False", b"True"), (b"\x93NUMPY\x01", b"\x93NUMPY\x02"), (b"'shape'", b"'shap'"),
                (b"{", b"-" * 500 + b"{"), (b"{", b"[" * 90), (b"(", b"(-1, "), (b")", b"L)"),
                (b"<f8", b">f8"), (b"\n", b"\0"), (b"\x93NUMPY", b"\x93NUMPI"), (b"<i8", b"<u8"),
            ]
        )  # fmt: skip
        data = data.replace(old, new, 1)
        if rng.random() < 0.7 and len(new) != len(old):  # the header's own length stays right
            size = struct.unpack_from("<H", data, 8)[0] + len(new) - len(old)
            data = data[:8] + struct.pack("<H", max(0, size) % 65536) + data[10:]
    elif odd:
        data = odd_bytes(data, rng)
    return data


def odd_npz(content: bytes, rng: random.Random) -> bytes:
    """An archive with odd arrays, an odd header, odd members, or odd bytes."""
    if rng.random() < 0.2:
        return odd_bytes(content, rng)
    arrays = npz_arrays(content)
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        name, what = rng.choice(list(arrays)), rng.random()
        if what < 0.3:
            with contextlib.suppress(ValueError, RecursionError):  # it is odd already
                header = json.loads(arrays["header"].tobytes())
                text = json_text(odd_document(header, rng))
                arrays["header"] = np.frombuffer(text, dtype=np.uint8)
        elif what < 0.85 and name != "header":
            arrays[name] = odd_array(arrays[name], rng)
        elif what < 0.9 and name != "header":
            del arrays[name]
        elif what < 0.95:
            arrays[rng.choice(("0.x", "x", "0.channel.x", "9.t", ""))] = arrays[name]
    stream = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED,) * 6 + (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", packing) as archive:
        warnings.simplefilter("ignore")  # names that are there twice
        lie = rng.choice(list(arrays)) if rng.random() < 0.2 else None
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array, rng, name == lie))
        if rng.random() < 0.05:
            archive.writestr(rng.choice(("0.q.npy", "header.npy", "readme", "a/b.npy")), b"x")
        if rng.random() < 0.02:
            archive.writestr("bomb.npy", b"\0" * 10**7, zipfile.ZIP_DEFLATED)
    return lying(stream.getvalue(), rng) if rng.random() < 0.1 else stream.getvalue()


def odd_archive(content: bytes, rng: random.Random) -> bytes:
    """A project with its runs whose members are odd, packed oddly, or of which the archive lies."""
    if rng.random() < 0.2:
        return odd_bytes(content, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(files))
    what = rng.random()
    if what < 0.7:
        files[name] = (odd_npz if name.endswith(".npz") else odd_json)(files[name], rng)
    elif what < 0.8:
        del files[name]
    elif what < 0.9:
        files[rng.choice(("../../x", "runs/1.npz/x", "runs/2.npz", "a", "/"))] = files[name]
    stream = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED,) * 6 + (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for key, data in files.items():
            archive.writestr(key, data)
    return lying(stream.getvalue(), rng) if rng.random() < 0.1 else stream.getvalue()


def lying(data: bytes, rng: random.Random) -> bytes:
    """An archive with a size in its list of members that is another."""
    at = data.find(b"PK\1\2") + rng.choice((10, 20, 24, 28, 30, 42))
    return data[:at] + struct.pack("<I", rng.choice((0, 1, 2**31, 2**32 - 1))) + data[at + 4 :]


# -- records ---------------------------------------------------------------------------------------


def odd_record(content: bytes, rng: random.Random) -> bytes:
    """A record with odd fields and right checksums, or with odd bytes."""
    if rng.random() < 0.2:
        return odd_bytes(content, rng)
    fields = split_fields(content[record.HEADER.size + 4 : -4])
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, what = rng.randrange(len(fields)), rng.random()
        tag, payload = fields[at]
        if what < 0.5 and payload:
            fields[at] = (tag, odd_bytes(payload, rng))
        elif what < 0.75 and len(payload) > 8:
            spot = rng.randrange(len(payload) - 7)
            number = struct.pack("<d", rng.choice(NUMBERS))
            fields[at] = (tag, payload[:spot] + number + payload[spot + 8 :])
        elif what < 0.85:
            fields[at] = (rng.choice((1, 2, 3, 16, 17, 18, 19, 32, 5, 127, 128)), payload)
        elif what < 0.93:
            fields.insert(at, rng.choice(fields))
        elif len(fields) > 1:
            del fields[at]
    body = b"".join(bytes([tag]) + write_count(len(data)) + data for tag, data in fields)
    length = record.HEADER.size + len(body) + 8
    header = record.HEADER.pack(b"MROB", rng.choice((1,) * 30 + (0, 2)), length, content[10:26])
    data = header + record.CRC.pack(zlib.crc32(header)) + body
    return data + record.CRC.pack(zlib.crc32(data))


# -- formats ---------------------------------------------------------------------------------------


def use_model(model: mr.Model) -> None:
    """Everything that compiled code does with the numbers of a model."""
    q = np.stack([model.neutral(), model.neutral()])
    v = np.full((2, model.nv), 0.1)
    model.inverse_dynamics(q, v, v)
    model.inverse_dynamics(q[0], v[0], v[0])
    model.mass_matrix(q)
    model.forward_kinematics(q)
    with contextlib.suppress(mr.ModurobError):  # a singular mass matrix
        model.forward_dynamics(q, v, v)


def use_organism(organism: mr.Organism) -> None:
    """Its matrices, a save, and its model."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "again.json"
        organism.save(file)
        assert mr.Organism.from_file(file) == organism
    organism.aim()
    organism.canonical()
    if len(organism) <= 50:
        use_model(organism.model(hinges="physical", base="free"))


def use_kind(kind: mr.ModuleType) -> None:
    """An organism of one module, and its record."""
    if not kind.virtual:
        use_organism(mr.Organism.start(kind))
    with contextlib.suppress(mr.ModurobError):
        assert record.decode(record.encode(kind, 1)).kind == kind


def use_trajectory(trajectory: Trajectory) -> None:
    """Energies, states between the recorded ones, a save, and its models."""
    for part in trajectory.parts:
        _ = part.energy, part.momentum, part.a
        part.at((part.t[0] + part.t[-1]) / 2)
        if part.organism is not None:
            use_organism(part.organism)
        use_model(part.model)
    with tempfile.TemporaryDirectory() as folder:
        trajectory.save(Path(folder) / "again.npz")
        Trajectory.load(Path(folder) / "again.npz")
        trajectory.to_csv(Path(folder) / "again.csv")


def use_scenario(scenario: mr.Scenario) -> None:
    """Its parts, and a save; not a run, which may last as long as the file says."""
    model = scenario.model()
    scenario.start(model)
    scenario.law(model)
    scenario.reference(model)
    with tempfile.TemporaryDirectory() as folder:
        scenario.save(Path(folder) / "again.json")


def use_project(opened: project.Project) -> None:
    """Undo and redo of all steps, and a save."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "again.modurob.json"
        file.write_bytes(project.to_bytes(opened))
        project.read(file)
    for step in (opened.history.undo, opened.history.redo):
        with contextlib.suppress(mr.ModurobError):  # a body of the history that is none
            while step(opened.pose, opened.settings):
                pass
    project.to_bytes(opened)


def use_genotype(genotype: Genotype) -> None:
    """Its model, its waves, its key, and a save."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "again.json"
        genotype.save(file)
        assert Genotype.from_file(file) == genotype
    genotype.waves()
    genotype.canonical()
    if len(genotype.genes) <= 50:
        use_model(genotype.model())


def use_gait(gait: GaitRecord) -> None:
    """The motion of a crab."""
    options = {"hinges": "physical", "controller": "PdGravity", **gait.fields()}
    scenario = mr.Scenario(organism=mr.examples.crab(), **options)
    motion = scenario.reference(scenario.model())
    if callable(motion):
        motion(0.3)


def use_evolution(record: EvolutionRecord) -> None:
    """Its members, and a save."""
    record.individuals()
    with tempfile.TemporaryDirectory() as folder:
        record.save(Path(folder) / "again.json")


def use_motion(found: tuple[motions.Function, float]) -> None:
    """Places at its ends and between them."""
    motion, duration = found
    for t in (0.0, duration / 3, duration):
        assert np.isfinite(np.concatenate(motion(t))).all()


def use_imported(found: imports.Imported) -> None:
    """Its project, and its runs as files."""
    if found.project is not None:
        use_project(found.project)
    use_kinds({kind.name: kind for kind in found.kinds})


def use_kinds(kinds: Mapping[str, mr.ModuleType]) -> None:
    """Each of them."""
    for kind in list(kinds.values())[:3]:
        use_kind(kind)


class Format(NamedTuple):
    """A kind of file that modurob reads.

    Attributes:
        ending: Of its files.
        reader: The public function that reads it.
        mutate: Another content from a valid one.
        read: The reader.
        use: What is done with the result.
    """

    ending: str
    reader: str
    mutate: Callable[[bytes, random.Random], bytes]
    read: Callable[[Path], Any]
    use: Callable[[Any], None]


def _assembly(path: Path) -> mr.Organism:
    kinds = {name: mr.catalog.get(name) for name in ("scout", "backbone")}
    return interop.read_cobra_assembly(path, kinds)


TABLE_MODEL = mr.examples.arm("bab").model("physical")
TABLE_KINDS = ("steps", "quintic", "spline", "csv")


def _motion(path: Path) -> tuple[motions.Function, float]:
    kind = TABLE_KINDS[path.stat().st_size % len(TABLE_KINDS)]
    return motions.read(kind, str(path), TABLE_MODEL)


FORMATS = {
    "module.json": Format(
        ".json", "ModuleType.from_file", odd_json, mr.ModuleType.from_file, use_kind
    ),
    "module.toml": Format(
        ".toml", "ModuleType.from_file", odd_toml, mr.ModuleType.from_file, use_kind
    ),
    "organism.json": Format(
        ".json", "Organism.from_file", odd_json, mr.Organism.from_file, use_organism
    ),
    "organism.toml": Format(
        ".toml", "Organism.from_file", odd_toml, mr.Organism.from_file, use_organism
    ),
    "trajectory.npz": Format(".npz", "Trajectory.load", odd_npz, Trajectory.load, use_trajectory),
    "project": Format(".modurob.json", "studio.project.read", odd_json, project.read, use_project),
    "scenario": Format(".json", "Scenario.load", odd_json, mr.Scenario.load, use_scenario),
    "record.json": Format(
        ".json", "record.read_json", odd_json, record.read_json, lambda r: use_kind(r.kind)
    ),
    "record": Format(
        ".bin",
        "record.decode",
        odd_record,
        lambda path: record.decode(read_bytes(path)),
        lambda r: use_kind(r.kind),
    ),
    "cobra modules": Format(
        ".json", "read_cobra_modules", odd_json, interop.read_cobra_modules, use_kinds
    ),
    "cobra assembly": Format(".json", "read_cobra_assembly", odd_json, _assembly, use_organism),
    "cobra modules, repaired": Format(
        ".json",
        "read_cobra_modules",
        odd_json,
        partial(interop.read_cobra_modules, strict=False),
        use_kinds,
    ),
    "urdf": Format(".urdf", "read_urdf", odd_xml, interop.read_urdf, use_kind),
    "urdf, repaired": Format(
        ".urdf", "read_urdf", odd_xml, partial(interop.read_urdf, strict=False), use_kind
    ),
    "genotype": Format(".json", "Genotype.from_file", odd_json, Genotype.from_file, use_genotype),
    "gait": Format(".json", "GaitRecord.load", odd_json, GaitRecord.load, use_gait),
    "evolution": Format(
        ".json", "EvolutionRecord.load", odd_json, EvolutionRecord.load, use_evolution
    ),
    "table of places": Format(".csv", "bus.motions.read", odd_table, _motion, use_motion),
    "project with runs": Format(
        ".zip",
        "studio.imports.read",
        odd_archive,
        lambda path: imports.read(path.name, path.read_bytes()),
        use_imported,
    ),
    "drawing": Format(
        ".txt",
        "Organism.from_grid",
        odd_bytes,
        lambda path: mr.Organism.from_grid(read_text(path)),
        use_organism,
    ),
}


def toml_of(data: Mapping[str, Any]) -> str:
    """A document as TOML: inline tables inside lists."""

    def value(x: Any) -> str:
        if isinstance(x, dict):
            return "{" + ", ".join(f"{json.dumps(k)} = {value(v)}" for k, v in x.items()) + "}"
        if isinstance(x, list):
            return "[" + ", ".join(map(value, x)) + "]"
        return json.dumps(x)

    text = "".join(f"{k} = {value(v)}\n" for k, v in data.items() if v is not None)
    tomllib.loads(text)
    return text


def valid_files() -> dict[str, list[bytes]]:
    """Contents of valid files of each format."""
    found: dict[str, list[bytes]] = {name: [] for name in FORMATS}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "it"

        def written(write: Callable[[Path], Any], ending: str = "") -> bytes:
            path = file.with_suffix(ending)
            write(path)
            return path.read_bytes()

        for kind_name in ("scout", "superbot", "giusti_a", "chen_prismatic"):
            kind = mr.catalog.get(kind_name)
            data = kind.model_dump(mode="json", exclude_defaults=True)
            data = {"format": kind.format, "version": kind.version} | data
            found["module.json"].append(json.dumps(data).encode())
            found["module.toml"].append(toml_of(data).encode())
            found["record"].append(record.encode(kind, 0x0242AC110002))
            held = record.decode(found["record"][-1])
            found["record.json"].append(written(lambda p, held=held: record.write_json(held, p)))
            found["cobra modules"].append(
                written(lambda p, kind=kind: interop.write_cobra_modules(kind, p))
            )
        arm, crab = mr.examples.arm("bab"), mr.examples.crab()
        for organism in (crab, arm, mr.examples.superbot_tree().undock("m1")[0]):
            found["organism.json"].append(written(organism.save))
            found["organism.toml"].append(toml_of(json.loads(found["organism.json"][-1])).encode())
        for organism in (crab, mr.examples.nine()):
            found["cobra assembly"].append(
                written(lambda p, o=organism: interop.write_cobra_assembly(o, p))
            )
        for model in (arm.model("physical"), crab.model(base="free")):
            found["urdf"].append(written(lambda p, m=model: interop.write_urdf(m, p)))
        runs = [
            mr.simulate(arm.model("physical"), None, None, 0.02, integrator="RK4", organism=arm),
            mr.simulate(crab.model(base="free"), None, None, 0.01, integrator="RK4", organism=crab),
            mr.simulate(
                crab.model("physical", base="free"), None, None, 0.02, integrator="RK4",
                organism=crab, events=[mr.sim.Undock(0.01, "m1")],
            ),
        ]  # fmt: skip
        found["trajectory.npz"] = [written(run.save, ".npz") for run in runs]
        history = project.History(
            project.SavedBody(crab), [project.HistoryStep("grow", project.SavedBody(arm))],
            [project.HistoryStep("shrink", project.SavedBody(None))],
        )  # fmt: skip
        kinds = {"giusti_a": mr.catalog.get("giusti_a")}
        found["project"] = [project.to_bytes(project.Project(history, kinds, {"m0.hinge": 0.1}))]
        for options in (
            {"motion": "wave", "controller": "ComputedTorque", "duration": 0.2, "frequency": 1.0},
            {"motion": "step", "controller": "PdGravity", "target": {"m0.hinge": 0.2}},
            {"events": [{"what": "undock", "time": 0.1, "module": "m2"}], "integrator": "RK4"},
        ):
            scenario = mr.Scenario(organism=crab, hinges="physical", **options)
            found["scenario"].append(written(scenario.save))
        space = BodySpace("backbone", (3, 5))
        one, other = (Genotype.random(space, np.random.default_rng(k)) for k in (1, 2))
        found["genotype"] = [written(one.save), written(other.save)]
        member = {key: one.document()[key] for key in ("frequency", "genes")}
        entry = {"evaluated": 2, "kept_out": 0, "best": 1.0, "median": 0.5, "leader": 1.0}
        search = EvolutionRecord(
            settings={"space": one.document()["space"], "population": 2}, history=(entry,),
            members=({"genotype": member, "score": 1.0, "generation": 0},),
        )  # fmt: skip
        found["evolution"] = [written(search.save)]
        for motion, own in (("wave", {"lag": 0.5}), ("sine", {"phase": {"m0.hinge": 0.1}})):
            gait = GaitRecord(motion=motion, amplitude=0.4, gait=own)
            found["gait"].append(written(gait.save))
        rows = np.column_stack([np.linspace(0, 2, 9), 9 * np.eye(9)[:, :3]])
        for head in ("", "time [s],q m0.joint [rad],q m1.joint [rad],q m2.joint [rad]"):
            file = Path(name) / "places.csv"
            np.savetxt(file, rows, "%.6g", ",", header=head, comments="")
            found["table of places"].append(file.read_bytes())
        run = mr.simulate(arm.model("physical"), None, None, 0.02, integrator="RK4", organism=arm)
        content = project.Project(project.History(project.SavedBody(arm)))
        record_of_run = RunRecord(
            number=1, title="fall", status="finished", seconds=0.02, took=0.1,
            settings=project.NEW_SETTINGS,
        )  # fmt: skip
        content.runs.append(record_of_run)
        (Path(name) / "1.npz").write_bytes(written(run.save, ".npz"))
        (Path(name) / "1.json").write_text("{}")
        found["project with runs"] = [imports.archive(content, Path(name), 10**7)[0]]
        found["drawing"] = [b"B^--B^\n|\nB>", b"B^--B^--B^\n    |\n    B^"]
    for name in ("cobra modules", "urdf"):
        found[f"{name}, repaired"] = found[name]
    return found


# -- one case --------------------------------------------------------------------------------------


class Slow(BaseException):
    """A case took too long; no reader catches this."""


class Outcome(NamedTuple):
    """What became of a case: a word, and the error or place if there is one."""

    what: str
    detail: str = ""


class Campaign:
    """Cases of one seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.valid, self.names = valid_files(), list(FORMATS)

    def content(self, number: int) -> tuple[str, bytes]:
        """Format and content of a case."""
        rng = random.Random(f"{self.seed} {number}")
        name = self.names[number % len(self.names)]
        return name, FORMATS[name].mutate(rng.choice(self.valid[name]), rng)

    def run(self, number: int) -> Outcome:
        """Read a case, and use what was read."""
        name, content = self.content(number)
        form = FORMATS[name]
        path = self.folder / f"case{form.ending}"
        path.write_bytes(content)
        return outcome(form, path)


def outcome(form: Format, path: Path) -> Outcome:
    """What a reader makes of a file."""
    step = "reading"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = form.read(path)
            step = "using"
            form.use(found)
        return Outcome("accepted")
    except mr.ModurobError as error:
        text = str(error)
        if len(text.splitlines()) != 1 or len(text) > LONGEST_LINE:
            return Outcome("error of several lines", f"{step}: {text[:200]!r}")
        return Outcome("refused" if step == "reading" else "refused in use", text)
    except MemoryError:
        return Outcome("memory", step)
    except Slow:
        return Outcome("hang", f"{step}: {_where(sys.exc_info()[2])}")
    except Exception as error:
        place = _where(error.__traceback__)
        return Outcome("foreign error", f"{step}: {type(error).__name__}: {error!s:.100} {place}")


def _where(trace: Any) -> str:
    """The last line of modurob, and the last line at all."""
    frames = traceback.extract_tb(trace)
    ours = [frame for frame in frames if "modurob" in frame.filename]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in (frames[-1:] + ours[-1:]))


# -- workers ---------------------------------------------------------------------------------------


def work(seed: int, start: int, stop: int, folder: Path) -> None:
    """Print one line for each case; runs in a process of its own."""
    campaign = Campaign(seed, folder)
    for number in range(len(FORMATS)):  # compile and import all before memory is counted
        for valid in campaign.valid[campaign.names[number]]:
            path = folder / f"valid{FORMATS[campaign.names[number]].ending}"
            path.write_bytes(valid)
            found = outcome(FORMATS[campaign.names[number]], path)
            assert found.what == "accepted", (campaign.names[number], found)
    import resource  # not on Windows, where a sample still runs

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def slow(*_: object) -> None:
        raise Slow

    signal.signal(signal.SIGPROF, slow)
    print(json.dumps({"ready": True}), flush=True)
    for number in range(start, stop):
        signal.setitimer(signal.ITIMER_PROF, SLOW_S)
        try:
            found = campaign.run(number)
        except Slow:
            found = Outcome("hang", "making the case")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([number, found.what, found.detail[:400]]), flush=True)


class Worker:
    """A process that runs a range of cases, and is started again behind a case that ended it."""

    def __init__(self, seed: int, start: int, stop: int, report: Callable[..., None]) -> None:
        self.seed, self.next, self.stop, self.report = seed, start, stop, report
        self._start()

    def _start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [
                sys.executable, __file__, "--worker", self.folder.name, "--seed", str(self.seed),
                "--range", str(self.next), str(self.stop),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.buffer, self.heard, self.ready = b"", time.monotonic(), False

    def pump(self) -> bool:
        """Take what the process has to say; returns whether it is at work."""
        stream = self.process.stdout
        assert stream is not None
        if select.select([stream], [], [], 0.2)[0]:
            data = os.read(stream.fileno(), 65536)
            self.heard = time.monotonic()
            if not data:
                return self._ended("crash")
            *lines, self.buffer = (self.buffer + data).split(b"\n")
            for line in map(json.loads, lines):
                if isinstance(line, dict):
                    self.ready = True
                    continue
                self.report(*line)
                self.next = line[0] + 1
        elif time.monotonic() - self.heard > STUCK_S * (1 if self.ready else 10):
            self.process.kill()
            return self._ended("hang")
        return True

    def _ended(self, why: str) -> bool:
        code = self.process.wait()
        self.folder.cleanup()
        if not self.ready:
            raise SystemExit(f"a worker ended with {code} before its first case")
        if self.next < self.stop:
            self.report(self.next, why, f"exit status {code}")
            self.next += 1
        if self.next >= self.stop:
            return False
        self._start()
        return True


def main() -> int:
    """Run a campaign and print what became of each format's files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-n", "--number", type=int, default=100_000, help="cases in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes")
    parser.add_argument("--samples", type=Path, default=Path("fuzz-samples"))
    parser.add_argument("--case", type=int, help="run one case here, and show its error")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--range", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.seed, *given.range, given.worker)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(given.seed, Path(folder))
        if given.case is not None:
            name, content = campaign.content(given.case)
            print(name, len(content), "bytes", content[:300])
            print(*campaign.run(given.case), sep=": ")
            return 0
        return _campaign(given, campaign)


def _campaign(given: argparse.Namespace, campaign: Campaign) -> int:
    counts = {name: Counter[str]() for name in FORMATS}
    failures: Counter[str] = Counter()

    def report(number: int, what: str, detail: str) -> None:
        name = campaign.names[number % len(campaign.names)]
        counts[name][what] += 1
        if sum(map(Counter.total, counts.values())) % PROGRESS == 0:
            print(f"{sum(map(Counter.total, counts.values())):,} cases", flush=True)
        if what in FAILURES:
            failures[key := f"{name}: {what}: {detail}"] += 1
            if failures[key] == 1:
                given.samples.mkdir(exist_ok=True)
                ending = FORMATS[name].ending
                (given.samples / f"{number}{ending}").write_bytes(campaign.content(number)[1])
                print(f"case {number}: {key}", flush=True)

    stop, share = given.first + given.number, math.ceil(given.number / given.jobs)
    starts = range(given.first, stop, share)
    workers = [Worker(given.seed, k, min(k + share, stop), report) for k in starts]
    began = time.monotonic()
    while workers:
        workers = [worker for worker in workers if worker.pump()]
    words = ("accepted", "refused", "refused in use", *FAILURES)
    width = max(map(len, FORMATS))
    print(f"seed {given.seed}, {given.number} cases in {time.monotonic() - began:.0f} s")
    print(" " * width, *words, sep="  ")
    for name, found in counts.items():
        print(name.ljust(width), *(str(found[w]).rjust(len(w)) for w in words), sep="  ")
    total = sum(counts.values(), Counter())
    print("all".ljust(width), *(str(total[w]).rjust(len(w)) for w in words), sep="  ")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
