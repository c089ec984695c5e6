"""Limits that no plan can keep, reported before any search."""

from __future__ import annotations

import math

import numpy as np

from nmsolve.heuristics.pipeline.chain import Room
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.pipeline.merged import merge
from nmsolve.model.pipeline.problem import PipelineProblem


def require_fit(problem: PipelineProblem, chains: bool = True) -> None:
    """Raise DoesNotFitError where a layer needs more memory than the largest group has, or all need more than all cores.

    Hosts have no limit: layers that can run on one are not looked at. With off-chip memory everything fits. With live ranges, all
    chains of stages are looked at; not ``chains``: only weights are counted, and an engine has to prove the rest.
    """
    try:
        small = merge(problem).problem
    except InputError as error:  # as many stages as asked for would tear apart what must share one
        raise DoesNotFitError(error.what, error.where, error.expected) from None
    if problem.memory is None or problem.streams:
        return
    if problem.buffers is not None and problem.split == "chain" and chains:
        return _require_room(problem, int(problem.memory))
    free = np.zeros(small.count, bool)
    if problem.hosts and small.host_time is not None:
        free = np.isfinite(small.host_time)
    needed = np.where(free, 0.0, small.storage)
    most = problem.memory * problem.largest_group
    k = int(needed.argmax())
    if needed[k] > most * (1 + 1e-12):  # sums of classes are rounded here, and once more by the rule
        raise DoesNotFitError(
            f"layer {small.labels[k]!r} (with all that must share its stage) needs {needed[k]:,.6g} of memory, "
            f"the {problem.largest_group} cores of the largest group have {most:,.6g}",
            problem.name,
            "larger groups, or more memory per core",
        )
    total, all_cores = math.fsum(needed), problem.memory * problem.cores
    if total > all_cores * (1 + 1e-12):
        raise DoesNotFitError(
            f"the layers need {total:,.6g} of memory, all {problem.cores} cores have {all_cores:,.6g}",
            problem.name,
            "more cores, or more memory per core",
        )


def _require_room(problem: PipelineProblem, memory: int) -> None:
    """Raise DoesNotFitError if no chain of stages fits by live ranges, and say on how many cores, or how large ones, one does."""
    room = Room(problem)
    least = room.cores(memory) if memory else problem.cores + 1
    if least <= problem.cores:
        return
    larger = room.memory(problem.cores)
    cores = f"{least:,} cores, " if memory else ""
    raise DoesNotFitError(
        f"weights and live tensors do not fit on {problem.cores} cores of {memory:,} bytes in any chain of stages",
        problem.name,
        f"{cores}{larger:,} bytes per core, or off-chip memory (--offchip-bandwidth)",
    )
