"""Generated problems, by number: those that the allocation is fitted to, and those that are held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit

#: Seeds of training graphs begin here; those of held-out graphs at HELD_OUT.
TRAINED, HELD_OUT = 1000, 100
#: Family that is never trained on.
UNSEEN = "mesh-rnd"
#: A core holds at most this part more than its share.
BALANCE = 0.03

_ALONE = ("mesh-geo", "mesh-comm", "mesh-layered", "layered")
_SIDES = (8, 9, 10, 12, 14, 16, 20, 24, 32)
_SHARED = ("snn", "reservoir", "microcircuit", "mesh-geo", "mesh-comm", "mesh-layered")
_BOARDS = ("mesh:4x4", "mesh:4x4", "mesh:6x6", "mesh:8x8", "mesh:4x4,2x2", "mesh:5x3")


@dataclass(frozen=True)
class Instance:
    """A generated problem.

    Attributes
    ----------
    family, parameters : kind of :func:`nmsolve.model.generators.generate`, and its parameters without the seed
    seed : of the graph
    board : machine
    objective : what is minimised
    alone : a node has a core of its own
    """

    family: str
    parameters: Mapping[str, float]
    seed: int
    board: str
    objective: str
    alone: bool

    @property
    def name(self) -> str:
        """A name that no other instance has."""
        sizes = " ".join(f"{key}={value:g}" for key, value in self.parameters.items())
        room = "alone" if self.alone else "shared"
        return f"{self.family} {sizes} seed={self.seed} {self.board} {self.objective} {room}"

    def problem(self) -> MappingProblem:
        """Return the problem."""
        graph = generate(self.family, seed=self.seed, **self.parameters)
        machine = load_machine(self.board)
        limit = 1 if self.alone else default_node_limit(graph, machine, BALANCE)
        return MappingProblem(graph, machine, self.objective, node_limit=limit)


def of_family(family: str, seed: int, alone: bool) -> Instance:
    """Return a held-out instance in hops of a family of graphs of both kinds (``mesh-*``)."""
    return replace(_drawn(np.random.default_rng([18, seed, alone]), seed, family, alone), objective="hops")


def training(number: int) -> Instance:
    """Return instance ``number`` >= 0 of those that the allocation is fitted to."""
    return _drawn(np.random.default_rng([16, number]), TRAINED + number, None)


def held_out(number: int) -> Instance:
    """Return instance ``number`` >= 0 of those that nothing is fitted to; every fifth is of the family :data:`UNSEEN`."""
    family = UNSEEN if number % 5 == 4 else None
    return _drawn(np.random.default_rng([17, number]), HELD_OUT + number, family)


def _drawn(rng: np.random.Generator, seed: int, family: str | None, alone: bool | None = None) -> Instance:
    """Draw an instance: 45 % with a core for every node, unless ``alone`` says so."""
    alone = rng.random() < 0.45 if alone is None else alone
    family = family or str(rng.choice(_ALONE if alone else _SHARED))
    if alone:
        side = int(rng.choice(_SIDES[:-1] if family == "mesh-layered" else _SIDES))
        side = {9: 8, 10: 8, 12: 16, 14: 16, 20: 16, 24: 32}.get(side, side) if family == "layered" else side
        parameters = {"exponent": 2.0 * np.log2(side)} if family == "layered" else {"nodes": float(side**2)}
        objective = str(rng.choice(("hops", "max-link", "reward"), p=(0.8, 0.1, 0.1)))
        if family == "layered":
            parameters["fan"] = float(rng.choice((2, 4, 8)))
        return Instance(family, _whole(parameters), seed, f"mesh:{side}x{side}", objective, True)
    parameters = _shared(rng, family)
    board = str(rng.choice(_BOARDS))
    nets = family in ("snn", "reservoir", "microcircuit") and rng.random() < 0.45
    if nets:
        objective = str(rng.choice(("multicast-hops", "connectivity")))
        parameters |= {"directed": 1} if family == "snn" else {}
    else:
        objective = str(rng.choice(("hops", "cut", "max-link"), p=(0.65, 0.25, 0.1)))
        parameters |= {"directed": 0} if family == "snn" else {}
    return Instance(family, _whole(parameters), seed, board, objective, False)


def _shared(rng: np.random.Generator, family: str) -> dict[str, float]:
    """Draw the parameters of a graph whose nodes share cores."""
    nodes = float(round(2 ** rng.uniform(7, 11.5)))
    if family == "snn":
        return {"nodes": nodes, "synapses": nodes * int(rng.integers(8, 30)), "layers": 4, "sigma": 0.2}
    if family == "reservoir":
        return {"nodes": nodes, "fan": float(rng.integers(8, 30)), "sigma": 0.1}
    if family == "microcircuit":
        return {"scale": float(rng.choice((0.003, 0.005, 0.008, 0.012)))}
    return {"nodes": nodes}


def _whole(parameters: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters with whole numbers as such."""
    return {k: round(v) if abs(v - round(v)) < 1e-9 else v for k, v in parameters.items()}
