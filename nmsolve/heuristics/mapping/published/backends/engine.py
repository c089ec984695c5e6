"""The engines ``metis``, ``kaminpar`` and ``mtkahypar``: partition with the tool, then place the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.published.backends import partitioners
from nmsolve.heuristics.mapping.published.backends.place import place_parts
from nmsolve.heuristics.mapping.published.backends.task import PartitionTask, make_task, uneven
from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


def _no_balance(problem: MappingProblem) -> str | None:
    if not problem.resources:
        return "nothing limits what a core holds, so there is nothing to balance"
    return uneven(problem)


#: Part of the time left in which a partition is placed before the next one is made.
FIRST_PART = 0.1
_takes = takes(f"{ANY} -constraints", _no_balance)


@dataclass(frozen=True)
class PartitionBackend:
    """A partitioner of others behind the engine interface.

    Cut first, distance second, as every two-phase tool: on ``hops`` this is a baseline, not a rival.

    Attributes
    ----------
    package, extra : what must be installed, and the extra of this package that brings it
    partition : from a task to the part of every node, once by each setting that the tool's documents recommend, quick ones first
    nets : it minimises connectivity itself; the others use the cut in its place
    """

    name: str
    package: str
    extra: str
    partition: Callable[[PartitionTask], Iterator[IntArray]]
    nets: bool = False
    finds: ClassVar[str] = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Return the problem has rules that partitioners do not know, or the package is missing."""
        reason = _takes(problem)
        if reason is None and find_spec(self.package) is None:
            reason = f"the package {self.package} is not installed: pip install 'nmsolve[{self.extra}]'"
        return reason

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Partition by each setting; place the parts of the best partition until time is up, if the objective knows distances.

        The partition with the least cut is the best, with the least connectivity where the tool minimises that. Until the next
        one is there, which may come too late, a better one is placed for a tenth of the time.

        Raises
        ------
        NmsolveError : the parts do not fit on cores, even after moving nodes
        """
        nets = self.nets and (problem.aim.reach or problem.uses_nets)
        cut = replace(problem, objective="connectivity" if nets else "cut", ceilings=())
        places = problem.objective not in ("cut", "connectivity")
        best: IntArray | None = None
        least = np.inf
        for part in self.partition(make_task(problem, nets, context.seed, context.workers)):
            wish = np.flatnonzero(problem.machine.usable)[part]
            core = repair(problem, wish)
            value = np.inf if core is None else objective_value(cut, core)
            if core is None or value >= least:
                continue
            best, least = core, value
            if moved := int((core != wish).sum()):
                context.note(f"{moved} nodes moved, because parts held more than a core does")
            context.offer(core, "partition")
            if places:
                place_parts(problem, _parts(core), context, FIRST_PART * context.time_left())
        if best is None:
            raise NmsolveError(f"the parts of {self.name} do not fit on the cores, even after moving nodes")
        if places:
            place_parts(problem, _parts(best), context)


def _parts(core: IntArray) -> IntArray:
    """Return (n,) the cores in use, numbered from 0."""
    return np.unique(core, return_inverse=True)[1].astype(np.int64)


def metis() -> PartitionBackend:
    """METIS by its package pymetis."""
    return PartitionBackend("metis", "pymetis", "metis", partitioners.metis)


def kaminpar() -> PartitionBackend:
    """KaMinPar."""
    return PartitionBackend("kaminpar", "kaminpar", "kaminpar", partitioners.kaminpar)


def mtkahypar() -> PartitionBackend:
    """Mt-KaHyPar; on messages with several targets it minimises connectivity."""
    return PartitionBackend("mtkahypar", "mtkahypar", "mtkahypar", partitioners.mtkahypar, nets=True)
