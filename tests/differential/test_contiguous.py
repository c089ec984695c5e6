"""Contiguous plans and chains of up to seven layers: rules, evaluator, both engines and both second proofs against all plans.

The reference (``stages_reference.py``) groups layers in every way and asks whether some order of the groups has all data pass
forwards; it knows no downsets. ``NMSOLVE_CONTIGUOUS=5000 pytest tests/differential/test_contiguous.py`` tries more problems.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from pipelines_support import Recorder
from stages_reference import Pipeline, optimum, value_of
from stages_support import contiguous, problem_of

from nmsolve.check.pipeline.blocks import companions
from nmsolve.check.pipeline.chain_bound import chain_bound_holds
from nmsolve.check.pipeline.conflict import impossible
from nmsolve.check.pipeline.downset_bound import contiguous_bound_holds
from nmsolve.check.pipeline.reevaluate import reevaluated_loads
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.check import plan_complaint
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.solvers.pipeline.fit import require_fit
from nmsolve.solvers.pipeline.partition import Chain, Downsets

COUNT = int(os.environ.get("NMSOLVE_CONTIGUOUS", "200"))


class Told(Recorder):
    """Keeps the highest bound."""

    bound = 0.0

    def raise_bound(self, bound: Bound) -> bool:  # type: ignore[override]
        assert bound.value >= self.bound
        self.bound = bound.value
        return True


def proofs_hold(problem: PipelineProblem, value: float) -> list[bool]:
    """What second proofs say of a bound."""
    found = [contiguous_bound_holds(problem, companions(problem), value, 60.0)]
    return [*found, chain_bound_holds(problem, value)] if problem.split == "chain" else found


@pytest.mark.parametrize("split", ["contiguous", "chain"])
def test_engine_and_second_proofs_find_the_optimum_of_all_plans(split: str) -> None:
    """To the last digit; and where no plan keeps the rules, that there is none."""
    none, tight = 0, 0
    for seed in range(COUNT):
        p = replace(contiguous(seed), split=split)
        best, problem = optimum(p), problem_of(p)
        value = math.inf if best is None else float(best)
        none += best is None
        tight += best is not None and optimum(replace(p, memory=None)) != best
        assert all(proofs_hold(problem, value)), seed
        if math.isfinite(value):
            assert not any(proofs_hold(problem, math.nextafter(value, math.inf))), seed
        assert impossible(problem, 60.0) == (best is None), seed
        try:
            require_fit(problem)
        except InputError:
            assert best is None, seed
            continue
        told = Told(problem)
        (Chain() if split == "chain" else Downsets()).run(problem, told)
        assert (told.bound, told.value, told.complaints) == (value, value, []), seed
        if best is not None:
            plan = PipelinePlan.unpacked(problem, np.array(told.best))
            own = value_of(p, plan.stage.tolist(), plan.cores.tolist())
            assert own is not None and float(own) == value, seed
    assert COUNT / 10 < none < COUNT / 2 and tight > COUNT / 50


def some_plan(p: Pipeline, rng: Random) -> tuple[list[int], list[int]]:
    """Stages mostly in order, groups mostly within the cores, sometimes a host."""
    count = rng.randint(1, min(p.count, p.stages + (rng.random() < 0.2)))
    stage = [*range(count), *(rng.randrange(count) for _ in range(p.count - count))]
    stage = sorted(stage) if rng.random() < 0.7 else stage
    sizes = range(0 if p.hosts else 1, min(len(p.time[0]), p.cores) + 1)
    return stage, [rng.choice(sizes) for _ in range(count)]


def test_rules_and_both_evaluators_are_those_of_the_definition() -> None:
    """For plans that nobody searched for, most of which break a rule."""
    allowed = 0
    for seed in range(COUNT):
        p, rng = contiguous(seed), Random(seed)
        problem = problem_of(p)
        for _ in range(10):
            stage, cores = some_plan(p, rng)
            plan, value = PipelinePlan(np.array(stage), np.array(cores)), value_of(p, stage, cores)
            assert (plan_complaint(problem, plan) is None) == (value is not None), (seed, stage, cores)
            if value is not None:
                allowed += 1
                assert objective(problem, plan) == float(value)
                assert max(reevaluated_loads(problem, plan)) == pytest.approx(float(value), rel=1e-12)
    assert allowed > COUNT
