"""What `modurob evolve` promises: walkers in ten minutes, confirmed in MuJoCo, the same bytes.

    python tools/evolution_campaign.py FOLDER [SEED ...]

For each seed a search of 200 bodies and 50 generations, and its gallery. Then small searches, one
in processes and one that is killed again and again, whose files must equal that of a plain one.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

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


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
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
