"""The items of the fit checks: ``together`` groups as single items, with sizes, allowed cores and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray


@dataclass(frozen=True)
class Groups:
    """The ``together`` groups of a problem; a node without such a constraint is a group of its own.

    Attributes
    ----------
    sizes : (k, R) what each group takes
    masks : (D, cores) bool, the distinct sets of cores that groups are allowed on; row 0 is every usable core
    mask_of : (k,) row of ``masks`` of each group
    """

    problem: MappingProblem
    sizes: IntArray
    masks: BoolArray
    mask_of: IntArray

    def label(self, g: int) -> str:
        """Return ``node 'a'`` or ``nodes 'a', 'b', 'c' (together 't')``."""
        nodes = self.members(g)
        if len(nodes) == 1:
            return f"node {self.problem.graph.node_id(nodes[0])!r}"
        names = quoted([c.name for c in self.joining(g)])
        return f"{listed_nodes(self.problem, nodes)} (together {names})"

    def members(self, g: int) -> list[int]:
        """Return nodes of group ``g``."""
        out: list[int] = np.flatnonzero(self.problem.group_of == g).tolist()
        return out

    def joining(self, g: int) -> list[SideConstraint]:
        """Return the ``together`` constraints that make up group ``g``."""
        group = self.problem.group_of
        return [c for c in self.problem.constraints if c.kind == "together" and group[c.nodes[0]] == g]


def make_groups(problem: MappingProblem) -> Groups:
    """Return sizes and allowed cores of every group."""
    group = problem.group_of
    k = int(group.max()) + 1
    if k == problem.n:
        return Groups(problem, problem.sizes, problem.domains, problem.domain_of.astype(np.int64))
    sizes = np.zeros((k, problem.sizes.shape[1]), np.int64)
    np.add.at(sizes, group, problem.sizes)
    masks = [problem.domains[0]]
    row_of = {masks[0].tobytes(): 0}
    mask_of = np.zeros(k, np.int64)
    allowed: dict[int, BoolArray] = {}
    for u in np.flatnonzero(problem.domain_of).tolist():
        g = int(group[u])
        allowed[g] = allowed.get(g, masks[0]) & problem.domains[problem.domain_of[u]]
    for g, mask in allowed.items():
        row = row_of.setdefault(mask.tobytes(), len(masks))
        if row == len(masks):
            masks.append(mask)
        mask_of[g] = row
    return Groups(problem, sizes, np.stack(masks), mask_of)


def quoted(names: Sequence[str | int]) -> str:
    """Return ``'a'``, ``'a' and 'b'``, ``'a', 'b' and 'c'``; long lists are cut."""
    shown = [repr(n) for n in names[:5]]
    if len(names) > 5:
        return ", ".join(shown) + f" and {len(names) - 5} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def listed_nodes(problem: MappingProblem, nodes: list[int]) -> str:
    """Return ``node 'a'`` or ``nodes 'a' and 'b'`` by the user's ids."""
    ids = [problem.graph.node_id(u) for u in nodes]
    shown = ", ".join(repr(v) for v in ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return f"node{'s' * (len(ids) > 1)} {shown}"
