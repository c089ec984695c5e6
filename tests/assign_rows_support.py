"""Small random assignment problems, and layered ones of any size."""

from __future__ import annotations

import numpy as np

from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units


def random_units(rng: np.random.Generator, sites: int, units: int, memories: int = 1) -> Units:
    """Units of every site, the first a host; no memory has a limit."""
    site = np.concatenate([np.arange(sites), np.sort(rng.integers(sites, size=units - sites))])
    memory = np.concatenate([np.arange(memories), rng.integers(memories, size=sites - memories)])
    channel = np.arange(sites * sites).reshape(sites, sites)
    np.fill_diagonal(channel, -1)
    return Units(
        tuple(f"u{j}" for j in range(units)), np.arange(units) == 0, site, memory,
        tuple(f"m{m}" for m in range(memories)), np.full(memories, np.inf), channel,
        tuple(f"c{k}" for k in range(sites * sites)),
    )  # fmt: skip


def random_problem(
    seed: int,
    operators: int = 5,
    units: int = 2,
    sites: int = 2,
    *,
    memories: int = 0,
    groups: int = 0,
    together: bool = False,
    possible: float = 0.7,
    reach: int = 6,
    tensors: float = 1.5,
    most: int = 30,
    objective: str = "latency",
) -> AssignProblem:
    """Operators in a row that use tensors of up to ``reach`` before them, some of several users, some weights, some in loops.

    ``memories`` of them get limits between a half and all of what may be there (0: no limits); ``groups`` are tried.
    """
    rng = np.random.default_rng(seed)
    u = random_units(rng, sites, units, max(1, memories))
    time = rng.integers(0, most, (operators, units))
    energy = rng.integers(0, most, (operators, units))
    never = rng.random((operators, units)) > possible
    never[np.arange(operators), rng.integers(units, size=operators)] = False
    number = None
    if together and operators > 2:
        number = np.full(operators, -1)
        number[rng.choice(operators, 2, replace=False)] = 0
        never[number == 0] = never[number == 0].all(axis=0)
        never[np.ix_(number == 0, [0])] = False
    time[never] = energy[never] = -1
    flows = _flows(rng, operators, sites, int(tensors * operators), reach, most)
    limits = np.full(max(1, memories), np.inf)
    for m in range(memories):
        limits[m] = float(rng.integers(1, 2 + int(flows.bytes.sum())))
    u = Units(u.names, u.host, u.site, u.memory, u.memories, limits, u.channel, u.channels)
    return AssignProblem(
        f"random-{seed}", tuple(f"op{i}" for i in range(operators)), ("Op",) * operators,
        rng.random(operators) < 0.3, time, energy, flows, _groups(rng, time, energy, flows, groups), u, number, objective,
    )  # fmt: skip


def _flows(rng: np.random.Generator, operators: int, sites: int, count: int, reach: int, most: int) -> Flows:
    source, targets, until, since, kept = [], [], [], [], []
    for _ in range(count):
        i = int(rng.integers(operators))
        after = np.arange(i + 1, min(operators, i + 1 + reach))
        used = np.sort(rng.choice(after, min(len(after), int(rng.integers(1, 4))), replace=False))
        if i > 0 and rng.random() < 0.1:  # goes back in a loop
            used = np.concatenate([[int(rng.integers(i))], used])
        source.append(i)
        targets.append(used)
        until.append(np.minimum(operators - 1, used + rng.integers(0, 2, len(used))))
        since.append(int(rng.integers(max(0, i - 1), i + 1)))
        kept.append(bool(rng.random() < 0.2))
    indptr = np.concatenate([[0], np.cumsum([len(t) for t in targets])]).astype(np.int64)
    none = [np.zeros(0, np.int64)]
    moves = rng.integers(0, most, (2, count, sites, sites)) * (rng.random((2, count, 1, 1)) < 0.9)
    moves[:, :, np.arange(sites), np.arange(sites)] = 0
    return Flows(
        tuple(f"t{t}" for t in range(count)), np.array(source, np.int64), indptr,
        np.concatenate(targets + none).astype(np.int64), np.array(since, np.int64),
        np.concatenate(until + none).astype(np.int64), rng.integers(0, 9, count), np.array(kept, bool), moves[0], moves[1],
    )  # fmt: skip


def _groups(
    rng: np.random.Generator, time: np.ndarray, energy: np.ndarray, flows: Flows, tries: int
) -> Groups:
    found: set[tuple[int, ...]] = set()
    leads = [(int(flows.source[t]), flows.users(t)) for t in range(flows.count)]
    for _ in range(tries):
        size = int(rng.integers(2, 4))
        start = int(rng.integers(len(time)))
        own = tuple(sorted({start, *(start + rng.integers(1, 3, size - 1).cumsum()).tolist()}))
        inner = set(own[:-1])
        if own[-1] < len(time) and all(set(users.tolist()) <= set(own) for i, users in leads if i in inner):
            found.add(own)
    gains = np.zeros((2, len(found), time.shape[1]), np.int64)
    for k, own in enumerate(sorted(found)):
        for run, gain in ((time, gains[0]), (energy, gains[1])):
            part = run[list(own)]
            most = np.where((part >= 0).all(axis=0), part.sum(axis=0), 0)
            gain[k] = (most * rng.random(len(most))).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(g) for g in sorted(found)])]).astype(np.int64)
    return Groups(indptr, np.array([i for g in sorted(found) for i in g], np.int64), gains[0], gains[1])
