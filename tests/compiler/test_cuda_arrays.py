"""What is told about arrays on a GPU without one."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from modurob.compiler.cuda import _batch, _grid, on_gpu
from modurob.compiler.emit_population import (
    CHAINED,
    FIRST,
    FORK,
    LINK_WORD,
    MASK_BITS,
    PRISMATIC,
    KernelShape,
    PopulationText,
    _literal,
    fork_numbers,
    lifetimes,
    memory_numbers,
    shared_numbers,
)
from modurob.compiler.layout import vectors
from modurob.compiler.packing import size, unflat
from modurob.equations.contact import GROUNDED_DYNAMICS, Bristle, RollingBristle
from modurob.equations.quantities import QUANTITIES
from modurob.population.device import DepthFirst, link_words


@pytest.mark.parametrize(
    ("device", "there"),
    [(1, False), (2, True), (3, False), (10, False), (13, True), (14, False)],
)
def test_arrays_on_nvidia_gpus_are_known_by_their_device(device, there):
    """DLPack: 1 is the CPU, 2 CUDA, 3 pinned memory of the CPU, 10 ROCm, 13 managed, 14 oneAPI."""
    array = SimpleNamespace(__dlpack_device__=lambda: (device, 0))
    assert on_gpu(array) is there


def test_other_arrays_are_not_on_a_gpu():
    assert not on_gpu(np.zeros(3))
    assert not on_gpu([1.0, 2.0])


def test_every_state_has_a_thread():
    for count, blocks in ((1, 1), (128, 1), (129, 2), (1280, 10)):
        assert _grid(count) == (blocks,)


def test_batches_of_one_shape_or_several_broadcast():
    assert _batch([np.zeros((4, 5, 3)), np.zeros((4, 5, 2))]) == (4, 5)
    assert _batch([np.zeros((4, 1, 3)), np.zeros(2), np.zeros((5, 2))]) == (4, 5)


@pytest.mark.parametrize("free", [False, True])
def test_numbers_of_neighboring_threads_lie_in_different_banks(free):
    """There are 32 banks; a joint's record has four numbers beside the link's own."""
    quantity = QUANTITIES["forward_dynamics"]
    lives = lifetimes(quantity, free)
    links, forks = np.meshgrid(np.arange(1, 20), np.arange(4))
    found = shared_numbers(quantity, free, links, forks)
    used = links * (vectors(lives.places) + 4) + forks * fork_numbers(lives)
    assert set(np.unique(found % 32)) == {1}
    assert ((found >= used) & (found <= used + 32)).all()


def test_the_memory_of_points_is_read_in_packs_of_four():
    for kind, memory, numbers in (("level", Bristle, 4), ("level", RollingBristle, 8)):
        quantity = GROUNDED_DYNAMICS[kind, memory is RollingBristle]
        assert quantity.passes.Memory is memory
        assert memory_numbers(quantity) == numbers >= size(memory)


def test_numbers_too_small_for_a_type_stay_beside_zero():
    tiny = float(np.finfo("float32").tiny)
    assert _literal(1e-200, tiny) == f"(real){tiny!r}"
    assert _literal(-1e-200, tiny) == f"(real)-{tiny!r}"
    for kept in (0.0, -0.0, 0.1, -3.0, tiny, -tiny):
        assert _literal(kept, tiny) == f"(real){kept!r}"


def test_a_links_word_has_room_for_the_largest_numbers():
    """24 bits for the row, 8 for flags and for each of two slots, the rest for the parent."""
    links = 257
    places, every = np.arange(links)[None], np.ones((1, links), dtype=bool)
    chain = DepthFirst(places, places - 1, np.minimum(places, 255), every)
    words = link_words(chain, np.full((1, links), 2**24 - 1), every)
    assert words.dtype == np.uint64
    word = int(words[0, -1])
    parts = [word & 0xFFFFFF, word >> 24 & 255, word >> 32 & 255, word >> 40 & 255, word >> 48]
    assert parts == [2**24 - 1, 1 + 2 + 4 + 8, 255, 255, 255]
    assert list(LINK_WORD) == ["row", "flags", "slot", "above", "parent"]
    assert sorted([CHAINED, FORK, FIRST, PRISMATIC]) == [1, 2, 4, 8]
    assert MASK_BITS == 32  # of an unsigned int


LARGE = KernelShape(
    free_base=True, dtype="float32", links=5, forks=2, masks=0, prismatic=True, rotor=True,
    friction=True,
)  # fmt: skip
PLAIN = KernelShape(
    free_base=False, dtype="float64", links=4, forks=0, masks=0, prismatic=False, rotor=False,
    friction=False,
)  # fmt: skip
PASSES = {"base", "begin", "outward", "inward"}  # of every quantity


def written(quantity, shape):
    """Numbers of a CUDA text by their names, and the lines of each function in front of the walk.

    A function is known by the type of its result and its name.
    """
    text = PopulationText(quantity, shape)
    numbers = dict(line.split()[1:] for line in text.constants())
    matches = [re.match(r"INLINE (\w+ \w+)\([^)]*\) \{\n", part) for part in text.functions()]
    assert None not in matches
    lines = [match.string[match.end() :].splitlines()[:-1] for match in matches]
    assert text.source().startswith("#define STEPS")
    return numbers, {match[1]: each for match, each in zip(matches, lines, strict=True)}


def copied(functions, name):
    """Where numbers of a state are kept, or taken from: places by scalars."""
    keep = name.startswith("keep")
    line = r"  at\[(\d+)\] = state\[(\d+)\];" if keep else r"  state\[(\d+)\] = at\[(\d+)\];"
    pairs = [re.fullmatch(line, each).groups() for each in functions[f"void {name}"] if each]
    return {int(k): int(at) for k, at in (pair[::-1] if keep else pair for pair in pairs)}


@pytest.mark.parametrize(
    ("name", "shape", "more"),
    [
        ("inverse_dynamics", PLAIN, {"turn"}),
        ("inverse_dynamics", LARGE, {"turn", "friction"}),
        ("forward_dynamics", PLAIN, {"turn", "back"}),
        ("forward_dynamics", LARGE, {"turn", "back", "friction"}),
    ],
    ids=["inverse", "inverse, all", "forward", "forward, all"],
)
def test_the_text_of_a_population_has_the_functions_and_numbers_of_its_bodies(name, shape, more):
    """Friction is added to the forces of inverse, and taken from those of forward dynamics."""
    numbers, functions = written(QUANTITIES[name], shape)
    forward, large = name == "forward_dynamics", shape is LARGE
    steps = {"outward", "inward"} | ({"back"} if forward else set())
    kinds = {f"{step}_{kind}" for step in steps for kind in ((0, 1) if large else (0,))}
    forks = ("down", "up", "back") if forward else ("down", "up")
    copies = {"keep_outward", "take_inward", "keep_made", "take_after", "take_sums"}
    copies |= {f"{way}_{each}" for way in ("keep_fork", "take_fork", "hand") for each in forks}
    assert functions.keys() == {f"void {each}" for each in PASSES | more | kinds | copies}
    for step in steps:
        chosen = [line.strip() for line in functions[f"void {step}"]]
        given = "(row, self, parent, record, out);"
        only, both = f"{step}_0{given}", [f"if (slides) {step}_1{given}", f"else {step}_0{given}"]
        assert chosen == (both if large else [only])
    for way in forks:  # side by side, in one order
        kept = copied(functions, f"keep_fork_{way}")
        assert copied(functions, f"take_fork_{way}") == kept
        assert list(kept.values()) == list(range(len(kept)))
        assert functions[f"void hand_{way}"] == [f"  to[{k}] = from[{k}];" for k in kept]
    first = copied(functions, "keep_outward")
    made = copied(functions, "keep_made")
    kept = first | made
    for way in ("inward", "after"):
        assert copied(functions, f"take_{way}").items() <= kept.items()
    assert not first.keys() & made.keys()
    expected = {
        "STEPS": 0, "INPUTS": 3, "POINTS": 0, "FREE_BASE": int(large), "HAS_BACK": int(forward),
        "SINGLE": int(large), "FRICTION_IN": int(large and forward),
        "FRICTION_OUT": int(large and not forward), "LINKS": 5 if large else 4,
        "KEPT": 1 + max(kept.values()), "NQ_BASE": 7 if large else 0, "NV_BASE": 6 if large else 0,
        "FORK_SIZE": max(len(functions[f"void hand_{way}"]) for way in forks),
    }  # fmt: skip
    assert {each: int(numbers[each]) for each in expected} == expected
    assert int(numbers["FORKS"]) == 2 if large else int(numbers["FORKS"]) >= 1  # never no array


@pytest.mark.parametrize("masks", [0, 2])
def test_the_text_of_a_rollout_moves_bodies_and_visits_their_points(masks):
    quantity = GROUNDED_DYNAMICS["level", False]
    numbers, functions = written(quantity, LARGE._replace(masks=masks))
    assert {"void move", "real servo"} < functions.keys()
    at_points = {"void survey", "void settle", "real active"}
    assert at_points & functions.keys() == (at_points if masks else set())
    assert all(functions[each][-1].startswith("  return ") for each in functions if "real" in each)
    assert (numbers["STEPS"], numbers["POINTS"]) == ("1", str(int(masks > 0)))
    assert "void move" not in written(quantity, LARGE._replace(free_base=False))[1]
    if masks:
        text = PopulationText(quantity, LARGE._replace(masks=masks)).source()
        for each in ("void survey", "void settle", "real active", "void outward_0"):
            (arguments,) = re.findall(rf"^INLINE {each}\(([^)]*)\)", text, re.MULTILINE)
            constant = ["row"] + ["parent"] * ("outward" not in each)  # cells of a field
            assert re.findall(r"const real\* (\w+)", arguments) == constant
        passes = quantity.passes
        memory = unflat(passes.Memory, range(size(passes.Memory)))
        assert int(numbers["HELD"]) == memory.held
        assert int(numbers["CORNER"]) + int(numbers["GROUND"]) == size(passes.Point) + 1  # weight
        assert (numbers["MASKS"], numbers["MASK_BITS"], numbers["MEMORY"]) == ("2", "32", "4")
