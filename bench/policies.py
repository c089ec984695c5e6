"""What learned policies are worth, on what they were not trained on; tables of docs/learning.md.

``python bench/policies.py m1 [--graphs 6] [--seconds 1] [--kinds geo,comm]`` places held-out graphs of 64 nodes on an 8x8 mesh
and prints the gap in hops to the best known, of the most probable placement and of the best of 256, beside the same engine
with a network that has learned nothing and random placements. ``python bench/policies.py policy`` does so for the placement
policy, with the best of three runs of ``anneal`` and of all draws as the best known. ``python bench/policies.py m5 MODEL.onnx
... [--cores 8,16,32,64] [--bind batch=1,seq=128]`` cuts models into stages and prints the gap to the optimum, which is proved.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping.learned.policy import RANDOM
from nmsolve.kinds.mapping.learned.suite import FIRST, placement
from nmsolve.kinds.pipeline.statement import PipelineInputs, state_problem
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.mapping.engine import SAMPLES, m1_model, placements
from nmsolve.learn.mapping.policy import Size, first_arrays
from nmsolve.learn.placement.decode import decoded
from nmsolve.learn.placement.draft import Draft
from nmsolve.learn.placement.engine import policy_model
from nmsolve.learn.placement.network import first_arrays as first_network
from nmsolve.model.engine import Context, ScratchPlace
from nmsolve.model.generators import generate
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.api import make_problem, solve
from nmsolve.solvers.pipeline.api import plan

NODES, SIDE = 64, 8
#: Families of training, and one that is never trained on.
KINDS = "geo,comm,layered,rnd"


class Alone:
    """A context without limits for :func:`placements`."""

    seed, workers, memory, scratch, pace = 1, 1, None, ScratchPlace(), 1.0

    def should_stop(self) -> bool:
        """Return False."""
        return False


def values(problem: MappingProblem, model: Checkpoint, size: Size) -> list[float]:
    """Return the objective of all placements that the engine would try; the first is the most probable one."""
    context: Context = Alone()  # type: ignore[assignment]
    return [objective_value(problem, core) for _, core in placements(problem, model, size, context)]


def table_m1(graphs: int, seconds: float, kinds: list[str]) -> None:
    """Print the table of method M1, a line per family; means over held-out graphs, one shot / best of 256."""
    model, size = m1_model()
    rivals = {"trained": model, "untrained": Checkpoint("m1", first_arrays(size, 0), {})}
    machine = Machine("mesh", (1, 1), (SIDE, SIDE))
    print(f"| family | {' | '.join(rivals)} | random | ms per placement |\n|---|---|---|---|---|")
    for kind in kinds:
        gaps: dict[str, list[tuple[float, float]]] = {name: [] for name in (*rivals, "random")}
        spent = 0.0
        for seed in range(graphs):
            problem = make_problem(generate(f"mesh-{kind}", nodes=NODES, seed=seed), machine)
            rng = np.random.default_rng(seed)
            found = {"random": [objective_value(problem, rng.permutation(NODES)) for _ in range(SAMPLES)]}
            for name, rival in rivals.items():
                start = time.process_time()
                found[name] = values(problem, rival, size)
                spent += (time.process_time() - start) / len(rivals)
            best = solve(problem, time_limit=seconds, engines=["anneal"], seed=1).objective or 1.0
            for name, costs in found.items():
                gaps[name].append((costs[0] / best - 1, min(costs) / best - 1))
        cells = [" / ".join(f"{100 * g:.0f} %" for g in np.mean(gaps[name], axis=0)) for name in gaps]
        print(f"| {kind} | {' | '.join(cells)} | {1000 * spent / graphs / SAMPLES:.2f} |", flush=True)


def table_policy(graphs: int, seconds: float, kinds: list[str]) -> None:
    """Print the table of the placement policy, a line per family: one shot / best of 256; constant: the start, assigned."""
    model, size = policy_model()
    rivals = {
        "trained": model.arrays,
        "untrained": first_network(size, 0),
        "random": first_network(size, 1, RANDOM),
    }
    print(f"| family | {' | '.join(rivals)} | constant | ms per draw |\n|---|---|---|---|---|---|")
    for kind in kinds:
        gaps: dict[str, list[tuple[float, float]]] = {name: [] for name in (*rivals, "constant")}
        spent = 0.0
        for seed in range(FIRST, FIRST + graphs):
            problem = placement(kind, NODES, seed)
            draft = Draft(problem, {})
            found = {
                "constant": [
                    objective_value(problem, decoded(problem, *draft.start(0), draft.board.capacity))
                ]
            }
            for name, arrays in rivals.items():
                start, draft = time.process_time(), Draft(problem, arrays)
                found[name] = [objective_value(problem, draft.drawn(k, 1)) for k in range(SAMPLES)]
                spent += (time.process_time() - start) / len(rivals)
            runs = [
                solve(problem, time_limit=seconds, engines=["anneal"], seed=s).objective or 1.0
                for s in (1, 2, 3)
            ]
            best = min(*runs, *map(min, found.values()))
            for name, costs in found.items():
                gaps[name].append((costs[0] / best - 1, min(costs) / best - 1))
        cells = [" / ".join(f"{100 * g:.1f} %" for g in np.mean(gaps[name], axis=0)) for name in gaps]
        print(f"| {kind} | {' | '.join(cells)} | {1000 * spent / graphs / SAMPLES:.1f} |", flush=True)


def table_m5(models: list[Path], cores: list[int], seconds: float, bind: str | None) -> None:
    """Print the table of method M5, a line per model and number of cores."""
    print(
        "| model | layers | cores | stages of the optimum | gap of m5-policy | of groups-local |\n|---|---|---|---|---|---|"
    )
    for model in models:
        for n in cores:
            problem = state_problem(PipelineInputs(str(model), n, split="chain", bind=bind)).problem
            best = plan(problem, time_limit=60.0, engines=["chain"])
            assert best.status == "optimal" and best.objective and best.solution is not None
            gaps = []
            for engine in ("m5-policy", "groups-local"):
                found = plan(problem, time_limit=seconds, engines=[engine], seed=1).objective
                gaps.append("-" if found is None else f"{100 * (found / best.objective - 1):.1f} %")
            stages = len(best.solution.cores)
            print(f"| {model.stem} | {problem.count} | {n} | {stages} | {' | '.join(gaps)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=["m1", "m5", "policy"])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--graphs", type=int, default=6)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of the search for the best known, or of an engine"
    )
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--cores", default="8,16,32,64")
    parser.add_argument("--bind", help="values of symbols of the models")
    given = parser.parse_args()
    if given.method == "m1":
        table_m1(given.graphs, given.seconds, given.kinds.split(","))
    elif given.method == "policy":
        table_policy(given.graphs, given.seconds, given.kinds.split(","))
    else:
        table_m5(given.models, [int(c) for c in given.cores.split(",")], given.seconds, given.bind)
