"""Smallest conflicts: limits that together forbid every solution, each of them needed for that. One loop for every problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmsolve.model.errors import CertificateError
from nmsolve.model.limit import Limit as Limit
from nmsolve.model.stop import Stop

S = TypeVar("S")
#: No single question gets more than this part of the time that is left; the first one gets more.
PATIENCE, FIRST = 0.5, 0.8


@dataclass(frozen=True, eq=False)
class Answer(Generic[S]):
    """Whether a problem has a solution under some of its limits.

    ``status``: ``feasible`` (``solution`` was checked), ``infeasible`` (proved; ``needed`` are limits that suffice for the proof)
    or ``unknown``.
    """

    status: str
    solution: S | None = None
    needed: tuple[Limit, ...] = ()


class Limits(ABC, Generic[S]):
    """A problem as a list of limits; every kind of problem implements it once. Lifting a limit must never forbid anything.

    Attributes
    ----------
    every : all limits, in the order in which they are tried for removal: what is left is as basic as possible
    """

    every: tuple[Limit, ...]

    @abstractmethod
    def ask(
        self, limits: tuple[Limit, ...], seconds: float, seed: int, should_stop: Callable[[], bool]
    ) -> Answer[S]:
        """Is there a solution that obeys these limits? At most about ``seconds`` (wall) are used; counting takes none."""

    @abstractmethod
    def reason(self, limits: tuple[Limit, ...]) -> str:
        """One line that says why no solution obeys ``limits``, as far as counting can tell."""

    @abstractmethod
    def written(self, solution: S) -> dict[str, Any]:
        """Return a solution as a certificate holds it, for :meth:`complaint`."""

    @abstractmethod
    def complaint(self, limits: tuple[Limit, ...], entry: Mapping[str, Any]) -> str | None:
        """Return which of ``limits`` the solution in a certificate's entry breaks, by code that found no solution; None: none.

        Raises
        ------
        CertificateError : the entry holds no solution
        """

    @abstractmethod
    def impossible(self, limits: tuple[Limit, ...], seconds: float) -> bool | None:
        """Whether a second program, which shares no model with :meth:`ask`, proves that no solution obeys ``limits``; False:
        there is one, None: it cannot tell."""


@dataclass(frozen=True, eq=False)
class Conflict(Generic[S]):
    """Limits that no solution obeys together.

    Attributes
    ----------
    limits : in the order of the problem's statement
    needed : those of them that were proved necessary: without any one there is a solution that obeys all the others
    without : for each of ``needed`` such a solution
    text : why, in words, as far as counting can say
    certificate : plain data for :func:`recheck_conflict`
    """

    limits: tuple[Limit, ...]
    needed: tuple[Limit, ...]
    without: tuple[S, ...]
    text: str
    certificate: dict[str, Any]

    @property
    def minimal(self) -> bool:
        """True if every limit was proved necessary."""
        return len(self.needed) == len(self.limits)


@dataclass(frozen=True, eq=False)
class Explanation(Generic[S]):
    """What was found.

    Attributes
    ----------
    status : ``feasible`` (with a ``solution``), ``infeasible`` (with ``conflicts``) or ``unknown``
    conflicts : separate reasons: no limit is in two of them, and each forbids every solution by itself. Without all of their
        limits there is a solution, unless time ran out
    lift : limits without which there is a solution, ``lifted``, that obeys all others; none of them alone could be kept as well
        as far as time allowed to ask. Empty if time ran out
    enough : limits of the only conflict each of which is enough to lift
    """

    status: str
    solution: S | None = None
    conflicts: tuple[Conflict[S], ...] = ()
    lift: tuple[Limit, ...] = ()
    lifted: S | None = None
    enough: tuple[Limit, ...] = ()
    certificate: dict[str, Any] = field(default_factory=dict)

    @property
    def conflict(self) -> Conflict[S] | None:
        """The first conflict."""
        return self.conflicts[0] if self.conflicts else None


class _Questions(Generic[S]):
    """A problem asked within a budget."""

    def __init__(self, problem: Limits[S], budget: Stop, seed: int) -> None:
        self.problem, self._budget, self._seed = problem, budget, seed

    def ask(self, limits: tuple[Limit, ...], part: float = PATIENCE) -> Answer[S]:
        left = 0.0 if self._budget.interrupted else part * self._budget.left()
        return self.problem.ask(limits, left, self._seed, lambda: self._budget.interrupted)

    def without(self, some: Collection[Limit]) -> Answer[S]:
        """Ask about all limits but ``some``."""
        return self.ask(tuple(x for x in self.problem.every if x not in some))

    def proved(self, limits: tuple[Limit, ...], answer: Answer[S]) -> tuple[Limit, ...]:
        """Return limits out of ``limits``, which ``answer`` proves impossible, that were proved impossible when asked alone.

        What CP-SAT says that its proof needs may not be enough for one (or-tools issue 5141), so it is asked again.
        """
        smaller = _ordered(limits, answer.needed)
        while smaller != limits:
            again = self.ask(smaller)
            if again.status != "infeasible":
                break
            limits, smaller = smaller, _ordered(smaller, again.needed)
        return limits

    def conflict(self, limits: tuple[Limit, ...], answer: Answer[S]) -> Conflict[S]:
        """Return a smallest conflict among ``limits``, which ``answer`` proves impossible."""
        kept = self.proved(limits, answer)
        needed: dict[Limit, S] = {}
        for x in limits:
            if x not in kept:
                continue
            others = tuple(other for other in kept if other is not x)
            answer = self.ask(others)
            if answer.status == "infeasible":
                kept = self.proved(others, answer)
            elif answer.solution is not None:
                needed[x] = answer.solution
        necessary = tuple(x for x in kept if x in needed)
        without = tuple(needed[x] for x in necessary)
        certificate = {
            "limits": [_named(x) for x in kept],
            "without": [_named(x) | self.problem.written(s) for x, s in zip(necessary, without, strict=True)],
        }
        return Conflict(kept, necessary, without, self.problem.reason(kept), certificate)

    def enough(self, conflict: Conflict[S]) -> dict[Limit, S]:
        """Return limits of the conflict that are enough to lift, each with a solution that obeys all others."""
        out: dict[Limit, S] = {}
        for x, solution in zip(conflict.needed, conflict.without, strict=True):
            others = tuple(other for other in self.problem.every if other is not x)
            if self.problem.complaint(others, self.problem.written(solution)) is None:
                out[x] = solution
                continue
            answer = self.ask(others)
            if answer.solution is not None:
                out[x] = answer.solution
        return out

    def fewest(self, lift: tuple[Limit, ...], solution: S) -> tuple[tuple[Limit, ...], S]:
        """Return limits out of ``lift`` that are enough to lift, with a solution; the last ones are kept first."""
        for x in reversed(lift):
            fewer = tuple(other for other in lift if other is not x)
            answer = self.without(fewer) if fewer else Answer[S]("infeasible")
            if answer.solution is not None:
                lift, solution = fewer, answer.solution
        return lift, solution


def smallest_conflict(problem: Limits[S], seconds: float = 60.0, seed: int = 0) -> Explanation[S]:
    """Find a solution, or all separate reasons why there is none, each a smallest set of limits that forbids one.

    Every limit is dropped in turn: if the others still forbid every solution it is not needed (and those that sufficed for that
    proof take the place of the set), if they allow one it is. What is left is minimal, unless time ran out: then limits of
    which neither was proved are kept. Then the same is asked without the limits found, until there is a solution.

    Parameters
    ----------
    seconds : wall time, approximately; a signal ends it with what is known
    """
    budget = Stop(max(seconds, 1e-9))
    with budget:
        questions = _Questions(problem, budget, seed)
        answer = questions.ask(problem.every, FIRST)
        if answer.status != "infeasible":
            return Explanation(answer.status, answer.solution)
        conflicts: list[Conflict[S]] = []
        left = problem.every
        while answer.status == "infeasible" and (left or not conflicts):
            conflicts.append(questions.conflict(left, answer))
            found = {x for c in conflicts for x in c.limits}
            left = tuple(x for x in problem.every if x not in found)
            answer = questions.ask(left)
            if not conflicts[-1].limits:
                break
        return _explanation(questions, conflicts, answer)


def _explanation(questions: _Questions[S], conflicts: list[Conflict[S]], answer: Answer[S]) -> Explanation[S]:
    """Return the conflicts with what to lift; ``answer`` is about the problem without all of their limits."""
    certificate: dict[str, Any] = dict(conflicts[0].certificate)
    if len(conflicts) > 1:
        certificate["also"] = [c.certificate for c in conflicts[1:]]
    lift: tuple[Limit, ...] = ()
    lifted, enough = answer.solution, questions.enough(conflicts[0]) if len(conflicts) == 1 else {}
    if enough:
        lift, lifted = next(((x,), s) for x, s in enough.items())
    elif lifted is not None:
        named = {x for c in conflicts for x in c.limits}
        lift, lifted = questions.fewest(_ordered(questions.problem.every, tuple(named)), lifted)
    if lifted is not None:
        certificate["lift"] = {"limits": [_named(x) for x in lift]} | questions.problem.written(lifted)
    return Explanation("infeasible", None, tuple(conflicts), lift, lifted, tuple(enough), certificate)


def _ordered(limits: tuple[Limit, ...], chosen: tuple[Limit, ...]) -> tuple[Limit, ...]:
    return tuple(x for x in limits if x in chosen)


def _named(limit: Limit) -> dict[str, Any]:
    return {"kind": limit.kind, "name": limit.name}


def recheck_conflict(problem: Limits[Any], certificate: Mapping[str, Any], seconds: float = 30.0) -> bool:
    """Check what :attr:`Conflict.certificate` or :attr:`Explanation.certificate` claims about ``problem``.

    Every witness must obey all named limits but its own, and the limits together must be impossible for a second program; so for
    the conflicts under ``also``. The solution under ``lift`` must obey all limits of the problem but those named there.

    Returns
    -------
    bool
        True if that program proved it, False if the problem is too large for it or time ran out

    Raises
    ------
    CertificateError : a limit the problem does not have, a witness that breaks another limit or belongs to none, or
        a solution that obeys all limits
    """
    every = {(x.kind, x.name): x for x in problem.every}
    named = tuple(_limit(every, entry, "limits") for entry in _entries(certificate, "limits"))
    for entry in _entries(certificate, "without"):
        limit = _limit(every, entry, "without")
        if limit not in named:
            raise CertificateError(f"without: {limit.words} is not one of the limits")
        broken = problem.complaint(tuple(x for x in named if x is not limit), entry)
        if broken is not None:
            raise CertificateError(f"without {limit.words}: {broken}")
    if "lift" in certificate:
        lift = certificate["lift"]
        lifted = {_limit(every, entry, "lift") for entry in _entries(lift, "limits")}
        broken = problem.complaint(tuple(x for x in problem.every if x not in lifted), lift)
        if broken is not None:
            raise CertificateError(f"lift: {broken}")
    others = _entries(certificate, "also") if "also" in certificate else ()
    part = seconds / (1 + len(others))
    proved = problem.impossible(named, part)
    if proved is False:
        raise CertificateError("limits: there is a solution that obeys them all")
    confirmed = [recheck_conflict(problem, other, part) for other in others]
    return bool(proved) and all(confirmed)


def _entries(certificate: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    entries = certificate.get(key) if isinstance(certificate, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(e, Mapping) for e in entries):
        raise CertificateError(f"{key} is not a list of objects")
    return entries


def _limit(every: Mapping[tuple[Any, Any], Limit], entry: Mapping[str, Any], where: str) -> Limit:
    kind, name = entry.get("kind"), entry.get("name")
    if not isinstance(kind, str) or not isinstance(name, str) or (kind, name) not in every:
        raise CertificateError(f"{where}: the problem has no {kind!r} {name!r}")
    return every[kind, name]


def whole_list(entry: Mapping[str, Any], key: str, most: int = 2**31 - 1) -> list[int]:
    """Return the list of whole numbers under ``key``, none beyond ``most``.

    Raises
    ------
    CertificateError : it is something else
    """
    found = entry.get(key)
    if not isinstance(found, list) or not all(type(p) is int and abs(p) <= most for p in found):
        raise CertificateError(f"without: {key} is not a list of whole numbers")
    return found
