"""Map networks from Python: one of NetworkX, one of a file; both answers are saved and checked."""

from pathlib import Path

import networkx as nx

import nmsolve

HERE = Path(__file__).parent

network = nx.DiGraph(name="reflex")
network.add_weighted_edges_from([("eye", "brain", 40), ("brain", "hand", 8), ("ear", "brain", 25)])
result = nmsolve.map(network, "mesh:2x2", time_limit=5, seed=1)
print(f"{result.status}: {result.objective_name} = {result.objective:g}")
print("  ".join(f"{node} on core {core}" for node, core in result.mapping.items()))

result = nmsolve.map(HERE / "vision.json", HERE / "board.toml", time_limit=5, seed=1)
print(
    f"{result.status}: {result.objective_name} = {result.objective:g}, bound {result.bound:g}, gap {result.gap:.1%}"
)
for engine in result.engines:
    if engine.incumbents:
        print(f"  {engine.engine} found {engine.incumbents} of the best mappings, down to {engine.best:g}")
print("verified" if result.verify() else "not verified")
