"""Wrong dockings, matrices and drawings: one clear line each, and an organism left as it was."""

import numpy as np
import pytest

from modurob import (
    DatasheetError,
    DockingError,
    FileError,
    MatrixError,
    ModuleType,
    Organism,
    StateError,
    UnknownNameError,
    catalog,
    examples,
    load,
)
from oracles import complains, unchanged

SNAKE = examples.snake(3)  # m0, m1, m2: Backbones, side 4 on side 3
TREE = examples.superbot_tree(2, 2)
ARM = examples.arm("ba")
CRANE = examples.crane()
HOOK = SNAKE.undock("m2")[0].dock("m1", 2, "m2", 5).dock("m2", 4, "m3", 3)  # around a corner
NOWHERE = np.full((4, 4), np.nan)
MIRROR = np.diag([1.0, 1.0, -1.0, 1.0])
AFFINE = np.vstack([np.eye(4)[:3], [0, 0, 1, 1]])


@pytest.mark.parametrize("port", [1, 6])
@pytest.mark.parametrize("end", ["parent", "child"])
def test_cubes_have_no_docks_on_top_and_bottom(port, end):
    ports, module = ((port, 4), "m2") if end == "parent" else ((3, port), "m3")
    with unchanged(SNAKE), pytest.raises(UnknownNameError) as caught:
        SNAKE.dock("m2", ports[0], "m3", ports[1])
    assert str(caught.value) == f"no port {port} on '{module}' (backbone): docks are 2, 3, 4, 5"


WRONG_CHANGES = {
    "unknown kind": (
        SNAKE,
        lambda o: o.dock("m2", 3, "m3", 4, kind="backbon"),
        (UnknownNameError, "no module kind 'backbon'", "backbone", "scout"),
    ),
    "kind that is no kind": (
        SNAKE,
        lambda o: o.dock("m2", 3, "m3", 4, kind=3),
        (UnknownNameError, "no module kind", "3", "backbone"),
    ),
    "unknown module": (
        SNAKE,
        lambda o: o.dock("m7", 3, "m3", 4),
        (UnknownNameError, "no module 'm7'", "m0, m1, m2"),
    ),
    "undocking an unknown module": (
        SNAKE,
        lambda o: o.undock("m7"),
        (UnknownNameError, "no module 'm7'", "m0, m1, m2"),
    ),
    "module that is no name": (
        SNAKE,
        lambda o: o.dock(["m0"], 3, "m3", 4),
        (UnknownNameError, "no module ['m0']", "m0, m1, m2"),
    ),
    "port in use": (
        SNAKE,
        lambda o: o.dock("m1", 3, "m3", 4),
        (DockingError, "port 3 of 'm1' already holds 'm2'", "free docks are 2, 5"),
    ),
    "port in use towards the base": (
        SNAKE,
        lambda o: o.dock("m1", 4, "m3", 4),
        (DockingError, "port 4 of 'm1' already holds 'm0'", "free docks are 2, 5"),
    ),
    "port that is no label": (
        SNAKE,
        lambda o: o.dock("m2", [3], "m3", 4),
        (UnknownNameError, "no port [3] on 'm2' (backbone)", "2, 3, 4, 5"),
    ),
    "port of two lines": (
        SNAKE,
        lambda o: o.dock("m2", "a\nb", "m3", 4),
        (UnknownNameError, "no port", "2, 3, 4, 5"),
    ),
    "cell taken": (
        HOOK,
        lambda o: o.dock("m0", 2, "m4", 5),
        (DockingError, "'m4' at port 2 of 'm0'", "cell of 'm3'", "choose another port"),
    ),
    "closing a loop": (
        HOOK,
        lambda o: o.dock("m0", 2, "m3", 5),
        (DockingError, "'m3' is already part", "loop", "another name"),
    ),
    "undocking the base": (
        SNAKE,
        lambda o: o.undock("m0"),
        (DockingError, "'m0' is the base", "rebase", "m1, m2"),
    ),
    "turn that a cube does not allow": (
        SNAKE,
        lambda o: o.dock("m2", 3, "m3", 4, turn=90),
        (DockingError, "turn 90 is not allowed", "turns are 0 degrees"),
    ),
    "turn between the allowed ones": (
        TREE,
        lambda o: o.dock("m0", o.free_ports("m0")[0], "new", 4, turn=45),
        (DockingError, "turn 45 is not allowed", "0, 90, 180, 270"),
    ),
    "connectors of two families": (
        SNAKE,
        lambda o: o.dock("m2", 3, "m3", 4, kind="superbot"),
        (DockingError, "symbrion", "does not mate", "superbot", "none"),
    ),
    "connectors of the same gender": (
        ARM,
        lambda o: o.dock("m1", "out", "m2", "out"),
        (DockingError, "giusti-out", "does not mate", "that do: in"),
    ),
    "docking a virtual joint": (
        SNAKE,
        lambda o: o.dock("m2", 7, "v", 7, kind="virtual_px"),
        (DockingError, "'v' (virtual_px) is a virtual joint", "Start the organism with it"),
    ),
    "name of a digit": (
        SNAKE,
        lambda o: o.dock("m2", 3, "3", 4),
        (DockingError, "'3' is no name for a module", "use a letter"),
    ),
    "empty name": (SNAKE, lambda o: o.dock("m2", 3, "", 4), (DockingError, "'' is no name")),
    "endless name": (
        SNAKE,
        lambda o: o.dock("m2", 3, "m" * 65, 4),
        (DockingError, "is no name for a module", "63"),
    ),
    "name that is no text": (
        SNAKE,
        lambda o: o.dock("m2", 3, ["m3"], 4),
        (DockingError, "['m3'] is no name for a module"),
    ),
    "merging organisms that share names": (
        SNAKE,
        lambda o: o.merge("m2", 3, examples.snake(2), "m0", 4),
        (DockingError, "m0, m1", "rename"),
    ),
    "merging through a port in use": (
        SNAKE,
        lambda o: o.merge("m2", 3, examples.snake(2).rename(prefix="x"), "xm0", 3),
        (DockingError, "port 3 of 'xm0' already holds 'xm1'", "free docks are 2, 4, 5"),
    ),
    "merging through an unknown module": (
        SNAKE,
        lambda o: o.merge("m2", 3, examples.snake(2).rename(prefix="x"), "nobody", 3),
        (UnknownNameError, "no module 'nobody'", "xm0, xm1"),
    ),
    "rebasing onto an unknown module": (
        SNAKE,
        lambda o: o.rebase("m9"),
        (UnknownNameError, "no module 'm9'", "m0, m1, m2"),
    ),
    "rebasing away from a virtual joint": (
        CRANE,
        lambda o: o.rebase("m1"),
        (DockingError, "the base 'm0' is a virtual joint", "undock"),
    ),
    "renaming two modules alike": (
        SNAKE,
        lambda o: o.rename({"m0": "m1"}),
        (DockingError, "two modules would be called m1"),
    ),
    "renaming an unknown module": (
        SNAKE,
        lambda o: o.rename({"m9": "x"}),
        (UnknownNameError, "no module 'm9'"),
    ),
    "renaming to no name": (
        SNAKE,
        lambda o: o.rename({"m0": "a b"}),
        (DockingError, "'a b' is no name"),
    ),
    "parameters of an unknown module": (
        SNAKE,
        lambda o: o.with_parameters("m9", mass=1.0),
        (UnknownNameError, "no module 'm9'"),
    ),
    "parameters with a typo": (
        SNAKE,
        lambda o: o.with_parameters(masss=2.0),
        (DatasheetError, "no parameter masss", "mass, size, inertia"),
    ),
    "turn in quotes": (
        SNAKE,
        lambda o: o.dock("m2", 3, "m3", 4, turn="0"),
        (DockingError, "turn '0' is not allowed", "turns are 0 degrees"),
    ),
    "merging with no organism": (
        SNAKE,
        lambda o: o.merge("m2", 3, "backbone", "m0", 4),
        (DockingError, "merge takes an Organism, got str"),
    ),
    "saving under a name of TOML": (
        SNAKE,
        lambda o: o.save("snake.toml"),
        (FileError, "snake.toml: modurob writes JSON", ".json"),
    ),
    "saving to no path": (SNAKE, lambda o: o.save(3), (FileError, "given by its path, got 3")),
    "base nowhere": (
        SNAKE,
        lambda o: o.with_base_pose(NOWHERE),
        (StateError, "a pose is a finite 4x4 matrix", "nan"),
    ),
    "base pose of three rows": (
        SNAKE,
        lambda o: o.with_base_pose(np.eye(3)),
        (StateError, "4x4", "(3, 3)"),
    ),
    "base pose of words": (
        SNAKE,
        lambda o: o.with_base_pose("here"),
        (StateError, "a pose is a finite 4x4 matrix"),
    ),
    "base pose of ragged rows": (
        SNAKE,
        lambda o: o.with_base_pose([[1], [1, 2]]),
        (StateError, "a pose is a finite 4x4 matrix"),
    ),
    "base behind the mirror": (
        SNAKE,
        lambda o: o.with_base_pose(MIRROR),
        (StateError, "not orthonormal and right-handed"),
    ),
    "base pose that is not rigid": (
        SNAKE,
        lambda o: o.with_base_pose(AFFINE),
        (StateError, "[R p; 0 1]", "[0.0, 0.0, 1.0, 1.0] as its last row"),
    ),
    "drawing what is not planar": (
        TREE,
        lambda o: o.to_grid(),
        (MatrixError, "only a planar organism of cubes", "m0"),
    ),
    "drawing a virtual joint": (CRANE, lambda o: o.to_grid(), (MatrixError, "cubes", "m0")),
}


@pytest.mark.parametrize(
    ("organism", "change", "complaint"), WRONG_CHANGES.values(), ids=WRONG_CHANGES
)
def test_wrong_change_says_what_is_wrong_and_changes_nothing(organism, change, complaint):
    with unchanged(organism), complains(*complaint):
        change(organism)


def test_labels_and_turns_of_any_integer_type_become_plain_numbers(tmp_path):
    organism = Organism.start("superbot")
    organism = organism.dock("m0", np.int64(4), "m1", np.int8(1), turn=np.int64(90))
    plain = Organism.start("superbot").dock("m0", 4, "m1", 1, turn=90)
    assert organism == plain
    assert [type(value) for value in organism.dockings[0]] == [str, int, str, int, int, int]
    organism.save(tmp_path / "it.json")


# -- matrices --------------------------------------------------------------------------------------

WRONG_MATRICES = {
    "column with one entry": ([[3], [0]], "BB", "column 1 must touch exactly two modules", "1"),
    "column with three entries": (
        [[3, 0], [4, 3], [2, 4]],
        "BBB",
        "column 1 must touch exactly two modules, it touches 3",
    ),
    "empty column": ([[3, 0], [4, 0], [0, 0]], "BBB", "column 2", "it touches 0"),
    "too few columns": ([[3], [4], [0]], "BBB", "3 rows need 2", "got 1"),
    "too many columns": ([[3, 2], [4, 5]], "BB", "2 rows need 1", "got 2"),
    "loop apart from the base": (
        [[3, 0, 0, 0], [4, 0, 0, 0], [0, 2, 0, 5], [0, 5, 3, 0], [0, 0, 4, 2]],
        "BBBBB",
        "disconnected",
        "v2, v3, v4 cannot be reached from v0",
    ),
    "loop at the base": (
        [[2, 0, 4, 0], [5, 3, 0, 0], [0, 4, 5, 0], [0, 0, 0, 3], [0, 0, 0, 4]],
        "BBBBB",
        "AIM column 2 closes a loop",
        "v1 and v2 are already connected",
    ),
    "two joints between two modules": (
        [[2, 3, 0], [5, 4, 0], [0, 0, 3], [0, 0, 4]],
        "BBBB",
        "AIM column 2 closes a loop",
        "v0 and v1 are already connected",
    ),
    "fractions": ([[3.5], [4]], "BB", "whole side numbers"),
    "words": ([["three"], ["four"]], "BB", "whole side numbers"),
    "nothing": ([[None], [4]], "BB", "whole side numbers"),
    "not a number": ([[np.nan], [4]], "BB", "whole side numbers"),
    "infinite side": ([[np.inf], [4]], "BB", "whole side numbers"),
    "absurd side": ([[1e300], [4]], "BB", "whole side numbers"),
    "complex side": ([[3 + 1j], [4]], "BB", "whole side numbers"),
    "side that a cube has not": ([[6], [4]], "BB", "row v0, column 1", "no side 6", "2, 3, 4, 5"),
    "negative side": ([[3], [-4]], "BB", "row v1, column 1", "no side -4", "2, 3, 4, 5"),
    "one side for two joints": ([[3, 3], [4, 0], [0, 4]], "BBB", "AIM column 2", "already holds"),
    "two cubes in one cell": (
        [[3, 2, 0, 0], [4, 0, 2, 0], [0, 5, 0, 3], [0, 0, 5, 0], [0, 0, 0, 4]],
        "BBBBB",
        "AIM column 4",
        "would take the cell",
    ),
    "too few kinds": ([[3], [4]], "B", "2 rows", "as many kinds, got 1"),
    "a name for all kinds": ([[3], [4]], "backbone", "2 rows", "'backbone'", "letter by letter"),
    "a name as long as the matrix": (
        examples.snake(8).aim().matrix,
        "backbone",
        "'backbone' is read letter by letter",
        "list",
    ),
    "kinds that are no list": ([[3], [4]], 2, "as many kinds, in a list, got 2"),
    "no kinds": ([[3], [4]], None, "2 rows", "as many kinds, got none"),
    "one dimension": ([3, 4], "BB", "two dimensions", "(2,)"),
    "three dimensions": ([[[3]], [[4]]], "BB", "two dimensions", "(2, 1, 1)"),
    "no rows": (np.zeros((0, 0)), "", "two dimensions", "(0, 0)"),
    "ragged rows": ([[3], [4, 5]], "BB", "rows have different lengths"),
    "virtual joint in the middle": (
        [[3, 0], [4, 7], [0, 7]],
        ["backbone", "backbone", "virtual_px"],
        "AIM column 2",
        "virtual joint",
    ),
}


@pytest.mark.parametrize("case", WRONG_MATRICES.values(), ids=WRONG_MATRICES)
def test_wrong_matrix_says_what_is_wrong_with_it(case):
    matrix, kinds, *pieces = case
    with complains(MatrixError, *pieces):
        Organism.from_aim(matrix, kinds)


@pytest.mark.parametrize(
    ("kinds", "pieces"),
    [
        ("BX", ("no module kind 'X'", "B = backbone")),
        ("BV", ("'V' is the letter of several kinds", "virtual_px", "give the name")),
        (["backbone", "spine"], ("no module kind 'spine'", "scout")),
    ],
)
def test_unknown_kinds_of_a_matrix_are_named(kinds, pieces):
    with complains(UnknownNameError, *pieces):
        Organism.from_aim([[3], [4]], kinds)


# -- drawings --------------------------------------------------------------------------------------

WRONG_DRAWINGS = {
    "between the columns": ("B^-B^", "'B^'", "line 1, character 4", "every 4 characters"),
    "between the lines": ("B^\nB^", "line 2, character 1", "every 2 lines"),
    "two bases": ("B^*-B^*", "2 bases", "one is needed"),
    "not connected": ("B^*   \n\nB^", "falls apart", "B^ at (0, -1)"),
    "no docking sign": ("B^* B^", "falls apart", "B^ at (1, 0)"),
    "no arrow": ("B--B", "'BB'", "use a letter and one of ^ < v >"),
    "stray sign": ("B^--B^ ?", "'?'", "line 1"),
    "empty": ("   \n ", "no module", "B^"),
    "not a cube": ("U^", "'U' (superbot)", "cubes only"),
    "loop": ("B^--B^\n|   |\nB^--B^", "closes a loop at", "leave out one of the strokes"),
    "stroke to nowhere": ("B^--", "'-' at line 1, character 3", "docks nothing"),
    "stroke from nowhere": ("--B^", "'--' left of all modules", "docks nothing"),
    "stroke down to nowhere": ("B^--B^\n|", "'|' at line 2, character 1", "docks nothing"),
    "stroke across": ("B^\n-\nB^", "'-' at line 2, character 1", "docks nothing"),
    "stroke along": ("B^| B^", "'|' at line 1, character 3", "docks nothing"),
    "stroke between columns": ("B^--B^\n   |\nB^", "'|' at line 2, character 4", "docks nothing"),
    "nothing at all": (None, "a drawing is text", "None"),
}


@pytest.mark.parametrize("case", WRONG_DRAWINGS.values(), ids=WRONG_DRAWINGS)
def test_wrong_drawing_says_what_is_wrong_with_it(case):
    drawing, *pieces = case
    with complains(MatrixError, *pieces):
        Organism.from_grid(drawing)


def test_unknown_letter_of_a_drawing_is_named():
    with complains(UnknownNameError, "no module kind 'X'", "B = backbone"):
        Organism.from_grid("B^--X^")


def test_loops_in_matrices_and_drawings_are_not_about_names():
    for make in (
        lambda: Organism.from_aim([[2, 3, 0], [5, 4, 0], [0, 0, 3], [0, 0, 4]], "BBBB"),
        lambda: Organism.from_grid("B^--B^\n|   |\nB^--B^"),
    ):
        with pytest.raises(MatrixError) as caught:
            make()
        assert "name" not in str(caught.value)


@pytest.mark.parametrize("kind", ["backbone", "superbot", "giusti_a", "virtual_px"])
@pytest.mark.parametrize("name", ["3", "", "a b", "m" * 65, ["m0"], None])
def test_a_base_of_any_kind_needs_a_name(kind, name):
    with complains(DockingError, "is no name for a module", repr(name)):
        Organism.start(kind, name)


def test_what_is_no_name_is_in_no_organism():
    assert "m0" in SNAKE
    assert [] not in SNAKE
    assert None not in SNAKE
    assert ("m0",) not in SNAKE


# -- chance and examples ---------------------------------------------------------------------------


@pytest.mark.parametrize("rng", [None, 3, np.random.RandomState(0)], ids=["none", "seed", "old"])
def test_random_organisms_need_a_generator(rng):
    with complains(StateError, "numpy.random.Generator", type(rng).__name__):
        Organism.random("backbone", 3, rng)


@pytest.mark.parametrize("modules", [0, -2, 2.5, "three"])
def test_random_organisms_have_a_whole_number_of_modules(modules):
    with complains(StateError, "whole number of at least 1", str(modules)):
        Organism.random("backbone", modules, np.random.default_rng(0))


def test_random_organisms_need_a_kind():
    with complains(StateError, "at least one kind"):
        Organism.random([], 3, np.random.default_rng(0))


def test_random_organisms_leave_virtual_joints_out():
    for seed in range(10):
        organism = Organism.random(["virtual_px", "scout"], 4, np.random.default_rng(seed))
        assert {organism.kind(name).name for name in organism} == {"scout"}
    with complains(StateError, "at least one kind that docks", "'virtual_px'"):
        Organism.random("virtual_px", 1, np.random.default_rng(0))


@pytest.mark.parametrize("kinds", ["chen_link", ["chen_link", "chen_link_large"]])
def test_kinds_that_never_mate_are_given_up(kinds):
    with complains(DockingError, "no way to dock module 2 of 5", "chen_link"):
        Organism.random(kinds, 5, np.random.default_rng(0))


def test_ports_without_a_common_turn_are_never_docked_by_chance():
    data = catalog["backbone"].model_dump()
    data["ports"] = [{**port, "turns": [0 if port["label"] < 4 else 90]} for port in data["ports"]]
    kind = ModuleType(**data)
    organism = Organism.random(kind, 10, np.random.default_rng(0))
    assert {entry.turn for entry in organism.dockings} <= {0, 90}


@pytest.mark.parametrize(
    ("make", "error", "pieces"),
    [
        (lambda: examples.snake(0), StateError, ("a whole number, at least 1", "got 0")),
        (lambda: examples.superbot_tree(6, 1), StateError, ("1 to 5 branches", "6")),
        (lambda: examples.superbot_tree(2, 0), StateError, ("at least 1 module", "0")),
        (lambda: examples.superbot_tree(0, 1), StateError, ("1 to 5 branches", "0")),
        (lambda: examples.superbot_walker(5), StateError, ("1 to 4 legs", "5")),
        (lambda: examples.superbot_walker(0), StateError, ("1 to 4 legs", "0")),
        (lambda: examples.superbot_walker(4, 0), StateError, ("at least 1 module", "0")),
        (lambda: examples.superbot_walker(2.0), StateError, ("1 to 4 legs", "2.0")),
        (lambda: examples.superbot_walker(2, "1"), StateError, ("at least 1 module", "'1'")),
        (lambda: examples.superbot_walker(rng=3), StateError, ("numpy.random.Generator", "int")),
        (lambda: examples.arm("bax"), UnknownNameError, ("a, b and c", "'bax'")),
        (lambda: examples.arm(""), UnknownNameError, ("a, b and c", "''")),
        (lambda: examples.arm(3), UnknownNameError, ("a, b and c", "3")),
        (lambda: examples.snake("3"), StateError, ("a whole number, at least 1", "'3'")),
        (lambda: examples.snake(2.5), StateError, ("a whole number, at least 1", "2.5")),
        (lambda: examples.snake(True), StateError, ("a whole number, at least 1", "True")),
        (lambda: examples.superbot_tree(rng=3), StateError, ("numpy.random.Generator", "int")),
        (lambda: examples.superbot_tree("4"), StateError, ("1 to 5 branches", "'4'")),
        (lambda: examples.superbot_tree(2, 1.5), StateError, ("at least 1 module", "1.5")),
        (lambda: examples.double_pendulum(l1="a"), DatasheetError, ("l1 = 'a'", "positive")),
        (lambda: examples.double_pendulum(l2=0), DatasheetError, ("l2 = 0", "positive")),
        (lambda: examples.double_pendulum(m1="a"), DatasheetError, ("mass", "'a'")),
        (lambda: load(3), FileError, ("given by its path", "3")),
    ],
)
def test_examples_say_what_they_can_make(make, error, pieces):
    with complains(error, *pieces):
        make()


def test_as_many_kinds_as_rows():
    aim = [[3], [4]]
    for kinds in (["backbone"], ["backbone"] * 3, ("scout",)):
        with complains(MatrixError, "2 rows and needs as many kinds", f"got {len(kinds)}"):
            Organism.from_aim(aim, kinds=kinds)
    with complains(MatrixError, "in a list", "7"):
        Organism.from_aim(aim, kinds=7)
    with complains(MatrixError, "got none"):
        Organism.from_aim(aim, kinds=None)


def test_sides_of_a_matrix_are_whole_and_not_absurd():
    for wrong in (1.5, np.nan, np.inf, 1e12, "3"):
        with complains(MatrixError, "whole side numbers"):
            Organism.from_aim([[wrong], [4]], kinds="BB")
    for side in (10**6, -(10**6)):
        with complains(MatrixError, f"no side {side} on a backbone"):
            Organism.from_aim([[side], [4]], kinds="BB")
        with complains(MatrixError, "whole side numbers"):
            Organism.from_aim([[side + np.sign(side)], [4]], kinds="BB")


def test_a_drawing_of_modules_that_do_not_mate_says_so():
    data = catalog["backbone"].model_dump()
    for port in data["ports"]:
        if port["connector"] != "virtual-mount":
            port.update(connector="other", mates=("other",))
    other = ModuleType(**{**data, "name": "other"})
    with complains(MatrixError, "the drawing: ", "mate"):
        Organism.from_grid("B^--X^", {"X": other})


def test_a_drawing_of_a_module_without_a_dock_there_says_so():
    data = catalog["backbone"].model_dump()
    data["ports"] = [port for port in data["ports"] if port["label"] in (3, 4)]
    narrow = ModuleType(**{**data, "name": "narrow"})
    with complains(MatrixError, "a narrow has no dock towards (1, 0)"):
        Organism.from_grid("N^--N^", {"N": narrow})
    assert len(Organism.from_grid("N>--N>", {"N": narrow})) == 2


def test_equal_matrices_have_equal_hashes():
    one, two = (Organism.from_grid("B^--B^").aim() for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, Organism.from_grid("B^--S^").aim()}) == 2
