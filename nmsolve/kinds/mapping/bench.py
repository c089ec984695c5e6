"""Mapping as a benchmark sees it, and its generated suites."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from nmsolve.kinds.bench import INSTANCES, Bench, Maker, Stated
from nmsolve.model.formats import extensions

#: Seed of all generated instances.
INSTANCE_SEED = 1
#: Loihi 1 with unlimited axon tables.
ANY_AXONS = str(INSTANCES / "loihi1_any_axons.toml")


def state(
    graph: Path,
    machine: str | None = None,
    chips: str | None = None,
    balance: float | None = None,
    objective: str = "hops",
) -> Stated:
    """Return the problem of ``nmsolve map`` with these options.

    Raises
    ------
    InputError : a wrong file, a problem that cannot be stated
    """
    from nmsolve.kinds.loading import instance
    from nmsolve.kinds.mapping.check import independent_checks
    from nmsolve.solvers.mapping.api import make_problem, solve

    loaded, board = instance(graph, machine, chips)
    problem = make_problem(loaded, board, objective=objective, balance=balance)
    constant = loaded.meta.get("constant")  # QAPLIB's cost has a part that no mapping changes
    return Stated(
        problem, problem.hash, objective, {"nodes": problem.n, "cores": problem.cores}, partial(solve, problem),
        lambda result, time_left: independent_checks(problem, result, None, time_left=time_left),
        constant if isinstance(constant, int | float) else 0.0,
    )  # fmt: skip


def network(kind: str, options: dict[str, Any], **parameters: int | float) -> Maker:
    """Return an instance of ``nmsolve generate KIND``."""

    def make(path: Path) -> dict[str, Any]:
        from nmsolve.model.formats import save_graph
        from nmsolve.model.generators import generate

        file = path.with_name(f"{path.name}.npz")
        save_graph(generate(kind, seed=INSTANCE_SEED, **parameters), file)
        return {"graph": file, **options}

    return make


def _spiking(objective: str, **parameters: int) -> Maker:
    options = {"machine": "mesh:4x4", "balance": 0.03, "objective": objective}
    return network("snn", options, nodes=2000, synapses=60000, layers=8, **parameters)


#: One node per core on square meshes: the published way to place networks that are already split.
MESH = {
    "comm-64": network("mesh-comm", {}, nodes=64),
    "geo-100": network("mesh-geo", {}, nodes=100),
    "layered-100": network("mesh-layered", {}, nodes=100),
    "rnd-100": network("mesh-rnd", {}, nodes=100),
    "comm-256": network("mesh-comm", {}, nodes=256),
    "geo-1000": network("mesh-geo", {}, nodes=1000, side=32),
    "layered-1000": network("mesh-layered", {}, nodes=1000, side=32),
    "rnd-1000": network("mesh-rnd", {}, nodes=1000, side=32),
    "comm-1024": network("mesh-comm", {}, nodes=1024, side=32),
}
_BOARD = {"machine": "mesh:8x8", "balance": 0.03}
#: Networks that tools of others take as well: hops on 8 x 8 cores that are alike, without side constraints or tables.
PEERS = {
    "reservoir-4096": network("reservoir", _BOARD, nodes=4096, fan=60),
    "microcircuit-10": network("microcircuit", _BOARD, scale=0.1),
    "layered-8000": network("snn", _BOARD, nodes=8000, synapses=240000, layers=8),
}
#: Spiking networks with many neurons per core: the whole problem, hops, multicast and cut.
SNN = {
    "snn-2k-hops": _spiking("hops"),
    "snn-2k-multicast": _spiking("multicast-hops", directed=1),
    "snn-2k-cut": _spiking("cut"),
    "reservoir-4k-hops": network("reservoir", {"machine": "mesh:8x8", "balance": 0.03}, nodes=4096, fan=20),
    "microcircuit-hops": network("microcircuit", {"machine": ANY_AXONS}, scale=0.05),
    "microcircuit-multicast": network(
        "microcircuit", {"machine": ANY_AXONS, "objective": "multicast-hops"}, scale=0.05
    ),
    "snn-20k-hops": network(
        "snn", {"machine": "mesh:8x8", "balance": 0.03}, nodes=20000, synapses=600000, layers=8
    ),
}


BENCH = Bench(
    state, "solvers.mapping.registry:REGISTRY",
    {"qaplib": INSTANCES, "mesh": MESH, "snn": SNN, "peers": PEERS},
    lambda path: path.suffix.lower() in extensions() and path.is_file(),
)  # fmt: skip
