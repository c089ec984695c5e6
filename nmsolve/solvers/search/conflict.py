"""A smallest conflict: limits that together forbid every solution, each of them needed for that. One loop for every problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nmsolve.model.errors import CertificateError
from nmsolve.model.limit import Limit as Limit
from nmsolve.solvers.search.budget import Budget

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
    """What was found: ``status`` is ``feasible`` (with a ``solution``), ``infeasible`` (with a ``conflict``) or ``unknown``."""

    status: str
    solution: S | None = None
    conflict: Conflict[S] | None = None


def smallest_conflict(problem: Limits[S], seconds: float = 60.0, seed: int = 0) -> Explanation[S]:
    """Find a solution, or a smallest set of limits that forbids one.

    Every limit is dropped in turn: if the others still forbid every solution it is not needed (and those that sufficed for that
    proof take the place of the set), if they allow one it is. What is left is minimal, unless time ran out: then limits of
    which neither was proved are kept.

    Parameters
    ----------
    seconds : wall time, approximately; a signal ends it with what is known
    """
    budget = Budget(max(seconds, 1e-9))
    with budget.ctrl_c():

        def ask(limits: tuple[Limit, ...], part: float = PATIENCE) -> Answer[S]:
            left = 0.0 if budget.interrupted else part * budget.left()
            return problem.ask(limits, left, seed, lambda: budget.interrupted)

        first = ask(problem.every, FIRST)
        if first.status != "infeasible":
            return Explanation(first.status, first.solution)
        kept = _ordered(problem.every, first.needed)
        needed: dict[Limit, S] = {}
        for x in problem.every:
            if x not in kept:
                continue
            others = tuple(other for other in kept if other is not x)
            answer = ask(others)
            if answer.status == "infeasible":
                kept = _ordered(others, answer.needed)
            elif answer.solution is not None:
                needed[x] = answer.solution
        necessary = tuple(x for x in kept if x in needed)
        without = tuple(needed[x] for x in necessary)
        certificate = {
            "limits": [_named(x) for x in kept],
            "without": [_named(x) | problem.written(s) for x, s in zip(necessary, without, strict=True)],
        }
        return Explanation(
            "infeasible", None, Conflict(kept, necessary, without, problem.reason(kept), certificate)
        )


def _ordered(limits: tuple[Limit, ...], chosen: tuple[Limit, ...]) -> tuple[Limit, ...]:
    return tuple(x for x in limits if x in chosen)


def _named(limit: Limit) -> dict[str, Any]:
    return {"kind": limit.kind, "name": limit.name}


def recheck_conflict(problem: Limits[Any], certificate: Mapping[str, Any], seconds: float = 30.0) -> bool:
    """Check what :attr:`Conflict.certificate` claims about ``problem``.

    Every witness must obey all named limits but its own, and the limits together must be impossible for a second program.

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
    proved = problem.impossible(named, seconds)
    if proved is False:
        raise CertificateError("limits: there is a solution that obeys them all")
    return bool(proved)


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
