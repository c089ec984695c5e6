"""The search over all engines of pipelines: statuses, certificates of chains, bad arguments, order of the engines."""

from __future__ import annotations

import numpy as np
import pytest

from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.bound import Bound, Event
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem, Tensors
from nmsolve.model.stop import Stop
from nmsolve.solvers.pipeline.api import plan
from nmsolve.solvers.pipeline.checker import PipelineChecker
from nmsolve.solvers.pipeline.registry import REGISTRY, plan_of
from nmsolve.solvers.search.incumbent import Incumbent


def line(split: str, **more: object) -> PipelineProblem:
    """Six layers in a row, times 4 2 6 2 4 2 on one core, tensors of 1 between neighbours, two cores."""
    times = np.array([[4.0], [2.0], [6.0], [2.0], [4.0], [2.0]])
    tensors = Tensors(np.arange(5), np.arange(6), np.arange(1, 6), np.ones(5), np.ones(5))
    settings: dict[str, object] = {"cores": 2, "stages": 2, "split": split} | more
    return PipelineProblem("line", tuple("abcdef"), times, np.ones(6), tensors, **settings)  # type: ignore[arg-type]


def test_a_chain_is_certified_by_its_dynamic_program_alone() -> None:
    """4 + 2 + 6 | 2 + 4 + 2 with a tensor of 1 across is 13 | 9; 4 + 2 | 14 is worse. No child process is needed."""
    problem = line("chain")
    result = plan(problem, time_limit=10.0)
    assert (result.status, result.objective, result.bound, result.gap) == ("optimal", 13.0, 13.0, 0.0)
    assert result.solution is not None and result.solution.stage.tolist() == [0, 0, 0, 1, 1, 1]
    assert plan_complaint(problem, result.solution) is None
    assert objective(problem, result.solution) == 13.0
    assert [s.engine for s in result.engines if s.offers] == ["chain"]


def test_a_contiguous_problem_is_proved_by_downsets() -> None:
    """In a row of layers the downsets are the prefixes."""
    result = plan(line("contiguous"), time_limit=10.0, engines=["downsets"])
    assert (result.status, result.objective, result.bound) == ("optimal", 13.0, 13.0)


def test_any_split_is_proved_by_the_exact_model_and_bettered_by_nothing() -> None:
    """2 + 6 + 2 in the middle against 4 + 4 + 2 at the ends: 10 each and two tensors cut, where a chain has 13."""
    seen: list[Event] = []
    result = plan(line("any"), time_limit=30.0, engines=["chain", "pipeline-cpsat"], observers=[seen.append])
    assert result.status == "optimal"
    assert result.objective == result.bound == 12.0
    assert seen[0].kind == "start" and seen[-1].kind == "end"
    assert result.cpu_seconds > 0 and result.memory_peak >= 0


def test_limits_that_allow_no_plan_are_proved_infeasible() -> None:
    """Three stages, each of two layers at most by memory, fit; with exact stages two do not."""
    problem = line("chain", memory=2.0, cores=3, stages=3)
    assert plan(problem, time_limit=5.0).status == "optimal"
    uneven = PipelineProblem(
        "uneven", ("a", "b", "c"), np.ones((3, 1)), np.array([3.0, 2.0, 3.0]),
        Tensors(np.arange(2), np.arange(3), np.arange(1, 3), np.ones(2), np.ones(2)), 2, 2, memory=4.0, split="chain",
    )  # fmt: skip
    result = plan(uneven, time_limit=5.0)
    assert (result.status, result.stop_reason, result.solution, result.objective) == (
        "infeasible",
        "exhausted",
        None,
        None,
    )


def test_a_warm_start_is_checked_and_kept_if_nothing_is_better() -> None:
    """Engines that find nothing leave it as the answer; one that breaks a rule is refused with the rule."""
    problem = line("chain")
    best = PipelinePlan(np.array([0, 0, 0, 1, 1, 1]), np.array([1, 1]))
    result = plan(problem, time_limit=5.0, warm_start=best, engines=["chain"])
    assert result.objective == 13.0
    assert [e.engine for e in result.events if e.kind == "incumbent"] == ["start"]
    with pytest.raises(InputError, match="continues with"):
        plan(problem, warm_start=PipelinePlan(np.array([0, 1, 0, 1, 1, 1]), np.array([1, 1])))
    with pytest.raises(InputError, match="more stages"):
        plan(problem, warm_start=PipelinePlan(np.arange(6), np.ones(6, np.int64)))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"gap": 1.0}, "gap"),
        ({"workers": 0}, "workers"),
        ({"time_limit": 0.0}, "time limit"),
        ({"engines": ["magic"]}, "unknown engine 'magic'"),
    ],
)
def test_wrong_arguments_are_named(more: dict[str, object], words: str) -> None:
    """Before any search."""
    with pytest.raises(InputError, match=words):
        plan(line("chain"), **more)  # type: ignore[arg-type]


def test_what_cannot_fit_in_memory_is_said_before_any_search() -> None:
    """One layer too large for the largest group, or all of them for all cores; layers that a host can take are not counted."""
    with pytest.raises(InputError, match="layer 'a'"):
        plan(line("any", memory=0.5))
    with pytest.raises(InputError, match="all 2 cores have 4"):
        plan(line("any", memory=2.0))
    hosted = line("any", memory=2.0, hosts=1, stages=3, host_time=np.full(6, 50.0))
    assert plan(hosted, time_limit=5.0, engines=["chain"]).solution is not None


def test_the_checker_refuses_what_is_no_plan() -> None:
    """Wrong stages, cores that are no groups, unused stages in the middle; the rest is rescored."""
    problem = line("any")
    checker = PipelineChecker(problem)
    good = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    assert checker.complaint(good) is None and checker.score(good) == 13.0
    for wrong in ([0, 0, 0, 1, 1, 5, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1, 9],
                  [0, 0, 0, 0, 0, 0, -1, 1], [0, 0, 0, 0, 0, 0, -5, -1], [0, 0, 0, 0, 0, -1, 1, -1]):  # fmt: skip
        assert checker.complaint(np.array(wrong)) is not None
    incumbent = Incumbent(checker, Stop(1.0))
    assert incumbent.offer("test", good)
    assert not incumbent.raise_bound("test", Bound(14.0, "wrong"))


def test_small_problems_meet_the_exact_model_before_the_long_searches() -> None:
    """What is exact for a split comes early; in large problems searches go before the exact model."""
    order = [step.engine.name for step in plan_of(line("any", cores=3, stages=3), None)[0]]
    assert order.index("pipeline-local") < order.index("pipeline-cpsat") < order.index("resplit")
    order = [step.engine.name for step in plan_of(line("contiguous"), None)[0]]
    assert order.index("downsets") < order.index("pipeline-cpsat") and "resplit" not in order
    steps, refusals = plan_of(line("chain"), None)
    assert steps[0].engine.name == "chain" and "downsets" in refusals


def test_every_engine_carries_the_name_it_is_registered_by() -> None:
    """And says what it finds."""
    for name, entry in REGISTRY.items():
        engine = entry.make()
        assert engine.name == name and engine.finds in ("mappings", "bounds", "both")
