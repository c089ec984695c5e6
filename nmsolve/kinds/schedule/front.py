"""Points of fronts that are schedules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.front import Rewritten
from nmsolve.kinds.in_order import PLAIN
from nmsolve.kinds.schedule.check import ScheduleBounds

if TYPE_CHECKING:
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule


class ScheduleFront(Rewritten, ScheduleBounds):
    """Points are schedules."""

    command, key, units = "schedule", "schedule", PLAIN

    def __init__(self, problem: ScheduleProblem, earlier: bytes = b"") -> None:
        """``earlier`` : the schedule of which the problem is what is left, as its file has it."""
        super().__init__(problem)
        self._earlier = earlier

    def write(self, path: Path, solution: Schedule) -> None:
        """Write the schedule as schedule.json."""
        from nmsolve.kinds.schedule.check import write_answer

        write_answer(path, self.problem, solution)

    def write_beside(self, folder: Path) -> None:
        """Write the schedule that ran before, if what is left of one is planned."""
        from nmsolve.kinds.schedule.again import EARLIER
        from nmsolve.model.files import write_atomic

        if self._earlier:
            write_atomic(folder / EARLIER, self._earlier)

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[Schedule, dict[str, float], list[str]]:
        """Rules, all objectives by two programs, queues and intervals."""
        from nmsolve.hw.schedule.evaluate import all_objectives
        from nmsolve.kinds.schedule.check import answer_checks, program_checks
        from nmsolve.model.schedule.check import schedule_complaint
        from nmsolve.model.schedule.schedule_file import read_schedule

        file = read_schedule(path, self.problem)
        wrong = schedule_complaint(self.problem, file.answer)
        if wrong is not None:
            return file.answer, {}, [wrong]
        found = all_objectives(self.problem, file.answer)
        checks, scores = answer_checks(
            self.problem, file.answer, found[self.problem.objective], found | dict(values)
        )
        checks += program_checks(self.problem, file) if scores else []
        return file.answer, scores, [f"{c.name}: {c.text}" for c in checks if not c.ok]
