"""What routes can be chosen for, by name."""

from __future__ import annotations

#: What can be minimised, in order: largest link load, sum of link loads, prohibited turns, M1's reward (negated).
ROUTING_OBJECTIVES = ("max-link", "total-link", "turns", "reward")
