"""Cores that hold unlike amounts where routes are chosen, too: every engine against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from exact_support import random_graph
from test_joint_routes import Recorder, optimum

from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.joint.engines import (
    AnyRouteBounds,
    JointCpSat,
    JointMip,
    TreePartitions,
    TreeSearch,
)


@pytest.mark.parametrize("seed", range(6))
def test_joint_engines_keep_to_every_core(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = rng.permutation([3, 3, 2, 1]) if seed % 2 else rng.permutation([5, 3, 2, 1])
    graph = random_graph(rng, 4, multicast=True, resources=("neurons",), sizes=np.array([[1], [2], [1], [2]]))
    machine = Machine(
        "m", (1, 1), (2, 2), capacity={"neurons": 5}, core_capacity={"neurons": own.astype(np.int64)}
    )
    problem = MappingProblem(graph, machine, ("multicast-hops", "energy")[seed % 2])
    best = optimum(problem)
    for engine in (
        JointCpSat(),
        JointMip(),
        TreePartitions(),
        TreeSearch(),
        AnyRouteBounds(),
    ):
        recorder = Recorder(problem)
        if engine.refuses(recorder.problem) is not None:
            continue
        engine.run(recorder.problem, recorder)
        assert recorder.value >= best * (1 - 1e-9), engine.name
        assert recorder.low <= best * (1 + 1e-9), engine.name
        if isinstance(engine, JointCpSat | JointMip):
            assert recorder.value == pytest.approx(best), engine.name
            assert recorder.low == pytest.approx(best, rel=1e-5), engine.name
