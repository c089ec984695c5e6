"""Cores that hold unlike amounts: every engine on random small problems, against brute force written here."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from exact_support import Recorder, random_graph

from nmsolve.hw.scores import objective_value
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.errors import NmsolveError
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine


class Brief(Recorder):
    """A recorder that asks to stop after some seconds."""

    def __init__(self, problem: MappingProblem, seconds: float) -> None:
        super().__init__(problem)
        self.end = time.monotonic() + seconds
        self.memory, self.scratch = None, ScratchPlace()

    def note(self, text: str) -> None:
        pass

    def time_left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def should_stop(self) -> bool:
        return time.monotonic() > self.end


#: Engines whose run to its end is a proof.
EXACT = ("cpsat", "mip", "branch-bound")
#: Published methods that know one size of cores; their answers are repaired, which may fail where there is little room.
MAY_FAIL = ("m2", "communities")


def unlike(seed: int) -> MappingProblem:
    """4 or 5 nodes with sizes on 4 to 6 cores, of which some hold little and some much."""
    rng = np.random.default_rng(seed)
    rows, cols = ((1, 4), (2, 2), (2, 3), (1, 5))[seed % 4]
    n, size = int(rng.integers(4, 6)), rows * cols
    objective = ("hops", "cut", "multicast-hops", "connectivity", "energy", "max-link")[seed // 4 % 6]
    single = seed % 3 == 0
    sizes = rng.integers(3, 6, (n, 1)) if single else rng.integers(1, 5, (n, 1))
    own = rng.integers(2, 6, size) if single else rng.integers(1, 9, size)
    held = rng.integers(0, 3, size) * (rng.random(size) < 0.4)
    graph = random_graph(
        rng, n, objective in ("multicast-hops", "connectivity"), resources=("neurons",), sizes=sizes
    )
    rules = (SideConstraint("a", "apart", (0, 1)),) if seed % 5 == 0 else ()
    if seed % 7 == 0:
        rules += (SideConstraint("t", "together", (1, 2)),)
    machine = Machine(
        "unlike", (1, 1), (rows, cols), capacity={"neurons": 5},
        core_capacity={"neurons": own.astype(np.int64)}, held={"neurons": held.astype(np.int64)} if seed % 2 else {},
    )  # fmt: skip
    return MappingProblem(graph, machine, objective, rules)


def legal(problem: MappingProblem) -> list[tuple[int, ...]]:
    """Every mapping within the room of every core and the rules, in plain Python."""
    machine, sizes = problem.machine, problem.graph.sizes[:, 0].tolist()
    room = machine.core_capacity["neurons"].tolist()
    if machine.held:
        room = [max(0, a - b) for a, b in zip(room, machine.held["neurons"].tolist(), strict=True)]
    out = []
    for core in itertools.product(range(machine.size), repeat=problem.n):
        load = [0] * machine.size
        for u, p in enumerate(core):
            load[p] += sizes[u]
        if any(a > b for a, b in zip(load, room, strict=True)):
            continue
        if any((core[c.nodes[0]] == core[c.nodes[1]]) != (c.kind == "together") for c in problem.constraints):
            continue
        out.append(core)
    return out


@pytest.mark.parametrize("seed", range(48))
def test_every_engine_keeps_to_every_core(seed: int) -> None:
    problem = unlike(seed)
    mappings = legal(problem)
    best = min((objective_value(problem, np.array(core)) for core in mappings), default=np.inf)
    if explain_misfit(problem):
        assert not mappings
        return
    reduced = merge_together(problem).reduced
    for name in REGISTRY:
        engine = make_engine(name)
        if engine.refuses(reduced) is not None:
            continue
        if not mappings and name not in EXACT:
            continue
        context = Brief(reduced, 20.0 if name in EXACT else 0.1)
        try:
            engine.run(reduced, context)
        except NmsolveError:
            assert name in MAY_FAIL and len(mappings) < 500, name
        assert context.low <= best * (1 + 1e-9) + 1e-9, name
        assert context.value >= best - 1e-9, name
        if name in EXACT:
            assert context.low == np.inf if not mappings else (context.value == pytest.approx(best)), name
            if mappings:
                assert context.low == pytest.approx(best, rel=3e-6), name
