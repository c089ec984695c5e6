"""The exact model of routes and prohibited turns together, for CP-SAT and MIP solvers: variables, one function for each rule,
objectives.

Variables: ``z[k,c]`` leg k takes channel c, ``x[f,c]`` the tree of flow f does (``z`` itself for one target), ``y[i,c]`` a flow
of key i does (``x`` itself where every flow is a key), ``t[a,b]`` channel b may follow channel a, and
a number ``p[c]`` of every channel. Loops off the route need no rule: their channels would depend on each other in a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import AnyArray, IntArray
from nmsolve.solvers.routing.checker import MISSING
from nmsolve.solvers.routing.data import RouteData, in_and_out
from nmsolve.solvers.search.rows import Rows, Value

#: Variables of a model by channel, for each leg, tree or key.
Columns = list[dict[int, Any]]


@dataclass(frozen=True, eq=False)
class Variables:
    """``leg``, ``tree``, ``key``: 0-1 variable by channel for each leg, flow, key; ``order[a, b]`` 0-1; ``number`` by channel."""

    leg: Columns
    tree: Columns
    key: Columns
    order: dict[tuple[int, int], Any]
    number: dict[int, Any]


def stated(rows: Rows, data: RouteData, ordered: bool = True) -> Variables:
    """Return the variables, tied by all rules; without ``ordered`` channels may depend on each other in a cycle."""
    v = _variables(rows, data)
    for rule in (r for r in RULES if ordered or r not in (growing_numbers, squares)):
        rows.rule(rule.__name__)
        rule(rows, data, v)
    return v


def read(stage: RoutingStage, data: RouteData, v: Variables, value: Value) -> IntArray:
    """Return the solution of ``stage``: channels of trees, and numbers that allow every turn the model allows."""
    used = [[c for c, x in tree.items() if value(x)] for tree in v.tree]
    return data.solution(stage, used, [ab for ab, x in v.order.items() if value(x)])


def _variables(rows: Rows, data: RouteData) -> Variables:
    def columns(lists: list[list[int]], name: str, implied: bool = False) -> Columns:
        var = rows.binary(name, [(i, c) for i, some in enumerate(lists) for c in some], implied)
        return [{c: var[i, c] for c in some} for i, some in enumerate(lists)]

    indptr = data.problem.flows.indptr
    leg = columns(data.legs, "z")
    own = columns([t if m else [] for t, m in zip(data.trees, data.many, strict=True)], "x", True)
    tree = [own[f] if many else leg[int(indptr[f])] for f, many in enumerate(data.many)]
    joined = [u if len(m) > 1 else [] for u, m in zip(data.unions, data.members, strict=True)]
    shared = columns(joined, "y", True)
    key = [tree[m[0]] if len(m) == 1 else shared[i] for i, m in enumerate(data.members)]
    number = rows.amounts("p", data.working.tolist(), 0, max(1, len(data.working)) - 1)
    met = (ab for channels in key for ab, allowed in data.meeting(channels) if allowed)
    return Variables(leg, tree, key, rows.binary("t", dict.fromkeys([*data.turns, *met])), number)


def one_path_per_leg(rows: Rows, data: RouteData, v: Variables) -> None:
    """Every leg is a path: leaves its source once, enters its target once, leaves every other core as often as it enters it.

    ``sum_out z[s] = 1``, ``sum_in z[t] = 1``, ``sum_in z[p] = sum_out z[p] <= 1``; with detours ``sum_c z[c] <= longest``.
    """
    flows = data.problem.flows
    for k, z in enumerate(v.leg):
        s, t = int(flows.source[data.leg_flow[k]]), int(flows.targets[k])
        into, out = in_and_out(data, z)
        rows.exactly_one(out.get(s, []))
        rows.exactly_one(into.get(t, []))
        for p in (into.keys() | out.keys()) - {s, t}:
            rows.add(sum(into.get(p, [])) == sum(out.get(p, [])))
            if len(into.get(p, [])) > 1:
                rows.at_most_one(into[p])
        if data.problem.detour:
            rows.add(sum(z.values()) <= int(data.longest[k]))


def trees_of_legs(rows: Rows, data: RouteData, v: Variables) -> None:
    """A multicast flow takes the channels of its legs, and enters no core twice: ``x = max_k z``, ``sum_in x[p] <= 1``."""
    indptr = data.problem.flows.indptr
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            _union(rows, tree, v.leg[int(indptr[f]) : int(indptr[f + 1])])
            for into in in_and_out(data, tree)[0].values():
                rows.at_most_one(into)


def tables_of_keys(rows: Rows, data: RouteData, v: Variables) -> None:
    """What one source core sends enters a core over one channel; what goes to one core leaves a core over one channel.

    ``y = max_f x``; form ``source``: ``sum_in y[p] <= 1`` and never back into the source; form ``destination``:
    ``sum_out y[p] <= 1``.
    """
    form = data.problem.form
    if form == "flow":
        return
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            _union(rows, key, [v.tree[f] for f in flows])
        for side in in_and_out(data, key)[0 if form == "source" else 1].values():
            rows.at_most_one(side)


def allowed_turns_only(rows: Rows, data: RouteData, v: Variables) -> None:
    """What follows on a route must be in order: ``y[a] and y[b] => t[a,b]``; turning back and given prohibitions: never both.

    Keys enter (or leave) a core once, so that two of their channels that meet do follow each other.
    """
    for key in v.key:
        for ab, allowed in data.meeting(key):
            rows.any_of([v.order[ab]] if allowed else [], [key[c] for c in ab])


def growing_numbers(rows: Rows, data: RouteData, v: Variables) -> None:
    """Numbers grow along what is in order: ``t[a,b] => p[a] < p[b]`` (for a MIP as Miller, Tucker, Zemlin 1960); straight on
    always where a turn set is chosen."""
    for a, b in data.required:
        rows.add(v.number[a] + 1 <= v.number[b])
    for (a, b), t in v.order.items():
        rows.add_if(t, v.number[a] + 1, v.number[b], len(data.working))


def squares(rows: Rows, data: RouteData, v: Variables) -> None:
    """Each way round a square of cores one of the four turns is prohibited: ``sum t <= 3`` (follows from the numbers)."""
    for ring in data.squares:
        rows.any_of([], [v.order[ab] for ab in ring])


def table_limit(rows: Rows, data: RouteData, v: Variables) -> None:
    """No core needs more table entries than there are: ``sum_i e[i,p] <= limit``, see :func:`table_entries`."""
    if data.problem.table_limit is not None:
        for used in table_entries(rows, data, v).values():
            rows.add(sum(used) <= data.problem.table_limit)


def table_entries(rows: Rows, data: RouteData, v: Variables) -> dict[int, list[Any]]:
    """By core: terms that add up to its table entries, or more.

    Form ``destination``: ``sum_i sum_out y[i]``. Else ``e[i,p] >= |y[in d] - y[out d]|`` for every direction d (one entry unless
    the key passes straight in one piece), 1 where it starts or ends.
    """
    used: dict[int, list[Any]] = {}
    ways = data.problem.channels
    sides = [in_and_out(data, {c: c for c in key}) for key in v.key]
    if data.problem.form == "destination":
        for key, (_, out) in zip(v.key, sides, strict=True):
            for p, some in out.items():
                used.setdefault(p, []).extend(key[c] for c in some)
        return used
    passing = [
        (into.keys() | out.keys()) - ends for (into, out), ends in zip(sides, data.ending, strict=True)
    ]
    entry = rows.binary("e", [(i, p) for i, cores in enumerate(passing) for p in cores], implied=True)
    for ends in data.ending:
        for p in ends:
            used.setdefault(p, []).append(1)
    for (i, p), e in entry.items():
        used.setdefault(p, []).append(e)
        for d in range(4):
            inside, outside = (
                [v.key[i][c] for c in side.get(p, []) if c // ways % 4 == d] for side in sides[i]
            )
            if inside or outside:
                rows.add(sum(inside) - sum(outside) <= e)
                rows.add(sum(outside) - sum(inside) <= e)
    return used


RULES = (
    one_path_per_leg,
    trees_of_legs,
    tables_of_keys,
    allowed_turns_only,
    growing_numbers,
    squares,
    table_limit,
)


def measure(rows: Rows, stage: RoutingStage, data: RouteData, v: Variables, name: str, rate: AnyArray) -> Any:
    """Return the objective ``name``, loads for flows of these rates (F,).

    ``max-link``: ``L >= sum_f rate[f] sum_v x[f, V l + v]`` for every link l; ``total-link``: the sum over links; ``turns``;
    missing table entries: ``sum_p m[p]`` with ``m[p] >= sum_i e[i,p] - entries``.
    """
    rows.rule(f"measure_{name}".replace("-", "_"))
    if name == "turns":
        return prohibited(data, v)
    if name == MISSING:
        used = table_entries(rows, data, v)
        missing = rows.amounts("m", used, 0, max(map(len, used.values()), default=0))
        for p, terms in used.items():
            rows.add(sum(terms) <= stage.entries + missing[p])
        return sum(missing.values())
    loads: dict[int, list[Any]] = {}
    for weight, tree in zip(rate.tolist(), v.tree, strict=True):
        for c, x in tree.items():
            loads.setdefault(c // data.problem.channels, []).append(weight * x)
    if name == "total-link":
        return sum(sum(terms) for terms in loads.values())
    top = rows.amounts("max_link", (0,), 0, rate.sum())[0]
    for terms in loads.values():
        rows.add(sum(terms) <= top)
    return top


def prohibited(data: RouteData, v: Variables) -> Any:
    """Return prohibited turns: those that are given, or all that are not in order."""
    if data.problem.turns is not None:
        return data.problem.turns.prohibited(data.problem.machine)
    return len(data.turns) - sum(v.order[ab] for ab in data.turns)


def _union(rows: Rows, whole: dict[int, Any], parts: Columns) -> None:
    """``whole[c]`` is 1 if and only if ``part[c]`` is for some part."""
    for c, w in whole.items():
        some = [part[c] for part in parts if c in part]
        for z in some:
            rows.implies(z, w)
        rows.any_of(some, [w])
