"""Docking and undocking during a run: momentum, energy, and the motion that goes on."""

import itertools

import numpy as np
import pytest

from modurob import (
    Dock,
    DockingError,
    Organism,
    StateError,
    Undock,
    UnknownNameError,
    examples,
    simulate,
)
from modurob.sim import PerBody, SimulationError
from modurob.spatial import se3
from oracles import complains
from oracles.rigid_tree import PinocchioDynamics, RigidTree

CONSERVED = 1e-9  # [N s, N m s] through an event
ENERGY = 1e-9  # [J] rounding errors of energies of some joules
SEQUENCES = 100
KINDS = {"cubes": ("backbone", "scout"), "superbot": ("superbot",)}


def run(organism, events, *, base="free", hinges="physical", gravity=(0, 0, 0), end=1.0, seed=0,
        q=None, v=None, size=0.3, integrator="RK4", dt=5e-3, **options):  # fmt: skip
    """A tumbling organism with events."""
    model, rng = organism.model(hinges, base, gravity), np.random.default_rng(seed)
    joints = model.nv - len(model.joint_names)
    if q is None:
        q = model.neutral()
        q[model.nq - len(model.joint_names) :] = 0.4 * rng.standard_normal(model.nv - joints)
    v = size * rng.standard_normal(model.nv) if v is None else v
    return simulate(
        model, q, v, end, None, integrator, dt=dt, events=events, organism=organism, **options
    )


def whole(parts, at):
    """Momentum and energy of some parts at a time, from their recorded states."""
    momentum, energy = np.zeros(6), 0.0
    for part in parts:
        k = 0 if part.t[0] == at else -1
        momentum += part.model.momentum(part.q[k], part.v[k])
        energy += float(part.model.energy(part.q[k], part.v[k]))
    return momentum, energy


def changed(trajectory, time):
    """The parts that end and those that begin at a time."""
    last = max(part.t[-1] for part in trajectory.parts)
    before = [p for p in trajectory.parts if p.t[-1] == time and time < last]
    return before, [p for p in trajectory.parts if p.t[0] == time]


# -- momentum and energy ---------------------------------------------------------------------------


def random_events(organism, rng, count):
    """Events that can happen, each in turn, on whatever bodies there are by then."""
    bodies, events, new = [organism], [], itertools.count()
    for k in range(count):
        time = round(0.05 * (k + 1), 3)
        body = bodies[int(rng.integers(len(bodies)))]
        chosen = rng.integers(3)
        if chosen and len(body) > 1:
            module = str(rng.choice([m for m in body.modules if m != body.base]))
            entry = body.docking(module)
            events.append(Undock(time, module))
            if chosen == 2:  # and back again, before they have drifted apart
                events.append(
                    Dock(time + 0.01, entry.parent, entry.port, module, entry.child_port,
                         turn=entry.turn, reach=(0.05, 0.5))
                )  # fmt: skip
            else:
                bodies = [b for b in bodies if b is not body] + list(body.undock(module))
        else:
            name = f"n{next(new)}"
            bigger = docked_at_random(body, name, rng)
            entry = bigger.docking(name)
            events.append(
                Dock(time, entry.parent, entry.port, name, entry.child_port, turn=entry.turn,
                     kind=bigger.kind(name), approach=0.5 * rng.standard_normal(6))
            )  # fmt: skip
            bodies = [b for b in bodies if b is not body] + [bigger]
    return events


def docked_at_random(body, name, rng):
    kind = body.kind(body.base)
    for _ in range(200):
        parent = str(rng.choice(body.modules))
        port = body.free_ports(parent)[int(rng.integers(len(body.free_ports(parent))))]
        child_port = kind.docks[int(rng.integers(len(kind.docks)))]
        turn = int(rng.choice(kind.port(child_port).turns))
        try:
            return body.dock(parent, port, name, child_port, kind=kind, turn=turn)
        except DockingError:
            continue
    raise AssertionError("no room for a module")


def assert_conserved(found):
    for entry in found.audit:
        before, after = changed(found, entry.time)
        was, energy_was = whole(before, entry.time)
        now, energy_now = whole(after, entry.time)
        if entry.what.startswith("dock n"):  # new in the run: its own momentum comes with it
            was, energy_was = entry.momentum_before, entry.energy_before
        scale = 1 + np.abs(was).max()
        assert np.abs(now - was).max() < CONSERVED * scale
        assert np.abs(entry.momentum_before - was).max() < CONSERVED * scale
        assert np.abs(entry.momentum_after - now).max() < CONSERVED * scale
        assert abs(entry.energy_before - energy_was) < ENERGY * scale
        assert abs(entry.energy_after - energy_now) < ENERGY * scale
        assert entry.energy_lost > -ENERGY
        assert energy_now == pytest.approx(
            energy_was + entry.latch_work - entry.energy_lost, abs=ENERGY * scale
        )
        if entry.what.startswith("undock"):
            assert abs(energy_now - energy_was) < ENERGY * scale
        elif max(entry.gap) < 1e-9:
            assert energy_now < energy_was + ENERGY * scale


@pytest.mark.parametrize("kinds", KINDS)
def test_momentum_is_conserved_through_random_events_and_docking_takes_energy(kinds):
    for seed in range(SEQUENCES // 2):
        rng = np.random.default_rng(seed)
        organism = Organism.random(KINDS[kinds], int(rng.integers(2, 5)), rng)
        events = random_events(organism, rng, int(rng.integers(2, 5)))
        gravity = (0.0, 0.0, -9.81) if seed % 2 else (0.0, 0.0, 0.0)
        found = run(organism, events, gravity=gravity, end=0.35, seed=seed, dt=0.05, record=0.35)
        assert len(found.audit) == len(events)
        assert_conserved(found)


def test_momentum_is_conserved_in_the_dyad_model():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        organism = Organism.random("backbone", 5, rng)
        events = random_events(organism, rng, 3)
        found = run(organism, events, hinges="dyad", end=0.35, seed=seed, dt=0.05, record=0.35)
        assert_conserved(found)


def test_momenta_in_the_audit_are_pinocchios():
    organism = examples.crab()
    events = [Undock(0.2, "m5"), Undock(0.4, "m1"), Dock(0.401, "m0", 3, "m1", 4)]
    found = run(organism, events)
    for entry in found.audit:
        before, after = changed(found, entry.time)
        sides = (before, -1, entry.momentum_before), (after, 0, entry.momentum_after)
        for parts, k, expected in sides:
            total = np.zeros(6)
            for part in parts:
                tree = RigidTree(part.organism, "physical", "free", list(part.model.locked))
                total += PinocchioDynamics(tree, part.model).momentum(part.q[k], part.v[k])
            np.testing.assert_allclose(total, expected, atol=1e-10)


def test_two_cubes_that_meet_head_on_share_their_speed():
    cube = Organism.start("backbone")
    speed, mass = 0.6, 1.0
    approach = (0, 0, speed, 0, 0, 0)
    found = run(cube, [Dock(0.5, "m0", 2, "n", 5, approach=approach)], v=np.zeros(6))
    (entry,) = found.audit
    assert entry.energy_lost == pytest.approx(mass * speed**2 / 4)
    pair = found.parts[-1]
    np.testing.assert_allclose(pair.v[0, :3], [-speed / 2, 0, 0], atol=1e-12)
    np.testing.assert_allclose(pair.v[0, 3:], 0, atol=1e-12)


def test_the_impact_is_that_of_the_impulse_between_the_ports():
    """M v+ = M v- + J^T impulse with J v+ = 0, on the two bodies side by side."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        host, guest = (Organism.random("superbot", 3, rng) for _ in range(2))
        guest = guest.rename(prefix="g")
        port, guest_port = host.free_ports("m2")[0], guest.free_ports("gm2")[0]
        model = guest.model("physical", base="free")
        q_g, v_g = 0.5 * rng.standard_normal((2, len(model.joint_names)))
        event = Dock(
            0.1, "m2", port, "gm2", guest_port, organism=guest, q=q_g, v=v_g,
            approach=rng.standard_normal(6),
        )  # fmt: skip
        found = run(host, [event], end=0.2, seed=seed, size=1.0)
        before, after = found.parts
        # the guest before, rebuilt from its pose after
        twists = impulse_solution(before, after, guest, model, q_g, v_g, event, port)
        J = after.model.jacobian(after.q[0], "gm2", "world")
        np.testing.assert_allclose(J @ after.v[0], twists[1], atol=1e-9)
        J = after.model.jacobian(after.q[0], "m0", "world")
        np.testing.assert_allclose(J @ after.v[0], twists[0], atol=1e-9)


def impulse_solution(before, after, guest, model, q_g, v_g, event, port):
    """World twists of m0 and of gm2 after the impact, by Lagrange multipliers."""
    T = after.model.forward_kinematics(after.q[0])
    T_wg = T[after.model.modules["gm2"]]
    at = model.forward_kinematics(np.concatenate([model.neutral()[:7], q_g]))
    T_gb = se3.inverse(at[model.modules["gm2"]]) @ at[model.modules[guest.base]]
    there = guest.with_base_pose(rounded(T_wg @ T_gb))
    placed = there.model("physical", base="free", gravity=(0, 0, 0))
    q_guest = np.concatenate([placed.neutral()[:7], q_g])
    J_h = before.model.jacobian(before.q[-1], port_body("m2", before.organism, port), "world")
    J_g = placed.jacobian(q_guest, port_body("gm2", guest, event.child_port), "world")
    kind = guest.kind("gm2")
    T_port = T[after.model.body_index(f"gm2.{kind.port(event.child_port).body}")] @ (
        kind.port(event.child_port).pose
    )
    V = J_h @ before.v[-1] + se3.Ad(T_port) @ np.asarray(event.approach)
    J_frame = placed.jacobian(q_guest, "gm2", "world")  # approach is said of the module's frame
    v_guest = np.concatenate([np.zeros(6), v_g])
    v_guest[:6] = np.linalg.solve(J_frame[:, :6], V - J_frame[:, 6:] @ v_g)
    M = np.zeros((before.model.nv + placed.nv,) * 2)
    n = before.model.nv
    M[:n, :n] = before.model.mass_matrix(before.q[-1])
    M[n:, n:] = placed.mass_matrix(q_guest)
    J = np.concatenate([J_h, -J_g], axis=1)
    v = np.concatenate([before.v[-1], v_guest])
    Y = np.linalg.solve(M, J.T)
    v = v - Y @ np.linalg.solve(J @ Y, J @ v)
    m0 = before.model.jacobian(before.q[-1], "m0", "world") @ v[:n]
    return m0, J_frame @ v[n:]


def port_body(module, organism, port):
    return f"{module}.{organism.kind(module).port(port).body}"


def rounded(T):
    U, _, V = np.linalg.svd(T[:3, :3])
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = U @ V, T[:3, 3]
    return result


# -- the motion goes on ----------------------------------------------------------------------------


def test_after_undocking_both_parts_fly_on():
    found = run(examples.crab(), [Undock(0.3, "m4")], gravity=(0, 0, -2.0))
    first, rest, loose = found.parts
    assert (rest.name, loose.name) == ("m0", "m4")
    assert len(rest.organism) + len(loose.organism) == len(first.organism) == 6
    for part in (rest, loose):
        assert part.model.free_base
        assert (part.t[0], part.t[-1]) == (0.3, 1.0)
        center, t = part.model.center_of_mass(part.q), part.t - 0.3
        flight = part.momentum[0, :3] / part.model.mass.sum()
        expected = center[0] + t[:, None] * flight + t[:, None] ** 2 / 2 * [0, 0, -2.0]
        np.testing.assert_allclose(center, expected, atol=1e-9)
    # bodies are where they were
    for part in (rest, loose):
        for body in part.model.body_names:
            if body in first.model.body_names and body.endswith(".A"):
                old = first.model.forward_kinematics(first.q[-1])[first.model.body_index(body)]
                new = part.model.forward_kinematics(part.q[0])[part.model.body_index(body)]
                np.testing.assert_allclose(new, old, atol=1e-12)


@pytest.mark.parametrize("hinges", ["physical", "dyad"])
@pytest.mark.parametrize("base", ["free", "fixed"])
def test_undocking_and_docking_at_once_changes_nothing(hinges, base):
    organism = examples.snake(4)
    events = [Undock(0.3, "m2"), Dock(0.3, "m1", 3, "m2", 4)]
    calm = run(organism, [], hinges=hinges, base=base)
    found = run(organism, events, hinges=hinges, base=base)
    assert len(found.parts) == 2
    np.testing.assert_allclose(found.parts[-1].q[-1], calm.q[-1], atol=1e-9)
    np.testing.assert_allclose(found.parts[-1].v[-1], calm.v[-1], atol=1e-9)
    assert abs(found.audit[1].energy_lost) < ENERGY


def test_a_hinge_remembers_its_angle_while_it_carries_nothing():
    organism = examples.snake(2)
    q = np.concatenate([organism.model("physical", base="free").neutral()[:7], [0.5]])
    v = np.zeros(7)
    events = [Undock(0.3, "m1"), Dock(0.6, "m0", 3, "m1", 4)]
    found = run(organism, events, q=q, v=v)
    assert [part.model.nv for part in found.parts] == [7, 6, 6, 7]
    assert found.parts[-1].q[0, -1] == pytest.approx(0.5, abs=1e-9)
    assert max(found.audit[1].gap) < 1e-9


def test_the_latch_closes_a_gap_and_the_center_of_mass_stays():
    organism = examples.snake(3)
    events = [Undock(0.3, "m2"), Dock(0.32, "m1", 3, "m2", 4, reach=(0.05, 0.5))]
    found = run(organism, events, size=1.0)
    entry = found.audit[1]
    assert 1e-6 < entry.gap[0] < 0.05
    before, after = changed(found, 0.32)
    mass = [part.model.mass.sum() for part in before]
    center = np.average([p.model.center_of_mass(p.q[-1]) for p in before], axis=0, weights=mass)
    (pair,) = after
    np.testing.assert_allclose(pair.model.center_of_mass(pair.q[0]), center, atol=1e-12)
    np.testing.assert_allclose(entry.momentum_after, entry.momentum_before, atol=CONSERVED)
    assert entry.energy_lost > 0


def test_a_docking_out_of_reach_stops_the_run():
    events = [Undock(0.2, "m2"), Dock(0.8, "m1", 3, "m2", 4)]
    with pytest.raises(SimulationError, match="misses: the ports are") as caught:
        run(examples.snake(3), events, size=2.0)
    assert caught.value.time == 0.8
    assert len(caught.value.trajectory.parts) == 3
    assert len(caught.value.trajectory.audit) == 1


def test_the_ground_takes_what_a_fixed_base_is_given():
    organism = examples.snake(2)
    event = Dock(0.5, "m1", 3, "n", 4, approach=(0, 0, 1.0, 0, 0, 0))
    found = run(organism, [event], base="fixed", v=np.zeros(1))
    (entry,) = found.audit
    assert entry.grounded
    assert "taken by the ground" in str(entry)
    assert entry.energy_lost > 0.1
    assert np.abs(entry.momentum_after - entry.momentum_before).max() > 0.1
    assert not found.parts[-1].model.free_base


def test_a_loose_part_can_dock_to_what_stands_on_the_ground_named_first_or_last():
    events = [Undock(0.2, "m2"), Dock(0.21, "m2", 4, "m1", 3, reach=(0.05, 0.5))]
    found = run(examples.snake(3), events, base="fixed", gravity=(0, 0, -1.0), size=0.1)
    assert found.parts[-1].organism.base == "m0"
    assert len(found.parts[-1].organism) == 3
    assert not found.parts[-1].model.free_base


def test_virtual_joints_stay_with_the_base():
    organism = examples.snake(3)
    found = run(organism, [Undock(0.3, "m2")], base=("px", "py", "rz"), v=np.full(5, 0.2))
    assert found.parts[1].model.joint_names[:3] == ("world.px", "world.py", "world.rz")
    assert found.parts[2].model.free_base


def test_a_whole_organism_docks_with_its_joints():
    guest = examples.snake(3).rename(prefix="g")
    event = Dock(0.3, "m1", 3, "gm1", 2, organism=guest, q=[0.3, -0.2], v=[1.0, 0.5])
    found = run(examples.snake(2), [event])
    joined = found.parts[-1]
    assert set(joined.organism.modules) == {"m0", "m1", "gm0", "gm1", "gm2"}
    at = dict(zip(joined.model.joint_names, joined.q[0, 7:], strict=True))
    assert at["gm0.hinge"] == pytest.approx(0.3)
    assert at["gm1.hinge"] == pytest.approx(-0.2)


def test_events_happen_in_the_order_of_their_times():
    events = [Undock(0.6, "m1"), Undock(0.2, "m3"), Undock(0.4, "m2")]
    found = run(examples.snake(4), events)
    assert [entry.time for entry in found.audit] == [0.2, 0.4, 0.6]
    assert [part.name for part in found.parts] == ["m0", "m0", "m3", "m0", "m2", "m0", "m1"]


def test_the_audit_reads_like_a_line_of_a_log():
    found = run(examples.crab(), [Undock(0.25, "m5")])
    line = str(found.audit[0])
    assert line.startswith("0.2500 s  undock m5: momentum (")
    assert len(line.splitlines()) == 1
    assert "energy lost 0 J" in line


@pytest.mark.parametrize("integrator", ["DOP853", "Variational", "LSODA"])
def test_events_work_with_every_kind_of_integrator(integrator):
    events = [Undock(0.1, "m2"), Dock(0.15, "m1", 2, "n", 5)]
    found = run(examples.snake(3), events, integrator=integrator, end=0.3)
    assert_conserved(found)
    assert [part.t[-1] for part in found.parts] == [0.1, 0.15, 0.3, 0.3]


# -- controllers and wrenches ----------------------------------------------------------------------


class Damper:
    """Damps the joints of whatever body it is given."""

    def __init__(self, model):
        self.model = model

    def command(self, t, q, v, reference):
        tau = -0.02 * v
        if self.model.free_base:
            tau[:6] = 0
        return tau

    def rebuilt(self, model, organism):
        return Damper(model)


def test_each_body_gets_its_own_controller():
    organism = examples.snake(4)
    model = organism.model("physical", base="free", gravity=(0, 0, 0))
    v = np.full(model.nv, 0.3)
    events = [Undock(0.3, "m2")]
    found = simulate(
        model, None, v, 1.0, Damper(model), "RK4", dt=0.01, organism=organism, events=events
    )
    for part in found.parts:
        np.testing.assert_allclose(part.tau[:, 6:], -0.02 * part.v[:, 6:], atol=1e-12)
        assert np.all(np.diff(part.kinetic_energy) < 1e-12)
    made = []

    def make(model, organism):
        made.append(organism.base)
        return Damper(model)

    simulate(model, None, v, 1.0, PerBody(make), "RK4", dt=0.01, organism=organism, events=events)
    assert made == ["m0", "m0", "m2"]


def test_wrenches_follow_the_body_they_push():
    organism = examples.snake(3)
    push = {"m2.A": lambda t: [0, 0, 0.1, 0, 0, 0]}
    found = run(organism, [Undock(0.5, "m2")], v=np.zeros(8), external=push)
    _, rest, loose = found.parts
    np.testing.assert_allclose(rest.momentum, rest.momentum[:1].repeat(len(rest.t), 0), atol=1e-10)
    gained = loose.momentum[-1, :3] - loose.momentum[0, :3]
    assert np.linalg.norm(gained) > 0.04


def test_a_wrench_may_wait_for_a_module_that_is_not_there_yet():
    event = Dock(0.5, "m1", 3, "n", 4)
    found = run(examples.snake(2), [event], external={"n": [0.1, 0, 0, 0, 0, 0]}, v=np.zeros(7))
    assert np.abs(found.parts[0].momentum).max() < 1e-10
    assert np.abs(found.parts[1].momentum[-1]).max() > 0.01


# -- what cannot happen ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "kind", "pieces"),
    [
        ([Undock(0.5, "m9")], UnknownNameError, ["no module 'm9'", "m0, m1, m2"]),
        ([Undock(0.5, "m0")], DockingError, ["base", "cannot be undocked"]),
        ([Undock(0.2, "m2"), Undock(0.5, "m2")], DockingError, ["'m2' is the base"]),
        ([Dock(0.5, "m0", 3, "n", 4)], DockingError, ["port 3", "already holds 'm1'"]),
        ([Dock(0.5, "m0", 9, "n", 4)], UnknownNameError, ["no port 9"]),
        ([Dock(0.5, "m2", 3, "m0", 2)], DockingError, ["closes a loop"]),
        ([Dock(0.5, "x", 3, "n", 2)], UnknownNameError, ["no module 'x'"]),
        ([Dock(0.5, "m2", 3, "n", 4, kind="robot")], UnknownNameError, ["robot"]),
        (
            [Dock(0.5, "m2", 3, "n", 4, organism=examples.snake(2).rename(prefix="n"))],
            UnknownNameError,
            ["no module 'n' in the new organism"],
        ),
        (
            [Undock(0.2, "m2"), Dock(0.5, "m1", 3, "m2", 4, kind="backbone")],
            DockingError,
            ["'m2' is part of the run already"],
        ),
    ],
)
def test_events_that_cannot_happen_are_told_before_the_run(events, kind, pieces):
    with complains(kind, *pieces):
        run(examples.snake(3), events, progress=lambda _: pytest.fail("it was run"))


def test_the_dyad_model_docks_bodies_by_their_base():
    guest = examples.snake(3).rename(prefix="g")
    event = Dock(0.5, "m2", 3, "gm1", 2, organism=guest)
    with complains(DockingError, "'gm0'", "hinges='physical'"):
        run(examples.snake(3), [event], hinges="dyad")


@pytest.mark.parametrize("bad", [{"q": [0.1]}, {"v": "fast"}, {"q": [0.1, np.nan, 0.0]}])
def test_joints_of_a_new_organism_are_counted(bad):
    guest = examples.snake(3).rename(prefix="g")
    event = Dock(0.5, "m1", 3, "gm0", 4, organism=guest, **bad)
    with pytest.raises(StateError, match="of the new organism is 2 finite numbers"):
        run(examples.snake(2), [event])


class Remembering:
    """A law that counts how often it was rebuilt."""

    def __init__(self, model, generation=0):
        self.model, self.generation = model, generation

    def command(self, t, q, v, reference):
        return np.zeros(self.model.nv)

    def record(self):
        return {"generation": float(self.generation)}

    def rebuilt(self, model, organism):
        return Remembering(model, self.generation + 1)


def test_a_law_grows_out_of_the_one_before_and_not_out_of_the_first():
    organism = examples.snake(5)
    model = organism.model("physical")
    events = [Undock(0.1, "m4"), Undock(0.2, "m3")]
    found = simulate(
        model, None, None, 0.3, Remembering(model), "RK4", dt=0.01, events=events, organism=organism
    )
    bases = [part for part in found.parts if part.name == "m0"]
    assert [part.channels["generation"][-1] for part in bases] == [0, 1, 2]
