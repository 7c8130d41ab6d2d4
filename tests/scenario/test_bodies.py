"""The built-in organisms by name."""

import pytest

import modurob as mr
from modurob.scenario.bodies import EXAMPLES, base_of, example
from oracles import complains


def test_examples_have_the_sizes_and_hinges_that_they_are_meant_for():
    sizes = {name: len(body.make()) for name, body in EXAMPLES.items()}
    assert sizes == {
        "crab": 6, "nine": 9, "snake": 6, "double_pendulum": 3, "crane": 3, "arm": 5,
        "superbot_tree": 20,
    }  # fmt: skip
    hinges = {name: body.hinges for name, body in EXAMPLES.items()}
    assert {name for name, own in hinges.items() if own == "dyad"} == {"crab", "nine", "snake"}
    assert set(hinges.values()) == {"dyad", "physical"}
    tree = EXAMPLES["superbot_tree"]
    assert tree.make() == tree.build(seed=0, branches=4, length=5) != tree.build(seed=1)
    assert tree.shown_body() == tree.build(branches=3, length=3, seed=299)
    assert EXAMPLES["crab"].shown_body() == mr.examples.crab()
    assert tree.make().kind("m3").name == "superbot_light"
    assert EXAMPLES["snake"].make().kind("m3").name == "backbone"


@pytest.mark.parametrize("value", [100_001, -100_001, 2.5, "many", float("nan"), None])
def test_sizes_are_whole_numbers_up_to_100_000(value):
    for name, option in (("snake", "--modules"), ("superbot_tree", "length")):
        setting = {"modules" if name == "snake" else "length": value}
        words = f"{option} must be a whole number up to 100,000, got {value}"
        with complains(mr.StateError, words):
            example(name).build(**setting)


def test_sizes_may_be_typed_and_100_000_is_one(monkeypatch):
    asked = []
    monkeypatch.setattr(mr.examples, "snake", lambda modules, kind: asked.append(modules))
    for modules in ("3", 4.0, "1e5", 100_000):
        example("snake").build(modules=modules)
    assert asked == [3, 4, 100_000, 100_000]
    assert {type(number) for number in asked} == {int}


def test_names_of_examples_and_bases_are_read():
    with complains(mr.UnknownNameError, f"no example '{'x' * 40}': examples are crab, nine"):
        example("x" * 50)
    assert [base_of(text) for text in ("fixed", "free", "px,rz")] == ["fixed", "free", ["px", "rz"]]
