"""Messages, links and routes as whole numbers: one input for both solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmsolve.hw.energy import step_value
from nmsolve.hw.routes import route
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT, Scale, to_whole, whole_factor

#: A route rule: a message from one of these cores to one of those takes the link.
Group = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class LinkData:
    """Whole-number rates (M,), and for every routed objective the cost of links (L,), of a remote core, and the scale."""

    joint: JointProblem
    rate: IntArray
    cost: dict[str, IntArray]
    step: dict[str, int]
    scale: dict[str, Scale]

    @property
    def problem(self) -> MappingProblem:
        """The mapping part."""
        return self.joint.mapping


def link_data(problem: MappingProblem) -> LinkData:
    """Return data of the routed objectives among the objective and the ceilings of ``problem``."""
    joint = JointProblem(problem)
    names = [k for k in dict.fromkeys([problem.objective, *(k for k, _ in problem.ceilings)]) if k in ROUTED]
    many, links = len(joint.messages), len(joint.link)
    cost: dict[str, IntArray] = {}
    step: dict[str, int] = {}
    factors: dict[str, tuple[float, bool]] = {}
    for name in names:
        if name == "max-link":
            factors[name] = (1.0, True)
            continue
        once = step_value(problem.machine, OBJECTIVES[name].quantity)
        values = np.append(joint.link_cost(name), once)
        factors[name] = whole_factor(values, 2.0**20)
        whole = to_whole(values, *factors[name])
        cost[name], step[name] = whole[:-1], int(whole[-1])
    largest = max([int(c.max(initial=1)) for c in cost.values()], default=1)
    wf, wex = whole_factor(joint.rate, OBJECTIVE_LIMIT / (largest * max(1, links) * max(1, many)))
    whole_links = problem.graph.integral
    scale = {
        name: Scale(f * wf, ex and wex, whole_links and name != "energy" and f == 1.0 and ex)
        for name, (f, ex) in factors.items()
    }
    return LinkData(joint, to_whole(joint.rate, wf, wex), cost, step, scale)


def route_groups(joint: JointProblem) -> list[list[Group]]:
    """For every link the groups (cores that send, cores that receive) whose given routes take it.

    Sending cores with equal receivers are put together: on a mesh with XY routes each link has one group.
    """
    machine = joint.mapping.machine
    usable = np.flatnonzero(machine.usable).tolist()
    number = {int(v): k for k, v in enumerate(joint.link)}
    taken: list[dict[int, list[int]]] = [{} for _ in joint.link]
    for p in usable:
        for q in usable:
            for v in route(machine, p, q) if p != q else ():
                taken[number[v]].setdefault(p, []).append(q)
    out = []
    for by_sender in taken:
        groups: dict[tuple[int, ...], list[int]] = {}
        for p, qs in by_sender.items():
            groups.setdefault(tuple(qs), []).append(p)
        out.append([(tuple(ps), qs) for qs, ps in groups.items()])
    return out
