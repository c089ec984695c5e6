"""What a mapping problem may have that not every engine takes (:mod:`nmsolve.model.features`)."""

from __future__ import annotations

from nmsolve.model.features import Feature, takes_of
from nmsolve.model.graph import MOST_EDGES, LogicGraph
from nmsolve.model.mapping.problem import MappingProblem

#: Bytes per connection and per node at the peak of a search in memory, the graph included; and per connection where only
#: the engine ``external`` searches.
PER_EDGE, PER_NODE, PER_EDGE_LARGE = 150, 500, 50


def loaded_bytes(graph: LogicGraph) -> int:
    """Return bytes that a search takes with the whole graph in memory, the graph included."""
    large = graph.m > MOST_EDGES
    return (PER_EDGE_LARGE if large else PER_EDGE) * graph.m + PER_NODE * graph.n


def charges(problem: MappingProblem) -> str:
    """Return what the objective charges, as its record says; ``pairs`` instead of ``trees`` where no message is multicast."""
    kind = problem.aim.charges
    return "pairs" if kind == "trees" and not problem.graph.multicast.any() else kind


def _stored(problem: MappingProblem) -> str:
    need = loaded_bytes(problem.graph) / 2**30
    return f"graphs on disk (in memory this one would take about {need:.2g} GiB, see --memory)"


def _pays(kind: str, words: str) -> Feature[MappingProblem]:
    return Feature(lambda p: f"objective {p.objective}, which {words}", lambda p: charges(p) == kind, True)


_TREES = "charges every message by its route tree"
_NO_SUM = "is not a sum over pairs or messages"
FEATURES: dict[str, Feature[MappingProblem]] = {
    "disk": Feature(_stored, lambda p: p.graph.on_disk, True),
    "budget": Feature("a migration budget", lambda p: p.limits_moves, True),
    "ceilings": Feature("ceilings on other objectives", lambda p: bool(p.ceilings), True),
    "timed": Feature("a ceiling on the step time", lambda p: p.aim.charges not in ("time", "power") and p.times_steps, True),
    "axons": Feature("limits on axon tables (axons_in, axons_out)", lambda p: p.axons is not None, True),
    "kinds": Feature("limits on kinds per core (kinds_per_core)", lambda p: p.kinds is not None, True),
    "tables": Feature("limits on routing tables (table_entries)", lambda p: p.table_limit is not None, True),
    "pairs": _pays("pairs", "charges edge by edge, not by route tree"),
    "trees": _pays("trees", _TREES),
    "reach": _pays("reach", _TREES),
    "load": _pays("load", _NO_SUM),
    "time": _pays("time", _NO_SUM),
    "power": _pays("power", _NO_SUM),
    "reward": _pays("reward", _NO_SUM),
    "own": _pays("own", _NO_SUM),
    "single": Feature("one node per core, which has dedicated engines", lambda p: p.one_per_core),
    "several": Feature("several nodes per core", lambda p: p.n > 1 and not p.one_per_core),
    "lone": Feature("networks of fewer than two nodes", lambda p: p.n < 2),
    "torus": Feature("boards with wrap-around links (a torus)", lambda p: p.machine.torus),
    "matrix": Feature("machines given by a distance matrix", lambda p: p.machine.distance_matrix is not None),
    "dead": Feature("dead links", lambda p: bool(p.machine.faulty_links)),
    "chip": Feature("machines with a single chip", lambda p: p.machine.n_chips < 2),
    "unlike": Feature("cores of different sizes", lambda p: not p.alike),
    "mixed": Feature("graphs that mix multicast and unicast messages", lambda p: not p.graph.multicast.all()),
    "apart": Feature("'apart' constraints", lambda p: any(c.kind == "apart" for c in p.constraints)),
    "constraints": Feature(lambda p: f"side constraints such as {p.constraints[0].kind!r}", lambda p: bool(p.constraints)),
    "free": Feature("problems without a migration budget", lambda p: p.migration is None),
}  # fmt: skip

#: Every objective: for engines that only look for mappings and leave the score to the evaluator.
ANY = "pairs trees reach load time power reward own"
#: Limits that a bound may ignore: without them there are only more mappings.
LIMITS = "budget ceilings timed axons kinds tables"
#: ``takes(cases, *limits)``: which mapping problems an engine takes.
takes = takes_of(FEATURES)
