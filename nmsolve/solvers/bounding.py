"""Both sides of a given answer, which stays as it is (``nmsolve gap``), for any problem: a better one, and a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from nmsolve.model import clock
from nmsolve.model.bound import GIVEN, Bound, EngineShare, Event, Result, gap
from nmsolve.model.errors import InputError
from nmsolve.model.types import IntArray
from nmsolve.solvers.run import Options, Task, searched, solve
from nmsolve.solvers.search.incumbent import Observer

S = TypeVar("S")
#: Part of the time in which a better answer is searched for; bounds take longer.
SEARCH_PART = 0.3
#: Why a search stopped after which no other one begins.
LAST = ("gap", "interrupt", "memory")


@dataclass(frozen=True)
class Bounded(Generic[S]):
    """What bounding found.

    Attributes
    ----------
    result : about the given answer, with the best bounds known
    better : an answer with a lower objective that was met on the way, or None
    """

    result: Result[S]
    better: S | None


def bounding(task: Task[S], options: Options, where: str) -> Bounded[S]:
    """Run the engines that prove bounds (``task.provers`` if none are named), ``task.first`` being known from the start.

    Parameters
    ----------
    where : name of what was given, for messages

    Raises
    ------
    InputError : the answer breaks a rule, or an option is wrong
    """
    if options.method is not None:
        raise InputError(
            f"method {options.method!r} and a given answer", "method", "engines that prove bounds"
        )
    first = require_feasible(task, where)
    names = task.provers(options.time_limit) if options.engines is None else options.engines
    if "auto" in names:
        raise InputError(
            "engine 'auto' looks for mappings", "--engines", "engines that prove bounds, or none"
        )
    # a better answer takes no place of the given one
    return _about(task, first, solve(task, replace(options, engines=names, keep=None)))


def two_sided(task: Task[S], options: Options, where: str) -> Bounded[S]:
    """Search for a better answer in a part of the time, then prove bounds in the rest; with named engines :func:`bounding`.

    The search is that of a run without ``--engines`` which begins with the given answer. Arguments and errors as there.
    """
    if options.engines is not None or options.method is not None:
        return bounding(task, options, where)
    first = require_feasible(task, where)
    started = clock.now() if options.started is None else options.started
    limit = part_of_time(options, started, SEARCH_PART)
    own, found = searched(task, replace(options, started=started, time_limit=limit, keep=None))
    if own.status == "optimal" or own.stop_reason in LAST:
        return _about(task, first, own)
    if found is not None:
        task.first = found
    proofs = [bound for bound in own.bounds if bound.scope == "full"]
    rest = replace(
        options, started=started, keep=None, engines=task.provers(options.time_limit - limit),
        known=(*options.known, *proofs), observers=[partial(tell_news, o) for o in options.observers],
    )  # fmt: skip
    later = solve(task, rest)
    task.first = first
    bound = max((b for b in (own.bound, later.bound) if b is not None), default=None)
    both = replace(later, bound=bound, bounds=(*proofs, *later.bounds))
    if later.objective is None or (own.objective is not None and own.objective < later.objective):
        both = replace(both, solution=own.solution, objective=own.objective)
    return _about(task, first, joined(own, both))


def part_of_time(options: Options, started: float, part: float) -> float:
    """Return the time limit of a search that takes this ``part`` of what is left now."""
    used = clock.now() - started
    return used + part * max(options.time_limit - used, 0.0)


def joined(own: Result[S], later: Result[S]) -> Result[S]:
    """Return the result of a ``later`` search of one run, with what happened in its ``own`` one before."""
    return replace(
        later,
        events=(*own.events[:-1], *filter(is_news, later.events)),
        engines=_summed(own.engines, later.engines),
        cpu_seconds=own.cpu_seconds + later.cpu_seconds,
        memory_peak=max(own.memory_peak, later.memory_peak),
    )


def _summed(own: Sequence[EngineShare], later: Sequence[EngineShare]) -> tuple[EngineShare, ...]:
    """Return what each engine contributed to both searches; its status is the later one."""
    found = {share.engine: share for share in own}
    for share in (one for one in later if one.engine not in GIVEN):
        before = found.setdefault(share.engine, share)
        if before is not share:
            found[share.engine] = EngineShare(
                share.engine,
                before.cpu_seconds + share.cpu_seconds,
                before.offers + share.offers,
                before.incumbents + share.incumbents,
                min((v for v in (before.best, share.best) if v is not None), default=None),
                before.gain + share.gain,
                max((v for v in (before.bound, share.bound) if v is not None), default=None),
                share.status or before.status,
            )
    return tuple(found.values())


def is_news(event: Event) -> bool:
    """Return whether an event of the second search is news: the answer of the first one is not."""
    return event.kind != "start" and event.engine not in GIVEN


def tell_news(observer: Observer, event: Event) -> None:
    """Hand an event of the second search on if it is news."""
    if is_news(event):
        observer(event)


def _about(task: Task[S], first: IntArray, found: Result[S]) -> Bounded[S]:
    """Return a result about the given answer ``first`` (size,), with a better one that the run ``found``."""
    objective = float(task.checker.score(first))
    better = found.solution if found.objective is not None and found.objective < objective else None
    best: dict[tuple[str, str], Bound] = {}
    for b in found.bounds:
        # where a better answer was met, bounds that keep its parts are not about the given one
        key = (b.method, b.scope)
        if (better is None or b.scope == "full") and (key not in best or b.value > best[key].value):
            best[key] = b
    bound = None if found.bound is None else min(found.bound, objective)
    placed = max((b.value for b in best.values() if b.scope == "placement"), default=None)
    solution, scores = task.answer(first)
    result = replace(
        found,
        status="optimal" if bound is not None and bound >= objective else "feasible",
        solution=solution,
        objective=objective,
        bound=bound,
        gap=gap(objective, bound),
        bounds=tuple(best.values()),
        placement_bound=placed,
        placement_gap=gap(objective, placed),
        scores=scores,
        better_objective=None if better is None else found.objective,
    )
    return Bounded(result, better)


def require_feasible(task: Task[S], where: str) -> IntArray:
    """Return the task's first answer (size,).

    Raises
    ------
    InputError : there is none, or it breaks a rule (the first one is stated)
    """
    if task.first is None:
        raise InputError("there is no answer to bound", where, "a mapping, routes or a plan")
    complaint = task.checker.complaint(task.first)
    if complaint is not None:
        text = f"the answer breaks a rule: {complaint}"
        raise InputError(text, where, "a feasible one, or other limits")
    return task.first
