"""How the functions run, whatever the problem: the options that all of them take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from nmsolve.kinds.clock import Clock
from nmsolve.model.bound import Event
from nmsolve.model.clock import now
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import seconds, workers
from nmsolve.solvers.run import RunOptions

#: Seconds of a search if nothing is said.
TIME_LIMIT = 60.0


class How(RunOptions, total=False):
    """Those of every search (:class:`nmsolve.solvers.run.Options`), and ``on_event``: called with every event of the run."""

    on_event: Callable[[Event], None] | None


class MapHow(How, total=False):
    """How mappings are searched for besides.

    ``mip_solver``: the solver that Pyomo calls for the engine ``mip``; ``reward``: weights of the terms of the objective
    ``reward``, as in ``"deadlock=0,vertical=2"``, or the path of a file of terms.
    """

    reward: str | None
    mip_solver: str


def run_options(given: How, time_limit: float = TIME_LIMIT) -> RunOptions:
    """Return the options of a search that starts now, if they do not say when.

    Raises
    ------
    TypeError : an option that does not exist
    """
    known = How.__annotations__.keys() | RunOptions.__annotations__.keys()
    for name in given:
        if name not in known:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    how: Any = {"started": now(), "time_limit": time_limit, **given}
    memory, engines = how.get("memory"), how.get("engines")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, Integral)):
        raise InputError(f"memory is {memory!r}", "memory", "a whole number of bytes")
    if isinstance(engines, str):
        how["engines"] = [name.strip() for name in engines.split(",")]
    elif engines is not None and not isinstance(engines, Sequence):
        raise InputError(f"engines are {engines!r}", "engines", "names or engines, in a list")
    how["time_limit"] = seconds(how["time_limit"], "time_limit")
    if "workers" in how:
        how["workers"] = workers(how["workers"], "workers")
    on_event = how.pop("on_event", None)
    if on_event is not None:
        how["observers"] = [*how.get("observers", ()), on_event]
    options: RunOptions = how
    return options


def in_order(objective: str | Sequence[str]) -> str:
    """Return the names of one or several objectives as ``a,b``."""
    return objective if isinstance(objective, str) else ",".join(map(str, objective))


def left(how: RunOptions) -> float:
    """Return the seconds that are left of a run's limit."""
    started = how.get("started")
    return Clock(now() if started is None else started).left(how.get("time_limit", TIME_LIMIT))


def silent(text: str) -> None:
    """Take a sentence that a command would print."""


def split(given: MapHow) -> tuple[How, dict[str, Any]]:
    """Return the options of every search, and those of mappings only."""
    rest: Any = dict(given)
    own = {name: rest.pop(name) for name in ("mip_solver", "reward") if name in rest}
    how: How = rest
    return how, own


def names_of(engines: Sequence[Any]) -> list[str]:
    """Return the names of engines, which may be objects."""
    return [one if isinstance(one, str) else str(getattr(one, "name", one)) for one in engines]
