"""Legal routes for a mapping on a small board, where the best trees of all messages together would close a ring of links.

Each of the turn models that leave no cycle (Glass and Ni 1992), with the turns that are prohibited anyway, is an order of links.
Along links that rise in it the cheapest tree from every link to every set of cores is found exactly (Dreyfus and Wagner 1971,
over links in place of cores). The model whose trees cost least is taken; other routes may cost less still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.hw.routing.dateline import closing_links
from nmsolve.hw.routing.numbering import channel_graph, number_channels
from nmsolve.model.compiled import kernel
from nmsolve.model.turns import one_turn_per_cycle, turn_set
from nmsolve.model.types import BoolArray, FloatArray, IntArray
from nmsolve.solvers.mapping.joint.problem import JointProblem
from nmsolve.solvers.mapping.joint.steiner import refuses_trees


class Climb(NamedTuple):
    """Cheapest trees along rising links.

    States are links just taken (L of them), then cores where a message starts (P). ``cost`` (2^P, L + P) of what is left from
    a state to a bit set of cores, ``follow`` (L + P, L) links that may come next, ``weight`` (L,), ``head`` (L + P,) the core of
    a state.
    """

    cost: FloatArray
    follow: BoolArray
    weight: FloatArray
    head: IntArray


def climbs_of(problem: JointProblem, quantity: str) -> list[Climb]:
    """The tables of every turn model that leaves no cycle here; none on boards too large for tables of trees."""
    machine = problem.mapping.machine
    if refuses_trees(machine) is not None:
        return []
    out = []
    before, after = problem.meeting.T
    inner = ~closing_links(machine)[problem.link]  # rings of a torus are left open
    for model in one_turn_per_cycle():
        allowed = turn_set(model, machine).allowed
        a, b = problem.link[before], problem.link[after]
        ok = problem.may_follow & allowed[problem.ends[before, 1], a % 4, b % 4]
        ok &= inner[before] & inner[after]
        number, ring = number_channels(channel_graph(before[ok], after[ok], np.ones(len(problem.link), bool)))
        if len(ring):
            continue
        follow = np.zeros((len(problem.link) + machine.size, len(problem.link)), bool)
        follow[before[ok], after[ok]] = True
        starts = len(problem.link) + problem.ends[:, 0]
        follow[starts[inner], np.flatnonzero(inner)] = True
        head = np.concatenate([problem.ends[:, 1], np.arange(machine.size)])
        weight = np.ascontiguousarray(problem.link_cost(quantity), np.float64)
        order = np.concatenate([np.argsort(-number), np.arange(len(number), len(head))])
        out.append(Climb(_table(follow, weight, head, order, machine.size), follow, weight, head))
    return out


def climbing_routes(problem: JointProblem, climbs: list[Climb], core: IntArray) -> BoolArray | None:
    """(M, L) links of trees along one of the orders, as cheap as these allow; None if none reaches everything legally."""
    wanted = []
    for message in problem.messages:
        home = int(core[message.source])
        wanted.append((home, sum(1 << p for p in {int(core[t]) for t in message.targets} - {home})))
    priced = []
    for k, climb in enumerate(climbs):
        start = len(climb.weight)
        costs = [float(climb.cost[goals, start + home]) for home, goals in wanted]
        priced.append((float(problem.rate @ np.array(costs)) if costs else 0.0, k))
    for cost, k in sorted(priced):
        if not np.isfinite(cost):
            break
        used = np.zeros((len(wanted), len(problem.link)), bool)
        for m, (home, goals) in enumerate(wanted):
            used[m, _links(climbs[k], goals, len(climbs[k].weight) + home)] = True
        if (
            problem.complaint(core, used) is None
        ):  # a tree along links may enter a core twice: then it is not a tree of cores
            return used
    return None


def _links(climb: Climb, goals: int, state: int) -> list[int]:
    """Links of the tree that the table represents."""
    out, left = [], [(goals, state)]
    while left:
        goals, state = left.pop()
        goals &= ~(1 << int(climb.head[state]))
        if goals == 0:
            continue
        value = climb.cost[goals, state]
        after = np.flatnonzero(climb.follow[state])
        price = climb.weight[after] + climb.cost[goals, after]
        if len(after) and price.min() <= value:
            k = int(after[price.argmin()])
            out.append(k)
            left.append((goals, k))
            continue
        part = (goals - 1) & goals
        while climb.cost[part, state] + climb.cost[goals ^ part, state] > value:
            part = (part - 1) & goals
        left += [(part, state), (goals ^ part, state)]
    return out


@kernel
def _table(
    follow: BoolArray, weight: FloatArray, head: IntArray, order: IntArray, cores: int
) -> FloatArray:  # pragma: no cover - compiled
    """``cost`` of :class:`Climb`; ``order`` of states: those that may come next are before them."""
    cost = np.zeros((1 << cores, len(head)))
    for goals in range(1, 1 << cores):
        for state in order:
            rest = goals & ~(1 << head[state])
            if rest != goals:
                cost[goals, state] = cost[rest, state]
                continue
            best = np.inf
            for k in range(len(weight)):
                if follow[state, k]:
                    best = min(best, weight[k] + cost[goals, k])
            part = (goals - 1) & goals
            while part > goals ^ part:
                best = min(best, cost[part, state] + cost[goals ^ part, state])
                part = (part - 1) & goals
            cost[goals, state] = best
    return cost
