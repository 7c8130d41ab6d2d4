"""The benchmark page of the docs, made from the result files: ``python -m benchmarks.page``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from benchmarks.headline import HERE, NAMES, results

PAGE = HERE.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Every number on this page is read from the files in `benchmarks/results`, which `make bench` writes
(or `python -m benchmarks NAME`); `python -m benchmarks.page` makes the page, and a test compares it
with the files. Each section names its machine and its method; results are compared before anything
is timed. Ratios above 1 say how many times faster modurob is; **bold ratios are below 1: there the
other engine is faster.** Ratios vary by some 30 % between runs on shared machines.

The other engines are the wheels of PyPI, which run on any CPU of the kind; modurob compiles for the
CPU it runs on, which is part of what is measured.
"""
BODIES = {
    "grid 2": "tree of cubes, 2 joints",
    "grid 6": "tree of cubes, 6 joints",
    "grid 20": "tree of cubes, 20 joints",
    "grid 60": "tree of cubes, 60 joints",
    "superbot 60": "SuperBot tree, 60 joints",
    "grid 300": "tree of cubes, 300 joints",
}
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
    machine = results(name)["machine"]
    versions = machine["packages"]
    peers = [f"{key} {versions[key]}" for key in ("pin", "mujoco", "filterpy") if key in versions]
    where = (
        f"*{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
        f"{''.join(f', {peer}' for peer in peers)}; {machine['date'][:10]};* "
        f"`benchmarks/{name}.py`\n"
    )
    return "\n".join([f"## {title}\n", f"{method}\n", *tables, where])


def dynamics() -> str:
    """Batches and single calls against Pinocchio and MuJoCo."""
    found = results("dynamics")["results"]
    batches = [
        (
            f"{words}, {body}",
            number(us["pinocchio"], "µs"),
            *(compared(us.get(tier), "µs", us["pinocchio"]) for tier in ("dyads", "fused")),
        )
        for key, words in QUANTITIES.items()
        for place, body in BODIES.items()
        if (row := found[place].get(key)) and (us := row["microseconds"])
    ]
    single = [
        (
            f"{words}, {body}",
            number(us["pinocchio"], "µs"),
            number(us["mujoco"], "µs"),
            *(compared(us[way], "µs", us["pinocchio"]) for way in ("plain", "prepared dyads")),
        )
        for key, words in NAMES.items()
        for place, body in BODIES.items()
        if (row := found[place].get(f"single {key}")) and (us := row["microseconds"])
    ]
    compiling = found["compiling"]
    once = [(what, number(1e3 * compiling[what], "ms")) for what in compiling]
    once.append(
        ("undock one of 100 modules, answer", number(found["redocking"]["milliseconds"], "ms"))
    )
    return section(
        "Dynamics", "dynamics",
        "A state in a batch of 10,000, one thread. Pinocchio's batches of inverse and forward "
        "dynamics run in C++ (`rneaInParallel`, `abaInParallel`); its mass matrix and derivatives "
        "are called from Python, state by state, since it offers no batches of them:\n",
        grid(("quantity", "Pinocchio", "new body", "compiled body"), batches),
        "One call from Python, ratios to Pinocchio; prepared calls write into arrays that are "
        "given once:\n",
        grid(("quantity", "Pinocchio", "MuJoCo", "plain", "prepared"), single),
        "What is done once:\n",
        grid(("what", "time"), once),
    )  # fmt: skip


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
    found = results("ground")["results"]["batch"]
    faster = found["times_faster_than_mujoco"]
    rows = [
        (name, number(value), ratio(faster[name]))
        for name, value in found["steps_a_second"].items()
    ]
    head = (f"{found['gaits']} gaits of one body", "steps a second", "this / MuJoCo")
    return section("On the ground", "ground", grid(head, rows))


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
    parts = (dynamics, simulation, ground, control_step, symbolic, scaling, gpu, balance, others)
    return "\n".join([HEAD, *(part() for part in parts)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
