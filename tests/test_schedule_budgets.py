"""Nonrenewable resources: the modes chosen share budgets. Every engine and every bound against trying everything."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from schedule_exact_support import run_alone
from schedule_support import random_problem, random_schedule

from nmsolve.check.schedule.recheck import check_schedule_bound
from nmsolve.check.schedule.reevaluate import reevaluate
from nmsolve.heuristics.schedule.budgets import modes_within
from nmsolve.heuristics.schedule.rules import Heft, Peft
from nmsolve.heuristics.schedule.search import ScheduleSearch
from nmsolve.hw.schedule.faults import reschedule
from nmsolve.model.bound import Bound
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.schedule.build import bare_edges, no_items, plain_units, unit_sets
from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import NEVER, Modes, Network, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule.bounds import ScheduleCounting
from nmsolve.solvers.schedule.exact import ScheduleCpSat, ScheduleHighs
from nmsolve.solvers.schedule.limits import ScheduleLimits

#: Tiny problems that are tried completely.
TINY = 220


def tiny(seed: int, processes: int = 4, modes: int = 3, budgets: int = 2) -> ScheduleProblem:
    """A project of few activities: fast modes use much of the budgets, slow ones little; the budgets are tight or too small."""
    rng = np.random.default_rng(seed)
    first, span, demand, use = [0], [], [], []
    for _ in range(processes):
        for _ in range(int(rng.integers(1, modes + 1))):
            ticks = int(rng.integers(0 if rng.random() < 0.1 else 1, 6))
            span.append(ticks)
            demand.append(rng.integers(0, 3, 2))
            use.append([max(0, 6 - ticks + int(rng.integers(-2, 3))) for _ in range(budgets)])
        first.append(len(span))
    used = np.array(use, np.int64).reshape(-1, budgets)
    least = np.minimum.reduceat(used, first[:-1], axis=0).sum(axis=0)
    pairs = [(p, q) for q in range(processes) for p in range(q) if rng.random() < 0.3]
    none, nothing = np.zeros(len(span), np.int64), np.full(processes, NEVER)
    units = plain_units(())
    return ScheduleProblem(
        f"tiny {seed}", tuple(str(p) for p in range(processes)), (), nothing * 0 - 1, nothing * 0 - 1, units,
        unit_sets((), units.hops, ""), Modes(np.array(first), np.array(span), none - 1, np.array(demand), none, none - 1, none),
        no_items(), bare_edges([a for a, _ in pairs], [b for _, b in pairs]), Network(), ("r", "s"), np.array([2, 3]),
        nothing * 0, nothing, nothing, nothing * 0,
        budgets=Budgets(tuple("nmk"[:budgets]), np.maximum(0, least + rng.integers(-1, 5, budgets)), used),
    )  # fmt: skip


def best_of(problem: ScheduleProblem) -> float:
    """The least makespan by trying all modes within the budgets and all orders; inf where no modes keep them."""
    m, best = problem.modes, np.inf
    pairs = list(zip(problem.edges.source.tolist(), problem.edges.target.tolist(), strict=True))
    before = [[a for a, b in pairs if b == p] for p in range(problem.count)]
    for mode in itertools.product(*(range(m.first[p], m.first[p + 1]) for p in range(problem.count))):
        if (problem.budgets.use[list(mode)].sum(axis=0) > problem.budgets.amount).any():
            continue
        for order in itertools.permutations(range(problem.count)):
            end: dict[int, int] = {}
            used = np.zeros((64, 2), np.int64)
            for p in order:
                if any(q not in end for q in before[p]):
                    break
                span, need = int(m.span[mode[p]]), m.demand[mode[p]]
                t = max((end[q] for q in before[p]), default=0)
                while (used[t : t + span] + need > problem.capacity).any():
                    t += 1
                used[t : t + span] += need
                end[p] = t + span
            else:
                best = min(best, max(end.values()))
    return best


def least(problem: ScheduleProblem) -> np.ndarray:
    """What all processes take at least of every budget, each for itself."""
    return np.minimum.reduceat(problem.budgets.use, problem.modes.first[:-1], axis=0).sum(axis=0)


@cache
def tried() -> list[tuple[ScheduleProblem, float]]:
    """Tiny problems with their optima."""
    problems = [tiny(seed, budgets=1 + seed % 3) for seed in range(TINY)]
    return [(problem, best_of(problem)) for problem in problems]


def test_tiny_problems_are_of_both_kinds() -> None:
    """Some have an answer, some have none, and in some no budget alone shows that."""
    answered = [np.isfinite(best) for _, best in tried()]
    hidden = [p for p, best in tried() if np.isinf(best) and (least(p) <= p.budgets.amount).all()]
    assert 100 < sum(answered) < TINY - 50 and len(hidden) > 10


def test_counting_bounds_hold_and_are_recomputed() -> None:
    """Also: where no modes keep the budgets, prices or paths mostly prove it."""
    proved = 0
    for problem, best in tried():
        for bound in run_alone(ScheduleCounting(), problem).bounds:
            assert bound.value <= best, problem.name
            check = check_schedule_bound(problem, bound)
            assert check.ok, (problem.name, check.text)
            proved += np.isinf(bound.value)
    assert proved > 0.8 * sum(np.isinf(best) for _, best in tried())


def test_first_modes_keep_the_budgets_wherever_any_do() -> None:
    for problem, best in tried():
        mode = modes_within(problem, 10.0)
        assert (mode is not None) == np.isfinite(best), problem.name
        assert mode is None or (problem.budgets.spent(mode) <= problem.budgets.amount).all()


@pytest.mark.parametrize("engine", [Heft, Peft, ScheduleSearch], ids=lambda e: e.name)
def test_searches_offer_only_schedules_within_the_budgets(engine: type) -> None:
    """None is offered that a rule forbids, and one is offered wherever there is one."""
    for problem, best in tried()[:: 1 if engine in (Heft, Peft) else 12]:
        run = run_alone(engine(), problem, 0.3)
        assert not run.refused and run.value >= best, problem.name
        assert np.isfinite(run.value) == np.isfinite(best), problem.name


def test_the_search_finds_nearly_all_optima() -> None:
    some = [(p, best) for p, best in tried() if np.isfinite(best)][:20]
    hit = sum(run_alone(ScheduleSearch(), p, 0.3).value == best for p, best in some)
    assert hit >= 0.8 * len(some)


@pytest.mark.parametrize("engine", [ScheduleCpSat, ScheduleHighs], ids=lambda e: e.name)
def test_exact_models_prove_what_trying_everything_finds(engine: type) -> None:
    for problem, best in tried()[:: 8 if engine is ScheduleCpSat else 24]:
        run = run_alone(engine(), problem)
        assert run.value == best and run.low == best, problem.name


def test_both_checkers_see_a_budget_that_is_overdrawn() -> None:
    """Schedules of random networks with everything in them, of which budgets then allow a little less."""
    for seed in range(30):
        problem = random_problem(seed)
        rng = np.random.default_rng(seed)
        use = rng.integers(0, 9, (problem.modes.count, 2))
        answer = random_schedule(problem, seed)
        spent = use[answer.mode].sum(axis=0)
        enough = replace(problem, budgets=Budgets(("gold", "ink"), spent, use))
        assert schedule_complaint(enough, answer) is None and reevaluate(enough, answer).complaint is None
        assert reevaluate(enough, answer).spent == spent.tolist()
        short = replace(problem, budgets=Budgets(("gold", "ink"), np.maximum(0, spent - [0, 1]), use))
        if spent[1]:
            said = schedule_complaint(short, answer), reevaluate(short, answer).complaint
            assert all(text is not None and "'ink'" in text for text in said)


def test_the_hash_tells_budgets_apart_and_stays_without_them() -> None:
    problem = tiny(1)
    more = replace(problem, budgets=replace(problem.budgets, amount=problem.budgets.amount + 1))
    assert (
        len({problem.content_hash, more.content_hash, replace(problem, budgets=Budgets()).content_hash}) == 3
    )


def test_certificates_of_other_prices_prove_nothing() -> None:
    problem = next(p for p, best in tried() if np.isinf(best) and p.budgets.count == 2)
    fine = next(b for b in run_alone(ScheduleCounting(), problem).bounds if b.method == "budgets")
    assert check_schedule_bound(problem, fine).ok
    for prices in ([0, 0], [1], [1.5, 1], [-1, 1], "11", None):
        forged = Bound(np.inf, "budgets", certificate={"method": "budgets", "prices": prices})
        assert not check_schedule_bound(problem, forged).ok
    enough = replace(problem, budgets=replace(problem.budgets, amount=problem.budgets.amount + 99))
    assert not check_schedule_bound(enough, fine).ok


def test_explain_names_the_budget_that_is_too_small() -> None:
    problem = next(p for p, best in tried() if np.isinf(best) and p.budgets.count == 1)
    limits = ScheduleLimits(problem)
    budget = next(limit for limit in limits.every if limit.kind == "budget")
    assert limits.ask((budget,), 5.0, 0, lambda: False).status == "infeasible"
    assert limits.impossible((budget,), 5.0) and "'n'" in limits.reason((budget,))
    rest = tuple(limit for limit in limits.every if limit is not budget)
    assert limits.ask(rest, 30.0, 0, lambda: False).status == "feasible"


def test_what_a_dead_unit_wasted_is_gone() -> None:
    """A process that had begun on it takes its budget once more."""
    units, none = plain_units(("u", "v")), np.zeros(2, np.int64)
    problem = ScheduleProblem(
        "two ways", ("a",), (), none[:1] - 1, none[:1] - 1, units, unit_sets([(0,), (1,)], units.hops, ""),
        Modes(np.array([0, 2]), np.array([9, 9]), np.array([0, 1]), np.zeros((2, 0), np.int64), none, none - 1, none),
        no_items(), bare_edges([], []), Network(), (), none[:0], none[:1], none[:1] + NEVER, none[:1] + NEVER, none[:1],
        budgets=Budgets(("gas",), np.array([5]), np.array([[3], [2]])),
    )  # fmt: skip
    left = reschedule(problem, Schedule(none[:1], none[:1], none[:1] > 0), 4, [0])
    assert left.lost.all() and left.problem.budgets.amount.tolist() == [2]
    assert left.problem.budgets.use.tolist() == [[2]]
