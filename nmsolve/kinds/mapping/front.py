"""Bounds of mappings re-checked, and points of fronts that are mappings."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.check_fields import mapping_check
from nmsolve.kinds.in_order import PLAIN
from nmsolve.model.bound import BoundCheck

if TYPE_CHECKING:
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray


class MappingBounds:
    """Bounds of mappings.

    Parameters
    ----------
    problem : what the problems have in common
    free_routes : routes were chosen, too
    memory : most bytes that this process may hold, or None; eigenvalues of a graph on disk may need more
    """

    exact = False
    slow = ("branch-bound",)

    def __init__(self, problem: MappingProblem, free_routes: bool = False, memory: int | None = None) -> None:
        self.problem, self._free_routes, self._memory = problem, free_routes, memory

    @property
    def free(self) -> Collection[str]:
        """All that are recomputed but one."""
        from nmsolve.check.mapping.recheck import CEILED, RECHECKS

        return RECHECKS.keys() - CEILED

    def check(
        self, stage: Stage, bound: Bound, solution: IntArray | None, least: float, seconds: float = math.inf
    ) -> BoundCheck:
        """From the certificate, but for what cannot be because the graph is on disk."""
        from nmsolve.check.mapping.recheck import FROM_DISK, RECHECKS, check_bound, needed_from_disk
        from nmsolve.solvers.mapping.hints import Hints
        from nmsolve.solvers.search.memory import held_now

        problem = self._stated(stage)
        on_disk = (
            problem.graph.on_disk and bound.scope == "full" and bound.method in RECHECKS.keys() - FROM_DISK
        )
        if on_disk and 0 < bound.value < math.inf:
            text = "not re-checked: the graph is on disk (more --memory loads it)"
            return BoundCheck(stage.problem == problem.hash, bound.value, text, "this run, unread")
        more = needed_from_disk(problem, bound)
        if more and self._memory is not None and held_now() + more > self._memory:
            least = math.ceil((held_now() + more) / 2**20)
            text = f"not re-checked: its eigenvalues take about {least} MiB of --memory"
            return BoundCheck(stage.problem == problem.hash, bound.value, text, "this run, unread")
        return check_bound(
            problem,
            bound,
            solution,
            stage.problem,
            free_routes=self._free_routes,
            seconds=seconds,
            hints=Hints,
        )

    def step(self, objective: str) -> float:
        """Of sums of whole numbers."""
        from nmsolve.check.mapping.bounds.parts import granularity

        return granularity(replace(self.problem, objective=objective, ceilings=()))

    def hash_of(self, stage: Stage) -> str:
        """Return the hash of the mapping problem."""
        from nmsolve.model.mapping.objectives import OBJECTIVES

        return self._stated(stage).hash if stage.objective in OBJECTIVES else ""

    def _stated(self, stage: Stage) -> MappingProblem:
        return replace(self.problem, objective=stage.objective, ceilings=stage.ceilings)


class MapFront(MappingBounds):
    """Points are mappings; ``turns``: those that their routes are held against."""

    command, key, units = "map", "mapping", PLAIN

    def __init__(self, problem: MappingProblem, turns: str | None = None) -> None:
        super().__init__(problem)
        self.turns, self.title = turns, f"{problem.graph.name} on {problem.machine.name}"

    def about(self) -> dict[str, dict[str, str]]:
        """Return graph and machine."""
        return {
            k: {"name": v.name, "hash": v.hash}
            for k, v in (("graph", self.problem.graph), ("machine", self.problem.machine))
        }

    def write(self, path: Path, solution: IntArray) -> None:
        """Write ``solution`` (n,) as mapping.json."""
        from nmsolve.model.mapping.files import write_mapping

        write_mapping(path, self.problem.graph, self.problem.machine, solution)

    def write_beside(self, folder: Path) -> None:
        """Write what a migration budget counts from."""
        if self.problem.migration is not None:
            self.write(folder / "reference.json", self.problem.migration.reference)

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[IntArray, dict[str, float], list[str]]:
        """Return every check that a mapping gets."""
        from nmsolve.check.mapping.verify import verify
        from nmsolve.model.mapping.files import read_mapping

        p = self.problem
        core = read_mapping(path, p.graph, p.machine)
        report = verify(
            p.graph,
            p.machine,
            p.constraints,
            core,
            node_limit=p.node_limit,
            migration=p.migration,
            turns=self.turns,
            also=values,
        )
        return core, dict(report.scores), [f"{c.name}: {c.text}" for c in report.checks if not c.ok]

    def file_check(self, path: Path, solution: IntArray, unread: Collection[str]) -> CheckPart:
        """What stands beside the columns."""
        return mapping_check(path, self.problem.graph, self.problem.machine, {"run", *unread})
