"""Raise the bound of a given answer, which stays as it is (``nmsolve gap``), for any problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from nmsolve.model.bound import Bound, Result, gap
from nmsolve.model.errors import InputError
from nmsolve.model.types import IntArray
from nmsolve.solvers.run import Options, Task, solve

S = TypeVar("S")


@dataclass(frozen=True)
class Bounded(Generic[S]):
    """What bounding found.

    Attributes
    ----------
    result : about the given answer, with the best bounds known
    better : an answer with a lower objective that an exact engine met on its way, or None
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
    found = solve(
        task, replace(options, engines=names, keep=None)
    )  # a better answer takes no place of the given one
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
