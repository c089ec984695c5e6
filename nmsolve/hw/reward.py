"""The reward of method M1 as an objective: what cores exchange, times a price for prohibited turns (M1.7).

The published reward is ``-(max(cc_left, cc_right) + max(cc_up, cc_down)) * exp(dl_ratio)``; here its negative is minimised,
summed over all cores, because M1 rewards whole layouts (M1.8). Decided where the text is silent:

* ``cc_left`` of a core is the traffic it exchanges with cores to its left, either way, times their distance in columns;
  ``cc_right``, ``cc_up`` and ``cc_down`` are the same, up and down with the distance in rows. So the Manhattan distance of a pair
  is split over the two directions in which the partner lies, and both ends count. M1 puts one logical node on a core; where a
  core holds several, their traffic is added up first, and a multicast message counts once per core it reaches.
* ``dl_ratio`` is the number of directions of turning that are prohibited over the number of channels that multicast messages
  take. The directions are those of the problem's turns, which routes obey, else those of XY: 4, and 2 for a rule with one turn
  per cycle (:meth:`nmsolve.model.turns.TurnSet.directions`). The channels are those of the trees of all flows with several
  remote cores; messages from one core to the same cores are one flow. Without such flows the ratio is 0.
* The text says that users may add terms, one for fault tolerance among them, without a formula. Here ``hops`` is traffic times
  distance, and ``faults`` traffic between cores of one row or column: it has a single shortest route, which one dead link breaks.
  Terms of the user's own are traffic times a price of the two cores (:class:`.reward_terms.OwnTerm`). All these are added to the
  product. As published, there is none.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nmsolve.hw.routing.walk import walked_routes
from nmsolve.model.errors import InputError
from nmsolve.model.graph import Messages
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reward_terms import PUBLISHED, OwnTerm, RewardTerms
from nmsolve.model.routing.flows import Flows, flows_of
from nmsolve.model.routing.routes import Routes
from nmsolve.model.turns import TurnSet, turn_set
from nmsolve.model.types import AnyArray, FloatArray, IntArray

#: Largest exponent that counts: beyond it values would leave the range of numbers and could not be compared.
MOST_RATIO = 500.0


def exchange_loss(machine: Machine, flows: Flows, terms: RewardTerms = PUBLISHED) -> float:
    """Return ``sum over cores of horizontal * max(left, right) + vertical * max(up, down)`` (M1.7).

    ``left`` of a core is the traffic that it exchanges with cores to its left times their distance in columns; the other three
    the same with rows for up and down. On a torus the shorter way round counts, of two equal ones that of growing numbers.
    """
    source, target, rate = _pairs(flows)
    out = 0.0
    for weight, way in zip((terms.horizontal, terms.vertical), _ways(machine, source, target), strict=True):
        up, down = np.zeros(machine.size), np.zeros(machine.size)
        for core, far in ((source, way), (target, -way)):
            up += np.bincount(core, rate * np.maximum(far, 0), machine.size)
            down += np.bincount(core, rate * np.maximum(-far, 0), machine.size)
        out += weight * float(np.maximum(up, down).sum())
    return out


def added_terms(machine: Machine, flows: Flows, terms: RewardTerms) -> float:
    """Return ``hops * traffic times distance in lines + faults * traffic with a single shortest route + own terms``."""
    if terms.hops == terms.faults == 0.0 and not terms.own:
        return 0.0
    source, target, rate = _pairs(flows)
    across, along = _ways(machine, source, target)
    out = terms.hops * float((rate * (np.abs(across) + np.abs(along))).sum())
    out += sum(float(rate @ own_price(term, machine, source, target)) for term in terms.own)
    # half round a ring there are two ways of the same length
    opposite = (machine.torus & (2 * np.abs(across) == machine.cols) & (machine.cols > 2)) | (
        machine.torus & (2 * np.abs(along) == machine.rows) & (machine.rows > 2)
    )
    return out + terms.faults * float(rate[((across == 0) != (along == 0)) & ~opposite].sum())


def own_price(term: OwnTerm, machine: Machine, source: IntArray, target: IntArray) -> FloatArray:
    """Return (k,) what a unit of traffic between (k,) different cores pays by a term of the user's own, times its weight."""
    if term.form == "pairs":
        return np.asarray(term.weight * term.prices[source, target])
    if term.form == "cores":
        return np.asarray(term.weight * (term.prices[source] + term.prices[target]))
    across, along = _ways(machine, source, target)
    lines = np.abs(across) + np.abs(along)
    return np.asarray(term.weight * term.prices[np.clip(lines, 1, len(term.prices)) - 1])


def own_prices(machine: Machine, terms: RewardTerms) -> FloatArray:
    """Return (P, P) what a unit of traffic from core to core pays by all terms of the user's own; (0, 0) if there are none."""
    if not terms.own:
        return np.zeros((0, 0))
    out, cores = np.zeros((machine.size, machine.size)), np.arange(machine.size)
    for source in range(machine.size):
        far = np.delete(cores, source)
        for term in terms.own:
            out[source, far] += own_price(term, machine, np.full(len(far), source), far)
    return out


def own_per_line(machine: Machine, terms: RewardTerms) -> float:
    """Return a part of traffic times distance in lines that all terms of the user's own are at least."""
    prices = own_prices(machine, terms)
    if machine.size < 2 or not prices.size:
        return 0.0
    source, target = np.nonzero(~np.eye(machine.size, dtype=bool))
    across, along = _ways(machine, source, target)
    least = float((prices[source, target] / (np.abs(across) + np.abs(along))).min())
    return least * (1.0 - 8 * np.finfo(float).eps * (1 + len(terms.own)))


def _pairs(flows: Flows) -> tuple[IntArray, IntArray, FloatArray]:
    """Return source, target and rate of every pair of cores that exchange something."""
    size = np.diff(flows.indptr)
    return (
        np.repeat(flows.source, size).astype(np.int64),
        flows.targets.astype(np.int64),
        np.repeat(flows.rate, size),
    )


def _ways(machine: Machine, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray]:
    """Return columns and rows from cores to others; on a ring the shorter way, of two equal ones the growing one."""
    ways = []
    for length, a, b in (
        (machine.cols, source % machine.cols, target % machine.cols),
        (machine.rows, source // machine.cols, target // machine.cols),
    ):
        way = b - a
        if machine.torus and length > 2:
            way = (way + (length - 1) // 2) % length - (length - 1) // 2
        ways.append(way)
    return ways[0], ways[1]


def multicast_channels(flows: Flows, routes: Routes) -> int:
    """Return channels that the trees of multicast flows take, each tree counted."""
    length = np.diff(routes.indptr)
    return int(length[np.diff(flows.indptr) > 1].sum())


def deadlock_factor(directions: float, channels: int, weight: float = 1.0) -> float:
    """``exp(weight * prohibited directions of turning / channels of multicast trees)``, 1 without channels; the exponent counts
    up to 500."""
    return math.exp(min(MOST_RATIO, weight * directions / channels)) if channels else 1.0


def prohibited_directions(machine: Machine, turns: TurnSet | None = None) -> float:
    """Return in how many directions routes must not turn: by ``turns``, else by XY; 0 with dead links, where none is kept."""
    if turns is None and machine.faulty_links:
        return 0.0
    return (turns or turn_set("xy", machine)).directions(machine)


def reward_loss(
    graph: Messages,
    machine: Machine,
    core: AnyArray,
    terms: RewardTerms = PUBLISHED,
    turns: TurnSet | None = None,
) -> float:
    """Return the objective ``reward`` of the mapping ``core`` (n,) on the machine's own routes: M1's reward, negated.

    ``turns`` : what these routes obey, if a rule was asked for

    Raises
    ------
    InputError : a machine given by a distance matrix (it has neither directions nor links), or dead links cut off a flow
    """
    require_board(machine)
    flows = flows_of(graph, core, machine.size)
    loss, added = exchange_loss(machine, flows, terms), added_terms(machine, flows, terms)
    if loss == 0.0 or not flows.multicast:
        return loss + added
    casts = _multicast(flows)
    factor = deadlock_factor(
        prohibited_directions(machine, turns),
        multicast_channels(casts, walked_routes(machine, casts)),
        terms.deadlock,
    )
    return loss * factor + added


def problem_reward(problem: MappingProblem, core: AnyArray) -> float:
    """Return :func:`reward_loss` of a mapping (n,) with the problem's terms and turns."""
    return reward_loss(problem.graph, problem.machine, core, problem.terms, problem.turns)


def reward_lattice(problem: MappingProblem) -> float:
    """1 if the objective ``reward`` only has whole values: whole traffic, no multicast, the terms as published; else 0."""
    plain = replace(problem.terms, deadlock=1.0) == PUBLISHED
    return 1.0 if plain and problem.graph.integral and not problem.graph.multicast.any() else 0.0


def require_board(machine: Machine) -> None:
    """Raise InputError if the machine is given by a distance matrix."""
    if machine.distance_matrix is not None:
        raise InputError(
            "objective reward on a machine given by a distance matrix",
            machine.name,
            "a mesh: only meshes have directions",
        )


def _multicast(flows: Flows) -> Flows:
    """Return the flows with several targets."""
    size = np.diff(flows.indptr)
    many = size > 1
    indptr = np.concatenate([[0], np.cumsum(size[many])])
    return Flows(flows.source[many], indptr, flows.targets[np.repeat(many, size)], flows.rate[many])
