"""A robot in C makes the table of the dyad tier from records and dockings, and computes with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from ctypes import byref
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import modurob as mr
from firmware.bus_in_c import FLAGS_VARIABLE, NEEDS_COMPILER
from modurob.compiler import dyads
from modurob.compiler.emit_c import write_sources
from modurob.firmware import runtime_files, runtime_sizes
from modurob.modules.record import encode
from oracles.organisms import GROUPS, WRIST, random_pose
from oracles.random_kinds import random_kind
from oracles.rough_organisms import rough_organism
from oracles.runtime import COMPILER, WARNINGS, Runtime, numbers_of, port_index

DOUBLE, SINGLE = 1e-12, 1e-4  # of the largest number of a result
CASES = [(kinds, seed) for kinds in GROUPS for seed in range(3)]


@cache
def organism_of(kinds: str, seed: int) -> mr.Organism:
    organism = rough_organism(kinds, seed, 9)
    if seed % 2 and any(organism.kind(organism.modules[-1]).joints):
        organism = organism.with_parameters(organism.modules[-1], stiffness=5.0, damping=0.1)
    return organism


@cache
def model_of(kinds: str, seed: int, hinges: str) -> mr.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mr.errors.ModelWarning)
        return organism_of(kinds, seed).model(hinges)


def assert_same_table(found, frames, gravity) -> None:
    """Byte for byte: both add the same products in the same order, with the same sine."""
    found, table = numbers_of(found), dyads.table_rows(frames, gravity)
    expected = table._asdict() | dyads.body_tables(frames)
    assert found.keys() == expected.keys()
    for name, mine in found.items():
        theirs = expected[name]
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
        assert mine.tobytes() == np.ascontiguousarray(theirs, dtype=mine.dtype).tobytes(), name


@pytest.mark.parametrize(("kinds", "seed"), CASES)
def test_c_and_python_build_the_same_table(double_runtime, kinds, seed):
    for hinges in ("dyad", "physical"):
        model = model_of(kinds, seed, hinges)
        for placed, frames in ((0, model._frames), (1, model._placed_frames)):
            table = double_runtime.table_of(organism_of(kinds, seed), hinges, placed=placed)
            assert_same_table(table, frames, model.gravity)


@pytest.mark.parametrize("single", [False, True], ids=["double", "float"])
def test_dynamics_and_kinematics_are_those_of_the_model(request, single):
    runtime = request.getfixturevalue("single_runtime" if single else "double_runtime")
    allowed, rng = SINGLE if single else DOUBLE, np.random.default_rng(3)
    for kinds, seed in CASES[1::2]:
        hinges = "physical" if seed % 2 else "dyad"
        organism, model = organism_of(kinds, seed), model_of(kinds, seed, hinges)
        n = model.nv
        if not n:
            continue
        table = runtime.table_of(organism, hinges)
        placed = runtime.table_of(organism, hinges, placed=1)
        q, v, x = rng.standard_normal((3, n))
        derivatives = np.stack(model.inverse_dynamics_derivatives(q, v, x))
        poses = runtime.evaluate("forward_kinematics", placed, 12 * (placed.part_count - 1), q)
        bodies = [k for k in range(placed.part_count - 1) if not placed.parts[k + 1].flags & 2]
        for found, expected in (
            (
                runtime.evaluate("inverse_dynamics", table, n, q, v, x),
                model.inverse_dynamics(q, v, x),
            ),
            (
                runtime.evaluate("inverse_dynamics", table, n, q, None, None),
                model.gravity_torque(q),
            ),
            (
                runtime.evaluate("forward_dynamics", table, n, q, v, x),
                model.forward_dynamics(q, v, x),
            ),
            (runtime.evaluate("mass_matrix", table, n * n, q), model.mass_matrix(q)),
            (
                runtime.evaluate("inverse_dynamics_derivatives", table, 3 * n * n, q, v, x),
                derivatives,
            ),
            (poses.reshape(-1, 12)[bodies], model.forward_kinematics(q)[:, :3]),
            (runtime.evaluate("center_of_mass", placed, 3, q), model.center_of_mass(q)),
        ):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                found.ravel(), expected.ravel(), rtol=0, atol=allowed * scale
            )


@pytest.mark.parametrize("seed", range(4))
def test_random_datasheets_give_the_same_table(double_runtime, seed):
    rng = np.random.default_rng(seed)
    kinds = [random_kind(rng, f"kind{k}") for k in range(3)]
    organism = mr.Organism.random(kinds, 6, rng).with_base_pose(random_pose(rng))
    for hinges in ("dyad", "physical"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mr.errors.ModelWarning)
            model = organism.model(hinges)
        table = double_runtime.table_of(organism, hinges)
        assert_same_table(table, model._frames, model.gravity)


def test_dockings_may_be_listed_from_either_side_and_from_any_base(double_runtime):
    organism = organism_of("cubes and wrists", 2)
    turned = [d._replace(parent=d.child, port=d.child_port, child=d.parent, child_port=d.port)
              for d in organism.dockings]  # fmt: skip
    robot, names = double_runtime.robot(organism, turned), list(organism.modules)
    for name in names[:3]:
        other = organism.rebase(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mr.errors.ModelWarning)
            model = other.model("physical")
        table = double_runtime.table(robot, other.base_pose, physical=1, base=names.index(name))
        assert_same_table(table, model._frames, model.gravity)


def test_limits_without_room_hold_a_joint_where_they_are(double_runtime):
    organism = mr.Organism.start(WRIST.with_parameters(limits=(0.4, 0.4), joint="bend"))
    model = organism.model("physical")
    assert model.nv == 1
    assert_same_table(double_runtime.table_of(organism, "physical"), model._frames, model.gravity)


def test_joints_on_one_line_without_mass_between_are_locked(double_runtime):
    names, ports = ("b0", "b1", "b2", "b3"), WRIST.ports[:1]
    kind = mr.ModuleType(
        name="line", symbol="L", size=0.1,
        bodies=[{"name": name, "mass": m, "inertia": [m] * 3}
                for name, m in zip(names, (1, 0, 0, 1), strict=True)],
        joints=[{"name": f"j{k}", "kind": "revolute", "parent": names[k], "child": names[k + 1],
                 "position": (0, 0, 0.1), "axis": (0, 0, -1 if k else 1)} for k in range(3)],
        ports=[port.model_copy(update={"body": "b3"}) for port in ports],
    )  # fmt: skip
    organism = mr.Organism.start(kind)
    with pytest.warns(mr.errors.ModelWarning, match="same line"):
        model = organism.model()
    assert model.nv == 1
    assert_same_table(double_runtime.table_of(organism, "dyad"), model._frames, model.gravity)


def test_both_connectors_must_accept_each_other(double_runtime):
    first = WRIST.ports[0].model_copy(update={"mates": ("another",)})
    shy = WRIST.model_copy(update={"ports": (first, *WRIST.ports[1:])})
    for kinds in ((shy, WRIST), (WRIST, shy)):
        robot = double_runtime.types.Robot()
        for kind in kinds:
            assert double_runtime.add(robot, encode(kind, 1)) == "ok"
        assert double_runtime.dock(robot, 0, 0, 1, 0, 0) == "docking"
        assert double_runtime.dock(robot, 0, 1, 1, 1, 0) == "ok"


def test_impossible_dockings_give_a_status(double_runtime):
    organism = mr.Organism.start("superbot").dock("m0", 1, "m1", 2, kind="superbot")
    organism = organism.dock("m1", 3, "m2", 4, kind="superbot")
    robot = double_runtime.robot(organism)
    assert double_runtime.dock(robot, 0, 0, 2, 1, 0) == "taken"
    assert double_runtime.dock(robot, 0, 5, 9, 1, 0) == "module"
    assert double_runtime.dock(robot, 0, 6, 2, 1, 0) == "port"
    assert double_runtime.dock(robot, 0, 5, 2, 1, 45) == "docking"
    assert double_runtime.dock(robot, 0, 5, 0, 4, 0) == "loop"
    assert double_runtime.table(robot).joint_count == 9
    assert double_runtime.dock(robot, 0, 5, 2, 1, 0) == "ok"
    assert double_runtime.table(robot) == "loop"
    assert double_runtime.table(robot, base=7) == "module"


@pytest.mark.parametrize(
    ("row", "column", "number"),
    [(0, 1, np.nan), (1, 1, np.inf), (2, 3, np.nan), (0, 3, np.inf), (0, 0, 2.0), (2, 2, -1.0)],
)
def test_a_base_pose_that_is_none_gives_a_status(double_runtime, row, column, number):
    robot, pose = double_runtime.robot(mr.examples.arm("ba")), np.eye(4)
    pose[row, column] = number
    assert double_runtime.table(robot, pose) == "argument"


def test_gravity_that_is_no_number_gives_a_status(double_runtime):
    robot = double_runtime.robot(mr.examples.arm("ba"))
    gravity = double_runtime.array([0.0, np.nan, 0.0])
    assert double_runtime.table(robot, gravity=gravity) == "argument"


def test_numbers_too_large_to_calculate_with_leave_an_empty_table(double_runtime, single_runtime):
    """Their products are infinite, and torques would be no numbers."""
    for runtime, ratio in ((double_runtime, 1e200), (single_runtime, 1e30)):
        robot, table = runtime.types.Robot(), runtime.types.Table()
        for kind in (WRIST, WRIST.with_parameters(rotor_inertia=1.0, gear_ratio=ratio)):
            assert runtime.add(robot, encode(kind, 1)) == "ok"
        options = runtime.types.Options.in_dll(runtime.lib, "mr_default_options")
        for base, status in ((0, 0), (1, -9), (0, 0), (7, -12)):
            given = type(options).from_buffer_copy(options)
            given.base, given.physical = base, 1
            built = runtime.lib.mr_table_build(byref(robot), byref(given), byref(table))
            assert built == status
            assert (table.joint_count == 0) == (status != 0)


@NEEDS_COMPILER
def test_flags_that_remove_the_checks_for_nan_are_refused(double_runtime, tmp_path):
    (tmp_path / "main.c").write_text('#include "modurob/config.h"\n')
    include, given = f"-I{double_runtime.folder / 'include'}", tmp_path / "main.c"
    for flag, refused in (("-O2", False), ("-ffast-math", True)):
        command = [str(COMPILER), *WARNINGS[:1], flag, include, "-fsyntax-only", str(given)]
        assert (subprocess.run(command, capture_output=True).returncode != 0) == refused


def test_a_module_that_undocks_leaves_the_table(double_runtime):
    organism = mr.examples.arm("babac")
    robot, names = double_runtime.robot(organism), list(organism.modules)
    last = organism.dockings[-1]
    port = port_index(organism.kind(last.parent), last.port)
    assert double_runtime.lib.mr_robot_undock(byref(robot), names.index(last.parent), port) == 0
    model = organism.undock(last.child)[0].model()
    table = double_runtime.table(robot, organism.base_pose)
    assert_same_table(table, model._frames, model.gravity)


def test_the_program_of_the_guide_compiles(double_runtime):
    guide = (Path(__file__).parents[2] / "docs/guide/firmware.md").read_text("utf-8")
    (program,) = [each for each in re.findall(r"```c\n(.*?)```", guide, re.S) if "mr_robot" in each]
    include = f"-I{double_runtime.folder / 'include'}"
    command = [str(COMPILER), *WARNINGS, "-DMR_HAVE_SIZES", include, "-fsyntax-only", "-xc", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_stiff_springs_take_no_room_among_the_parts(double_runtime):
    names = ("b0", "b1", "b2", "b3")
    joint = {"kind": "fixed", "position": (0, 0, 0.1)}
    spring = {**joint, "kind": "revolute", "rotor_inertia": 1e-5, "stiffness": 9.0}
    kind = mr.ModuleType(
        name="stiff", symbol="S", size=0.1,
        bodies=[{"name": name, "mass": 1, "inertia": [1] * 3} for name in names],
        joints=[{"name": f"j{k}", "parent": names[k], "child": names[k + 1],
                 **(spring if k == 2 else joint)} for k in range(3)],
        ports=[port.model_copy(update={"body": "b0"}) for port in WRIST.ports],
    )  # fmt: skip
    parts = double_runtime.sizes["PARTS"]
    organism = mr.Organism.random([kind], parts // len(names), np.random.default_rng(0))
    table = double_runtime.table_of(organism, "physical", stiff=1)
    assert table.part_count == parts + 1  # the world


@NEEDS_COMPILER
@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm on this machine")
@pytest.mark.skipif(FLAGS_VARIABLE in os.environ, reason="flags such as --coverage add functions")
def test_the_library_calls_sine_cosine_root_and_functions_on_bytes_alone(double_runtime):
    library = double_runtime.folder / "runtime.so"
    done = subprocess.run(["nm", "-D", "-u", library], capture_output=True, text=True, check=True)
    found = {line.split()[1].partition("@")[0] for line in done.stdout.splitlines()}
    called = {name for name in found if not name.startswith("_")}  # the rest is the linker's
    assert {"sin", "cos", "sqrt"} <= called
    assert called <= {"sin", "cos", "sqrt", "memcmp", "memcpy", "memmove", "memset", "strlen"}


def test_a_message_has_room_for_a_reference_of_all_joints():
    sizes = runtime_files([WRIST], 254, 254)["include/modurob/sizes.h"]
    assert f"#define PORT_MESSAGE_SIZE {1 + 3 * 4 * 254}\n" in sizes


@pytest.mark.parametrize(
    ("kinds", "joints", "named"),
    [
        ([], 4, "list of datasheets"),
        (["backbone"], 4, "got \\['backbone'\\]"),
        (WRIST, 4, "list of datasheets"),
        (7, 4, "got 7"),
        ([WRIST], 2.5, "1 to 254 joints, got 2.5"),
        ([WRIST], "4", "got '4'"),
    ],
)
def test_a_runtime_of_no_datasheets_or_sizes_is_refused(kinds, joints, named):
    with pytest.raises(mr.StateError, match=named):
        runtime_files(kinds, 4, joints)


@pytest.mark.parametrize(("name", "joints"), [("backbone", 1), ("chen_link", 0)])
def test_kinds_of_one_joint_or_none_have_room_for_one(name, joints):
    kind = mr.catalog[name]
    assert len(kind.joints) == joints
    assert runtime_sizes([kind], 2, 1)["KIND_JOINTS"] == 1


def test_sizes_are_the_largest_of_all_datasheets():
    """Joints with springs have a body more: that behind the spring."""
    arm, cube = mr.catalog["backbone"], mr.catalog["superbot"]
    elastic = mr.catalog["scout"].with_parameters(stiffness=5.0, rotor_inertia=0.1)
    assert (len(elastic.bodies), len(elastic.joints)) == (3, 2)
    assert runtime_sizes([arm, cube, elastic, arm], 5, 7) == {
        "MODULES": 5, "KINDS": 3, "JOINTS": 7, "PARTS": 5 * (3 + 2), "KIND_BODIES": 4,
        "KIND_JOINTS": 3, "KIND_PORTS": 6, "TURNS": 4, "MATES": 1,
    }  # fmt: skip
    rigid = runtime_sizes([mr.catalog["chen_link"]], 1, 1)
    assert (rigid["PARTS"], rigid["KIND_JOINTS"]) == (1, 1)  # arrays in C have one entry at least
    most = runtime_sizes([cube], 254, 254)
    assert (most["PARTS"], most["MODULES"], most["JOINTS"]) == (254, 254, 254)


@pytest.mark.parametrize(("modules", "joints"), [(0, 4), (4, 0), (255, 4), (4, 255)])
def test_sizes_beyond_one_byte_are_refused(modules, joints):
    with pytest.raises(mr.StateError, match="1 to 254"):
        runtime_sizes([WRIST], modules, joints)


def test_numbers_of_a_runtime_are_float_only_if_asked_for():
    place = "include/modurob/sizes.h"
    assert "MR_SINGLE" not in runtime_files([WRIST], 2, 2)[place]
    assert "#define MR_SINGLE 1\n" in runtime_files([WRIST], 2, 2, single=True)[place]


def test_an_export_for_small_datasheets_has_the_sizes_of_the_headers():
    files = runtime_files([mr.catalog["chen_link"]], 4, 4)
    place = next(name for name in files if name.endswith("sizes.h"))
    sizes = files[place]
    for header, name in (("bus.h", "MR_BUS_MAX_RECORD"), ("port.h", "PORT_MESSAGE_SIZE")):
        text = next(text for path, text in files.items() if path.endswith(f"/{header}"))
        define = rf"#define {name} (\d+)\n"
        assert re.search(define, sizes)[1] == re.search(define, text)[1]
    for joints, size in ((170, 2048), (171, 2053)):  # goals of all joints in three floats each
        sizes_of_many = runtime_files([mr.catalog["chen_link"]], 4, joints)[place]
        assert f"#define PORT_MESSAGE_SIZE {size}\n" in sizes_of_many
    link = mr.catalog["chen_link"].model_dump()
    link["ports"] = [{**link["ports"][0], "label": f"p{k}", "side": k + 1} for k in range(17)]
    assert "#define MR_BUS_MAX_PORTS 16\n" in runtime_files([mr.ModuleType(**link)], 4, 4)[place]


@NEEDS_COMPILER
def test_an_export_has_room_for_its_datasheets_and_takes_sizes_of_the_compiler(tmp_path):
    cube = mr.catalog["chen_link"].model_dump()
    ports = [{**cube["ports"][0], "label": f"p{k}", "side": k + 1} for k in range(9)]
    large = mr.ModuleType(**{**cube, "ports": ports})
    record = len(encode(large, 1))
    assert record > 2048
    write_sources(tmp_path, runtime_files([large], 4, 4))
    checks = {
        "MR_BUS_MAX_PORTS": 9,
        "MR_BUS_MAX_RECORD": record,
        "PORT_MESSAGE_SIZE": record + 1,
        "MR_MAX_MODULES": 32,
        "MR_BUS_MAX_MODULES": 32,
    }
    lines = [f"typedef char sized_{k}[{k} == {v} ? 1 : -1];" for k, v in checks.items()]
    program = "\n".join(['#include "modurob/bus.h"', '#include "port.h"', *lines, ""])
    folders = (f"-I{tmp_path / 'include'}", f"-I{tmp_path / 'boards'}")
    flags = ("-DMR_HAVE_SIZES", "-DMR_MAX_MODULES=32", *folders, "-fsyntax-only", "-xc", "-")
    command = [str(COMPILER), *WARNINGS, *flags]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@NEEDS_COMPILER
def test_a_port_may_allow_every_turn(tmp_path):
    ports = [port.model_copy(update={"turns": tuple(range(360))}) for port in WRIST.ports]
    kind = WRIST.model_copy(update={"ports": tuple(ports)})
    write_sources(tmp_path, runtime_files([kind], 2, 2))
    sources = [str(tmp_path / "src" / f"{name}.c") for name in ("record", "robot", "pose", "crc")]
    flags = ("-DMR_HAVE_SIZES", f"-I{tmp_path / 'include'}", "-shared", "-fPIC")
    library = tmp_path / "runtime.so"
    subprocess.run([str(COMPILER), *WARNINGS, *flags, "-o", library, *sources, "-lm"], check=True)
    runtime = Runtime(library, runtime_sizes([kind], 2, 2), single=False)
    robot = runtime.types.Robot()
    assert [runtime.add(robot, encode(kind, 1)) for _ in range(2)] == ["ok", "ok"]
    assert runtime.dock(robot, 0, 0, 1, 0, 360) == "docking"
    assert runtime.dock(robot, 0, 0, 1, 0, 359) == "ok"


def test_datasheets_with_more_than_their_numbers_can_count_are_refused():
    cube = mr.catalog["chen_link"].model_dump()
    ports = [{**cube["ports"][0], "label": k, "side": k + 1} for k in range(256)]
    with pytest.raises(mr.StateError, match="up to 255 ports, chen_link has 256"):
        runtime_sizes([mr.ModuleType(**{**cube, "ports": ports})], 4, 4)
    sized = runtime_sizes([mr.ModuleType(**{**cube, "ports": ports[:255]})], 4, 4)
    assert sized["KIND_PORTS"] == 255
    turning = mr.catalog["backbone"].model_dump()
    (body, other), (joint,) = turning["bodies"], turning["joints"]
    bodies = [body, *({**other, "name": f"b{k}"} for k in range(1, 129))]
    joints = [
        {**joint, "name": f"j{k}", "child": f"b{k}", "parent": body["name"]} for k in range(1, 129)
    ]
    ports = [{**port, "body": body["name"]} for port in turning["ports"]]
    for count in (128, 129):
        kind = {
            **turning, "bodies": bodies[:count], "joints": joints[: count - 1], "ports": ports,
            "shapes": [], "meshes": [], "dyad_joint": None,
        }  # fmt: skip
        if count == 128:
            assert runtime_sizes([mr.ModuleType(**kind)], 1, 4)["KIND_BODIES"] == 128
        else:
            with pytest.raises(mr.StateError, match="up to 128 bodies, backbone has 129"):
                runtime_sizes([mr.ModuleType(**kind)], 1, 4)
