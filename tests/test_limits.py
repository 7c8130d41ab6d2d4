"""Limits of counts and sizes: what is exactly at a limit is taken, what is beyond is refused."""

import struct
import zlib

import numpy as np
import pytest

from modurob import (
    DatasheetError,
    FileError,
    ModuleType,
    ModurobError,
    Scenario,
    StateError,
    catalog,
    examples,
    friction,
    simulate,
)
from modurob.compiler import emit_c
from modurob.control import delay
from modurob.control.delay import samples_late
from modurob.distributed import MassNetwork, codec
from modurob.distributed.mass import state as mass_state
from modurob.distributed.reliable import NUMBERS, WINDOW, Channel, is_newer
from modurob.errors import LONGEST_LINE, choices, one_line
from modurob.estimation import Ekf
from modurob.gaits import ChaoticMaps, chaotic
from modurob.interop import mjcf, read_urdf, urdf_reader, write_mjcf, xml_files
from modurob.model import model as models
from modurob.modules import datasheet, files, record, record_fields
from modurob.organism import builders
from modurob.organism import files as organism_files
from modurob.scenario import bodies
from modurob.scenario import scenario as scenarios
from modurob.sim.output import export
from modurob.stepping import base as stepping_base
from modurob.studio import (
    edits,
    exports,
    formulas,
    guard,
    imports,
    live_session,
    notebook,
    project,
    run_table,
    runs,
    saver,
    session,
    signals,
    tables,
    viewer,
)
from modurob.studio import studio as studios
from oracles import complains

CRAB = examples.crab()
SNAKE = examples.snake(4).model("physical")  # three joints in a row


def deep(levels):
    """JSON of lists within lists."""
    return "[" * levels + "]" * levels


SPHERE = '<visual><geometry><sphere radius="1"/></geometry></visual>'
JOINT = '<joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>'
URDF = f'<robot name="r"><link name="a">{SPHERE}{SPHERE}</link><link name="b"/>{JOINT}</robot>'


@pytest.fixture
def arm(tmp_path):
    """A URDF of 12 elements, 5 deep: 2 links with 2 shapes."""
    (tmp_path / "arm.urdf").write_text(URDF, encoding="utf-8")
    return tmp_path / "arm.urdf"


@pytest.mark.parametrize(
    ("module", "name", "value", "ask"),
    [
        (files, "MOST_PARTS", 3, lambda arm: files.parse_json("[[], {}]", "it")),
        (files, "LARGEST_INTEGER", 12, lambda arm: files.parse_json("[12, -12]", "it")),
        (files, "DEEPEST", 4, lambda arm: files.parse_json(deep(4), "it")),
        (files, "MOST_FIELDS", 2, lambda arm: files.parse_json('{"a": 1, "b": 2}', "it")),
        (organism_files, "MOST_KINDS", 2, lambda arm: organism_files._limited({"a": 1, "b": 2})),
        (builders, "LARGEST_SIDE", 4, lambda arm: builders._checked_matrix([[-4], [4]])),
        (urdf_reader, "MOST_LINKS", 2, read_urdf),
        (urdf_reader, "MOST_SHAPES", 2, read_urdf),
        (xml_files, "MOST_ELEMENTS", 12, read_urdf),
        (xml_files, "DEEPEST", 5, read_urdf),
        (mjcf, "LONGEST_CHAIN", 3, lambda arm: write_mjcf(SNAKE, arm)),
        (models, "LARGEST_DISPLACEMENT", 7.0, lambda arm: SNAKE.check_configuration([7, -7, 0])),
        (emit_c, "MOST_JOINTS", 3, lambda arm: emit_c.c_sources(SNAKE, functions=["mass_matrix"])),
        (delay, "MOST", 5, lambda arm: samples_late(0.5, 0.1)),
        (chaotic, "MOST_STEPS", 5, lambda arm: ChaoticMaps(["a"], 0.1, edges=[]).samples(5)),
        (stepping_base, "MOST_STEPS", 10,
         lambda arm: simulate(SNAKE, None, None, 1.0, None, "RK4", dt=0.1)),
        (friction, "MOST_SUBSTEPS", 3,
         lambda arm: friction.substeps(3 * friction.MOST_RATE_STEP, "it", 1.0, "RK4", "wait")),
        (bodies, "MOST_MODULES", 9, lambda arm: bodies._whole("modules", "-9")),
        (project, "LONGEST_S", 5.0, lambda arm: project.short_enough(Scenario(organism=CRAB))),
        (codec, "LARGEST_TEXT", 3, lambda arm: codec.Text().pack("abc")),
        (codec, "LARGEST_TEXT", 3, lambda arm: codec.Text().unpack(b"\3abc", 0)),
        (record_fields, "LARGEST_COUNT", 300, lambda arm: record_fields.write_count(300)),
        (record, "LARGEST_ID", 5, lambda arm: record._checked_id(5)),
    ],
)  # fmt: skip
def test_a_count_is_taken_up_to_its_limit(monkeypatch, arm, module, name, value, ask):
    monkeypatch.setattr(module, name, value)
    ask(arm)
    monkeypatch.setattr(module, name, value - 1)
    with pytest.raises((ModurobError, ValueError)):
        ask(arm)


def test_the_limits_that_users_meet_are_those_of_the_messages():
    """A lower one would refuse robots that were read before."""
    assert files.MOST_PARTS >= 1_000_000
    assert files.DEEPEST >= 50
    assert urdf_reader.MOST_LINKS >= 1000
    assert mjcf.LONGEST_CHAIN == 490  # MuJoCo: 500 levels, ten of them around the chain
    assert mass_state.MOST_CONTACTS == 255  # a byte
    assert record_fields.LARGEST_COUNT == 2**64 - 1
    assert record.LARGEST_ID == 2**128 - 1


def test_files_are_read_up_to_their_documented_size(tmp_path):
    """A smaller limit would refuse files that were read before, a larger one ask for memory."""
    for name, head, tail, most, read in (
        ("it", b"", b"", 16 * 2**20, files.read_bytes),
        ("it.xml", b"<a>", b"</a>", 4 * 2**20, xml_files.read_xml),
        ("it.toml", b"a = 1 #", b"", 256 * 2**10, files.parse_document),
    ):
        path = tmp_path / name
        path.write_bytes(head + b" " * (most - len(head) - len(tail)) + tail)
        read(path)
        path.write_bytes(head + b" " * (most - len(head) - len(tail) + 1) + tail)
        with complains(FileError, name, f"{most + 1:,} bytes; at most {most:,} bytes are read"):
            read(path)


def test_whole_numbers_of_a_document_have_64_bits():
    for number in (2**64 - 1, -(2**64 - 1)):
        assert files.parse_json(f"[{number}]", "it") == [number]
    for number in (2**64, -(2**64)):
        with complains(FileError, "it: [0]: a whole number of more than 64 bits"):
            files.parse_json(f"[{number}]", "it")


STUDIO = [
    (edits, {"MOST_SITES": 400}),
    (exports, {"MOST_ENTRIES": 90}),
    (formulas, {"MOST_TERMS": 120}),
    (guard, {
        "LARGEST_BODY": 16 * 2**20, "TRIES": 10, "TRIES_S": 60, "MOST_ADDRESSES": 1000,
    }),
    (imports, {
        "LARGEST_MEMBER": 64 * 2**20, "LARGEST_UNPACKED": 256 * 2**20, "MOST_MEMBERS": 2000,
    }),
    (live_session, {"MOST_MODULES": 60}),
    (notebook, {"MOST_MODULES": 200, "LONGEST_FORMULAS": 60_000}),
    (project, {
        "DEPTH": 200, "KEPT": 50, "LONGEST_S": 600, "LONGEST_LABEL": 200,
        "LONGEST_HISTORY": 4 * 2**20,
    }),
    (run_table, {"MOST_TAGS": 4, "LONGEST": 32}),
    (runs, {"MOST_FRAMES": 4000}),
    (saver, {"FLUSH_S": 30}),
    (session, {"MOST_POINTS": 200}),
    (signals, {"MOST_POINTS": 1500, "MOST_LINES": 60, "MOST_FORCES": 20_000}),
    (studios, {"MOST_RESERVED": 100}),
    (tables, {"MOST_MODULES": 60, "MOST_ROWS": 200, "LARGEST_LABELED": 12}),
    (viewer, {"FEWEST_FRAMES": 120, "MOST_FRAMES": 1200}),
]  # fmt: skip


@pytest.mark.parametrize(("module", "documented"), STUDIO, ids=lambda x: getattr(x, "__name__", ""))
def test_limits_of_the_studio_are_those_that_are_written_here_on_purpose(module, documented):
    assert {name: getattr(module, name) for name in documented} == documented


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**63, 2**64 - 1])
def test_counts_of_a_record_come_back(value):
    data = record_fields.write_count(value)
    assert record_fields.read_count(record_fields.ByteReader(data)) == value
    assert len(data) == max(1, -(-value.bit_length() // 7))


def test_counts_that_do_not_fit_are_refused():
    for value in (-1, 2**64):
        with pytest.raises(ValueError, match="does not fit into 64 bits"):
            record_fields.write_count(value)
    large = bytes([0xFF] * 9 + [0x02])  # 2^64 and more
    with pytest.raises(ValueError, match="more than 64 bits"):
        record_fields.read_count(record_fields.ByteReader(large))


@pytest.mark.parametrize("uid", [0, 2**128 - 1, b"\1", b"\xff" * 16])
def test_ids_have_up_to_128_bits(uid):
    number = uid if isinstance(uid, int) else int.from_bytes(uid, "big")
    assert record._checked_id(uid) == number
    for bad in (-1, 2**128, b"", b"\1" * 17, True, 1.0):
        with pytest.raises(ModurobError, match="an id is a number of up to 128 bits"):
            record._checked_id(bad)


@pytest.mark.parametrize(
    ("number", "than", "newer"),
    [(1, 0, True), (0, 0, False), (0, NUMBERS - 1, True), (NUMBERS // 2 - 1, 0, True),
     (NUMBERS // 2, 0, False), (NUMBERS - 1, 0, False)],
)  # fmt: skip
def test_a_number_is_newer_within_half_of_all(number, than, newer):
    assert is_newer(number, than) is newer


def test_numbers_far_ahead_are_beyond_the_window():
    channel = Channel(1)
    assert [channel.is_far_ahead(k) for k in (WINDOW, WINDOW + 1)] == [False, True]
    half = NUMBERS // 2
    assert [channel.is_far_ahead(k) for k in (half - 1, half, NUMBERS - 1)] == [True, False, False]


def test_each_number_is_taken_once():
    channel = Channel(1)
    assert [channel.take(k) for k in (1, 1, 3, 2, 2, 3, 0)] == [
        True, False, True, True, False, False, False
    ]  # fmt: skip
    assert (channel.low, channel.beyond) == (3, frozenset())
    assert channel.take(3 + NUMBERS // 2) is True  # half of all ahead is the farthest
    assert channel.take(4 + NUMBERS // 2) is False


# -- states ----------------------------------------------------------------------------------------


def test_quaternions_may_be_off_by_the_tolerance_and_no_more():
    model = examples.snake(2).model("physical", base="free")
    q = model.neutral()
    for off, fits in ((0.9, True), (1.1, False)):
        wrong = q.copy()
        wrong[3:7] *= 1 + off * models.UNIT_QUATERNION
        if fits:
            assert np.linalg.norm(model.check_configuration(wrong)[3:7]) == pytest.approx(1)
        else:
            with complains(StateError, "q[3:7] is the base's unit quaternion"):
                model.check_configuration(wrong)


def test_measurements_may_be_as_large_as_displacements():
    most = models.LARGEST_DISPLACEMENT
    Ekf(SNAKE, dt=0.01).correct(np.array([most, -most, 0.0]))
    with complains(StateError, "y[1] is"):
        Ekf(SNAKE, dt=0.01).correct(np.array([0.0, -1.01 * most, 0.0]))


def test_contacts_are_one_to_255_points():
    network = MassNetwork(examples.snake(2))
    for count, fits in ((0, False), (1, True), (255, True), (256, False)):
        points = np.zeros((count, 3))
        if fits:
            network.touch("m0", points, np.eye(4))
        else:
            with complains(StateError, "contacts are 1 to 255 rows of 3 or 7 numbers"):
                network.touch("m0", points, np.eye(4))


@pytest.mark.parametrize(
    ("value", "count"),
    [(0.1, 1), (0.2, 2), (0.3 + 0.9e-7, 3), (0.3 - 0.9e-7, 3), (True, 1), (False, 0), (0.0, 0)],
)
def test_delays_are_whole_samples_but_for_rounding(value, count):
    assert samples_late(value, 0.1) == count
    for bad in (0.3 + 1.1e-7, 0.3 - 1.1e-7, 0.05, 1e-9):
        with complains(StateError, "delay must be whole samples of 0.1 s"):
            samples_late(bad, 0.1)


def test_a_tolerance_of_a_scenario_is_not_below_rounding():
    least = scenarios.LEAST_RTOL
    assert Scenario(organism=CRAB, rtol=least).rtol == least
    with complains(StateError, "is below the rounding errors of a step"):
        Scenario(organism=CRAB, rtol=0.99 * least)


# -- datasheets ------------------------------------------------------------------------------------


def cube(**changed):
    fields = catalog["backbone"].model_dump()
    port = {**fields["ports"][0], **changed}
    return ModuleType(**{**fields, "ports": [port, *fields["ports"][1:]]})


def test_the_reference_of_a_port_is_perpendicular_to_its_normal():
    normal = np.array(catalog["backbone"].ports[0].normal)
    reference = np.array(catalog["backbone"].ports[0].reference)
    slack = datasheet.PERPENDICULAR
    cube(reference=(reference + 0.5 * slack * normal).tolist())
    with complains(DatasheetError, "is not perpendicular"):
        cube(reference=(reference + 2 * slack * normal).tolist())


def test_directions_of_length_one_are_kept_to_the_last_digit():
    within, beyond = (1 + factor * datasheet.UNIT_LENGTH for factor in (0.5, 4))
    assert datasheet._unit((within, 0.0, 0.0)) == (within, 0.0, 0.0)
    assert datasheet._unit((beyond, 0.0, 0.0)) == (1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="zero vector"):
        datasheet._unit((0.0, 0.0, 0.0))


# -- texts -----------------------------------------------------------------------------------------


def test_long_lines_are_shortened_in_the_middle():
    assert one_line("x" * LONGEST_LINE) == "x" * LONGEST_LINE
    found = one_line("a" * LONGEST_LINE + "b" * 100)
    assert found == "a" * (LONGEST_LINE - 200) + " ... " + "b" * 100
    assert one_line("a\nb\x07") == "a\\nb\\x07"


def test_long_lists_of_names_are_shortened():
    assert choices(range(12)) == ", ".join(map(str, range(12)))
    assert choices(range(13)) == ", ".join(map(str, range(11))) + ", ... (13 in all, last 12)"
    assert choices("abc", 2) == "a, ... (3 in all, last c)"
    assert choices([]) == "none"


def test_comments_in_c_are_cut():
    longest = emit_c.LONGEST
    assert emit_c.plain("x" * longest) == "x" * longest
    assert emit_c.plain("x" * (longest + 1)) == "x" * (longest - 3) + "..."


# -- files and drawings ----------------------------------------------------------------------------


def test_a_trajectory_of_a_newer_version_or_cut_off_is_refused():
    run = simulate(SNAKE, None, None, 0.02, None, "RK4", dt=0.01)
    data = run.to_bytes()
    assert export.from_bytes(data)
    newer = bytearray(data)
    struct.pack_into("<H", newer, 4, export.VERSION + 1)
    with complains(FileError, "newer modurob"):
        export.from_bytes(bytes(newer))
    for size in (0, 4, export.HEAD.size - 1):
        with complains(FileError, "does not begin with MRTJ"):
            export.from_bytes(data[:size])
    with complains(FileError, "cut off or damaged"):
        export.from_bytes(data[: export.HEAD.size])


def test_records_cut_anywhere_are_refused():
    data = record.encode(catalog["scout"], 7)
    assert record.decode(data).kind == catalog["scout"]
    for size in range(4, len(data), 7):
        with pytest.raises(ModurobError, match=r"cut off|header|bytes"):
            record.decode(data[:size])
    header = data[: record.HEADER.size]
    assert zlib.crc32(header) == record.CRC.unpack_from(data, record.HEADER.size)[0]


def test_lines_of_the_studio_have_a_limited_number_of_points():
    most = signals.MOST_POINTS
    assert signals.chosen(most).tolist() == list(range(most))
    many = signals.chosen(10 * most)
    assert len(many) == most
    assert (many[0], many[-1]) == (0, 10 * most - 1)
    assert set(np.diff(many)) <= {9, 10, 11}
