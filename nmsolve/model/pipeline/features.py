"""What a pipeline problem may have that not every engine takes (:mod:`nmsolve.model.features`)."""

from __future__ import annotations

from nmsolve.model.features import Feature, takes_of
from nmsolve.model.pipeline.problem import PipelineProblem

FEATURES: dict[str, Feature[PipelineProblem]] = {
    "any": Feature("splits of any form", lambda p: p.split == "any"),
    "chain": Feature("chain, which has one order and is solved exactly", lambda p: p.split == "chain"),
    "stages": Feature("plans whose number of stages is fixed", lambda p: p.exact_stages),
    "all": Feature(
        lambda p: f"plans in which all cores must be used, but groups have at most {p.largest_group}",
        lambda p: p.use_all and p.largest_group < p.cores,
    ),
    "groups": Feature("groups of more than one core", lambda p: p.largest_group > 1),
    "one": Feature("problems of one core, which leave nothing to do", lambda p: p.cores == 1),
}

#: ``takes(cases, *limits)``: which problems an engine takes; every feature is handled unless ``-`` stands before it.
takes = takes_of(FEATURES)
