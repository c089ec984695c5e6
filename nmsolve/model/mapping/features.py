"""What a mapping problem may have that not every engine takes (:mod:`nmsolve.model.features`)."""

from __future__ import annotations

from nmsolve.model.features import Feature, takes_of
from nmsolve.model.graph import MOST_EDGES, LogicGraph
from nmsolve.model.mapping.problem import MappingProblem

#: Bytes per connection and per node at the peak of a search in memory, the graph included; and per connection where only
#: the engine ``external`` searches.
PER_EDGE, PER_NODE, PER_EDGE_LARGE = 150, 500, 50


def loaded_bytes(graph: LogicGraph) -> int:
    """Bytes that a search takes with the whole graph in memory, the graph included."""
    large = graph.m > MOST_EDGES
    return (PER_EDGE_LARGE if large else PER_EDGE) * graph.m + PER_NODE * graph.n


def charges(problem: MappingProblem) -> str:
    """What the objective charges, as its record says; ``pairs`` instead of ``trees`` where no message is multicast."""
    kind = problem.aim.charges
    return "pairs" if kind == "trees" and not problem.graph.multicast.any() else kind


def _stored(problem: MappingProblem) -> str:
    need = loaded_bytes(problem.graph) / 2**30
    return f"graph that lies on disk (in memory it would take about {need:.2g} GiB, see --memory)"


def _pays(kind: str, words: str) -> Feature[MappingProblem]:
    return Feature(lambda p: f"objective {p.objective}, which {words}", lambda p: charges(p) == kind, True)


_TREES = "charges messages by their route tree and not every edge on its own"
_NO_SUM = "is no sum over pairs or messages"
FEATURES: dict[str, Feature[MappingProblem]] = {
    "disk": Feature(_stored, lambda p: p.graph.on_disk, True),
    "budget": Feature("migration budget", lambda p: p.limits_moves, True),
    "ceilings": Feature("ceilings on other objectives", lambda p: bool(p.ceilings), True),
    "axons": Feature("limits on axon tables (axons_in, axons_out)", lambda p: p.axons is not None, True),
    "tables": Feature("limit on routers' tables (table_entries)", lambda p: p.table_limit is not None, True),
    "pairs": _pays("pairs", "is paid edge by edge and not by route tree"),
    "trees": _pays("trees", _TREES),
    "reach": _pays("reach", _TREES),
    "load": _pays("load", _NO_SUM),
    "reward": _pays("reward", _NO_SUM),
    "own": _pays("own", _NO_SUM),
    "single": Feature("problems with one node per core, for which there are dedicated engines", lambda p: p.one_per_core),
    "several": Feature("cores with several nodes", lambda p: p.n > 1 and not p.one_per_core),
    "lone": Feature("networks of fewer than two nodes", lambda p: p.n < 2),
    "torus": Feature("boards that wrap round a torus", lambda p: p.machine.torus),
    "matrix": Feature("machines given by a distance matrix", lambda p: p.machine.distance_matrix is not None),
    "dead": Feature("dead links", lambda p: bool(p.machine.faulty_links)),
    "chip": Feature("machines of only one chip", lambda p: p.machine.n_chips < 2),
    "unlike": Feature("cores of different sizes", lambda p: not p.alike),
    "mixed": Feature("graphs of which some messages are multicast and others are not", lambda p: not p.graph.multicast.all()),
    "apart": Feature("nodes that must be apart", lambda p: any(c.kind == "apart" for c in p.constraints)),
    "constraints": Feature(lambda p: f"side constraints such as {p.constraints[0].kind!r}", lambda p: bool(p.constraints)),
    "free": Feature("problems without a migration budget", lambda p: p.migration is None),
}  # fmt: skip

#: Of every objective: handled by engines that only look for mappings and leave the price to the evaluator.
ANY = "pairs trees reach load reward own"
#: What a bound need not look at: without a limit there are only more mappings.
LIMITS = "budget ceilings axons tables"
#: ``takes(cases, *limits)``: which mapping problems an engine takes.
takes = takes_of(FEATURES)
