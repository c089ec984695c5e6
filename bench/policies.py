"""What learned policies are worth, on what they were not trained on; tables of docs/learning.md.

``python bench/policies.py m1 [--nodes 64] [--graphs 25] [--kinds geo,comm]`` places fresh graphs on a mesh and prints how many
hops more than annealing of a CPU second (``--seconds``) each of these has: the start of method M1's rounds, and the best of 12
greedy rounds of a network that has learned nothing, of exchanges that are the best one for both nodes (what training begins
with), of the model, and of a whole run of ``m1-policy``. ``python bench/policies.py m5 MODEL.onnx ... [--cores 8,16,32,64]
[--bind batch=1,seq=128]`` cuts models into stages and prints the gap to the optimum, which is proved. ``python
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
from nmsolve.heuristics.mapping.placement.engine import COLD
from nmsolve.heuristics.mapping.placement.local_search import new_local_search, search_cost
from nmsolve.heuristics.mapping.placement.schedule import anneal, temperature_scale
from nmsolve.heuristics.mapping.placement.spectral import spectral_axes, spectral_start
from nmsolve.heuristics.pipeline.actions import FIRST_TO_EARLIER, LAST_TO_LATER, MERGE_EARLIER, MERGE_LATER
from nmsolve.heuristics.pipeline.groups import GroupsEnv
from nmsolve.hw.scores import objective_value
from nmsolve.kinds.mapping.learned.suite import placement
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
from nmsolve.model import clock
from nmsolve.model.engine import Context, ScratchPlace
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.pipeline.api import plan

NODES = 64
#: First seed of the fresh graphs of method M1: training has 1000 and more, and nothing was tuned on these.
FRESH = 500
#: First seed of the fresh chains of method M5.
FRESH_CHAINS = 900_000
#: Temperature of annealing in units of the scale: it keeps the overall arrangement. CPU seconds end a run, not the nominal work,
#: which is SLACK times as much.
KEPT, SLACK = 0.8, 4.0
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


def annealed(problem: MappingProblem, seconds: float) -> float:
    """Return the cost after this many CPU seconds of annealing from the spectral start, which they include."""
    begin, data = time.process_time(), placement_data(problem)
    search, scale, axes = new_local_search(data, 1), temperature_scale(data), spectral_axes(data)
    assert axes is not None, "there are at least 30 nodes"
    search.place(spectral_start(data, axes))
    late = (time.process_time() - begin) / seconds

    def over() -> float:
        return ((time.process_time() - begin) / seconds - late) / (1 - late)

    if late < 1.0:
        anneal(search, 1e9 * seconds * SLACK * (1 - late), KEPT * scale, COLD * scale, over, lambda: False)
    search.descend(lambda: time.process_time() - begin > 1.05 * seconds)
    return search_cost(search)


def table_m1(graphs: int, seconds: float, kinds: list[str], nodes: int) -> None:
    """Print the table of method M1's rounds, a line per family and one for all; means over fresh graphs, above annealing."""
    model, size = m1_model()
    blank = Checkpoint("m1", first_arrays(size, 0), {})
    context: Context = Alone()  # type: ignore[assignment]

    def measured(problem: MappingProblem) -> list[float]:
        begin = time.process_time()
        board = Rounds(problem, size, np.zeros(nodes, np.int64))
        trained, spent = rounds(board, model), time.process_time() - begin
        run = min(objective_value(problem, core) for _, core in placements(problem, model, size, context))
        start = objective_value(problem, board.start())
        return [start, rounds(board, blank), exchanged(board), trained, run, spent]

    names = ["start", "untrained", "exchanges", "trained", "a whole run"]
    _table(names, measured, graphs, seconds, kinds, nodes)


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
            best = annealed(problem, seconds)
            found.append([*(100 * (v / best - 1) for v in values), 1000 * spent])
        _line(kind, found[-graphs:])
    _line("all", found)


def _line(name: str, found: list[list[float]]) -> None:
    *gaps, spent = np.mean(found, axis=0).tolist()
    cells = [*(f"{gap:.1f} %" for gap in gaps), f"{spent:.0f}"]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


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
    parser.add_argument("method", choices=["m1", "m5", "chains"])
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
    elif given.method == "chains":
        table_chains(given.graphs or 60, given.seconds)
    else:
        table_m5(given.models, [int(c) for c in given.cores.split(",")], given.seconds, given.bind)
