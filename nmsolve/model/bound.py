"""Bounds, gaps and results: what a run claims, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from nmsolve.model.types import IntArray

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    S = TypeVar("S", default=Any)
else:
    from typing import TypeVar

    S = TypeVar("S")


@dataclass(frozen=True)
class Bound:
    """A number that no solution can go below.

    Attributes
    ----------
    value : lower bound on the objective
    method : short name, e.g. ``star``, ``projection``, ``cpsat``
    scope : ``full`` (every mapping of the problem) or ``placement`` (mappings that keep the parts found)
    certificate : arrays and numbers with which ``nmsolve verify --bound`` recomputes the value without the
        code that found it; a solver's status and seed where nothing better exists
    package : the other package whose re-check recomputed it in this run, "" for all that needs none; no engine says this itself
    """

    value: float
    method: str
    scope: str = "full"
    certificate: Mapping[str, Any] = field(default_factory=dict)
    package: str = ""


#: Values of objectives that may not be exceeded.
Ceilings = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Stage:
    """One problem of a run with several objectives, and the bounds that were proved for it.

    Attributes
    ----------
    objective, ceilings : of that problem; the rest is equal
    problem : its hash
    """

    objective: str
    ceilings: Ceilings
    problem: str
    bounds: tuple[Bound, ...]


class BoundCheck(NamedTuple):
    """Outcome of a re-check: whether the claim holds, the recomputed value (nan if there is none), and why.

    ``word``: the solver on whose word the claim rests, "" where all of it was recomputed; ``by_package``: no solver, but another
    package whose re-check recomputed it.
    """

    ok: bool
    value: float
    text: str
    word: str = ""
    by_package: bool = False

    @property
    def package(self) -> str:
        """Return the other package on whose re-check the claim rests, "" for none."""
        return self.word if self.by_package else ""

    @property
    def trusted(self) -> bool:
        """Return True if the claim rests on a solver's word."""
        return bool(self.word)


def gap(objective: float | None, bound: float | None) -> float | None:
    """Return ``|objective - bound| / |objective|``; 0 when both are 0; None without an incumbent or a bound."""
    if objective is None or bound is None or not math.isfinite(objective) or not math.isfinite(bound):
        return None
    if objective == bound:
        return 0.0
    return abs(objective - bound) / abs(objective) if objective else float("inf")


def float_below(whole: float) -> float:
    """Return the largest float that is not above a whole number, exact beyond 2^53 too; inf for inf."""
    near = float(whole)
    return near if near == math.inf or int(near) <= whole else math.nextafter(near, -math.inf)


#: What bounds keep back for rounding, of their value and besides.
MARGIN = 1e-9
#: Differences of this size, relative to the objective, are rounding (``round_up`` takes off :data:`MARGIN`).
ROUNDING = 4e-9


def meets(bound: float, objective: float, step: float = 0.0, exact: bool = False) -> bool:
    """Return True if no better objective is between ``bound`` and a finite ``objective``, except for rounding.

    The one definition of a closed gap, for the search (which then states the objective as its bound) and for ``verify``.

    Parameters
    ----------
    step : all objectives are multiples of this; 0 if unknown
    exact : objectives and bounds are computed without rounding
    """
    missing = objective - bound
    closed = missing <= (0.0 if exact else ROUNDING * abs(objective)) or missing < step * (1 - 1e-6)
    return bool(closed and math.isfinite(objective))


def round_up(value: float, integral: bool, step: float = 1.0) -> float:
    """Round a computed bound in the safe direction.

    Subtracts :data:`MARGIN`, relatively and absolutely, for floating error, then rounds up to the
    objective's lattice ``step`` if the objective is ``integral``; never below 0.
    """
    safe = value - MARGIN * abs(value) - MARGIN
    if integral:
        safe = float(np.ceil(safe / step - 1e-12)) * step
    return max(0.0, float(safe))


@dataclass(frozen=True)
class Event:
    """One thing that happened during a search; the source of every table, picture and JSON line.

    ``kind``: ``start``, ``incumbent``, ``bound``, ``engine`` (an engine began or ended), ``note``,
    ``error`` (an engine failed, or offered something wrong), ``end``.
    ``seconds`` is wall time since the start of the run.
    """

    seconds: float
    kind: str
    engine: str
    objective: float | None = None
    bound: float | None = None
    move: str = ""
    text: str = ""


#: Engines of a run's events that offer a given answer, or bounds from before.
GIVEN = ("start", "warm-start", "before")
#: Status of an engine that proved that there is no solution.
INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class EngineShare:
    """What one engine contributed to a run; ``status``: how it ended, or :data:`INFEASIBLE`."""

    engine: str
    cpu_seconds: float = 0.0
    offers: int = 0
    incumbents: int = 0
    best: float | None = None
    gain: float = 0.0
    bound: float | None = None
    status: str = ""


#: Stop reason of a result that was handed over while the search went on.
RUNNING = "running"


@dataclass(frozen=True, eq=False)
class Result(Generic[S]):
    """The outcome of a run, as claimed; ``nmsolve verify`` re-checks it from files.

    Attributes
    ----------
    status : ``optimal``, ``feasible``, ``infeasible`` (proved), ``unknown``
    stop_reason : ``gap``, ``time``, ``memory``, ``interrupt``, ``exhausted`` (nothing left to try), ``error``;
        ``running`` of what a search had found while it went on
    solution : what was decided, or None: (n,) core of every node, a plan, routes
    objective, bound, gap : of the whole problem; None where there is none
    bounds : the best bound of every method and scope
    placement_bound, placement_gap : for mappings that keep the parts of ``solution``; only with several nodes per core
    scores : all objectives by name, recomputed by the evaluator
    stages : by name and in order, where objectives were minimised in order: the last run of each, which kept the earlier
        ones at the values reached; ``objective``, ``bound``, ``gap`` and ``bounds`` are then of the first one
    method : the published method that ran alone, or None
    better_objective : of a better answer that was met where ``solution`` is a given one that stays; else None
    memory_budget : most bytes that all processes were allowed to hold, or None
    memory_peak : most bytes that they held, as far as measured; 0 if not measured
    """

    status: str
    stop_reason: str
    objective_name: str
    solution: S | None
    objective: float | None
    bound: float | None
    gap: float | None
    bounds: tuple[Bound, ...] = ()
    placement_bound: float | None = None
    placement_gap: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    stages: Mapping[str, Result[Any]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    engines: tuple[EngineShare, ...] = ()
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    seed: int = 0
    method: str | None = None
    better_objective: float | None = None
    memory_budget: int | None = None
    memory_peak: int = 0

    @property
    def core(self) -> IntArray | None:
        """(n,) core number of every node, where nodes were put on cores, or None."""
        found: Any = self.solution
        core: IntArray | None = getattr(found, "core", found)
        return core

    def bound_of(self, name: str) -> float | None:
        """Bound of one of the ``stages``; it holds for solutions that are as good in all objectives before."""
        return self.stages[name].bound if name in self.stages else None

    def proved(self, name: str) -> bool:
        """Return True if one of the ``stages`` is proved optimal."""
        return name in self.stages and self.stages[name].status == "optimal"
