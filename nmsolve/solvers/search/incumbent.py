"""The place where solutions and bounds are checked, and where every change becomes an event."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.bound import INFEASIBLE, ROUNDING, Bound, BoundCheck, EngineShare, Event, gap, meets
from nmsolve.model.stop import Stop
from nmsolve.model.types import IntArray, frozen
from nmsolve.solvers.search.checker import Checker

Observer = Callable[[Event], None]
#: Rejected offers of one engine that become events; the rest is only counted.
COMPLAINTS = 3


@dataclass
class _Tally:
    """What one engine has done so far."""

    offers: int = 0
    rejected: int = 0
    incumbents: int = 0
    best: float = math.inf
    gain: float = 0.0
    bound: float | None = None
    cpu: float = 0.0
    status: str = ""
    distrusted: bool = False


class Incumbent:
    """Best solution and best bounds of one run. Safe to use from several threads.

    Every offer is lifted, checked and rescored by the checker; only strict improvements are taken. A bound
    above the incumbent is an error of the engine that raised it: none of its bounds is ever shown again.

    Parameters
    ----------
    checker : judges solutions
    budget : its clock stamps the events
    observers : called with every event, in order; they never steer, and one that fails is dropped
    target_gap : :attr:`reached` becomes true at this proven gap
    enough : and once it is known whether the objective can be as low as this
    exact : objectives and bounds are computed without rounding
    """

    def __init__(
        self,
        checker: Checker,
        budget: Stop,
        observers: Sequence[Observer] = (),
        target_gap: float = 0.0,
        enough: float | None = None,
        exact: bool = False,
    ) -> None:
        self._exact = exact
        self._checker, self._budget, self._target, self._enough = checker, budget, target_gap, enough
        self._observers = list(observers)
        self._lock = threading.RLock()
        self._solution: IntArray | None = None
        self._lifted: IntArray | None = None
        self._objective = math.inf
        self._bounds: dict[tuple[str, str], tuple[str, Bound]] = {}
        self._tallies: dict[str, _Tally] = {}
        self._events: list[Event] = []
        self._noted: set[tuple[str, str]] = set()
        self._infeasible_by: str | None = None
        self._changes = 0
        self._to_recheck: Collection[str] = ()
        self._recheck: Callable[[Bound], BoundCheck] = _nothing_recomputed

    # what is known

    @property
    def objective(self) -> float:
        """Objective of the best solution; inf if there is none."""
        return self._objective

    @property
    def lifted(self) -> IntArray | None:
        """Return the best solution (lifted size,) of the problem as stated by the user, read-only, or None."""
        return self._lifted

    def best(self) -> tuple[IntArray | None, float]:
        """Return the best solution in the engines' terms, read-only, and its objective; ``(None, inf)`` if there is none."""
        with self._lock:
            return self._solution, self._objective

    @property
    def bound(self) -> float:
        """Best lower bound on the whole problem, 0 if none; equal to the objective once the gap is closed."""
        with self._lock:
            found = max((b.value for _, b in self._bounds.values() if b.scope == "full"), default=0.0)
            return self._objective if self._meets(found) else found

    def bound_of(self, engine: str) -> float:
        """Return the best lower bound on the whole problem that this engine proved, 0 if none."""
        with self._lock:
            return (self._tallies[engine].bound or 0.0) if engine in self._tallies else 0.0

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The best bound of every method and scope, in order of first appearance."""
        with self._lock:
            return tuple(b for _, b in self._bounds.values())

    @property
    def has_bound(self) -> bool:
        """True if any engine proved a bound on the whole problem, or the objective is 0, the least of all."""
        return self._objective <= 0 or any(b.scope == "full" for b in self.bounds)

    @property
    def infeasible(self) -> bool:
        """True if an engine proved that there is no solution."""
        return self._infeasible_by is not None

    @property
    def infeasible_by(self) -> str | None:
        """The engine that proved that there is no solution, or None."""
        return self._infeasible_by

    @property
    def optimal(self) -> bool:
        """True if the bound meets the objective on the objective's lattice."""
        return math.isfinite(self._objective) and self.bound >= self._objective

    @property
    def reached(self) -> bool:
        """True once the target gap is proved, or infeasibility, or it is known whether ``enough`` is possible."""
        if self._enough is not None and not meets(self._enough, self.bound):
            return True
        if self._enough is not None and self._lifted is not None and self._objective <= self._enough:
            return True
        share = gap(self._objective, self.bound) if self.has_bound else None
        return self.infeasible or self.optimal or (share is not None and share <= self._target)

    @property
    def changes(self) -> int:
        """Counts every new incumbent and bound; a cheap way to see that something is new."""
        return self._changes

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened so far."""
        with self._lock:
            return tuple(self._events)

    def shares(self) -> tuple[EngineShare, ...]:
        """Return what each engine contributed, in order of first appearance."""
        with self._lock:
            return tuple(
                EngineShare(
                    name, t.cpu, t.offers, t.incumbents, t.best if t.best < math.inf else None, t.gain, t.bound,
                    INFEASIBLE if name == self._infeasible_by else t.status,
                )
                for name, t in self._tallies.items()
            )  # fmt: skip

    # what engines do

    def offer(self, engine: str, solution: IntArray, move: str = "") -> bool:
        """Check and rescore a solution (size,) of an engine. Return True if it became the incumbent."""
        candidate = np.array(solution)
        if candidate.dtype.kind in "iu":
            candidate = candidate.astype(np.int64, copy=False)
        complaint, lifted, value = judge(self._checker, candidate)
        with self._lock:
            tally = self._tally(engine)
            tally.offers += 1
            if complaint is not None:
                tally.rejected += 1
                if tally.rejected <= COMPLAINTS:
                    self.record("error", engine, f"offer rejected: {complaint}")
                return False
            tally.best = min(tally.best, value)
            if not value < self._objective - 1e-12 * abs(value):
                return False
            tally.incumbents += 1
            if self._objective < math.inf:
                tally.gain += self._objective - value
            self._solution, self._lifted = frozen(candidate), frozen(lifted)
            self._objective = value
            self._changes += 1
            self._drop_contradicted()
            self._event("incumbent", engine, move=move)
            return True

    def raise_bound(self, engine: str, bound: Bound) -> bool:
        """Take a bound if none of its method and scope is better; True if it is better than all of its scope.

        The value inf with the certificate status ``infeasible`` means: there is no solution.
        """
        if engine in self._to_recheck:
            found = self._recheck(bound)
            if not found.ok or (found.word and not found.by_package):
                self.record("error", engine, f"bound rejected: {found.text}")
                return False
            bound = replace(bound, package=found.package)
        with self._lock:
            tally = self._tally(engine)
            if tally.distrusted:
                return False
            wrong = self._contradiction(bound)
            if wrong is not None:
                self._distrust(engine, wrong)
                return False
            if bound.value == math.inf:
                self._infeasible_by = engine
                self._changes += 1
                self.record("note", engine, "proved infeasible")
                return True
            key = (bound.method, bound.scope)
            same_scope = [b.value for _, b in self._bounds.values() if b.scope == bound.scope]
            if key not in self._bounds or bound.value >= self._bounds[key][1].value:
                self._bounds[key] = (engine, bound)
                if bound.scope == "full":
                    tally.bound = max(bound.value, tally.bound or 0.0)
            is_best = bound.value > max(same_scope, default=-math.inf)
            if is_best and bound.scope == "full":
                self._changes += 1
                self._event("bound", engine, move=bound.method)
            return is_best

    def require_recheck(self, engines: Collection[str], recheck: Callable[[Bound], BoundCheck]) -> None:
        """Accept bounds of these third-party engines only after a re-check by ``recheck``."""
        self._to_recheck, self._recheck = frozenset(engines), recheck

    def record(self, kind: str, engine: str, text: str) -> None:
        """Add an event in words: ``start``, ``engine``, ``note``, ``error`` or ``end``. An engine's note is said once."""
        with self._lock:
            if kind == "note" and engine != "search":
                if (engine, text) in self._noted:
                    return
                self._noted.add((engine, text))
            self._event(kind, engine, text=text)

    def silent(self, engine: str) -> bool:
        """Return True if an engine has offered nothing and raised no bound so far."""
        tally = self._tally(engine)
        return tally.offers == 0 and tally.bound is None

    def finish(self, engine: str, status: str, cpu: float) -> None:
        """An engine's run ended: add its CPU seconds and keep its last status."""
        with self._lock:
            tally = self._tally(engine)
            tally.cpu += cpu
            tally.status = status

    # inside

    def _tally(self, engine: str) -> _Tally:
        return self._tallies.setdefault(engine, _Tally())

    def _meets(self, bound: float) -> bool:
        """Return True if no better objective is between ``bound`` and the incumbent's."""
        if not math.isfinite(self._objective) or not self.has_bound:
            return False
        return meets(bound, self._objective, self._checker.lattice, self._exact)

    def _contradiction(self, bound: Bound) -> str | None:
        """Return why a bound cannot be true, or None."""
        if math.isnan(bound.value) or bound.value == -math.inf:
            return f"{bound.method} raised the bound {bound.value}"
        if bound.value == math.inf:
            if bound.certificate.get("status") != "infeasible":
                return f"{bound.method} raised an infinite bound without proving infeasibility"
            return (
                None
                if self._solution is None
                else f"{bound.method} claims infeasibility, but a solution is known"
            )
        if bound.value > self._objective + ROUNDING * max(1.0, abs(self._objective)):
            return (
                f"{bound.method} bound {bound.value:.10g} is above a known solution of {self._objective:.10g}"
            )
        return None

    def _drop_contradicted(self) -> None:
        """After a new incumbent: bounds above it were wrong; bounds for the old solution's parts say nothing now."""
        if self._infeasible_by is not None:
            engine, self._infeasible_by = self._infeasible_by, None
            self._distrust(engine, "claimed infeasibility, but a solution was found")
        for engine, bound in list(self._bounds.values()):
            wrong = self._contradiction(bound) if bound.scope == "full" else None
            if wrong is not None and not self._tally(engine).distrusted:
                self._distrust(engine, wrong)
        self._bounds = {k: v for k, v in self._bounds.items() if v[1].scope == "full"}

    def _distrust(self, engine: str, text: str) -> None:
        tally = self._tally(engine)
        tally.distrusted, tally.bound = True, None
        self._bounds = {k: v for k, v in self._bounds.items() if v[0] != engine}
        self._changes += 1
        self.record("error", engine, f"engine error: {text}; its bounds are dropped")

    def _event(self, kind: str, engine: str, move: str = "", text: str = "") -> None:
        event = Event(
            self._budget.elapsed(),
            kind,
            engine,
            self._objective if self._objective < math.inf else None,
            self.bound if self.has_bound else None,
            move,
            text,
        )
        self._events.append(event)
        for observer in list(self._observers):
            try:
                observer(event)
            except Exception as error:  # noqa: BLE001 -- foreign code; a broken display must not cost the answer
                self._observers.remove(observer)
                self.record("note", "search", f"an observer failed and was dropped: {error!r}")


def _nothing_recomputed(bound: Bound) -> BoundCheck:
    return BoundCheck(False, math.nan, "nothing here can be recomputed")


def judge(checker: Checker, candidate: IntArray) -> tuple[str | None, IntArray, float]:
    """Return ``(complaint, lifted solution, objective)`` of a solution in the engines' terms; inf where it is infeasible."""
    if candidate.shape != (checker.size,) or candidate.dtype.kind not in "iu":
        return f"an array of shape {candidate.shape} and type {candidate.dtype}", candidate, math.inf
    lifted = checker.lift(candidate.astype(np.int64, copy=False))
    complaint = checker.complaint(lifted)
    if complaint is not None:
        return complaint, lifted, math.inf
    value = float(checker.score(lifted))
    if not math.isfinite(value):
        return f"its objective is {value}", lifted, math.inf
    return None, lifted, value
