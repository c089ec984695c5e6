"""Side constraints that contradict each other, and a smallest set of them that does."""

from __future__ import annotations

import numpy as np

from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.groups import Groups, listed_nodes, make_groups, quoted
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, IntArray

#: Most groups without any core that are traced back to the constraints to blame.
MOST_EXPLAINED = 200


def constraint_conflicts(problem: MappingProblem) -> list[str]:
    """Return contradictions that do not depend on sizes, one line each.

    ``together`` against ``apart``; pins, regions and forbids that leave a node (or a ``together`` group) no core;
    ``apart`` sets whose nodes cannot all be on different cores.
    """
    if not problem.constraints:
        return []
    groups = make_groups(problem)
    return _together_apart(problem) + _no_core(groups) + _too_few_cores(groups)


def _together_apart(problem: MappingProblem) -> list[str]:
    out = []
    group = problem.group_of
    for c in problem.constraints:
        if c.kind != "apart":
            continue
        seen: dict[int, int] = {}
        for v in c.nodes:
            u = seen.setdefault(int(group[v]), v)
            if u != v:
                chain = quoted([t.name for t in _chain(problem, u, v)])
                out.append(
                    f"constraints contradict each other: apart {c.name!r} keeps {listed_nodes(problem, [u, v])} on"
                    f" different cores, together {chain} puts them on one"
                )
                break
    return out


def _chain(problem: MappingProblem, u: int, v: int) -> list[SideConstraint]:
    """Return the shortest chain of ``together`` constraints that joins nodes ``u`` and ``v``."""
    together = [c for c in problem.constraints if c.kind == "together"]
    reached: dict[int, list[SideConstraint]] = {u: []}
    frontier = [u]
    while frontier and v not in reached:
        nearer: list[int] = []
        for c in list(together):
            hit = next((w for w in c.nodes if w in reached), None)
            if hit is None:
                continue
            together.remove(c)
            for w in c.nodes:
                if w not in reached:
                    reached[w] = [*reached[hit], c]
                    nearer.append(w)
        frontier = nearer
    return reached.get(v, [])


def _no_core(groups: Groups) -> list[str]:
    """Return groups without any allowed core, one line per set of constraints that is to blame."""
    problem = groups.problem
    empty = np.flatnonzero(~groups.masks.any(axis=1))
    if not len(empty):
        return []
    blamed: dict[tuple[str, ...], list[int]] = {}
    blocked = np.flatnonzero(np.isin(groups.mask_of, empty)).tolist()
    named = [(c, set(c.nodes)) for c in problem.constraints if c.kind in ("pin", "region", "forbid")]
    for g in blocked[:MOST_EXPLAINED]:
        members = set(groups.members(g))
        causes = [c for c, nodes in named if members & nodes]
        if _fits(problem, groups.sizes[g]).any():
            causes = _smallest(problem, causes, _fits(problem, groups.sizes[g]))
        else:
            causes = []
        blamed.setdefault(tuple(f"{c.kind} {c.name!r}" for c in causes), []).append(g)
    out = []
    for names, items in blamed.items():
        more = f" (and {len(items) - 1} more)" if len(items) > 1 else ""
        who = groups.label(items[0]) + more
        if not names:
            out.append(f"no core is large enough for {who}")
        elif len(names) == 1:
            why = ["faulty", "taken"]
            why += ["cut off by dead links"] if problem.machine.cut_off else []
            why += [] if problem.alike else ["too small"]
            listed = f"{', '.join(why[:-1])} or {why[-1]}"
            out.append(f"{names[0]} leaves no usable core for {who}: those it allows are {listed}")
        else:
            listed = ", ".join(names[:-1]) + " and " + names[-1]
            out.append(f"constraints contradict each other: {listed} leave no core for {who}")
    return out


def _fits(problem: MappingProblem, size: IntArray) -> BoolArray:
    """Return usable cores that hold ``size`` (R,) alone."""
    return problem.machine.usable & (problem.capacity >= size).all(axis=1)


def _smallest(
    problem: MappingProblem, constraints: list[SideConstraint], fits: BoolArray
) -> list[SideConstraint]:
    """Drop constraints one by one as long as the rest still leaves no core."""
    kept = constraints
    for c in constraints:
        rest = [d for d in kept if d is not c]
        if not (_allowed(problem, rest) & fits).any():
            kept = rest
    return kept


def _allowed(problem: MappingProblem, constraints: list[SideConstraint]) -> BoolArray:
    """Return cores that all the given pins, regions and forbids allow."""
    mask = problem.machine.usable.copy()
    for c in constraints:
        named = np.zeros(problem.cores, bool)
        named[list(c.cores)] = True
        mask &= ~named if c.kind == "forbid" else named
    return mask


def _too_few_cores(groups: Groups) -> list[str]:
    """Return ``apart`` sets whose groups cannot be matched to different allowed cores."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    problem = groups.problem
    out = []
    for c in problem.constraints:
        if c.kind != "apart":
            continue
        items = sorted({int(problem.group_of[u]) for u in c.nodes})
        masks = groups.masks[groups.mask_of[items]]
        cores = np.flatnonzero(masks.any(axis=0))
        if not masks.any(axis=1).all() or len(items) < 2:
            continue  # said already
        matching = maximum_bipartite_matching(csr_array(masks[:, cores]), perm_type="column")
        matched = int((matching >= 0).sum())
        if matched < len(items):
            out.append(
                f"apart {c.name!r} needs {len(items)} different cores for its nodes, the {len(cores)} usable ones they"
                f" may be on allow {matched}"
            )
    return out
