"""Archives that lie: sizes, headers and members of NPZ files, and the arrays of trajectories."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from modurob import FileError, examples, simulate
from modurob.modules import archives
from modurob.sim import Trajectory
from modurob.sim.output import npz
from oracles import complains


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """The arrays of a valid file."""
    arm = examples.arm("bab")
    run = simulate(arm.model("physical"), None, None, 0.01, integrator="RK4", organism=arm)
    path = tmp_path_factory.mktemp("run") / "run.npz"
    run.save(path)
    with np.load(path) as found:
        return {name: found[name] for name in found.files}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


def packed(members, compression=zipfile.ZIP_STORED):
    """An archive of (name, array or bytes)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            if not isinstance(content, bytes):
                array, content = content, io.BytesIO()
                np.lib.format.write_array(content, array)
                content = content.getvalue()
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    """NumPy's format with any header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


HEADERS = {
    "a shape larger than its bytes": ("{'descr': '<f8', 'fortran_order': False, "
                                      "'shape': (99999999999,), }", "says 799,999,999,992"),
    "a shape smaller than its bytes": ("{'descr': '<f8', 'fortran_order': False, "
                                       "'shape': (0,), }", "8 bytes where its header"),
    "no shape of numbers": ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
                            "has a header that is not NumPy's"),
    "objects": ("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }",
                "has a header that is not NumPy's"),
    "records": ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
                "has a header that is not NumPy's"),
    "nesting": ("-" * 5000 + "(" * 300, "has a header that is not NumPy's"),
    "very many dimensions": ("{'descr': '|u1', 'fortran_order': False, 'shape': ("
                             + "1, " * 20 + "8), }", "bytes where its header"),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADERS.values(), ids=HEADERS)
def test_a_header_that_lies_is_refused_before_memory_is_asked_for(path, case):
    header, piece = case
    path.write_bytes(packed([("0.t", npy(header, bytes(8)))]))
    with complains(FileError, "run.npz", "not a modurob-trajectory file: its array '0.t'", piece):
        Trajectory.load(path)


@pytest.mark.parametrize("start", [b"\x93NUMPY\4\0", b"\x93NUMPY\1\1", b"\x92NUMPY\1\0"])
def test_an_array_has_the_first_bytes_and_a_version_of_numpy(start):
    content = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }", b"\7")
    assert npz._array(content).tolist() == [7]
    with complains(FileError, "does not start as NumPy's arrays do"):
        npz._array(start + content[8:])


@pytest.mark.parametrize(("length", "fits"), [(1000, True), (1001, False)])
def test_headers_have_up_to_a_thousand_bytes(length, fits):
    """NumPy pads them with spaces."""
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }".ljust(length - 1)
    content = npy(header, np.array([1.5]).tobytes())
    if fits:
        assert npz._array(content).tolist() == [1.5]
    else:
        with complains(FileError, "has a header that is not NumPy's"):
            npz._array(content)


def test_a_bomb_is_refused_by_its_declared_size(path, monkeypatch):
    monkeypatch.setattr(npz, "LARGEST_UNPACKED", 10**6)
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000,), }"
    path.write_bytes(packed([("0.t", npy(header, bytes(2 * 10**6)))], zipfile.ZIP_DEFLATED))
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(zipfile.ZipFile, "open", None)  # nothing is unpacked
    with complains(FileError, "run.npz", "unpack to 2,000,0", "at most 1,000,000"):
        Trajectory.load(path)


def test_a_declared_size_that_is_too_small_is_found_out(path, arrays):
    content = bytearray(packed([("0.t", arrays["0.t"])], zipfile.ZIP_DEFLATED))
    at = content.find(b"PK\1\2") + 24  # the size in the list of members
    content[at : at + 4] = struct.pack("<I", 100)
    path.write_bytes(content)
    with complains(FileError, "run.npz"):
        Trajectory.load(path)


def test_no_more_than_the_declared_size_is_unpacked(path):
    content = bytearray(packed([("header", np.zeros(4 * 10**6))], zipfile.ZIP_DEFLATED))
    at = content.find(b"PK\1\2") + 24  # the size in the list of members
    content[at : at + 4] = struct.pack("<I", 1000)
    path.write_bytes(content)
    tracemalloc.start()
    with complains(FileError, "run.npz", "Bad CRC-32"):
        Trajectory.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 10**6  # of 32 MB that the member holds


def test_compressed_files_are_read_too(path, arrays):
    path.write_bytes(packed(arrays.items(), zipfile.ZIP_DEFLATED))
    assert np.array_equal(Trajectory.load(path).q, arrays["0.q"])


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(path, arrays, packing):
    path.write_bytes(packed(arrays.items(), packing))
    with complains(FileError, "run.npz", "packed unusually"):
        Trajectory.load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(path, arrays):
    path.write_bytes(packed([*arrays.items(), ("0.t", arrays["0.t"])]))
    with complains(FileError, "run.npz", "'0.t.npy' is twice"):
        Trajectory.load(path)


def test_an_array_of_no_part_is_refused(path, arrays):
    path.write_bytes(packed([*arrays.items(), ("7.t", arrays["0.t"])]))
    with complains(FileError, "run.npz", "'7.t' belongs to no part"):
        Trajectory.load(path)


def test_an_absurd_list_of_members_is_refused_before_it_is_read(path, arrays, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_INDEX", 100)
    path.write_bytes(packed(arrays.items()))
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with complains(FileError, "run.npz", "a list of members of", "at most 100"):
        Trajectory.load(path)


def test_only_the_list_of_members_has_to_be_short():
    """Not what lies before it: eight megabytes are the most for the list."""
    stream = io.BytesIO(packed([("a", bytes(9 * 2**20))]))
    with archives.reading_archive(stream) as archive:
        assert archive.namelist() == ["a.npy"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_list_of_members_has_up_to_eight_megabytes(more):
    end = archives.END.pack(b"PK\5\6", 0, 0, 1, 1, 8 * 2**20 + more, 0, 0)
    text = "a list of members of 8,388,609 bytes; at most 8,388,608" if more else "Bad offset"
    with complains(FileError, text), archives.reading_archive(io.BytesIO(end)):
        pass


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\5\6" + bytes(17), b"no archive" * 9])
def test_what_has_no_whole_end_is_no_archive(content):
    with (
        complains(FileError, "not a ZIP archive, or a truncated one"),
        archives.reading_archive(io.BytesIO(content)),
    ):
        pass


def test_arrays_have_a_largest_number_of_dimensions(path, arrays, monkeypatch):
    path.write_bytes(packed(arrays.items()))
    most = max(array.ndim for array in arrays.values())
    monkeypatch.setattr(npz, "MOST_DIMENSIONS", most)
    Trajectory.load(path)
    monkeypatch.setattr(npz, "MOST_DIMENSIONS", most - 1)
    with complains(FileError, "run.npz", "bytes where its header"):
        Trajectory.load(path)


def zip64(data, size):
    """An archive with the 64-bit end record, and the largest number as the old size of the list."""
    place = data.rindex(b"PK\5\6")
    end = bytearray(data[place:])
    offset, count = struct.unpack_from("<I", end, 16)[0], struct.unpack_from("<H", end, 10)[0]
    struct.pack_into("<II", end, 12, 2**32 - 1, 2**32 - 1)
    record = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, offset)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, place, 1)
    return data[:place] + record + locator + end


def test_the_list_of_members_has_the_size_of_the_64_bit_record(path, arrays):
    data = packed(arrays.items())
    size = struct.unpack_from("<I", data, data.rindex(b"PK\5\6") + 12)[0]
    path.write_bytes(zip64(data, size))
    assert np.array_equal(Trajectory.load(path).q, arrays["0.q"])
    path.write_bytes(zip64(data, 2**40))
    with complains(FileError, "run.npz", "a list of members of 1,099,511,627,776 bytes"):
        Trajectory.load(path)
    # the end's own size counts, too, unless it is the mark of the record
    for own, told in ((2**32 - 1, ""), (2**32 - 2, "4,294,967,294 bytes")):
        both = bytearray(zip64(data, size))
        struct.pack_into("<I", both, both.rindex(b"PK\5\6") + 12, own)
        path.write_bytes(both)
        if told:
            with complains(FileError, "run.npz", "a list of members of", told):
                Trajectory.load(path)
        else:
            assert np.array_equal(Trajectory.load(path).q, arrays["0.q"])


def test_the_end_of_an_archive_is_found_wherever_it_may_be(path, arrays):
    data = packed(arrays.items())
    comment = b"c" * (2**16 - 1)  # the longest that there is
    path.write_bytes(data[:-2] + struct.pack("<H", len(comment)) + comment)
    assert np.array_equal(Trajectory.load(path).q, arrays["0.q"])
    nothing = packed([])
    assert nothing.startswith(b"PK\5\6")  # the end is all of it
    path.write_bytes(zip64(nothing, 2**40))
    with complains(FileError, "run.npz", "a list of members of 1,099,511,627,776 bytes"):
        Trajectory.load(path)


@pytest.mark.parametrize("dtype", [">f8", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_order_of_bytes_and_axes_does_not_matter(path, arrays, dtype, order):
    turned = {
        name: np.asarray(array, dtype if array.dtype == float else None, order)
        for name, array in arrays.items()
    }
    path.write_bytes(packed(turned.items()))
    run = Trajectory.load(path)
    assert np.array_equal(run.q, arrays["0.q"])
    assert run.q.dtype == np.dtype(float)
    assert run.model.placement.flags.c_contiguous
    assert not run.q.flags.writeable


# -- what the arrays say ---------------------------------------------------------------------------


def put(value, *index):
    def change(array):
        array[index] = value
        return array

    return change


WRONG = {
    "parent beyond": ("0.model.parent", put(99, -1), "parent[2] of a model must be link 0 to 2"),
    "parent negative": ("0.model.parent", put(-1, 0), "parent[0]", "got -1"),
    "parent itself": ("0.model.parent", put(2, 1), "parent[1]", "link 0 to 1, got 2"),
    "parent of floats": ("0.model.parent", lambda x: x * 1.0, "must hold int64, got float64"),
    "body link": ("0.model.body_link", put(4, 0), "body_link[0]", "link 0 to 3, got 4"),
    "short": ("0.model.screw", lambda x: x[:1], "screw", "(3, 6), got float64 (1, 6)"),
    "flat": ("0.model.placement", lambda x: x.reshape(3, 16), "placement", "(3, 4, 4)"),
    "single precision": ("0.model.mass", lambda x: x.astype("f4"), "must hold float64"),
    "not finite": ("0.model.center", put(np.nan, 0, 0), "center of a model must hold finite"),
    "no rotation": ("0.model.placement", put(2.0, 0, 0, 0), "placement[0] of a model is no pose"),
    "a mirror": ("0.model.body_placement", lambda x: x * [-1, 1, 1, 1], "body_placement[0]"),
    "no last row": ("0.model.base_pose", put(1.0, 3, 0), "base_pose of a model is no pose"),
    "no unit screw": ("0.model.screw", lambda x: 2 * x, "must be a unit axis"),
    "a screw beside its link": ("0.model.screw", put(0.5, 1, 0), "through the origin"),
    "limits crossed": ("0.model.lower", put(np.inf, 1), "limits of", "must be in order"),
    "limits of nothing": ("0.model.upper", put(np.nan, 1), "limits of", "must be in order"),
    "negative friction": ("0.model.viscous", put(-1.0, 0), "viscous friction"),
    "negative mass": ("0.model.mass", put(-1.0, 1), "link 1 of a model: the mass is -1 kg"),
    "massless": ("0.model.mass", put(0.0, 1), "link 1", "without mass must not have inertia"),
    "lopsided inertia": ("0.model.inertia", put(9.0, 1, 0, 1), "link 1", "symmetric"),
    "impossible inertia": ("0.model.inertia", put(9.0, 2, 1, 1), "link 2", "triangle inequality"),
    "inertia about one axis": ("0.model.inertia", put([[-2, 0, 0], [0, 4, -0.5], [0, -0.5, 4]], 1),
                               "link 1", "must not be negative"),
    "negative inertia": ("0.model.inertia", lambda x: -x, "link 0", "must not be negative"),
    "gravity": ("0.model.gravity", lambda x: x[:0], "gravity", "(3,), got float64 (0,)"),
    "no times": ("0.t", lambda x: x[:0], "do not fit together"),
    "times back": ("0.t", lambda x: x[::-1], "0.t must be finite times that increase"),
    "times that stand": ("0.t", put(0.0, 1), "0.t must be finite times that increase"),
    "endless time": ("0.t", put(np.inf, -1), "0.t must be finite times that increase"),
    "q of another model": ("0.q", lambda x: x[:, :2], "q has shape", "nq = 3"),
    "q of one state": ("0.q", lambda x: x[0], "do not fit together"),
    "q of nothing": ("0.q", put(np.nan, 0, 0), "part 0: q[0, 0] is nan"),
    "no states": ("0.q", lambda x: x[:, None][:, :0], "0.t (11,) and 0.q (11, 0, 3) do not fit"),
    "v of other times": ("0.v", lambda x: x[1:], "do not fit together"),
    "a of other times": ("0.a", lambda x: x[1:], "do not fit together"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_arrays_that_describe_no_run_are_refused_before_compiled_code_sees_them(path, arrays, case):
    name, change, *pieces = case
    path.write_bytes(packed({**arrays, name: change(arrays[name].copy())}.items()))
    with complains(FileError, "run.npz", *pieces):
        Trajectory.load(path)


def changed_header(arrays, change):
    header = json.loads(arrays["header"].tobytes())
    change(header, header["parts"][0], header["parts"][0]["model"])
    return {**arrays, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)}


SIX, PAIR = [0.0] * 6, [0.0] * 2
REPORT = {
    "time": 0.005, "what": "undock m1", "momentum_before": SIX, "momentum_after": SIX,
    "energy_before": 0.0, "energy_after": 0.0, "energy_lost": 0.0, "latch_work": 0.0, "gap": PAIR,
    "grounded": False,
}  # fmt: skip


def reported(**fields):
    """A change of the header: an event with other fields."""
    return lambda h, p, m: h["audit"].append(REPORT | fields)


HEADER_FIELDS = {
    "gravity of four": (lambda h, p, m: m["options"]["gravity"].append(0.0), "options.gravity"),
    "momentum of seven before": (reported(momentum_before=[0.0] * 7), "momentum_before"),
    "momentum of seven after": (reported(momentum_after=[0.0] * 7), "momentum_after"),
    "momentum of five": (reported(momentum_after=[0.0] * 5), "momentum_after"),
    "gap of three": (reported(gap=[0.0] * 3), "gap"),
    "joint twice": (lambda h, p, m: m["joint_names"].__setitem__(0, m["joint_names"][1]), "unique"),
    "joint of numbers": (lambda h, p, m: m["joint_names"].__setitem__(0, 1), "joint_names[0]"),
    "joint more": (lambda h, p, m: m["joint_names"].append("x"), "must be an array"),
    "body twice": (lambda h, p, m: m["body_names"].__setitem__(0, m["body_names"][1]), "unique"),
    "module beyond": (lambda h, p, m: m["modules"].update(m0=99), "bodies 0 to", "'m0': 99"),
    "module before": (lambda h, p, m: m["modules"].update(m0=-1), "'m0': -1"),
    "module of words": (lambda h, p, m: m["modules"].update(m0="1"), "modules.m0"),
    "reason of numbers": (lambda h, p, m: m["locked"].update(x=1), "locked.x"),
    "base of numbers": (lambda h, p, m: m.update(free_base=1), "free_base"),
    "free base": (lambda h, p, m: m.update(free_base=True), "expected (11, 9)"),
    "organism of others": (lambda h, p, m: m["modules"].pop("m1"), "other modules than its model"),
    "channel that is not there": (lambda h, p, m: p["channels"].append("x"), "'0.channel.x'"),
    "status": (lambda h, p, m: h.update(status="done"), "status"),
    "no parts": (lambda h, p, m: h.update(parts=[]), "parts"),
    "more fields": (lambda h, p, m: h.update(more=1), "more: no such field"),
}  # fmt: skip


@pytest.mark.parametrize("case", HEADER_FIELDS.values(), ids=HEADER_FIELDS)
def test_headers_that_describe_no_run_are_refused(path, arrays, case):
    change, *pieces = case
    path.write_bytes(packed(changed_header(arrays, change).items()))
    with complains(FileError, "run.npz", *pieces):
        Trajectory.load(path)


def test_an_event_is_read(path, arrays):
    path.write_bytes(packed(changed_header(arrays, reported()).items()))
    (entry,) = Trajectory.load(path).audit
    assert (entry.time, entry.gap, entry.momentum_after.tolist()) == (0.005, (0.0, 0.0), SIX)


def test_springs_of_joints_are_springs_in_files_that_do_not_say_so(path, arrays):
    """As of models that are built without a word about them; and no joint is locked by hand."""

    def older(h, p, m):
        del m["options"]["elastic"], m["options"]["locked"]

    path.write_bytes(packed(changed_header(arrays, older).items()))
    options = Trajectory.load(path).model.options
    assert options.elastic is True
    assert dict(options.locked) == {}


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_has_one_time_at_least(path, arrays, count):
    kept = {name: arrays[name][:count] for name in ("0.t", "0.q", "0.v", "0.a")}
    path.write_bytes(packed({**arrays, **kept}.items()))
    if count:
        assert len(Trajectory.load(path).t) == 1
    else:
        with complains(FileError, "0.t (0,) and 0.q (0, 3) do not fit together"):
            Trajectory.load(path)


def test_a_channel_of_other_times_is_refused(path, arrays):
    found = changed_header(arrays, lambda h, p, m: p["channels"].append("x"))
    path.write_bytes(packed({**found, "0.channel.x": np.zeros(2)}.items()))
    with complains(FileError, "0.channel.x has shape (2,), expected 11"):
        Trajectory.load(path)
