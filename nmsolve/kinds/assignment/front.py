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

    problem: AssignProblem

    def write(self, path: Path, solution: Assignment) -> None:
        """Write the assignment as assignment.json."""
        from nmsolve.model.assignment.files import write_assignment

        write_assignment(path, self.problem, solution)

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[Assignment, dict[str, float], list[str]]:
        """Rules, and all objectives by two programs."""
        from nmsolve.hw.assignment.evaluate import all_objectives
        from nmsolve.kinds.assignment.check import answer_checks
        from nmsolve.model.assignment.assignment import assignment_complaint
        from nmsolve.model.assignment.files import read_assignment

        answer = read_assignment(path, self.problem)
        wrong = assignment_complaint(self.problem, answer)
        if wrong is not None:
            return answer, {}, [wrong]
        found = all_objectives(self.problem, answer)
        checks, scores = answer_checks(
            self.problem, answer, found[self.problem.objective], found | dict(values)
        )
        return answer, scores, [f"{c.name}: {c.text}" for c in checks if not c.ok]
