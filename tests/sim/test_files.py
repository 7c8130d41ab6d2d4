"""Trajectories in files: what is written comes back, and nothing is lost on the way."""

import copy
import csv
import io
import json
import os
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from modurob import Dock, FileError, StateError, Trajectory, Undock, WriteError, examples, simulate
from modurob.sim import Noise
from modurob.sim.output.export import HEAD, from_bytes
from oracles import complains

FLOAT32 = 1e-6  # relative, of the player's numbers


@pytest.fixture(scope="module")
def driven():
    """A run with torques, noise and channels."""
    organism = examples.crab()
    return simulate(
        organism.model(), [0.1, 0.2, 0.3], None, 0.3, lambda t, q, v: -q - v, "RK4", dt=0.01,
        sample_time=0.05, noise=Noise(q=0.01), rng=np.random.default_rng(0), organism=organism,
    )  # fmt: skip


@pytest.fixture(scope="module")
def changing():
    """A run in which the body changes."""
    organism = examples.snake(3)
    model = organism.model("physical", base="free", gravity=(0, 0, -1))
    events = [Undock(0.1, "m2"), Dock(0.2, "m1", 2, "n", 5, approach=(0, 0, 0.1, 0, 0, 0))]
    return simulate(
        model, None, np.full(model.nv, 0.1), 0.3, None, "RK4", dt=0.01, events=events,
        organism=organism,
    )  # fmt: skip


def same(one, other):
    assert (one.status, one.message, one.integrator) == (
        other.status,
        other.message,
        other.integrator,
    )
    assert len(one.parts) == len(other.parts)
    for a, b in zip(one.parts, other.parts, strict=True):
        assert a.name == b.name
        assert a.organism == b.organism
        assert a.model.joint_names == b.model.joint_names
        assert dict(a.model.locked) == dict(b.model.locked)
        for name in ("t", "q", "v", "a", "tau", "energy", "momentum"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
        assert a.channels.keys() == b.channels.keys()
        for name in a.channels:
            np.testing.assert_array_equal(a.channels[name], b.channels[name])
    assert [str(entry) for entry in one.audit] == [str(entry) for entry in other.audit]


@pytest.mark.parametrize("run", ["driven", "changing"])
def test_a_saved_trajectory_comes_back_whole(run, tmp_path, request):
    trajectory = request.getfixturevalue(run)
    trajectory.save(tmp_path / "run.npz")
    same(Trajectory.load(tmp_path / "run.npz"), trajectory)
    assert os.listdir(tmp_path) == ["run.npz"]


def test_a_loaded_trajectory_can_do_everything(driven, tmp_path):
    driven.save(tmp_path / "run.npz")
    loaded = Trajectory.load(tmp_path / "run.npz")
    np.testing.assert_allclose(loaded.at(0.123)[0], driven.at(0.123)[0], atol=1e-12)
    loaded.to_csv(tmp_path / "run.csv")
    loaded.plot("q", "measured_q", path=tmp_path / "run.png")
    torque = loaded.model.inverse_dynamics(loaded.q, loaded.v, loaded.a)
    np.testing.assert_allclose(torque, loaded.tau, atol=1e-10)
    with pytest.raises(ValueError, match="read-only"):
        loaded.q[0] = 1


def test_batches_and_runs_without_organism_are_saved_too(tmp_path):
    model = examples.double_pendulum().model("physical")
    batch = simulate(model, np.zeros((3, 2)), np.ones((3, 2)), 0.05, None, "RK4")
    batch.save(tmp_path / "batch.npz")
    same(Trajectory.load(tmp_path / "batch.npz"), batch)


@pytest.mark.parametrize("run", ["driven", "changing"])
def test_trajectories_can_be_copied_and_sent_to_other_processes(run, request):
    trajectory = request.getfixturevalue(run)
    same(pickle.loads(pickle.dumps(trajectory)), trajectory)
    same(copy.deepcopy(trajectory), trajectory)


def test_a_trajectory_says_what_it_is(driven, changing):
    assert repr(driven) == "<Trajectory: of 'm0': 0 to 0.3 s, 31 times, RK4>"
    assert repr(changing) == "<Trajectory: 4 parts until 0.3 s, RK4>"
    model = examples.double_pendulum().model("physical")
    batch = simulate(model, np.zeros((3, 2)), None, 0.01, None, "RK4")
    assert repr(batch) == "<Trajectory: of 'm0': 0 to 0.01 s, 11 times, batch (3,), RK4>"
    with complains(StateError, "4 parts with a q each", "parts[2] 'm2'"):
        _ = changing.q
    with complains(StateError, "8 parts with a t each", "parts[5] '") as caught:
        _ = replace(changing, parts=2 * changing.parts).t
    assert "parts[6]" not in caught.message


def test_the_header_is_json_and_says_what_it_is(driven, tmp_path):
    driven.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as found:
        header = json.loads(found["header"].tobytes())
        assert {"0.t", "0.q", "0.v", "0.a", "0.tau"} <= set(found.files)
    assert (header["format"], header["version"]) == ("modurob-trajectory", 1)
    assert header["integrator"] == "RK4"


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_full_disk_leaves_the_old_file_as_it_was(driven, tmp_path, monkeypatch, step):
    file = tmp_path / "run.npz"
    driven.save(file)
    old = file.read_bytes()

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with complains(WriteError, "run.npz", "No space left on device"):
        driven.save(file)
    with complains(WriteError, "No space left on device"):
        driven.to_csv(tmp_path / "run.csv")
    monkeypatch.undo()
    assert file.read_bytes() == old
    assert os.listdir(tmp_path) == ["run.npz"]


def test_a_folder_that_is_not_there(driven, tmp_path):
    for write in (driven.save, driven.to_csv):
        with complains(WriteError, "cannot be written"):
            write(tmp_path / "nowhere" / "run.npz")


def damaged(path, change):
    """A copy of a file with another header."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    header = json.loads(arrays["header"].tobytes())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("change", "piece"),
    [
        (lambda h, a: h.update(format="something"), "expected 'modurob-trajectory'"),
        (lambda h, a: h.update(version=99), "newer modurob"),
        (lambda h, a: h.update(version="one"), "version must be 1"),
        (lambda h, a: a.pop("0.q"), "0.q"),
        (lambda h, a: a.update({"0.q": np.zeros((3, 1))}), "do not fit together"),
        (lambda h, a: h.pop("parts"), "parts"),
        (lambda h, a: h["parts"][0]["model"].pop("joint_names"), "joint_names"),
        (lambda h, a: h["parts"][0]["organism"].pop("base"), "base"),
    ],
)
def test_a_file_that_is_not_ours_is_told_apart(driven, tmp_path, change, piece):
    path = tmp_path / "run.npz"
    driven.save(path)
    damaged(path, change)
    with complains(FileError, "run.npz", piece):
        Trajectory.load(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_any_other_file_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "other.npz").write_bytes(content)
    with complains(FileError, "other.npz"):
        Trajectory.load(tmp_path / "other.npz")


def test_an_archive_of_nothing_has_no_header(tmp_path):
    np.savez(tmp_path / "empty.npz")
    with complains(FileError, "empty.npz", "it has no header"):
        Trajectory.load(tmp_path / "empty.npz")


def test_a_file_that_is_not_there(tmp_path):
    with complains(FileError, "none.npz", "cannot be read"):
        Trajectory.load(tmp_path / "none.npz")


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([{"a": 1}], dtype=object))
    with complains(FileError, "evil.npz"):
        Trajectory.load(tmp_path / "evil.npz")


@pytest.mark.parametrize("size", [256 * 2**20, 256 * 2**20 + 1])
def test_a_small_archive_unpacks_to_256_megabytes_at_most(tmp_path, size):
    """By what its index says, before any memory is asked for."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", b"")
        archive.infolist()[0].file_size = size
    with pytest.raises(FileError, match=r"bomb\.npz: not a modurob-trajectory file: ") as error:
        Trajectory.load(path)
    told = f"its arrays unpack to {size:,} bytes; at most {256 * 2**20:,}" in str(error.value)
    assert told == (size > 256 * 2**20)


# -- CSV -------------------------------------------------------------------------------------------


def read(path):
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    return rows[0], rows[1:]


def test_a_table_holds_every_number_to_the_last_digit(driven, tmp_path):
    driven.to_csv(tmp_path / "run.csv")
    head, rows = read(tmp_path / "run.csv")
    assert head[:4] == ["time [s]", "q m1.hinge [rad]", "q m3.hinge [rad]", "q m5.hinge [rad]"]
    assert "tau m5.hinge [N m]" in head
    assert "kinetic energy [J]" in head
    assert "measured_q m3.hinge" in head
    numbers = np.array(rows, dtype=float)
    np.testing.assert_array_equal(numbers[:, 0], driven.t)
    np.testing.assert_array_equal(numbers[:, 1:4], driven.q)
    np.testing.assert_array_equal(numbers[:, head.index("tau m5.hinge [N m]")], driven.tau[:, 2])


def test_a_table_of_several_parts_has_gaps(changing, tmp_path):
    changing.to_csv(tmp_path / "run.csv")
    head, rows = read(tmp_path / "run.csv")
    assert head[:3] == ["part", "time [s]", "q base x [m]"]
    assert len(rows) == sum(len(part.t) for part in changing.parts)
    column = head.index("q m1.hinge [rad]")
    loose = [row for row in rows if row[0] == "m2"]
    assert loose
    assert all(row[column] == "" for row in loose)
    assert rows[0][column] == "0.0"


def test_a_table_shows_one_motion(tmp_path):
    model = examples.double_pendulum().model("physical")
    batch = simulate(model, np.zeros((3, 2)), None, 0.05, None, "RK4")
    with complains(StateError, "(3,)", "member(0)"):
        batch.to_csv(tmp_path / "run.csv")
    batch.member(2).to_csv(tmp_path / "run.csv")


# -- the player's binary ---------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["driven", "changing"])
def test_the_player_gets_states_and_poses(run, request):
    trajectory = request.getfixturevalue(run)
    data = trajectory.to_bytes()
    found = from_bytes(data)
    assert data[:4] == b"MRTJ"
    assert HEAD.unpack_from(data)[1:3] == (1, 0)  # version, and two bytes without a meaning
    assert (HEAD.size + HEAD.unpack_from(data)[3]) % 8 == 0  # typed arrays want alignment
    assert len(found["parts"]) == len(trajectory.parts)
    assert [e["time"] for e in found["events"]] == [e.time for e in trajectory.audit]
    for theirs, part in zip(found["parts"], trajectory.parts, strict=True):
        np.testing.assert_allclose(theirs["q"], part.q, rtol=FLOAT32, atol=FLOAT32)
        np.testing.assert_allclose(theirs["energy"].sum(-1), part.energy, rtol=1e-5, atol=1e-5)
        T = part.model.forward_kinematics(part.q)
        assert theirs["poses"].shape == (len(part.t), part.model.nbodies, 7)
        np.testing.assert_allclose(theirs["poses"][..., :3], T[..., :3, 3], atol=FLOAT32)
        assert theirs["bodies"] == list(part.model.body_names)
    if run == "driven":
        assert found["parts"][0]["channels"]["measured_q"].shape == trajectory.q.shape


def test_arrays_of_the_player_are_aligned_whatever_the_length_of_names(driven):
    for count in range(8):
        data = replace(driven, integrator="x" * count).to_bytes()
        start = HEAD.size + HEAD.unpack_from(data)[3]
        assert start % 8 == 0
        header = json.loads(data[HEAD.size : start])
        arrays = [x for x in header["parts"][0].values() if isinstance(x, dict) and "offset" in x]
        assert all(each["offset"] % 8 == 0 for each in arrays)
        assert header["integrator"] == "x" * count


@pytest.mark.parametrize("cut", [2, 9, 40, -50])
def test_a_damaged_binary_is_refused(driven, cut):
    with complains(FileError, "player"):
        from_bytes(driven.to_bytes()[:cut])
    with complains(FileError, "cut off or damaged"):
        from_bytes(driven.to_bytes()[: HEAD.size])  # a whole head, and nothing behind it


def test_a_binary_from_the_future_is_refused(driven):
    data = bytearray(driven.to_bytes())
    data[4] = 9
    with complains(FileError, "newer"):
        from_bytes(bytes(data))


def test_the_player_shows_one_motion():
    model = examples.double_pendulum().model("physical")
    batch = simulate(model, np.zeros((3, 2)), None, 0.05, None, "RK4")
    with complains(StateError, "member(0)"):
        batch.to_bytes()
