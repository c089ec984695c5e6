"""Local search on the time of a step: the slowest core and the hottest link.

``state`` holds a mapping with how long every core and link is busy, ``moves`` changes it, ``engine`` is the schedule.
"""

from nmsolve.heuristics.mapping.steps.engine import Steps

__all__ = ["Steps"]
