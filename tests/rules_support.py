"""What must hold of any rule on which nodes share a core, on problems small enough to try all mappings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exact_support import Recorder

from nmsolve.heuristics.mapping.first_fit import first_mapping
from nmsolve.hw.scores import objective_value
from nmsolve.model import clock
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.explain import explain, recheck_conflict
from nmsolve.solvers.mapping.registry import make_engine

#: Objectives that the exact models are tried with.
OBJECTIVES = ["hops", "cut", "multicast-hops", "connectivity", "max-link"]


def reasons_and_first_fit_agree(problem: MappingProblem, legal: Sequence[np.ndarray], seed: int) -> None:
    """No reason is given where a ``legal`` mapping exists, and what first fit finds is one."""
    reasons = explain_misfit(problem)
    assert not (legal and reasons), reasons
    reduction = merge_together(problem)
    if not reasons:
        core = first_mapping(reduction.reduced, seed % 100)
        assert core is None or not check_mapping(problem, reduction.lift(core))
        assert core is None or not check_mapping(reduction.reduced, core)


def exact_model_ends_at_the_best(
    problem: MappingProblem, legal: Sequence[np.ndarray], engine_name: str
) -> None:
    """Value and bound of an exact model are those of the best ``legal`` mapping (one at least), if it takes the problem."""
    best = min(objective_value(problem, core) for core in legal)
    reduction = merge_together(problem)
    engine = make_engine(engine_name)
    if engine.refuses(reduction.reduced) is not None:
        return
    context = Recorder(reduction.reduced)
    engine.run(reduction.reduced, context)
    assert context.value == pytest.approx(best)
    assert context.low <= best * (1 + 1e-9) + 1e-9


def explained(problem: MappingProblem, legal: Sequence[np.ndarray]) -> Any:
    """Return what ``explain`` finds: it knows whether there is a ``legal`` mapping, and the second model agrees."""
    found = explain(problem, 10.0)
    assert found.status == ("feasible" if legal else "infeasible")
    if found.conflict is not None:
        assert recheck_conflict(problem, found.conflict.certificate)
    return found


class Short(Recorder):
    """A second of time; an offer that breaks a rule is an error."""

    def __init__(self, problem: MappingProblem) -> None:
        super().__init__(problem)
        self.end = clock.now() + 1.0

    def time_left(self) -> float:
        return max(0.0, self.end - clock.now())

    def should_stop(self) -> bool:
        return self.time_left() <= 0


def engine_keeps_the_rules(name: str, problem: MappingProblem) -> None:
    """No mapping that it offers within a second breaks a rule, and all but the exact models offer one."""
    if name == "remap":
        core = first_mapping(problem)
        assert core is not None
        problem = replace(problem, migration=Migration.of(core, 20))
    engine, context = make_engine(name), Short(problem)
    assert engine.refuses(problem) is None
    engine.run(problem, context)
    assert context.best is not None or name in ("cpsat", "mip")
