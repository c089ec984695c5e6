"""The step time in exact models, for CP-SAT and MIP solvers.

u, v are nodes, p, q cores, m messages with source s_m and targets T_m (a
multicast row, or one edge of any other row), l links. ``goes[m,q]``: m has a target on q; ``any[m,Q]``: on one of the cores Q,
where routers copy messages. ``more[u,p]``: ns that the copies of u's messages beyond each one's first take on the sending side
of p, where u is there; ``carried[u,l]``: ns that u's messages are on link l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.common.nets import Nets, nets_of
from nmsolve.hw.step_time import StepCosts, fixed_times, step_costs
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.joint.links import route_groups
from nmsolve.solvers.mapping.joint.problem import JointProblem
from nmsolve.solvers.search.rows import Rows
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT, Scale, fair_unit, to_whole, whole_factor


@dataclass(frozen=True, eq=False)
class StepData:
    """The problem in whole numbers, ``scale`` per ns: what nodes do wherever they are, (n,) ``own`` and ``heard``; of every
    message (M,) what a copy takes its sender, its taker and a link; the barrier.
    """

    problem: MappingProblem
    nets: Nets
    own: IntArray
    heard: IntArray
    sent: IntArray
    taken: IntArray
    link: IntArray
    barrier: int
    aside: bool
    shared: bool
    scale: Scale

    def targets(self, m: int) -> list[int]:
        """Return the targets of a message."""
        out: list[int] = self.nets.pins[self.nets.pin_ptr[m] : self.nets.pin_ptr[m + 1]].tolist()
        return out


def step_data(problem: MappingProblem) -> StepData:
    """Return the data: rounded down where the numbers are not whole after scaling, so that the model never costs too much."""
    costs: StepCosts = step_costs(problem.machine)
    nets = nets_of(problem.graph)
    parts = [
        *fixed_times(problem.graph, costs),
        *(nets.rate * c for c in (costs.sent, costs.taken, costs.link)),
        np.array([costs.barrier]),
    ]
    values = np.concatenate(parts)
    factor, exact = whole_factor(values, OBJECTIVE_LIMIT / (problem.cores * max(1, len(values))))
    own, heard, sent, taken, link, barrier = (to_whole(part, factor, exact) for part in parts)
    scale = Scale(factor, exact, False)
    return StepData(
        problem, nets, own, heard, sent, taken, link, int(barrier[0]), costs.aside, costs.shared, scale
    )


def measure(rows: Rows, problem: MappingProblem, x: list[list[Any]]) -> tuple[Any, Scale, float]:
    """State what a step takes with nodes at ``x[u][p]``: the time in ``unit``, the scale of its whole numbers, ``unit``."""
    data = step_data(problem)
    unit = fair_unit(float(max(data.own.max(), data.heard.max(), 1)) / data.scale.factor)
    by = data.scale.factor / unit
    most = int(data.own.sum() + data.heard.sum() + problem.cores * (data.sent + data.taken + data.link).sum())
    step = rows.amounts("step", (0,), 0, rows.per(most, by))[0]
    goes = _goes(rows, data, x)
    for busy in (*_cores(rows, data, x, goes, by), *_links(rows, data, x, goes, by)):
        rows.rule("no_longer")
        rows.add(step >= busy)
    return step + rows.per(data.barrier, by), data.scale, unit


def _goes(rows: Rows, data: StepData, x: list[list[Any]]) -> list[list[Any]]:
    """``goes[m,q] >= x[t,q]`` for every target t, ``sum_q goes[m,q] >= 1``; with one target it is ``x[t,q]`` itself."""
    rows.rule("targets_there")
    many, cores = range(len(data.nets.rate)), range(data.problem.cores)
    several = [m for m in many if len(data.targets(m)) > 1]
    var = rows.binary("goes", [(m, q) for m in several for q in cores], implied=True)
    for m in several:
        for q in cores:
            for t in data.targets(m):
                rows.implies(x[t][q], var[m, q])
        rows.add(rows.total(var[m, q] for q in cores) >= 1)
    return [[var[m, q] for q in cores] if (m, 0) in var else x[data.targets(m)[0]] for m in many]


def _cores(rows: Rows, data: StepData, x: list[list[Any]], goes: list[list[Any]], by: float) -> list[Any]:
    """``sum_u (own_u + first copies) x[u,p] + sum_u more[u,p]`` and ``sum_v heard_v x[v,p] + sum_m taken_m goes[m,p]``, or both
    together; ``more[u,p] >= sum_m sent_m (sum_q goes[m,q] - 1)`` where ``x[u,p] = 1``.
    """
    n, cores, many = data.problem.n, range(data.problem.cores), range(len(data.nets.rate))
    own = data.own + np.bincount(data.nets.source, data.sent, n).astype(np.int64)
    further: dict[int, list[int]] = {}
    for m in many:
        if len(data.targets(m)) > 1 and data.sent[m] > 0:
            further.setdefault(int(data.nets.source[m]), []).append(m)
    most = {
        u: sum(int(data.sent[m]) * (min(len(data.targets(m)), len(cores)) - 1) for m in ms)
        for u, ms in further.items()
    }
    more = rows.amounts(
        "more", [(u, p) for u in further for p in cores], 0, rows.per(max(most.values(), default=0), by)
    )
    rows.rule("further_copies")
    for u, ms in further.items():
        copies = rows.dot(
            np.repeat(rows.per(data.sent[ms], by), len(cores)), [goes[m][q] for m in ms for q in cores]
        ) - rows.per(int(data.sent[ms].sum()), by)
        for p in cores:
            rows.add_if(x[u][p], copies, more[u, p], rows.per(most[u], by))
        rows.add(rows.total(more[u, p] for p in cores) >= copies)
    out = []
    for p in cores:
        here = [xs[p] for xs in x]
        sends = rows.dot(rows.per(own, by), here) + rows.total(more[u, p] for u in further)
        takes = rows.dot(rows.per(data.heard, by), here) + rows.dot(
            rows.per(data.taken, by), [goes[m][p] for m in many]
        )
        out += [sends, takes] if data.aside else [sends + takes]
    return out


def _links(rows: Rows, data: StepData, x: list[list[Any]], goes: list[list[Any]], by: float) -> list[Any]:
    """``sum_u carried[u,l]``; for every group (S, Q) of senders and receivers whose routes take l, where u is on a core of S:
    ``carried[u,l] >= sum_m link_m sum_{q in Q} goes[m,q]``. Where routers copy messages, one of several targets is on l once:
    ``any[m,Q] >= goes[m,q]`` takes the place of its sum.
    """
    if not data.link.any():
        return []
    rows.rule("over_links")
    of: dict[int, list[int]] = {}
    for m in np.flatnonzero(data.link).tolist():
        of.setdefault(int(data.nets.source[m]), []).append(m)
    several = {m for m in range(len(data.nets.rate)) if data.shared and len(data.targets(m)) > 1}
    either: dict[tuple[int, tuple[int, ...]], Any] = {}

    def copies(m: int, receivers: tuple[int, ...]) -> list[Any]:
        """What message m has on a link that leads to these receivers, as a sum."""
        if m not in several or len(receivers) == 1:
            return [goes[m][q] for q in receivers]
        if (m, receivers) not in either:
            found = rows.binary(f"any_{m}_{len(either)}", [0], implied=True)[0]
            for q in receivers:
                rows.implies(goes[m][q], found)
            either[m, receivers] = found
        return [either[m, receivers]]

    out = []
    for k, groups in enumerate(route_groups(JointProblem(data.problem))):
        own = []
        for g, (senders, receivers) in enumerate(groups):
            high = {
                u: sum(
                    int(data.link[m]) * (1 if m in several else min(len(data.targets(m)), len(receivers)))
                    for m in ms
                )
                for u, ms in of.items()
            }
            carried = rows.amounts(f"carried_{k}_{g}", list(of), 0, rows.per(max(high.values()), by))
            for u, ms in of.items():
                parts = [copies(m, receivers) for m in ms]
                load = rows.dot(
                    np.repeat(rows.per(data.link[ms], by), [len(part) for part in parts]),
                    [v for part in parts for v in part],
                )
                away = 1 - rows.total(x[u][p] for p in senders)
                rows.add(carried[u] >= load - rows.per(high[u], by) * away)
            own += list(carried.values())
        if own:
            out.append(rows.total(own))
    return out
