"""What both exact models are made of: items that stay whole, tensors between items, slots for stages.

Two reductions are applied, and :meth:`PipelineData.plan` undoes them. Layers that every plan keeps together are one item
(:func:`nmsolve.model.pipeline.merged.merge`). With a known plan of value T only better ones are of interest, and in those a
tensor whose cut would load a stage with T or more is not cut: its ends are one item too (:func:`join`). A model made with T
proves ``min(optimum of the model, T)``.

Both rules of joining ask what a group must pay that holds one end of a tensor and not the other. If that is the value or
more, and the end cannot be on a host instead, no better plan parts the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nmsolve.model.pipeline.merged import Merged, merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import AnyArray, BoolArray, FloatArray, IntArray
from nmsolve.solvers.pipeline.bounds import cheapest_company

#: Most minimum cuts in one round of joining (about a millisecond each with some hundred layers), and most layers for any.
CUTS, MOST = 2000, 1500


def join(problem: PipelineProblem, below: float) -> Merged:
    """Join the ends of tensors that no plan with a value under ``below`` parts, again and again until nothing changes.

    ``problem`` has no ``together`` and asks for no order. How many stages there must be is not looked at: fewer layers than
    stages are not a mistake here.
    """
    merged = merge(replace(problem, exact_stages=False))
    while True:
        small = merged.problem
        source, user = small.tensors.pairs
        stays = heavy(small, below)
        if not stays.any():
            stays = never_cut(small, below)
        if not stays.any():
            return merged
        again = merge(replace(small, together=_components(small.count, source[stays], user[stays])))
        merged = replace(again, group=again.group[merged.group])


def heavy(problem: PipelineProblem, below: float) -> BoolArray:
    """(E,) uses that cost a group ``below`` or more alone: the time of an end on the largest group, and that of the tensor."""
    tensors, time, host = problem.tensors, _least(problem), _host(problem)
    cost = np.repeat(tensors.time, np.diff(tensors.indptr))
    out = np.zeros(len(cost), bool)
    for end in tensors.pairs:
        pays = np.maximum(time[end], cost) if problem.overlap else time[end] + cost
        out |= (pays >= below) & (host[end] >= below)
    return out


def never_cut(problem: PipelineProblem, below: float) -> BoolArray:
    """Return (E,) uses for which every group with one end and without the other costs ``below`` or more (:func:`apart`)."""
    source, user = problem.tensors.pairs
    out = np.zeros(len(source), bool)
    if problem.overlap or problem.count > MOST:
        return out
    alone = _least(problem)
    np.add.at(alone, source, np.repeat(problem.tensors.time, np.diff(problem.tensors.indptr)))
    np.add.at(alone, user, np.repeat(problem.tensors.time, np.diff(problem.tensors.indptr)))
    may = (alone >= below) & (_host(problem) >= below)  # alone in a group it costs no more than this
    left = CUTS
    for k in np.flatnonzero(may[source] | may[user]).tolist():
        for a, b in ((int(source[k]), int(user[k])), (int(user[k]), int(source[k]))):
            if may[a] and not out[k] and left:
                left -= 1
                out[k] = cheapest_company(problem, a, b) >= below
    return out


def _least(problem: PipelineProblem) -> FloatArray:
    """Return (L,) time of layers on the largest group; a copy."""
    return np.array(problem.time[:, problem.largest_group - 1])


def _host(problem: PipelineProblem) -> FloatArray:
    """Return (L,) time of layers on a host, inf where none can take them."""
    if problem.host_time is None or not problem.hosts:
        return np.full(problem.count, np.inf)
    return problem.host_time


def _components(count: int, u: IntArray, v: IntArray) -> IntArray:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(u)), (u, v)), shape=(count, count))
    label: IntArray = connected_components(graph, directed=False)[1].astype(np.int64)
    return label


#: A mode of a slot that is not a number of cores.
HOST = 0
#: The mode of a slot that holds nothing.
UNUSED = -1


@dataclass(frozen=True, eq=False)
class PipelineData:
    """A pipeline problem in terms of I items and their tensors.

    Attributes
    ----------
    item : (L,) item of every layer; items are numbered by falling time, so that the largest come first
    time : (I, C) time on groups of 1 to C cores; ``host`` : (I,) time on a host, inf where it cannot run
    storage : (I,) what items need of memory
    source, users, cost : of every tensor that takes time: its item, the other items that use it, the time to send it
    uses : (E, 2) items whose stages must be in order: the first no later than the second
    modes : for each slot what it may be: numbers of cores, or ``HOST``
    """

    problem: PipelineProblem
    item: IntArray
    time: FloatArray
    host: FloatArray
    storage: FloatArray
    source: tuple[int, ...]
    users: tuple[tuple[int, ...], ...]
    cost: FloatArray
    uses: IntArray
    modes: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """I."""
        return len(self.storage)

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self.modes)

    @property
    def size(self) -> int:
        """Variables of a model, about."""
        return self.count * sum(len(some) for some in self.modes) + len(self.source) * self.slots

    @property
    def ordered(self) -> bool:
        """True if the order of slots means something."""
        return self.problem.split != "any"

    @property
    def optional(self) -> bool:
        """True if it matters how many slots are used."""
        problem = self.problem
        return problem.exact_stages or problem.use_all or self.slots > problem.stages

    @property
    def groups(self) -> list[int]:
        """Slots that cannot be hosts."""
        return [s for s, some in enumerate(self.modes) if HOST not in some]

    @cached_property
    def names(self) -> list[tuple[int, ...]]:
        """Modes of every slot, ``UNUSED`` among them where the number of stages or cores depends on it."""
        return [(*m, UNUSED) if self.optional or len(m) > 1 else m for m in self.modes]

    @cached_property
    def area(self) -> FloatArray:
        """(I,) least core time of every item: ``min_c c * time[i, c]``."""
        out: FloatArray = (self.time * np.arange(1, self.time.shape[1] + 1)).min(axis=1)
        return out

    @property
    def most_cores(self) -> int:
        """Most cores that all slots that are not hosts can have."""
        return min(self.problem.cores, len(self.groups) * int(self.time.shape[1]))

    @cached_property
    def largest(self) -> IntArray:
        """(I,) items by falling time on the largest group."""
        out: IntArray = np.argsort(-self.time[:, -1], kind="mergesort")
        return out

    def covers(self, least: AnyArray, most: float) -> list[tuple[int, int]]:
        """Return ``(n, k)``: of the n largest items no more than k fit into a group whose load is at most ``most``.

        Cover inequalities from times ``least`` (I,); of those with one k only that with the most items.
        """
        times, out = least[self.largest], dict[int, int]()
        for n in range(2, int((times > 0).sum()) + 1):
            fits = int((np.cumsum(times[:n][::-1]) <= most).sum())
            if fits < n:
                out[fits] = n
        return [(n, k) for k, n in out.items()]

    def plan(self, slot: IntArray, mode: IntArray) -> PipelinePlan:
        """Return the plan with item i in slot ``slot[i]`` (items,) of mode ``mode[slot[i]]``; empty slots are left out."""
        used, stage = np.unique(slot[self.item], return_inverse=True)
        return PipelinePlan(stage.astype(np.int64), np.asarray(mode, np.int64)[used])

    def slots_of(self, plan: PipelinePlan) -> tuple[IntArray, IntArray] | None:
        """Return (I,) slot of every item and (slots,) modes, as :meth:`plan` would read them; None if the plan splits an item.

        Where slots are alike their order is the one in which items first come; unused slots have mode ``UNUSED``.
        """
        stage = np.full(self.count, -1, np.int64)
        stage[self.item] = plan.stage
        if (stage[self.item] != plan.stage).any() or len(plan.cores) > self.slots:
            return None
        mode = np.full(self.slots, UNUSED, np.int64)
        if self.ordered:
            mode[: len(plan.cores)] = plan.cores
            return stage, mode
        place: dict[int, int] = {}
        for s in stage.tolist():
            if s not in place:
                fits = (k for k, some in enumerate(self.modes) if plan.cores[s] in some and mode[k] == UNUSED)
                place[s] = next(fits)
                mode[place[s]] = plan.cores[s]
        return np.array([place[s] for s in stage.tolist()], np.int64), mode


def pipeline_data(problem: PipelineProblem, below: float = np.inf) -> PipelineData:
    """Return the data of the models; with ``below``, only for plans of a lower value."""
    merged = merge(problem)
    small, group = merged.problem, merged.group
    if problem.split == "any" and np.isfinite(below):
        merged = join(small, below)
        small, group = merged.problem, merged.group[group]
    order = np.argsort(-small.time[:, 0], kind="mergesort")
    rank = np.empty(small.count, np.int64)
    rank[order] = np.arange(small.count)
    host = np.full(small.count, np.inf) if not problem.hosts or small.host_time is None else small.host_time
    tensors = small.tensors
    taking = np.flatnonzero(tensors.time > 0)
    users = [rank[tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]]] for t in taking.tolist()]
    uses = np.stack([rank[merged.before], rank[merged.after]], axis=1)
    return PipelineData(
        problem=problem,
        item=rank[group],
        time=small.time[order, : problem.largest_group],
        host=host[order],
        storage=small.storage[order],
        source=tuple(rank[tensors.source[taking]].tolist()),
        users=tuple(tuple(sorted(some.tolist())) for some in users),
        cost=tensors.time[taking],
        uses=uses,
        modes=_modes(problem, host),
    )


def _modes(problem: PipelineProblem, host: FloatArray) -> tuple[tuple[int, ...], ...]:
    """Groups first, then hosts, where the order is free; else every slot may be anything."""
    groups = tuple(range(1, problem.largest_group + 1))
    hosts = problem.hosts if np.isfinite(host).any() else 0
    if problem.split != "any":
        return ((*groups, HOST) if hosts else groups,) * min(problem.slots, problem.cores + hosts)
    return (groups,) * min(problem.slots, problem.cores) + ((HOST,),) * min(hosts, problem.slots)
