"""A network that has changed: a run with a store of solved runs, which holds its former self, beside a run from scratch."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping.learned.changes import board, changed
from nmsolve.kinds.mapping.learned.suite import Row, Suite
from nmsolve.learn.archive.engine import Recall
from nmsolve.learn.archive.store import Archive
from nmsolve.model.engine import Context, ScratchPlace, SubtaskWorker
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.registry import make_engine
from nmsolve.solvers.mapping.task import RECALL_PART

#: Time of the run that is kept, in that of a run from scratch.
STORED = 4.0
#: Runs with a store are also made with these parts of the time.
PARTS = (5, 20)


@dataclass(frozen=True)
class Setting:
    """A size, the CPU seconds of a run from scratch, and what has changed.

    Attributes
    ----------
    per_core : nodes that a core can hold
    objective : of the mapping
    once : only on every fifth graph and with one seed
    ablations : a shuffled store and one with a stranger run, too
    board : ``core lost``: one in the first row is dead on the new board; ``larger board``: two rows and columns more
    """

    nodes: int
    seconds: float
    change: str = "10 % of edges"
    per_core: int = 1
    objective: str = "hops"
    once: bool = True
    ablations: bool = False
    board: str = ""

    def __str__(self) -> str:
        cores = "" if self.per_core == 1 else f", {self.per_core} per core, {self.objective}"
        place = f", {self.board}" if self.board else ""
        return f"n = {self.nodes:,}{cores}, {self.change or 'nothing'} changed{place}, T = {self.seconds:g} s"


SETTINGS = (
    Setting(256, 1.0, once=False, ablations=True),
    Setting(1000, 2.0, once=False),
    Setting(5000, 5.0),
    Setting(20_000, 20.0),
    Setting(1000, 2.0, per_core=8),
    Setting(1000, 2.0, per_core=8, objective="cut"),
    *(
        Setting(256, 1.0, change)
        for change in (
            "2 % of edges",
            "10 % of edges anywhere",
            "20 % of edges",
            "weights",
            "10 % of edges, weights",
            "10 % of edges, weights, ids kept",
            "nodes added",
            "nodes removed",
        )
    ),
    Setting(256, 1.0, "", board="core lost"),
    Setting(256, 1.0, "2 % of edges", board="larger board"),
)


def compare(suite: Suite) -> Iterator[Row]:
    """Yield gains over a run from scratch in time T, retrieval included.

    Rivals: ``learned`` with a store in T, what it has after T/5 (when retrieval has had its time) and T/20, and runs that are as
    short as that; ``time saved``: the part of T that was left when the run with a store
    reached what scratch ends with (0 if it never did); ``warm start only``: the relative's mapping is not mended; ``random``: the
    store's mapping is shuffled; ``stranger``: the store holds an unrelated network of the family.
    """
    for setting in SETTINGS if suite.seconds is None else SETTINGS[:1]:
        for family, graph in suite.cases():
            if not setting.once:
                for seed in range(1, suite.seeds + 1):
                    yield from rows(setting, family, graph, seed, suite.seconds or setting.seconds)
            elif graph % 5 == 0:
                yield from rows(setting, family, graph, 1, setting.seconds)


def rows(setting: Setting, family: str, graph: int, seed: int, seconds: float) -> Iterator[Row]:
    """Yield the rows of one graph and seed, all in ``seconds`` of CPU time or the parts of it that rivals say."""
    old, new = problems(setting, f"mesh-{family}", graph)
    scratch(Timed(new, 0.05, seed))  # loads what a first call loads
    base = Timed(new, seconds, seed)
    scratch(base)
    core = solved(old, STORED * seconds, graph)

    def row(rival: str, gain: float, saved: float | None = None) -> Row:
        return Row(str(setting), family, graph, seed, rival, gain, saved)

    with tempfile.TemporaryDirectory() as folder:
        kept = stored(Path(folder) / "kept", old, core)
        run = recalled(new, kept, seconds, seed)
        left = 1 - run.reached(base.value) / seconds
        yield row("learned", 1 - run.value / base.value, left * seconds)
        yield row("time saved", left)
        for part in PARTS:
            yield row(f"learned, after T/{part}", max(-1.0, 1 - run.at(seconds / part) / base.value))
        for part in PARTS:
            run = recalled(new, kept, seconds / part, seed)
            yield row(f"learned in T/{part}", 1 - run.value / base.value)
        if setting.ablations:
            run = recalled(new, kept, seconds, seed, mended=False)
            yield row("warm start only", 1 - run.value / base.value)
            shuffled = np.random.default_rng(seed).permutation(core)
            run = recalled(new, stored(Path(folder) / "shuffled", old, shuffled), seconds, seed)
            yield row("random", 1 - run.value / base.value)
            other = problems(setting, f"mesh-{family}", graph + 500)[0]
            core = solved(other, STORED * seconds, graph)
            run = recalled(new, stored(Path(folder) / "stranger", other, core), seconds, seed)
            yield row("stranger", 1 - run.value / base.value)


def problems(setting: Setting, kind: str, graph: int) -> tuple[MappingProblem, MappingProblem]:
    """Return a problem and what has become of it."""
    old = generate(kind, nodes=setting.nodes, seed=graph)
    new = changed(old, setting.change, graph)
    room = setting.nodes + (1 if setting.board == "core lost" else 0) + (4 if setting.per_core > 1 else 0)
    machine = board(room, setting.per_core)
    other = board(max(room, new.n), setting.per_core)
    if setting.board == "core lost":
        other = board(room, setting.per_core, (machine.cols // 2,))
    if setting.board == "larger board":
        other = board((machine.rows + 2) ** 2, setting.per_core)
    return tuple(
        make_problem(network, at, objective=setting.objective)
        for network, at in ((old, machine), (new, other))
    )  # type: ignore[return-value]


def solved(problem: MappingProblem, seconds: float, seed: int) -> IntArray:
    """Return the best mapping of a run from scratch."""
    run = Timed(problem, seconds, seed)
    scratch(run)
    assert run.best is not None
    return run.best


def stored(path: Path, problem: MappingProblem, core: IntArray) -> Path:
    """Make a store with one run."""
    archive = Archive(path)
    archive.keep(problem, core, objective_value(problem, core))
    archive.close()
    return path


def recalled(problem: MappingProblem, path: Path, seconds: float, seed: int, mended: bool = True) -> Timed:
    """Carry out a run with a store: retrieval with its part of the time, then the same engine as from scratch."""
    run = Timed(problem, seconds, seed)
    archive = Archive(path)
    run.end = RECALL_PART * seconds
    Recall(archive.relatives(problem, str), run.end, mended).run(problem, run)
    archive.close()
    run.end = seconds
    scratch(run)
    return run


def scratch(run: Timed) -> None:
    """Go on with the engine that a run without ``--engines`` gives most of the time."""
    make_engine("anneal" if run.problem.one_per_core else "multilevel").run(run.problem, run)


class Timed(Context):
    """A run whose clock is the CPU time of this process; keeps the best offer, and when there was which.

    Attributes
    ----------
    end : CPU seconds after which to stop
    best, value : the best mapping and its objective
    log : (CPU second, objective) of every improvement
    """

    workers, memory, scratch, pace = 1, None, ScratchPlace(), 1.0  # type: ignore[assignment]

    def __init__(self, problem: MappingProblem, seconds: float, seed: int) -> None:
        self.problem, self.end, self._seed = problem, seconds, seed
        self.best: IntArray | None = None
        self.value = np.inf
        self.log: list[tuple[float, float]] = []
        self._begin = process_time()

    @property
    def seed(self) -> int:
        """The seed."""
        return self._seed

    def subtasks(self, worker: SubtaskWorker) -> None:
        """No other engine works."""

    def worked(self) -> float:
        """CPU seconds so far."""
        return process_time() - self._begin

    def time_left(self) -> float:
        """CPU seconds left."""
        return max(0.0, self.end - self.worked())

    def should_stop(self) -> bool:
        """True at the end."""
        return self.worked() >= self.end

    def incumbent(self) -> tuple[IntArray | None, float]:
        """The best so far."""
        return self.best, self.value

    def bound(self) -> float:
        """Nothing is proved."""
        return 0.0

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Keep a better mapping; its evaluation costs time, too."""
        value = objective_value(self.problem, core)
        better = value < self.value
        if better:
            self.best, self.value = core.copy(), value
            self.log.append((self.worked(), value))
        return better

    def raise_bound(self, bound: object) -> bool:
        """Bounds are not asked for."""
        return False

    def note(self, text: str) -> None:
        """There is no observer."""

    def remotes(self, kind: type) -> None:
        """Return None: there is no other machine."""

    def at(self, seconds: float) -> float:
        """Return the best value after this many CPU seconds; inf if there was none."""
        return min((value for at, value in self.log if at <= 1.05 * seconds), default=np.inf)

    def reached(self, value: float) -> float:
        """Return when the run was first at most at ``value``; its whole time if it never was."""
        return next((min(at, self.end) for at, found in self.log if found <= value), self.end)
