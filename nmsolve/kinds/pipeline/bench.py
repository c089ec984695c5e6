"""Pipelines as a benchmark sees them, and their suite: a published cost graph and generated ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.kinds.bench import INSTANCES, Bench, Checked, Maker, Stated, in_time
from nmsolve.kinds.pipeline.statement import PipelineInputs, Positive, state_problem

if TYPE_CHECKING:
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.model.bound import Result
    from nmsolve.model.pipeline.plan import PipelinePlan
    from nmsolve.model.pipeline.problem import PipelineProblem

SEED = 1


def state(
    model: Path,
    cores: Positive | None = None,
    machine: str | None = None,
    chips: str | None = None,
    stages: Positive | None = None,
    exact_stages: bool = False,
    use_all: bool = False,
    core_memory: str | None = None,
    overlap: bool = False,
    split: str | None = None,
    bind: str | None = None,
    strict: bool = False,
) -> Stated:
    """Return the problem of ``nmsolve pipeline`` with these options.

    Raises
    ------
    InputError : a wrong file, options that do not belong together, counting shows that nothing fits
    """
    from nmsolve.kinds.values import size_in_bytes
    from nmsolve.solvers.pipeline.api import plan
    from nmsolve.solvers.pipeline.fit import require_fit

    memory = size_in_bytes(core_memory, "core_memory")
    inputs = PipelineInputs(
        str(model), cores, machine, chips, stages, exact_stages, use_all, memory, overlap, split, bind, strict
    )
    problem = state_problem(inputs).problem
    require_fit(problem)
    return Stated(
        problem, problem.content_hash, "largest load", {"layers": problem.count, "cores": problem.cores}, partial(plan, problem),
        partial(_check, problem),
    )  # fmt: skip


def _check(problem: PipelineProblem, result: Result[PipelinePlan], time_left: TimeLeft) -> Checked:
    """Return the rules and the objective, as ``nmsolve pipeline`` checks them."""
    from nmsolve.kinds.pipeline.check import plan_checks

    solution = result.solution
    assert solution is not None
    return in_time(time_left, "plan", lambda: plan_checks(problem, solution, result.objective, ()))


def drawn(layers: int, reach: int, seed: int = SEED, **options: Any) -> Maker:
    """Return a cost graph: every layer takes one or two of the ``reach`` layers before it as inputs (1: a chain).

    Times are |N(1, 0.5)|; sending a tensor takes |N(0.2, 0.1)|. Every core has room for all layers.
    """

    def make(path: Path) -> dict[str, Any]:
        import msgspec

        from nmsolve.model.files import write_atomic

        rng = np.random.default_rng(seed)
        work, sent = np.abs(rng.normal(1.0, 0.5, layers)), np.abs(rng.normal(0.2, 0.1, layers))
        inputs = [set((k - rng.integers(1, min(reach, k) + 1, 2)).tolist()) for k in range(1, layers)]
        same = {"supportedOnFpga": 1, "isBackwardNode": 0, "size": 1.0}
        nodes = [same | {"id": k, "cpuLatency": w, "fpgaLatency": w} for k, w in enumerate(work.tolist())]
        edges = [
            {"sourceId": s, "destId": k, "cost": float(sent[s])}
            for k, sources in enumerate(inputs, 1)
            for s in sorted(sources)
        ]
        graph = {"maxSizePerFPGA": float(layers), "maxFPGAs": 1, "maxCPUs": 0, "nodes": nodes, "edges": edges}
        file = path.with_name(f"{path.name}.json")
        write_atomic(file, msgspec.json.encode(graph))
        return {"model": file, **options}

    return make


def _shipped(name: str, **options: Any) -> Maker:
    """Return a cost graph that comes with the package."""
    return lambda path: {"model": INSTANCES / "dnn" / name, **options}


BERT = "layer_bert24_inference.json"
PIPELINES = {
    "bert24": _shipped(BERT),
    "bert24-any": _shipped(BERT, split="any"),
    "chain-200": drawn(200, 1, cores=16, split="chain"),
    "narrow-40": drawn(40, 3, cores=6),
    "narrow-40-any": drawn(40, 3, cores=6, split="any"),
    "branches-100": drawn(100, 8, cores=12),
    "branches-100-any": drawn(100, 8, cores=12, split="any"),
    "wide-200": drawn(200, 60, cores=16),
    "wide-200-any": drawn(200, 60, cores=16, split="any"),
}


BENCH = Bench(
    state, "solvers.pipeline.registry:REGISTRY", {"pipelines": PIPELINES},
    lambda path: path.suffix.lower() in (".onnx", ".json") and path.is_file(),
)  # fmt: skip
