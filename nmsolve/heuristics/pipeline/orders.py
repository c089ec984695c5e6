"""Search over topological orders: the best plan along an order is exact and quick, so only the order is left to find.

Biased random keys (Goncalves and Resende 2011): an individual gives every layer a key, its order always takes the ready layer
with the smallest key. Children take each key from an elite parent more often than from any other. That is how Archer et al.
("Practical Performance Guarantees for Pipelined DNN Inference", ICML 2024) cut graphs; here the best plan is also improved by
moves of single layers (:mod:`.moves`) every few generations, and goes back among the keys.
"""

from __future__ import annotations

import numpy as np

from nmsolve.heuristics.pipeline.chain import ChainPartition
from nmsolve.heuristics.pipeline.local import polish
from nmsolve.model.compiled import kernel, plain
from nmsolve.model.engine import Context
from nmsolve.model.features import at_most
from nmsolve.model.pipeline.features import takes
from nmsolve.model.pipeline.merged import Merged, merge
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem
from nmsolve.model.types import FloatArray, IntArray

#: Individuals; how many are elite and how many fresh in a generation; chance that a child takes a key of its elite parent.
SIZE, ELITE, FRESH, BIAS = 60, 12, 9, 0.7
#: Generations between two improvements by moves, and without a better plan before the search ends.
POLISH, IDLE = 5, 60
#: Layers, once merged, whose tables of all runs (8 L^2 bytes, twice) are too large.
MOST = 6000


class Orders:
    """Biased random keys over topological orders, with the exact partition along each."""

    name = "orders"
    finds = "mappings"
    refuses = takes("-chain", at_most(MOST, lambda problem: problem.count, "layers"))

    def run(self, problem: PipelineProblem, context: Context) -> None:
        """Generations until time is up or nothing has come of the last ``IDLE``; better plans are offered as they come."""
        order = problem if problem.split == "contiguous" else _with_order(problem)
        Breeding(problem, merge(order), context).run()


def _with_order(problem: PipelineProblem) -> PipelineProblem:
    """The same problem with an order of stages, which plans of any split may keep; as it was if that forces layers together."""
    from dataclasses import replace

    ordered = replace(problem, split="contiguous")
    same = merge(ordered).problem.count == merge(problem).problem.count
    return ordered if same else problem


class Breeding:
    """One population."""

    def __init__(self, problem: PipelineProblem, merged: Merged, context: Context) -> None:
        self.problem, self.merged, self.context = problem, merged, context
        self.chain = ChainPartition(merged.problem)
        self.rng = np.random.default_rng(context.seed)
        count = merged.problem.count
        self._waits = np.bincount(merged.after, minlength=count)
        self._start = np.searchsorted(merged.before, np.arange(count + 1))
        self.keys = np.zeros((0, count))
        self.values = np.zeros(0)
        self._seen: dict[int, float] = {}
        self.best: PipelinePlan | None = None
        self.value = np.inf

    def run(self) -> None:
        """All generations."""
        count = self.merged.problem.count
        first = [self.as_keys(np.arange(count)), self.as_keys(self.deep_order())]
        known, _ = self.context.incumbent()
        if known is not None:
            plan = PipelinePlan.unpacked(self.problem, known)
            first.append(self.plan_keys(self.merged.lower(plan)))
        self.add(np.array(first))
        if len(self.merged.before) == count - 1 and (self.merged.after - self.merged.before == 1).all():
            return  # one order only
        self.add(self.rng.random((SIZE - len(first), count)))
        idle, generation = 0, 0
        while idle < IDLE and not self.context.should_stop():
            before = self.value
            if generation % POLISH == 0 and self.best is not None:
                self.improve()
            self.breed()
            generation += 1
            idle = 0 if self.value < before else idle + 1

    def add(self, keys: FloatArray) -> None:
        """Judge new individuals and keep the best ``SIZE`` of all."""
        values = np.array([self.judge(k) for k in keys])
        keys, values = np.concatenate([self.keys, keys]), np.concatenate([self.values, values])
        by = np.argsort(values, kind="stable")[:SIZE]
        self.keys, self.values = keys[by], values[by]

    def judge(self, keys: FloatArray) -> float:
        """The value of the best plan along the order of the keys; inf if none or once time is up."""
        if self.context.should_stop():
            return np.inf
        order = ready_order(keys, self._waits, self._start, self.merged.after)
        name = hash(order.tobytes())
        if name in self._seen:
            return self._seen[name]
        plan, value = self.chain.in_order(order)
        self._seen[name] = value
        if plan is not None:
            self.take(plan, value, "order")
        return value

    def take(self, plan: PipelinePlan, value: float, move: str) -> None:
        """Offer a plan of the merged problem if it is the best so far."""
        if value < self.value:
            self.best, self.value = plan, value
            self.context.offer(self.merged.lift(plan).packed(self.problem), move)

    def breed(self) -> None:
        """A generation: the elite stays, the others are children and fresh individuals."""
        rng, size, count = self.rng, len(self.keys), self.keys.shape[1]
        elite = min(ELITE, size)
        children = SIZE - elite - FRESH
        mother = self.keys[rng.integers(0, elite, children)]
        father = self.keys[rng.integers(0, size, children)]
        born = np.where(rng.random((children, count)) < BIAS, mother, father)
        self.keys, self.values = self.keys[:elite], self.values[:elite]
        self.add(np.concatenate([born, rng.random((FRESH, count))]))

    def improve(self) -> None:
        """Move single layers in the best plan; the plan found is an individual, too."""
        assert self.best is not None
        plan = polish(self.merged, self.best, self.context, self.rng)
        self.add(np.array([self.plan_keys(plan)]))

    def plan_keys(self, plan: PipelinePlan) -> FloatArray:
        """Keys whose order goes through the stages of a plan one by one."""
        return self.as_keys(np.argsort(plan.stage, kind="stable"))

    @staticmethod
    def as_keys(order: IntArray) -> FloatArray:
        """Keys with this order, if it is a topological one."""
        keys = np.empty(len(order))
        keys[order] = (np.arange(len(order)) + 0.5) / len(order)
        return keys

    def deep_order(self) -> IntArray:
        """The order that follows each branch to its end before the next."""
        return np.asarray(depth_first(self._waits, self._start, self.merged.after))


@kernel
def ready_order(keys: FloatArray, waits: IntArray, start: IntArray, after: IntArray) -> IntArray:
    """(L,) the topological order that always takes the ready layer with the smallest key. ``waits``: predecessors per layer;
    ``after[start[u]:start[u + 1]]``: successors of u."""
    count = len(keys)
    left, heap, size = waits.copy(), np.empty(count, np.int64), 0
    order = np.empty(count, np.int64)
    for u in range(count):
        if left[u] == 0:
            size = _push(heap, size, u, keys)
    for done in range(count):
        u = heap[0]
        size = _pop(heap, size, keys)
        order[done] = u
        for e in range(start[u], start[u + 1]):
            v = after[e]
            left[v] -= 1
            if left[v] == 0:
                size = _push(heap, size, v, keys)
    return order


@plain
def _push(heap: IntArray, size: int, item: int, keys: FloatArray) -> int:
    k = size
    while k > 0 and keys[heap[(k - 1) // 2]] > keys[item]:
        heap[k] = heap[(k - 1) // 2]
        k = (k - 1) // 2
    heap[k] = item
    return size + 1


@plain
def _pop(heap: IntArray, size: int, keys: FloatArray) -> int:
    size -= 1
    item, k = heap[size], 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[item]:
            break
        heap[k] = heap[child]
        k = child
    heap[k] = item
    return size


@kernel
def depth_first(waits: IntArray, start: IntArray, after: IntArray) -> IntArray:
    """(L,) the topological order that takes the layer that became ready last."""
    count = len(waits)
    left, stack, size = waits.copy(), np.empty(count, np.int64), 0
    order = np.empty(count, np.int64)
    for u in range(count - 1, -1, -1):
        if left[u] == 0:
            stack[size] = u
            size += 1
    for done in range(count):
        size -= 1
        u = stack[size]
        order[done] = u
        for e in range(start[u + 1] - 1, start[u] - 1, -1):
            v = after[e]
            left[v] -= 1
            if left[v] == 0:
                stack[size] = v
                size += 1
    return order
