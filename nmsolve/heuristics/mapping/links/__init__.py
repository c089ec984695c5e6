"""Local search on the loads of links, and on any objective under ceilings on others.

``state`` holds a mapping with the load of every link, ``moves`` changes it, ``engine`` is the schedule.
"""

from nmsolve.heuristics.mapping.links.engine import Links

__all__ = ["Links"]
