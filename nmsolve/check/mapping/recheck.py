"""Bounds on mappings re-checked from their certificates, without the code that found them.

:func:`check_bound` recomputes what a certificate proves from the problem alone, in plain NumPy (nothing from
:mod:`nmsolve.solvers.mapping.bounds` is used), and refuses a claim above that. The bounds and why they hold are in
docs/bounds.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from nmsolve.check.certificates import certificates_text
from nmsolve.check.foreign import SECONDS, foreign_recheck, unknown_method
from nmsolve.check.mapping.bounds.chessboard import recheck_chessboard
from nmsolve.check.mapping.bounds.core_traffic import recheck_core_traffic
from nmsolve.check.mapping.bounds.counting import recheck_fan_out, recheck_neighbours
from nmsolve.check.mapping.bounds.eigenvalues import DECOMPOSED, FACTORED
from nmsolve.check.mapping.bounds.link_load import recheck_exchange, recheck_link_load
from nmsolve.check.mapping.bounds.parts import EPS, EXACT, CertificateError, granularity, risen
from nmsolve.check.mapping.bounds.repeated import HintsOf
from nmsolve.check.mapping.bounds.slots import recheck_slots
from nmsolve.check.mapping.bounds.spectral import (
    recheck_partition_placement,
    recheck_parts,
    recheck_projection,
)
from nmsolve.check.mapping.bounds.split import recheck_split
from nmsolve.check.mapping.bounds.spread import recheck_spread
from nmsolve.check.mapping.bounds.stated import contracted
from nmsolve.check.mapping.bounds.step_load import recheck_step_ceiling, recheck_step_load, recheck_step_power
from nmsolve.check.mapping.bounds.stored import needed
from nmsolve.check.mapping.bounds.trees import recheck_tree_parts
from nmsolve.check.mapping.verify import walked_objective
from nmsolve.model.bound import Bound, BoundCheck, Stage
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

RECHECKS: dict[str, Callable[..., float]] = {
    "star": recheck_neighbours,
    "fan-out": recheck_fan_out,
    "projection": recheck_projection,
    "split": recheck_split,
    "spread": recheck_spread,
    "joint": recheck_partition_placement,
    "parts": recheck_parts,
    "chessboard": recheck_chessboard,
    "cover": recheck_core_traffic,
    "tree-parts": recheck_tree_parts,
    "link-load": recheck_link_load,
    "slots": recheck_slots,
    "exchange": recheck_exchange,
    "step-load": recheck_step_load,
    "step-ceiling": recheck_step_ceiling,
    "step-power": recheck_step_power,
}
#: Of these the one that uses ceilings: its bounds hold under them only.
CEILED = frozenset({"step-ceiling"})
#: Bounds of earlier versions.
REMOVED = frozenset({"gilmore-lawler", "subgraphs"})
#: Engines that prove optimality or infeasibility by search and leave only a status.
WORDS = ("cpsat", "mip", "branch-bound")
#: Of these the one that says how long its search was.
SEARCH = "branch-bound"
#: Seconds at most in which a second search looks for a mapping below what one of the others claims.
WORD_SECONDS = 5.0
#: The same for mappings with chosen routes.
FREE_WORDS = ("joint-cpsat", "joint-mip", "tree-branching", "tree-partitions")
#: Methods of ours, whose claims no other package may re-check.
METHODS = frozenset((*RECHECKS, *WORDS, *FREE_WORDS))
#: Re-checks that rest on eigenvalues of a matrix over all nodes.
EIGENVALUES = ("joint", "parts", "chessboard", "tree-parts")
#: Those that are recomputed by passes over messages, so also from disk; placement bounds look at parts only.
FROM_DISK = {"fan-out", "joint", "parts"}


def check_bound(
    problem: MappingProblem,
    bound: Bound,
    core: IntArray | None = None,
    about: str | None = None,
    *,
    free_routes: bool = False,
    seconds: float = SECONDS,
    hints: HintsOf | None = None,
) -> BoundCheck:
    """Re-check a bound from its certificate.

    Parameters
    ----------
    problem : the problem as stated; ``together`` groups are merged here, with code that the engines do not use
    core : (n,) mapping; needed for scope ``placement`` (the parts are its parts), and if given no bound of scope
        ``full`` may exceed its objective
    about : hash of the problem that the bound was stored with; None for a bound that was just found
    free_routes : True if routes were chosen, too: a word about the machine's own routes then says nothing, nor does their
        cost, while what is recomputed holds for any routes
    seconds : how long the re-check of another package, or a second search, may take
    hints : multipliers for a second search, which believes nothing about them; without, it ends for small problems only

    Notes
    -----
    Bounds of solvers that leave only a status are recomputed if a second search ends in time, which takes few nodes; else they
    pass as *trusted* if they were given about this very problem and no known mapping contradicts them. The re-check of an
    installed package is that package's word, and not for chosen routes. A word may use ceilings and the migration budget, and
    says so; of what is recomputed here only ``step-ceiling`` uses ceilings, only a second search the budget.
    """
    wrong = _no_claim(bound, free_routes)
    if wrong is not None:
        return BoundCheck(False, np.nan, wrong)
    if bound.method not in METHODS:
        return _by_package(problem, bound, core, seconds)
    if bound.scope == "placement" and not problem.uses_links:
        if core is None:
            return BoundCheck(False, np.nan, "a placement bound needs the mapping whose parts it keeps")
        if problem.uses_nets:  # parts are joined by pairs here, and trees cost less than all their pairs
            return BoundCheck(False, np.nan, "placement bounds are for sums over pairs")
        if core.shape != (problem.n,) or core.min() < 0 or core.max() >= problem.cores:
            return BoundCheck(False, np.nan, "a placement bound needs a core for every node")
        problem = _parts(problem, core)
    elif bound.scope == "full" and core is not None and not free_routes:
        above = _above(problem, bound, core)
        if above is not None:
            return above
    if bound.value <= 0:
        return BoundCheck(True, 0.0, "no objective is below 0")
    if bound.method in WORDS and bound.scope == "full" and np.isfinite(bound.value):
        return _by_search(problem, bound, about, seconds, hints)
    if bound.method not in RECHECKS and bound.scope == "full":
        return _on_trust(problem, bound, about)
    if bound.method not in RECHECKS:
        return BoundCheck(False, np.nan, f"{bound.method} says nothing about placements alone")
    if problem.uses_links and (bound.method not in problem.aim.bounds or bound.scope != "full"):
        return BoundCheck(False, np.nan, f"{bound.method} bounds sums, not the objective {problem.objective}")
    try:
        problem = problem if bound.method in CEILED else contracted(problem)
        value = RECHECKS[bound.method](problem, bound.certificate)
    except CertificateError as broken:
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: {broken}")
    if not np.isfinite(value):
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: the numbers are too large")
    value = risen(value, granularity(problem))
    if not bound.value <= value:
        text = f"the certificate proves only {value:.17g}, the claim is {bound.value:.17g}"
        return BoundCheck(False, value, text)
    return BoundCheck(
        True, value, f"recomputed from the certificate: {value:.10g}{_certainty(problem, bound)}"
    )


def needed_from_disk(problem: MappingProblem, bound: Bound) -> int:
    """Return the bytes that the re-check of a bound takes beside a graph on disk; 0 where that is next to nothing."""
    lam = bound.certificate.get("eigenvalues")
    large = problem.graph.on_disk and problem.n > DECOMPOSED and bound.method in EIGENVALUES
    return needed(problem.n, len(lam)) if large and isinstance(lam, np.ndarray | list) else 0


def _certainty(problem: MappingProblem, bound: Bound) -> str:
    """Return what the check says of itself where it is not exact: eigenvalues of matrices too large to factor."""
    most = DECOMPOSED if problem.graph.on_disk else FACTORED
    by_chance = bound.certificate.get("inner", bound.method) in EIGENVALUES and problem.n > most
    return ", with probability above 1 - 5e-13 over the checker's own random vectors" if by_chance else ""


def _no_claim(bound: Bound, free_routes: bool) -> str | None:
    """Why nothing is claimed that could be looked at: an unknown method, another method's certificate, no number, no scope."""
    if bound.method not in RECHECKS and bound.method not in (FREE_WORDS if free_routes else WORDS):
        whose = "chosen routes" if free_routes else "the machine's own routes"
        if bound.method in METHODS or free_routes:
            return f"no engine for {whose} is called {bound.method!r}, so its claim does not count"
    method = bound.certificate.get("method", bound.method)
    if not isinstance(method, str) or method != bound.method:
        return f"the certificate is for {method!r}, the bound claims {bound.method!r}"
    if np.isnan(bound.value):
        return "the claim is not a number"
    return None if bound.scope in ("full", "placement") else f"unknown scope {bound.scope!r}"


def _above(problem: MappingProblem, bound: Bound, core: IntArray) -> BoundCheck | None:
    """Return the outcome if a bound is above the objective of a known mapping, else None."""
    cost = _cost(problem, np.ascontiguousarray(core, np.int64))
    text = f"{bound.value:.10g} is above the cost {cost:.10g} of a known mapping"
    return BoundCheck(False, cost, text) if bound.value > cost * (1 + 1e-9) else None


#: What was asked last about each graph, and its objective: a dozen bounds of a run are held against one mapping.
_costs: WeakKeyDictionary[LogicGraph, tuple[tuple[object, ...], float]] = WeakKeyDictionary()


def _cost(problem: MappingProblem, core: IntArray) -> float:
    """Return the objective of a mapping, walked once."""
    asked = (problem.machine, problem.objective, problem.terms, core.tobytes())
    known = _costs.get(problem.graph)
    if known is None or known[0] != asked:
        known = _costs[problem.graph] = asked, walked_objective(problem, core)
    return known[1]


def _by_package(problem: MappingProblem, bound: Bound, core: IntArray | None, seconds: float) -> BoundCheck:
    """Return what the re-check of an installed package says, of the problem with ``together`` groups merged."""
    above = None if core is None else _above(problem, bound, core)
    if above is not None:
        return above
    if bound.method in REMOVED:
        text = f"the bound {bound.method!r} is of an earlier version, and no longer re-checked; `nmsolve gap` proves another"
        return BoundCheck(False, np.nan, text)
    step = granularity(problem)
    try:
        merged = contracted(problem)
    except CertificateError as broken:
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: {broken}")
    found = foreign_recheck("", bound, (merged,), seconds, lambda value: risen(value, step))
    return found or BoundCheck(False, np.nan, unknown_method(bound.method))


def _by_search(
    problem: MappingProblem, bound: Bound, about: str | None, seconds: float, hints: HintsOf | None
) -> BoundCheck:
    """Return the outcome of a second search, for all mappings whatever the limits; on trust where it does not tell."""
    # its kernels take memory that nothing else needs
    from nmsolve.check.mapping.bounds.repeated import EASY, repeats, search_again

    first = bound.certificate if bound.method == SEARCH else None
    seconds = seconds if first is not None else min(seconds, WORD_SECONDS)
    try:
        plain, found = contracted(problem), None
        if problem.limits_moves and plain.n == problem.n:  # no groups: the budget counts the same nodes
            within = replace(plain, migration=problem.migration)
            found = search_again(within, bound.value, first, seconds, hints)
        told = found is not None
        quick = repeats(plain) and (plain.free_nodes <= EASY or not plain.one_per_core)
        if not told and (first is not None or quick):
            found = search_again(plain, bound.value, first, seconds, hints)
    except CertificateError as broken:
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: {broken}")
    if found:
        return BoundCheck(True, bound.value, "recomputed by a second search: no mapping costs less")
    tables = problem.axons, problem.kinds, problem.table_limit
    unheld = problem.limits_moves and not told
    limited = problem.ceilings or unheld or any(limit is not None for limit in tables)
    if found is None and first is None and not quick:
        return _on_trust(problem, bound, about)
    if found is None or limited:
        why = f"a second search does not end within {seconds:,.0f} s, or cannot tell"
        return _on_trust(problem, bound, about, why)
    return BoundCheck(False, np.nan, f"a second search found a mapping below the claim {bound.value:.17g}")


def _on_trust(
    problem: MappingProblem, bound: Bound, about: str | None, why: str = "nothing here can be recomputed"
) -> BoundCheck:
    if about is not None and about != problem.hash:
        return BoundCheck(False, np.nan, f"given about problem {about}, this one is {problem.hash}")
    status = bound.certificate.get("status")
    status = status if isinstance(status, str) else "none"
    within = [f"{name} at most {most:.10g}" for name, most in problem.ceilings]
    within += ["the migration budget"] if problem.limits_moves else []
    only = f"; it is about mappings within {' and '.join(within)} only" if within else ""
    text = f"rests on the word of {bound.method} (status {status}); {why}{only}"
    return BoundCheck(True, bound.value, text, bound.method)


def _parts(problem: MappingProblem, core: IntArray) -> MappingProblem:
    """Return the parts of a mapping as nodes, one per core; traffic between two parts is rounded down where it is not whole."""
    graph = problem.graph
    number = np.full(problem.cores, -1, np.int64)
    used = np.flatnonzero(np.bincount(core, minlength=problem.cores))
    number[used] = np.arange(len(used))
    between, many = np.zeros((len(used), len(used))), np.zeros((len(used), len(used)))
    whole = True
    for rows, row in pieces(graph):
        at = number[core[rows.source[row]]], number[core[rows.targets]]
        np.add.at(between, at, rows.weights)
        np.add.at(many, at, 1.0)
        whole &= bool((rows.weights == np.rint(rows.weights)).all())
    if not (whole and between.sum() < EXACT):
        between *= 1.0 - many * EPS
    np.fill_diagonal(between, 0.0)
    a, b = np.nonzero(between)
    parts = LogicGraph.from_edges(len(used), a, b, between[a, b], name=graph.name)
    return MappingProblem(parts, problem.machine, problem.objective, (), 1)


def certificates_to_json(
    problem: MappingProblem, bounds: Sequence[Bound], earlier: Sequence[Stage] = ()
) -> str:
    """The file ``certificates.json``: every bound with its certificate, and the hash of the problem it is about; the same of
    ``earlier`` problems of a run in order."""
    return certificates_text(problem.hash, [("", bound) for bound in bounds], earlier, RECHECKS)
