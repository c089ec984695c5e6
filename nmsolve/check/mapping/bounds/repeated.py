"""Re-check of what a solver claims of a small problem: a second search, from the problem as stated, with symmetries of its own.

For more than a few nodes it has bounds and branching of its own, too. Good multipliers are hard to find and easy to check, so
they are handed in, by the engine's own ascent as a rule: :mod:`.partial` believes nothing about them. Poor ones would only make
this search longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from math import ceil, lcm
from typing import Any, NamedTuple

import numpy as np

from nmsolve.check.mapping.bounds.exhaustion import MOST_COST, Exhaustion, exhaust, new_search
from nmsolve.check.mapping.bounds.few_moves import nothing_near
from nmsolve.check.mapping.bounds.packings import new_packing, nothing_below
from nmsolve.check.mapping.bounds.partial import PARTS, Multipliers, Relaxed
from nmsolve.check.mapping.bounds.parts import (
    CertificateError,
    all_distances,
    granularity,
    one_way_traffic,
    room_of,
    usable_cores,
    whole_numbers,
)
from nmsolve.check.mapping.bounds.symmetry import Board
from nmsolve.model import clock
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Partial mappings that the depth-first search may bound where it may fail, and with so few open nodes until it ends.
PROBE, SMALL = 500, 9
#: It is tried where it ended at least one in ODDS at this depth, and with the first TRIALS.
ODDS, TRIALS = 10, 10
#: Children count ``exp(missing / (SCALE * missing of the parent))`` where a line to branch on is chosen.
SCALE = 0.15
#: Symmetries are looked for with fewer placed nodes than this; below hardly any is left.
SYMMETRIC = 3


#: For a partial mapping (n,), the cores (n, k) left to open nodes and the most that a completion may cost: multipliers.
Ask = Callable[[IntArray, BoolArray, int], Multipliers]
#: Makes one for traffic both ways (n, n) and distances (k, k). A partial mapping is asked about after the one above it.
HintsOf = Callable[[IntArray, IntArray], Ask]


class Cheaper(Exception):
    """There is a mapping that costs less than was said."""


class GaveUp(Exception):
    """Time is up."""


class Closing:
    """Shows that no mapping has a doubled cost of ``most`` or less.

    Parameters
    ----------
    search : of the same problem, whose distances are symmetric
    stop : asked before every partial mapping
    hints : multipliers; None: all are 0
    """

    def __init__(
        self,
        search: Exhaustion,
        most: int,
        board: Board,
        stop: Callable[[], bool],
        hints: HintsOf | None = None,
    ) -> None:
        pairs = search.there + search.back
        self._search, self._most, self._board, self._stop = search, most, board, stop
        n = len(pairs)
        self._bound, self._ask = Relaxed(pairs, search.far), (hints or _none)(pairs, search.far)
        self._tried, self._ended = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)

    def close(self, place: IntArray, left: BoolArray) -> None:
        """Return if no completion of ``place`` (n,) with open nodes on the cores ``left`` (n, k) to them costs so little.

        Raises
        ------
        Cheaper, GaveUp : it does, or time is up
        """
        if self._stop():
            raise GaveUp
        depth = int((place >= 0).sum())
        if self._few(place, left, depth):
            return
        given = self._ask(place, left, self._most)
        bound, nodes, cores = self._bound.children(place, left, given)
        missing = self._most * PARTS - bound
        if not (missing >= 0).any():
            return
        rest = left.copy()
        rest[np.ix_(nodes, cores)] &= missing >= 0
        for u, p in self._branches(place, nodes, cores, missing):
            child = place.copy()
            child[u] = p
            self.close(child, rest)

    def _few(self, place: IntArray, left: BoolArray, depth: int) -> bool:
        """Return True if the depth-first search ends what is below within its limits."""
        few = len(place) - depth <= SMALL
        if not few and self._tried[depth] >= TRIALS and ODDS * self._ended[depth] < self._tried[depth]:
            return False
        self._tried[depth] += 1
        self._search.left[0] = left
        first = np.flatnonzero(place >= 0)
        done = exhaust(self._search, first, place[first], self._most, 1 << 62 if few else PROBE)
        if done == -1:
            raise Cheaper
        self._ended[depth] += done >= 0
        return bool(done >= 0)

    def _branches(
        self, place: IntArray, nodes: IntArray, cores: IntArray, missing: IntArray
    ) -> list[tuple[int, int]]:
        """Return what to put where next: a node on every core left to it but for symmetries, or on a core every node.

        A core may only be branched on if there is none to spare.
        """
        open_ones, used = missing >= 0, tuple(place[place >= 0].tolist())
        weight = np.where(open_ones, np.exp(missing / max(1.0, SCALE * float(missing.max()))), 0.0)
        first = np.ones(open_ones.shape, bool)
        if len(used) < SYMMETRIC:
            for i in range(len(nodes)):
                among = np.zeros(len(self._board), bool)
                among[cores] = open_ones[i]
                first[i] = np.isin(cores, self._board.unlike(used, among))
        by_node = (weight * first).sum(axis=1)
        by_core = weight.sum(axis=0)
        if len(nodes) < len(cores) or by_node.min() <= by_core.min():
            i = int(by_node.argmin())
            return [(int(nodes[i]), int(cores[j])) for j in np.flatnonzero(open_ones[i] & first[i])]
        j = int(by_core.argmin())
        return [(int(nodes[i]), int(cores[j])) for i in np.flatnonzero(open_ones[:, j])]


def _none(pairs: IntArray, far: IntArray) -> Ask:
    n = len(pairs)
    nothing = Multipliers(np.zeros((n, n)), np.zeros((n, n)), np.zeros((n * (n - 1) * (n - 2) // 6, 4)))
    return lambda place, left, most: nothing


#: Larger problems are not searched again: nodes with several allowed cores, those where cores hold several, all nodes, cores.
MOST_NODES, MOST_PACKED, MOST_IN_ALL, MOST_PLACES = 32, 24, 128, 64
#: Partial mappings that the plain search bounds at most; for each one that the first search bounded; in a second, about, and in a
#: second where cores hold several nodes.
BUDGET, FOR_EACH, PER_SECOND, PACKED_PER_SECOND = 50_000_000, 8, 100_000, 1_000_000
#: Nodes of a problem with a migration budget, and entries of its traffic looked at in a second.
MOST_NEAR, NEAR_PER_SECOND = 4096, 2e8
#: Up to this many nodes the plain search is the faster one.
EASY = 16


#: Largest common denominator of decimal numbers, and the part of itself by which one may miss its multiple.
MOST_DENOMINATOR, WITHIN = 2**40, 2.0**-50
#: What sums of products of two such numbers may miss, with room for what the evaluator rounds.
ROUNDING = Fraction(1, 2**38)


class Multiples(NamedTuple):
    """Whole ``numbers``, and by what the data were multiplied to get them."""

    numbers: IntArray
    factor: int


def whole_multiples(values: FloatArray) -> Multiples | None:
    """Return numbers >= 0 times the least factor up to 2^40 with which they are whole; None if there is none.

    It is a power of ten, or the common denominator of fractions with denominators up to 1000.

    A decimal number is not the double that is nearest to it: a product may miss a whole number by ``WITHIN`` of itself.
    """
    top = float(values.max(initial=0.0))
    fractions = lcm(
        *(Fraction(v).limit_denominator(1000).denominator for v in np.unique(values)[:1000].tolist())
    )
    for factor in sorted({*(10**k for k in range(13)), fractions}):
        if factor > MOST_DENOMINATOR or top * factor >= MOST_COST:
            break
        times = values * float(factor)
        near = np.rint(times)
        if (abs(times - near) <= (WITHIN * times if factor > 1 else 0.0)).all():
            return Multiples(near.astype(np.int64), factor)
    return None


def repeats(problem: MappingProblem) -> bool:
    """Return True if a second search takes the problem, whole or decimal: few nodes and cores, sums over pairs."""
    n, k, free = problem.n, len(usable_cores(problem)), problem.free_nodes
    if problem.uses_links or problem.uses_nets or problem.graph.on_disk:
        return False
    if problem.migration is not None and problem.limits_moves:
        return n <= MOST_NEAR and np.array_equal(problem.migration.group, np.arange(n))
    if k > MOST_PLACES or n > MOST_IN_ALL or free > (MOST_NODES if problem.one_per_core else MOST_PACKED):
        return False
    return room_of(problem) > 1 or (problem.one_per_core and n <= k)


class _Whole(NamedTuple):
    """A problem in whole numbers: traffic (n, n), distances (k, k), allowed cores (n, k), nodes apart (n, n), usable cores (k,).

    ``most`` : what a mapping costs at most that costs less than was claimed
    """

    pairs: IntArray
    far: IntArray
    allowed: BoolArray
    apart: BoolArray
    cores: IntArray
    most: int


def _in_whole_numbers(problem: MappingProblem, value: float) -> _Whole | None:
    """Return the problem beside the claim ``value``; None if it has no whole numbers, or too large ones."""
    traffic = whole_multiples(one_way_traffic(problem).toarray())
    far = whole_multiples(all_distances(problem))
    if traffic is None or far is None or far.numbers.diagonal().any():
        return None
    if 4 * traffic.numbers.sum(dtype=np.float64) * far.numbers.max() >= MOST_COST:
        return None
    step, factor = int(max(1.0, granularity(problem))), traffic.factor * far.factor
    claimed = Fraction(value) * (factor if factor == 1 else factor * (1 - ROUNDING))
    cores = usable_cores(problem)
    room = (problem.sizes[:, None, :] <= problem.capacity[cores]).all(axis=2)
    allowed = np.ascontiguousarray(problem.domains[problem.domain_of][:, cores] & room)
    np.fill_diagonal(traffic.numbers, 0)
    apart, (indptr, other) = np.zeros((problem.n, problem.n), bool), problem.apart
    apart[np.repeat(np.arange(problem.n), np.diff(indptr)), other] = True
    most = (ceil(claimed / step) - 1) * step
    return _Whole(traffic.numbers, np.ascontiguousarray(far.numbers), allowed, apart, cores, most)


def search_again(
    problem: MappingProblem,
    value: float,
    certificate: Mapping[str, Any] | None,
    seconds: float,
    hints: HintsOf | None = None,
) -> bool | None:
    """Return True if no mapping costs less than ``value``, False if one does; None if this search does not tell.

    It does not where :func:`repeats` says so, where numbers are neither whole nor decimal (:func:`whole_multiples`), or where it
    takes more than ``seconds``: then the claim is a solver's word. Decimal costs count as less only if they are by more than
    ``ROUNDING`` of themselves. A migration budget counts; ceilings and limits on tables and kinds are left out.

    Parameters
    ----------
    certificate : of a first search that says how many partial mappings it bounded; None: there is nothing to repeat
    seconds, hints : as of :func:`nmsolve.check.mapping.recheck.check_bound`

    Raises
    ------
    CertificateError : the certificate does not say in whole numbers how long the first search was
    """
    if not repeats(problem):
        return None
    end, whole = clock.now() + seconds, _in_whole_numbers(problem, value)
    if whole is None:
        return None
    if problem.limits_moves:
        return _near(problem, whole, seconds)
    if room_of(problem) > 1:
        return _packed(problem, whole, seconds)
    n, most = problem.n, 2 * whole.most  # costs are doubled there
    search, board = new_search(whole.pairs, whole.far, whole.allowed), Board(whole.far, whole.allowed)
    if problem.free_nodes <= EASY or (whole.far != whole.far.T).any():
        budget = min(BUDGET, int(seconds * PER_SECOND * min(1.0, EASY / n) ** 2))
        if certificate is not None:
            stated = whole_numbers({"nodes": [certificate.get("nodes")]}, "nodes", 1, least=0)
            budget = min(budget, 1000 + FOR_EACH * min(BUDGET, int(stated[0])))
        return _exhausted(search, most, board, whole.allowed, budget)
    try:
        closing = Closing(search, most, board, lambda: clock.now() > end, hints)
        closing.close(np.full(n, -1, np.int64), whole.allowed)
    except Cheaper:
        return False
    except (GaveUp, CertificateError):  # time is up, or the multipliers are too large
        return None
    return True


def _near(problem: MappingProblem, whole: _Whole, seconds: float) -> bool | None:
    """The answer within the migration budget."""
    assert problem.migration is not None
    number = np.full(problem.cores, -1)
    number[whole.cores] = np.arange(len(whole.cores))
    return nothing_near(
        whole.pairs, whole.far, whole.allowed, problem.sizes, problem.capacity[whole.cores], whole.apart,
        number[problem.migration.reference], problem.migration.budget, whole.most, seconds * NEAR_PER_SECOND,
    )  # fmt: skip


def _packed(problem: MappingProblem, whole: _Whole, seconds: float) -> bool | None:
    """The answer where cores hold several nodes."""
    room = problem.capacity[whole.cores]
    packing = new_packing(whole.pairs, whole.far, whole.allowed, problem.sizes, room, whole.apart)
    budget = seconds * PACKED_PER_SECOND * min(1.0, MOST_PACKED / problem.n) ** 2
    return nothing_below(packing, whole.most, int(budget))


def _exhausted(search: Exhaustion, most: int, board: Board, allowed: BoolArray, budget: int) -> bool | None:
    """The answer by the plain search, if it bounds no more than ``budget`` partial mappings."""
    for first, onto in _beginnings(search.there + search.back, board, allowed):
        done = exhaust(search, first, onto, most, budget)
        if done < 0:
            return False if done == -1 else None
        budget -= done
    return True


def _beginnings(pairs: IntArray, board: Board, allowed: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The two heaviest nodes on two cores, in all ways but those that symmetries of the board make of others."""
    order = np.argsort(-pairs.sum(axis=1), kind="stable")[: min(2, len(pairs))]
    for p in board.unlike((), allowed[order[0]]):
        if len(order) == 1:
            yield order, np.array([p])
            continue
        rest = allowed[order[1]].copy()
        rest[p] = False
        for q in board.unlike((p,), rest):
            yield order, np.array([p, q])
