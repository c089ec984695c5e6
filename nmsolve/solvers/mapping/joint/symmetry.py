"""Symmetries of the board that also keep routes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.mapping.exact.symmetry import BoardSymmetry, board_symmetry
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem


@dataclass(frozen=True, eq=False)
class RouteSymmetry:
    """A board symmetry that also moves used links."""

    board: BoardSymmetry

    @property
    def node(self) -> int:
        """The node that is fixed."""
        return self.board.node

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores left to it."""
        return self.board.cores

    def reflect(
        self, joint: JointProblem, core: IntArray, used: BoolArray | None
    ) -> tuple[IntArray, BoolArray | None]:
        """Return an equally good solution with ``node`` on one of ``cores``: cores (n,), used links (messages, links) or None."""
        for g in self.board.maps:
            if int(g[core[self.node]]) in self.cores:
                if used is None:
                    return g[core], None
                place = {(int(a), int(b)): k for k, (a, b) in enumerate(joint.ends)}
                moved = np.array([place[int(g[a]), int(g[b])] for a, b in joint.ends], np.int64)
                out = np.zeros_like(used)
                out[:, moved] = used
                return g[core], out
        return core, used


def route_symmetry(problem: MappingProblem, names: list[str], free: bool) -> RouteSymmetry | None:
    """Return the symmetries that keep every objective in ``names``; None where there are none or this is not sure.

    Given routes go along rows first, which a transpose changes, and ties on a torus and round dead links are broken by
    number: there nothing is broken. Energy and link weights may have different symmetries: neither is used with both.
    """
    machine = problem.machine
    # what keeps the loads of links keeps the times of cores and links, too
    names = ["max-link" if OBJECTIVES[name].charges == "time" else name for name in names]
    crooked = machine.torus or bool(machine.faulty_links)
    lengths = "energy" in names and any(k in names for k in ("hops", "multicast-hops"))
    if (
        problem.limits_moves
        or (free and problem.turns is not None)
        or lengths
        or crooked
        or machine.distance_matrix is not None
    ):
        return None
    measure = "energy" if "energy" in names else "hops"
    data = exact_data(replace(problem, objective=measure, ceilings=()))
    follows_rows = not free and any(k in ROUTED for k in names)
    board = board_symmetry(replace(data, spans=follows_rows))
    return None if board is None else RouteSymmetry(board)
