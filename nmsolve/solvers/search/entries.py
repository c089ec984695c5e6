"""Which engines a run uses, for problems whose plan is a table of shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.solvers.search.portfolio import Step


@dataclass(frozen=True)
class Entry:
    """Where an engine lives and how it is run.

    Attributes
    ----------
    path : ``module:class`` below ``nmsolve``, imported when the engine is first wanted
    share : its part of the time
    child : in a child process
    repeat : again and again, each time with another seed
    quick : it takes milliseconds
    unasked : without ``--engines`` too
    instead : unasked only where the engine of that name does not run
    """

    path: str
    share: float
    child: bool = False
    repeat: bool = False
    quick: bool = False
    unasked: bool = True
    instead: str = ""

    def make(self) -> Any:
        """A new engine."""
        module, _, name = self.path.partition(":")
        return getattr(import_module("nmsolve." + module), name)()


def steps_of(
    registry: Mapping[str, Entry],
    problem: Any,
    names: Sequence[str] | None,
    what: str,
    late: Callable[[str], bool] = lambda name: False,
) -> tuple[list[Step], list[str]]:
    """The plan of a run, and why other engines are left out (``name: reason``).

    Parameters
    ----------
    names : engines asked for, in this order; None: all that run unasked, in the registry's order, the ``late`` ones last
    what : what the engines are for, in words

    Raises
    ------
    InputError : an unknown engine
    """
    steps: list[Step] = []
    refusals: list[str] = []
    unasked = sorted((k for k, e in registry.items() if e.unasked), key=late)
    for name in unasked if names is None else dict.fromkeys(names):
        if name not in registry:
            raise InputError(
                f"unknown engine {name!r} for {what}", "--engines", "one of " + ", ".join(registry)
            )
        entry = registry[name]
        if names is None and any(step.engine.name == entry.instead for step in steps):
            continue
        engine = entry.make()
        reason = engine.refuses(problem)
        if reason is not None:
            refusals.append(f"{name}: {reason}")
            continue
        steps.append(Step(engine, entry.share, child=entry.child, repeat=entry.repeat, quick=entry.quick))
    return steps, refusals
