"""Random scheduling problems with every feature, and random legal schedules of them."""

from __future__ import annotations

import numpy as np

from nmsolve.model.schedule.check import schedule_complaint
from nmsolve.model.schedule.problem import (
    NEVER,
    Edges,
    Items,
    Modes,
    Network,
    ScheduleProblem,
    Units,
    UnitSets,
)
from nmsolve.model.schedule.schedule import Schedule


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def random_problem(
    seed: int,
    processes: int = 6,
    units: int = 3,
    resources: int = 1,
    objective: str = "makespan",
    **changed: object,
) -> ScheduleProblem:
    """Chains of two networks and edges across; up to three modes each on one or two units, some without; few bytes of memory."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 4, (units, 2))
    hops = np.abs(at[:, None] - at[None]).sum(axis=2)
    np.fill_diagonal(hops, 0)
    chosen = sorted(
        {
            tuple(sorted(rng.choice(units, rng.integers(1, min(units, 2) + 1), replace=False).tolist()))
            for _ in range(5)
        }
    )
    apart = np.array(
        [[0 if set(a) & set(b) else min(hops[u, v] for u in a for v in b) for b in chosen] for a in chosen]
    )
    members = np.array([u for s in chosen for u in s], np.int64)
    sets = UnitSets(np.cumsum([0, *map(len, chosen)]).astype(np.int64), members, apart.astype(np.int64))
    first, kind = [0], []
    items: dict[tuple[int, int], int] = {}
    for _ in range(processes):
        weights = int(rng.integers(-1, 3))
        own = rng.choice(len(chosen), rng.integers(1, min(3, len(chosen)) + 1), replace=False).tolist()
        if rng.random() < 0.15:
            own = [-1]
        for k in own:
            item = -1 if weights < 0 or k < 0 else items.setdefault((weights, k), len(items))
            kind.append((int(rng.integers(1, 6)), k, item, int(rng.integers(0, 4)), int(rng.integers(0, 30))))
        first.append(len(kind))
    span, unit_set, item, working, energy = (np.array(column, np.int64) for column in zip(*kind, strict=True))
    demand = rng.integers(0, 3, (len(kind), resources))
    bytes_ = np.array([int(w) * 2 + 3 for w, _ in items], np.int64)
    least = int((working + np.where(item >= 0, np.append(bytes_, 0)[item], 0)).max(initial=0))
    pairs = [(p, q) for q in range(processes) for p in range(q) if rng.random() < 1.5 / processes]
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    never = np.full(processes, NEVER)
    fields: dict[str, object] = {
        "name": f"random {seed}",
        "labels": tuple(f"{'ab'[p % 2]}/{p}" for p in range(processes)),
        "tasks": ("a", "b"),
        "task": np.arange(processes) % 2,
        "partner": np.full(processes, -1),
        "units": Units(
            tuple(f"u{u}" for u in range(units)), rng.integers(least, least + 6, units), hops, rng.integers(0, 4, units),
            rng.integers(0, 2, units), rng.integers(0, 3, units), rng.integers(0, 3, units), rng.integers(0, 12, units),
        ),
        "sets": sets,
        "modes": Modes(np.array(first), span, unit_set, demand, energy, item, working),
        "items": Items(
            tuple(f"w{w}@{k}" for w, k in items), np.array([k for _, k in items], np.int64), bytes_,
            np.array([w + 1 for w, _ in items], np.int64), np.array([3 * w for w, _ in items], np.int64),
        ),
        "edges": Edges(edges[:, 0], edges[:, 1], rng.integers(0, 6, len(edges)), rng.integers(0, 2, len(edges))),
        "network": Network(int(rng.integers(0, 3)), int(rng.integers(0, 4)), int(rng.integers(0, 3))),
        "resources": tuple(f"r{r}" for r in range(resources)),
        "capacity": rng.integers(2, 5, resources),
        "release": np.where(rng.random(processes) < 0.2, rng.integers(0, 8, processes), 0),
        "deadline": never.copy(),
        "due": rng.integers(2, 20, processes),
        "weight": rng.integers(0, 3, processes),
        "objective": objective,
        "ready": np.where(rng.random(processes) < 0.1, rng.integers(0, 8, processes), 0),
    }  # fmt: skip
    return ScheduleProblem(**{**fields, **changed})  # type: ignore[arg-type]


def random_schedule(problem: ScheduleProblem, seed: int) -> Schedule:
    """Return a legal schedule, one process after the other in random modes; items stay by chance."""
    rng = np.random.default_rng(seed)
    m, now = problem.modes, 0
    mode, start, loaded = (
        np.zeros(problem.count, np.int64),
        np.zeros(problem.count, np.int64),
        np.zeros(problem.count, bool),
    )
    for p in problem.order.tolist():
        mode[p] = rng.integers(m.first[p], m.first[p + 1])
        item = int(m.item[mode[p]])
        load = 0 if item < 0 else int(problem.items.load[item])
        indptr, into = problem.before
        ready = max(max(now, int(problem.earliest[p])) + load, int(problem.release[p]))
        for e in into[indptr[p] : indptr[p + 1]].tolist():
            s = int(problem.edges.source[e])
            ready = max(ready, int(start[s] + m.span[mode[s]] + problem.delay(e, mode[s], mode[p])))
        start[p], loaded[p] = ready + int(rng.integers(0, 4)), item >= 0
        now = int(start[p] + m.span[mode[p]])
    answer = Schedule(mode, start, loaded)
    for p in rng.permutation(problem.count).tolist():
        fewer = loaded.copy()
        fewer[p] = False
        if rng.random() < 0.7 and schedule_complaint(problem, Schedule(mode, start, fewer)) is None:
            loaded[p] = False
    # close some of the gaps that loads have left
    for p in np.argsort(start, kind="stable").tolist():
        for _ in range(int(rng.integers(0, 8))):
            start[p] -= 1
            if schedule_complaint(problem, answer) is not None:
                start[p] += 1
                break
    return answer
