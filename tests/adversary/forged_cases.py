"""Tiny mapping problems as plain data, with their optimum by trying every mapping in whole numbers or fractions.

Their costs (:mod:`forged_costs`) share no code with the package. The only thing taken from it is :meth:`Case.problem`, the
problem in the package's own terms, which is what a certificate is checked against.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from forged_costs import cost_of

from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem

#: What the step time needs of a machine.
TIMES = (
    "latency_neuron_access", "latency_neuron_update", "latency_spike_out", "latency_axon_out", "latency_axon_in",
    "latency_synaptic_op", "latency_link_message", "latency_barrier", "receives_while_sending",
)  # fmt: skip
DRAW = (
    "power_chip", "power_core", "energy_neuron_access", "energy_neuron_update", "energy_spike_out", "energy_synaptic_op",
)  # fmt: skip
Edge = tuple[int, int, float]
Link = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """One tiny problem.

    ``edges``: (sender, target, weight), at most one per ordered pair; ``multicast``: senders whose edges are one message
    of rate ``rates[sender]`` (its largest weight if not given); ``per``: most nodes on a core; ``limits``: constraints as
    (kind, nodes, cores); ``energy``: figures in pJ; ``parts``: core of every node of a mapping whose parts are kept, claims
    are then about where these parts lie (scope ``placement``); ``times``: ns of :data:`TIMES`, cores receive while they send if
    the last one is 1; ``ceilings``: most of other objectives; ``draw``: mW and pJ of :data:`DRAW`.
    """

    name: str
    n: int
    mesh: tuple[int, int]
    edges: tuple[Edge, ...]
    objective: str = "hops"
    per: int = 1
    multicast: frozenset[int] = frozenset()
    rates: tuple[tuple[int, float], ...] = ()
    torus: bool = False
    columns_per_chip: int = 0
    crossing: float = 1.0
    link: float = 1.0
    dead_cores: tuple[int, ...] = ()
    dead_links: tuple[Link, ...] = ()
    matrix: tuple[tuple[float, ...], ...] = ()
    limits: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    energy: tuple[tuple[str, float], ...] = field(default=())
    parts: tuple[int, ...] = ()
    times: tuple[float, ...] = ()
    ceilings: tuple[tuple[str, float], ...] = ()
    draw: tuple[float, ...] = ()

    @property
    def cores(self) -> int:
        """How many cores there are, dead ones too."""
        return self.mesh[0] * self.mesh[1]

    def problem(self) -> MappingProblem:
        """The same in the package's terms."""
        flags = np.array([u in self.multicast for u in range(self.n)])
        rate = [self.rate(u) for u in range(self.n)]
        graph = LogicGraph.from_edges(
            self.n,
            [e[0] for e in self.edges],
            [e[1] for e in self.edges],
            np.array([e[2] for e in self.edges], float),
            multicast=flags,
            rate=np.array(rate, float),
            name=self.name,
        )
        rows, cols = self.mesh
        chips, inside = (1, 1), self.mesh
        if self.columns_per_chip:
            chips, inside = (1, cols // self.columns_per_chip), (rows, self.columns_per_chip)
        machine = Machine(
            self.name,
            chips,
            inside,
            torus=self.torus,
            link_weight=self.link,
            crossing_weight=self.crossing,
            faulty_cores=self.dead_cores,
            faulty_links=self.dead_links,
            energy={key: Figure(value) for key, value in self.energy},
            distance_matrix=np.array(self.matrix, float) if self.matrix else None,
            figures={
                key: Figure(value, "ns" if key.startswith("latency") else "")
                for key, value in zip(TIMES, self.times, strict=False)
            }
            | {
                key: Figure(value, "mW" if key.startswith("power") else "pJ")
                for key, value in zip(DRAW, self.draw, strict=False)
            },
        )
        limits = tuple(
            SideConstraint(f"limit {i}", kind, nodes, cores)
            for i, (kind, nodes, cores) in enumerate(self.limits)
        )
        return MappingProblem(graph, machine, self.objective, limits, self.per, ceilings=self.ceilings)

    def rate(self, u: int) -> float:
        """Rate of the message of node ``u``."""
        weights = [w for a, _, w in self.edges if a == u]
        return dict(self.rates).get(u, max(weights, default=0.0))

    def allowed(self, core: tuple[int, ...]) -> bool:
        """True if no core holds too many nodes and every limit is kept."""
        if any(core.count(p) > self.per for p in set(core)) or set(core) & set(self.dead_cores):
            return False
        for kind, nodes, cores in self.limits:
            places = [core[u] for u in nodes]
            if kind == "together" and len(set(places)) > 1:
                return False
            if kind == "apart" and len(set(places)) < len(places):
                return False
            if kind in ("pin", "region") and not set(places) <= set(cores):
                return False
            if kind == "forbid" and set(places) & set(cores):
                return False
        return True

    @functools.cached_property
    def optimum(self) -> Fraction | float:
        """Least cost of all mappings, exact; for the reward, which holds an exponential, as a float."""
        cost = cost_of(self)
        if self.parts:
            used, usable = sorted(set(self.parts)), sorted(set(range(self.cores)) - set(self.dead_cores))
            moves = (dict(zip(used, to, strict=True)) for to in itertools.permutations(usable, len(used)))
            return min(cost(tuple(to[p] for p in self.parts)) for to in moves)
        held = [(cost_of(replace(self, objective=name)), Fraction(most)) for name, most in self.ceilings]
        every = itertools.product(range(self.cores), repeat=self.n)
        return min(cost(core) for core in every if self.allowed(core) and all(c(core) <= m for c, m in held))


def _edges(rng: np.random.Generator, n: int, m: int, kind: str = "whole") -> tuple[Edge, ...]:
    """Random edges, at most one per ordered pair, so that no node is left out."""
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    chosen = {tuple(int(x) for x in pairs[i]) for i in rng.choice(len(pairs), m, replace=False)}
    chosen |= {(u, (u + 1) % n) for u in range(n)}
    draw = {
        "whole": lambda: float(rng.integers(1, 6)),
        "parts": lambda: float(rng.random() * 3),
        "tiny": lambda: float(rng.random() * 1e-9),
        "huge": lambda: float(rng.integers(1, 6)) * 2.0**40,
    }[kind]
    return tuple((u, v, draw()) for u, v in sorted(chosen))


def cases() -> list[Case]:
    """All cases; the same at every call."""
    rng = np.random.default_rng(17)
    pj = (("message", 5.0), ("router", 1.0), ("link_x", 3.0), ("link_y", 4.2))

    def given(k: int, symmetric: bool) -> tuple[tuple[float, ...], ...]:
        d = rng.integers(1, 9, (k, k)).astype(float)
        np.fill_diagonal(d, 0.0)
        return tuple(map(tuple, np.maximum(d, d.T).tolist() if symmetric else d.tolist()))

    def flags(n: int) -> frozenset[int]:
        return frozenset(int(u) for u in range(n) if u % 4 != 3)

    return [
        Case("line", 4, (1, 4), _edges(rng, 4, 4)),
        Case("mesh", 5, (2, 3), _edges(rng, 5, 6)),
        Case("spare", 3, (2, 3), _edges(rng, 3, 2), link=0.7),
        Case("parts of weights", 4, (2, 2), _edges(rng, 4, 5, "parts")),
        Case("tiny weights", 4, (1, 4), _edges(rng, 4, 5, "tiny")),
        Case("huge weights", 4, (2, 2), _edges(rng, 4, 5, "huge")),
        Case("torus", 4, (2, 4), _edges(rng, 4, 5), torus=True),
        Case("chips", 4, (2, 4), _edges(rng, 4, 5), columns_per_chip=2, crossing=3.0),
        Case("dead core", 4, (2, 3), _edges(rng, 4, 5), dead_cores=(4,)),
        Case("dead links", 4, (2, 3), _edges(rng, 4, 5), dead_links=((1, 4), (4, 1), (0, 1), (1, 0))),
        Case("matrix", 4, (1, 4), _edges(rng, 4, 5), matrix=given(4, True)),
        Case("one-way matrix", 4, (1, 5), _edges(rng, 4, 5, "parts"), matrix=given(5, False)),
        Case("pins", 5, (2, 3), _edges(rng, 5, 6), limits=(("pin", (0,), (4,)), ("region", (1, 2), (0, 1, 2)))),
        Case("two per core", 6, (2, 2), _edges(rng, 6, 8), per=2),
        Case("two per core, parts", 5, (2, 2), _edges(rng, 5, 8, "parts"), per=2),
        Case("loose", 6, (2, 3), _edges(rng, 6, 8), per=3),
        Case("apart", 5, (1, 3), _edges(rng, 5, 7), per=2, limits=(("apart", (0, 1), ()), ("forbid", (2,), (1,)))),
        Case("cut", 7, (2, 2), _edges(rng, 7, 10), "cut", per=3),
        Case("cut, tiny", 5, (1, 3), _edges(rng, 5, 7, "tiny"), "cut", per=2),
        Case("energy", 5, (2, 3), _edges(rng, 5, 6), "energy", energy=pj),
        Case("energy, several", 5, (2, 2), _edges(rng, 5, 7, "parts"), "energy", per=2, energy=pj),
        Case("trees", 5, (2, 3), _edges(rng, 5, 9), "multicast-hops", multicast=flags(5)),
        Case("trees, several", 6, (2, 2), _edges(rng, 6, 14), "multicast-hops", per=2, multicast=flags(6)),
        Case("trees, energy", 5, (2, 2), _edges(rng, 5, 9, "parts"), "energy", per=2, multicast=flags(5), energy=pj),
        Case("trees, matrix", 5, (1, 4), _edges(rng, 5, 9), "multicast-hops", per=2, multicast=flags(5), matrix=given(4, False)),
        Case("connectivity", 6, (2, 2), _edges(rng, 6, 14), "connectivity", per=2),
        Case("connectivity, parts", 6, (1, 3), _edges(rng, 6, 14, "parts"), "connectivity", per=3, multicast=flags(6)),
        Case("max-link", 5, (2, 3), _edges(rng, 5, 6), "max-link"),
        Case("max-link, trees", 5, (2, 2), _edges(rng, 5, 9), "max-link", per=2, multicast=flags(5)),
        Case("max-link, parts", 5, (2, 2), _edges(rng, 5, 8, "parts"), "max-link", per=2),
        Case("reward", 5, (2, 3), _edges(rng, 5, 6), "reward"),
        Case("reward, trees", 5, (2, 3), _edges(rng, 5, 9), "reward", multicast=flags(5)),
        Case("reward, several", 5, (2, 2), _edges(rng, 5, 8, "parts"), "reward", per=2),
        Case("tied", 6, (2, 2), _edges(rng, 6, 9), per=3, limits=(("together", (0, 1), ()), ("together", (4, 1), ()))),
        Case("tied, cut", 6, (1, 3), _edges(rng, 6, 9, "parts"), "cut", per=3, limits=(("together", (0, 5), ()),)),
        Case("tied, connectivity", 6, (2, 2), _edges(rng, 6, 14), "connectivity", per=2, limits=(("together", (1, 2), ()),)),
        Case("tied, rates", 5, (1, 3), ((0, 1, 1.0), (0, 2, 1.0), (0, 3, 1.0), (4, 0, 2.0), (4, 3, 2.0)), "connectivity",
             per=2, limits=(("together", (1, 2), ()), ("together", (0, 3), ()))),
        Case("tied, trees", 6, (2, 2), _edges(rng, 6, 14, "parts"), "multicast-hops", per=3, multicast=flags(6),
             limits=(("together", (0, 2), ()),)),
        Case("placed", 6, (2, 2), _edges(rng, 6, 10), per=2, parts=(0, 1, 1, 2, 3, 0)),
        Case("placed, parts", 6, (2, 3), _edges(rng, 6, 10, "parts"), per=3, parts=(0, 5, 5, 2, 0, 0), dead_cores=(1,)),
        Case("placed, tiny", 5, (1, 4), _edges(rng, 5, 8, "tiny"), "cut", per=2, parts=(0, 1, 1, 2, 3)),
        Case("step time", 6, (2, 2), _edges(rng, 6, 18), "step-time", per=4, multicast=flags(6),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 1)),
        Case("step time, serial", 6, (1, 3), _edges(rng, 6, 16, "parts"), "step-time", per=6, multicast=frozenset(range(6)),
             times=(0.5, 0, 0, 2, 3.7, 1, 0, 0, 0)),
        Case("step time, torus", 6, (1, 4), _edges(rng, 6, 20), "step-time", per=2, multicast=frozenset(range(6)), torus=True,
             times=(0, 1, 0, 5, 1, 0, 2, 3, 1)),
        Case("step under hops", 6, (2, 2), _edges(rng, 6, 12), "step-time", per=6, multicast=flags(6),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 1), ceilings=(("hops", 20.5),)),
        Case("hops under step", 6, (1, 3), _edges(rng, 6, 14), "hops", per=6, multicast=flags(6),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 0), ceilings=(("step-time", 210.5),)),
        Case("cut under step", 6, (2, 2), _edges(rng, 6, 14), "cut", per=6, times=(1, 2, 1, 3, 4, 1, 1, 7, 1),
             ceilings=(("step-time", 95.5),)),
        Case("connectivity under step", 6, (2, 2), _edges(rng, 6, 14), "connectivity", per=6, multicast=frozenset(range(6)),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 1), ceilings=(("step-time", 127.5),)),
        Case("trees under step", 6, (1, 4), _edges(rng, 6, 14, "parts"), "multicast-hops", per=6, multicast=flags(6),
             times=(0.5, 0, 0, 2, 3.7, 1, 0, 0, 1), ceilings=(("step-time", 58.6),)),
        Case("step under cut", 6, (2, 2), _edges(rng, 6, 9), "step-time", per=6, multicast=flags(6),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 1), ceilings=(("cut", 3.5),)),
        Case("step under trees", 6, (1, 3), _edges(rng, 6, 9), "step-time", per=6, multicast=flags(6),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 0), ceilings=(("multicast-hops", 5.5),)),
        Case("step energy", 6, (2, 2), _edges(rng, 6, 16), "step-energy", per=6, multicast=flags(6),
             times=(1, 2, 1, 3, 4, 1, 1, 7, 1), draw=(2, 1, 1, 2, 3, 0.5),
             energy=(("message", 7.0), ("link_x", 1.0), ("link_y", 2.0))),
        Case("energy times time", 6, (1, 3), _edges(rng, 6, 14, "parts"), "energy-delay", per=6, multicast=frozenset(range(6)),
             times=(0.5, 0, 0, 2, 3.7, 1, 0, 0, 0), draw=(0.3, 0, 0, 0, 0, 0), energy=(("router", 3.0),)),
        Case("step energy, several", 6, (1, 4), _edges(rng, 6, 16), "step-energy", per=2, columns_per_chip=2,
             times=(1, 2, 1, 3, 4, 1, 1, 7, 1), draw=(0, 5, 1, 0, 0, 1), energy=(("message", 2.5), ("crossing", 4.0))),
        Case("energy times time, loose", 6, (2, 2), _edges(rng, 6, 18), "energy-delay", per=6,
             times=(1, 1, 1, 3, 2, 1, 1, 0, 1), draw=(1, 1, 1, 1, 1, 1), energy=(("router", 1.0),)),
    ]  # fmt: skip
