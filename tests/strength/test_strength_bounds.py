"""Floors of bounds on mappings. Every test names the mutation that it must fail under;
``python tests/strength/mutants.py`` tries all of them.

Ascents are stopped after a number of steps. Where sums of floating point numbers steer them, a floor leaves a little room.
"""

from __future__ import annotations

import numpy as np
from hw_reference import draws, times
from strength_cases import at_least, at_most, board, casts, dense, near, placement, proved

from nmsolve.model.generators import generate
from nmsolve.model.machine import Figure
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds.core_traffic import traffic_nets
from nmsolve.solvers.mapping.bounds.core_traffic_kernel import cheapest_set
from nmsolve.solvers.mapping.bounds.engines import (
    CoreTraffic,
    Exchange,
    LinkLoad,
    NeighbourCounting,
    PartitionPlacement,
    Parts,
    Projection,
    Slots,
    Split,
    Spread,
    StepCeiling,
    StepLoad,
    StepPower,
    TreeParts,
)
from nmsolve.solvers.mapping.branch_bound import BranchBound

SPARSE = placement(near(36, 4), board(6, 6))
LOCAL = placement(generate("mesh-geo", nodes=144, side=12, seed=1), board(12, 12))
COMMUNITIES = placement(generate("mesh-comm", nodes=64, side=8, seed=0), board(8, 8))
DENSE = placement(dense(25), board(5, 5))
MANY = MappingProblem(near(120, 5), board(3, 3), "hops", (), 15)
CASTS = MappingProblem(casts(120, 4), board(3, 3), "multicast-hops", (), 15)
FULL = MappingProblem(near(36, 4), board(2, 3), "hops", (), 7)
THREES = MappingProblem(near(48, 4), board(4, 4), "hops", (), 3)
FEW = MappingProblem(casts(40, 3), board(2, 3), "connectivity", (), 8)


def test_star() -> None:
    """Fails if the bound is 10 % weaker."""
    at_least(proved(NeighbourCounting(), SPARSE), 481)


def test_fan_out() -> None:
    """Fails if the bound is 10 % weaker."""
    at_least(proved(NeighbourCounting(), placement(casts(36, 5), board(6, 6), "multicast-hops")), 881)


def test_projection() -> None:
    """Fails if the diagonal is not tuned."""
    at_least(proved(Projection(), DENSE, stops=60, upper=1913), 1640)


def test_split() -> None:
    """Fails if the multipliers are not tuned."""
    at_least(proved(Split(), DENSE, stops=250, upper=1913), 1760)


def test_split_starts() -> None:
    """Fails if it starts with all traffic on the spectral side only."""
    at_least(proved(Split(), SPARSE, stops=150, upper=612), 500)


def test_spread() -> None:
    """Fails if sources may all lie in the middle, if rows are filled up only, or without far targets or cliques."""
    at_least(proved(Spread(), LOCAL, seconds=80, tick=1), 3870)


def test_spread_sets() -> None:
    """Fails if no demands are chosen."""
    at_least(proved(Spread(), COMMUNITIES, seconds=160, tick=1), 3505)


def test_spread_messages() -> None:
    """Fails if messages carry no more than their rates where they are crossed both ways."""
    at_least(proved(Spread(), CASTS, seconds=80, tick=1), 214)


def test_joint_alone() -> None:
    """Without a prediction. Fails if the multipliers are not tuned."""
    at_least(proved(PartitionPlacement(predicts=False), MANY, stops=30, upper=248), 65)


def test_parts_alone() -> None:
    """Without a prediction. Fails if the multipliers are not tuned."""
    at_least(proved(Parts(predicts=False), MANY, stops=40, upper=248), 92)


def test_tree_parts() -> None:
    """Fails if the pulls of messages are not tuned."""
    at_least(proved(TreeParts(), CASTS, stops=80, upper=498), 91)


def test_slots() -> None:
    """Fails if the multipliers are not tuned."""
    at_least(proved(Slots(), FULL, stops=200, upper=150), 55)


def test_link_load() -> None:
    """Fails if only the mean over all links is bounded."""
    at_least(proved(LinkLoad(), placement(dense(36, 1), board(4, 9), "max-link"), stops=200), 47)


def test_step_load() -> None:
    """Fails if only what no mapping can avoid is counted, without the copies that messages must have."""
    problem = MappingProblem(casts(160, 5), board(4, 4, figures=times(False)), "step-time", (), 14)
    at_least(proved(StepLoad(), problem, stops=200, upper=1100), 750)


def test_step_ceiling() -> None:
    """Fails if more nodes may share a core than have room in the step."""
    ceilings = (("step-time", 400.0),)
    problem = MappingProblem(
        casts(160, 5), board(4, 4, figures=times(False)), "connectivity", ceilings=ceilings
    )
    at_least(proved(StepCeiling(), problem, stops=200, upper=1100), 175)


def test_step_together() -> None:
    """Fails if no nodes have to share a core; then only the number of nodes per core counts."""
    machine, graph = board(4, 4, figures=times(False)), casts(160, 5)
    problem = MappingProblem(graph, machine, "step-time", ceilings=(("connectivity", 2.5),))
    at_least(proved(StepCeiling(), problem, stops=0), 100)


def test_step_power() -> None:
    """Fails if the times of steps stay one piece, in which no message has to leave its core."""
    energy = {"message": Figure(7.0, "pJ")}
    machine = board(4, 4, figures=times(False) | draws(power_chip=0.3), energy=energy)
    problem = MappingProblem(casts(160, 5), machine, "step-energy")
    at_least(proved(StepPower(), problem, stops=300, upper=13000), 6300)


def test_exchange() -> None:
    """Fails if only bounds by counting are asked for."""
    at_least(proved(Exchange(), placement(dense(25), board(5, 5), "reward"), stops=200), 1645)


def test_exchange_channels() -> None:
    """Fails if prohibited turns cost nothing: 487.0 without XY's four directions, which messages must pay for."""
    at_least(proved(Exchange(), placement(casts(25, 4), board(5, 5), "reward"), stops=100), 490.2)


def test_cover_alone() -> None:
    """Without a prediction. Fails if the ascent ends after five rounds."""
    at_least(proved(CoreTraffic(predicts=False), FEW, stops=120, upper=217), 98)


def test_cover_pricing() -> None:
    """Fails if the search for the cheapest set does not know what messages cost that it has not touched yet."""
    c = traffic_nets(FEW)
    volume = np.bincount(np.repeat(np.arange(FEW.n), np.diff(c.net_ptr)), c.rate[c.nets], FEW.n)
    price = np.rint(1.4 * volume * c.rate.sum() / volume.sum())
    member = np.zeros(c.room, np.int64)
    cheapest, tree, _ = cheapest_set(c, price, np.inf, 10**6, member)
    assert cheapest == 0
    at_most(tree, 273)


def test_joint() -> None:
    """Fails if the multipliers are not predicted."""
    at_least(proved(PartitionPlacement(), MANY, stops=6, upper=248), 63)


def test_cover() -> None:
    """Fails if the prices are not predicted."""
    at_least(proved(CoreTraffic(), THREES, stops=8, upper=400), 260)


def test_parts() -> None:
    """Fails if the multipliers are not predicted."""
    at_least(proved(Parts(), MANY, stops=3, upper=248), 90)


def test_branch_bound() -> None:
    """Fails if the symmetries of the board are not used: the proof then takes more slices."""
    at_least(proved(BranchBound(), placement(dense(12, 2), board(3, 4)), stops=1), 208)


def test_branch_bound_several() -> None:
    """Fails if open nodes pay nothing to one another, if they are not assigned to the room that is left, or without symmetries of
    the board: the proof then takes more slices."""
    at_least(proved(BranchBound(), MappingProblem(dense(12, 1), board(2, 4), "hops", (), 2), stops=1), 151)


def test_branch_bound_cut() -> None:
    """Fails if empty cores that nothing tells apart are all tried."""
    at_least(proved(BranchBound(), MappingProblem(near(18, 5), board(1, 5), "cut", (), 4), stops=1), 152)


def test_branch_bound_open() -> None:
    """Fails if the bound of a search that is not through is 10 % weaker."""
    at_least(proved(BranchBound(), placement(dense(20, 2), board(4, 5)), stops=1), 654)


def test_branch_bound_best_first() -> None:
    """Fails without the best-first search on split bounds."""
    at_least(proved(BranchBound(), placement(dense(18, 2), board(4, 5)), stops=150, start=np.arange(18)), 576)
