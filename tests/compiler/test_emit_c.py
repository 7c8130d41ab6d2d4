"""The exported C compiles without a warning and computes what the model computes."""

from __future__ import annotations

import ctypes
import dataclasses
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import modurob as mr
from modurob.compiler import emit_c
from modurob.compiler.emit_c import c_sources
from oracles.rough_organisms import rough_organism

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
ALLOWED = {"float64": 1e-12, "float32": 1e-4}  # relative to the largest result of all states
STATES = 100
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "kinematics", "center_of_mass")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")


def crab(**options) -> mr.Model:
    return mr.examples.crab().model(**options)


MODELS = {
    "crab": lambda: crab(),
    "free crab": lambda: crab(hinges="physical", base="free"),
    "nine": lambda: mr.examples.nine().model(),
    "arm": lambda: mr.examples.arm("babac").model("physical"),
    "free superbots": lambda: mr.examples.superbot_tree(
        branches=2, length=2, rng=np.random.default_rng(1)
    ).model("physical", base="free"),
    "friction and sliding": lambda: (
        rough_organism("cubes and wrists", 3, 8)
        .with_parameters("m2", stiffness=5.0, damping=0.1)
        .model("physical")
    ),
}
CASES = [(name, dtype) for name in MODELS for dtype in ALLOWED]


@cache
def model_of(name: str) -> mr.Model:
    return MODELS[name]()


def compiler(*arguments: object, folder: Path) -> None:
    command = [str(COMPILER), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of a compiled export: ``robot.so`` and ``robot_test``, each case built once."""

    @cache
    def build(name: str, dtype: str) -> Path:
        folder = tmp_path_factory.mktemp("c")
        c_sources(model_of(name), "robot", dtype).write(folder)
        compiler(*WARNINGS, "-O0", "-fPIC", "-c", "robot.c", "-o", "robot.o", folder=folder)
        compiler("-shared", "-o", "robot.so", "robot.o", "-lm", folder=folder)
        test = ("robot_test.c", "robot.o", "-lm")
        compiler(*WARNINGS, "-o", "robot_test", *test, folder=folder)
        return folder

    return build


def call(library: Path, function: str, arguments: list[np.ndarray], shape: tuple[int, ...]):
    """Results of a C function for rows of states; what it does not write is not a number."""
    run = getattr(ctypes.CDLL(str(library)), f"robot_{function}")
    y = np.full(shape, np.nan, dtype=arguments[0].dtype)
    for i in range(len(y)):
        rows = [np.ascontiguousarray(array[i]) for array in arguments]
        run(*(ctypes.c_void_p(row.ctypes.data) for row in (*rows, y[i])))
    return y


def states(model: mr.Model, dtype: str, count: int = STATES) -> dict[str, np.ndarray]:
    """Random states that the type holds exactly."""
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    v, a, tau = rng.standard_normal((3, count, model.nv)).astype(dtype)
    return {"q": q.astype(dtype), "v": v, "a": a, "tau": tau}


def expected(model: mr.Model, state: dict[str, np.ndarray]) -> dict[str, tuple[str, np.ndarray]]:
    """For each function its arguments, and what the model says."""
    q, v, a, tau = (state[key].astype(float) for key in ("q", "v", "a", "tau"))
    modules = list(model.modules.values())
    return {
        "inverse_dynamics": ("q v a", model.inverse_dynamics(q, v, a)),
        "forward_dynamics": ("q v tau", model.forward_dynamics(q, v, tau)),
        "mass_matrix": ("q", model.mass_matrix(q)),
        "kinematics": ("q", model.forward_kinematics(q)[:, modules, :3]),
        "center_of_mass": ("q", model.center_of_mass(q)),
    }


# -- numbers ---------------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_c_computes_what_the_model_computes(built, name, dtype):
    model = model_of(name)
    state = states(model, dtype)
    for function, (arguments, wanted) in expected(model, state).items():
        given = [state[key] for key in arguments.split()]
        found = call(built(name, dtype) / "robot.so", function, given, wanted.shape)
        assert np.abs(found - wanted).max() <= ALLOWED[dtype] * np.abs(wanted).max(), function


@needs_compiler
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_forward_dynamics_undoes_inverse_dynamics(built, name, dtype):
    model, library = model_of(name), built(name, dtype) / "robot.so"
    q, v, a, _ = states(model, dtype).values()
    tau = call(library, "inverse_dynamics", [q, v, a], a.shape)
    found = call(library, "forward_dynamics", [q, v, tau], a.shape)
    # forces nearly balance, and their rounding errors accelerate what is light
    response = np.linalg.norm(np.linalg.inv(model.mass_matrix(q.astype(float))), 2, axis=(-2, -1))
    rounding = np.finfo(dtype).eps * np.abs(tau).max() * response.max()
    assert np.abs(found - a).max() <= max(ALLOWED[dtype] * np.abs(a).max(), rounding)


@needs_compiler
def test_wrenches_on_modules_act_in_c_as_in_the_model(tmp_path):
    model = mr.examples.snake(3).model("physical", base="free")
    names = ("inverse_dynamics_external", "forward_dynamics_external")
    c_sources(model, "robot", functions=names).write(tmp_path)
    compiler(*WARNINGS, "-O0", "-fPIC", "-c", "robot.c", "-o", "robot.o", folder=tmp_path)
    compiler("-shared", "-o", "robot.so", "robot.o", "-lm", folder=tmp_path)
    compiler(*WARNINGS, "-o", "robot_test", "robot_test.c", "robot.o", "-lm", folder=tmp_path)
    subprocess.run([tmp_path / "robot_test"], check=True)
    q, v, a, tau = states(model, "float64", 5).values()
    F = np.random.default_rng(6).standard_normal((5, 6 * len(model.modules)))
    external = {name: F[:, 6 * k : 6 * k + 6] for k, name in enumerate(model.modules)}
    for name, third in zip(names, (a, tau), strict=True):
        wanted = getattr(model, name.removesuffix("_external"))(q, v, third, external)
        found = call(tmp_path / "robot.so", name, [q, v, third, F], wanted.shape)
        assert np.abs(found - wanted).max() <= ALLOWED["float64"] * np.abs(wanted).max(), name


def test_the_models_cover_sliding_joints_friction_and_a_free_base():
    rough = model_of("friction and sliding")
    assert rough.prismatic.any()
    assert rough.viscous.all()
    assert (rough.coulomb > 0).tolist() == (rough.stiffness == 0).tolist()  # all but springs
    assert rough.armature.any()
    assert rough.stiffness.any()
    assert (model_of("crab")._frames.sign < 0).any()  # a joint that is read backwards
    assert model_of("free superbots").free_base


@needs_compiler
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_generated_test_program_passes(built, name, dtype):
    done = subprocess.run([built(name, dtype) / "robot_test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "ok"
    assert all(function in done.stdout for function in FUNCTIONS)


@needs_compiler
def test_generated_test_program_passes_where_the_terms_of_a_matrix_cancel(tmp_path):
    """Those of C are rounding errors of single precision in a crab."""
    functions = ("coriolis_matrix", "centroidal_momentum_matrix_rate", "joint_screw_rates")
    c_sources(crab(), "robot", "float32", functions=functions).write(tmp_path)
    compiler("robot.c", "robot_test.c", "-lm", "-o", "robot_test", folder=tmp_path)
    done = subprocess.run([tmp_path / "robot_test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@needs_compiler
@pytest.mark.parametrize(
    ("function", "factor"),
    [*((function, "1.00001") for function in FUNCTIONS), ("mass_matrix", "(0.0 / 0.0)")],
)
def test_generated_test_program_finds_a_wrong_function(tmp_path, function, factor):
    sources = c_sources(crab(), "robot")
    before, body, after = re.split(
        rf"(void robot_{function}\(.*?\n\}}\n)", sources.source, flags=re.DOTALL
    )
    wrong = body.replace("cos(", f"{factor} * cos(")
    sources._replace(source=before + wrong + after).write(tmp_path)
    compiler("robot.c", "robot_test.c", "-lm", "-o", "robot_test", folder=tmp_path)
    done = subprocess.run([tmp_path / "robot_test"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "FAILED"
    assert re.findall(r"^(\w+) .*WRONG$", done.stdout, re.MULTILINE) == [function]


@needs_compiler
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_result_may_take_the_place_of_an_input(built, function, place):
    name = "friction and sliding"
    state = states(model_of(name), "float64", count=1)
    arguments, (wanted,) = expected(model_of(name), state)[function]
    given = [state[key][0].copy() for key in arguments.split()]
    run = getattr(ctypes.CDLL(str(built(name, "float64") / "robot.so")), f"robot_{function}")
    run(*(ctypes.c_void_p(array.ctypes.data) for array in (*given, given[place])))
    assert np.abs(given[place] - wanted).max() <= ALLOWED["float64"] * np.abs(wanted).max()


# -- the code --------------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize(("dtype", "suffix"), [("float64", ""), ("float32", "f")])
def test_object_needs_only_sine_cosine_and_root(tmp_path, dtype, suffix):
    if not shutil.which("nm"):
        pytest.skip("no nm on this machine")
    c_sources(model_of("friction and sliding"), "robot", dtype).write(tmp_path)
    compiler(*WARNINGS, "-O0", "-c", "robot.c", folder=tmp_path)
    done = subprocess.run(["nm", "-u", "robot.o"], cwd=tmp_path, capture_output=True, text=True)
    assert set(done.stdout.split()) - {"U"} == {f"{f}{suffix}" for f in ("sin", "cos", "sqrt")}


@pytest.mark.parametrize("name", MODELS)
def test_each_sine_and_cosine_is_computed_once(name):
    for body in re.split(r"\nvoid ", c_sources(model_of(name)).source)[1:]:
        calls = re.findall(r"\b(?:sin|cos)\(.*?\)", body)
        assert len(calls) == len(set(calls)) <= 2 * len(model_of(name).joint_names)


def test_float_source_has_no_double_constants():
    source = c_sources(model_of("arm"), dtype="float32").source
    numbers = re.findall(r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?f?", source)
    assert numbers
    assert all(number.endswith("f") for number in numbers)


@pytest.mark.parametrize("name", MODELS)
def test_header_counts_the_operations_of_the_source(name):
    sources = c_sources(model_of(name))
    bodies = re.split(r"\nvoid modurob_(\w+)\(", sources.source)[1:]
    signs = {"mul": " * ", "div": " / ", "sqrt": "sqrt(", "sin": " sin(", "cos": " cos("}
    for function, body in zip(bodies[::2], bodies[1::2], strict=True):
        counts = sources.operations[function]
        for op, sign in signs.items():
            assert counts[op] == body.count(sign), (function, op)
        assert counts["add"] == body.count(" + ") + body.count(" - ")
        (row,) = re.findall(rf"^ \*   {function} +(.*)$", sources.header, re.MULTILINE)
        assert [int(n) for n in row.split()[:-1]] == list(counts.values())


@needs_compiler
@pytest.mark.parametrize("dtype", ALLOWED)
def test_optimizing_raises_no_warning(tmp_path, dtype):
    c_sources(model_of("friction and sliding"), "robot", dtype).write(tmp_path)
    compiler(*WARNINGS, "-O2", "robot.c", "robot_test.c", "-lm", folder=tmp_path)


@needs_compiler
def test_header_is_fit_for_cpp(tmp_path):
    cpp = shutil.which("g++") or shutil.which("clang++")
    if cpp is None:
        pytest.skip("no C++ compiler on this machine")
    c_sources(crab(), "robot").write(tmp_path)
    compiler("-c", "robot.c", folder=tmp_path)
    (tmp_path / "main.cpp").write_text(
        '#include "robot.h"\n#include "robot.h"\n'
        "int main() { double q[ROBOT_NQ] = {0}, c[3]; robot_center_of_mass(q, c); return 0; }\n"
    )
    subprocess.run([cpp, "main.cpp", "robot.o", "-lm"], cwd=tmp_path, check=True)


def test_header_says_what_a_developer_needs_to_know():
    model = crab(base="free")
    header = c_sources(model, "crab").header
    for text in (
        "#define CRAB_NQ 10",
        "#define CRAB_NV 9",
        "#define CRAB_MODULES 6",
        "typedef double crab_real;",
        "quaternion x, y, z, w",
        *(f"q[{7 + k}], v[{6 + k}]: {name}" for k, name in enumerate(model.joint_names)),
        *(f"T[{k}]: {name}" for k, name in enumerate(model.modules)),
        *(f"{name}: DS dyad" for name in model.locked),
    ):
        assert text in header
    assert max(map(len, header.splitlines())) <= 100
    assert c_sources(model, "crab").header == header


# -- names and other input -------------------------------------------------------------------------

EVIL = ("*/ int x; /*", "a\\", "??/", 'line\nbreak"', "größe\u202e", "%s%n", "x" * 5000, "/", "")


@needs_compiler
def test_no_name_gets_out_of_its_comment(tmp_path):
    model = mr.examples.snake(10).model()
    names = tuple(EVIL[k % len(EVIL)] for k in range(len(model.joint_names)))
    evil = dataclasses.replace(
        model,
        joint_names=names,
        modules=dict(zip(EVIL, model.modules.values(), strict=False)),
        locked=dict.fromkeys(EVIL, "*/ because /*"),
    )
    sources = c_sources(evil, "robot")
    assert sources.header.isascii()
    assert sources.header.count("*/") == 1 + len(FUNCTIONS)
    assert sources.source == c_sources(dataclasses.replace(evil, joint_names=model.joint_names),
                                       "robot").source  # fmt: skip
    sources.write(tmp_path)
    compiler(*WARNINGS, "robot.c", "robot_test.c", "-lm", folder=tmp_path)


@pytest.mark.parametrize(
    "name",
    ["", "a b", "1st", "_crab", "größe", "a-b", "x;", "../x", "a/b", "a\n", "a" * 41, 7, None],
)
def test_name_that_is_no_identifier_is_refused(name):
    with pytest.raises(mr.StateError, match=r"letters.*digits.*underscores"):
        c_sources(crab(), name)


@pytest.mark.parametrize("name", ["math", "stdio", "Math"])
def test_name_of_a_standard_header_is_refused(name):
    with pytest.raises(mr.StateError, match="standard header"):
        c_sources(crab(), name)


def test_what_cannot_be_exported_is_refused():
    with pytest.raises(mr.StateError, match="float64, float32"):
        c_sources(crab(), dtype="float16")
    with pytest.raises(mr.StateError, match="no joint"):
        c_sources(mr.Organism.start("backbone").model())
    with pytest.raises(mr.StateError, match="at most 100"):
        c_sources(mr.examples.snake(102).model())
    with pytest.raises(mr.StateError, match=r"singular.*m2\.hinge"):
        c_sources(mr.examples.double_pendulum().model())
    with pytest.raises(mr.StateError, match="singular"):
        c_sources(mr.examples.double_pendulum().model("physical", base="free"))
    heavy = mr.examples.crane(m2=1e100).model("physical")
    with pytest.raises(mr.StateError, match="too large for a float"):
        c_sources(heavy, dtype="float32")


# -- files -----------------------------------------------------------------------------------------


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_files_are_written_into_a_folder_old_or_new(tmp_path):
    sources = c_sources(crab(), "crab")
    for folder in (tmp_path, tmp_path / "new"):
        written = sources.write(folder)
        assert written == [folder / name for name in ("crab.h", "crab.c", "crab_test.c")]
    assert content(tmp_path / "new") == sources.files()


@pytest.mark.parametrize("interrupted", [1, 2, 3])
def test_interrupting_leaves_all_files_as_they_were(tmp_path, monkeypatch, interrupted):
    old, new = c_sources(crab(), "crab"), c_sources(crab(), "crab", "float32")
    old.write(tmp_path)
    calls = []

    def replace_file(path, data):
        calls.append(path)
        if len(calls) == interrupted:
            raise KeyboardInterrupt
        path.write_bytes(data)

    monkeypatch.setattr(emit_c, "replace_file", replace_file)
    with pytest.raises(KeyboardInterrupt):
        new.write(tmp_path)
    assert content(tmp_path) == old.files()
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        new.write(tmp_path / "fresh")
    assert not (tmp_path / "fresh").exists()


def test_what_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path):
    sources = c_sources(crab(), "crab")
    (tmp_path / "file").write_text("precious")
    with pytest.raises(mr.WriteError, match="not a folder"):
        sources.write(tmp_path / "file")
    with pytest.raises(mr.WriteError, match="No such file"):
        sources.write(tmp_path / "no" / "where")
    (tmp_path / "crab_test.c").mkdir()
    with pytest.raises(mr.WriteError, match="cannot be written"):
        sources.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crab_test.c", "file"]


# -- the guide -------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "firmware.md"
QUOTED = {
    "crab, 3 joints": lambda: crab(),
    "snake of 6 Backbones, 5 joints": lambda: mr.examples.snake(6).model(),
    "arm `babac`, 5 joints": lambda: mr.examples.arm("babac").model("physical"),
    "crab with `physical` hinges and a free base, 6 joints": MODELS["free crab"],
}


def test_the_guide_quotes_the_operations_of_the_code():
    row = re.compile(r"^\| (.*?) ?\| ([a-z ]+) \| (\d+(?: \| \d+){5}) \|$", re.MULTILINE)
    quoted: dict[str, dict[str, list[int]]] = {}
    organism = ""
    for title, function, numbers in row.findall(PAGE.read_text("utf-8")):
        organism = title or organism
        counts = [int(number) for number in numbers.split(" | ")]
        quoted.setdefault(organism, {})[function.replace(" ", "_")] = counts
    ops = ("add", "mul", "div", "sqrt", "sin", "cos")
    assert quoted == {
        title: {
            function: [counts[op] for op in ops]
            for function, counts in c_sources(make()).operations.items()
        }
        for title, make in QUOTED.items()
    }


@needs_compiler
@pytest.mark.parametrize("dtype", ALLOWED)
def test_the_program_of_the_guide_does_what_it_says(tmp_path, dtype):
    page = PAGE.read_text("utf-8")
    (program,) = re.findall(r"```c\n(#include \"crab.h\".*?)```", page, re.DOTALL)
    (tmp_path / "main.c").write_text(program)
    c_sources(crab(), "crab", dtype).write(tmp_path)
    compiler(*WARNINGS, "-O2", "-o", "main", "main.c", "crab.c", "-lm", folder=tmp_path)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    (said,) = re.findall(r"\./main +# (.*)", page)
    assert done.stdout.strip() == said
