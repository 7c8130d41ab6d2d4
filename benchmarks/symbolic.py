"""Closed forms: from an organism to formulas, and from formulas to numbers.

The documents compared numeric and symbolic generation of the equations of a pendulum of modules:
what has to be computed once, and what each evaluation costs. Here the same pendulum goes through
modurob's closed form, modurob's compiled model, and the two methods of `sympy.physics.mechanics`,
one after the other in one process. SymPy stops where a size would take longer than the patience
below. Before anything is timed, the mass matrices are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from sympy.physics import mechanics

from modurob import Organism, examples

SIZES, QUICK_SIZES = range(1, 13), (1, 2, 3)
PATIENCE, QUICK_PATIENCE = 15.0, 5.0  # [s]; the next size takes SymPy several times longer
SAME = 1e-10
EVALUATIONS = 200
MILESTONE = 6  # modules; over 480 s in MATLAB according to the thesis


def pendulum(modules: int) -> Organism:
    """Modules in a row that hang from a hinge."""
    return examples.snake(modules + 1)


def seconds(
    work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """How long it took, and what came out."""
    begin = clock()
    result = work()
    return clock() - begin, result


def closed_form(organism: Organism) -> tuple[Any, Any, Any]:
    """Our M, C and N, all symbols."""
    equations = organism.equations("physical", limit=np.inf)
    return equations.M, equations.C, equations.N


def readable(organism: Organism) -> str:
    """The same on paper."""
    return organism.equations("physical", limit=np.inf).latex()


def planar_bodies(n: int) -> tuple[list[Any], list[Any], list[Any], list[Any], Any]:
    """The pendulum for SymPy: relative angles about x, bodies with mass and inertia."""
    q = mechanics.dynamicsymbols(f"q1:{n + 1}")
    u = mechanics.dynamicsymbols(f"u1:{n + 1}")
    names = [sympy.symbols(f"{letter}1:{n + 1}") for letter in "lmJ"]
    world, origin = mechanics.ReferenceFrame("N"), mechanics.Point("O")
    origin.set_vel(world, 0)
    frame, point, bodies, loads = world, origin, [], []
    g = sympy.Symbol("g")
    for k in range(n):
        turned = frame.orientnew(f"A{k}", "Axis", [q[k], frame.x])
        turned.set_ang_vel(frame, u[k] * frame.x)
        center = point.locatenew(f"P{k}", names[0][k] * turned.y)
        center.v2pt_theory(point, world, turned)
        inertia = mechanics.inertia(turned, names[2][k], names[2][k], names[2][k])
        bodies.append(mechanics.RigidBody(f"B{k}", center, turned, names[1][k], (inertia, center)))
        loads.append((center, -names[1][k] * g * world.z))
        frame, point = turned, center
    return q, u, bodies, loads, world


def kane_method(n: int) -> Any:
    """Kane's equations: M and the forcing vector."""
    q, u, bodies, loads, world = planar_bodies(n)
    rates = [mechanics.dynamicsymbols(f"q{k + 1}").diff() - u[k] for k in range(n)]
    method = mechanics.KanesMethod(world, q_ind=q, u_ind=u, kd_eqs=rates)
    method.kanes_equations(bodies, loads)
    return method


def kane(n: int) -> Any:
    """M of Kane's equations."""
    return kane_method(n).mass_matrix


def lagrange(n: int) -> Any:
    """Lagrange's equations: M and the forcing vector."""
    q, u, bodies, loads, world = planar_bodies(n)
    rates = {speed: place.diff() for speed, place in zip(u, q, strict=True)}
    for body in bodies:
        body.masscenter.set_vel(world, body.masscenter.vel(world).subs(rates))
        body.frame.set_ang_vel(world, body.frame.ang_vel_in(world).subs(rates))
    lagrangian = mechanics.Lagrangian(world, *bodies)
    method = mechanics.LagrangesMethod(lagrangian, q, forcelist=loads, frame=world)
    method.form_lagranges_equations()
    return method.mass_matrix


PEERS = {"sympy Kane": kane, "sympy Lagrange": lagrange}


def parameters(n: int) -> dict[Any, float]:
    """Numbers of the pendulum's modules."""
    model = pendulum(n).model("physical")
    values = {sympy.Symbol("g"): -model.gravity[2]}
    for k in range(1, n + 1):
        values |= {sympy.Symbol(f"l{k}"): 0.1, sympy.Symbol(f"m{k}"): 1.0}
        values |= {sympy.Symbol(f"J{k}"): model.inertia[k, 0, 0]}
    return values


def agree(n: int, M: Any) -> None:
    """SymPy's mass matrix at numbers is the model's."""
    model, rng = pendulum(n).model("physical"), np.random.default_rng(n)
    q = rng.uniform(-1, 1, n)
    values = {mechanics.dynamicsymbols(f"q{k + 1}"): q[k] for k in range(n)} | parameters(n)
    found = np.array(sympy.Matrix(M).subs(values).evalf(), dtype=float)
    assert np.abs(found - model.mass_matrix(q)).max() < SAME


def evaluation(n: int) -> dict[str, float]:
    """Microseconds for M, C and N at one state: formulas, and the compiled model."""
    equations = pendulum(n).equations("physical", limit=np.inf)
    motion = [sympy.Symbol(f"{x}{k + 1}") for x in ("q", "dq") for k in range(n)]
    numbers = equations.substitute(equations.values)
    function = sympy.lambdify(motion, [numbers.M, numbers.C, numbers.N], "numpy", cse=True)
    model = equations.model
    state = np.random.default_rng(0).uniform(-1, 1, (2, n))
    flat = [*state[0], *state[1]]
    call = model.prepare("inverse_dynamics")
    a = np.zeros(n)
    work = {
        "formulas": lambda: function(*flat),
        "compiled inverse dynamics": lambda: call(state[0], state[1], a),
    }
    found = {}
    for name, run in work.items():
        best = min(
            seconds(lambda run=run: [run() for _ in range(EVALUATIONS)])[0] for _ in range(5)
        )
        found[name] = 1e6 * best / EVALUATIONS
    return found


def row(n: int, peers: dict[str, Any], patience: float) -> dict[str, Any]:
    """One size; peers that lost patience are taken out of `peers`."""
    organism = pendulum(n)
    found: dict[str, Any] = {}
    found["closed form"], _ = seconds(lambda: closed_form(organism))
    found["formulas on paper"], _ = seconds(lambda: readable(organism))
    found["compiled callable"], _ = seconds(
        lambda: organism.model("physical").compile().prepare("inverse_dynamics")
    )
    for name in list(peers):
        found[name], matrix = seconds(lambda name=name: peers[name](n))
        if n <= MILESTONE:
            agree(n, matrix)
        if found[name] > patience:
            del peers[name]
    found["evaluation"] = evaluation(n)
    return found


def run(quick: bool) -> dict[str, Any]:
    """Measure and print a table in seconds."""
    patience = QUICK_PATIENCE if quick else PATIENCE
    closed_form(pendulum(1))  # the first call imports and fills caches
    kane(1)
    peers, rows = dict(PEERS), {}
    columns = ["closed form", "formulas on paper", "compiled callable", *PEERS]
    print("modules " + "".join(f"{name:>20}" for name in columns) + "   [s]")
    for n in QUICK_SIZES if quick else SIZES:
        found = rows[n] = row(n, peers, patience)
        cells = (f"{found[name]:>20.3f}" if name in found else f"{'-':>20}" for name in columns)
        each = ", ".join(f"{name} {us:.1f} us" for name, us in found["evaluation"].items())
        print(f"{n:>7} " + "".join(cells) + f"   {each}", flush=True)
    last = max(n for n in rows if n <= MILESTONE)
    ratios = {
        name: rows[last][name] / rows[last]["closed form"] for name in PEERS if name in rows[last]
    }
    for name, ratio in ratios.items():
        print(f"{last} modules: closed form {ratio:.0f} times faster than {name}")
    return {"rows": rows, f"times_faster_at_{last}": ratios}
