"""Map a network from Python, with NetworkX on one side and a checked result on the other."""

from pathlib import Path

import nmsolve

HERE = Path(__file__).parent

graph = nmsolve.load_graph(HERE / "vision.json")
machine = nmsolve.machine(str(HERE / "board.toml"))
result = nmsolve.map(graph, machine, time_limit=5, seed=1)

print(
    f"{result.status}: {result.objective_name} = {result.objective:g}, bound {result.bound:g}, gap {result.gap:.1%}"
)
for engine in result.engines:
    if engine.incumbents:
        print(f"  {engine.engine} found {engine.incumbents} of the best mappings, down to {engine.best:g}")
