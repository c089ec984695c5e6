"""What a pipeline problem may have that not every engine takes (:mod:`nmsolve.model.features`)."""

from __future__ import annotations

from nmsolve.model.features import Feature, takes_of
from nmsolve.model.pipeline.problem import PipelineProblem

FEATURES: dict[str, Feature[PipelineProblem]] = {
    "any": Feature("--split any", lambda p: p.split == "any"),
    "chain": Feature("--split chain, which dynamic programming solves exactly", lambda p: p.split == "chain"),
    "stages": Feature("a fixed number of stages", lambda p: p.exact_stages),
    "all": Feature(
        lambda p: f"plans that use all cores in groups of at most {p.largest_stage}",
        lambda p: p.use_all and p.largest_stage < p.cores,
    ),
    "groups": Feature("groups of more than one core", lambda p: p.largest_group > 1),
    "live": Feature(
        "memory by live ranges, which the exact chain plans",
        lambda p: p.buffers is not None and p.memory is not None,
        rare=True,
    ),
    "sum": Feature(
        lambda p: p.goal.words.asks or "sums over stages, --objective batch or energy",
        lambda p: p.goal.adds_up,
        rare=True,
    ),
    "held": Feature("another objective held", lambda p: p.goal.held is not None, rare=True),
    "shared": Feature(lambda p: p.groups.asks, lambda p: not p.groups.single, rare=True),
    "one": Feature("a single core, which leaves no choice", lambda p: p.cores == 1),
}

#: ``takes(cases, *limits)``: which problems an engine takes; a rare feature must be
#: named, any other is handled unless marked with ``-``.
takes = takes_of(FEATURES)
