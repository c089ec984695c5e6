"""The bound ``spread``: rows are looked for, weighed against each other, and certified now and then.

The distance between cores obeys the triangle inequality. So where demands a_u(v) from u to v can be led through the network
within the traffic of its pairs (or the rates of its messages, :mod:`.messages`), every mapping costs at least
sum_uv a_u(v) D(core of u, core of v), and the demands of one u at least the least scalar product with the distances of slots.
Proofs: docs/bounds.md, "spread".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nmsolve.model.bound import Bound, round_up
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.mapping.bounds.bound_context import UNLIMITED, BoundContext
from nmsolve.solvers.mapping.bounds.spread.certificate import certified
from nmsolve.solvers.mapping.bounds.spread.exact_sets import dear_demands
from nmsolve.solvers.mapping.bounds.spread.form import SpreadForm, common_neighbours, form_bytes, spread_form
from nmsolve.solvers.mapping.bounds.spread.packing import Packing
from nmsolve.solvers.mapping.bounds.spread.rows import HOLDS, Rows, find_rows
from nmsolve.solvers.mapping.bounds.spread.sets import Sets, cliques, grown, rows_of

#: Nodes that all searches of one round from near targets, and to far ones, may reach; and most targets of a row.
NEAR, FAR, MOST = 400_000, 200_000, 4000
#: How many nodes beyond what three cores hold a near search reaches.
BEYOND = 40
#: Lengths begin with the traffic, and one more than the neighbours in common, to the power of minus these.
TRAFFIC, COMMON = 0.4, 0.6
#: How much of the current lengths counts in a search, from the first round to this part of the time; the rest is the inner point.
MIX, MIX_LAST, MIX_UNTIL = 0.1, 0.9, 0.6
#: In this part of the time the inner point goes half of the way to where the current lengths stay.
HALF = 0.25
#: No rows are looked for in this last part of the time.
POLISH = 0.25
#: Steps between two searches, and most entries of all rows.
STEPS, ENTRIES = 20, 24_000_000
#: Bytes per entry that rows, copies of them, certificates and their text take at most at once; this many more of messages.
ENTRY_BYTES, LED_BYTES = 48, 24
#: Bytes per entry of rows, and of a certificate that is kept.
ROW_BYTES, STATED_BYTES = 8, 16
#: Bytes that stay free, and fewest entries that are worth a search.
SPARE, FEWEST = 16 << 20, 200_000
#: No more than this part of the entries that there is memory for is looked for in one round.
FOUND = 0.25
#: Nodes of a round around which cliques are looked for, and sets whose demands are chosen.
CLIQUES, EXACT = 125, 8
#: No demands are chosen before this part of the time, as long as other rows are found: their exact searches take most of a round.
CHOSEN = 0.3
#: How much more than others the nearest next member of a set whose demands are chosen may be away.
BLUR = 0.5
#: Rows with less than this part of the mean share are dropped while others are looked for.
SMALL = 0.05
#: From this part of the time on, every this many rounds, messages may carry what their crossings leave them.
LOOSE, LOOSEN = 0.1, 5
#: Certificates are made at these parts of the time, and at the end. It goes on if there is this part of it again.
CERTIFY, GO_ON = (0.05, 0.2, 0.45), 0.2
#: Kept back at the end: the longest round, after every later one times FADES, and SURE times what the last certificate took.
FADES, SURE = 0.9, 1.75
#: Rounds without a violated row after which more of them change nothing, and most stretches after that.
SETTLED, LAST = 4, 40


def spread_bounds(problem: MappingProblem, context: BoundContext = UNLIMITED) -> Iterator[Bound]:
    """Ever better certified bounds until time is up, nothing is violated, or the optimum is proved.

    Raises
    ------
    NmsolveError : the memory left is too little
    """
    free, need = context.memory(), form_bytes(problem) + SPARE + ENTRY_BYTES * FEWEST
    if free is not None and free < need:
        raise NmsolveError(
            f"its network and rows take {need / 2**20:.0f} MiB, {free / 2**20:.0f} MiB of --memory are left"
        )
    form = spread_form(problem)
    if len(form.weight) == 0:
        return
    search, proved = _SpreadSearch(form, context), 0.0
    while not search.over:
        packing = search.advanced()
        began = context.clock()
        value, certificate = certified(form, packing)
        search.last = context.clock() - began
        bound = Bound(round_up(value, form.lattice > 0, form.lattice or 1.0), "spread", "full", certificate)
        if bound.value > proved:
            proved, search.stated = bound.value, len(certificate["pairs"])
            yield bound
        if proved >= context.upper():
            return


class _SpreadSearch:
    """Rounds of looking for rows and weighing them, and what time there is for them.

    Attributes
    ----------
    last : seconds that the last certificate took
    stated : entries of the certificate that is kept
    over : True once the present state is the last to be certified
    """

    def __init__(self, form: SpreadForm, context: BoundContext) -> None:
        self.form, self.context = form, context
        self.rng = np.random.default_rng(context.seed)
        self.last, self.stated, self.over = 0.0, 0, False
        self._began, self._seconds = context.clock(), max(1e-3, context.seconds)
        self._first, self._left = self._began, max(1e-3, context.remaining(0.0))
        self._inner = _inner_point(form, self.rng)
        self.packing = Packing.start(form, self._inner)
        self._due, self._quiet, self._after = list(CERTIFY), 0, 0
        self._longest, self._drifted, self._rounds = 0.0, 0.0, 0

    def advanced(self) -> Packing:
        """Return the state when the next certificate is due: at parts of the time, when it is up, when nothing is violated."""
        while True:
            now = self.context.clock()
            part = self._part(now)
            if self.context.should_stop() or self._after >= LAST:
                self.over = True
                return self.packing
            if part >= 1 - self._kept_back() / self._seconds:
                self._go_on(now)
                return self.packing
            if self._due and part >= self._due[0]:
                self._due = [later for later in self._due if later > part]
                return self.packing
            self._round(part)
            self._longest = max(self.context.clock() - now, FADES * self._longest)

    def _part(self, now: float) -> float:
        """Return how much of the time is over: of what it works, or of the whole search, if others got more of that."""
        left = self.context.remaining(now - self._first)
        return max((now - self._began) / self._seconds, 1 - left / self._left)

    def _kept_back(self) -> float:
        """Return seconds before the end in which no round begins: it would be over after the last certificate is due."""
        return SURE * self.last + self._longest

    def _go_on(self, now: float) -> None:
        """The time that there should be is up: plan what there is beyond it, if it is enough for rounds and a certificate."""
        left = self.context.remaining(now - self._first)
        self.over = not left > max(GO_ON * self._seconds, self.last + 2 * self._kept_back())
        self._began, self._left, self._due = now, max(1e-3, left), list(CERTIFY[1:])
        if left < 2 * self._seconds:
            self._seconds = self._left

    def _round(self, part: float) -> None:
        form, packing = self.form, self.packing
        if part < 1 - POLISH and self._quiet < SETTLED:
            mix = max(MIX + (MIX_LAST - MIX) * min(1.0, part / MIX_UNTIL), self._quiet / SETTLED)
            current = packing.x / packing.bears
            self._inner += (1 - 0.5 ** (max(0.0, part - self._drifted) / HALF)) * (current - self._inner)
            self._drifted = part
            length = mix * current + (1 - mix) * self._inner
            most = self._most_entries()
            found, sets = _search(form, packing, length, self.rng, most), Sets.none()
            if form.grid is not None:
                exact = EXACT if part >= CHOSEN or self._quiet else 0
                rows, sets = _violated_sets(form, length, self.rng, exact)
                found = found.joined(rows)
            self._quiet = 0 if len(found.source) else self._quiet + 1
            if packing.entries + int(found.indptr[-1]) > most:
                packing.drop(SMALL, 1)
            if packing.entries + int(found.indptr[-1]) <= most:
                packing.add(found, sets)
            elif packing.entries > most:  # others have taken memory since
                packing.shrink(most)
        else:
            self._after += self._quiet >= SETTLED
        self._rounds += 1
        if part > LOOSE and self._rounds % LOOSEN == 0:
            packing.loosen()
        packing.advance(STEPS)
        packing.drop(SMALL if part < 1 - POLISH else 0.0)

    def _most_entries(self) -> int:
        """Return how many entries all rows may have: in the memory that is left, and in what they and their certificate take."""
        free = self.context.memory()
        if free is None:
            return ENTRIES
        own = ROW_BYTES * self.packing.entries + STATED_BYTES * self.stated
        each = ENTRY_BYTES + (0 if self.form.messages is None else LED_BYTES)
        return max(0, min(ENTRIES, (free + own - SPARE) // each))


def _search(
    form: SpreadForm, packing: Packing, length: FloatArray, rng: np.random.Generator, entries: int
) -> Rows:
    """Violated rows from some nodes to near targets, and from a few to any; fewer where rows may have so few ``entries``."""
    near = min(form.n - 1, MOST, 3 * form.room + BEYOND)
    far = min(form.n - 1, MOST)
    part = min(1.0, FOUND * entries / (2 * (NEAR + FAR)))
    found = _rows(form, packing.z, length, _some(form.n, max(1, int(part * NEAR / near)), rng), near)
    if far > near:
        found = found.joined(
            _rows(form, packing.z, length, _some(form.n, max(2, int(part * FAR / far)), rng), far)
        )
    return found


def _violated_sets(
    form: SpreadForm, length: FloatArray, rng: np.random.Generator, exact: int
) -> tuple[Rows, Sets]:
    """Rows of sets whose members lie too near to each other: cliques around some nodes, chosen demands around ``exact`` ones."""
    grid = form.grid
    assert grid is not None
    net = form.network(length)
    node, between = grown(_some(form.n, CLIQUES, rng), np.ones(form.n), net)
    members, demand, cost, ratio = cliques(node, between, grid)
    _, first = np.unique(np.sort(members, axis=1), axis=0, return_index=True)
    kept = first[ratio[first] < 1.0 - HOLDS]
    few, between = grown(_some(form.n, exact, rng), 1.0 + BLUR * rng.random(form.n), net)
    on_grid = np.maximum(0.0, between - grid.step) * grid.scale
    chosen, dear, short = dear_demands(few, on_grid, grid.links)
    worth = short < 1.0 - HOLDS
    return rows_of(
        np.concatenate([members[kept], few[worth]]), np.concatenate([demand[kept], chosen[worth]]),
        np.concatenate([cost[kept], dear[worth]]), grid, net,
    )  # fmt: skip


def _some(n: int, count: int, rng: np.random.Generator) -> IntArray:
    """Return all nodes, or ``count`` of them."""
    everyone = np.arange(n)
    return everyone if count >= n else np.sort(rng.choice(n, count, replace=False))


def _rows(form: SpreadForm, at: FloatArray, length: FloatArray, sources: IntArray, most: int) -> Rows:
    *rows, _ = find_rows(sources, most, form.network(length), form.least, at)
    return Rows(*rows)


def _inner_point(form: SpreadForm, rng: np.random.Generator) -> FloatArray:
    """Lengths (M,), so long that half of all nodes violate no row: short where there is traffic, and inside of communities."""
    length: FloatArray = form.weight**-TRAFFIC
    if form.messages is None:
        length = length * (1.0 + common_neighbours(form.indptr, form.node, form.edge)) ** -COMMON
    at = np.tile(form.count / form.count.sum(), (form.n, 1))
    most = min(form.n - 1, MOST, 3 * form.room + BEYOND)
    sources = _some(form.n, max(4, NEAR // (4 * most)), rng)
    worst = find_rows(sources, most, form.network(length), form.least, at)[-1]
    worst = worst[np.isfinite(worst) & (worst > 0)]
    return length / float(np.median(worst)) if len(worst) else length
