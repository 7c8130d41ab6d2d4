"""Environments of Gymnasium for learners; importing this package registers them.

``gymnasium.make("modurob/Walk-v0", organism=...)``, likewise Balance, Reach and Dock, and
``gymnasium.make_vec`` for many bodies that step together.
"""

from modurob.errors import StateError

try:
    import gymnasium
except ImportError:
    raise StateError("Gymnasium is not installed: pip install 'modurob[gymnasium]'") from None

from modurob.environments.environments import OrganismEnv, OrganismVectorEnv
from modurob.environments.tasks import TASKS

EPISODE_STEPS = 500  # 10 s at the default period

for _task in TASKS:
    gymnasium.register(
        f"modurob/{_task.capitalize()}-v0",
        entry_point=f"{__name__}:OrganismEnv",
        vector_entry_point=f"{__name__}:OrganismVectorEnv",
        max_episode_steps=EPISODE_STEPS,
        kwargs={"task": _task},
    )

__all__ = ["OrganismEnv", "OrganismVectorEnv"]
