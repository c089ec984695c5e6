"""What differs between fronts of mappings, routes and plans: the files of their points, and how these are checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nmsolve.kinds.assignment.check import AssignBounds
from nmsolve.kinds.check_bounds import BoundChecks, MappingBounds, RouteBounds
from nmsolve.kinds.check_fields import answer_check, mapping_check
from nmsolve.kinds.in_order import PLAIN
from nmsolve.kinds.schedule.check import ScheduleBounds
from nmsolve.model.assignment.problem import OBJECTIVES
from nmsolve.model.bound import BoundCheck

if TYPE_CHECKING:
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.mapping.report import CheckPart
    from nmsolve.model.assignment.assignment import Assignment
    from nmsolve.model.assignment.problem import AssignProblem
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem
    from nmsolve.model.schedule.problem import ScheduleProblem
    from nmsolve.model.schedule.schedule import Schedule
    from nmsolve.model.types import IntArray


#: Format of pareto.json.
FORMAT = "nmsolve-pareto-1"
#: The bounds of everything that was solved for a front, with their certificates.
PROOFS = "pareto-certificates.json"


class FrontKind(BoundChecks, Protocol):
    """The points of a front as files."""

    @property
    def command(self) -> str:
        """The command that makes such fronts."""

    @property
    def key(self) -> str:
        """How pareto.json calls the file of a point."""

    @property
    def title(self) -> str:
        """Which problem, for people."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of objectives; those that are not in it are plain figures."""

    def about(self) -> dict[str, dict[str, str]]:
        """Name and hash of what the front is about."""

    def write(self, path: Path, solution: Any) -> None:
        """Write the file of a point."""

    def write_beside(self, folder: Path) -> None:
        """Write files that the points have in common."""

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[Any, dict[str, float], list[str]]:
        """Return the solution in the file of a point, its objectives as recomputed, and which checks it fails.

        Parameters
        ----------
        values : the objectives that are claimed

        Raises
        ------
        InputError : not such a file
        """

    def file_check(self, path: Path, solution: Any, unread: Collection[str]) -> CheckPart:
        """Check every other field of the file of a point, but for those that are ``unread``."""


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
        from nmsolve.hw.verify import verify
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


@dataclass(frozen=True)
class RouteFront(RouteBounds):
    """Points are routes of the mapping in ``loaded``."""

    loaded: Loaded
    command, key, units = "route", "routes", PLAIN

    @property
    def title(self) -> str:
        """Graph and machine."""
        return f"routes of {self.loaded.graph.name} on {self.loaded.machine.name}"

    def about(self) -> dict[str, dict[str, str]]:
        """Flows, machine and rules."""
        return {"problem": {"name": self.title, "hash": self.problem.hash}}

    def write(self, path: Path, solution: IntArray) -> None:
        """Write ``solution`` (slots + channels,) as flow-routes.json."""
        from nmsolve.hw.routing.proof import cover_long_messages
        from nmsolve.model.routing.files import write_flow_routes
        from nmsolve.solvers.routing.api import chosen_routes

        found = chosen_routes(self.problem, solution)
        worms, _ = cover_long_messages(self.problem.machine, self.problem.flows, found.routes)
        write_flow_routes(path, self.problem, found.routes, found.turns, found.numbering, worms)

    def write_beside(self, folder: Path) -> None:
        """Write nothing: the mapping has its own folder."""

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[None, dict[str, float], list[str]]:
        """Return every check that routes get, and that they keep the rules of the front."""
        from nmsolve.hw.routing.values import routing_value
        from nmsolve.hw.verify_routes import verify_flow_routes
        from nmsolve.model.routing.files import read_flow_routes

        p, of = self.problem, self.loaded
        wrong = [
            f"{c.name}: {c.text}"
            for c in verify_flow_routes(of.graph, of.machine, of.core, path, values, p.turns)
            if not c.ok
        ]
        file = read_flow_routes(path, p.machine)
        for name in ("form", "detour", "table_limit", "channels"):
            if getattr(file.problem, name) != getattr(p, name):
                wrong.append(f"{name} is {getattr(file.problem, name)}, the front's is {getattr(p, name)}")
        if wrong or file.numbering is None:
            return None, {}, wrong or ["no numbers of channels"]
        return None, {k: routing_value(file.problem, file.routes, file.numbering, k) for k in p.objective}, []

    def file_check(self, path: Path, solution: None, unread: Collection[str]) -> CheckPart:
        """The file written again with its own routes."""
        from nmsolve.kinds.routing.rewritten import routes_check
        from nmsolve.model.routing.files import read_flow_routes

        return routes_check(path, read_flow_routes(path, self.problem.machine), self.problem)


class _Rewritten:
    """Points whose files are written again as a whole."""

    def file_check(self, path: Path, solution: Any, unread: Collection[str]) -> CheckPart:
        """The file written again."""
        write: Callable[[Path, Any], None] = self.write  # type: ignore[attr-defined]
        return answer_check(path, lambda to: write(to, solution), unread)


@dataclass(frozen=True)
class PlanFront(_Rewritten):
    """Points are plans of a pipeline."""

    problem: PipelineProblem
    exact = False
    command, key, units = "pipeline", "plan", PLAIN
    free: Collection[str] = ()
    slow: Collection[str] = ()

    @property
    def title(self) -> str:
        """The model."""
        return self.problem.name

    def about(self) -> dict[str, dict[str, str]]:
        """Return layers, cores and rules."""
        return {"problem": {"name": self.problem.name, "hash": self.problem.content_hash}}

    def write(self, path: Path, solution: PipelinePlan) -> None:
        """Write the plan as plan.json."""
        from nmsolve.model.pipeline.files import write_plan

        write_plan(path, self.problem, solution)

    def write_beside(self, folder: Path) -> None:
        """Nothing."""

    def read(
        self, path: Path, values: Mapping[str, float]
    ) -> tuple[PipelinePlan, dict[str, float], list[str]]:
        """Rules, and the period by two programs."""
        from nmsolve.hw.pipeline.stages import objective
        from nmsolve.kinds.pipeline.check import plan_checks
        from nmsolve.model.pipeline.check import plan_complaint
        from nmsolve.model.pipeline.files import read_plan
        from nmsolve.model.pipeline.objectives import LIMITS, PERIOD, used

        plan = read_plan(path, self.problem)
        wrong = plan_complaint(self.problem, plan)
        if wrong is not None:
            return plan, {}, [wrong]
        checks = plan_checks(self.problem, plan, values.get(PERIOD, objective(self.problem, plan)), ())
        scores = {name: float(used(self.problem, plan, name)) for name in LIMITS}
        scores[PERIOD] = objective(self.problem, plan)
        return plan, scores, [f"{c.name}: {c.text}" for c in checks if not c.ok]

    def check(
        self, stage: Stage, bound: Bound, solution: PipelinePlan | None, least: float, seconds: float = 60.0
    ) -> BoundCheck:
        """By other code than that which found it, under the stage's ceilings."""
        from nmsolve.solvers.pipeline.recheck_bounds import check_stage_bound

        return check_stage_bound(self.problem, stage, bound, least, seconds)

    def step(self, objective: str) -> float:
        """1 for what is counted."""
        from nmsolve.model.pipeline.objectives import LIMITS

        return 1.0 if objective in LIMITS else 0.0

    def hash_of(self, stage: Stage) -> str:
        """Return the hash of the pipeline without the stage's limits."""
        return self.problem.content_hash


class AssignFront(_Rewritten, AssignBounds):
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
        from nmsolve.model.assignment.check import assignment_complaint
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


class ScheduleFront(_Rewritten, ScheduleBounds):
    """Points are schedules."""

    command, key, units = "schedule", "schedule", PLAIN

    def __init__(self, problem: ScheduleProblem, earlier: bytes = b"") -> None:
        """``earlier`` : the schedule of which the problem is what is left, as its file has it."""
        super().__init__(problem)
        self.title, self._earlier = problem.name, earlier

    def about(self) -> dict[str, dict[str, str]]:
        """Return processes, units and limits."""
        return {"problem": {"name": self.problem.name, "hash": self.problem.content_hash}}

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
