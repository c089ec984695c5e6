"""M1.4: a processor for every community, by priority, with fall-through where one does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmsolve.heuristics.mapping.published.communities.count import communities, seat_loose
from nmsolve.heuristics.mapping.published.m2.topology import Topology, topology_of
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, Int32Array, IntArray


def available(problem: MappingProblem) -> IntArray:
    """Return (chips, R) int64: what the healthy, free cores of every chip hold together (M1.4's available cores)."""
    machine = problem.machine
    out = np.zeros((machine.n_chips, problem.capacity.shape[1]), np.int64)
    np.add.at(out, machine.chip_of, problem.capacity)
    return out


@dataclass(frozen=True)
class Parameters:
    """M1.3: what is known of every community.

    Attributes
    ----------
    groups : one vertex per community; connections carry the summed absolute weights between two linked communities
    links : (connections,) float64, interactions (pairs of nodes with traffic) behind every connection of ``groups``
    nodes, linked_nodes : (k,) int64, nodes of the community, and of all communities that it is linked to
    """

    groups: Topology
    links: FloatArray
    nodes: IntArray
    linked_nodes: IntArray

    def weights(self, mean: bool = False) -> FloatArray:
        """Return (connections,) connection weight of two linked communities: sum or mean of the weights between their nodes."""
        return self.groups.weights / np.maximum(self.links, 1) if mean else self.groups.weights

    def priority(self, mean: bool = False) -> FloatArray:
        """(k,) ranks that grow with a community's connection weights, added up over those it is linked to; of equal ones the
        community whose linked communities have more nodes comes first."""
        order = np.lexsort((self.linked_nodes, _per_vertex(self.groups, self.weights(mean))))
        out = np.empty(len(order))
        out[order] = np.arange(len(order))
        return out


def parameters(top: Topology, group: Int32Array, number: int) -> Parameters:
    """M1.3: the parameters of the communities ``group`` (n,), numbers below ``number``."""
    ones = Topology(top.indptr, top.indices, (top.weights > 0).astype(np.float64), top.sizes, top.kind)
    groups, counted = top.contracted(group, number), ones.contracted(group, number)
    nodes = np.bincount(group, minlength=number)
    linked = _per_vertex(groups, nodes[groups.indices].astype(np.float64)).astype(np.int64)
    return Parameters(groups, counted.weights, nodes, linked)


def _per_vertex(groups: Topology, values: FloatArray) -> FloatArray:
    """Return (k,) sums of what is said per connection."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[groups.indptr[1:]] - total[groups.indptr[:-1]])


def processor_order(machine: Machine) -> IntArray:
    """Return (chips,) chip numbers by distance from the middle of the board (the source leaves the order open)."""
    row, col = np.divmod(np.arange(machine.n_chips), machine.chips[1])
    away = np.abs(row - (machine.chips[0] - 1) / 2) + np.abs(col - (machine.chips[1] - 1) / 2)
    return np.argsort(away, kind="stable")


def assign_processors(priority: FloatArray, load: IntArray, room: IntArray, order: IntArray) -> IntArray:
    """M1.4: processors in ``order`` each take the unassigned community of highest priority that fits.

    So a community too large for what is available on a processor is passed over in favour of the next one
    that fits, and waits for a later processor.

    Parameters
    ----------
    priority : (k,) float64, grows with connection weight; load : (k, R) int64; room : (chips, R) int64

    Returns
    -------
    (k,) int64 chip of every community, -1 for those that fit on none of those left.
    """
    chip = np.full(len(priority), -1, np.int64)
    waiting = np.argsort(-priority, kind="stable").tolist()
    for p in order.tolist():
        for k in waiting:
            if bool((load[k] <= room[p]).all()):
                chip[k] = p
                waiting.remove(k)
                break
    return chip


def communities_to_chips(
    problem: MappingProblem, seed: int, poll: Callable[[], None] = lambda: None
) -> list[IntArray]:
    """M1.3 and M1.4: the chip of every node, (n,) int64; by summed connection weights, then by mean ones if that differs.

    Every chip's total load is within what its usable cores hold together wherever that can be reached by
    giving the nodes of communities that fit nowhere to the most connected chip with room; packing into
    cores is not checked. Nodes that may not be on their community's chip (pin, region, forbid) go to the
    most connected chip they may be on.

    Parameters
    ----------
    seed : of the random orders; poll : called now and then, may raise to stop
    """
    top = topology_of(problem)
    machine = problem.machine
    room = available(problem)
    rng = np.random.default_rng(seed)
    group = communities(top, machine.n_chips, room.max(axis=0, initial=0), rng, poll)
    known = parameters(top, group, machine.n_chips)
    order, allowed = processor_order(machine), _allowed_chips(problem)[problem.domain_of]
    out: list[IntArray] = []
    for mean in (False, True):
        chip = assign_processors(known.priority(mean), known.groups.sizes, room, order)[group]
        _settle(top, chip, allowed, room)
        if not any(np.array_equal(chip, other) for other in out):
            out.append(chip)
    return out


def _allowed_chips(problem: MappingProblem) -> IntArray:
    """Return (D, chips) int64: cores of every chip that each domain allows."""
    out = np.zeros((len(problem.domains), problem.machine.n_chips), np.int64)
    np.add.at(out.T, problem.machine.chip_of, problem.domains.T.astype(np.int64))
    return out


def _settle(top: Topology, chip: IntArray, allowed: IntArray, room: IntArray) -> None:
    """Give every node that has no chip, or one it may not be on, to the most connected chip with room."""
    chip[(chip >= 0) & (allowed[np.arange(len(chip)), chip] == 0)] = -1
    load = np.zeros(room.shape, np.int64)
    seated = chip >= 0
    np.add.at(load, chip[seated], top.sizes[seated])
    seat_loose(top, chip, load, room, allowed > 0)
