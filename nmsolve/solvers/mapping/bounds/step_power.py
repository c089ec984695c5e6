"""Bounds on the energy of a step, and on its product with the step's time.

Both grow with what messages cost, with the number of cores in use and with the step's time. The times that a step may take are
divided into pieces. A step in the piece from s to t takes s at least; a core holds no more nodes than have room in t, which
bounds the messages' energy from below as in :mod:`~nmsolve.solvers.mapping.bounds.step_ceiling`, and how many cores are used. The
least value of all pieces is a bound. The piece that has it is divided again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from typing import Any

from nmsolve.hw.power import draw_of
from nmsolve.hw.step_time import StepCosts, step_costs
from nmsolve.model.bound import Bound
from nmsolve.model.mapping.features import LIMITS, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.link_load import sum_bounds
from nmsolve.solvers.mapping.bounds.pairs import no_core
from nmsolve.solvers.mapping.bounds.step_ceiling import packed
from nmsolve.solvers.mapping.bounds.step_load import StepWork, least, margin, room_within, work_of

METHOD = "step-power"
#: Why the bound cannot take a problem, or None.
refuses_step_power = takes(f"power {LIMITS} -matrix", no_core)
#: Most pieces, and where a piece without an end is divided: this many times its beginning.
PIECES, FURTHER = 24, 4.0
#: A piece whose ends differ by no more than this factor is not divided.
NARROW = 1.02


@dataclass(frozen=True)
class _Piece:
    """Steps from ``low`` to ``high`` ns: nodes that have room on a core, pJ of messages that are proved, and the certificate."""

    low: float
    high: float
    room: int
    paid: float = 0.0
    proof: Mapping[str, Any] = field(default_factory=dict)


def step_power_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better bounds; the best known mapping says how long steps have to be looked at."""
    costs, began = step_costs(problem.machine), context.clock()
    work, draw = work_of(problem, costs), draw_of(problem.graph, problem.machine)
    cores, less = int(problem.machine.usable.sum()), 1 - margin(problem)
    shortest = least(work, costs, cores, 0.0) * less
    below, best = 0.0, 0.0
    pieces = [_Piece(shortest, inf, problem.n if problem.node_limit is None else problem.node_limit)]

    def value(piece: _Piece) -> float:
        energy = draw.total(piece.paid, -(-problem.n // piece.room), piece.low)
        return energy * (piece.low if problem.objective == "energy-delay" else 1.0) * less

    while pieces:
        pieces.sort(key=lambda piece: piece.low)
        weakest = min(pieces, key=value)
        if value(weakest) > best:
            best = value(weakest)
            yield Bound(best, METHOD, "full", _certificate(pieces, below))
        if context.should_stop() or len(pieces) == PIECES or best >= context.upper():
            return
        end = sqrt(weakest.low * weakest.high) if isfinite(weakest.high) else FURTHER * weakest.low
        if end <= weakest.low * NARROW or end * NARROW >= weakest.high:
            return
        part = context.after(began).seconds / (PIECES - len(pieces))
        pieces.remove(weakest)
        pieces.append(_Piece(end, weakest.high, weakest.room, weakest.paid, weakest.proof))
        room = min(weakest.room, _room(work, costs, end, problem))
        if room * cores < problem.n:
            below = end  # no step is so short
        else:
            pieces.append(_sooner(problem, weakest, end, room, context._replace(seconds=part)))


def _room(work: StepWork, costs: StepCosts, end: float, problem: MappingProblem) -> int:
    """Return the most nodes of a core whose step takes no longer than ``end`` ns."""
    more = 1 + margin(problem)
    return room_within(work, (end * more - costs.barrier) * more, costs.aside)


def _sooner(problem: MappingProblem, piece: _Piece, end: float, room: int, context: BoundContext) -> _Piece:
    """Return the first part of a piece with the best bound on the messages' energy that the context's time gives."""
    paid, proof = piece.paid, piece.proof
    if room < piece.room:
        for inner in sum_bounds(packed(problem, "energy", room), context.toward(inf)):
            if inner.value > paid:
                paid, proof = inner.value, {**inner.certificate, "inner": inner.method}
    return _Piece(piece.low, end, room, paid, proof)


def _certificate(pieces: list[_Piece], below: float) -> dict[str, Any]:
    """``below``: no step is shorter than that, which is a piece of its own; 0 where nothing is known."""
    none = [below] if below > 0 else []
    ends = [piece.high for piece in pieces if isfinite(piece.high)]
    return {
        "method": METHOD, "until": [*none, *ends], "proofs": [*({} for _ in none), *(dict(piece.proof) for piece in pieces)],
    }  # fmt: skip
