"""Problems that are refused before a search because their numbers are too large, and scores without figures."""

from __future__ import annotations

from nmsolve.hw.cost import core_distance, machine_distance
from nmsolve.hw.power import draw_of
from nmsolve.hw.step_time import require_step_time
from nmsolve.model.errors import InputError
from nmsolve.model.graph import READERS
from nmsolve.model.machine import LARGEST, Machine
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem


def require_scale(problem: MappingProblem) -> None:
    """Raise if the objective has no values, or some that are beyond what engines calculate with.

    Engines keep weights and distances in 32-bit floats, too, which end at 3.4e38; all traffic over the longest route has to
    stay below 1e30, so that sums of sums do.

    Raises
    ------
    InputError : the machine lacks figures, the graph does not say who sends, two usable cores have no route, a dead link's detour
        has no cost, or traffic times distance is too large
    """
    if problem.times_steps:
        require_step_time(problem.graph, problem.machine)
        if problem.aim.charges == "power":
            draw_of(problem.graph, problem.machine)
        if any(c.kind == "together" for c in problem.constraints):
            raise InputError(
                "the step time counts messages that stay on their core, which nodes kept together have among themselves",
                problem.graph.name, "no 'together' constraints, or another objective",
            )  # fmt: skip
    total = _traffic(problem)
    far = max(1.0, core_distance(problem).farthest)
    if not total * far < LARGEST:
        raise InputError(
            f"{problem.objective} could reach {total * far:.3g} (traffic of {total:.3g} in all over a distance of {far:.3g})",
            problem.graph.name,
            f"less than {LARGEST:.0g}: smaller weights, or another unit",
        )


def _traffic(problem: MappingProblem) -> float:
    """Return all weights and rates together; for a graph on disk no less than that, from the rates alone."""
    graph = problem.graph
    if graph.on_disk:  # the largest weight of a message is its rate, unless it is a multicast
        return float(graph.rate.max(initial=0.0)) * max(1, graph.m)
    return sum(float(rows.weights.sum() + rows.rate.sum()) for rows in graph.blocks(READERS))


def uncomputable(machine: Machine) -> dict[str, str]:
    """Return scores that cannot be computed on this machine, each with the reason.

    With dead links, routes of least energy (latency) go round them, and are arbitrary where a link costs nothing.
    """
    out = {}
    by_energy = tuple(name for name, o in OBJECTIVES.items() if o.distance == "energy" and not o.formula)
    for quantity, names in (("energy", by_energy), ("latency", ("latency-average", "latency-max"))):
        try:
            machine_distance(machine, quantity)
        except InputError as error:
            out.update(dict.fromkeys(names, str(error)))
    return out
