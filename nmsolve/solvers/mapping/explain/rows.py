"""Every kind of limit (:mod:`nmsolve.model.mapping.limits`) in a feasibility model over classes of nodes.

``y[k,p]`` nodes of class k are on core p, ``sum_p y[k,p] = count[k]``. A function states one limit, in force where a Boolean is
true.

Nodes that no limit distinguishes are one class, and counted: this keeps a model of many nodes small.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.limit import Limit
from nmsolve.model.lookup import named
from nmsolve.model.mapping.axons import AXONS_IN
from nmsolve.model.mapping.broken import CORES_OF
from nmsolve.model.mapping.limits import LIMITS
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.exact.axons import axon_data, axon_terms

#: Most variables "nodes of this class on this core". Beyond it classes forget sizes, then nothing is modelled.
MOST_PLACES = 200_000


@dataclass(frozen=True, eq=False)
class Classes:
    """A partition of the nodes.

    Attributes
    ----------
    of : (n,) int64 class of every node
    count : (k,) int64 nodes in each class
    first : (k,) int64 a node of each class
    least, most, total : (k, R) int64 smallest and largest size in the class, and the sum, per resource
    """

    of: IntArray
    count: IntArray
    first: IntArray
    least: IntArray
    most: IntArray
    total: IntArray

    @property
    def alike(self) -> bool:
        """True if the nodes of every class have the same sizes: a model of counts then says everything."""
        return bool((self.least == self.most).all())

    def expand(self, placed: IntArray) -> IntArray:
        """Return (n,) core of every node, from the number of nodes (k, P) of every class on every core."""
        core = np.empty(len(self.of), np.int64)
        by_class = np.argsort(self.of, kind="stable")
        k, p = np.nonzero(placed)
        core[by_class] = np.repeat(p, placed[k, p])
        return core


def classes_of(problem: MappingProblem, sizes: IntArray, tag: IntArray | None = None) -> Classes | None:
    """Return the classes of a problem, or None if there are too many for a model.

    Parameters
    ----------
    sizes : (n, R) what nodes take of the resources that matter
    tag : (n,) whole numbers; nodes with different ones are never of one class
    """
    mark = np.zeros(problem.n, np.int64) if tag is None else np.unique(tag, return_inverse=True)[1]
    for c in problem.constraints:
        nodes = np.unique(np.asarray(c.nodes, np.int64))
        if len(nodes):
            mark[nodes] = mark.max() + 1 + np.unique(mark[nodes], return_inverse=True)[1]
    for key in (np.column_stack([mark, sizes]), mark[:, None]):
        of = np.unique(key, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
        k = int(of.max()) + 1
        if k * problem.cores <= MOST_PLACES:
            return _summed(of, k, sizes)
    return None


def _summed(of: IntArray, k: int, sizes: IntArray) -> Classes:
    least = np.full((k, sizes.shape[1]), np.iinfo(np.int64).max)
    most, total = np.zeros((k, sizes.shape[1]), np.int64), np.zeros((k, sizes.shape[1]), np.int64)
    np.minimum.at(least, of, sizes)
    np.maximum.at(most, of, sizes)
    np.add.at(total, of, sizes)
    first = np.unique(of, return_index=True)[1].astype(np.int64)
    return Classes(of, np.bincount(of, minlength=k), first, least, most, total)


#: Most terms of the rows of axon tables and of routers' tables; above, they are left out, and infeasibility without them is
#: still a proof.
MOST_TERMS = 200_000


class Places(NamedTuple):
    """A model of ``problem`` with its variables ``y[k][p]``."""

    model: Any
    problem: MappingProblem
    classes: Classes
    y: list[list[Any]]

    @property
    def by_node(self) -> list[list[Any]] | None:
        """Variables by node and core, each 0 or 1; None where classes hold several nodes."""
        own = len(self.classes.count) == self.problem.n
        return [self.y[k] for k in self.classes.of.tolist()] if own else None

    def values(self, solver: Any) -> IntArray:
        """Return (k, P) int64 values of the variables."""
        return np.array([[solver.value(v) for v in row] for row in self.y], np.int64)


def place_variables(model: Any, problem: MappingProblem, classes: Classes) -> Places:
    """Return the model with ``y[k][p]``, ``sum_p y[k][p] = count[k]``."""
    out = []
    for k, count in enumerate(classes.count.tolist()):
        row = [model.new_int_var(0, count, f"y[{k},{p}]") for p in range(problem.cores)]
        model.add(_total(row) == count)
        out.append(row)
    return Places(model, problem, classes, out)


def add_limits(places: Places, limits: dict[Limit, Any]) -> None:
    """State every limit that is a key, in force where its Boolean is true."""
    for kind in LIMITS:
        for limit in kind.stated(places.problem):
            if limit in limits:
                named(kind.rows)(places, limit, limits[limit])


def shut_cores(places: Places, limit: Limit, on: Any) -> None:
    """No node is on a core that is faulty, taken or cut off: ``sum y[k,p] = 0``."""
    _keep_off(places, range(len(places.y)), getattr(places.problem.machine, CORES_OF[limit.kind]), on)


def allowed(places: Places, limit: Limit, on: Any) -> None:
    """Pinned, confined and forbidden nodes are where they may be: ``sum y[k,p] = 0`` over the other cores."""
    cores, inside = set(limit.rule.cores), _classes(places, limit)
    shut = [p for p in range(places.problem.cores) if (p in cores) == (limit.kind == "forbid")]
    _keep_off(places, inside, shut, on)


def _keep_off(places: Places, classes: Any, cores: Any, on: Any) -> None:
    there = [places.y[k][p] for k in classes for p in sorted(set(cores))]
    places.model.add(_total(there) == 0).only_enforce_if(on)


def apart(places: Places, limit: Limit, on: Any) -> None:
    """A core holds one of the nodes at most."""
    inside = _classes(places, limit)
    for p in range(places.problem.cores):
        places.model.add(_total([places.y[k][p] for k in inside]) <= 1).only_enforce_if(on)


def together(places: Places, limit: Limit, on: Any) -> None:
    """The nodes share a core: ``here[p]`` is 1 for it, ``y[k,p] <= count[k] here[p]``."""
    model = places.model
    here = [model.new_bool_var(f"together[{limit.name},{p}]") for p in range(places.problem.cores)]
    model.add_exactly_one(here)
    for k in _classes(places, limit):
        for p, b in enumerate(here):
            model.add(places.y[k][p] <= int(places.classes.count[k]) * b).only_enforce_if(on)


def node_limit(places: Places, limit: Limit, on: Any) -> None:
    """A core holds the node limit at most."""
    most = places.problem.node_limit
    for p in range(places.problem.cores):
        places.model.add(_total([row[p] for row in places.y]) <= most).only_enforce_if(on)


def kinds(places: Places, limit: Limit, on: Any) -> None:
    """``has[k,p]`` is 1 if nodes of kind k are on core p: ``sum_k has[k,p]`` is the limit of kinds at most."""
    model, problem, classes = places.model, places.problem, places.classes
    sets, most = problem.kind_sets, problem.machine.kinds_per_core
    assert sets is not None and most is not None
    for p in range(problem.cores):
        has = [model.new_bool_var(f"has[{k},{p}]") for k in range(sets.number)]
        for row, count, u in zip(places.y, classes.count.tolist(), classes.first.tolist(), strict=True):
            for k in sets.of_set(int(sets.of[u])):
                model.add(row[p] <= count * has[k])
        model.add(_total(has) <= most).only_enforce_if(on)


def capacity(places: Places, limit: Limit, on: Any) -> None:
    """A core holds no more of the resource than it has room for."""
    _hold(places, limit.name, places.problem.machine.limits(limit.name).tolist(), on)


def slices(places: Places, limit: Limit, on: Any) -> None:
    """A core holds no more neurons of the nodes than the constraint allows."""
    own = next(s for s in places.problem.slices if s.resource == f"neurons of {limit.name}")
    _hold(places, own.resource, [own.most] * places.problem.cores, on)


def _hold(places: Places, name: str, room: list[int], on: Any) -> None:
    """State that no core holds more of resource ``name`` than its ``room``."""
    model, problem, classes = places.model, places.problem, places.classes
    r = problem.resources.index(name)
    held: list[list[Any]] = [[] for _ in range(problem.cores)]
    for k, row in enumerate(places.y):
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


def by_node(problem: MappingProblem) -> bool:
    """Return True if the model needs a class for every node: tables could bind, and their rows are not too many."""
    return states_axons(problem) or states_tables(problem)


def states_axons(problem: MappingProblem) -> bool:
    """Return True if axon tables could bind and the model can state them."""
    return problem.axons is not None and axon_terms(problem) <= MOST_TERMS


def states_tables(problem: MappingProblem) -> bool:
    """Return True if routers' tables could bind and the model can state them."""
    ends = int(problem.graph.indptr[-1]) if problem.table_limit is not None else 0
    return problem.table_limit is not None and 2 * ends * problem.cores <= MOST_TERMS


def axons(places: Places, limit: Limit, on: Any) -> None:
    """State a limit on axon tables, where every node is a class.

    ``reach[m,p] >= y[t,p]`` for the nodes t that message m reaches; incoming: ``sum_m reach[m,p] <= limit``; outgoing:
    ``sent[u,p] >= sum_{m from u} sum_q reach[m,q] - M_u (1 - y[u,p])`` and ``sum_u sent[u,p] <= limit``.
    """
    model, problem, y, name = places.model, places.problem, places.by_node, limit.name
    data, cores = axon_data(problem), range(problem.cores)
    if data is None or y is None or not states_axons(problem):
        return
    most_entries = problem.axon_limits[name]
    reach = [[model.new_bool_var(f"{name}[{m},{p}]") for p in cores] for m in range(len(data.messages))]
    for row, message in zip(reach, data.messages, strict=True):
        for t in message.reaches:
            for p in cores:
                model.add(row[p] >= y[t][p])
    if name == AXONS_IN:
        for p in cores:
            model.add(_total([row[p] for row in reach]) <= most_entries).only_enforce_if(on)
        return
    sent = {}
    for u, most in data.most_sent.items():
        entries = _total(
            [z for row, m in zip(reach, data.messages, strict=True) if m.source == u for z in row]
        )
        sent[u] = [model.new_int_var(0, most, f"sent[{u},{p}]") for p in cores]
        for p in cores:
            model.add(sent[u][p] >= entries - most * (1 - y[u][p])).only_enforce_if(on)
    for p in cores:
        model.add(_total([row[p] for row in sent.values()]) <= most_entries).only_enforce_if(on)


def tables(places: Places, limit: Limit, on: Any) -> None:
    """State of routers' tables what every route needs: an entry where a message starts, and one where it ends.

    ``entry[m,p] >= y[s,p] - y[t,p]`` and ``entry[m,p] >= y[t,p] - y[s,p]`` for message m from s to t, ``sum_m entry[m,p] <=
    limit``. Entries where messages turn or branch are left out: see :func:`forbid_tables`.
    """
    model, problem, y = places.model, places.problem, places.by_node
    if y is None or not states_tables(problem):
        return
    graph, cores = problem.graph, range(problem.cores)
    rows = []
    for m, (first, last) in enumerate(pairwise(graph.indptr.tolist())):
        s = y[int(graph.source[m])]
        entry = [model.new_bool_var(f"entry[{m},{p}]") for p in cores]
        for t in set(graph.targets[first:last].tolist()):
            for p in cores:
                model.add(entry[p] >= s[p] - y[t][p])
                model.add(entry[p] >= y[t][p] - s[p])
        rows.append(entry)
    for p in cores:
        model.add(_total([row[p] for row in rows]) <= problem.table_limit).only_enforce_if(on)


def forbid_tables(places: Places, core: IntArray, on: Any) -> None:
    """Forbid what overfills a router under the mapping ``core`` (n,): the cores of all nodes of limit + 1 of its messages."""
    problem, y = places.problem, places.by_node
    assert y is not None and problem.table_limit is not None
    marks = named("hw.router_tables:routers_of_messages")(problem.graph, problem.machine, core)
    used = marks.sum(axis=0)
    for p in np.flatnonzero(used > problem.table_limit).tolist():
        nodes: set[int] = set()
        for m in np.flatnonzero(marks[:, p])[: problem.table_limit + 1].tolist():
            nodes |= {int(problem.graph.source[m])}
            nodes |= set(problem.graph.targets[slice(*problem.graph.indptr[m : m + 2])].tolist())
        places.model.add(_total([y[u][core[u]] for u in nodes]) <= len(nodes) - 1).only_enforce_if(on)


def _classes(places: Places, limit: Limit) -> list[int]:
    """Return the classes of a constraint's nodes."""
    out: list[int] = np.unique(places.classes.of[np.asarray(limit.rule.nodes, np.int64)]).tolist()
    return out


def _total(terms: list[Any]) -> Any:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.sum(terms)
