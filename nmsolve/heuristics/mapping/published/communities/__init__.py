"""Networks over several chips by communities, as in their source: M1.3 (how many), M1.4 (where)."""

from nmsolve.heuristics.mapping.published.communities.chips import communities_to_chips
from nmsolve.heuristics.mapping.published.communities.engine import Communities

__all__ = ["Communities", "communities_to_chips"]
