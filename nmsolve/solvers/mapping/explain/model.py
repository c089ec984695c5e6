"""A feasibility model over classes of nodes, with every limit behind a switch.

``y[k,p]`` nodes of class k are on core p, ``sum_p y[k,p] = count[k]``. What a core holds of resource r is
``sum_k size[k,r] y[k,p]``; where a class has nodes of different sizes, it is a variable between ``least[k,r] y[k,p]`` and
``most[k,r] y[k,p]``, and these add up to the class's total: a relaxation, whose infeasibility is still a proof.
With axon tables every node is a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nmsolve.heuristics.mapping.first_fit import first_mapping
from nmsolve.model import clock
from nmsolve.model.mapping.axons import AXONS_IN
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.axons import axon_data, axon_terms
from nmsolve.solvers.mapping.explain.classes import Classes, classes_of
from nmsolve.solvers.mapping.explain.limits import restricted
from nmsolve.solvers.search.conflict import Answer, Limit
from nmsolve.solvers.search.cpsat import decide, new_solver

#: Part of the time for a first mapping, where that takes more than a moment.
REPAIR_PART = 0.2
#: Most terms of the rows of axon tables; above, they are left out, and infeasibility without them is still a proof.
MOST_TERMS = 200_000


def has_mapping(
    problem: MappingProblem, limits: Sequence[Limit], seconds: float, seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> Answer[IntArray]:  # fmt: skip
    """Decide in about ``seconds`` (wall) whether a mapping (n,) obeys these limits of ``problem``.

    First fit is asked before CP-SAT, unless counting rules a mapping out: one found is an answer at any size.
    """
    alone = restricted(problem, limits)
    if not alone.machine.usable.any():
        return Answer("infeasible", None, tuple(x for x in limits if x.kind in ("faulty", "taken")))
    hopeless = bool(explain_misfit(alone))  # by counting; CP-SAT then says which limits it takes
    if not hopeless:
        merged = merge_together(alone)
        end = clock.now() + REPAIR_PART * seconds
        found = first_mapping(merged.reduced, seed, lambda: clock.now() >= end or should_stop())
        if found is not None and not check_mapping(alone, merged.lift(found)):
            return Answer("feasible", merged.lift(found))
    classes = classes_of(alone, alone.sizes, np.arange(alone.n)) if states_axons(alone) else None
    classes = classes or classes_of(
        alone, alone.sizes, None if alone.kinds is None else alone.kinds.of.astype(np.int64)
    )
    answer: Answer[IntArray] = Answer("unknown")
    if classes is not None and seconds > 0:
        answer = _solve(alone, limits, classes, clock.now() + seconds, seed, should_stop)
    return Answer("infeasible", None, tuple(limits)) if hopeless and not answer.needed else answer


def _solve(
    problem: MappingProblem, limits: Sequence[Limit], classes: Classes, end: float, seed: int,
    should_stop: Callable[[], bool],
) -> Answer[IntArray]:  # fmt: skip
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    switch = [model.new_bool_var(x.words) for x in limits]
    y = place_variables(model, classes, problem.cores)
    for x, on in zip(limits, switch, strict=True):
        add_limit(model, problem, classes, y, x, on)
    model.add_assumptions(switch)
    solver = new_solver(end - clock.now(), seed=seed)
    status = decide(solver, model, should_stop)
    if status == "INFEASIBLE":
        named = set(solver.sufficient_assumptions_for_infeasibility())
        return Answer(
            "infeasible", None, tuple(x for x, on in zip(limits, switch, strict=True) if on.index in named)
        )
    if status not in ("OPTIMAL", "FEASIBLE"):
        return Answer("unknown")
    core = classes.expand(values(solver, y))
    if check_mapping(
        problem, core
    ):  # sizes were forgotten, or a merged class was split in a way that does not fit
        return Answer("unknown")
    return Answer("feasible", core)


def place_variables(model: Any, classes: Classes, cores: int) -> list[list[Any]]:
    """Return ``y[k][p]`` with ``sum_p y[k][p] = count[k]``."""
    out = []
    for k, count in enumerate(classes.count.tolist()):
        row = [model.new_int_var(0, count, f"y[{k},{p}]") for p in range(cores)]
        model.add(_total(row) == count)
        out.append(row)
    return out


def values(solver: Any, y: list[list[Any]]) -> IntArray:
    """Return (k, P) int64 values of the place variables."""
    return np.array([[solver.value(v) for v in row] for row in y], np.int64)


def add_limit(
    model: Any, problem: MappingProblem, classes: Classes, y: list[list[Any]], limit: Limit, on: Any
) -> None:
    """State one limit, in force where the Boolean ``on`` is true."""
    machine = problem.machine
    if limit.kind in ("faulty", "taken"):
        shut = sorted(set(getattr(machine, f"{limit.kind}_cores")))
        model.add(_total([row[p] for row in y for p in shut]) == 0).only_enforce_if(on)
        return
    if limit.kind == "node limit":
        assert problem.node_limit is not None
        for p in range(problem.cores):
            model.add(_total([row[p] for row in y]) <= problem.node_limit).only_enforce_if(on)
        return
    if limit.kind == "kinds":
        _kinds(model, problem, classes, y, on)
        return
    if limit.kind == "capacity" and limit.name in problem.axon_limits:
        if len(classes.count) == problem.n and states_axons(problem):
            add_axons(model, problem, [y[k] for k in classes.of.tolist()], limit.name, on)
        return
    if limit.kind == "capacity":
        _capacity(model, problem, classes, y, limit.name, machine.limits(limit.name).tolist(), on)
        return
    if limit.kind == "slices":
        own = next(s for s in problem.slices if s.resource == f"neurons of {limit.name}")
        _capacity(model, problem, classes, y, own.resource, [own.most] * problem.cores, on)
        return
    assert limit.rule is not None
    nodes, cores = np.asarray(limit.rule.nodes, np.int64), set(limit.rule.cores)
    inside = np.unique(classes.of[nodes]).tolist()
    if limit.kind in ("pin", "region", "forbid"):
        shut = [p for p in range(problem.cores) if (p in cores) == (limit.kind == "forbid")]
        model.add(_total([y[k][p] for k in inside for p in shut]) == 0).only_enforce_if(on)
    elif limit.kind == "apart":
        for p in range(problem.cores):
            model.add(_total([y[k][p] for k in inside]) <= 1).only_enforce_if(on)
    else:
        here = [model.new_bool_var(f"together[{limit.name},{p}]") for p in range(problem.cores)]
        model.add_exactly_one(here)
        for k in inside:
            for p, b in enumerate(here):
                model.add(y[k][p] <= int(classes.count[k]) * b).only_enforce_if(on)


def _kinds(model: Any, problem: MappingProblem, classes: Classes, y: list[list[Any]], on: Any) -> None:
    """``has[k,p]`` is 1 if nodes of kind k are on core p; where ``on`` is true, ``sum_k has[k,p] <= K``."""
    sets, most = problem.kind_sets, problem.machine.kinds_per_core
    assert sets is not None and most is not None
    for p in range(problem.cores):
        has = [model.new_bool_var(f"has[{k},{p}]") for k in range(sets.number)]
        for row, count, u in zip(y, classes.count.tolist(), classes.first.tolist(), strict=True):
            for k in sets.of_set(int(sets.of[u])):
                model.add(row[p] <= count * has[k])
        model.add(_total(has) <= most).only_enforce_if(on)


def _capacity(
    model: Any, problem: MappingProblem, classes: Classes, y: list[list[Any]], name: str, room: list[int], on: Any
) -> None:  # fmt: skip
    """State that no core holds more of resource ``name`` than its ``room`` where ``on`` is true."""
    r = problem.resources.index(name)
    held: list[list[Any]] = [[] for _ in range(problem.cores)]
    for k, row in enumerate(y):
        least, most = int(classes.least[k, r]), int(classes.most[k, r])
        if least == most:
            for p, v in enumerate(row):
                held[p].append(least * v)
            continue
        total = int(classes.total[k, r])
        parts = [model.new_int_var(0, total, f"held[{k},{p},{name}]") for p in range(problem.cores)]
        model.add(_total(parts) == total)
        for p, part in enumerate(parts):
            model.add(part >= least * row[p])
            model.add(part <= most * row[p])
            held[p].append(part)
    for terms, limit in zip(held, room, strict=True):
        model.add(_total(terms) <= min(limit, int(classes.total[:, r].sum()))).only_enforce_if(on)


def states_axons(problem: MappingProblem) -> bool:
    """Return True if the model is to state axon tables, node by node: a limit could bind, and there are not too many rows."""
    return problem.axons is not None and axon_terms(problem) <= MOST_TERMS


def add_axons(model: Any, problem: MappingProblem, y: list[list[Any]], name: str, on: Any) -> None:
    """State limit ``name`` of the machine where ``on`` is true; ``y[u][p]`` is 1 if node u is on core p.

    ``reach[m,p] >= y[t,p]`` for the nodes t that message m reaches; incoming: ``sum_m reach[m,p] <= limit``; outgoing:
    ``sent[u,p] >= sum_{m from u} sum_q reach[m,q] - M_u (1 - y[u,p])`` and ``sum_u sent[u,p] <= limit``.
    """
    axons, cores = axon_data(problem), range(problem.cores)
    if axons is None:
        return
    limit = problem.axon_limits[name]
    reach = [[model.new_bool_var(f"{name}[{m},{p}]") for p in cores] for m in range(len(axons.messages))]
    for row, message in zip(reach, axons.messages, strict=True):
        for t in message.reaches:
            for p in cores:
                model.add(row[p] >= y[t][p])
    if name == AXONS_IN:
        for p in cores:
            model.add(_total([row[p] for row in reach]) <= limit).only_enforce_if(on)
        return
    sent = {}
    for u, most in axons.most_sent.items():
        entries = _total(
            [z for row, m in zip(reach, axons.messages, strict=True) if m.source == u for z in row]
        )
        sent[u] = [model.new_int_var(0, most, f"sent[{u},{p}]") for p in cores]
        for p in cores:
            model.add(sent[u][p] >= entries - most * (1 - y[u][p])).only_enforce_if(on)
    for p in cores:
        model.add(_total([row[p] for row in sent.values()]) <= limit).only_enforce_if(on)


def _total(terms: list[Any]) -> Any:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.sum(terms)
