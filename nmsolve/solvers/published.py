"""A published method as published: it runs once, to its end; what is left of the time goes to bounds of its answer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeVar

from nmsolve.model import clock
from nmsolve.model.bound import Event, Result
from nmsolve.model.errors import InputError
from nmsolve.solvers.bounding import bounding, is_news, joined, part_of_time, tell_news
from nmsolve.solvers.run import Options, Task, searched
from nmsolve.solvers.run import solve as solve_together

S = TypeVar("S")
#: Part of the time that a method may take; most need far less.
METHOD_PART = 0.75


def solve(task: Task[S], options: Options) -> Result[S]:
    """Run the task's engines over one incumbent, or ``options.method`` alone and then the engines that prove bounds.

    Raises
    ------
    InputError : an option is wrong, the task refuses the engines asked for, or the problem has no such method
    """
    return solve_together(task, options) if options.method is None else _published(task, options)


def _published(task: Task[S], options: Options) -> Result[S]:
    """Return the answer of the method, with the best bounds that are known in the end."""
    name = task.methods.get(options.method or "")
    if name is None:
        wanted = " or ".join(task.methods) or "none: no published method is about such problems"
        raise InputError(f"method {options.method!r}", "--method", wanted)
    if options.engines is not None:
        raise InputError("--method and --engines", "", "one of them")
    if task.first is not None:
        raise InputError(f"method {options.method!r} and an answer to start from", "--method", "one of them")
    reason = task.registry[name].make().refuses(task.checker.problem)
    if reason is not None:
        raise InputError(f"method {options.method!r}: {reason}", "--method", "another problem, or no method")
    started = clock.now() if options.started is None else options.started
    share = part_of_time(options, started, METHOD_PART)
    own, first = searched(task, replace(options, started=started, engines=[name], time_limit=share))
    if first is None or own.status == "optimal" or own.stop_reason in ("gap", "interrupt", "memory"):
        return own
    task.first = first
    rest = replace(
        options, method=None, started=started, known=(*options.known, *own.bounds), words=True,
        observers=[partial(tell_news, observer) for observer in options.observers],
    )  # fmt: skip
    found = bounding(task, rest, f"the answer of {name}")
    later = [event for event in found.result.events if is_news(event)]
    if found.better is not None:
        least = min(e.objective for e in later if e.kind == "incumbent" and e.objective is not None)
        text = f"the engines that prove bounds met a better answer than that of {name}: {least:.10g}"
        later.insert(-1, Event(later[-1].seconds, "note", "search", text=text))
    return joined(
        own, replace(found.result, method=options.method, events=tuple(later), better_objective=None)
    )
