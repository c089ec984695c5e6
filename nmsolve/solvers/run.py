"""One run for every problem: engines race until the gap is closed, time or memory is up, or nothing is left to try."""

from __future__ import annotations

import math
import numbers
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypedDict, TypeVar

from nmsolve.check.foreign import plain
from nmsolve.model import clock
from nmsolve.model.bound import RUNNING, Bound, BoundCheck, Result, gap
from nmsolve.model.engine import Engine, Resumable, ScratchPlace
from nmsolve.model.errors import InputError, shortened
from nmsolve.model.quantities import seconds, workers
from nmsolve.model.stop import AWAY, CHILDREN, Stop
from nmsolve.model.types import IntArray
from nmsolve.solvers.search.checker import Checker
from nmsolve.solvers.search.context import DoubtingContext, run_guarded
from nmsolve.solvers.search.entries import Entry, provers
from nmsolve.solvers.search.incumbent import Incumbent, Observer
from nmsolve.solvers.search.keeping import Keeper
from nmsolve.solvers.search.memory import Memory
from nmsolve.solvers.search.portfolio import Portfolio, Step
from nmsolve.solvers.search.worker_pool import WorkerPool

S = TypeVar("S")
#: Part of the time after which no more than one of the bounds known before is re-checked.
KNOWN = 0.3
#: Most seconds in which an engine looks for a solution although a solver says that there is none.
DOUBT = 1.0
#: Least seconds of compiling that are worth a note.
NOTICED = 1.0


#: What numbers must be, for callers that no type checker has seen.
_KINDS: tuple[tuple[str, Any, str], ...] = (
    ("gap", numbers.Real, "a number >= 0"),
    ("seed", numbers.Integral, "a whole number >= 0"),
    ("memory", (numbers.Integral, type(None)), "a whole number of bytes"),
)


@dataclass(frozen=True)
class Options:
    """How to run, whatever the problem.

    Attributes
    ----------
    time_limit : wall seconds, or text such as ``5m``, from ``started`` (``clock.now()``; now if not given) on
    gap : stop once ``|objective - bound| / |objective|`` is proved to be no more than this
    seed : seed of all random choices
    workers : engines that run at the same time; ``all``: as many as this process may use cores
    engines : names from the problem's registry or engines as objects, in this order; chosen by the problem if not given
    memory : most bytes that all processes together may hold
    scratch : where engines may put what does not fit in memory
    observers : called with every event
    known : bounds from before; those count that can be recomputed from their certificates
    words : bounds from before also count on a solver's word
    enough : stop once it is known whether the objective can be as low as this
    method : a published method, ``m1`` to ``m5``, as far as the problem has it: it runs once, to its end, and the answer is its
        own; what is left of the time goes to bounds of that answer (:func:`nmsolve.solvers.published.solve`)
    cluster : address of a Ray cluster whose cores are the workers; ``auto`` for the one that runs here, ``local`` for a new one
    keep : called with the result so far: with the first answer at once, with better ones now and then, and before a second Ctrl-C
        ends everything. Its stop reason is :data:`nmsolve.model.bound.RUNNING`

    Raises
    ------
    InputError : a number is out of range
    """

    time_limit: float = 60.0
    started: float | None = None
    gap: float = 0.0
    seed: int = 0
    workers: int = 1
    engines: Sequence[str | Engine] | None = None
    memory: int | None = None
    scratch: ScratchPlace | None = None
    observers: Sequence[Observer] = ()
    known: Sequence[Bound] = ()
    words: bool = False
    enough: float | None = None
    method: str | None = None
    cluster: str | None = None
    keep: Callable[[Result[Any]], None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_limit", seconds(self.time_limit, "time_limit"))
        object.__setattr__(self, "workers", workers(self.workers, "workers"))
        for name, kind, what in _KINDS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kind):
                raise InputError(f"{name} is {shortened(repr(value))}", "", what)
        if not 0 <= self.gap <= 1:
            raise InputError(f"the gap is {self.gap}", "", "a number from 0 to 1: 0.05 is 5 %")
        if self.cluster is not None and self.workers != 1:
            raise InputError(
                f"{self.workers} workers on a cluster", "", "none given: as many as the cluster has cores"
            )
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "", "a whole number >= 0")

    def require_gap(self) -> None:
        """Refuse a gap that any answer >= 0 has, as InputError."""
        if self.gap >= 1:
            raise InputError(f"gap {self.gap}", "", "0 <= gap < 1")


class RunOptions(TypedDict, total=False):
    """Those of :class:`Options` that every function which solves a problem takes by name; an unknown one is a TypeError."""

    time_limit: float
    started: float | None
    gap: float
    seed: int
    workers: int
    engines: Sequence[str | Engine] | None
    memory: int | None
    scratch: ScratchPlace | None
    observers: Sequence[Observer]
    method: str | None
    cluster: str | None
    keep: Callable[[Result[Any]], None] | None


@dataclass
class Run:
    """One run, as a task sees it before and after the search."""

    options: Options
    budget: Stop
    memory: Memory
    incumbent: Incumbent
    steps: list[Step] = field(default_factory=list)
    cpu: float = field(default_factory=time.process_time)

    def result(
        self, task: Task[S], status: str, reason: str, answer: tuple[S | None, Mapping[str, float]], child_cpu: float = 0.0
    ) -> Result[S]:  # fmt: skip
        """Return what is known now; ``answer``: the solution and its scores, ``child_cpu``: CPU seconds of other processes."""
        incumbent, found = self.incumbent, answer[0]
        objective = None if found is None else incumbent.objective
        bound = incumbent.bound if incumbent.has_bound else None
        return Result(
            status=status,
            stop_reason=reason,
            objective_name=task.objective,
            solution=found,
            objective=objective,
            bound=bound,
            gap=gap(objective, bound),
            bounds=incumbent.bounds,
            scores=answer[1],
            events=incumbent.events,
            engines=incumbent.shares(),
            wall_seconds=self.budget.elapsed(),
            cpu_seconds=time.process_time() - self.cpu + child_cpu,
            seed=self.options.seed,
            method=self.options.method,
            memory_budget=self.memory.budget,
            memory_peak=self.memory.peak,
        )

    def keep(self, task: Task[S]) -> None:
        """Hand over the best answer so far, if anybody takes it."""
        incumbent = self.incumbent
        if self.options.keep is not None and incumbent.lifted is not None:
            status = "optimal" if incumbent.optimal else "feasible"
            self.options.keep(self.result(task, status, RUNNING, task.so_far(incumbent.lifted)))

    def not_run(self, refusals: Mapping[str, str]) -> None:
        """Say which engines were left out, and why."""
        for name, reason in refusals.items():
            self.incumbent.record("note", "search", f"not run: {name}: {reason}")


class Task(ABC, Generic[S]):
    """A problem as a run needs it; every kind of problem implements it once.

    Attributes
    ----------
    objective : what is minimised
    checker : checks and scores solutions; it holds the problem that engines get
    first : a solution in the user's terms to start from, or None
    registry : all engines by name; empty where none can bound a given answer
    methods : the engines that run a published method, by the method's name
    quick : names of those that soon find a solution of most problems; asked where a solver says that there is none
    exact : objectives and bounds are whole numbers without rounding, so that a gap of one is a gap; most are sums of floats
    """

    objective: str
    checker: Checker
    first: IntArray | None = None
    registry: Mapping[str, Entry] = MappingProxyType({})
    methods: Mapping[str, str] = MappingProxyType({})
    quick: Sequence[str] = ()
    exact: bool = False

    @abstractmethod
    def words(self, seed: int) -> str:
        """Return what is to be solved, for people."""

    def reserve(self, time_limit: float) -> float:
        """Return seconds that :meth:`finish` needs."""
        return 0.0

    @abstractmethod
    def start(self, run: Run) -> list[Step]:
        """Tell the run what is known before, and plan it."""

    def planned(self, run: Run, steps: list[Step], refusals: Mapping[str, str]) -> list[Step]:
        """Return the ``steps`` after the first solution was offered, and what does not run was told.

        Raises
        ------
        InputError : every engine that was asked for refuses the problem
        """
        run.not_run(refusals)
        require_steps(run.options.engines, steps, refusals)
        if self.first is not None:
            run.incumbent.offer("start", self.first, "given")
        return steps

    def finish(self, run: Run) -> Bound | None:
        """Return what is left to do after the search; a bound on the solution's own part of the problem, if there is one."""
        return None

    @abstractmethod
    def answer(self, lifted: IntArray) -> tuple[S, Mapping[str, float]]:
        """Return the best solution ``lifted`` (size,) in the user's terms, and all objectives by name."""

    def so_far(self, lifted: IntArray) -> tuple[S, Mapping[str, float]]:
        """Return the same while the search goes on; without the objectives where these take long."""
        return self.answer(lifted)

    def provers(self, seconds: float) -> list[str]:
        """Return names of the engines that may raise the bound within ``seconds``, those first that only prove: of those that a
        run without ``--engines`` would also use."""
        return provers(self.registry, self.checker.problem, may=lambda name: self.registry[name].unasked)

    def recheck(self, bound: Bound, seconds: float) -> BoundCheck:
        """Return what a bound's certificate proves, by code that did not find it, in at most about ``seconds``."""
        return BoundCheck(False, math.nan, "nothing here can be recomputed")


def require_steps(
    engines: Sequence[str | Engine] | None, steps: Sequence[Step], refusals: Mapping[str, str]
) -> None:
    """Raise InputError if ``engines`` were asked for and all of them refuse the problem: no ``steps`` are left."""
    if engines and not steps:
        reasons = "; ".join(f"{name}: {why}" for name, why in refusals.items())
        raise InputError(f"no engine takes this problem ({reasons})", "--engines", "engines that do")


def solve(task: Task[S], options: Options) -> Result[S]:
    """Run the task's engines over one incumbent.

    Raises
    ------
    InputError : an option is wrong, or the task refuses the engines asked for
    """
    return searched(task, options)[0]


def searched(task: Task[S], options: Options) -> tuple[Result[S], IntArray | None]:
    """Return what :func:`solve` does, and the answer (size,) as the task's engines have it.

    Raises
    ------
    InputError : as there
    """
    if options.method is not None and options.engines is None:
        raise InputError(f"method {options.method!r} and several objectives", "--method", "one objective")
    stood, limit = clock.stood(), options.time_limit
    options, worker_pool = _with_worker_pool(options)
    memory = Memory(options.memory)
    reserve = max(CHILDREN.of(limit), task.reserve(limit)) + (AWAY.of(limit) if worker_pool else 0.0)
    budget = Stop(limit, started=options.started, reserve=reserve)
    with budget, memory.watched(budget.starve):
        incumbent = Incumbent(
            task.checker, budget, options.observers, options.gap, options.enough, task.exact
        )
        incumbent.record("start", "", task.words(options.seed))
        run = Run(options, budget, memory, incumbent)
        keeper = Keeper(incumbent, budget, partial(run.keep, task))
        try:
            run.steps = task.start(run)
            if options.method is not None:  # as published, so once
                run.steps = [replace(step, repeat=False) for step in run.steps]
            others = [step.engine.name for step in run.steps if step.foreign]
            incumbent.require_recheck(others, partial(_recheck, task, budget))
            _raise_known(task, run)
            portfolio = Portfolio(
                task.checker, incumbent, budget, seed=options.seed, workers=options.workers, memory=memory,
                scratch=options.scratch, worker_pool=worker_pool, look=keeper.look,
            )  # fmt: skip
            if run.steps:
                budget.begin()
            portfolio.run(run.steps)
            _doubt(task, run)
            placement = task.finish(run)
            if (compiling := clock.stood() - stood) >= NOTICED:
                text = f"compiled kernels, once: {compiling:.0f} s, which the time limit does not count"
                incumbent.record("note", "search", text)
            status, reason = _say_ending(incumbent, budget, portfolio)
            answer = (None, {}) if incumbent.lifted is None else task.answer(incumbent.lifted)
        except KeyboardInterrupt:
            keeper.keep()
            raise
        ended = run.result(task, status, reason, answer, portfolio.child_cpu)
        if placement is not None:
            ended = replace(
                ended,
                bounds=(*ended.bounds, placement),
                placement_bound=placement.value,
                placement_gap=gap(ended.objective, placement.value),
            )
        return ended, incumbent.lifted


def _doubt(task: Task[S], run: Run) -> None:
    """Ask the task's quick engines that did not run where a native solver says that there is no solution: it may be wrong.

    CP-SAT 9.15 says so of a few problems with coefficients of 10^13 that have one.
    """
    incumbent, options = run.incumbent, run.options
    by = incumbent.infeasible_by
    if by is None or by not in task.registry or not task.registry[by].child or options.enough is not None:
        return
    ran = {share.engine for share in incumbent.shares()}
    for name in task.quick:
        engine = task.registry[name].make()
        if name in ran or engine.refuses(task.checker.problem) is not None:
            continue
        end, cpu = clock.now() + min(DOUBT, run.budget.left()), time.process_time()
        context = DoubtingContext(
            name, incumbent, run.budget, seed=options.seed, workers=1, deadline=end, memory=run.memory
        )
        ending = run_guarded(engine, task.checker.problem, context)
        incumbent.finish(name, ending.kind, time.process_time() - cpu)
        if incumbent.lifted is not None:
            return


def _with_worker_pool(options: Options) -> tuple[Options, Callable[[Checker], WorkerPool] | None]:
    """Return the options with the workers of the cluster, if one was requested, and what makes its worker pool.

    Raises
    ------
    InputError : there is no such cluster
    """
    if options.cluster is None:
        return options, None
    from nmsolve.solvers.cluster.machines import joined
    from nmsolve.solvers.cluster.worker_pool import ClusterWorkerPool

    cluster = joined(options.cluster)
    return replace(options, cluster=None, workers=max(1, cluster.slots())), partial(
        ClusterWorkerPool, cluster
    )


def _recheck(task: Task[S], budget: Stop, bound: Bound) -> BoundCheck:
    """Re-check a bound of a third-party engine, and that its certificate can be written."""
    try:
        plain(bound.certificate)
    except InputError as error:
        return BoundCheck(False, math.nan, error.what)
    return task.recheck(bound, max(budget.left(), 1.0))


def _raise_known(task: Task[S], run: Run) -> None:
    """Raise those of the bounds known before that hold, the best first; once time is short only until there is one."""
    end, taken = clock.now() + KNOWN * run.budget.left(), 0
    for bound in sorted(run.options.known, key=lambda b: (b.scope != "full", -b.value)):
        left = end - clock.now()
        if taken and left <= 0:
            break
        if bound.scope == "full" and bound.value > run.incumbent.objective * (1 + 1e-9):
            continue  # it would cost the others their credit
        found = task.recheck(bound, max(left, 1.0))
        if found.ok and (run.options.words or not found.word or found.by_package):
            taken += run.incumbent.raise_bound("before", replace(bound, package=found.package))
            for step in run.steps:
                if step.engine.name == bound.method and isinstance(step.engine, Resumable):
                    step.engine.resume(bound)


def _say_ending(incumbent: Incumbent, budget: Stop, portfolio: Portfolio) -> tuple[str, str]:
    """Return the status and stop reason of a run, reported as its last event."""
    status = "unknown" if incumbent.lifted is None else "optimal" if incumbent.optimal else "feasible"
    status = "infeasible" if incumbent.infeasible else status
    reason = _stop_reason(incumbent, budget, portfolio)
    incumbent.record("end", "", f"{status}, stopped by {reason}")
    return status, reason


def _stop_reason(incumbent: Incumbent, budget: Stop, portfolio: Portfolio) -> str:
    """Return why the run ended, the strongest reason first."""
    kinds = {ending.kind for ending in portfolio.endings.values()}
    if incumbent.infeasible:
        return "exhausted"
    if incumbent.reached:
        return "gap"
    if budget.interrupted:
        return "interrupt"
    if budget.starved:
        return "memory"
    if budget.over() or portfolio.hurried:
        return "time"
    if "memory" in kinds:
        return "memory"
    return "error" if kinds == {"failed"} else "exhausted"
