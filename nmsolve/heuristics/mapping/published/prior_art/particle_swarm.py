"""Discrete particle swarm optimisation of mappings after Sahu, Shah, Manna and Chattopadhyay (2014), *A new application
mapping strategy for mesh-based network-on-chip using discrete particle swarm optimization*, IEEE TVLSI 22(2):300-312.

A particle is a mapping, a velocity a sequence of exchanges: those that lead to its own best mapping and those that lead to the
swarm's best. Every exchange is made with the confidence in its leader as probability.
"""

from __future__ import annotations

from nmsolve.heuristics.mapping.published.prior_art.arena import (
    Arena,
    Mapping,
    assign,
    change,
    copied,
    partner,
    send,
    shake,
)
from nmsolve.heuristics.rng import below, uniform
from nmsolve.model.compiled import plain
from nmsolve.model.types import AnyArray

#: Particles; confidence in a particle's own best and in the swarm's best; random exchanges per move, share of the nodes.
PARTICLES, OWN, SWARM, INERTIA = 60, 0.1, 0.08, 0.01
#: Generations without a new best before all particles but the best are scattered and forget.
STALE = 300


class ParticleSwarm:
    """State of the method; :meth:`advance` moves one particle and returns the swarm's best mapping."""

    def __init__(self, a: Arena, start: Mapping, rng: AnyArray) -> None:
        self._a, self._rng, self._n = a, rng, len(start.core)
        self.best = copied(start)
        self._particles, self._own = [copied(start)], [copied(start)]
        self._next, self._stale = 0, 0

    def advance(self) -> Mapping:
        """Scatter a new particle while there are too few, else move the next one."""
        if len(self._particles) < PARTICLES:
            new = copied(self.best)
            shake(self._a, new, 4 * self._n, self._rng)
            self._particles.append(new)
            self._own.append(copied(new))
            self._note(new)
            return self.best
        particle, own = self._particles[self._next], self._own[self._next]
        _follow(self._a, particle, own, OWN, self._rng)
        _follow(self._a, particle, self.best, SWARM, self._rng)
        shake(self._a, particle, max(1, round(INERTIA * self._n)), self._rng)
        if particle.cost[0] < own.cost[0]:
            assign(own, particle)
        self._note(particle)
        self._next = (self._next + 1) % PARTICLES
        if self._stale > STALE * PARTICLES:
            del self._particles[1:], self._own[1:]
            assign(self._particles[0], self.best)
            assign(self._own[0], self.best)
            self._next, self._stale = 0, 0
        return self.best

    def _note(self, particle: Mapping) -> None:
        self._stale += 1
        if particle.cost[0] < self.best.cost[0] * (1 - 1e-12):
            assign(self.best, particle)
            self._stale = 0


@plain
def _follow(a: Arena, m: Mapping, leader: Mapping, confidence: float, rng: AnyArray) -> None:
    """Make every exchange that leads to ``leader`` with probability ``confidence``, beginning at a random node."""
    n = len(m.core)
    u = below(rng, n)
    for _ in range(n):
        q = leader.core[u]
        if m.core[u] != q and uniform(rng) < confidence:
            v = partner(a, m, u, q, rng)
            if v > -2:
                send(a, m, u, q, v, change(a, m, u, q, v))
        u = u + 1 if u + 1 < n else 0
