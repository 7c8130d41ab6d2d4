"""A gait for a walker by policy search: PyTorch's Adam on rollouts of a population.

The policy is a normal distribution over the amplitudes, phases and offsets of the joints, in
PyTorch. Each round draws 64 gaits, walks them all at once on the ground, and follows the gradient
of the expected distance (the score function, with pairs of opposite gaits). Contact with the ground
has no useful derivative, which this search does not need.

Run it with `python examples/09_walker_torch.py`; it needs `pip install 'modurob[torch]'`.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

import modurob as mr

PAIRS, ROUNDS, SECONDS = 32, 36, 2.0
AMPLITUDE, OFFSET = 1.2, 0.4  # [rad] largest
GOAL = 0.1  # [m] in SECONDS, of a crab 0.3 m long; random gaits hardly move it


def walked(population: mr.Population, gaits: torch.Tensor) -> torch.Tensor:
    """(bodies,) distances along x of gaits (bodies, 3, joints). [m]"""
    numbers = gaits.detach().numpy()  # the memory of the tensor
    waves = mr.JointWaves(
        AMPLITUDE * np.tanh(numbers[:, 0]), numbers[:, 1], OFFSET * np.tanh(numbers[:, 2]),
        frequency=1.0,
    )  # fmt: skip
    run = population.rollout(
        SECONDS, dt=2e-3, gaits=waves, ground=mr.Ground(friction=0.8), torque=5.0
    )
    return torch.from_numpy(np.nan_to_num(run.center[:, 0] - run.start_center[:, 0]))


def main() -> int:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    population = mr.Population([mr.examples.crab()] * (2 * PAIRS))
    joints = int(population.joints.max())
    mean = torch.zeros(3, joints, dtype=torch.float64, requires_grad=True)
    spread = torch.full((3, joints), -0.7, dtype=torch.float64, requires_grad=True)  # logarithm
    adam = torch.optim.Adam([mean, spread], lr=0.15)
    begin = time.perf_counter()
    for number in range(ROUNDS):
        policy = torch.distributions.Normal(mean, spread.exp())
        half = policy.sample((PAIRS,))
        gaits = torch.cat([half, 2 * mean.detach() - half])
        way = walked(population, gaits)
        advantage = (way - way.mean()) / (way.std() + 1e-9)
        loss = -(policy.log_prob(gaits).sum((1, 2)) * advantage).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        if number % 7 == 0:
            print(f"round {number:2d}: {way.mean():6.3f} m on average, {way.max():6.3f} m at best")
    before = torch.zeros(1, 3, joints, dtype=torch.float64)
    both = torch.cat([before, mean[None]])
    rest, found = walked(population, both.repeat(PAIRS, 1, 1))[:2]
    print(
        f"the mean gait walks {found:.2f} m in {SECONDS:g} s, {rest:.2f} m before the search; "
        f"{2 * PAIRS * ROUNDS} rollouts in {time.perf_counter() - begin:.1f} s"
    )
    return 0 if found > GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
