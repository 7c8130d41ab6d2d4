"""The benchmark page of the docs, made from the result files: ``python -m benchmarks.page``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.headline import HERE, NAMES, results

PAGE = HERE.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Every number on this page is read from the files in `benchmarks/results`. `make bench` measures and
writes the files, this page and the README's table (`make bench BENCH="dynamics vectors"`: those
two only); a test compares them. Each section names its machine and its method; results are compared
before anything is timed. Ratios above 1 say how many times faster modurob is; **bold ratios are
below 1: there the other engine is faster.** Ratios vary by some 30 % between runs on shared
machines.

Pinocchio, MuJoCo and dynibo are the wheels of PyPI, built for every CPU of an architecture;
modurob, and gcc for C from CasADi and SymPy, compile for the CPU that they run on, which is part of
what is measured.
"""
BODIES = {
    "grid 2": "tree of cubes, 2 joints",
    "grid 6": "tree of cubes, 6 joints",
    "grid 20": "tree of cubes, 20 joints",
    "grid 60": "tree of cubes, 60 joints",
    "superbot 60": "SuperBot tree, 60 joints",
    "grid 300": "tree of cubes, 300 joints",
}
PEERS = ("pin", "mujoco", "casadi", "dynibo", "filterpy", "jax", "frax", "mujoco-warp")
ENGINES = {"pinocchio": "Pinocchio", "casadi": "CasADi", "dynibo": "dynibo", "mujoco": "MuJoCo"}
QUANTITIES = {
    **NAMES,
    "mass_matrix": "mass matrix",
    "inverse_dynamics_derivatives": "derivatives of inverse dynamics",
}


def number(value: float | None, unit: str = "") -> str:
    """Three digits and a unit; a dash for what was not measured."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return f"{text} {unit}".strip()


def with_commas(text: str) -> str:
    """A text whose numbers are grouped by thousands; one body is no plural."""
    text = re.sub(r"\b1 bodies", "1 body", text)
    return re.sub(r"\d+", lambda found: f"{int(found[0]):,}", text)


def ratio(value: float | None) -> str:
    """How many times faster; bold below 1."""
    if value is None:
        return "–"
    text = f"{value:.2f}×" if value < 10 else f"{value:.0f}×"
    return text if value >= 1 else f"**{text}**"


def compared(value: float | None, unit: str, other: float) -> str:
    """A time, and how many times faster it is than another."""
    return "–" if value is None else f"{number(value, unit)} ({ratio(other / value)})"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def section(title: str, name: str, *tables: str) -> str:
    """A heading, the method as the benchmark's own docstring tells it, tables and the machine."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    method = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[2]
    measured = results(name)
    machine = measured["machine"]
    versions = machine["packages"]
    peers = [f"{key} {versions[key]}" for key in PEERS if key in versions]
    cores = "one core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    load = f" with a load of {machine['load']:.1f}" if "load" in machine else ""
    where = (
        f"*{machine['cpu']}, {cores}{load}, Python {machine['python']}"
        f"{''.join(f', {peer}' for peer in peers)}; {machine['date'][:10]}"
        f"{', few repetitions' if measured['quick'] else ''};* "
        f"`benchmarks/{name}.py`\n"
    )
    return "\n".join([f"## {title}\n", f"{method}\n", *tables, where])


def fastest_other(us: dict[str, float]) -> str:
    """Name of the fastest engine that is not modurob."""
    return min((name for name in us if name.split()[0] in ENGINES), key=lambda name: us[name])


def raced(us: dict[str, float], way: str) -> str:
    """A time of ours, with its ratios to Pinocchio and to the fastest other engine."""
    if way not in us:
        return "–"
    other = us[fastest_other(us)]
    ratios = f"{ratio(us['pinocchio'] / us[way])}, {ratio(other / us[way])}"
    return f"{number(us[way], 'µs')} ({ratios})"


def comparisons(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Each comparison of the dynamics with Pinocchio and others, in words, and its microseconds."""
    for key, words in QUANTITIES.items():
        for place, body in BODIES.items():
            for name, row in found.get(place, {}).items():
                what, _, batch = name.removeprefix("single ").partition(", ")
                if what == key and "pinocchio" in row["microseconds"]:
                    size = batch or ("one call" if name.startswith("single ") else "large batch")
                    yield f"{words}, {body}, {size}", row["microseconds"]


def losses(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Comparisons in which another engine is faster than all of modurob's ways, the worst first."""
    lost = []
    for what, us in comparisons(found):
        theirs = fastest_other(us)
        ours = min((name for name in us if name.split()[0] not in ENGINES), key=lambda n: us[n])
        if us[theirs] < us[ours]:
            cells = (what, f"{ENGINES[theirs.split()[0]]}, {number(us[theirs], 'µs')}")
            lost.append((us[theirs] / us[ours], (*cells, number(us[ours], "µs"))))
    return [(*cells, ratio(value)) for value, cells in sorted(lost)]


def dynamics() -> str:
    """Batches and single calls against Pinocchio and others; losses first."""
    found = results("dynamics")["results"]
    pairs = list(comparisons(found))
    peers = ("pinocchio", "casadi")

    def rows(ending: str, engines: Sequence[str], ways: Sequence[str]) -> list[tuple[str, ...]]:
        return [
            (
                what.removesuffix(f", {ending}"),
                *(number(us.get(engine), "µs") for engine in engines),
                *(raced(us, way) for way in ways),
            )
            for what, us in pairs
            if ending in what
        ]

    lost = losses(found)
    compiling = found["compiling"]
    once = [(what, number(1e3 * compiling[what], "ms")) for what in compiling]
    once.append(
        ("undock one of 100 modules, answer", number(found["redocking"]["milliseconds"], "ms"))
    )
    missing = {
        f"{engine} ({BODIES[place]}): {reason}"
        for place in BODIES
        for engine, reason in found.get(place, {}).get("missing", {}).items()
    }
    tiers, names = ("dyads", "fused"), [ENGINES[peer] for peer in peers]
    return section(
        "Dynamics", "dynamics",
        "**Losses.** Another engine is faster than the faster code of modurob in "
        f"{len(lost)} of {len(pairs)} comparisons.\n",
        *([grid(("comparison", "fastest engine", "modurob", "ratio"), lost)] if lost else []),
        "A state in a batch of 10,000 (matrices: 400), one thread. In parentheses: ratio to "
        "Pinocchio, ratio to the fastest other engine.\n",
        grid(("quantity", *names, "new body", "compiled body"), rows("large batch", peers, tiers)),
        "A state in small batches:\n",
        grid(("quantity", *names, "new body", "compiled body"), rows("batch of", peers, tiers)),
        "One call from Python:\n",
        grid(
            ("quantity", *ENGINES.values(), "plain", "prepared", "prepared, compiled"),
            rows("one call", list(ENGINES), ("plain", "prepared dyads", "prepared fused")),
        ),
        *([f"Missing: {'; '.join(sorted(missing))}.\n"] if missing else []),
        "What is done once:\n",
        grid(("what", "time"), once),
    )  # fmt: skip


def vectors() -> str:
    """Widths of vectors."""
    found = results("vectors")["results"]
    rows = [
        (
            f"{NAMES[name]}, {BODIES[body]}, {words}",
            *(compared(us[tier], "µs", us["pinocchio"]) for us in each),
        )
        for case in next(iter(found.values()))
        for body, _, name in [case.partition(", ")]
        for tier, words in (("dyads", "new body"), ("fused", "compiled"))
        for each in [[row[case]["microseconds"] for row in found.values()]]
    ]
    head = ("a state in a batch of 10,000", *(f"{width} doubles" for width in found))
    own = results("vectors")["machine"]["doubles_in_a_vector"]
    text = f"This machine's own vectors hold {own} doubles. Ratios to Pinocchio:\n"
    return section("Vector widths", "vectors", text, grid(head, rows))


def simulation() -> str:
    """Batches of runs against MuJoCo, and what a single step costs."""
    found = results("simulation")["results"]
    batches, single = found["batches"], found["single"]
    ns = batches["nanoseconds_a_step"]
    mujoco = ns["MuJoCo, one core"]
    rows = [(name, number(value, "ns"), ratio(mujoco / value)) for name, value in ns.items()]
    steps = [(name, number(value, "µs")) for name, value in single.items()]
    return section(
        "Simulation", "simulation",
        grid((f"one step, {batches['states']:,} states", "time", "MuJoCo, one core / this"), rows),
        grid(("one state, one step (or a second of an adaptive method)", "time"), steps),
    )  # fmt: skip


def ground() -> str:
    """Walking against MuJoCo."""
    measured = results("ground")["results"]
    found, shares = measured["batch"], measured["share_of_a_core"]
    faster = found["times_faster_than_mujoco"]
    rows = [
        (name, number(value), ratio(faster[name]))
        for name, value in found["steps_a_second"].items()
    ]
    head = (f"{found['gaits']} gaits of one body", "steps a second", "this / MuJoCo")
    real_time = [(tier, f"{number(100 * share)} %") for tier, share in shares.items()]
    return section(
        "On the ground", "ground", grid(head, rows),
        grid(("a body of 20 modules in real time", "share of a core"), real_time),
    )  # fmt: skip


def control_step() -> str:
    """A control loop against Pinocchio and filterpy."""
    found = results("control_step")["results"]
    rows = [
        (body, *(number(us, "µs") for us in row["microseconds"].values()),
         *map(ratio, row["times_faster"].values()))
        for body, row in found.items()
    ]  # fmt: skip
    head = ("body", "modurob", "compiled", "Pinocchio and filterpy", "ratio", "ratio, compiled")
    return section("One sample of a control loop", "control_step", grid(head, rows))


def symbolic() -> str:
    """Closed forms against SymPy."""
    found = results("symbolic")["results"]["rows"]
    rows = [
        (
            count, number(row["closed form"], "s"), number(row.get("sympy Kane"), "s"),
            number(row.get("sympy Lagrange"), "s"), number(row["evaluation"]["formulas"], "µs"),
            number(row["evaluation"]["compiled inverse dynamics"], "µs"),
        )
        for count, row in found.items()
    ]  # fmt: skip
    head = (
        "joints", "closed form", "SymPy, Kane", "SymPy, Lagrange", "evaluate the formulas",
        "evaluate the recursion",
    )  # fmt: skip
    return section("Closed forms", "symbolic", grid(head, rows))


def sympy_code() -> str:
    """C from SymPy."""
    found = results("sympy_code")["results"]
    rows = [
        (
            count, number(sum(row["seconds"].values()), "s"), number(us["sympy"], "µs"),
            *(compared(us[tier], "µs", us["sympy"]) for tier in ("dyads", "fused")),
        )
        for count, row in found.items()
        for us in [row["microseconds"]]
    ]  # fmt: skip
    head = ("joints", "to compiled C", "a state in SymPy's C", "new body", "compiled body")
    return section("C from SymPy", "sympy_code", grid(head, rows))


def scaling() -> str:
    """Docking and models of growing bodies."""
    found = results("scaling")["results"]
    keys = ("dock", "dyad model", "dyad poses", "physical model", "physical poses", "total")
    rows = [
        (f"{row['modules']:,}", *(number(1e3 * row[key], "ms") for key in keys))
        for row in found["rows"]
    ]
    return section("Growth with the number of modules", "scaling", grid(("modules", *keys), rows))


def gpu() -> str:
    """A GPU against JAX on the same one."""
    found = results("gpu")["results"]
    rate, jax = "inverse_dynamics [million states/s]", "inverse_dynamics in JAX [million states/s]"
    rows = [
        (
            name, number(row[rate]), number(row["forward_dynamics [million states/s]"]),
            number(row.get(jax)), ratio(row[rate] / row[jax] if jax in row else None),
        )
        for name, row in found.items()
        if isinstance(row, dict)
    ]  # fmt: skip
    head = ("body", "inverse dynamics", "forward dynamics", "inverse, JAX", "ratio")
    text = f"{found['device']}, {found['states']:,} states, million states a second:\n"
    return section("GPU", "gpu", text, grid(head, rows))


def gpu_batches() -> str:
    """A GPU against JAX, frax and MuJoCo Warp in batches of several sizes."""
    found = results("gpu_batches")["results"]
    peers = [p for p in ("JAX", "frax", "MuJoCo Warp") if p in found["one call"]["1"]]
    parts = [f"{found['device']}, {found['joints']} joints, million states a second.\n"]
    for kind in ("one call", "queued calls"):
        rows = [
            (
                f"{int(size):,}", number(row["modurob"]),
                *(f"{number(row[p])} ({ratio(row['modurob'] / row[p])})" if p in row else "–"
                  for p in peers),
            )
            for size, row in found[kind].items()
        ]  # fmt: skip
        parts.append(grid((f"states, {kind}", "modurob", *peers), rows))
    return section("GPU, batches of all sizes", "gpu_batches", *parts)


def population() -> str:
    """Different bodies on the ground against MuJoCo."""
    found = results("population")["results"]
    rates, wall = (found["body_steps_a_second"][clock] for clock in ("cpu", "wall"))
    bodies = f"modurob, {found['bodies']} bodies"
    native = f"MuJoCo, native rollouts of {found['mujoco_bodies']}"
    names = {name: name for name in rates} | {"modurob": bodies, "MuJoCo": native}
    rows = [
        (
            with_commas(names[name]), number(rate), ratio(rate / rates["MuJoCo"]),
            number(wall.get(name)),
            ratio(wall[name] / wall["MuJoCo"] if name in wall else None),
        )
        for name, rate in rates.items()
    ]  # fmt: skip
    head = (
        "bodies", "steps in a second of processor time", "this / MuJoCo",
        "of the wall clock, other work beside", "this / MuJoCo",
    )  # fmt: skip
    return section("Populations on the ground", "population", grid(head, rows))


def population_gpu() -> str:
    """Different bodies on a GPU; inverse dynamics beside JAX and frax."""
    found = results("population_gpu")["results"]
    rates: dict[str, dict[str, dict[str, float]]] = {}
    errors, inverse, columns = [], [], []
    for name, row in found.items():
        first, _, rest = name.partition(", ")
        if first.startswith("errors"):
            above = next(row[key] for key in row if key.startswith("bodies above"))
            values = (f"{row[key]:.1e}" for key in ("median", "99.9 %", "largest"))
            errors.append((with_commas(rest), *values, str(above)))
        elif first == "inverse dynamics":
            inverse.append((with_commas(rest), *map(number, row.values())))
            columns = list(row)
        elif isinstance(row, dict):
            bodies, _, dtype = name.rpartition(", ")
            rates.setdefault(bodies, {})[dtype] = row
    keys = [f"{key} [million body-steps/s]" for key in ("steps", "rollout", "rollout with set-up")]
    speeds = [
        (with_commas(bodies), *(number(row[key]) for row in each.values() for key in keys))
        for bodies, each in rates.items()
    ]
    short = ("steps", "rollout", "with set-up")
    head = ("bodies", *(f"{dtype}, {key}" for dtype in ("float32", "float64") for key in short))
    return section(
        "Populations on a GPU", "population_gpu",
        f"{found['device']}, million body-steps a second. Large bodies are 10,000 of 6 to 40 "
        "Backbones, different ones or copies of one with the mean number of links:\n",
        grid(head, speeds),
        "Errors after 100 steps; at most 1e-4 in float32 and 1e-10 in float64 are allowed:\n",
        grid(("bodies", "median", "99.9 %", "largest", "bodies above"), errors),
        "Million inverse dynamics a second in float32:\n",
        grid(("bodies or states", *columns), inverse),
    )  # fmt: skip


def balance() -> str:
    """Laws that balance trees by messages."""
    laws = results("balance")["results"]["laws"]
    rows = [
        (name, f"{law['got_there']} of {laws['trees']}", number(law["median_seconds"], "s"))
        for name, law in laws.items()
        if isinstance(law, dict)
    ]
    return section("Balance", "balance", grid(("law", "balanced", "median time"), rows))


def others() -> str:
    """Benchmarks without a table of their own."""
    packing = results("packing")["results"]
    studio = results("studio")["results"]
    seconds = packing["cpu_seconds"]
    rows = [
        (f"pack {packing['bodies']:,} bodies into one table", number(seconds["packed again"], "s")),
        ("build them as models instead", number(seconds["as models"], "s")),
        ("studio: from a click to 3D, median", number(studio["click_to_3d"]["median_ms"], "ms")),
        (
            f"studio: playback of {studio['playback']['modules']} modules",
            number(studio["playback"]["frames_per_second"], "frames/s, drawn without a GPU"),
        ),
    ]
    for run in results("bus")["results"]["processes"]:
        what = f"bus: {run['modules']} processes, {run['loss']:.0%} loss, plug to first torques"
        rows.append((what, number(run["first_torques"], "s")))
    return f"## Others\n\n{grid(('what', 'measured'), rows)}"


def page() -> str:
    """The whole page."""
    parts = [
        dynamics, vectors, sympy_code, simulation, ground, population, control_step, symbolic,
        scaling, gpu, population_gpu, balance, others,
    ]  # fmt: skip
    if (HERE / "results" / "gpu_batches.json").exists():  # needs a GPU
        parts.insert(parts.index(population_gpu), gpu_batches)
    return "\n".join([HEAD, *(part() for part in parts)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
