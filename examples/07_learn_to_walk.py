"""A policy that walks, found by CMA-ES in an environment of Gymnasium.

The 32 policies of a generation move 32 copies of a snake, which step together in compiled code. A
policy is a matrix that maps a clock, the attitude of the base and the joint positions to the
references of the joints.

Run it with `python examples/07_learn_to_walk.py`; it takes some 4 s of one core.
"""

from __future__ import annotations

from pathlib import Path

import cma
import gymnasium
import numpy as np

import modurob as mr
import modurob.environments  # registers modurob/Walk-v0 and others

FOLDER = Path("output")
POLICIES, GENERATIONS, ACTIONS, CLOCK_HZ = 32, 12, 100, 1.5
SNAKE = mr.examples.snake(5)
TASK = {"organism": SNAKE, "heading": np.pi / 2, "torque": 3.0, "span": 1.0}  # it moves along y
JOINTS = 4
NUMBERS = 9 + JOINTS  # of the clock, the attitude and the joints


def actions(policies: np.ndarray, observation: np.ndarray, k: int) -> np.ndarray:
    """(..., joints) actions of (..., joints * NUMBERS) policies at the k-th period."""
    angle = 2 * np.pi * CLOCK_HZ * k / 50
    clock = np.broadcast_to([1.0, np.sin(angle), np.cos(angle)], (*observation.shape[:-1], 3))
    posture = observation[..., 1:7], observation[..., 13 : 13 + JOINTS]
    features = np.concatenate([clock, *posture], axis=-1)
    matrices = policies.reshape(*policies.shape[:-1], JOINTS, NUMBERS)
    return np.tanh(matrices @ features[..., None])[..., 0]


def returns(envs: gymnasium.vector.VectorEnv, policies: np.ndarray) -> np.ndarray:
    """Sum of the rewards of an episode of each policy."""
    total = np.zeros(len(policies))
    observation, _ = envs.reset(seed=0)
    for k in range(ACTIONS):
        observation, reward, *_ = envs.step(actions(policies, observation, k))
        total += reward
    return total


def main() -> None:
    envs = gymnasium.make_vec("modurob/Walk-v0", num_envs=POLICIES, **TASK)
    settings = {"popsize": POLICIES, "seed": 1, "verbose": -9}
    search = cma.CMAEvolutionStrategy(np.zeros(JOINTS * NUMBERS), 0.3, settings)
    for generation in range(1, GENERATIONS + 1):
        policies = search.ask()
        found = returns(envs, np.array(policies))
        search.tell(policies, (-found).tolist())
        if generation % 4 == 0:
            print(f"generation {generation}: return {found.mean():.1f}, best {found.max():.1f}")

    env = gymnasium.make("modurob/Walk-v0", **TASK)  # one body, to look at the result
    observation, _ = env.reset(seed=0)
    for k in range(ACTIONS):
        observation, *_ = env.step(actions(search.result.xfavorite, observation, k))
    run = env.unwrapped.trajectory()
    ends = run.model.center_of_mass(run.q[[0, -1]])
    print(f"the snake moves by {ends[1, 1] - ends[0, 1]:.2f} m in {run.t[-1]:g} s")
    assert ends[1, 1] - ends[0, 1] > 0.2, "the search found no gait"
    FOLDER.mkdir(exist_ok=True)
    run.picture(FOLDER / "learned.png", t=[0.0, 1.0, 2.0], size=400)
    print(f"start, middle and end: {FOLDER / 'learned.png'}")


if __name__ == "__main__":
    main()
