"""Points of fronts that are mappings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.check_bounds import MappingBounds
from nmsolve.kinds.check_fields import mapping_check
from nmsolve.kinds.in_order import PLAIN

if TYPE_CHECKING:
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray


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
