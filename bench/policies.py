"""What learned policies are worth, on what they were not trained on; tables of docs/learning.md.

``python bench/policies.py m1 [--nodes 64] [--graphs 25] [--kinds geo,comm]`` places fresh graphs on a mesh and prints how many
hops more than annealing of a CPU second (``--seconds``) each of these has: the start of method M1's rounds, and the best of 12
greedy rounds of a network that has learned nothing, of exchanges that are the best one for both nodes (what training begins
with), and of the model. ``python bench/policies.py both`` prints the same of a whole run of ``m1-policy``, and of the placement
policy in the same CPU time. ``python bench/policies.py policy`` prints the gap in hops of the placement policy to the best
known, which is the best of three runs of ``anneal`` and of all draws. ``python bench/policies.py m5 MODEL.onnx ... [--cores
8,16,32,64] [--bind batch=1,seq=128]`` cuts models into stages and prints the gap to the optimum, which is proved. ``python
bench/policies.py chains`` does so with 60 fresh chains (``--graphs``): with the model, a network that has learned nothing,
actions that are all equally probable and a rule in the policy's place (a stage grows while a larger one would use its cores
better), model and rule also without draws, and with ``groups-local``. It ends with the chains on which the model does worst.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nmsolve.heuristics.mapping.placement.data import placement_data
from nmsolve.heuristics.pipeline.actions import FIRST_TO_EARLIER, LAST_TO_LATER, MERGE_EARLIER, MERGE_LATER
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping.learned.policy import RANDOM, annealed
from nmsolve.kinds.mapping.learned.suite import FIRST, placement
from nmsolve.kinds.pipeline.statement import PipelineInputs, state_problem
from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.learn.mapping.engine import ROUNDS, greedy, m1_model, placements
from nmsolve.learn.mapping.policy import first_arrays
from nmsolve.learn.mapping.rounds import Rounds
from nmsolve.learn.pipeline.chains import random_chain
from nmsolve.learn.pipeline.engine import episodes, m5_model
from nmsolve.learn.pipeline.policy import BACK, ON
from nmsolve.learn.pipeline.policy import Size as M5Size
from nmsolve.learn.pipeline.policy import first_arrays as first_m5
from nmsolve.learn.pipeline.window import BEYOND, LATER_USE, PER_STAGE, USE
from nmsolve.learn.placement.decode import decoded
from nmsolve.learn.placement.draft import Draft
from nmsolve.learn.placement.engine import SAMPLES as POLICY_SAMPLES
from nmsolve.learn.placement.engine import policy_model
from nmsolve.learn.placement.network import first_arrays as first_network
from nmsolve.model import clock
from nmsolve.model.engine import Context, ScratchPlace
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.pipeline.api import plan

NODES = 64
#: First seed of the fresh graphs of method M1: training has 1000 and more, and nothing was tuned on these.
FRESH = 500
#: First seed of the fresh chains of method M5.
FRESH_CHAINS = 900_000
#: Families of training, and one that is never trained on.
KINDS = "geo,comm,layered,rnd"


class Alone:
    """A context without limits for :func:`placements`."""

    seed, workers, memory, scratch, pace = 1, 1, None, ScratchPlace(), 1.0

    def should_stop(self) -> bool:
        """Return False."""
        return False


def rounds(board: Rounds, model: Checkpoint) -> float:
    """Return the least hops of the greedy rounds."""
    return min(objective_value(board.problem, core) for _, core in greedy(board, model))


def exchanged(board: Rounds) -> float:
    """Return the least hops of as many rounds of exchanges that are the best one for both nodes."""
    core, cols = board.start(), board.problem.machine.cols
    values = [objective_value(board.problem, core)]
    for _ in range(ROUNDS):
        core = board.agreed(core) @ (cols, 1)
        values.append(objective_value(board.problem, core))
    return min(values)


def drawn_by_policy(problem: MappingProblem, seconds: float) -> tuple[float, float]:
    """Return the hops of the placement policy's one shot, and the least of its draws in this many CPU seconds."""
    begin, draft = time.process_time(), Draft(problem, policy_model()[0].arrays)
    values: list[float] = []
    while not values or (time.process_time() - begin < seconds and len(values) < POLICY_SAMPLES):
        values.append(objective_value(problem, draft.drawn(len(values), 1)))
    return values[0], min(values)


def table_m1(graphs: int, seconds: float, kinds: list[str], nodes: int) -> None:
    """Print the table of method M1's rounds, a line per family and one for all; means over fresh graphs, above annealing."""
    model, size = m1_model()
    blank = Checkpoint("m1", first_arrays(size, 0), {})

    def measured(problem: MappingProblem) -> list[float]:
        begin = time.process_time()
        board = Rounds(problem, size, np.zeros(nodes, np.int64))
        trained, spent = rounds(board, model), time.process_time() - begin
        return [
            objective_value(problem, board.start()),
            rounds(board, blank),
            exchanged(board),
            trained,
            spent,
        ]

    names = ["start", "untrained", "exchanges", "trained"]
    _table(names, measured, graphs, seconds, kinds, nodes)


def table_both(graphs: int, seconds: float, kinds: list[str], nodes: int) -> None:
    """Print the table of whole runs of both placement policies; as :func:`table_m1`."""
    model, size = m1_model()
    context: Context = Alone()  # type: ignore[assignment]

    def measured(problem: MappingProblem) -> list[float]:
        begin = time.process_time()
        run = min(objective_value(problem, core) for _, core in placements(problem, model, size, context))
        spent = time.process_time() - begin
        return [run, *drawn_by_policy(problem, spent), spent]

    _table(["m1-policy", "policy, one shot", "policy"], measured, graphs, seconds, kinds, nodes)


def _table(
    names: list[str], measured: Callable[[MappingProblem], list[float]], graphs: int, seconds: float,
    kinds: list[str], nodes: int,
) -> None:  # fmt: skip
    """Print a table of hops above annealing; what is ``measured`` of a problem ends with CPU seconds."""
    print(f"| {nodes} nodes | {' | '.join(names)} | CPU ms |\n|{'---|' * (len(names) + 2)}")
    found: list[list[float]] = []
    for kind in kinds:
        for seed in range(FRESH, FRESH + graphs):
            problem = placement(kind, nodes, seed)
            *values, spent = measured(problem)
            best = annealed(problem, placement_data(problem), "spectral", None, seconds, 1)
            found.append([*(100 * (v / best - 1) for v in values), 1000 * spent])
        _line(kind, found[-graphs:])
    _line("all", found)


def _line(name: str, found: list[list[float]]) -> None:
    *gaps, spent = np.mean(found, axis=0).tolist()
    cells = [*(f"{gap:.1f} %" for gap in gaps), f"{spent:.0f}"]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


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
                found[name] = [objective_value(problem, draft.drawn(k, 1)) for k in range(POLICY_SAMPLES)]
                spent += (time.process_time() - start) / len(rivals)
            runs = [
                solve(problem, time_limit=seconds, engines=["anneal"], seed=s).objective or 1.0
                for s in (1, 2, 3)
            ]
            best = min(*runs, *map(min, found.values()))
            for name, costs in found.items():
                gaps[name].append((costs[0] / best - 1, min(costs) / best - 1))
        cells = [" / ".join(f"{100 * g:.1f} %" for g in np.mean(gaps[name], axis=0)) for name in gaps]
        print(f"| {kind} | {' | '.join(cells)} | {1000 * spent / graphs / POLICY_SAMPLES:.1f} |", flush=True)


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


def rule() -> dict[str, FloatArray]:
    """Return weights that spell a rule out: A keeps what it can hold; B grows while a larger stage has a better use."""
    size = M5Size(hidden=3)
    arrays = {name: np.zeros(shape, np.float32) for name, shape in size.shapes.items()}
    one, two, out = arrays["one.weight"], arrays["two.weight"], arrays["out.weight"]
    one[PER_STAGE + LATER_USE, 0], one[PER_STAGE + USE, 0] = 1.0, -1.0
    one[BEYOND, 1], one[BEYOND, 2] = 1.0, -1.0
    two[:] = np.eye(3)
    out[0, MERGE_LATER], out[1, ON], out[2, BACK] = 1e6, 1e9, 1e9
    arrays["out.bias"][LAST_TO_LATER] = 1.0
    arrays["out.bias"][[MERGE_EARLIER, FIRST_TO_EARLIER, ON, BACK]] = -1e3
    return arrays


def table_chains(chains: int, seconds: float) -> None:
    """Print how far above the optimum each policy ends on fresh chains: mean, median and largest gap."""
    clock.count_cpu()
    model, size = m5_model()
    rivals = {
        "model": model.arrays,
        "untrained": first_m5(size, 0),
        "all equally probable": {name: np.zeros_like(a) for name, a in model.arrays.items()},
        "rule": rule(),
    }
    gaps: dict[str, list[float]] = {}
    worst = []
    for seed in range(FRESH_CHAINS, FRESH_CHAINS + chains):
        rng = np.random.default_rng(seed)
        cores, layers = int(rng.integers(8, 65)), int(rng.integers(20, 201))
        problem = random_chain(seed, cores, layers)
        best = plan(problem, time_limit=60.0, engines=["chain"])
        assert best.status == "optimal" and best.objective and best.solution is not None

        def add(name: str, found: float | None, least: float = best.objective) -> float:
            gaps.setdefault(name, []).append(100 * (float(found or np.inf) / least - 1))
            return gaps[name][-1]

        for name, arrays in rivals.items():
            for draws in (True, False) if name in ("model", "rule") else (True,):
                env, begin = GroupsEnv(problem), clock.now()
                loads = [float(env.unit[0])]
                loads += [
                    e.load for e in episodes(env, arrays, 1, lambda b=begin: clock.now() - b > seconds, draws)
                ]
                add(name if draws else f"{name}, best actions only", min(loads))
        answer = plan(problem, time_limit=seconds, engines=["m5-policy"], seed=1)
        gap = add("engine m5-policy", answer.objective)
        stages = 0 if answer.solution is None else len(answer.solution.cores)
        worst.append((gap, seed, layers, cores, len(best.solution.cores), stages))
        add(
            "engine groups-local",
            plan(problem, time_limit=seconds, engines=["groups-local"], seed=1).objective,
        )
    print("| policy | mean | median | largest |\n|---|---|---|---|")
    for name, values in gaps.items():
        print(f"| {name} | {np.mean(values):.2f} % | {np.median(values):.2f} % | {max(values):.1f} % |")
    print(
        "| worst chains | seed | layers | cores | stages of the optimum | of the answer |\n|---|---|---|---|---|---|"
    )
    for gap, *row in sorted(worst, reverse=True)[:10]:
        print(f"| {gap:.1f} % | {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("method", choices=["m1", "both", "m5", "chains", "policy"])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--graphs", type=int, help="of each family: 25 for m1, 6 for policy; chains: 60")
    parser.add_argument("--nodes", type=int, default=NODES, help="of the graphs for m1")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of the search for the best known, or of an engine"
    )
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--cores", default="8,16,32,64")
    parser.add_argument("--bind", help="values of symbols of the models")
    given = parser.parse_args()
    if given.method == "m1":
        table_m1(given.graphs or 25, given.seconds, given.kinds.split(","), given.nodes)
    elif given.method == "both":
        table_both(given.graphs or 25, given.seconds, given.kinds.split(","), given.nodes)
    elif given.method == "policy":
        table_policy(given.graphs or 6, given.seconds, given.kinds.split(","))
    elif given.method == "chains":
        table_chains(given.graphs or 60, given.seconds)
    else:
        table_m5(given.models, [int(c) for c in given.cores.split(",")], given.seconds, given.bind)
