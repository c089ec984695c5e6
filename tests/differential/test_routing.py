"""Random small routing problems at all magnitudes: every engine, both exact models and every bound against brute force.

The reference is written from docs/routing.md in fractions and shares nothing with the package but the problem's arrays.
``NMSOLVE_ROUTINGS=5000 pytest tests/differential/test_routing.py`` runs as many problems as one likes.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from nmsolve.check.routing.recheck import check_routing_bound
from nmsolve.check.routing.routes import verify_flow_routes
from nmsolve.heuristics.routing.engine import Reroute
from nmsolve.hw.routing.order import allowed_turns, number_of
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.routing.files import write_flow_routes
from nmsolve.model.routing.flows import Flows
from nmsolve.model.routing.problem import RoutingProblem
from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.stop import Stop
from nmsolve.model.turns import turn_set
from nmsolve.solvers.routing.checker import RoutingChecker
from nmsolve.solvers.routing.column_lns import ColumnLns
from nmsolve.solvers.routing.exact import RouteCpSat, RouteMip
from nmsolve.solvers.routing.fit import require_routes
from nmsolve.solvers.routing.flow_bound import PriceBound
from nmsolve.solvers.routing.lp import FlowLp
from nmsolve.solvers.routing.named import NamedRules
from nmsolve.solvers.search.context import LocalContext
from nmsolve.solvers.search.incumbent import Incumbent

COUNT = int(os.environ.get("NMSOLVE_ROUTINGS", "40"))
#: Problems of one test.
BATCH = 10
#: Prohibited turns of every rule: (even columns, odd columns).
RULES = {
    "xy": ("NE NW SE SW", "NE NW SE SW"),
    "west-first": ("NW SW", "NW SW"),
    "negative-first": ("NW ES", "NW ES"),
    "odd-even": ("EN ES", "NW SW"),
}
#: Most choices of routes that are looked at.
MOST = 20_000
Way = tuple[int, ...]  # links


class Board:
    """Links of a mesh by their number, 4 * core + direction (0 east, 1 west, 2 south, 3 north)."""

    def __init__(self, rows: int, cols: int, dead: frozenset[tuple[int, int]]) -> None:
        self.end: dict[int, int] = {}
        for p in range(rows * cols):
            r, c = divmod(p, cols)
            for d, (dr, dc) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
                q = (r + dr) * cols + c + dc
                if 0 <= r + dr < rows and 0 <= c + dc < cols and (p, q) not in dead:
                    self.end[4 * p + d] = q

    def paths(self, s: int, t: int, detour: int) -> list[Way]:
        """Every path without a core twice, at most ``detour`` longer than the shortest."""
        found: list[Way] = []

        def go(at: int, seen: frozenset[int], path: Way) -> None:
            if at == t:
                found.append(path)
                return
            for d in range(4):
                end = self.end.get(4 * at + d)
                if end is not None and end not in seen:
                    go(end, seen | {end}, (*path, 4 * at + d))

        go(s, frozenset([s]), ())
        least = min(map(len, found), default=0)
        return [p for p in found if len(p) <= least + detour]

    def straight(self) -> set[tuple[int, int]]:
        """Pairs of links one behind the other."""
        return {(v, 4 * q + v % 4) for v, q in self.end.items() if 4 * q + v % 4 in self.end}

    def corners(self) -> set[tuple[int, int]]:
        """Pairs of links with a turn between them that is not back."""
        return {(v, 4 * q + d) for v, q in self.end.items() for d in range(4)
                if d // 2 != v % 4 // 2 and 4 * q + d in self.end}  # fmt: skip


class Case:
    """The problem of a seed, once for the package, once for the reference."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        rows, cols = rng.choice(((2, 2), (2, 2), (2, 3), (2, 3), (3, 3)))
        size = rows * cols
        dead: set[tuple[int, int]] = set()
        if rng.random() < 0.3 and size > 4:
            p = rng.randrange(size - cols)
            dead = {(p, p + cols), (p + cols, p)} if rng.random() < 0.5 else {(p, p + cols)}
        self.board = Board(rows, cols, frozenset(dead))
        self.detour = rng.choice((0, 0, 0, 2))
        self.rule = rng.choice(sorted(RULES)) if rng.random() < 0.35 else None
        self.cols = cols
        unit = 10.0 ** rng.randint(-12, 12) if rng.random() < 0.6 else 1.0
        pairs = rng.sample(list(itertools.permutations(range(size), 2)), rng.randint(2, 4 if size > 6 else 5))
        if size == 4:
            pairs += [p for p in ((0, 3), (1, 2), (3, 0)) if p not in pairs][: rng.randint(0, 3)]
        pairs = sorted(pairs)
        self.rate = [rng.choice((rng.randint(1, 9), rng.random() * 9, round(rng.random() * 9, 2))) * unit or unit
                     for _ in pairs]  # fmt: skip
        self.pairs = pairs
        self.machine = Machine(f"mesh {rows}x{cols}", (1, 1), (rows, cols), faulty_links=tuple(sorted(dead)))
        flows = Flows.of_pairs([a for a, _ in pairs], [b for _, b in pairs], self.rate)
        turns = None if self.rule is None else turn_set(self.rule, self.machine)
        self.problem = RoutingProblem(
            self.machine, flows, ("max-link", "total-link", "turns"), detour=self.detour, turns=turns
        )

    def allowed(self, path: Way) -> bool:
        """No turn that the rule prohibits."""
        if self.rule is None:
            return True
        for a, b in itertools.pairwise(path):
            core = b // 4
            if "EWSN"[a % 4] + "EWSN"[b % 4] in RULES[self.rule][core % self.cols % 2].split():
                return False
        return True

    def answers(self) -> Iterator[tuple[Way, ...]]:
        """Every choice of routes without a ring; straight on counts as taken where turns are chosen."""
        ways = [[p for p in self.board.paths(s, t, self.detour) if self.allowed(p)] for s, t in self.pairs]
        if math.prod(map(len, ways)) > MOST:
            raise OverflowError
        fixed = self.board.straight() if self.rule is None else set()
        for paths in itertools.product(*ways):
            if acyclic(fixed | {pair for path in paths for pair in itertools.pairwise(path)}):
                yield paths

    def loads(self, paths: tuple[Way, ...]) -> dict[int, Fraction]:
        """Load by link."""
        out: dict[int, Fraction] = {}
        for path, rate in zip(paths, self.rate, strict=True):
            for v in path:
                out[v] = out.get(v, Fraction(0)) + Fraction(rate)
        return out

    def fewest(self, paths: tuple[Way, ...]) -> int:
        """Fewest turns to prohibit beside these routes so that all the others leave no ring."""
        if self.rule is not None:
            return sum(
                "EWSN"[a % 4] + "EWSN"[b % 4] in RULES[self.rule][b // 4 % self.cols % 2].split()
                for a, b in self.board.corners()
            )
        corners = sorted(self.board.corners())
        used = {pair for path in paths for pair in itertools.pairwise(path)}
        free = [c for c in corners if c not in used]
        for size in range(len(free) + 1):
            for banned in itertools.combinations(free, size):
                if acyclic((set(corners) - set(banned)) | self.board.straight()):
                    return size
        raise AssertionError("routes without a ring leave some turns that do")


def acyclic(pairs: set[tuple[int, int]]) -> bool:
    """Whether links can be put in an order that all pairs follow."""
    while pairs:
        later = {b for _, b in pairs}
        kept = {(a, b) for a, b in pairs if a in later}
        if len(kept) == len(pairs):
            return False
        pairs = kept
    return True


def solved(
    stage: RoutingStage, engine: object, start: np.ndarray | None = None, seconds: float = 20.0
) -> Incumbent:
    """One engine on one stage, in this process."""
    budget = Stop(seconds)
    incumbent = Incumbent(RoutingChecker(stage), budget)
    if start is not None:
        incumbent.offer("start", start)
    context = LocalContext("it", incumbent, budget, seed=0, workers=1, deadline=time.monotonic() + seconds)
    engine.run(stage, context)  # type: ignore[attr-defined]
    assert not [e for e in incumbent.events if e.kind == "error"], incumbent.events
    return incumbent


def near(a: float, b: Fraction) -> bool:
    """Equal but for sums in another order."""
    return abs(Fraction(a) - b) <= Fraction(1, 10**9) * abs(b)


def agrees(stage: RoutingStage, found: Incumbent, best: Fraction, exact: bool, what: object) -> None:
    """No bound above, no answer below the optimum; an exact engine finds it."""
    low = float(found.bound or 0.0)
    assert Fraction(low) <= best * (1 + Fraction(1, 10**9)), (what, low, float(best))
    assert not found.infeasible, what
    if found.lifted is not None:
        assert Fraction(float(found.objective)) >= best * (1 - Fraction(1, 10**9)), (
            what,
            found.objective,
            float(best),
        )
    if exact:
        assert found.lifted is not None and abs(Fraction(float(found.objective)) - best) <= best / 10**5, (
            what, found.objective, float(best), found.events,
        )  # fmt: skip


def check(seed: int, tmp: Path) -> str:
    """One problem; says what became of it."""
    case = Case(seed)
    try:
        answers = list(case.answers())
    except OverflowError:
        return "large"
    try:
        require_routes(case.problem)
    except InputError:
        assert not answers, seed
        return "refused"
    stage = RoutingStage(case.problem, "max-link")
    if not answers:
        for engine in (RouteCpSat(), RouteMip()):
            assert solved(stage, engine).lifted is None, (seed, engine.name)
        return "none"
    loads = [case.loads(a) for a in answers]
    best = min(max(x.values()) for x in loads)
    for engine in (RouteCpSat(), RouteMip()):
        found = solved(stage, engine)
        agrees(stage, found, best, True, (seed, engine.name))
        assert found.lifted is not None
        files_pass(case, found.lifted, tmp)
    helped(case, best, (NamedRules(), Reroute(), FlowLp(), PriceBound(), ColumnLns()))
    good = [k for k, x in enumerate(loads) if max(x.values()) <= best * (1 + Fraction(1, 10**9))]
    total = min(sum(loads[k].values()) for k in good)
    second = RoutingStage(case.problem, "total-link", (("max-link", float(best)),))
    for engine in (RouteCpSat(), RouteMip()):
        agrees(second, solved(second, engine), total, True, (seed, engine.name, "total-link"))
    if case.machine.size == 4 or case.rule is not None:
        third = RoutingStage(case.problem, "turns", (*second.ceilings, ("total-link", float(total))))
        kept = [answers[k] for k in good if sum(loads[k].values()) <= total * (1 + Fraction(1, 10**9))]
        fewest = Fraction(min(case.fewest(a) for a in kept))
        for engine in (RouteCpSat(), RouteMip()):
            agrees(third, solved(third, engine), fewest, True, (seed, engine.name, "turns"))
    return "solved"


def helped(case: Case, best: Fraction, engines: tuple[object, ...]) -> None:
    """Heuristics and bounds: nothing below the optimum, no bound above, and every bound is recomputed from its certificate."""
    stage = RoutingStage(case.problem, "max-link")
    start = None
    for engine in engines:
        if engine.refuses(stage) is not None:  # type: ignore[attr-defined]
            continue
        found = solved(stage, engine, start, 0.1)
        agrees(stage, found, best, False, (engine.name, best))  # type: ignore[attr-defined]
        start = found.lifted if found.lifted is not None else start
        for bound in found.bounds:
            check = check_routing_bound(case.problem, "max-link", bound)
            assert check.ok and (check.trusted or Fraction(check.value) <= best), (bound, check)


def files_pass(case: Case, solution: np.ndarray, folder: Path) -> None:
    """``verify`` finds nothing wrong with the file of these routes, nor with a numbering of the verifier's own."""
    stage = RoutingStage(case.problem, "max-link")
    routes, number = stage.unpack(solution)
    assert number_of(case.problem, routes) is not None
    turns = case.problem.turns or allowed_turns(case.problem, number)
    path = folder / "flow-routes.json"
    write_flow_routes(path, case.problem, routes, turns, number)
    graph = LogicGraph.from_edges(
        case.machine.size, [a for a, _ in case.pairs], [b for _, b in case.pairs], np.array(case.rate)
    )
    checks = verify_flow_routes(
        graph, case.machine, np.arange(case.machine.size), path, None, case.problem.turns
    )
    assert all(c.ok for c in checks), checks


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("batch", range(-(-COUNT // BATCH)))
def test_routes_agree_with_brute_force(batch: int, tmp_path: Path) -> None:
    """Both models find and prove the optimum of every objective in turn; the others do not contradict it."""
    ends = [check(seed, tmp_path) for seed in range(batch * BATCH, min(COUNT, (batch + 1) * BATCH))]
    assert "solved" in ends
