"""Files from elsewhere become projects or modules; a project travels with its runs as one file."""

import io
import zipfile

import numpy as np
import pytest

from modurob import FileError, StateError, Trajectory, examples
from modurob.interop import write_cobra_assembly, write_cobra_modules, write_urdf
from modurob.scenario.settings import RunRecord
from modurob.studio import imports, runs
from modurob.studio.folder import DELETED, Folder
from modurob.studio.project import NEW_SETTINGS, Project, to_bytes
from modurob.studio.studio import Studio


@pytest.fixture
def studio(tmp_path):
    made = Studio(Folder(tmp_path / "projects"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def cobra(tmp_path_factory):
    """A module set and an assembly of it."""
    folder, arm = tmp_path_factory.mktemp("cobra"), examples.arm("babac")
    write_cobra_modules(arm, folder / "arm_modules.json")
    write_cobra_assembly(arm, folder / "arm_assembly.json")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def packed(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_urdf_becomes_a_body_with_the_same_dynamics(studio, tmp_path):
    snake = examples.snake(3).model("physical")
    write_urdf(snake, tmp_path / "robot.urdf")
    session = studio.upload("robot.urdf", (tmp_path / "robot.urdf").read_bytes())
    model = session.model()
    assert (session.name, model.nv) == ("robot", snake.nv)
    q = np.linspace(-0.4, 0.5, snake.nq)
    assert np.allclose(model.mass_matrix(q), snake.mass_matrix(q), atol=1e-12)


def test_flaws_of_a_urdf_file_are_repaired_and_told(studio):
    text = b"""<robot name="arm"><link name="a"/><link name="b"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    </joint></robot>"""
    session = studio.upload("arm.urdf", text)
    assert session.model().joint_names == ("m0.j",)
    assert any("arm.urdf" in words and "inertia" in words for words in session.notes)
    with pytest.raises(FileError, match=r"arm\.xml: "):
        studio.upload("arm.xml", b"<mujoco/>")


def test_a_format_is_known_by_the_content_or_the_ending_of_a_file(studio, tmp_path):
    write_urdf(examples.snake(2).model("physical"), tmp_path / "robot.urdf")
    text = b"\n " + (tmp_path / "robot.urdf").read_bytes().partition(b"?>")[2]
    assert len(studio.upload("robot.xml", text).model().joint_names) == 1
    with pytest.raises(FileError, match=r"robot\.urdf: .*XML"):
        studio.upload("robot.urdf", b"{}")
    body = examples.crab()
    body.save(tmp_path / "crab.json")
    (kind,) = imports.kinds("crab.json", (tmp_path / "crab.json").read_bytes())
    assert kind == body.kind("m0")  # six of one kind
    with pytest.raises(FileError, match=r"new\.json: there is no module in this file"):
        imports.kinds("new.json", to_bytes(Project()))


def test_a_project_without_the_files_of_its_runs_has_none(studio, tmp_path):
    settings = NEW_SETTINGS
    run = RunRecord(
        number=1, title="wave", status="finished", seconds=1.0, took=0.5, settings=settings
    )
    content = to_bytes(Project(runs=[run]))
    assert studio.upload("shared.json", content).project.runs == []
    file = tmp_path / "given.modurob.json"
    file.write_bytes(content)
    assert studio.open_file(file).project.runs == []


def test_cobra_files_are_a_body_or_modules_for_the_palette(studio, cobra):
    session = studio.upload("arm.zip", packed(cobra))
    arm = examples.arm("babac").model("physical")
    q = np.linspace(-0.4, 0.5, arm.nq)
    assert np.allclose(session.model().mass_matrix(q), arm.mass_matrix(q), atol=1e-9)
    found = imports.read("set.json", cobra["arm_modules.json"])
    assert found.project is None
    assert {kind.name for kind in found.kinds} == {kind.name for kind in imports.kinds(
        "set.json", cobra["arm_modules.json"])}  # fmt: skip
    with pytest.raises(FileError, match=r"a CoBRA assembly without its modules; put both files"):
        imports.read("arm.json", cobra["arm_assembly.json"])


def with_runs(studio, name, count):
    session = studio.new_from_example("double_pendulum")
    studio.rename(session, name)
    settings = NEW_SETTINGS.edited(duration=0.05, hinges="physical", motion="none")
    for number in range(1, count + 1):
        request = runs.RunRequest(
            runs.scenario_of(session.body(), settings, {}), settings,
            session.folder.runs(name), number,
        )  # fmt: skip
        session.add_run(runs.perform(request, lambda done: None))
    return session


def test_a_project_travels_with_its_runs_as_one_file(studio):
    session = with_runs(studio, "swing", 2)
    folder = session.folder.runs("swing")
    data, count = imports.archive(session.project, folder, 10**7)
    assert count == 2
    other = studio.upload("shared.modurob.zip", data)
    there = studio.folder.runs(other.name)
    assert (other.name, other.notes) == ("shared", ())
    assert other.runs == session.runs
    assert sorted(file.name for file in there.iterdir()) == sorted(
        file.name for file in folder.iterdir()
    )
    assert np.array_equal(Trajectory.load(there / "2.npz").q, Trajectory.load(folder / "2.npz").q)
    assert (there / "1.bin").read_bytes() == (folder / "1.bin").read_bytes()

    # it stays small enough to be opened: old runs are left out first
    small, count = imports.archive(session.project, folder, len(data) - 1)
    assert (count, len(small) < len(data) - 1) == (1, True)
    assert [run.number for run in imports.read("x.zip", small).project.runs] == [2]
    files = {f"runs/2.{ending}": folder / f"2.{ending}" for ending in ("npz", "json")}
    files["runs/2.scenario.json"] = folder / "2.scenario.json"
    alone = len(imports._zipped({name: path.read_bytes() for name, path in files.items()}))
    alone += len(imports._zipped({imports.PROJECT: to_bytes(session.project)}))
    counts = [imports.archive(session.project, folder, alone + k)[1] for k in (0, -1)]
    assert counts == [1, 0]


def test_a_damaged_or_hostile_archive_loses_no_more_than_the_run_and_leads_nowhere(
    studio, monkeypatch
):
    session = with_runs(studio, "swing", 1)
    data, _ = imports.archive(session.project, session.folder.runs("swing"), 10**7)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["runs/../../outside.json"] = b"{}"
    files["runs/1.npz"] = files["runs/1.npz"][:-100]
    found = imports.read("bad.zip", packed(files))
    assert found.project.runs == []
    assert dict(found.runs) == {}
    assert len(found.notes) == 1
    assert "Run 1 is left out" in found.notes[0]
    studio.new_from_import("bad.zip", found)
    assert not [*studio.folder.path.parent.glob("outside*")]
    with pytest.raises(FileError, match="holds neither a project"):
        imports.read("bad.zip", packed({"a.txt": b""}))
    with pytest.raises(FileError, match="not a ZIP archive"):
        imports.read("bad.zip", data[:200])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:  # unpacked whole when read
        archive.writestr("project.modurob.json", b"{}")
    with pytest.raises(FileError, match=r"bomb\.zip: .*'project\.modurob\.json' is .*packed unusu"):
        imports.read("bomb.zip", stream.getvalue())
    monkeypatch.setattr(imports, "LARGEST_MEMBER", 100)
    with pytest.raises(FileError, match="too large files"):
        imports.read("bomb.zip", packed({"project.modurob.json": bytes(101)}))


def test_projects_are_duplicated_with_their_runs_and_deleted_ones_are_kept_aside(studio):
    session = with_runs(studio, "swing", 1)
    session.save()
    assert studio.duplicate("swing") == "swing copy"
    assert studio.session("swing copy").runs == session.runs
    assert (studio.folder.runs("swing copy") / "1.npz").exists()
    end = session.listen(lambda topic: None)
    with pytest.raises(StateError, match="'swing' is open in a tab"):
        studio.delete("swing")
    end()
    folder = studio.delete("swing")
    assert folder.parent == studio.folder.path / DELETED
    assert sorted(path.name for path in folder.iterdir()) == ["swing.modurob.json", "swing.runs"]
    assert [entry.name for entry in studio.folder.entries()] == ["swing copy"]
    assert studio.free_name("swing") == "swing"


def test_archives_are_opened_up_to_their_limits(studio, monkeypatch):
    session = with_runs(studio, "swing", 1)
    data, _ = imports.archive(session.project, session.folder.runs("swing"), 10**7)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = [entry.file_size for entry in archive.infolist()]
    limits = {
        "MOST_MEMBERS": len(sizes), "LARGEST_MEMBER": max(sizes), "LARGEST_UNPACKED": sum(sizes)
    }  # fmt: skip
    for name, limit in limits.items():
        monkeypatch.setattr(imports, name, limit)
    assert len(imports.read("swing.zip", data).project.runs) == 1
    for name, limit in limits.items():
        monkeypatch.setattr(imports, name, limit - 1)
        with pytest.raises(FileError, match=r"swing\.zip: .*(too large|can be unpacked)"):
            imports.read("swing.zip", data)
        monkeypatch.setattr(imports, name, limit)
