"""Small random assignment problems, all their answers, and a context for engines that run alone."""

from __future__ import annotations

import itertools

import numpy as np
from search_fakes import TimedContext

from nmsolve.hw.assignment.evaluate import all_objectives, objective
from nmsolve.model.assignment.assignment import Assignment, assignment_complaint
from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units


def csr(rows):
    return np.cumsum([0, *map(len, rows)]).astype(np.int64), np.array([x for r in rows for x in r], np.int64)


def random_problem(
    seed,
    *,
    operators=5,
    objective="latency",
    limited=False,
    together=False,
    ceilings=(),
    channels=True,
    shared=False,
    tensors=None,
):
    """A problem with ``@in``, ``operators`` and ``@out`` on two or three units; deterministic by ``seed``.

    ``shared``: two units at one site. ``channels``: transfers between sites share one channel. ``limited``: memories hold about
    half of all bytes.
    """
    rng = np.random.default_rng(seed)
    count, units = operators + 2, 3 if shared else int(rng.integers(2, 4))
    sites = units - 1 if shared else units
    cost = rng.integers(1, 30, (count, units))
    cost[[0, -1]] = 0
    cost[[0, -1], 1:] = -1
    forbidden = rng.random((count, units)) < 0.15
    forbidden[:, 0] = False
    cost[forbidden] = -1
    energy = np.where(cost < 0, -1, rng.integers(0, 30, (count, units)))
    makers, users = [], []
    for i in range(count - 1):
        after = [k for k in range(i + 1, count) if rng.random() < 1.5 / (k - i + 1)]
        if after or i:
            makers.append(i)
            users.append(after or [count - 1])
    weights = [k for k in range(1, count - 1) if rng.random() < 0.4]
    makers += [0] * len(weights)
    users += [[k] for k in weights]
    kept = np.array([False] * (len(makers) - len(weights)) + [True] * len(weights), bool)
    number = len(makers)
    moved = rng.integers(0, 25, (2, number, sites, sites))
    moved[:, kept] = 0
    moved[:, :, np.arange(sites), np.arange(sites)] = 0
    indptr, targets = csr(users)
    source = np.array(makers, np.int64)
    size = rng.integers(1, 9, number)
    flows = Flows(
        tuple(f"t{t}" for t in range(number)), source, indptr, targets, np.where(kept, 0, source),
        targets.copy(), size, kept, moved[0], moved[1],
    )  # fmt: skip
    channel = np.where(np.eye(sites, dtype=bool), -1, 0 if channels else -1)
    room = np.full(sites, np.inf)
    if limited:
        room[:] = np.ceil(size.sum() * rng.uniform(0.4, 0.8, sites))
    site = np.minimum(np.arange(units), sites - 1)
    made = Units(
        tuple(f"u{j}" for j in range(units)), np.arange(units) == 0, site, np.arange(sites),
        tuple(f"m{m}" for m in range(sites)), room, channel, ("bus",) if channels else (),
    )  # fmt: skip
    mates = None
    if together:
        mates = np.full(count, -1)
        mates[rng.choice(np.arange(1, count - 1), 2, replace=False)] = 3
    return AssignProblem(
        f"random {seed}", tuple(f"o{i}" for i in range(count)), ("Op",) * count, np.zeros(count, bool), cost, energy,
        flows, groups_for(rng, cost, energy, makers, users), made, mates, objective, ceilings,
    )  # fmt: skip


def groups_for(rng, cost, energy, makers, users):
    """Chains of two or three operators whose inner results nobody else uses, with gains on some units."""
    count = len(cost)
    only: dict[int, set[int]] = {i: set() for i in range(count)}
    for i, some in zip(makers, users, strict=True):
        only[i] |= set(some)
    rows, time, power = [], [], []
    for i in range(1, count - 2):
        chain = [i]
        while len(chain) < 3 and len(only[chain[-1]]) == 1 and max(only[chain[-1]]) < count - 1:
            chain.append(max(only[chain[-1]]))
            if rng.random() < 0.7:
                able = (cost[chain] >= 0).all(axis=0)
                rows.append(list(chain))
                share = rng.random(len(able)) * able * (rng.random(len(able)) < 0.8)
                time.append((cost[chain].sum(axis=0) * share).astype(np.int64))
                power.append((energy[chain].sum(axis=0) * share / 2).astype(np.int64))
    indptr, members = csr(rows)
    shape = (len(rows), cost.shape[1])
    return Groups(
        indptr, members, np.array(time, np.int64).reshape(shape), np.array(power, np.int64).reshape(shape)
    )


def answers(problem):
    """All legal answers but for the order, within the ceilings."""
    ways = [np.flatnonzero(row >= 0).tolist() for row in problem.time]
    for unit in itertools.product(*ways):
        for fused in itertools.product([False, True], repeat=problem.groups.count):
            yield from _legal(problem, np.array(unit), np.array(fused, bool), np.arange(problem.count))


def _legal(problem, unit, fused, rank):
    answer = Assignment(unit, fused, rank)
    if assignment_complaint(problem, answer) is None:
        values = all_objectives(problem, answer) if problem.ceilings else {}
        if all(values[name] <= most for name, most in problem.ceilings):
            yield answer


def orders(problem):
    """All orders in which operators can run, as ranks."""
    before = [set() for _ in range(problem.count)]
    for t in range(problem.flows.count):
        for k in problem.flows.users(t).tolist():
            before[k].add(int(problem.flows.source[t]))

    def extend(done):
        if len(done) == problem.count:
            rank = np.empty(problem.count, np.int64)
            rank[done] = np.arange(problem.count)
            yield rank
        for i in range(problem.count):
            if i not in done and before[i] <= set(done):
                yield from extend([*done, i])

    return list(extend([]))


def optimum(problem):
    """The least value of the objective by trying everything, inf if there is no answer."""
    every = orders(problem) if problem.objective == "makespan" else [None]
    best = float("inf")
    for answer in answers(problem):
        for rank in every:
            one = answer if rank is None else Assignment(answer.unit, answer.fused, rank)
            best = min(best, objective(problem, one))
    return best


class Alone(TimedContext):
    """A context for one engine: keeps what it offers and proves; offers are judged by rules and evaluator."""

    def __init__(self, problem):
        super().__init__(seconds=120.0)
        self.problem, self.seed, self.refused = problem, 0, self.notes

    def should_stop(self):
        return super().should_stop() or self.low >= self.value

    def offer(self, solution, move=""):
        answer = Assignment.unpacked(self.problem, solution)
        complaint = assignment_complaint(self.problem, answer)
        values = {} if complaint else all_objectives(self.problem, answer)
        if complaint or any(values[name] > most for name, most in self.problem.ceilings):
            self.refused.append(complaint or "a ceiling")
            return False
        if values[self.problem.objective] < self.value:
            self.best, self.value = solution.copy(), float(values[self.problem.objective])
            return True
        return False


def run_alone(engine, problem):
    """Run an engine; return its context."""
    context = Alone(problem)
    engine.run(problem, context)
    return context
