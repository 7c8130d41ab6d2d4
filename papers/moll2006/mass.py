"""Section III: mass properties by messages; how many, how soon, and the formula for the inertia."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from modurob.distributed import MassNetwork, MassProperties
from modurob.distributed.mass.properties import unpacked
from papers import figures
from papers.claims import Claims
from papers.moll2006.setting import Tree, shades, trees

WRONG = 1e-3  # an error that is none of rounding
AFTER = 3  # rounds that are looked at after everybody should know
SMALLEST = 1e-17  # below which an error is drawn as this


class Told(NamedTuple):
    """A network at rest, round by round.

    Attributes:
        error: (rounds, modules) of mass, center and inertia of the whole, the largest of them, in
            units of the true ones.
        news, others, size: (rounds,) messages with news and without, and their bytes.
        network: After the last round.
    """

    error: np.ndarray
    news: np.ndarray
    others: np.ndarray
    size: np.ndarray
    network: MassNetwork


def reproduce(claims: Claims) -> None:
    """Rounds, messages, inertia."""
    claims.working_on("mass properties")
    runs = [_told(tree) for tree in trees()]
    d = [tree.diameter for tree in trees()]
    pairs = list(zip(runs, d, strict=True))
    claims.check("exact", max(run.error[rounds - 1].max() for run, rounds in pairs))
    claims.check("needed", sum(run.error[rounds - 2].max() > WRONG for run, rounds in pairs))
    claims.check("silent", int(sum(run.news[rounds:].sum() for run, rounds in pairs)))
    expected = [_predicted(tree) for tree in trees()]
    news, size = [int(run.news.sum()) for run in runs], [int(run.size.sum()) for run in runs]
    others = [int(run.others.sum()) for run in runs]
    claims.check(
        "messages", [a - b for a, b in zip(news, expected, strict=True)],
        f"news {news}, confirmations {others}, bytes {size}",
    )  # fmt: skip
    claims.check(
        "beyond", max(_beyond(tree, run.network) for tree, run in zip(trees(), runs, strict=True))
    )
    _draw_rounds(claims, runs, d)
    _inertias(claims, runs)


def _told(tree: Tree) -> Told:
    """A tree that stands still in some posture, from the moment it is switched on."""
    network, q = MassNetwork(tree.organism), tree.configuration()
    network.measure(q, model=tree.model)
    truth, T = whole(tree, q), tree.model.forward_kinematics(q)
    errors, counts = [], [(0, 0, 0)]
    for _ in range(tree.diameter + AFTER):
        network.round()
        errors.append([
            _error(network.total(name).moved(T[tree.model.modules[name]]), truth)
            for name in tree.organism
        ])  # fmt: skip
        counts.append((network.news, network.confirmations, network.bytes))
    news, others, size = np.diff(counts, axis=0).T
    return Told(np.array(errors), news, others, size, network)


def whole(tree: Tree, q: np.ndarray) -> MassProperties:
    """All bodies, centrally: the mass matrix of the tree if it could fly, all joints locked.

    The six by six corner of that matrix, in the frame of the base, is ``[m E, -m c; m c, I_0]``
    with c the skew matrix of the center of mass.
    """
    model = tree.organism.model("physical", base="free")
    M = model.mass_matrix(np.concatenate([model.neutral()[:7], q]))[:6, :6]
    m = M[0, 0]
    c = np.array([M[5, 1], M[3, 2], M[4, 0]]) / m
    inertia = M[3:, 3:] - m * (c @ c * np.eye(3) - np.outer(c, c))
    pose = tree.organism.base_pose
    R = pose[:3, :3]
    return MassProperties(np.array(m), pose[:3, 3] + R @ c, R @ inertia @ R.T)


def _error(found: MassProperties, truth: MassProperties) -> float:
    """The worst of mass, center and inertia, relative to mass, size and inertia of the whole."""
    size = np.sqrt(np.trace(truth.inertia) / truth.mass)
    return float(max(
        abs(found.mass / truth.mass - 1),
        np.abs(found.center - truth.center).max() / size,
        np.abs(found.inertia - truth.inertia).max() / np.trace(truth.inertia),
    ))  # fmt: skip


def _predicted(tree: Tree) -> int:
    """Messages with news: each module, far or near, is news once at each docking before it.

    On a docking, each side tells of its modules in as many messages as there are distances.
    """
    index = tree.organism.modules.index
    count = 0
    for entry in tree.organism.dockings:
        far = np.isin(tree.organism.modules, tree.organism.subtree(entry.child))
        parent, child = index(entry.parent), index(entry.child)
        count += tree.apart[child, far].max() + tree.apart[parent, ~far].max() + 2
    return int(count)


def _beyond(tree: Tree, network: MassNetwork) -> float:
    """How wrong is what modules take for the mass and center beyond their connectors?"""
    q, model, worst = tree.configuration(), tree.model, 0.0
    T = model.forward_kinematics(q)
    owner, label = np.array([name.split(".") for name in model.body_names]).T
    kind = tree.organism.kind(tree.organism.base)  # all modules are of one kind
    bodies = [kind.bodies[kind.body_index(name)] for name in label]
    masses = np.array([body.mass for body in bodies])
    places = np.array([[*body.center_of_mass, 1.0] for body in bodies])
    centers = (T @ places[..., None])[:, :3, 0]
    for entry in tree.organism.dockings:
        far = np.isin(owner, tree.organism.subtree(entry.child))
        ends = (entry.parent, entry.port, far), (entry.child, entry.child_port, ~far)
        for module, port, there in ends:
            found = network.beyond(module, port).moved(T[model.modules[module]])
            mass = masses[there].sum()
            center = masses[there] @ centers[there] / mass
            worst = max(worst, abs(found.mass - mass), np.abs(found.center - center).max())
    return worst


# -- the inertia -----------------------------------------------------------------------------------


def _inertias(claims: Claims, runs: list[Told]) -> None:
    """Principal moments: centrally, from the network, and by the printed formula."""
    found = []
    for tree, run in zip(trees(), runs, strict=True):
        q = tree.configuration()
        T = tree.model.forward_kinematics(q)
        own = [
            unpacked(run.network.view(name).posture.own).moved(T[tree.model.modules[name]])
            for name in tree.organism
        ]
        joined = own[0]
        for each in own[1:]:
            joined = printed(joined, each)
        last = tree.organism.modules[-1]
        kinds = whole(tree, q), run.network.total(last), joined
        found.append([np.linalg.eigvalsh(each.inertia) for each in kinds])
    moments = np.array(found)  # (trees, kinds, 3)
    off = np.abs(moments[:, 1] / moments[:, 0] - 1)
    claims.check("inertia", off.max())
    times = moments[:, 0] / moments[:, 2]
    claims.check("printed", times.min(), f"up to {times.max():.0f} times")
    point = MassProperties(np.array(1.0), np.zeros(3), np.zeros((3, 3)))
    there = MassProperties(np.array(1.0), np.array([1.0, 0.0, 0.0]), np.zeros((3, 3)))
    claims.check("points", [(point + there).inertia[2, 2], printed(point, there).inertia[2, 2]])
    _draw_inertias(claims, moments)


def printed(one: MassProperties, two: MassProperties) -> MassProperties:
    """The union of two sets as the document has it: right but for the inertia."""
    mass = one.mass + two.mass
    center = (one.mass * one.center + two.mass * two.center) / mass
    return MassProperties(mass, center, (one.mass * one.inertia + two.mass * two.inertia) / mass)


# -- pictures --------------------------------------------------------------------------------------


def _draw_rounds(claims: Claims, runs: list[Told], diameters: list[int]) -> None:
    """Errors and messages of one tree; as many on all, for equal branches make equal numbers."""
    drawn, axes = figures.figure(2, size=(8.4, 5.6), sharex=True)
    error, sent = axes[:, 0]
    run, far = runs[0], trees()[0].apart.max(axis=1)
    rounds = 1 + np.arange(len(run.error))
    for d, color in shades(far).items():
        some = np.maximum(run.error[:, far == d], SMALLEST)
        error.semilogy(rounds, some, color=color, lw=1.2, marker="o", ms=3)
        error.plot([], [], color=color, lw=1.6, label=f"{d}")
    error.axhline(1e-12, color=figures.FAINT, lw=1.0, ls=(0, (1, 2)))
    error.set_ylabel(f"error of each module of tree {trees()[0].seed}\n(relative)",
                     color=figures.INK)  # fmt: skip
    figures.legend(error, loc="lower left", ncols=3, title="dockings to the farthest",
                   title_fontsize=9)  # fmt: skip
    news, others = run.news, run.others
    sent.bar(rounds, news, 0.6, color=figures.PALETTE[0], label="with news")
    sent.bar(rounds, others, 0.6, bottom=news, color=figures.BODY, label="confirmations only")
    for at, count, size in zip(rounds, news + others, run.size, strict=True):
        text = f"{size / 1000:.1f} kB" if count else "silence"
        sent.text(at, count + 0.6, text, ha="center", fontsize=8, color=figures.INK)
    for plane in (error, sent):
        plane.axvline(diameters[0] + 0.5, color=figures.SPOT, lw=1.2)
    error.text(diameters[0] + 0.6, 1e-3, f"d = {diameters[0]} rounds", color=figures.SPOT)
    sent.set_ylabel("messages in the round", color=figures.INK)
    sent.set_xlabel("round", color=figures.INK)
    sent.set_xticks(rounds)
    sent.set_ylim(0, 44)
    figures.legend(sent, loc="upper right")
    figures.title(drawn, "Twenty modules find out mass, center and inertia of the whole")
    drawn.align_ylabels([error, sent])
    figures.save(drawn, claims.picture("rounds.png"))


def _draw_inertias(claims: Claims, moments: np.ndarray) -> None:
    """Three principal moments of each tree, three ways."""
    drawn, axes = figures.figure(1, size=(8.4, 3.6))
    plane = axes[0, 0]
    names = ("centrally", "from the network", "averaged, as printed")
    colors = (figures.FAINT, figures.PALETTE[0], figures.PALETTE[1])
    at = np.arange(len(moments))[:, None] + 0.28 * np.arange(-1, 2)
    for k, (name, color) in enumerate(zip(names, colors, strict=True)):
        shift = 0.07 * (k - 1)
        plane.bar((at + shift).ravel(), moments[:, k].ravel(), 0.065, color=color, label=name)
    plane.set_yscale("log")
    plane.set_xticks(range(len(moments)), [f"tree {tree.seed}" for tree in trees()])
    plane.set_ylabel("principal moments [kg m²]", color=figures.INK)
    plane.grid(False, axis="x")
    figures.legend(plane, loc="upper left", bbox_to_anchor=(1.0, 1.03))
    times = moments[:, 0] / moments[:, 2]
    words = f"averages are {times.min():.0f} to {times.max():.0f} times too small"
    figures.title(drawn, f"Inertia of the whole about its center of mass: {words}")
    figures.save(drawn, claims.picture("inertia.png"))
