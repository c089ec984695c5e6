"""The learned plan of automatic mode: the same engines as in the fixed one, other first slices in another order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.search.portfolio import Step

if TYPE_CHECKING:
    from nmsolve.learn.allocation.plan import Shares

#: Who plans automatic mode (``--allocate``): the constants of :mod:`nmsolve.solvers.mapping.auto`, or the table of logged runs.
#: To compare with: the table without features, and equal slices for all engines.
ALLOCATIONS = ("fixed", "learned", "constant", "uniform")
#: Part of the time that a heuristic without a slice has all the same.
BRIEF = 0.05


def require_allocation(name: str) -> str:
    """Return ``name`` if it is one of :data:`ALLOCATIONS`; InputError if not."""
    if name not in ALLOCATIONS:
        raise InputError(f"allocation {name!r}", "--allocate", "one of " + ", ".join(ALLOCATIONS))
    return name


def allocated(
    allocate: str,
    steps: Sequence[Step],
    problem: MappingProblem,
    seconds: float,
    workers: int,
    note: Callable[[str], None],
) -> list[Step]:
    """Return the ``steps`` of the fixed plan in the order and with the first slices of the plan called ``allocate``.

    The fixed plan stays, and ``note`` is told why, where the learned one has no say: several workers, exact engines among the
    steps, a graph on disk, limits that the logged problems did not have, a problem unlike all of them, no model or a
    damaged one.
    """
    from nmsolve.learn.allocation.table import allocation_table

    if allocate == "fixed":
        return list(steps)
    reason = _outside(steps, problem, workers)
    if reason is None:
        try:
            known = allocation_table().engines
            shares = _shares(allocate, steps, problem, seconds)
        except InputError as error:
            reason = str(error)
        else:
            if shares is not None:
                slices = {**shares.finders, **shares.provers}
                return _reordered(steps, slices, known, BRIEF * seconds)
            reason = "no logged problem is like this one"
    note(f"the fixed plan runs, not the learned one: {reason}")
    return list(steps)


def _shares(allocate: str, steps: Sequence[Step], problem: MappingProblem, seconds: float) -> Shares | None:
    from nmsolve.learn.allocation.features import features_of
    from nmsolve.learn.allocation.plan import planned, uniform
    from nmsolve.learn.allocation.table import allocation_table

    if allocate == "uniform":
        return uniform({step.engine.name: step.engine.finds == "bounds" for step in steps}, seconds)
    names = [step.engine.name for step in steps]
    return planned(allocation_table(), features_of(problem), names, seconds, blind=allocate == "constant")


def _outside(steps: Sequence[Step], problem: MappingProblem, workers: int) -> str | None:
    """Return why the learned plan has no say, or None."""
    if workers > 1:
        return "it is for one worker"
    if problem.graph.on_disk:
        return "the graph is on disk"
    if uses_links(problem) or uses_nets(problem):
        return "heuristics go on from one another here, and the log has each of them alone"
    if any(step.child or step.engine.finds == "both" for step in steps):
        return "exact engines have a chance"
    if (
        problem.limits_moves
        or problem.ceilings
        or problem.table_limit is not None
        or problem.axons is not None
    ):
        return "the problem has limits that no logged one had"
    return None


def _reordered(
    steps: Sequence[Step], slices: Mapping[str, float], known: Collection[str], brief: float
) -> list[Step]:
    """Return the steps: what takes milliseconds; heuristics with ``slices``; bounds that were never logged; bounds with slices;
    the others.

    Bounds without a slice have their first runs of the fixed plan, heuristics at most ``brief`` seconds. ``known`` : names of
    the engines that were logged
    """
    named = {step.engine.name: step for step in steps}
    quick = [step for step in steps if step.quick]
    chosen = [replace(named[name], first=span) for name, span in slices.items() if not named[name].quick]
    others = [step for step in steps if step.engine.name not in slices and not step.quick]
    bounds = [step for step in others if step.engine.finds == "bounds"]
    finders = [
        replace(step, first=min(step.first, brief)) for step in others if step.engine.finds != "bounds"
    ]
    unknown = [step for step in bounds if step.engine.name not in known]
    first = sum(step.engine.finds != "bounds" for step in chosen)
    rest = [step for step in bounds if step.engine.name in known]
    return [*quick, *chosen[:first], *unknown, *chosen[first:], *rest, *finders]
