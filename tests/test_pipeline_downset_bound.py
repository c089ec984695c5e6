"""Bounds of ``downsets`` shown again by listing all downsets, against all plans of small problems."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from test_pipeline_downsets import BERT, all_plans, plenty, problems, tensors

from nmsolve.check.pipeline.blocks import companions
from nmsolve.check.pipeline.downset_bound import TooLarge, contiguous_bound_holds
from nmsolve.check.pipeline.recheck import check_plan_bound
from nmsolve.heuristics.pipeline.downsets import best_contiguous
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.bound import Bound
from nmsolve.model.formats.cost_graph import load_cost_graph
from nmsolve.model.pipeline.problem import PipelineProblem


@settings(max_examples=80, deadline=None)
@given(problem=problems())
def test_holds_up_to_the_optimum_and_not_above(problem: PipelineProblem) -> None:
    """The optimum is proved; the next larger float is not."""
    best = min((objective(problem, plan) for plan in all_plans(problem)), default=math.inf)
    group = companions(problem)
    assert contiguous_bound_holds(problem, group, best, 60.0)
    if math.isfinite(best):
        assert not contiguous_bound_holds(problem, group, float(np.nextafter(best, np.inf)), 60.0)


def test_a_published_graph_and_forged_values() -> None:
    """The optimum 17.7899 of bert24 needs nobody's word; a larger claim is refused."""
    problem = load_cost_graph(BERT)
    _, best, proved = best_contiguous(problem, plenty)
    assert proved
    for value, fine in ((best, True), (best * 1.001, False), (math.inf, False)):
        check = check_plan_bound(problem, Bound(value, "downsets"))
        assert (check.ok, check.word) == (fine, ""), check


def test_too_many_downsets_rest_on_the_word_of_the_engine() -> None:
    """No memory and no time are said as such."""
    problem = load_cost_graph(BERT)
    with pytest.raises(TooLarge, match="no memory for more"):
        contiguous_bound_holds(problem, companions(problem), 17.0, 60.0, memory=1000)
    check = check_plan_bound(problem, Bound(17.0, "downsets"), seconds=-1.0)
    assert check.ok and check.word == "downsets" and "time was up" in check.text, check


def test_decimal_storage_as_the_rule_adds_it() -> None:
    """0.1 + 0.1 + 0.1 is more than 0.3: the optimum with two stages is confirmed, and no more."""
    problem = PipelineProblem(
        name="decimal", labels=("a", "b", "c"), time=np.ones((3, 1)), storage=np.full(3, 0.1),
        tensors=tensors({0: {1}, 1: {2}}, [2.0, 2.0]), cores=2, stages=2, memory=0.3,
    )  # fmt: skip
    _, best, proved = best_contiguous(problem, plenty)
    assert proved and best == 4.0
    assert check_plan_bound(problem, Bound(best, "downsets")).ok
    assert not check_plan_bound(problem, Bound(float(np.nextafter(best, np.inf)), "downsets")).ok
