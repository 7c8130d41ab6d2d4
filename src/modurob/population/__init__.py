"""Populations: many different bodies in one table, and rollouts of all of them."""

from modurob.population.population import Population
from modurob.population.rollout import Rollout
from modurob.population.tables import BodyTables
from modurob.population.waves import JointWaves

__all__ = ["BodyTables", "JointWaves", "Population", "Rollout"]
