"""Which node of a new graph is which node of an old one: by names where they fit, else by structure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmsolve.learn.archive.arcs import Arcs, overlap
from nmsolve.learn.archive.colours import ROUNDS, exact, seeds
from nmsolve.learn.archive.descriptors import described
from nmsolve.learn.archive.effort import COLOUR, DESCRIBED, SMOOTH, Effort
from nmsolve.learn.archive.smooth import coordinates, near_pairs, turned
from nmsolve.learn.archive.votes import mutual, supported, voted
from nmsolve.model.types import IntArray

#: Names are believed if they map this part of the connections onto each other.
TRUSTED = 0.5
#: Votes that map less than this begin once more with descriptors; with less than that, with smooth coordinates.
DOUBTFUL, POOR = 0.75, 0.35
#: Up to this many nodes without a counterpart are paired by assignment.
LEFT = 400


class Alignment(NamedTuple):
    """Counterparts (new.n,), -1 for none; the part of the connections they map onto each other; and by what they were found."""

    match: IntArray
    share: float
    by: str


def align(old: Arcs, new: Arcs, effort: Effort | None = None) -> Alignment:
    """Return the best counterparts found: an exact match, names, and votes from colours, descriptors and smooth coordinates.

    ``effort`` : counts the work, and says when to return what is known
    """
    effort = Effort() if effort is None else effort
    size = len(old.source) + len(new.source) + old.n + new.n
    named = by_names(old, new)
    share = overlap(old, new, named)
    effort.add(COLOUR * size)
    best = Alignment(named, share, "names")
    if share == 1.0 or effort.over(COLOUR * ROUNDS * size):
        return best
    same = exact(old, new)
    effort.add(COLOUR * ROUNDS * size)
    if same is not None and overlap(old, new, same) == 1.0:
        return Alignment(same, 1.0, "colours")
    if share >= TRUSTED:
        return best
    match, share = voted(old, new, seeds(old, new), effort)
    best = max(best, Alignment(match, share, "votes"), key=lambda a: a.share)
    if share < DOUBTFUL and not effort.over(DESCRIBED * size):
        effort.add(DESCRIBED * size)
        near, found = voted(old, new, described(old, new), effort)
        best = max(best, Alignment(near, found, "descriptors"), key=lambda a: a.share)
    if best.share < POOR and not effort.over(SMOOTH * size):
        effort.add(SMOOTH * size)
        a, b = coordinates(old), coordinates(new)
        if a is not None and b is not None and not effort.over():
            first = mutual(new.n, *near_pairs(turned(a, b, match), b))
            near, found = voted(old, new, first, effort)
            best = max(best, Alignment(near, found, "coordinates"), key=lambda a: a.share)
    return best._replace(match=_left_over(old, new, supported(old, new, best.match)))


def by_names(old: Arcs, new: Arcs) -> IntArray:
    """Return (new.n,) counterparts of equal names (numbers where there are none), -1 where there is none."""
    if old.ids is None and new.ids is None:
        return np.where(np.arange(new.n) < old.n, np.arange(new.n), -1)
    index = {name: i for i, name in enumerate(range(old.n) if old.ids is None else old.ids)}
    return np.array(
        [index.get(name, -1) for name in (range(new.n) if new.ids is None else new.ids)], np.int64
    )


def _left_over(old: Arcs, new: Arcs, match: IntArray) -> IntArray:
    """Pair the nodes without a counterpart by assignment: neighbours that correspond count most, then equal traffic."""
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array

    rest = np.flatnonzero(match < 0)
    free = np.setdiff1d(np.arange(old.n), match[match >= 0])
    if not len(rest) or not len(free) or max(len(rest), len(free)) > LEFT:
        return match
    known = np.flatnonzero(match >= 0)
    pairs = csr_array((np.ones(len(known)), (known, match[known])), shape=(new.n, old.n))
    common = (new.traffic > 0)[rest].astype(float) @ pairs @ (old.traffic > 0)[free].astype(float).T
    load_new, load_old = (np.log1p(np.asarray(g.traffic.sum(axis=1)).ravel()) for g in (new, old))
    apart = np.abs(load_new[rest][:, None] - load_old[free][None, :])
    i, j = linear_sum_assignment(np.minimum(apart, 0.9) - common.toarray())
    out = match.copy()
    out[rest[i]] = free[j]
    return out
