"""Repairs by CP-SAT: held nodes stay, rules hold, nothing gets worse, and it says which problems are not for it."""

import numpy as np
import pytest
from search_fakes import QuietContext

from nmsolve.heuristics.mapping.first_fit import first_fit
from nmsolve.hw.scores import objective_value
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.cpsat_lns.engine import KINDS, CpSatLns, _Repairs
from nmsolve.solvers.mapping.exact.model import build


class FakeContext(QuietContext):
    """Counts questions instead of seconds."""

    def __init__(self, problem, questions):
        super().__init__()
        self.problem, self.left, self.moves = problem, questions, []

    def time_left(self):
        return 60.0

    def should_stop(self):
        self.left -= 1
        return self.left < 0

    def offer(self, core, move=""):
        assert check_mapping(self.problem, core) == []
        value = objective_value(self.problem, core)
        if value < self.value:
            self.best, self.value = core.copy(), value
            self.moves.append(move)
        return value <= self.value


def problem(objective, n=12):
    """Two resources, two nodes apart, one with a region, messages to several targets."""
    rng = np.random.default_rng(2)
    m = 3 * n
    sizes = np.stack([rng.integers(1, 4, n), rng.integers(1, 9, n)], axis=1)
    graph = LogicGraph.from_edges(
        n, rng.integers(0, n, m), rng.integers(0, n, m), rng.integers(1, 9, m).astype(float),
        multicast=np.ones(n, bool), resources=("neurons", "synapses"), sizes=sizes,
    )  # fmt: skip
    machine = Machine("mesh", (1, 1), (2, 3), capacity={"neurons": 6, "synapses": 16})
    rules = (
        SideConstraint("apart", "apart", (0, 1)),
        SideConstraint("left", "region", (2, 3), (0, 3)),
    )
    return MappingProblem(graph, machine, objective, rules)


@pytest.mark.parametrize("objective", ["multicast-hops", "energy", "connectivity", "hops"])
def test_repairs_improve_a_mapping_under_every_rule(objective):
    p = problem(objective)
    assert CpSatLns().refuses(p) is None
    context = FakeContext(p, 12)
    context.offer(first_fit(p, 1), "first fit")
    first = context.value
    CpSatLns().run(p, context)
    assert (
        context.value < first and any("repair" in m for m in context.moves) and "tries" in context.notes[-1]
    )


def test_held_nodes_stay_and_chosen_ones_are_different():
    p = problem("multicast-hops")
    context = FakeContext(p, 10**6)
    core = first_fit(p, 1)
    context.offer(core)
    repairs = _Repairs(build(p, break_symmetry=False), context)
    for kind in KINDS:
        loose = repairs.choose(kind, core)
        assert len(set(loose.tolist())) == len(loose) <= 6
        end = repairs.repair(core, loose)
        held = np.setdiff1d(np.arange(p.n), loose)
        assert end.status == "OPTIMAL" and (end.core[held] == core[held]).all()
        assert objective_value(p, end.core) <= objective_value(p, core)


def test_dedicated_moves_have_precedence():
    graph = LogicGraph.from_edges(4, [0, 1, 2], [1, 2, 3])
    one = MappingProblem(graph, Machine("mesh", (1, 1), (2, 2), capacity={"neurons": 1}))
    assert "dedicated" in CpSatLns().refuses(one)
    assert "not a sum" in CpSatLns().refuses(problem("max-link"))
