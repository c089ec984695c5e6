"""Every engine for routes, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.solvers.search.portfolio import Step

#: With up to so many flows the exact model often proves what it finds in less time than large neighbourhoods need.
SMALL = 300


@dataclass(frozen=True)
class Entry:
    """How to make an engine and run it: its part of the time, in a child process, again and again, in milliseconds, unasked.

    ``most``: seconds of one run; ``instead``: it runs unasked only where the engine of that name does not; ``late``: with up to
    ``SMALL`` flows it comes after all others.
    """

    make: Callable[[], Any]
    share: float
    child: bool = False
    repeat: bool = False
    quick: bool = False
    unasked: bool = True
    most: float = float("inf")
    instead: str = ""
    late: bool = False


def _named() -> Any:
    from nmsolve.solvers.routing.named import NamedRules

    return NamedRules()


def _flow_lp() -> Any:
    from nmsolve.solvers.routing.lp import FlowLp

    return FlowLp()


def _price_bound() -> Any:
    from nmsolve.solvers.routing.flow_bound import PriceBound

    return PriceBound()


def _reroute() -> Any:
    from nmsolve.heuristics.routing.engine import Reroute

    return Reroute()


def _column_lns() -> Any:
    from nmsolve.solvers.routing.column_lns import ColumnLns

    return ColumnLns()


def _cpsat() -> Any:
    from nmsolve.solvers.routing.cpsat_engine import RouteCpSat

    return RouteCpSat()


def _mip() -> Any:
    from nmsolve.solvers.routing.mip_engine import RouteMip

    return RouteMip()


#: Engines in the order in which a run without ``--engines`` starts them.
REGISTRY: dict[str, Entry] = {
    "named": Entry(_named, 0.1, quick=True),
    "flow-lp": Entry(_flow_lp, 0.3, child=True),
    "price-bound": Entry(_price_bound, 0.3, instead="flow-lp"),
    "reroute": Entry(_reroute, 0.2, repeat=True),
    "column-lns": Entry(_column_lns, 0.2, child=True, repeat=True, late=True),
    "route-cpsat": Entry(_cpsat, 0.5, child=True),
    "route-mip": Entry(_mip, 0.5, child=True, unasked=False),
}


def steps_for(stage: RoutingStage, names: Sequence[str] | None) -> tuple[list[Step], list[str]]:
    """The plan for one stage, and why other engines are left out (``name: reason``).

    Raises
    ------
    InputError : an unknown engine
    """
    steps: list[Step] = []
    refusals: list[str] = []
    small = stage.problem.flows.count <= SMALL
    unasked = sorted((k for k, e in REGISTRY.items() if e.unasked), key=lambda k: small and REGISTRY[k].late)
    for name in unasked if names is None else dict.fromkeys(names):
        if name not in REGISTRY:
            raise InputError(
                f"unknown engine {name!r} for routes", "--engines", "one of " + ", ".join(REGISTRY)
            )
        entry = REGISTRY[name]
        if names is None and any(step.engine.name == entry.instead for step in steps):
            continue
        engine = entry.make()
        reason = engine.refuses(stage)
        if reason is not None:
            refusals.append(f"{name}: {reason}")
            continue
        steps.append(
            Step(
                engine,
                entry.share,
                child=entry.child,
                repeat=entry.repeat,
                quick=entry.quick,
                most=entry.most,
            )
        )
    return steps, refusals
