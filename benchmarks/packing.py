"""Many different bodies into the tables of a population: CPU time of one core, and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from modurob import Population
from modurob.population.tables import BodyTables, link_rows
from modurob.search import BodySpace, Genotype, joint_waves

BODIES, QUICK_BODIES = 100_000, 5_000
MODELS = 300  # built one by one for comparison


def run(quick: bool) -> dict[str, Any]:
    """Seconds of CPU time for all bodies, and megabytes."""
    count, rng = QUICK_BODIES if quick else BODIES, np.random.default_rng(0)
    space, seconds = BodySpace("backbone", (4, 12)), {}

    def measured(name: str, work: Callable[[], Any], share: float = 1.0) -> Any:
        begin = time.process_time()
        result = work()
        seconds[name] = (time.process_time() - begin) / share
        print(f"{name:<28} {seconds[name]:8.2f} s, {1e6 * seconds[name] / count:8.1f} us a body",
              flush=True)  # fmt: skip
        return result

    genotypes = measured("random", lambda: [Genotype.random(space, rng) for _ in range(count)])
    measured("mutated", lambda: [genotype.mutated(rng) for genotype in genotypes])
    measured("canonical", lambda: [genotype.canonical() for genotype in genotypes])
    measured("packed, first time", lambda: Population.from_genotypes(genotypes))
    population = measured("packed again", lambda: Population.from_genotypes(genotypes))
    measured("gaits", lambda: joint_waves(genotypes, population))
    measured("as models", lambda: [_as_model(each) for each in genotypes[:MODELS]], MODELS / count)
    megabytes, links = _size(population.tables) / 1e6, len(population.tables.rows)
    print(f"{megabytes:.0f} MB of tables, {links} distinct links")
    return {
        "bodies": count, "cpu_seconds": seconds, "megabytes": megabytes, "distinct_links": links,
    }  # fmt: skip


def _as_model(genotype: Genotype) -> None:
    organism = genotype.organism()
    link_rows(organism, organism.model("dyad", "free"))


def _size(tables: BodyTables) -> int:
    arrays = (getattr(tables, name) for name in tables.__dataclass_fields__)
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
