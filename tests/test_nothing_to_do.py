"""Problems in which nothing can be gained: one core, no message, no weight; every engine bears them."""

from __future__ import annotations

import numpy as np
import pytest
from test_joint_routes import Recorder as JointRecorder
from test_unlike_cores import Brief

from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.joint.engines import JointCpSat, JointMip
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

GRAPHS = {
    "no message": LogicGraph.from_edges(4, [], []),
    "no weight": LogicGraph.from_edges(4, [0, 1], [1, 2], [0.0, 0.0]),
    "multicast": LogicGraph.from_edges(4, [0, 0], [1, 2], multicast=np.ones(4, bool)),
}
MACHINES = {
    "one core": Machine("one", (1, 1), (1, 1)),
    "one usable core": Machine("dead", (1, 1), (1, 2), faulty_cores=(0,)),
    "two cores": Machine("two", (1, 1), (1, 2)),
}


@pytest.mark.parametrize("objective", ["hops", "multicast-hops"])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_engines_bear_it(graph: str, machine: str, objective: str) -> None:
    problem = MappingProblem(GRAPHS[graph], MACHINES[machine], objective, (), 4)
    for name in REGISTRY:
        engine = make_engine(name)
        if engine.refuses(problem) is None:
            context = Brief(problem, 0.02)
            engine.run(problem, context)
            assert context.low == 0 or name == "mip", name


@pytest.mark.parametrize("engine", [JointCpSat, JointMip])
@pytest.mark.parametrize("machine", ["one core", "two cores"])
@pytest.mark.parametrize("graph", ["no message", "no weight"])
def test_joint_models_without_messages(engine: type, graph: str, machine: str) -> None:
    recorder = JointRecorder(MappingProblem(GRAPHS[graph], MACHINES[machine], "multicast-hops", (), 4))
    engine().run(recorder.problem, recorder)
    assert recorder.value == 0
