"""A context for engines of schedules that run alone."""

from __future__ import annotations

from search_fakes import TimedContext

from nmsolve.hw.schedule.evaluate import all_objectives
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.schedule import Schedule


class Alone(TimedContext):
    """Keeps what an engine offers and proves; offers are judged by rules and evaluator."""

    def __init__(self, problem, seconds=60.0, start=None):
        super().__init__(seconds)
        self.problem, self.seed, self.refused = problem, 0, []
        if start is not None:
            self.offer(start.packed())

    def should_stop(self):
        return super().should_stop() or self.low >= self.value

    def offer(self, solution, move=""):
        answer = Schedule.unpacked(solution)
        complaint = schedule_complaint(self.problem, answer)
        values = {} if complaint else all_objectives(self.problem, answer)
        if complaint or any(values[name] > most for name, most in self.problem.ceilings):
            self.refused.append(complaint or "a ceiling")
            return False
        if values[self.problem.objective] < self.value:
            self.best, self.value = solution.copy(), float(values[self.problem.objective])
            return True
        return False

    @property
    def answer(self):
        """The best schedule."""
        return Schedule.unpacked(self.best)


def run_alone(engine, problem, seconds=60.0, start=None):
    """Run an engine, which must not refuse; return its context."""
    assert engine.refuses(problem) is None
    context = Alone(problem, seconds, start)
    engine.run(problem, context)
    return context
