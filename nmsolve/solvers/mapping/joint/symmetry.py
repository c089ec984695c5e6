"""Symmetries of the board that also keep routes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray
from nmsolve.solvers.mapping.exact.data import exact_data
from nmsolve.solvers.mapping.exact.symmetry import BoardSymmetry, board_symmetry
from nmsolve.solvers.mapping.joint.problem import ROUTED, JointProblem


def moved_links(joint: JointProblem, symmetry: IntArray, used: BoolArray) -> BoolArray:
    """Return where a symmetry (P,) of the cores takes the used links (messages, links)."""
    place = {(int(a), int(b)): k for k, (a, b) in enumerate(joint.ends)}
    out = np.zeros_like(used)
    out[:, [place[int(symmetry[a]), int(symmetry[b])] for a, b in joint.ends]] = used
    return out


def route_symmetry(problem: MappingProblem, names: list[str], free: bool) -> BoardSymmetry | None:
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
    return board_symmetry(replace(data, spans=follows_rows))
