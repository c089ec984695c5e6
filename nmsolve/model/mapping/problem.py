"""The mapping problem, frozen and solver-ready: node -> core under capacities and side constraints."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import MOST_CAPACITY, Machine
from nmsolve.model.mapping.axons import Axons, axon_limits, binding_axons
from nmsolve.model.mapping.constraints import KINDS, SideConstraint
from nmsolve.model.mapping.kinds import MOST_COUNTS, KindSets, single_kinds
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.objectives import OBJECTIVES, Objective
from nmsolve.model.mapping.reward_terms import PUBLISHED, RewardTerms
from nmsolve.model.mapping.slices import Slice, slices_of
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import AnyArray, BoolArray, Int32Array, IntArray, frozen, starts

#: Machine capacity: entries of every router's table (:mod:`nmsolve.hw.router_tables`), unless the graph has such a resource.
TABLE_ENTRIES = "table_entries"


@dataclass(frozen=True, eq=False)
class MappingProblem:
    """Put every node of ``graph`` on a core of ``machine``, least ``objective``.

    Partition, placement and the joint problem are all this problem (partition: objective ``cut`` or
    ``connectivity``; placement: capacity for one node per core).

    Attributes
    ----------
    graph, machine : what to map, and onto what
    objective : one of ``OBJECTIVES``
    constraints : side constraints
    node_limit : the most nodes any core may hold (``--balance``), or None; it is resource ``"nodes"`` in
        ``resources``, ``sizes`` and ``capacity``
    ceilings : (objective, value) pairs: a mapping must not exceed these values of other objectives
        (lexicographic runs and Pareto fronts)
    migration : how many nodes may be elsewhere than in a reference mapping (``--migration-budget``), or None
    inner : (rows,) bool, messages with a target that was merged with their source, or None: it still takes entries of
        their core's axon tables (:mod:`nmsolve.model.mapping.axons`)
    terms : weights of the terms of the objective ``reward``
    mixed : kinds of the nodes where some were merged and may be of several, or None: each has that of the graph
    turns : turns that routes may take (M1.9), None: any. The machine's own routes have to obey them (:mod:`nmsolve.hw.obey`)
    """

    graph: LogicGraph
    machine: Machine
    objective: str = "hops"
    constraints: tuple[SideConstraint, ...] = ()
    node_limit: int | None = None
    migration: Migration | None = None
    ceilings: tuple[tuple[str, float], ...] = ()
    inner: BoolArray | None = None
    terms: RewardTerms = PUBLISHED
    turns: TurnSet | None = None
    mixed: KindSets | None = None

    def __post_init__(self) -> None:
        for name in (self.objective, *(name for name, _ in self.ceilings)):
            if name not in OBJECTIVES:
                raise InputError(f"unknown objective {name!r}", "", "one of " + ", ".join(OBJECTIVES))
            if OBJECTIVES[name].links and self.machine.distance_matrix is not None:
                raise InputError(
                    f"objective {name} on a machine given by a distance matrix",
                    self.machine.name,
                    "a mesh: only meshes have links",
                )
        for name in (self.objective, *(name for name, _ in self.ceilings)) if self.ceilings else ():
            if OBJECTIVES[name].alone:
                raise InputError(
                    f"objective {name} with ceilings", self.graph.name, f"{name} as the only objective"
                )
        if self.node_limit is not None and "nodes" in self.graph.resources:
            raise InputError(
                "the graph has a resource called 'nodes'",
                self.graph.name,
                "another name (it means --balance)",
            )
        if self.turns is not None:
            self._check_turns(self.turns)
        for r, total in zip(
            self.graph.resources, self.graph.sizes.sum(axis=0, dtype=np.float64), strict=True
        ):
            if r in self.machine.capacity and not total * self.machine.size < MOST_CAPACITY:
                raise InputError(
                    f"the nodes need {total:.4g} {r} in all, on {self.machine.size} cores",
                    self.graph.name,
                    "a total below 2^62 over all cores, in a larger unit",
                )
        self._check_kinds()
        for c in self.constraints:
            if c.kind not in KINDS:
                raise InputError(
                    f"constraint {c.name!r} has kind {c.kind!r}", "", "one of " + ", ".join(KINDS)
                )
            for what, items, end in (("node", c.nodes, self.graph.n), ("core", c.cores, self.machine.size)):
                bad = [i for i in items if not 0 <= i < end]
                if bad:
                    raise InputError(f"constraint {c.name!r} names {what} {bad[0]}", "", f"0..{end - 1}")
        for s in self.slices:
            if not float(s.size.sum(dtype=np.float64)) * self.machine.size < MOST_CAPACITY:
                raise InputError(
                    f"too many {s.resource} on {self.machine.size} cores", self.graph.name, "below 2^62"
                )
        if self.migration is not None:
            reference, group = self.migration.reference, self.migration.group
            if len(reference) != len(group) or len(np.unique(group)) != self.graph.n:
                raise InputError(
                    f"the reference mapping has {len(reference)} nodes",
                    self.graph.name,
                    f"{self.graph.n} nodes",
                )
            if len(reference) and not 0 <= reference.min() <= reference.max() < self.machine.size:
                raise InputError(
                    "the reference mapping names a core that does not exist",
                    "",
                    f"0..{self.machine.size - 1}",
                )

    def _check_kinds(self) -> None:
        sets, most = self.kind_sets, self.machine.kinds_per_core
        if most is not None and sets is not None and sets.number * self.cores > MOST_COUNTS:
            raise InputError(
                f"{sets.number} kinds of nodes on {self.cores} cores, with a limit of {most} kinds per core",
                self.graph.name,
                f"at most {MOST_COUNTS // self.cores} kinds",
            )

    def _check_turns(self, turns: TurnSet) -> None:
        if self.machine.distance_matrix is not None:
            raise InputError(
                "prohibited turns on a machine given by a distance matrix", self.machine.name, "a mesh"
            )
        if len(turns.allowed) != self.machine.size:
            raise InputError(
                f"turns for {len(turns.allowed)} cores", self.machine.name, f"{self.machine.size} cores"
            )

    @property
    def aim(self) -> Objective:
        """What the objective is."""
        return OBJECTIVES[self.objective]

    @property
    def uses_nets(self) -> bool:
        """True if the objective charges messages by their route tree instead of edge by edge."""
        return self.aim.reach or (self.aim.charges == "trees" and bool(self.graph.multicast.any()))

    @property
    def uses_links(self) -> bool:
        """True if the objective is neither a sum over pairs nor one over messages: the hottest link's load, and M1's reward,
        which looks at the links of all multicast trees together and at the larger of what a core exchanges to either side."""
        return bool(self.aim.formula)

    @property
    def times_steps(self) -> bool:
        """True if the time of a step is the objective, a part of it, or has a ceiling."""
        return any(
            OBJECTIVES[name].charges in ("time", "power") for name in (self.objective, *dict(self.ceilings))
        )

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.graph.n

    @property
    def cores(self) -> int:
        """Number of cores, usable or not."""
        return self.machine.size

    @cached_property
    def slices(self) -> tuple[Slice, ...]:
        """What the constraints of kind ``slices`` limit, each a resource of its own."""
        return slices_of(self.graph, self.constraints)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Names of the resources that are limited here: those the machine limits and the graph states, then those of slices."""
        limited = tuple(r for r in self.graph.resources if r in self.machine.capacity)
        own = tuple(s.resource for s in self.slices)
        return limited + (("nodes",) if self.node_limit is not None else ()) + own

    @cached_property
    def sizes(self) -> IntArray:
        """(n, R) int64: what every node takes of every limited resource."""
        graph = self.graph
        columns = [graph.sizes[:, graph.resources.index(r)] for r in self.resources if r in graph.resources]
        if self.node_limit is not None:
            columns.append(np.ones(self.n, np.int64))
        columns += [s.size for s in self.slices]
        stacked = np.stack(columns, axis=1) if columns else np.zeros((self.n, 0), np.int64)
        out: IntArray = frozen(np.ascontiguousarray(stacked))
        return out

    @cached_property
    def capacity(self) -> IntArray:
        """(cores, R) int64: what every core holds, no more than all nodes need; all 0 on cores that are faulty or taken."""
        cap = np.zeros((self.cores, len(self.resources)), np.int64)
        own = {s.resource: s.most for s in self.slices}
        for r, (name, total) in enumerate(zip(self.resources, self.sizes.sum(axis=0).tolist(), strict=True)):
            cap[:, r] = total
            if name in self.graph.resources:
                cap[:, r] = np.minimum(self.machine.limits(name), total)
            elif name in own:
                cap[:, r] = min(own[name], total)
            elif self.node_limit is not None:
                cap[:, r] = min(self.node_limit, total)
        cap[~self.machine.usable] = 0
        out: IntArray = frozen(cap)
        return out

    @cached_property
    def alike(self) -> bool:
        """True if all usable cores hold the same."""
        cap = self.capacity[self.machine.usable]
        return bool((cap == cap[:1]).all())

    @cached_property
    def _domains(self) -> tuple[Int32Array, BoolArray]:
        masks = [self.machine.usable.copy()]
        row_of = {masks[0].tobytes(): 0}
        domain = np.zeros(self.n, np.int32)
        for c in self.constraints:
            if c.kind not in ("pin", "region", "forbid"):
                continue
            named = np.zeros(self.cores, bool)
            named[list(c.cores)] = True
            nodes = np.asarray(c.nodes, np.int64)
            before = domain[nodes]
            for row in np.unique(before).tolist():
                mask = masks[row] & (~named if c.kind == "forbid" else named)
                new = row_of.setdefault(mask.tobytes(), len(masks))
                if new == len(masks):
                    masks.append(mask)
                domain[nodes[before == row]] = new
        if self.one_per_core and not self.alike:
            domain = self._large_enough(masks, domain)
        used = np.union1d([0], domain)  # steps on the way to an intersection are dropped
        return frozen(np.searchsorted(used, domain).astype(np.int32)), frozen(np.stack(masks)[used])

    def _large_enough(self, masks: list[BoolArray], domain: Int32Array) -> Int32Array:
        """Return every node's domain without the cores that are too small for it; adds to ``masks``.

        Where a core holds one node, what is left of capacities is in the domains, for engines that only permute nodes.
        """
        kind = np.column_stack([domain, self.sizes])
        kinds, kind_of = np.unique(kind, axis=0, return_inverse=True)
        row_of = {mask.tobytes(): i for i, mask in enumerate(masks)}
        rows = np.empty(len(kinds), np.int32)
        for i, (row, *size) in enumerate(kinds.tolist()):
            mask = masks[row] & (self.capacity >= size).all(axis=1)
            rows[i] = row_of.setdefault(mask.tobytes(), len(masks))
            if rows[i] == len(masks):
                masks.append(mask)
        return rows[kind_of.ravel()]

    @property
    def domain_of(self) -> Int32Array:
        """(n,) int32: row of ``domains`` that applies to each node; row 0 is "any usable core"."""
        return self._domains[0]

    @property
    def domains(self) -> BoolArray:
        """(D, cores) bool: the distinct sets of cores that nodes are allowed on (usable cores only, and where cores are
        unlike and hold one node each, only those that are large enough)."""
        return self._domains[1]

    @cached_property
    def free_nodes(self) -> int:
        """Nodes that may be on more than one core."""
        return int((self.domains.sum(axis=1)[self.domain_of] != 1).sum())

    @cached_property
    def apart(self) -> tuple[IntArray, Int32Array]:
        """CSR ``(indptr, indices)`` over nodes: who may not share a core with whom (symmetric, sorted)."""
        pairs = {
            (u, v) for c in self.constraints if c.kind == "apart" for u in c.nodes for v in c.nodes if u != v
        }
        src = np.asarray(sorted(pairs), np.int64).reshape(-1, 2)
        indptr = starts(np.bincount(src[:, 0], minlength=self.n))
        return frozen(indptr), frozen(src[:, 1].astype(np.int32))

    @cached_property
    def group_of(self) -> IntArray:
        """(n,) int64: group of every node; nodes joined by ``together`` share one, in order of first node."""
        if all(c.kind != "together" for c in self.constraints):
            single: IntArray = frozen(np.arange(self.n))
            return single
        parent = list(range(self.n))

        def root(u: int) -> int:
            while parent[u] != u:
                parent[u] = parent[parent[u]]
                u = parent[u]
            return u

        for c in self.constraints:
            if c.kind == "together":
                for v in c.nodes[1:]:
                    a, b = root(c.nodes[0]), root(v)
                    parent[max(a, b)] = min(a, b)
        roots = np.fromiter((root(u) for u in range(self.n)), np.int64, self.n)
        out: AnyArray = np.unique(roots, return_inverse=True)[1].astype(np.int64)
        return frozen(out)

    @cached_property
    def one_per_core(self) -> bool:
        """True if no core can hold two nodes (the placement problem, a quadratic assignment problem)."""
        if not self.resources or self.n < 2:
            return False
        smallest_two = np.sort(self.sizes, axis=0)[:2].sum(axis=0)
        return bool((smallest_two > self.capacity.max(axis=0)).any())

    @cached_property
    def axons(self) -> Axons | None:
        """Limits on axon tables that a mapping within all capacities could break, or None."""
        return binding_axons(self.graph, self.machine, self.sizes, self.capacity, self.inner)

    @cached_property
    def kinds(self) -> KindSets | None:
        """Kinds of the nodes where a mapping within all capacities could break the machine's limit on them, else None."""
        sets, most = self.kind_sets, self.machine.kinds_per_core
        if sets is None or most is None or sets.number <= most:
            return None
        return None if self.one_per_core and sets.largest <= most else sets

    @property
    def kind_sets(self) -> KindSets | None:
        """Kinds of the nodes, None where the graph does not say."""
        given = self.graph.kinds
        return single_kinds(given) if given is not None else self.mixed

    @property
    def axon_limits(self) -> dict[str, int]:
        """Stated limits on axon tables, binding or not (:func:`nmsolve.model.mapping.axons.axon_limits`)."""
        return axon_limits(self.graph, self.machine)

    @property
    def table_limit(self) -> int | None:
        """Most entries of any router's table (machine capacity ``table_entries``) if a mapping could need more, or None.

        A message takes at most one entry of a router, so a limit of as many entries as there are messages cannot bind. InputError
        where routers differ in a limit that can bind.
        """
        machine = self.machine
        if TABLE_ENTRIES not in machine.capacity or TABLE_ENTRIES in self.graph.resources:
            return None
        room = machine.limits(TABLE_ENTRIES)
        limit = int(room.min())
        if self.graph.rows <= limit or machine.distance_matrix is not None:
            return None
        if room.max() > limit:
            raise InputError(
                f"routers differ in {TABLE_ENTRIES}: one has {limit}, and one could need {self.graph.rows}",
                machine.name,
                "routers' tables of one size, or a limit that cannot bind",
            )
        return limit

    @property
    def limits_moves(self) -> bool:
        """True if a migration budget forbids mappings that all other rules allow."""
        return self.migration is not None and self.migration.binding

    @cached_property
    def hash(self) -> str:
        """Content hash (hex, 16 digits)."""
        parts: tuple[object, ...] = (
            self.graph.hash, self.machine.hash, self.objective, self.constraints, self.node_limit,
        )  # fmt: skip
        if self.migration is not None:
            parts += self.migration.key
        if self.ceilings:
            parts += (self.ceilings,)
        if self.slices:
            parts += ("slices", tuple(s.most for s in self.slices))
        if self.inner is not None:
            parts += (self.inner.tobytes(),)
        if self.terms != PUBLISHED:
            parts += self.terms.key
        if self.mixed is not None:
            parts += ("mixed", self.mixed.key)
        if self.turns is not None:
            parts += ("turns", self.turns.allowed.tobytes())
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def default_node_limit(graph: LogicGraph, machine: Machine, balance: float | None) -> int | None:
    """Return the node capacity of ``--balance``: ``ceil((1 + balance) * n / usable cores)``.

    Returns None where graph or machine name a capacity that binds and no balance was asked for. Without
    ``--balance``, as many cores as nodes mean one node per core, otherwise a balance of 0.03.

    Raises
    ------
    InputError : the balance is not a number >= 0 or gives cores more nodes than can be counted, or no core is usable
    """
    if balance is not None and not 0 <= balance < np.inf:
        raise InputError(f"balance is {balance}", "", "a number >= 0")
    named = any(r in machine.capacity for r in graph.resources)
    if balance is None and named:
        return None
    usable = int(machine.usable.sum())
    if usable == 0:
        raise InputError("no core is usable", machine.name, "at least one healthy, free core")
    if balance is None:
        balance = 0.0 if graph.n <= usable else 0.03
    # The small margin keeps 1.03 * 100 / 1 at 103 despite binary fractions.
    room = (1 + balance) * graph.n / usable
    if not room < 2**53:
        raise InputError(
            f"balance {balance:g} gives every core room for {room:.3g} nodes", "--balance", "a smaller number"
        )
    return max(1, int(np.ceil(room - 1e-9)))


def tell_unicast(names: Iterable[str], graph: LogicGraph) -> None:
    """Warn of objectives that count less where nodes multicast, on a graph where none with several targets does."""
    found = [name for name in dict.fromkeys(names) if OBJECTIVES[name].charges in ("trees", "power", "time")]
    if not graph.directed:  # its edges do not say who sends: nothing but this objective is about multicast
        found = [name for name in found if name == "multicast-hops"]
    several = np.ones(graph.rows, bool) if graph.on_disk else np.diff(graph.indptr) > 1
    if found and several.any() and not graph.multicast[several].any():
        doubtful(
            f"{found[0]} counts every edge as one message: no node with several targets multicasts", graph.name,
            "--multicast, or a graph that says which nodes do",
        )  # fmt: skip
