"""Compile the kernels of schedules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nmsolve.heuristics.rng import new_rng
from nmsolve.heuristics.schedule.search import MANY
from nmsolve.heuristics.schedule.tabu import NOISE
from nmsolve.heuristics.schedule.tabu_blocks import new_work, shake
from nmsolve.heuristics.schedule.tabu_shop import construct, new_state, shop_of
from nmsolve.hw.schedule.simulator import noisy_runs, queues_of
from nmsolve.model.bound import Result
from nmsolve.model.schedule.build import bare_edges, no_items, plain_units, unit_sets
from nmsolve.model.schedule.generate import generate_problem
from nmsolve.model.schedule.problem import NEVER, Modes, Network, ScheduleProblem
from nmsolve.model.schedule.schedule import Schedule
from nmsolve.solvers.schedule.api import solve_schedule
from nmsolve.solvers.schedule.registry import REGISTRY

#: Seconds for one engine on one problem.
SECONDS = 0.15
#: And for one on this many processes that they are searched by windows.
MANY_SECONDS = 4.0


def warm_schedule(until_compiled: Callable[[Callable[[], object]], None]) -> list[str]:
    """Schedule small problems of every kind with every engine, and run the queues; returns what was done."""
    work: dict[str, Callable[[], object]] = {
        f"{name}, {label}": partial(solve_schedule, problem, time_limit=SECONDS, engines=[name])
        for name, entry in REGISTRY.items()
        for label, problem in _problems().items()
        if not entry.child and entry.make().refuses(problem) is None
    }
    work |= {"shakes": _shake, "queues": _queues}
    many = generate_problem(MANY // 8 + 1, 8, 16, seed=1).problem
    work["stretches"] = partial(solve_schedule, many, time_limit=MANY_SECONDS, engines=["schedule-search"])
    for run in work.values():
        until_compiled(run)
    return list(work)


def _problems() -> dict[str, ScheduleProblem]:
    """Return networks on units with memories and power states, a flexible job shop, a project with a resource."""
    networks = {
        name: generate_problem(2, 4, 4, seed=1, objective=name).problem for name in ("makespan", "energy")
    }
    return networks | {"job shop": _plain(units=2), "project": _plain(units=0)}


def _plain(units: int) -> ScheduleProblem:
    """Return two chains of three processes, each on any unit, or with needs of one resource."""
    count, ways = 6, max(1, units)
    made, zeros = plain_units([f"u{u}" for u in range(units)]), np.zeros(count, np.int64)
    every = np.arange(count * ways)
    modes = Modes(
        np.arange(count + 1) * ways, 2 + every * 5 % 4, every % ways if units else every * 0 - 1,
        np.ones((count * ways, 0 if units else 1), np.int64), every * 0, every * 0 - 1, every * 0,
    )  # fmt: skip
    resources = () if units else ("r",)
    return ScheduleProblem(
        "plain", tuple(f"p{p}" for p in range(count)), ("a",), zeros, zeros - 1, made,
        unit_sets([[u] for u in range(units)], made.hops, "plain"), modes, no_items(), bare_edges([0, 1, 3, 4], [1, 2, 4, 5]),
        Network(), resources, np.full(len(resources), 2), zeros, zeros + NEVER, zeros + NEVER, zeros,
    )  # fmt: skip


def _shake() -> None:
    """Change a schedule at random, which tabu search begins with after six long searches only."""
    problem, rng = _plain(units=2), new_rng(1)
    shop = shop_of(problem, problem.order)
    state = new_state(shop)
    construct(shop, state, rng, NOISE, False)
    shake(shop, state, new_work(shop), rng, 1)


def _queues() -> None:
    """Run the queues of one schedule."""
    problem = _problems()["energy"]
    found: Result[Schedule] = solve_schedule(problem, time_limit=SECONDS, engines=["m4"])
    if found.solution is not None:
        noisy_runs(problem, found.solution, queues_of(problem, found.solution), 0.1, 2)
