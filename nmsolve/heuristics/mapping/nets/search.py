"""A net state with what a kernel call needs."""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.mapping.axons.state import build_axons
from nmsolve.heuristics.mapping.common.counts import table_sizes
from nmsolve.heuristics.mapping.common.room import room_of
from nmsolve.heuristics.mapping.nets.anneal import STRICT, anneal
from nmsolve.heuristics.mapping.nets.changes import new_ramps
from nmsolve.heuristics.mapping.nets.model import NetState, nets_of, words
from nmsolve.heuristics.mapping.nets.tables import nets_of_pins, reset
from nmsolve.heuristics.rng import new_rng
from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray, frozen, starts


class NetsSearch:
    """A state with everything a kernel call needs."""

    def __init__(self, problem: MappingProblem, core: IntArray, seed: int) -> None:
        self.state, self.rng = build(problem, core), new_rng(seed)
        self.ramps, self.change = new_ramps(self.state), np.zeros(problem.cores)
        self.tally = np.zeros(3, np.int64)

    def anneal(self, heat: float, work: int, price: float = STRICT) -> float:
        """One kernel call; the change of the objective."""
        change: float = anneal(self.state, self.ramps, self.change, heat, work, self.rng, self.tally, price)
        return change

    @property
    def excess(self) -> int:
        """Entries of axon tables that are too many."""
        return int(self.state.axons.excess[0]) if self.state.axons.on else 0


def build(problem: MappingProblem, core: IntArray) -> NetState:
    """Return the state of mapping ``core``, with its tables filled.

    Parameters
    ----------
    problem : with a net objective on a machine whose distance is separable without torus (or connectivity)
    core : (n,) a legal mapping
    """
    nets, machine, distance = nets_of(problem), problem.machine, core_distance(problem)
    n, many = problem.n, len(nets.source)
    in_ptr = starts(np.bincount(nets.pins, minlength=n))
    out_ptr = starts(np.bincount(nets.source, minlength=n))
    size = table_sizes(np.diff(nets.pin_ptr), machine.size)
    base = starts(size)
    tall = not problem.aim.reach
    flat = frozen(np.zeros(machine.size))  # as the distances are: kernels are compiled once
    x, y = (distance.x, distance.y) if tall else (flat[:1], flat)
    hashed = bool((size < machine.size).any())
    room = room_of(problem, core)
    state = NetState(
        source=nets.source,
        rate=nets.rate,
        pin_ptr=nets.pin_ptr,
        pins=nets.pins,
        in_ptr=in_ptr,
        in_net=nets_of_pins(nets.pin_ptr, nets.pins, in_ptr),
        out_ptr=out_ptr,
        out_net=np.argsort(nets.source, kind="stable").astype(np.int32),
        x=x,
        y=y,
        step=distance.step,
        tall=tall,
        room=room,
        origin=np.zeros(many, np.int32),
        base=base,
        keys=np.zeros(int(base[-1]) if hashed else 0, np.int32),
        hits=np.zeros(int(base[-1]), np.int32),
        row_bits=np.zeros((many, len(x), words(len(y))), np.uint64),
        col_bits=np.zeros((many, words(len(x))), np.uint64),
        axons=build_axons(problem, room.core),
    )
    reset(state, core)
    return state
