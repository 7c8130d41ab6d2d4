"""Tracing folds, shares and forgets, and never changes a value."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modurob.compiler.emit_llvm import emit, literal
from modurob.compiler.trace import CONST, INPUT, Graph, Traced, lifted
from oracles.small_kernels import compiled

NAMES = ("a", "b", "c")
# Halves and quarters: products and sums of a few of them are exact in floats, so that folding can
# be compared with fractions without any tolerance.
CONSTANTS = [0.0, 1.0, -1.0, 2.0, -0.5, 0.25, 3.0]
POWERS_OF_TWO = [1.0, -1.0, 2.0, -0.5, 0.25]  # whose reciprocals are exact, too
ROUNDING = 1e-13  # relative to the sum of all terms' sizes: some dozen operations, some fused


# -- random expressions ----------------------------------------------------------------------------


def grow(children):
    pairs = st.tuples(st.sampled_from("+-*"), children, children)
    halves = st.tuples(st.just("/c"), children, st.sampled_from(POWERS_OF_TWO))
    return pairs | st.tuples(st.just("neg"), children) | halves


leaves = st.sampled_from(NAMES) | st.sampled_from(CONSTANTS)
expressions = st.recursive(leaves, grow, max_leaves=25)
# denominators that do not fold to a constant: a folded one becomes a rounded reciprocal
denominators = st.sampled_from(["a", "b", ("neg", "c"), ("+", "a", "b"), ("*", "b", ("neg", "a"))])
rational = st.recursive(
    leaves, lambda c: grow(c) | st.tuples(st.just("/"), c, denominators), max_leaves=25
)
numbers = st.integers(-40, 40).map(lambda n: Fraction(n, 8))


def run(expression, values, number=lambda x: x):
    """An expression on anything that knows arithmetic."""
    if isinstance(expression, str):
        return values[expression]
    if isinstance(expression, float):
        return number(expression)
    op, *parts = expression
    if op == "/c":
        return run(parts[0], values, number) / number(parts[1])
    a, *rest = (run(part, values, number) for part in parts)
    match op:
        case "neg":
            return -a
        case "+":
            return a + rest[0]
        case "-":
            return a - rest[0]
        case "*":
            return a * rest[0]
        case "/":
            return a / rest[0]
    raise AssertionError(op)


def size(expression, values):
    """Bound on all intermediate sums: what rounding errors are relative to."""
    if isinstance(expression, str):
        return abs(values[expression])
    if isinstance(expression, float):
        return abs(expression)
    op, *parts = expression
    if op == "/c":
        return size(parts[0], values) / abs(parts[1])
    sizes = [size(part, values) for part in parts]
    return math.prod(sizes) if op == "*" else sum(sizes)


def traced(expression):
    graph = Graph()
    (output,) = lifted(graph, [run(expression, {name: graph.input(name) for name in NAMES})])
    return graph, output


def evaluate(graph, outputs, values, number=lambda x: x):
    """The nodes of a graph one after the other, in any arithmetic."""
    found = {}
    for index in graph.needed(outputs):
        op, a, b = graph.nodes[index]
        if op == CONST:
            found[index] = number(a)
        elif op == INPUT:
            found[index] = values[a]
        elif op == "neg":
            found[index] = -found[a]
        elif op in ("sqrt", "sin", "cos"):
            found[index] = getattr(math, op)(found[a])
        else:
            x, y = found[a], found[b]
            found[index] = (
                {"add": x + y, "sub": x - y, "mul": x * y}.get(op) if op != "div" else x / y
            )
    return [found[output.number] for output in outputs]


@given(rational, numbers, numbers, numbers)
def test_folding_never_changes_an_exact_value(expression, a, b, c):
    values = dict(zip(NAMES, (a, b, c), strict=True))
    try:
        expected = run(expression, values, Fraction)
        graph, output = traced(expression)
    except ZeroDivisionError:
        return  # a division by zero is none of the graph's business
    try:
        (found,) = evaluate(graph, [output], values, Fraction)
    except ZeroDivisionError:
        pytest.fail("the graph divides by zero where the expression does not")
    assert found == expected


@given(st.lists(expressions, min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_compiled_expressions_equal_python_s(outputs, seed):
    graph = Graph()
    symbols = {name: graph.input(name) for name in NAMES}
    results = lifted(graph, [run(expression, symbols) for expression in outputs])

    def write(writer, slots):
        return emit(writer, graph, results, dict(zip(NAMES, slots, strict=True)))

    states = np.random.default_rng(seed).standard_normal((9, 3))
    found = compiled(write, 3, len(outputs))(states)
    for state, row in zip(states, found, strict=True):
        values = dict(zip(NAMES, state.tolist(), strict=True))
        for expression, value in zip(outputs, row.tolist(), strict=True):
            expected = run(expression, values)
            assert abs(value - expected) <= ROUNDING * (size(expression, values) + 1e-300)


def test_roots_and_quotients_are_compiled_too():
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    results = [(a * a + b * b).sqrt(), a / (1 + b * b), 1 / (2 + a * a), -((a * a + 1).sqrt())]

    def write(writer, slots):
        return emit(writer, graph, results, {"a": slots[0], "b": slots[1]})

    states = np.random.default_rng(0).standard_normal((17, 2))
    x, y = states.T
    expected = [np.hypot(x, y), x / (1 + y * y), 1 / (2 + x * x), -np.sqrt(x * x + 1)]
    np.testing.assert_allclose(compiled(write, 2, 4)(states), np.transpose(expected), rtol=1e-15)


def test_extremes_and_whole_parts_are_compiled_too():
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    results = [a.maximum(b), a.minimum(b), a.maximum(0.5), b.minimum(-0.5), (a * 10).trunc()]

    def write(writer, slots):
        return emit(writer, graph, results, {"a": slots[0], "b": slots[1]})

    states = np.random.default_rng(0).standard_normal((17, 2))
    x, y = states.T
    expected = [
        np.maximum(x, y), np.minimum(x, y), np.maximum(x, 0.5), np.minimum(y, -0.5),
        np.trunc(x * 10),
    ]  # fmt: skip
    np.testing.assert_array_equal(compiled(write, 2, 5)(states), np.transpose(expected))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_constants_reach_the_machine_without_rounding(x):
    assert np.frombuffer(bytes.fromhex(literal(x)[2:]), dtype=">f8")[0] == x


@given(st.floats(-1e300, 1e300, allow_subnormal=False))
def test_compiled_constants_are_the_numbers_they_were(x):
    graph = Graph()
    output = graph.input("a") + x

    def write(writer, slots):
        return emit(writer, graph, [output], {"a": slots[0]})

    assert compiled(write, 1, 1)(np.zeros((1, 1)))[0, 0] == x


# -- the rules one by one --------------------------------------------------------------------------


@pytest.fixture
def graph():
    return Graph()


@pytest.fixture
def a(graph):
    return graph.input("a")


@pytest.fixture
def b(graph):
    return graph.input("b")


def same(x: Traced, y: Traced) -> bool:
    return x.number == y.number


def test_zeros_and_ones_vanish(a):
    assert same(a * 1, a)
    assert same(1 * a, a)
    assert same(a + 0, a)
    assert same(0 + a, a)
    assert same(a - 0, a)
    assert same(a / 1, a)
    for zero in (a * 0, 0 * a, a - a, 0 / a, 0 * (a + 1)):
        assert zero.value == 0


def test_constants_fold(graph):
    two, three = graph.constant(2), graph.constant(3)
    assert (two * three + 1).value == 7
    assert (two - three).value == -1
    assert (-two).value == -2
    assert (two / 4).value == 0.5
    assert graph.constant(9).sqrt().value == 3
    assert graph.constant(0).cos().value == 1
    assert graph.constant(0).sin().value == 0
    assert two.maximum(three).value == three.maximum(2).value == 3
    assert two.minimum(three).value == three.minimum(2).value == 2
    assert graph.constant(-2.7).trunc().value == -2
    assert (two / 0.25).value == 8


def test_signs_are_normalised(a, b):
    minus = -a
    assert same(-minus, a)
    assert same(-1 * a, -a)
    assert same(a + (-b), a - b)
    assert same((-a) + b, b - a)
    assert same(a - (-b), a + b)
    assert same((-a) - b, -(a + b))
    assert same(-(a - b), b - a)
    assert same((-a) * b, -(a * b))
    assert same(a * (-b), -(a * b))
    assert same((-a) * (-b), a * b)
    assert same(0 - a, -a)


def test_common_subexpressions_are_one_node(a, b):
    assert same(a * b, b * a)
    assert same(a + b, b + a)
    assert same((a + b) * a, a * (b + a))
    assert not same(a - b, b - a)
    assert not same(a / b, b / a)
    assert same(a.sin(), a.sin())
    assert same((a * b).sqrt(), (b * a).sqrt())


def test_what_no_output_needs_is_not_counted(graph, a, b):
    wanted = a * b + a
    unused = (a + b) * (a - b)
    assert graph.operations([wanted]) == {"mul": 1, "add": 1}
    assert unused.number not in graph.needed([wanted])
    assert graph.operations([wanted, wanted]) == {"mul": 1, "add": 1}
    assert graph.operations([a]) == {}
    assert graph.needed([]) == []


def test_dead_inputs_are_not_read(graph, a, b):
    output = a * 2 + b * 0

    def write(writer, slots):
        return emit(writer, graph, [output], {"a": slots[0]})  # b has no place at all

    assert compiled(write, 1, 1)(np.array([[3.0]]))[0, 0] == 6


def test_numpy_scalars_and_arrays_take_part(graph, a, b):
    assert same(np.float64(2) * a, a * 2)
    assert same(a * np.float64(2), a * 2)
    assert same(a + np.int64(1), a + 1)
    both = np.array([a, b], dtype=object) * 2.0
    assert same(both[1], b * 2)
    assert same((np.array([a, b], dtype=object) @ np.array([1.0, 0.0])), a)


def test_division_by_a_constant_zero_is_an_error(a):
    with pytest.raises(ZeroDivisionError):
        a / 0


def test_extremes_with_an_array_are_refused(a):
    for extreme in (a.maximum, a.minimum):
        with pytest.raises(TypeError, match="of a traced scalar and ndarray"):
            extreme(np.zeros(2))


def test_strings_do_not_take_part(a):
    for operation in (lambda: a + "1", lambda: a * "1", lambda: a - "1", lambda: a / "1"):
        with pytest.raises(TypeError):
            operation()
