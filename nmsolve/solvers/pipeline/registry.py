"""Every engine for pipelines, and the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Sequence

from nmsolve.model.engine import Engine
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.pipeline.reward import USUAL
from nmsolve.solvers.search.entries import Entry, plug_ins, steps_for
from nmsolve.solvers.search.portfolio import Step

#: Up to this many layers times stages the exact model often proves what it finds before these searches are through, which
#: then come after all others in these splits.
SMALL = 2000
LATE = {"resplit": ("any",), "orders": ("any", "contiguous")}

#: Engines in the order in which a run without ``--engines`` starts them.
REGISTRY: dict[str, Entry] = {
    "chain": Entry("solvers.pipeline.partition:Chain", share=0.2, quick=True),
    "chain-batch": Entry("solvers.pipeline.partition:ChainBatch"),
    "pipeline-counting": Entry("solvers.pipeline.bounds:CountingBounds", share=0.1, quick=True),
    "downsets": Entry("solvers.pipeline.partition:Downsets", share=0.4),
    "pipeline-local": Entry("heuristics.pipeline.local:PipelineLocal", share=0.2, repeat=True),
    "resplit": Entry("solvers.pipeline.resplit:Resplit", share=0.4, child=True, repeat=True),
    "orders": Entry("heuristics.pipeline.orders:Orders", share=0.2, repeat=True),
    "pipeline-cpsat": Entry("solvers.pipeline.exact:PipelineCpSat", share=0.5, child=True),
    "cover": Entry("solvers.pipeline.cover_engine:CoverBound", share=0.5, child=True),
    "groups-local": Entry("heuristics.pipeline.local:GroupsLocal", share=0.2, repeat=True, unasked=False),
    "m5-policy": Entry("learn.pipeline.engine:M5Policy", share=0.2, repeat=True, unasked=False),
    "pipeline-mip": Entry("solvers.pipeline.exact:PipelineMip", share=0.5, child=True, unasked=False),
}
REGISTRY |= plug_ins(REGISTRY, "pipeline")


def plan_of(
    problem: PipelineProblem, names: Sequence[str | Engine] | None
) -> tuple[list[Step], dict[str, str]]:
    """Return the plan of a run, and why other engines are left out (:func:`nmsolve.solvers.search.entries.steps_for`)."""
    shares = {name: entry.share for name, entry in REGISTRY.items() if entry.unasked}
    if problem.reward != USUAL:  # who states its weights asks for it
        shares["m5-policy"] = REGISTRY["m5-policy"].share
    if problem.count * problem.slots <= SMALL:
        late = [name for name in shares if problem.split in LATE.get(name, ())]
        shares |= {name: shares.pop(name) for name in late}
    return steps_for(REGISTRY, problem, names, " for pipelines", shares=shares)
