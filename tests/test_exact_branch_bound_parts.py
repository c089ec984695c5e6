"""Parts of a search on other machines: what does not come back was not done, and nothing is proved that is not true.

The machines here are made up: they work when asked, lose parts, are called back early, or answer something else.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_support import Recorder, random_graph

from nmsolve.check.mapping.recheck import check_bound
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.formats import load_instance
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound import BranchBound, best_first, engine, remote

BOARDS = {"mesh": Machine("m", (1, 1), (3, 4)), "full": Machine("m", (1, 1), (3, 3))}
INSTANCES = Path(engine.__file__).parents[3] / "benchmarks/instances"


class Away:
    """Machines with this many threads that do a few steps of a part at a time; one part in ``lose`` is lost, or all."""

    def __init__(self, worker: Any, threads: int, lose: float, rng: np.random.Generator) -> None:
        self.worker, self.threads, self.lose, self.rng = pickle.dumps(worker), threads, lose, rng
        self.out: dict[int, Any] = {}
        self.count = self.lost = self.hurried = 0
        self.change: Callable[[Any], Any] = lambda result: result

    def free(self) -> int:
        return self.threads - len(self.out)

    def send(self, part: Any) -> int:
        self.count += 1
        self.out[self.count] = pickle.dumps(part)
        return self.count

    def recall(self, number: int) -> None:
        self.hurried += 1

    def back(self, seconds: float) -> list[tuple[int, Any]]:
        if not self.out:
            return []
        number = int(self.rng.choice(list(self.out)))
        part = pickle.loads(self.out.pop(number))
        if self.rng.random() < self.lose:
            self.lost += 1
            return [(number, None)]
        steps = iter(range(int(self.rng.integers(1, 6))))
        result = pickle.loads(self.worker).work(part, lambda: next(steps, None) is None)
        return [(number, self.change(pickle.loads(pickle.dumps(result))))]

    def close(self) -> None:
        self.out.clear()


class Spread(Recorder):
    """A run with other machines, which stops after this many looks."""

    def __init__(
        self, problem: MappingProblem, start: Any, lose: float, looks: float = np.inf, threads: int = 3
    ) -> None:
        super().__init__(problem, start)
        self.lose, self.looks, self.threads = lose, looks, threads
        self.away: Away | None = None
        self.change: Callable[[Any], Any] = lambda result: result

    def subtasks(self, worker: Any) -> Away:
        self.away = Away(worker, self.threads, self.lose, np.random.default_rng(1))
        self.away.change = self.change
        return self.away

    def should_stop(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is split at once, and goes on splitting; every look says what is proved."""
    for name, value in (("ALONE", 1), ("_SLICE", 1), ("PAUSE", 0.0)):
        monkeypatch.setattr(engine, name, value)
    monkeypatch.setattr(remote, "EARLY", 0.0)
    for name in ("SMALL", "PROBE"):
        monkeypatch.setattr(best_first, name, 2)


def problem_on(board: str) -> tuple[MappingProblem, np.ndarray, float]:
    """Nine dense nodes, their best mapping, and its cost."""
    problem = MappingProblem(random_graph(np.random.default_rng(8), 9), BOARDS[board], node_limit=1)
    whole = Recorder(problem)
    BranchBound().run(problem, whole)
    assert whole.best is not None and whole.bounds[-1].certificate["status"] == "optimal"
    return problem, whole.best, whole.value


def poor(problem: MappingProblem) -> np.ndarray:
    """A mapping that is not the best."""
    return np.arange(problem.n)


@pytest.mark.parametrize("lose", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.usefixtures("small_parts")
def test_the_optimum_is_proved_whatever_is_lost_and_no_bound_is_above_it(board: str, lose: float) -> None:
    problem, best, value = problem_on(board)
    for start in (best, poor(problem)):
        context = Spread(problem, start, lose)
        BranchBound().run(problem, context)
        said = [b.value for b in context.bounds]
        assert context.away is not None and context.away.count > 8, "parts were dealt out"
        assert context.away.hurried > 0, "and called back for those without work"
        assert (context.away.lost > 0) == (lose > 0)
        assert context.value == value and said[-1] == value and max(said) <= value
        assert said == sorted(said) and context.bounds[-1].certificate["status"] == "optimal"
        assert f"{context.away.lost} were lost" in " ".join(context.notes)


@pytest.mark.usefixtures("small_parts")
def test_what_never_comes_back_is_never_closed() -> None:
    """All parts are lost for ever: the claim stays where it was, and the next run goes on from there to the optimum."""
    problem, best, value = problem_on("mesh")
    context = Spread(problem, best, lose=1.0, looks=200)
    BranchBound().run(problem, context)
    claim = context.bounds[-1]
    assert context.away is not None and context.away.lost > 50
    assert claim.certificate["status"] == "running" and claim.value < value
    left = np.array(claim.certificate["open"])
    assert len(left) == len(np.unique(left, axis=0)) == len(claim.certificate["open_bounds"])
    whole = Spread(problem, best, lose=0.5)
    one = BranchBound()
    one.resume(claim)
    one.run(problem, whole)
    assert whole.bounds[-1].certificate["status"] == "optimal" and whole.bounds[-1].value == value


@pytest.mark.parametrize("threads", [1, 64])
@pytest.mark.usefixtures("small_parts")
def test_a_search_that_is_stopped_while_parts_are_out_says_that_they_are_open(threads: int) -> None:
    """Stretch by stretch it ends at the optimum: whatever was out when one ended is open in the next."""
    problem, best, value = problem_on("mesh")
    claims: list[Any] = []
    while not claims or claims[-1].certificate["status"] == "running":
        context, one = Spread(problem, best, lose=0.3, looks=20, threads=threads), BranchBound()
        if claims:
            one.resume(claims[-1])
        one.run(problem, context)
        claims.append(context.bounds[-1])
        assert len(claims) < 100 and claims[-1].value <= value
    assert len(claims) > 2 and claims[-1].value == value


@pytest.mark.usefixtures("small_parts")
def test_an_answer_about_something_else_ends_the_engine_and_closes_nothing() -> None:
    problem, _, value = problem_on("mesh")
    start = poor(problem)

    def another(result: Any) -> Any:
        other = [item._replace(core=np.roll(item.core, 1)) for item in result.open]
        return result._replace(open=other)

    def cheap(result: Any) -> Any:
        return result._replace(limit=result.limit - 2, best=np.arange(problem.n))

    def twice(result: Any) -> Any:
        return result._replace(limit=0, best=np.zeros(problem.n, np.int64))

    def low(result: Any) -> Any:
        return result._replace(open=[item._replace(low=item.low - 10**6) for item in result.open])

    for forge in (another, cheap, twice, low):
        context = Spread(problem, start, lose=0.0)
        context.change = forge
        with pytest.raises(ValueError, match="a subtask returned"):
            BranchBound().run(problem, context)
        assert max((b.value for b in context.bounds), default=0.0) <= value
        assert all(b.certificate["status"] == "running" for b in context.bounds)


@pytest.mark.parametrize("name", ["nug12", "tai12a"])
def test_known_optima_are_proved_with_machines_that_die(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "ALONE", 500)
    monkeypatch.setattr(engine, "_SLICE", 1)
    instance = load_instance(INSTANCES / f"{name}.dat")
    problem = MappingProblem(instance[0], instance[1], node_limit=1)
    context = Spread(problem, None, lose=0.5)
    BranchBound().run(problem, context)
    assert context.away is not None and context.away.lost > 0
    assert context.value == context.bounds[-1].value == {"nug12": 578, "tai12a": 224416}[name]
    checked = check_bound(problem, context.bounds[-1], context.best)
    assert checked.ok and not checked.word, "a second search agrees"


KILLED = """
import sys
from pathlib import Path
from nmsolve.solvers.mapping.branch_bound import best_first, checkpoint, engine
import nmsolve
engine.ALONE = engine.ALONE_EASY = engine._SLICE = 1
checkpoint.EVERY = checkpoint.REST = 0.0
if sys.argv[3] == "slow":
    plain = best_first.BestFirstSearch.advance
    def advance(self, number=0):
        import time
        time.sleep(0.01)
        return plain(self, number)
    best_first.BestFirstSearch.advance = advance
from nmsolve.model.engine import ScratchPlace
found = nmsolve.map(sys.argv[1], engines=["branch-bound"], time_limit=60.0,
                    scratch=ScratchPlace(Path(sys.argv[2]), sys.argv[3] != "slow"))
print(found.status, found.objective, found.bounds[0].certificate.get("resumed_after", 0))
"""


def test_a_killed_search_continues_from_its_checkpoint(tmp_path: Path) -> None:
    def run(how: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", KILLED, str(INSTANCES / "nug15.dat"), str(tmp_path), how]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    first = run("slow")
    end = time.monotonic() + 60
    while not list(tmp_path.glob("*/open.npz")) and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    status, objective, earlier = run("resume").communicate(timeout=120)[0].split()
    assert (status, float(objective)) == ("optimal", 1150.0) and int(earlier) > 0
    assert not list(tmp_path.iterdir()), "nothing is left in the scratch folder"


@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_a_damaged_checkpoint_is_not_used(damage: str, tmp_path: Path) -> None:
    problem, best, value = problem_on("mesh")
    place = ScratchPlace(tmp_path, True)
    with engine.Checkpoint(problem.hash, place) as checkpoint:
        assert checkpoint.load() is None and checkpoint._scratch is not None
        path = checkpoint._scratch.file("open.npz")
        np.savez(path, best=best, open=np.zeros((1, 3)), open_bounds=[5], numbers=[1, 1])
        if damage != "other":
            path.write_bytes(path.read_bytes()[: 100 if damage == "cut" else 0])
        assert (checkpoint.load() is None) == (damage != "other")
        context = Recorder(problem, best)
        BranchBound()._run(problem, context, checkpoint)
    assert context.bounds[-1].value == value and "resumed_after" not in context.bounds[-1].certificate
