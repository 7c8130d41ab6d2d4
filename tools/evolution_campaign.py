"""What `modurob evolve` promises: walkers in ten minutes, confirmed in MuJoCo, the same bytes.

    python tools/evolution_campaign.py FOLDER [SEED ...]
    python tools/evolution_campaign.py --cost [BODIES]

For each seed a search of 200 bodies and 50 generations, and its gallery. Then small searches, one
in processes and one that is killed again and again, whose files must equal that of a plain one.

With --cost a search of 100,000 bodies whose rollouts take no time: CPU time of a body in a process,
and of the process that calls them, for each generation.
"""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from modurob.population import Population
from modurob.population.rollout import Reached
from modurob.search import evolve

COMMAND = [sys.executable, "-m", "modurob", "evolve", "--json"]
LONGEST_S, LEAST_RATIO = 600.0, 5.0
SMALL = ["--population", "70", "--generations", "8", "--winners", "1", "--no-films"]
KILL_S = 4.0  # after which a search is killed: a few generations


def walkers(folder: Path, seed: int) -> bool:
    """A whole search: seconds, the winner over the median random body, MuJoCo."""
    begin = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "--population", "200", "--generations", "50", "--seed", str(seed), "--output",
         str(folder / f"walk-{seed}")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    seconds, data = time.perf_counter() - begin, json.loads(done.stdout)
    random = data["median_of_random_bodies"]
    print(f"seed {seed}: {seconds:.0f} s, median of random bodies {random:.3f} m")
    for one in data["winners"]:
        seen = f"{one['mujoco']:.3f} m" if one["mujoco"] is not None else one["note"]
        print(f"  {one['name']}: {one['score']:.3f} m, in MuJoCo {seen}", flush=True)
    winner = data["winners"][0]
    confirmed = (winner["mujoco"] or 0.0) / random
    print(f"  winner {winner['score'] / random:.1f} times the median, {confirmed:.1f} in MuJoCo")
    return seconds <= LONGEST_S and min(confirmed, winner["score"] / random) >= LEAST_RATIO


def killed(folder: Path) -> int:
    """Kill a search after a while and continue it until it is done; returns the kills."""
    kills = 0
    while True:
        more = ["--resume"] if (folder / "evolution.json").exists() else []
        process = subprocess.Popen(
            [*COMMAND, *SMALL, "--output", str(folder), *more], stdout=subprocess.DEVNULL
        )
        try:
            assert process.wait(KILL_S * (1 + 0.5 * kills)) == 0
            return kills
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1


class RandomWays:
    """In the place of rollouts: bodies get somewhere at random, and that takes no time."""

    rng = np.random.default_rng(0)

    def rollout(self, task):
        """The start, and random places at the end."""
        q = task.q.copy()
        q[:, :2] += self.rng.exponential(0.3, (len(q), 2))
        trace = np.stack([task.q[:, :7], q[:, :7]])
        return Reached(task.q, q, task.v, np.zeros(len(q)), trace)


class CountingExecutor:
    """Sends everything through pickles, as processes do, and counts the time of the functions."""

    spent = 0.0

    def map(self, function, items, progress=None):
        """The results of the items."""
        function = pickle.loads(sent := pickle.dumps(function))
        answers = []
        for item in items:
            pickle.dumps((sent, item))
            begin = time.process_time()
            answers.append(pickle.dumps(function(item)))
            self.spent += time.process_time() - begin
        return [pickle.loads(answer) for answer in answers]


def cost(bodies: int) -> int:
    """Print the CPU time of generations without their rollouts."""
    Population._executor = lambda self, target, dtype: RandomWays()
    executor, before = CountingExecutor(), [0.0, time.process_time()]

    def show(result):
        spent, now = executor.spent, time.process_time()
        inside, whole = spent - before[0], now - before[1]
        number, rest = len(result.history), whole - inside
        text = f"{1e6 * inside / bodies:.0f} us a body, calling process {rest:.2f} s"
        print(f"generation {number}: {text}", flush=True)
        before[:] = [spent, time.process_time()]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evolution.json"
        evolve("walk", bodies, 4, 1, target="cuda", executor=executor, checkpoint=path,
               progress=show)  # fmt: skip
    return 0


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--cost":
        return cost(int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    results = [walkers(folder, int(seed)) for seed in sys.argv[2:] or ["1"]]
    for name, options in (("plain", []), ("jobs", ["--jobs", "2"])):
        subprocess.run(
            [*COMMAND, *SMALL, *options, "--output", str(folder / name)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    kills = killed(folder / "killed")
    files = [(folder / x / "evolution.json").read_bytes() for x in ("plain", "jobs", "killed")]
    same = len(set(files)) == 1
    print(f"plain, 2 processes, {kills} kills: {'the same bytes' if same else 'OTHER BYTES'}")
    return 0 if all(results) and same and kills else 1


if __name__ == "__main__":
    sys.exit(main())
