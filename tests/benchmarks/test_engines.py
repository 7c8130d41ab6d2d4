"""Tables of comparisons show the losses, whichever engines took part."""

import pytest
from benchmarks.bodies import grid_tree
from benchmarks.page import losses, raced
from benchmarks.peers import breadth_first, depth_first

MEASURED = {
    "grid 6": {
        "inverse_dynamics": {"microseconds": {"dyads": 0.2, "pinocchio": 1.0}},
        "inverse_dynamics, batch of 16": {
            "microseconds": {"dyads": 0.4, "fused": 0.2, "pinocchio": 1.0, "casadi": 0.1}
        },
        "single inverse_dynamics": {
            "microseconds": {"plain": 1.0, "pinocchio": 1.4, "casadi by ctypes": 0.5}
        },
        "missing": {"dynibo": "not installed"},
    },
    "grid 1000": {"inverse_dynamics": {"microseconds": {"dyads": 9.0}}},
}


def test_losses_name_the_faster_engine_and_leave_out_what_is_won():
    body = "inverse dynamics, tree of cubes, 6 joints"
    assert losses(MEASURED) == [
        (f"{body}, batch of 16", "CasADi, 0.100 µs", "0.200 µs", "**0.50×**"),
        (f"{body}, one call", "CasADi, 0.500 µs", "1.00 µs", "**0.50×**"),
    ]


def test_a_cell_has_the_ratios_to_pinocchio_and_to_the_fastest_other():
    us = MEASURED["grid 6"]["inverse_dynamics, batch of 16"]["microseconds"]
    assert raced(us, "fused") == "0.200 µs (5.00×, **0.50×**)"
    assert raced(us, "prepared") == "–"


@pytest.mark.parametrize("order", [breadth_first, depth_first])
def test_orders_of_joints_hold_each_joint_once_after_its_parent(order):
    model = grid_tree(20).model()
    found = order(model)
    assert sorted(found) == list(range(20))
    place = {k + 1: i for i, k in enumerate(found)} | {0: -1}
    assert all(place[int(model.parent[k])] < place[k + 1] for k in found)
