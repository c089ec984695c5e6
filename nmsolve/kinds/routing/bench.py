"""Routing as a benchmark sees it, and its generated suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.kinds.bench import Bench, Checked, Maker, Stated, in_time
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.kinds.routing.statement import Given
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.model.bound import Result
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.routing.routes import ChosenRoutes

#: What one figure can compare: one objective that is not below 0.
OBJECTIVES = ("max-link", "total-link", "turns")
SEED = 1


def state(
    mapping: Path,
    graph: Path | None = None,
    machine: str | None = None,
    chips: str | None = None,
    placement: Path | None = None,
    objective: str = "max-link",
    turns: str = "chosen",
    form: str = "flow",
    table_limit: int | None = None,
    detour: int = 0,
    channels: int = 1,
) -> Stated:
    """Return the problem of ``nmsolve route`` with these options.

    Raises
    ------
    InputError : a wrong file, several objectives, no routes can exist
    """
    from nmsolve.kinds.routing.options import RouteOptions
    from nmsolve.kinds.routing.statement import state_problem, stated_inputs
    from nmsolve.model.routing.stage import RoutingStage
    from nmsolve.solvers.routing.fit import require_routes

    if objective not in OBJECTIVES:
        raise InputError(f"objective {objective!r}", "--objective", "one of " + ", ".join(OBJECTIVES))
    o = RouteOptions(
        mapping, graph, machine, chips, placement, turns=turns, form=form, table_limit=table_limit, detour=detour,
        channels=channels, objective=objective,
    )  # fmt: skip
    given = state_problem(stated_inputs(o))
    problem = given.problem
    require_routes(problem)
    return Stated(
        RoutingStage(problem, objective), problem.content_hash, objective,
        {"flows": problem.flows.count, "cores": problem.machine.size}, partial(_solve, problem), partial(_check, given),
    )  # fmt: skip


def _solve(problem: RoutingProblem, **how: Any) -> Result[ChosenRoutes]:
    """Run ``route``; the events are those of the objective, without a search for routes within the tables before."""
    from nmsolve.solvers.routing.api import route

    result = route(problem, **how)
    last = result.stages.get(problem.objective[0])
    return replace(result, events=() if last is None else last.events)


def _check(given: Given, result: Result[ChosenRoutes], time_left: TimeLeft) -> Checked:
    """Write the routes to a file and check that, as ``nmsolve route`` does."""
    from nmsolve.kinds.routing.kind import KIND

    solution = result.solution
    assert solution is not None
    return in_time(time_left, "routes", lambda: KIND.answer_checks(given, solution, None, result.scores)[0])


def flows(side: int, make: Callable[[int], LogicGraph], **options: Any) -> Maker:
    """Return an instance on a square mesh: node i of the graph, of n, is on core ``i * cores // n``."""

    def instance(path: Path) -> dict[str, Any]:
        from nmsolve.model.files import write_atomic
        from nmsolve.model.formats import save_graph

        graph, file = make(side), path.with_name(f"{path.name}.npz")
        save_graph(graph, file)
        cores = path.with_name(f"{path.name}.cores")
        write_atomic(cores, "".join(f"{i * side**2 // graph.n}\n" for i in range(graph.n)))
        return {"mapping": cores, "graph": file, "machine": f"mesh:{side}x{side}", **options}

    return instance


def _pattern(name: str, side: int) -> LogicGraph:
    """Return one message per step from every core, to where the pattern says (Dally and Towles, 3.2)."""
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.noc import CONFIG_SPIKE, pattern
    from nmsolve.model.graph import LogicGraph

    traffic = pattern(load_machine(f"mesh:{side}x{side}"), name, 1.0, CONFIG_SPIKE)
    away = traffic.source != traffic.targets
    return LogicGraph.from_edges(side**2, traffic.source[away], traffic.targets[away], name=name)


def layered(side: int, seed: int = SEED) -> LogicGraph:
    """Layers of a row of cores each, in random places: neighbouring layers exchange 1 to 10 messages, with probability 0.7."""
    from nmsolve.model.graph import LogicGraph

    rng = np.random.default_rng(seed)
    source, target = [], []
    for a, b in pairwise(rng.permutation(side**2).reshape(side, side)):
        i, j = np.nonzero(rng.random((side, side)) < 0.7)
        source.append(a[i])
        target.append(b[j])
    ends = np.concatenate(source), np.concatenate(target)
    weight = rng.integers(1, 11, len(ends[0]))
    return LogicGraph.from_edges(side**2, *ends, weight.astype(np.float64), name="layered")


def spiking(side: int, seed: int = SEED) -> LogicGraph:
    """Return neurons of a layered spiking network, which multicast."""
    from nmsolve.model.generators import generate

    return generate("snn", seed=seed, nodes=400, synapses=2400, layers=4, directed=1)


ROUTES = {
    "layered-4x4": flows(4, layered),
    "layered-4x4-turns": flows(4, layered, objective="turns"),
    "transpose-8x8": flows(8, partial(_pattern, "transpose")),
    "complement-8x8": flows(8, partial(_pattern, "bit-complement")),
    "tornado-8x8": flows(8, partial(_pattern, "tornado")),
    "layered-8x8": flows(8, layered),
    "layered-8x8-tables": flows(8, layered, form="destination"),
    "layered-8x8-detours": flows(8, layered, detour=2),
    "multicast-4x4": flows(4, spiking),
    "multicast-4x4-trees": flows(4, spiking, form="source"),
    "layered-12x12": flows(12, layered),
}


BENCH = Bench(
    state,
    "solvers.routing.registry:REGISTRY",
    {"routes": ROUTES},
    lambda path: (path / "mapping.json").is_file(),
)
