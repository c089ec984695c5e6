"""Points of fronts that are assignments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.assignment.check import AssignBounds
from nmsolve.kinds.front import Rewritten
from nmsolve.model.assignment.problem import OBJECTIVES

if TYPE_CHECKING:
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.assignment.problem import AssignProblem


class AssignFront(Rewritten, AssignBounds):
    """Points are assignments."""

    command, key, units = "assign", "assignment", OBJECTIVES

    def __init__(self, problem: AssignProblem) -> None:
        super().__init__(problem)
        self.stated, self.title = problem, problem.name

    def about(self) -> dict[str, dict[str, str]]:
        """Return operators, costs and rules."""
        return {"problem": {"name": self.stated.name, "hash": self.stated.content_hash}}

    def write(self, path: Path, solution: Assignment) -> None:
        """Write the assignment as assignment.json."""
        from nmsolve.model.assignment.files import write_assignment

        write_assignment(path, self.stated, solution)

    def write_beside(self, folder: Path) -> None:
        """Nothing."""

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[Assignment, dict[str, float], list[str]]:
        """Rules, and all objectives by two programs."""
        from nmsolve.hw.assignment.evaluate import all_objectives
        from nmsolve.kinds.assignment.check import answer_checks
        from nmsolve.model.assignment.assignment import assignment_complaint
        from nmsolve.model.assignment.files import read_assignment

        answer = read_assignment(path, self.stated)
        wrong = assignment_complaint(self.stated, answer)
        if wrong is not None:
            return answer, {}, [wrong]
        found = all_objectives(self.stated, answer)
        checks, scores = answer_checks(
            self.stated, answer, found[self.stated.objective], found | dict(values)
        )
        return answer, scores, [f"{c.name}: {c.text}" for c in checks if not c.ok]
