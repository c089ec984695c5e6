"""The scheduler: which engine runs when, where and for how long, over one incumbent."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import TypeVar

from nmsolve.model import clock
from nmsolve.model.engine import Engine, Remotes, ScratchPlace, Subtasks, SubtaskWorker
from nmsolve.model.stop import Stop
from nmsolve.solvers.search.checker import Checker
from nmsolve.solvers.search.child import GRACE
from nmsolve.solvers.search.context import Ending, LocalContext, run_guarded
from nmsolve.solvers.search.incumbent import Incumbent
from nmsolve.solvers.search.memory import Memory
from nmsolve.solvers.search.pausing import PausingContext, PausingRun
from nmsolve.solvers.search.race import IDLE, Past, last_turn, spent_by
from nmsolve.solvers.search.worker_pool import LocalWorkerPool, Worker, WorkerPool

Local = TypeVar("Local", bound=LocalContext)
#: A repeated engine is dropped after this many runs in a row without a change.
PATIENCE = 100
#: A child is not worth starting with less time than this (CPU seconds): Python and the solver must load first.
CHILD_MINIMUM = 0.4
#: An engine gets at least this many seconds, if they are left; in a child it has to import its libraries first.
LEAST, CHILD_LEAST = 0.2, 2.0
#: An engine is not run again with less time than this part of what its last run took.
RESTART = 0.1
#: Losses in a row of machines that an engine ran on, after which it does not run again.
LOSSES = 200
#: Seconds by which a signal shortens a child's grace period.
LESS_GRACE = 0.3
_POLL = 0.05
#: Said of an engine without an answer or bound: at the end of its part of the time, of all time, or by itself.
CUT_OFF = "its part of the time was over before it had an answer"
TOO_LATE, IN_VAIN = "no {} before the time was over", "it offered nothing"


@dataclass(frozen=True)
class Step:
    """One engine's place in a plan.

    Attributes
    ----------
    share : its part of the time, relative to the shares of the steps after it; what it leaves goes to them
    child : it must run in a child process (exact engines: they may crash, overrun, or eat all memory)
    repeat : run it again with another seed while time is left
    restart : with less than this part of all time left, it is not run again
    quick : it takes milliseconds, and runs in this process even with several workers
    most : never more than this many seconds in one run
    first : seconds of its first run; if any step of a plan says so, what follows is a race (:mod:`.race`)
    threads : it runs in this process and uses all workers itself
    foreign : of another package; its bounds count as far as they can be recomputed
    """

    engine: Engine
    share: float = 1.0
    child: bool = False
    repeat: bool = False
    restart: float = 0.0
    quick: bool = False
    most: float = math.inf
    first: float = math.inf
    threads: bool = False
    foreign: bool = False


@dataclass
class _Running:
    """A child at work on a step since ``begun``: in which round, with how many threads, and whether it has changed anything."""

    step: Step
    child: Worker
    number: int
    threads: int
    begun: float
    changed: bool = False


@dataclass
class _Pool:
    """The children of one run; made when the first child starts."""

    workers: WorkerPool
    running: list[_Running] = field(default_factory=list)


class Portfolio:
    """Runs a plan of steps until the gap is reached, time is up, or nothing is left to try.

    With one worker the steps run one after the other; those that need no child run in this process. With several workers as
    many steps run at the same time: one that finds solutions in this process, which need not start first, the others each in a
    child; or all in children, where a step with threads needs this process. When the plan is through, its repeatable steps run
    again and again, each time with another seed, from the best solution of all; in a race bounds too, with more time.

    Parameters
    ----------
    memory : the memory budget; what this process leaves of it is divided among the children
    scratch : where engines in this process may put files
    worker_pool : makes the pool that runs all steps but quick and threaded ones; processes of this machine if not given
    look : called now and then in this thread, also while an engine runs here
    """

    def __init__(
        self,
        checker: Checker,
        incumbent: Incumbent,
        budget: Stop,
        *,
        seed: int = 0,
        workers: int = 1,
        memory: Memory | None = None,
        scratch: ScratchPlace | None = None,
        worker_pool: Callable[[Checker], WorkerPool] | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._look_too = look
        self._away, self._make_pool = worker_pool is not None, worker_pool or LocalWorkerPool
        self._checker, self._incumbent, self._budget = checker, incumbent, budget
        self._seed, self._workers = seed, workers
        self._here = min(workers, os.cpu_count() or 1) if self._away else workers
        self._memory, self._scratch = memory or Memory(), scratch
        self._pool: _Pool | None = None
        self._threads = 1
        self._plan: Iterator[tuple[Step, float] | None] = iter(())
        #: Whether one worker's step may run in this process, whether one does, and whether others are being started beside it.
        self._joins, self._busy, self._filling = False, False, False
        self._thread, self._looked = get_ident(), 0.0
        self._seen = -1
        self._lost: list[Step] = []
        self._losses: dict[str, int] = defaultdict(int)
        self._vain: dict[str, int] = defaultdict(int)
        self._past: dict[str, Past] = defaultdict(Past)
        self._paused: dict[str, PausingRun] = {}
        #: Last ending of every engine.
        self.endings: dict[str, Ending] = {}
        #: True if a step was left out because too little time was left for it.
        self.hurried = False
        #: CPU seconds of all children so far.
        self.child_cpu = 0.0

    def run(self, steps: Sequence[Step]) -> None:
        """Run the plan. Children are gone when this returns or raises."""
        self._threads = max(1, self._workers // max(1, sum(s.child for s in steps)))
        self._plan = self._turns(steps)
        self._joins = not self._away and not any(
            s.threads and not s.quick for s in steps
        )  # those need this process
        try:
            if self._away:
                self._open()
            more = True
            while more or self._running():
                began = self._begin()
                self._look_too()
                more = not self._stopping() and (
                    began or bool(self._running()) or (self._free() <= 0 and self._may_rejoin())
                )
                if self._pool and (self._running() or self._away):
                    self._tend(self._pool, 0.0 if began and self._free() else _POLL)
            for step in steps:
                if self._needed(step):
                    self._start(step, 1.0)
        finally:
            self._close()

    def _needed(self, step: Step) -> bool:
        """Return True if the run ends, by time or a signal, before there is an answer, and the step gives one in milliseconds."""
        known = self._incumbent.lifted is not None or self._incumbent.infeasible
        ends = self._budget.over() and not self._budget.starved
        quick = step.quick and step.engine.finds != "bounds" and step.engine.name not in self.endings
        return ends and quick and not known

    def _begin(self) -> bool:
        """Start the next turn if a worker is free. Return False if none was started."""
        turn = self._next_turn() if self._free() > 0 and not self._stopping() else None
        if turn is not None:
            self._start(*turn)
        return turn is not None

    def _fill(self) -> None:
        """Start steps on free workers while one runs in this process."""
        if self._filling:
            return
        self._filling = True
        try:
            for _ in range(self._free()):
                if self._late_for_children() or not self._begin():
                    break
        finally:
            self._filling = False

    def _next_turn(self) -> tuple[Step, float] | None:
        """Return the step that runs next: first those that were lost with the machine that they ran on."""
        return (self._lost.pop(0), 1.0 / max(1, self._workers)) if self._lost else next(self._plan)

    def _may_rejoin(self) -> bool:
        """Return True while no worker is free but one may still join."""
        return self._pool is not None and self._pool.workers.may_rejoin()

    def _turns(self, steps: Sequence[Step]) -> Iterator[tuple[Step, float] | None]:
        """``(step, share of the time that is left)``: all steps once, then those that may gain from another run, in rounds
        or, in a race, the most promising one; None while there is none.
        """
        todo, race = list(steps), any(s.first < math.inf for s in steps)
        while True:
            # what is left over goes to the rounds; they begin after a step with threads, which leaves them no worker
            shared = self._workers > 1 and any(s.repeat for s in todo)
            for i, step in enumerate(todo):
                rest = sum(s.share for s in (todo if shared and not step.threads else todo[i:]))
                yield step, step.share / rest if rest > 0 else 1.0
            todo = [s for s in steps if self._again(s)]
            if race and todo:
                todo = [self._next(todo)]
            elif not todo:
                yield None

    def _again(self, step: Step) -> bool:
        """Return True if another run of a step that has had its first may help."""
        name, left = step.engine.name, self._budget.left()
        if step.first < math.inf and step.engine.finds == "bounds":
            if not self._in_child(step):
                late = name in self._paused and left <= LEAST
                self.hurried |= late
                return name in self._paused and not late
            busy = any(one.step is step for one in self._running())
            return not busy and self._healthy(step) and self._past[name].cut_off(left)
        return step.repeat and self._vain[name] < PATIENCE and self._healthy(step) and self._in_time(step)

    def _next(self, todo: Sequence[Step]) -> Step:
        """Return the most promising step of a race. The last turn is for a paused bound, to state what it has reached."""
        ask = list(todo)
        left = self._budget.left()
        if left - last_turn(self._past, left) < LEAST:
            ask = [s for s in todo if s.engine.name in self._paused] or ask
        return max(ask, key=self._turn)

    def _turn(self, step: Step) -> tuple[float, float, float]:
        """Return what decides a race: the time that all of its kind had; gain per second; its own time."""
        past = self._past[step.engine.name]
        promise = past.promise(self._incumbent.bound if past.proves else self._incumbent.objective)
        return -spent_by(self._past, past.proves) * (1.0 if promise > 0 else IDLE), promise, -past.spent

    def _level(self, step: Step) -> float:
        """Return what a race measures an engine by: its own bound, or the best objective."""
        if step.engine.finds == "bounds":
            return self._incumbent.bound_of(step.engine.name)
        return self._incumbent.objective

    def _healthy(self, step: Step) -> bool:
        name = step.engine.name
        kind = self.endings.get(name, Ending()).kind
        return kind == "done" or (kind == "lost" and self._losses[name] <= LOSSES)

    def _in_time(self, step: Step) -> bool:
        """False if the time left is nothing beside what its last run in this process took (large inputs take long to load),
        or less than the step asks for.
        """
        left, whole = self._budget.left(), self._budget.deadline - self._budget.started
        late = left < max(RESTART * self._past[step.engine.name].took, step.restart * whole)
        self.hurried |= late
        return not late

    def _in_child(self, step: Step) -> bool:
        """Return True if a step that starts now runs in a process of its own. Of several workers' steps one that finds solutions
        runs in this process: a busy machine takes seconds to start another.
        """
        if step.child or step.quick or step.threads or (self._workers == 1 and not self._away):
            return step.child
        return self._busy or not self._joins or step.engine.finds == "bounds"

    def _late_for_children(self) -> bool:
        """Return True if too little time is left to start a process, at the pace of this one."""
        return self._budget.left() < CHILD_MINIMUM * clock.pace()

    def _free(self) -> int:
        """Workers that have nothing to do."""
        if self._away and self._pool:
            return self._pool.workers.free_threads()
        return self._workers - self._busy - sum(one.threads for one in self._running())

    def _running(self) -> list[_Running]:
        return self._pool.running if self._pool else []

    def _stopping(self) -> bool:
        return self._budget.over() or self._incumbent.reached

    def _start(self, step: Step, part: float) -> None:
        """Start a step: in a child, or here to its end."""
        left = self._even(self._budget.left())
        name, past = step.engine.name, self._past[step.engine.name]
        number, proves = past.runs, step.engine.finds == "bounds"
        if step.first < math.inf:
            last = 0.0 if proves else last_turn(self._past, left)
            span = past.next_span(left - last) if number else step.first
        else:
            span = left * part * (1 if step.threads else self._workers)
        span = min(left, span, step.most)
        in_child = self._in_child(step)
        span = min(left, max(span, CHILD_LEAST if in_child else LEAST))
        past.begin(span, self._level(step), proves)
        if in_child and self._late_for_children():
            self.hurried = True
            if number == 0:
                self._incumbent.finish(name, "not run: too little time for a child process", 0.0)
                self._incumbent.record("note", name, "not run: too little time for a child process")
            else:
                time.sleep(min(_POLL, left))
            return
        if number == 0:
            self._incumbent.record("engine", name, "begins" + (" in a child process" if in_child else ""))
        if in_child:
            self._start_child(step, number, span)
            return
        self._memory.settle()
        with self._others_beside(step):
            self._run_here(step, number, span, left)

    @contextmanager
    def _others_beside(self, step: Step) -> Iterator[None]:
        """Let other workers start steps before and while this process runs ``step``, unless that takes no time or all workers."""
        if self._workers == 1 or step.quick or step.threads:
            yield
            return
        self._busy = True
        try:
            self._fill()
            yield
        finally:
            self._busy = False

    def _run_here(self, step: Step, number: int, span: float, left: float) -> None:
        """Run a step in this process, for ``span`` of the seconds ``left``."""
        name, past, proves = step.engine.name, self._past[step.engine.name], step.engine.finds == "bounds"
        before, cpu, begun = self._incumbent.changes, time.process_time(), clock.now()
        ending: Ending | None
        if proves and step.first < math.inf:
            ending = self._go_on(step, span, left)
        else:
            context = self._context(LocalContext, step, number, begun + span)
            ending = run_guarded(step.engine, self._checker.problem, context)
        past.end(clock.now() - begun, self._level(step), paused=ending is None)
        elsewhere = self._pool.workers.subtask_cpu() if self._pool and step.threads else 0.0
        self.child_cpu += elsewhere
        cpu = time.process_time() - cpu + elsewhere
        if ending is None:
            self._incumbent.finish(name, "stopped" + self._too_late(step), cpu)
        else:
            self._ended(step, ending, cpu, self._incumbent.changes != before, number)

    def _context(self, kind: type[Local], step: Step, number: int, deadline: float) -> Local:
        """Return the context of a step's run ``number`` in this process."""
        return kind(
            step.engine.name, self._incumbent, self._budget, seed=self._seed + number,
            workers=self._here if step.threads else 1, deadline=deadline, memory=self._memory, scratch=self._scratch,
            look=self._look, away=self._subtasks if step.threads else _no_subtasks, remotes=self._remotes,
        )  # fmt: skip

    def _subtasks(self, worker: SubtaskWorker) -> Subtasks | None:
        """Return idle threads of other machines for subtasks of a step that runs in this process."""
        return self._pool.workers.subtasks(worker) if self._pool else None

    def _remotes(self, kind: type, should_stop: Callable[[], bool]) -> Remotes | None:
        """Make an object on every machine of the cluster."""
        return self._open().workers.remotes(kind, should_stop) if self._away else None

    def _go_on(self, step: Step, span: float, left: float) -> Ending | None:
        """Give a bound its first or next turn, ``span`` of the seconds ``left``. Return None if it is paused."""
        name = step.engine.name
        if name not in self._paused:
            context = self._context(PausingContext, step, self._past[name].runs - 1, 0.0)
            self._paused[name] = PausingRun(step.engine, self._checker.problem, context)
        ending = self._paused[name].go_on(span, left)
        if ending is not None:
            del self._paused[name]
        return ending

    def _even(self, left: float) -> float:
        """Return time left on a grid (0.25 s, less in short runs): small delays must not change how much work engines plan."""
        grid = min(0.25, (self._budget.deadline - self._budget.started) / 20)
        return left // grid * grid if 0 < grid < left else left

    def _open(self) -> _Pool:
        """Return the pool; made when it is first needed."""
        if self._pool is None:
            self._pool = _Pool(self._make_pool(self._checker))
        return self._pool

    def _start_child(self, step: Step, number: int, span: float) -> None:
        pool = self._open()
        self._publish(pool)
        threads = min(self._threads, self._free()) if step.child else 1
        child = pool.workers.start(
            step.engine,
            seed=self._seed + number,
            workers=threads,
            span=span,
            last=self._budget.deadline,
            memory_limit=self._share_of_memory(),
        )
        pool.running.append(_Running(step, child, number, threads, clock.now()))

    def _share_of_memory(self) -> int | None:
        """Return bytes for the next child: what is left, divided among the workers that have nothing to do and this process if
        it runs a step.
        """
        left = self._memory.left()
        return None if left is None else max(1, left // max(1, self._free() + self._busy))

    def _look(self) -> None:
        """See to the children, and start others, now and then while an engine runs in this process; from this thread only."""
        if get_ident() != self._thread or clock.now() < self._looked + _POLL:
            return
        self._looked = clock.now()
        self._look_too()
        if self._pool and self._running():
            self._tend(self._pool, 0.0)
        if self._busy:
            self._fill()

    def _tend(self, pool: _Pool, wait: float) -> None:
        """Wait up to ``wait`` seconds for messages, take them, tell the others, and see who has ended."""
        pool.workers.wait(wait)
        for text in pool.workers.news():
            self._incumbent.record("note", "search", text)
        for one in list(pool.running):
            gone = one.child.ended()
            self._take(one)
            if gone is not None:
                pool.running.remove(one)
                one.child.kill()
                self.child_cpu += one.child.cpu
                self._past[one.step.engine.name].end(clock.now() - one.begun, self._level(one.step))
                self._ended(one.step, gone, one.child.cpu, one.changed, one.number)
                self._begin_again(one.step, gone)
        self._publish(pool)
        if self._stopping() and not pool.workers.stopped:
            pool.workers.stop()
            less_grace = (
                GRACE if self._incumbent.reached else 0.0
            )  # the gap is reached: no better answer is needed
            less_grace = max(less_grace, LESS_GRACE if self._budget.interrupted else 0.0)
            for one in pool.running:
                one.child.stop_now(less_grace)

    def _begin_again(self, step: Step, gone: Ending) -> None:
        """Note that a step has to run again because its machine is gone; not for ever: it may be what brings machines down."""
        name = step.engine.name
        self._losses[name] = self._losses[name] + 1 if gone.kind == "lost" else 0
        if gone.kind == "lost" and self._losses[name] <= LOSSES:
            self._lost.append(step)

    def _take(self, one: _Running) -> None:
        """Pass on what a child has sent."""
        name = one.step.engine.name
        for message in one.child.messages():
            if message[0] == "offer":
                one.changed |= self._incumbent.offer(name, message[1], message[2])
            elif message[0] == "note":
                self._incumbent.record("note", name, message[1])
            else:
                one.changed |= self._incumbent.raise_bound(name, message[1])

    def _publish(self, pool: _Pool) -> None:
        """Write the present state on the board if it is new."""
        if self._incumbent.changes != self._seen:
            self._seen = self._incumbent.changes
            pool.workers.publish(*self._incumbent.best(), self._incumbent.bound)

    def _too_late(self, step: Step) -> str:
        """Return what is added to the status of an engine that the end of the time stopped before it had something to say."""
        if self._incumbent.reached or not self._incumbent.silent(step.engine.name):
            return ""
        return ": " + TOO_LATE.format("bound" if step.engine.finds == "bounds" else "answer")

    def _ended(self, step: Step, ending: Ending, cpu: float, changed: bool, number: int) -> None:
        """Book the end of one run of an engine."""
        name = step.engine.name
        self._vain[name] = 0 if changed else self._vain[name] + 1
        self.endings[name] = ending
        needless = ending.kind == "killed" and self._incumbent.reached
        on_request = needless or (ending.kind == "done" and self._stopping())
        status = "stopped" if on_request else ending.kind + (f": {ending.text}" if ending.text else "")
        past = self._past[name]
        if on_request:
            status += self._too_late(step)
        elif ending.kind == "done" and self._incumbent.silent(name):
            status = f"stopped: {CUT_OFF}" if past.whole else f"done: {IN_VAIN}"
            if past.whole:
                self._incumbent.record("note", name, CUT_OFF)
        elif ending.kind == "done" and past.took >= past.span:
            status = f"stopped: given up after {past.spent:.1f} s"
        self._incumbent.finish(name, status, cpu)
        if ending.kind != "done" and not on_request:
            kind = "note" if ending.kind in ("killed", "lost") else "error"
            self._incumbent.record(kind, name, f"{ending.kind}: {ending.text}")
        elif number == 0:
            self._incumbent.record("engine", name, "ends")

    def _close(self) -> None:
        """Give up what is paused, kill what still runs and free the shared memory."""
        for run in self._paused.values():
            run.close()
        self._paused.clear()
        if self._pool is None:
            return
        for one in self._pool.running:
            one.child.kill()
            self.child_cpu += one.child.cpu
        self._pool.workers.close()
        self._pool = None


def _no_subtasks(worker: SubtaskWorker) -> None:
    """Return None: an engine with one thread has no subtasks."""
