"""What the certificates of a run prove: recomputed where possible, else with the solver whose word they rest on."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nmsolve.check.claims import TOLERANCE
from nmsolve.kinds import values as opt
from nmsolve.kinds.parts import CheckPart
from nmsolve.kinds.waiting import waiting
from nmsolve.model import clock
from nmsolve.model.bound import BoundCheck
from nmsolve.model.members import Members
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.verbs import VerifyOptions
    from nmsolve.model.bound import Bound, Stage


#: Seconds for all re-checks of a command, if not stated: the least and the most.
LEAST, MOST = 60.0, 600.0
#: On whose word a bound rests that was not re-checked in time.
LATE = "this run, not re-checked in time"


def positive(value: object) -> float | None:
    """Return a finite number >= 0 from a file, or None."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max
    return float(value) if fine else None  # type: ignore[arg-type]


def bound_part(name: str, found: BoundCheck) -> CheckPart:
    """Return the outcome of a re-check as reports and ``verify`` hold it."""
    return CheckPart(name, found.ok, found.text, found.word)


class Budget:
    """Time for all re-checks of a command together: ``seconds`` from when it is made."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds, self._end = seconds, clock.now() + seconds

    def rechecked(self, name: str, bound: Bound, check: Callable[[Bound, float], BoundCheck]) -> BoundCheck:
        """Return what ``check`` says of a bound in the seconds that it is given, and which members of its certificate it did
        not read; a claim on the run's word where the seconds do not do.

        ``name`` : of the bound, for people who wait
        """
        left = self._end - clock.now()
        members = Members(bound.certificate)
        if left > 0:
            with waiting(f"re-checking {name} {number(bound.value)}", left):
                found = check(replace(bound, certificate=members), left)
            if found.ok or not math.isnan(found.value) or clock.now() < self._end:
                unread = ", ".join(name[:40] for name in members.unread())
                if found.ok and unread:
                    return found._replace(text=f"{found.text}; not read of it: {unread}")
                return found
        text = f"not re-checked: the {self.seconds:,.0f} s of --time-limit are over"
        return BoundCheck(True, bound.value, text, LATE)


def budget_of(o: VerifyOptions, report: Mapping[str, Any] | None) -> Budget:
    """Return the time of ``--time-limit``, else as much as the run took, between :data:`LEAST` and :data:`MOST`."""
    if o.time_limit is not None:
        return Budget(opt.seconds(o.time_limit))
    took = positive((report or {}).get("wall_seconds")) or 0.0
    return Budget(min(MOST, max(LEAST, took)))


@dataclass
class Proved:
    """The best bound that was recomputed, and the best on a solver's ``word``."""

    value: float = 0.0
    trusted: float = 0.0
    word: str = ""

    def add(self, value: float, word: str) -> None:
        """Add a bound that holds, by recomputing it or on a word."""
        if not word:
            self.value = max(self.value, value)
        elif value > self.trusted:
            self.trusted, self.word = value, word

    def claim(
        self, name: str, said: object, objective: object, step: float, exact: bool = False
    ) -> CheckPart:  # fmt: skip
        """Return whether this is what a report says: no more than was proved, or the objective where that is met."""
        from nmsolve.model.bound import meets

        said = positive(said)
        if said is None:
            return CheckPart(name, False, "the value in the report is not a number >= 0")
        known = positive(objective)
        value = math.nan if known is None else known

        def covers(proved: float) -> bool:
            """Return whether a proved bound carries what is said: no less, or as good as the objective where that is said."""
            return said <= proved or (said <= value and meets(proved, value, step, exact))

        text = f"the report says {number(said)}, recomputed is {number(self.value)}"
        if covers(self.value):
            return CheckPart(name, True, text)
        if not covers(self.trusted):
            return CheckPart(
                name, False, text + (f", {number(self.trusted)} by {self.word}" if self.word else "")
            )
        return CheckPart(
            name, True, f"{text}; {number(self.trusted)} rests on the word of {self.word}", self.word
        )


class _Passed(NamedTuple):
    """A bound that passed: of which objective, for which solutions (``ceilings``), as recomputed or on a ``word``."""

    objective: str
    scope: str
    ceilings: tuple[tuple[str, float], ...]
    value: float
    word: str


class BoundChecks(Protocol):
    """How the bounds of one kind of problem are re-checked."""

    @property
    def exact(self) -> bool:
        """Whether objectives and bounds are computed without rounding."""

    @property
    def free(self) -> Collection[str]:
        """Methods whose bounds use no ceilings where they are recomputed, so that they hold under any."""

    @property
    def slow(self) -> Collection[str]:
        """Methods whose re-check is a search: those that another bound covers are not searched again."""

    def check(
        self, stage: Stage, bound: Bound, solution: Any, least: float, seconds: float = math.inf
    ) -> BoundCheck:
        """Re-check a bound of ``stage`` in about these ``seconds``.

        ``solution`` has the ``least`` known value within its ceilings (None, inf: none has).
        """

    def step(self, objective: str) -> float:
        """Return a number that divides all values of an objective; 0 if none is known."""

    def hash_of(self, stage: Stage) -> str:
        """Return the hash of the problem of a stage: its objective under its ceilings; "" if there is none."""


class Proofs:
    """The bounds of a run, of one problem or of several that differ in objective and ceilings, re-checked one by one.

    A bound that is recomputed and uses no ceilings holds under any. Any other, as one that rests on a solver's word, counts only
    for solutions within the ceilings of the problem that it is kept with.

    Parameters
    ----------
    known : solutions with their objectives as recomputed; no bound may be above one of them
    budget : time for all of them, or None
    """

    def __init__(
        self,
        checks: BoundChecks,
        known: Sequence[tuple[Any, Mapping[str, float]]],
        budget: Budget | None = None,
    ) -> None:
        self._checks, self._known, self._budget = checks, known, budget or Budget()
        self._passed: list[_Passed] = []
        self._steps: dict[str, float] = {}

    def take(self, stage: Stage, named: bool = False) -> list[CheckPart]:
        """Return one check per bound of ``stage``; ``named``: they say of which objective and under which ceilings."""
        none: tuple[Any, Mapping[str, float]] = (None, {})
        inside = [m for m in self._known if self._obeys(m[1], stage.ceilings)]
        least = min(inside, key=lambda m: m[1].get(stage.objective, math.inf), default=none)
        about = ", ".join([stage.objective, *(f"{k} at most {number(v)}" for k, v in stage.ceilings)])
        checks = []
        here = self._checks.hash_of(stage)
        for b in sorted(stage.bounds, key=lambda b: b.method in self._checks.slow):
            label = f"bound {b.method} ({about if named else b.scope})"
            if b.value < 0 or stage.problem != here:
                text = f"given about problem {stage.problem[:64]}, this one is {here or 'unknown'}"
                text = f"{number(b.value)} is no bound: no objective is below 0" if b.value < 0 else text
                checks.append(CheckPart(label, False, text))
                continue
            low = least[1].get(stage.objective, math.inf)
            found = self._covered(stage, b) or self._budget.rechecked(
                label, b, partial(self._check, stage, least[0], low)
            )
            checks.append(bound_part(label, found))
            if found.ok:
                value = found.value if found.word else min(found.value, b.value)
                limits = () if b.method in self._checks.free and not found.word else stage.ceilings
                self._passed.append(_Passed(stage.objective, b.scope, limits, value, found.word))
        return checks

    def _check(self, stage: Stage, solution: Any, least: float, bound: Bound, seconds: float) -> BoundCheck:
        return self._checks.check(stage, bound, solution, least, seconds)

    def _covered(self, stage: Stage, bound: Bound) -> BoundCheck | None:
        """Return the outcome for a bound whose re-check is a search, where one that was recomputed is as high; else None."""
        best = max(
            (p.value for p in self._passed if (p.objective, p.scope) == (stage.objective, bound.scope) and not p.word
             and self._obeys(dict(stage.ceilings), p.ceilings)),
            default=-math.inf,
        )  # fmt: skip
        if bound.method not in self._checks.slow or not 0 <= bound.value <= best:
            return None
        return BoundCheck(
            True, bound.value, f"not searched again: {number(best)} is recomputed by another method"
        )

    def claim(
        self, name: str, said: object, value: object, objective: str, within: Mapping[str, float],
        scope: str = "full",
    ) -> CheckPart:  # fmt: skip
        """Return whether a bound that is ``said`` is proved, for all solutions ``within`` these values of other objectives.

        Parameters
        ----------
        value : the least known ``objective`` of such a solution
        """
        proved = Proved()
        for p in self._passed:
            if (p.objective, p.scope) == (objective, scope) and self._obeys(within, p.ceilings):
                proved.add(p.value, p.word)
        if objective not in self._steps:
            self._steps[objective] = self._checks.step(objective)
        return proved.claim(name, said, value, self._steps[objective], self._checks.exact)

    def _obeys(self, values: Mapping[str, float], ceilings: Sequence[tuple[str, float]]) -> bool:
        """Return whether solutions with no more than these ``values`` are within ``ceilings``, but for the rounding of sums."""
        more = 1.0 if self._checks.exact else 1.0 + TOLERANCE
        return all(name in values and values[name] <= most * more for name, most in ceilings)
