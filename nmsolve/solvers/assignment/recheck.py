"""Bounds of assignments and cost networks re-checked: which code recomputes which method, and whose word counts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import Bound, BoundCheck
from nmsolve.model.errors import CertificateError
from nmsolve.model.lookup import named

#: ``module:function`` below ``nmsolve`` by method; each takes the problem, the bound and seconds.
RECHECKS: dict[str, str] = {
    "counting": "solvers.assignment.recheck_counting:check",
    "dual": "solvers.assignment.recheck_dual:check",
    "tree": "solvers.assignment.recheck_tree:check",
    "min-cut": "solvers.assignment.recheck_cut:check",
}
#: Engines that leave only a solver's status.
WORDS: tuple[str, ...] = ("assign-cpsat", "assign-highs", "network-cpsat", "makespan-cpsat")


def check_assign_bound(
    problem: AssignProblem | CostNetwork, bound: Bound, seconds: float = 60.0, about: str | None = None
) -> BoundCheck:
    """Re-check a bound from its certificate, by code that did not find it.

    Parameters
    ----------
    seconds : about how long it may take
    about : hash of the problem that the bound was kept with; None for one that was just found

    Notes
    -----
    What is recomputed uses no ceilings, so it holds under any. A solver's word counts for this very problem only.
    """
    if bound.method not in RECHECKS and bound.method not in WORDS:
        return BoundCheck(
            False, math.nan, f"no engine is called {bound.method!r}, so its claim does not count"
        )
    method = bound.certificate.get("method", bound.method)
    if not isinstance(method, str) or method != bound.method:
        return BoundCheck(
            False, math.nan, f"the certificate is for {method!r:.40}, the bound claims {bound.method!r}"
        )
    if math.isnan(bound.value) or bound.scope != "full":
        return BoundCheck(False, math.nan, f"{bound.value} with scope {bound.scope!r:.40} claims nothing")
    if bound.value <= 0:
        return BoundCheck(True, 0.0, "no objective is below 0")
    if bound.method in WORDS:
        return _on_trust(problem, bound, about)
    try:
        whole = replace(bound, certificate={k: _whole(v) for k, v in bound.certificate.items()})
        found: BoundCheck = named(RECHECKS[bound.method])(problem, whole, seconds)
    except CertificateError as broken:
        return BoundCheck(False, math.nan, f"certificate of {bound.method}: {broken}")
    return found


def _whole(value: Any) -> Any:
    """Return a list of whole numbers as engines give it where a file made floats of it, anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    exact = bool((np.abs(value) < 2**53).all() and (value == np.floor(value)).all())
    return value.astype(np.int64).tolist() if exact else value.tolist()


def _on_trust(problem: AssignProblem | CostNetwork, bound: Bound, about: str | None) -> BoundCheck:
    here = problem.content_hash
    if about is not None and about != here:
        return BoundCheck(False, math.nan, f"given about problem {about[:64]}, this one is {here}")
    status = bound.certificate.get("status")
    status = status[:40] if isinstance(status, str) else "none"
    limits = (
        [] if isinstance(problem, CostNetwork) else [f"{k} at most {v:,.0f}" for k, v in problem.ceilings]
    )
    only = f"; about assignments with {' and '.join(limits)} only" if limits else ""
    text = f"rests on the word of {bound.method} (status {status}); nothing here can be recomputed{only}"
    return BoundCheck(True, bound.value, text, bound.method)
