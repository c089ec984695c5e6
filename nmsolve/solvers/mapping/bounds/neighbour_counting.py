"""The neighbour-counting bound (engine ``star``): every node's neighbours are as near to it as they fit.

``cost >= 1/2 sum_u min_{p in domain(u)} sum_j w_(j) near_p(slot(j))`` with the weights of u falling and the slots of p
rising. Valid for every mapping: each node's share is bounded on its own. The minimum over p is taken slot by slot,
which is weaker than over whole cores (Gilmore-Lawler does the latter) and costs one pass over the edges. Where nodes may
use a part of the cores only, :mod:`.allowed_cores` may be higher; the higher one counts.
"""

from __future__ import annotations

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray
from nmsolve.solvers.mapping.bounds.allowed_cores import allowed_cores_sum
from nmsolve.solvers.mapping.bounds.pairs import (
    PairForm,
    ShouldStop,
    nearest,
    neighbour_slots,
    never,
    pair_form,
)

#: Nodes of further domains count as free to go anywhere (valid, weaker).
MAX_DOMAINS = 512


def neighbour_bound(problem: MappingProblem, should_stop: ShouldStop = never) -> Bound:
    """Neighbour-counting bound of a pairwise problem; certificate: the method alone, the checker recomputes it.

    Stopped early it returns 0, which is always valid. Cost: one sort of the edges and of every core's distances.
    """
    form = pair_form(problem)
    row, weight, slot, count = neighbour_slots(problem, form)
    profile = _profiles(problem, form, count, should_stop)
    if profile is None:
        return Bound(0.0, "star", "full", {"method": "star"})
    domain = np.where(problem.domain_of < len(profile), problem.domain_of, 0)
    near = profile[domain[row], slot]
    near[~np.isfinite(near)] = 0.0
    value = max(float((weight * near).sum()) / 2, allowed_cores_sum(problem, form, should_stop))
    return Bound(round_up(value, form.lattice > 0, form.lattice or 1.0), "star", "full", {"method": "star"})


def _profiles(
    problem: MappingProblem, form: PairForm, count: int, should_stop: ShouldStop
) -> FloatArray | None:
    """Return (domains, count) least distance of every slot over the cores of each domain; None if stopped."""
    domains = problem.domains[:MAX_DOMAINS, form.cores]
    profile = np.full((len(domains), count), np.inf)
    for which, block in form.blocks():
        if should_stop():
            return None
        near = nearest(block, which, count)
        for i, mask in enumerate(domains[:, which]):
            if mask.any():
                np.minimum(profile[i], near[mask].min(axis=0), out=profile[i])
    return profile
