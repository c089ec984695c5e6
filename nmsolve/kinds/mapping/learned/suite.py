"""The graphs that learned parts are compared on, and what a comparison says about one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nmsolve.model.mapping.problem import MappingProblem

#: Families of ``nmsolve generate mesh-*`` that models are trained on; topologies are held out by seed.
TRAINED = ("geo", "comm", "layered")
#: The family that no model has seen.
HELD_OUT = "rnd"
#: First seed of the graphs. Models are trained on seeds from 1000, and nothing is tuned on seeds from here.
FIRST = 100


@dataclass(frozen=True)
class Suite:
    """What a part is compared on.

    Attributes
    ----------
    families : the graphs' families, a part of :data:`TRAINED` and :data:`HELD_OUT`
    graphs : number of graphs of each family
    seeds : every rival runs on every graph with seeds 1 to ``seeds``
    seconds : CPU seconds of a run; None for what the part has been measured with
    first : seed of the first graph
    """

    families: tuple[str, ...] = (*TRAINED, HELD_OUT)
    graphs: int = 5
    seeds: int = 3
    seconds: float | None = None
    first: int = FIRST

    def cases(self) -> Iterator[tuple[str, int]]:
        """Yield (family, seed of the graph)."""
        for family in self.families:
            for graph in range(self.first, self.first + self.graphs):
                yield family, graph


@dataclass(frozen=True)
class Row:
    """One run of a rival beside the run of what it would replace.

    Attributes
    ----------
    setting : size, time and whatever else tells two tables of a part apart, such as ``n = 256, 0.5 s``
    family, graph : of the suite; ``graph`` is the seed of the graph
    seed : of the run
    rival : ``learned``, or an ablation: ``untrained``, ``random``, ``constant``, ``best arm``, ...
    gain : by how much it was better at equal CPU time, as a part of the other's value; below 0 if it was worse
    saved : CPU seconds less than the other needed for the same value, if that was measured
    """

    setting: str
    family: str
    graph: int
    seed: int
    rival: str
    gain: float
    saved: float | None = None


def placement(family: str, nodes: int, graph: int, chips: int = 1) -> MappingProblem:
    """Return a graph of a family for the least square board that has a core for every node.

    ``chips`` times ``chips`` chips; a step from chip to chip then counts as four.
    """
    import math

    from nmsolve.model.generators import generate
    from nmsolve.model.machine import Machine
    from nmsolve.solvers.mapping.api import make_problem

    side = math.ceil(math.sqrt(nodes) / chips)
    machine = Machine("board", (chips, chips), (side, side), crossing_weight=4.0 if chips > 1 else 1.0)
    return make_problem(generate(f"mesh-{family}", nodes=nodes, seed=graph), machine)
