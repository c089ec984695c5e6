"""Every engine for pipelines, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.search.portfolio import Step

#: Up to so many layers times stages the exact model often proves what it finds before local search is through.
SMALL = 2000


@dataclass(frozen=True)
class Entry:
    """How to make an engine and run it: its part of the time, in a child process, again and again, in milliseconds, unasked.

    ``late``: the splits in which it comes after all others in small problems. ``most``: seconds of one run.
    """

    make: Callable[[], Any]
    share: float
    child: bool = False
    repeat: bool = False
    quick: bool = False
    unasked: bool = True
    late: tuple[str, ...] = ()
    most: float = float("inf")


def _chain() -> Any:
    from nmsolve.solvers.pipeline.partition import Chain

    return Chain()


def _counting() -> Any:
    from nmsolve.solvers.pipeline.bounds import CountingBounds

    return CountingBounds()


def _downsets() -> Any:
    from nmsolve.solvers.pipeline.partition import Downsets

    return Downsets()


def _local() -> Any:
    from nmsolve.heuristics.pipeline.local import PipelineLocal

    return PipelineLocal()


def _resplit() -> Any:
    from nmsolve.solvers.pipeline.resplit import Resplit

    return Resplit()


def _groups() -> Any:
    from nmsolve.heuristics.pipeline.local import GroupsLocal

    return GroupsLocal()


def _orders() -> Any:
    from nmsolve.heuristics.pipeline.orders import Orders

    return Orders()


def _cover() -> Any:
    from nmsolve.solvers.pipeline.cover_engine import CoverBound

    return CoverBound()


def _cpsat() -> Any:
    from nmsolve.solvers.pipeline.cpsat_engine import PipelineCpSat

    return PipelineCpSat()


def _mip() -> Any:
    from nmsolve.solvers.pipeline.mip_engine import PipelineMip

    return PipelineMip()


#: Engines in the order in which a run without ``--engines`` starts them.
REGISTRY: dict[str, Entry] = {
    "chain": Entry(_chain, 0.2, quick=True),
    "pipeline-counting": Entry(_counting, 0.1, quick=True),
    "downsets": Entry(_downsets, 0.4),
    "pipeline-local": Entry(_local, 0.2, repeat=True),
    "resplit": Entry(_resplit, 0.4, child=True, repeat=True, late=("any",)),
    "orders": Entry(_orders, 0.2, repeat=True, late=("any", "contiguous")),
    "pipeline-cpsat": Entry(_cpsat, 0.5, child=True),
    "cover": Entry(_cover, 0.3, child=True),
    "groups-local": Entry(_groups, 0.2, repeat=True, unasked=False),
    "pipeline-mip": Entry(_mip, 0.5, child=True, unasked=False),
}


def steps_for(problem: PipelineProblem, names: Sequence[str] | None) -> tuple[list[Step], list[str]]:
    """The plan of a run, and why other engines are left out (``name: reason``).

    Raises
    ------
    InputError : an unknown engine
    """
    steps: list[Step] = []
    refusals: list[str] = []
    small = problem.count * problem.slots <= SMALL
    unasked = [k for k, e in REGISTRY.items() if e.unasked]
    unasked.sort(key=lambda k: small and problem.split in REGISTRY[k].late)
    for name in unasked if names is None else dict.fromkeys(names):
        if name not in REGISTRY:
            raise InputError(
                f"unknown engine {name!r} for pipelines", "--engines", "one of " + ", ".join(REGISTRY)
            )
        entry = REGISTRY[name]
        engine = entry.make()
        reason = engine.refuses(problem)
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
