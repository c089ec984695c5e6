"""Local search on the reward of method M1.

``state`` holds a mapping with what every core exchanges to its four sides, ``channels`` counts those of multicast trees,
``moves`` changes both, ``engine`` is the schedule.
"""

from nmsolve.heuristics.mapping.reward.engine import Reward

__all__ = ["Reward"]
