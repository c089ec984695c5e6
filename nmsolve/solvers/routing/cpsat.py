"""The CP-SAT model of routes and prohibited turns together; one function for each rule.

Variables: ``z[k,c]`` leg k takes channel c, ``x[f,c]`` the tree of flow f does (``z`` itself for one target), ``y[i,c]`` a flow
of key i does (``x`` itself where every flow is a key), ``t[a,b]`` channel b may follow channel a, and
a number ``p[c]`` of every channel. Loops off the route need no rule: their channels would depend on each other in a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.model.routing.stage import RoutingStage
from nmsolve.model.types import IntArray
from nmsolve.solvers.routing.data import Columns, RouteData, Variables, in_and_out, table_terms
from nmsolve.solvers.routing.referee import MISSING
from nmsolve.solvers.search.scaling import Scale

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass(frozen=True, eq=False)
class RouteModel:
    """A built model; ``mapping`` reads a solution of ``stage``."""

    model: cp_model.CpModel
    stage: RoutingStage
    data: RouteData
    v: Variables
    claim: Scale

    def mapping(self, value: Any) -> IntArray:
        """The solution: channels of trees, and numbers that allow every turn the model allows."""
        used = [[c for c, x in tree.items() if value(x)] for tree in self.v.tree]
        return self.data.solution(self.stage, used, [ab for ab, x in self.v.order.items() if value(x)])


def build(
    stage: RoutingStage, *, start: IntArray | None = None, bound: float = 0.0, goal: int | None = None,
    price: tuple[int, int] | None = None,
) -> RouteModel:  # fmt: skip
    """State ``stage`` for CP-SAT.

    Parameters
    ----------
    start : (size,) a known solution; hinted
    bound : a proven lower bound on the objective, added as a row
    goal : ask only for a solution whose objective, in the model's whole numbers, is no more than this
    price : for ``reward``: minimise ``price[0] * prohibited turns - price[1] * channels of multicast trees``
    """
    from ortools.sat.python import cp_model

    model, data = cp_model.CpModel(), RouteData(stage.problem)
    v = _variables(model, data)
    for rule in RULES:
        rule(model, data, v)
    scale = data.scale(stage.objective)
    if price is not None:
        model.minimize(price[0] * _prohibited(data, v) - price[1] * _tree_channels(data, v))
    else:
        cost = (
            missing_sum(model, stage, data, v)
            if stage.objective == MISSING
            else measure(model, data, v, stage.objective)
        )
        row = scale.floor_row(bound)
        if row is not None:
            model.add(cost >= row)
        if goal is None:
            model.minimize(cost)
        else:
            model.add(cost <= goal)
            if stage.objective == "turns":
                one_per_square(model, data, v, goal)
    for name, most in stage.ceilings:
        if name == "reward":
            reward_ceiling(model, stage, data, v, most)
        else:
            model.add(measure(model, data, v, name) <= data.scale(name).ceiling_row(most))
    _hint(model, stage, data, v, start)
    return RouteModel(model, stage, data, v, scale)


def _variables(model: cp_model.CpModel, data: RouteData) -> Variables:
    def literals(lists: list[list[int]], name: str) -> Columns:
        return [{c: model.new_bool_var(f"{name}[{i},{c}]") for c in some} for i, some in enumerate(lists)]

    indptr = data.problem.flows.indptr
    leg = literals(data.legs, "z")
    tree = [
        literals([data.trees[f]], f"x{f}")[0] if many else leg[int(indptr[f])] for f, many in enumerate(data.many)
    ]  # fmt: skip
    key = [
        tree[flows[0]] if len(flows) == 1 else literals([union], f"y{i}")[0]
        for i, (flows, union) in enumerate(zip(data.members, data.unions, strict=True))
    ]
    most = max(1, len(data.working)) - 1
    number = {c: model.new_int_var(0, most, f"p[{c}]") for c in data.working.tolist()}
    order = {(a, b): model.new_bool_var(f"t[{a},{b}]") for a, b in data.turns}
    return Variables(leg, tree, key, order, number)


def one_path_per_leg(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """Every leg is a path: leaves its source once, enters its target once, leaves every other core as often as it enters it.

    ``sum_out z[s] = 1``, ``sum_in z[t] = 1``, ``sum_in z[p] = sum_out z[p] <= 1``; with detours ``sum_c z[c] <= longest``.
    """
    flows = data.problem.flows
    for k, z in enumerate(v.leg):
        s, t = int(flows.source[data.leg_flow[k]]), int(flows.targets[k])
        into, out = in_and_out(data, z)
        model.add_exactly_one(out.get(s, []))
        model.add_exactly_one(into.get(t, []))
        for p in (into.keys() | out.keys()) - {s, t}:
            model.add(sum(into.get(p, [])) == sum(out.get(p, [])))
            if len(into.get(p, [])) > 1:
                model.add_at_most_one(into[p])
        if data.problem.detour:
            model.add(sum(z.values()) <= int(data.longest[k]))


def trees_of_legs(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """A multicast flow takes the channels of its legs, and enters no core twice: ``x = max_k z``, ``sum_in x[p] <= 1``."""
    indptr = data.problem.flows.indptr
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            _union(model, tree, v.leg[int(indptr[f]) : int(indptr[f + 1])])
            for into in in_and_out(data, tree)[0].values():
                model.add_at_most_one(into)


def tables_of_keys(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """What one source core sends enters a core over one channel; what goes to one core leaves a core over one channel.

    ``y = max_f x``; form ``source``: ``sum_in y[p] <= 1`` and never back into the source; form ``destination``:
    ``sum_out y[p] <= 1``.
    """
    form = data.problem.form
    if form == "flow":
        return
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            _union(model, key, [v.tree[f] for f in flows])
        for side in in_and_out(data, key)[0 if form == "source" else 1].values():
            model.add_at_most_one(side)


def allowed_turns_only(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """What follows on a route must be in order: ``y[a] and y[b] => t[a,b]``; turning back and given prohibitions: never both.

    Keys enter (or leave) a core once, so that two of their channels that meet do follow each other.
    """
    for key in v.key:
        for ab, allowed in data.meeting(key):
            clause = [~key[ab[0]], ~key[ab[1]]]
            model.add_bool_or([*clause, _order(model, v, ab)] if allowed else clause)


def growing_numbers(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """Numbers grow along what is in order: ``t[a,b] => p[a] < p[b]``; straight on always where a turn set is chosen."""
    for a, b in data.required:
        model.add(v.number[a] < v.number[b])
    for (a, b), t in v.order.items():
        model.add(v.number[a] < v.number[b]).only_enforce_if(t)


def squares(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """Each way round a square of cores one of the four turns is prohibited: ``sum t <= 3`` (follows from the numbers)."""
    for ring in data.squares:
        model.add_bool_or([~v.order[ab] for ab in ring])


def table_limit(model: cp_model.CpModel, data: RouteData, v: Variables) -> None:
    """No core needs more table entries than there are: ``sum_i e[i,p] <= limit``, see :func:`table_entries`."""
    if data.problem.table_limit is not None:
        for used in table_entries(model, data, v).values():
            model.add(sum(used) <= data.problem.table_limit)


def table_entries(model: cp_model.CpModel, data: RouteData, v: Variables) -> dict[int, list[Any]]:
    """By core: terms that add up to its table entries, or more.

    Form ``destination``: ``sum_i sum_out y[i]``. Else ``e[i,p] >= |y[in d] - y[out d]|`` for every direction d (one entry unless
    the key passes straight in one piece), 1 where it starts or ends.
    """
    return table_terms(
        data, v.key, lambda i, p: model.new_bool_var(f"e[{i},{p}]"), lambda change, e: model.add(change <= e)
    )


RULES = (
    one_path_per_leg,
    trees_of_legs,
    tables_of_keys,
    allowed_turns_only,
    growing_numbers,
    squares,
    table_limit,
)


def measure(model: cp_model.CpModel, data: RouteData, v: Variables, name: str) -> Any:
    """The objective ``name`` in whole numbers, see :meth:`RouteData.scale`.

    ``max-link``: ``L >= sum_f rate[f] sum_v x[f, V l + v]`` for every link l; ``total-link``: the sum over links.
    """
    if name == "turns":
        return _prohibited(data, v)
    loads: dict[int, list[Any]] = {}
    for f, tree in enumerate(v.tree):
        for c, x in tree.items():
            loads.setdefault(c // data.problem.channels, []).append(int(data.rate[f]) * x)
    if name == "total-link":
        return sum(sum(terms) for terms in loads.values())
    top = model.new_int_var(0, int(data.rate.sum()), "max_link")
    for terms in loads.values():
        model.add(sum(terms) <= top)
    return top


def one_per_square(model: cp_model.CpModel, data: RouteData, v: Variables, goal: int) -> None:
    """With no more prohibited turns than squares, both ways round, every one has exactly one: ``sum t = 3``."""
    if goal == len(data.squares):
        for ring in data.squares:
            model.add_exactly_one([~v.order[ab] for ab in ring])


def missing_sum(model: cp_model.CpModel, stage: RoutingStage, data: RouteData, v: Variables) -> Any:
    """``sum_p m[p]`` with ``m[p] >= sum_i e[i,p] - entries``: table entries that are missing."""
    missing = []
    for p, used in table_entries(model, data, v).items():
        m = model.new_int_var(0, len(used), f"m[{p}]")
        model.add(sum(used) <= stage.entries + m)
        missing.append(m)
    return sum(missing)


def reward_ceiling(
    model: cp_model.CpModel, stage: RoutingStage, data: RouteData, v: Variables, most: float
) -> None:
    """``turns / channels <= ln(most / cc)``, that is ``q * turns <= p * channels`` with the fraction p/q of known counts."""
    from nmsolve.hw.reward import exchange_loss

    cc = exchange_loss(stage.problem.machine, stage.problem.flows)
    if not any(data.many) or cc <= 0:
        return
    ratio = Fraction(max(0.0, float(np.log(most / cc)))).limit_denominator(
        1 + sum(len(t) for t in data.trees)
    )
    model.add(ratio.denominator * _prohibited(data, v) <= ratio.numerator * _tree_channels(data, v))


def _prohibited(data: RouteData, v: Variables) -> Any:
    if data.problem.turns is not None:
        return data.problem.turns.prohibited(data.problem.machine)
    return len(data.turns) - sum(v.order[ab] for ab in data.turns)


def _tree_channels(data: RouteData, v: Variables) -> Any:
    return sum(sum(tree.values()) for tree, many in zip(v.tree, data.many, strict=True) if many)


def _union(model: cp_model.CpModel, whole: dict[int, Any], parts: Columns) -> None:
    """``whole[c]`` is true if and only if ``part[c]`` is for some part."""
    for c, w in whole.items():
        some = [part[c] for part in parts if c in part]
        for z in some:
            model.add_implication(z, w)
        model.add_bool_or([*some, ~w])


def _order(model: cp_model.CpModel, v: Variables, ab: tuple[int, int]) -> Any:
    """The literal that channels ``ab`` are in order, made at first need."""
    if ab not in v.order:
        v.order[ab] = model.new_bool_var(f"t[{ab[0]},{ab[1]}]")
    return v.order[ab]


def _hint(
    model: cp_model.CpModel, stage: RoutingStage, data: RouteData, v: Variables, start: IntArray | None
) -> None:  # fmt: skip
    """Hint every variable with a known solution."""
    if start is None:
        return
    routes, number = stage.unpack(start)
    taken = [set(routes.of(f).tolist()) for f in range(routes.count)]
    for f, tree in enumerate(v.tree):
        if data.many[f]:
            for c, x in tree.items():
                model.add_hint(x, c in taken[f])
    for k, z in enumerate(v.leg):
        path = _path_back(data, taken[int(data.leg_flow[k])], int(data.problem.flows.targets[k]))
        for c, x in z.items():
            model.add_hint(x, c in path)
    for flows, key in zip(data.members, v.key, strict=True):
        if len(flows) > 1:
            union = set().union(*(taken[f] for f in flows))
            for c, x in key.items():
                model.add_hint(x, c in union)
    rank = np.argsort(np.argsort(number[data.working], kind="stable"), kind="stable")
    for c, r in zip(data.working.tolist(), rank.tolist(), strict=True):
        model.add_hint(v.number[c], r)
    for (a, b), t in v.order.items():
        model.add_hint(t, bool(number[a] < number[b]))


def _path_back(data: RouteData, taken: set[int], target: int) -> set[int]:
    """The channels of a tree on the way to one target."""
    enters = {int(data.ends[c]): c for c in taken}
    path: set[int] = set()
    while target in enters and enters[target] not in path:
        path.add(enters[target])
        target = enters[target] // data.problem.channels // 4
    return path
