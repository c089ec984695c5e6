"""An assignment as a cost network, stated once more for :mod:`.dual` and :mod:`.tree`: plain Python, nothing of the engines'
reduction.

Certificates name nodes and strategies by number, so both have to number them alike:

* operators, those of one ``together`` number as one, by their first member; strategies are units, ascending, without those for
  which another unit of the same site stands;
* presence (tensor, site), absent or there, by tensor and site: where two or more may ask for a tensor and none has to be;
* fusion (group, unit), apart or fused, by group and unit: of groups that share operators or have three or more;
* residency (memory, tensor), absent or held until one of its ends, by memory and tensor: where two or more may keep it.

Whatever the operators choose within the rules, the other nodes have strategies so that the network costs no more than the
objective and no memory overflows. So the network's least cost is a lower bound, whatever it is called with.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import numpy as np

from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.errors import CertificateError
from nmsolve.model.types import IntArray

Table = list[list[int]]


def classes_of(together: IntArray | None, count: int) -> list[list[int]]:
    """Return the operators (``count`` of them), those with one ``together`` number >= 0 as one, by their first member."""
    found: dict[tuple[bool, int], list[int]] = {}
    for i, number in enumerate([-1] * count if together is None else together.tolist()):
        found.setdefault((number >= 0, number if number >= 0 else i), []).append(i)
    return list(found.values())


def network_of(problem: AssignProblem) -> CostNetwork:
    """Return the network of an assignment whose objective is a sum.

    Raises
    ------
    CertificateError : operators that must share a unit cannot
    """
    return Statement(problem).network()


class Statement:
    """Costs by node, tables by pair of nodes, demands by node and strategy, as they are stated.

    Attributes
    ----------
    node : of every operator
    able, unit, at : by node of operators, all units that can run them, those that are strategies, and the sites of these
    users : of every tensor
    presence : the node, by maker and users of tensors and the site
    residency : the node, by memory and tensor
    demand : node, strategy, first position, position after the last, bytes, memory
    """

    def __init__(self, problem: AssignProblem) -> None:
        self.problem = problem
        energy, flows, units = problem.objective == "energy", problem.flows, problem.units
        self.run: Table = (problem.energy if energy else problem.time).tolist()
        self.gain: Table = (problem.groups.energy if energy else problem.groups.time).tolist()
        self.move: list[Table] = (flows.energy if energy else flows.time).tolist()
        self.site, self.memory = units.site.tolist(), units.memory.tolist()
        self.users = [flows.users(t).tolist() for t in range(flows.count)]
        self.members = [problem.groups.of(k).tolist() for k in range(problem.groups.count)]
        self.useful = [k for k, row in enumerate(self.gain) if any(row)]
        self.constant = 0
        self.tables: list[tuple[int, int, Table]] = []
        self.demand: list[tuple[int, int, int, int, int, int]] = []
        self.presence: dict[tuple[tuple[int, ...], int], int] = {}
        self.residency: dict[tuple[int, int], int] = {}
        self._operators()
        self._transfers()
        self._fusion()
        for m, room in enumerate(units.capacity.tolist()):
            if room < float("inf"):
                self._memory(m, room)

    def network(self) -> CostNetwork:
        """Return what was stated."""
        ptr = [0, *accumulate(len(own) for own in self.cost)]
        lengths = [0, *accumulate(len(rows) * len(rows[0]) for _, _, rows in self.tables)]
        whole = [(ptr[node] + s, *rest) for node, s, *rest in self.demand]
        return CostNetwork(
            self.problem.name, np.array(ptr), np.array([c for own in self.cost for c in own], np.int64),
            np.array([(u, v) for u, v, _ in self.tables], np.int64).reshape(-1, 2), np.array(lengths),
            np.array([x for _, _, rows in self.tables for row in rows for x in row], np.int64),
            np.array(whole, np.int64).reshape(-1, 5), self.problem.units.capacity, self.constant,
        )  # fmt: skip

    def _node(self, cost: list[int]) -> int:
        """Add a node; its number."""
        self.cost.append(cost)
        return len(self.cost) - 1

    # -- operators --------------------------------------------------------------------------------------------

    def _operators(self) -> None:
        """State the nodes of operators, and the units that each chooses from."""
        self.own = classes_of(self.problem.together, self.problem.count)
        self.node = [0] * self.problem.count
        for n, own in enumerate(self.own):
            for i in own:
                self.node[i] = n
        every = range(self.problem.units.count)
        self.able = able = [[j for j in every if all(self.run[i][j] >= 0 for i in own)] for own in self.own]
        if not all(able):
            raise CertificateError("no unit can run operators that must share one")
        price = [
            {j: sum(self.run[i][j] for i in own) for j in units}
            for own, units in zip(self.own, able, strict=True)
        ]
        gone = self._left_out(price)
        self.unit = [[j for j in units if (n, j) not in gone] for n, units in enumerate(able)]
        self.cost = [[price[n][j] for j in units] for n, units in enumerate(self.unit)]
        self.at = [[self.site[j] for j in units] for units in self.unit]

    def _left_out(self, price: list[dict[int, int]]) -> set[tuple[int, int]]:
        """Return nodes with units for which another one of the site stands: no dearer there, nor for any that fusion joins to
        the node, and no group gains less. All of those go from the one unit to the other at once."""
        gone = set[tuple[int, int]]()
        at_site = [[j for j, s in enumerate(self.site) if s == place] for place in sorted(set(self.site))]
        for nodes, groups in self._joined():
            for units in at_site:
                stays = list(units)
                for j in reversed(units):
                    for i in units:
                        better = all(
                            price[n].get(i, FORBIDDEN) <= price[n].get(j, FORBIDDEN) for n in nodes
                        ) and all(self.gain[k][i] >= self.gain[k][j] for k in groups)
                        if i != j and i in stays and better:
                            stays.remove(j)
                            break
                gone |= {(n, j) for n in nodes for j in units if j not in stays}
        return gone

    def _joined(self) -> list[tuple[set[int], list[int]]]:
        """Return sets of nodes that groups join, directly or by way of others, with these groups; most are single nodes."""
        sets: dict[int, tuple[set[int], list[int]]] = {n: ({n}, []) for n in range(len(self.own))}
        for k in self.useful:
            touched = {id(sets[self.node[i]]): sets[self.node[i]] for i in self.members[k]}.values()
            joined = set[int]().union(*(nodes for nodes, _ in touched))
            groups = [*(h for _, some in touched for h in some), k]
            for n in joined:
                sets[n] = joined, groups
        return list({id(nodes): (nodes, groups) for nodes, groups in sets.values()}.values())

    # -- transfers --------------------------------------------------------------------------------------------

    def _transfers(self) -> None:
        """Every site where a user is needs the tensor, once; tensors of one maker and the same users move together."""
        makers = self.problem.flows.source.tolist()
        self.together: dict[tuple[int, ...], list[int]] = {}
        for t, users in enumerate(self.users):
            self.together.setdefault((makers[t], *users), []).append(t)
        for ends in self.together:
            for s in range(self.problem.units.sites):
                sends = self.sends(ends, s)
                if any(sends):
                    self._brought(ends, s, sends)

    def sends(self, ends: tuple[int, ...], s: int) -> list[int]:
        """Return what it costs to bring tensors with these ends (maker and users) to site ``s``, by strategy of the maker."""
        tensors = self.together[ends]
        return [sum(self.move[t][o][s] for t in tensors) for o in self.at[self.node[ends[0]]]]

    def _brought(self, ends: tuple[int, ...], s: int, sends: list[int]) -> None:
        """What it costs that any of the users is at site ``s``."""
        maker = self.node[ends[0]]
        users = [n for n in sorted({self.node[i] for i in ends[1:]} - {maker}) if s in self.at[n]]
        if any(set(self.at[n]) == {s} for n in users):  # a user is there in any case
            self.cost[maker] = [c + more for c, more in zip(self.cost[maker], sends, strict=True)]
            return
        fixed = len(set(self.at[maker])) == 1
        if len(users) == 1:
            (n,) = users
            there = [place == s for place in self.at[n]]
            if fixed:
                self.cost[n] = [c + sends[0] * here for c, here in zip(self.cost[n], there, strict=True)]
            else:
                self.tables.append((maker, n, [[more * here for here in there] for more in sends]))
        elif users:
            present = self.presence[ends, s] = self._node([0, sends[0] if fixed else 0])
            if not fixed:
                self.tables.append((maker, present, [[0, more] for more in sends]))
            for n in users:
                asks = [[FORBIDDEN if place == s else 0, 0] for place in self.at[n]]
                self.tables.append((n, present, asks))

    # -- fusion -----------------------------------------------------------------------------------------------

    def _fusion(self) -> None:
        """Not to fuse a group costs its gain, which the constant takes off; groups with a common operator exclude each other."""
        nodes_of = {k: sorted({self.node[i] for i in self.members[k]}) for k in self.useful}
        fused = dict[tuple[int, int], int]()
        wanted = dict[int, list[int]]()  # by operator, the groups that it is in
        for k in self.useful:
            for i in self.members[k]:
                wanted.setdefault(i, []).append(k)
        for k in self.useful:
            nodes, rivals = nodes_of[k], sorted({h for i in self.members[k] for h in wanted[i]} - {k})
            if not rivals and len(nodes) <= 2:
                self._simple(k, nodes)
                continue
            for j in sorted(set[int].intersection(*(set(self.unit[n]) for n in nodes))):
                if not self.gain[k][j]:
                    continue
                self.constant -= self.gain[k][j]
                f = self._node([self.gain[k][j], 0])
                for n in nodes:
                    self.tables.append((n, f, [[0, 0 if u == j else FORBIDDEN] for u in self.unit[n]]))
                fused[k, j] = f
                for rival in (fused[h, j] for h in rivals if h < k and (h, j) in fused):
                    self.tables.append((rival, f, [[0, 0], [0, FORBIDDEN]]))

    def _simple(self, k: int, nodes: list[int]) -> None:
        """A group of one or two nodes that no other node wants is fused wherever that can be."""
        first, last = nodes[0], nodes[-1]
        most = max(self.gain[k][j] for j in self.unit[first])
        self.constant -= most
        missed = [most - self.gain[k][j] for j in self.unit[first]]
        if first == last:
            self.cost[first] = [c + more for c, more in zip(self.cost[first], missed, strict=True)]
            return
        rows = [
            [less if i == j else most for j in self.unit[last]]
            for i, less in zip(self.unit[first], missed, strict=True)
        ]
        self.tables.append((first, last, rows))

    # -- memory -----------------------------------------------------------------------------------------------

    def _memory(self, m: int, room: float) -> None:
        """Who keeps what in a memory until when; only at positions where all that may be there is too much."""
        stays = self._stays(m)
        full = self._full(stays, room)
        for t in sorted(stays):
            start, ends = stays[t]
            size = int(self.problem.flows.bytes[t])
            last_full = {
                n: full[bisect_left(full, end) - 1] for n, end in ends.items() if full and full[0] < end
            }
            ends = {n: p + 1 for n, p in last_full.items() if p >= start}
            if len(ends) == 1:
                ((n, end),) = ends.items()
                inside = [s for s, place in enumerate(self.at[n]) if self.memory[place] == m]
                self.demand += [(n, s, start, end, size, m) for s in inside]
            elif ends:
                self._resident(m, t, (start, size), ends)

    def _stays(self, m: int) -> dict[int, tuple[int, dict[int, int]]]:
        """Return by tensor the position from which it is held, and until before which one every node may keep it there."""
        flows, out = self.problem.flows, dict[int, tuple[int, dict[int, int]]]()
        inside = [any(self.memory[s] == m for s in places) for places in self.at]
        for t, users in enumerate(self.users):
            if not flows.bytes[t]:
                continue
            maker, until = int(flows.source[t]), flows.until[flows.indptr[t] : flows.indptr[t + 1]].tolist()
            if flows.kept[t]:
                start, roles = 0, [(i, self.problem.count) for i in users]
            else:
                ends = [max(maker, last) + 1 for last in until]
                start, roles = int(flows.since[t]), [(maker, maker + 1), *zip(users, ends, strict=True)]
            by_node = dict[int, int]()
            for i, end in roles:
                if inside[self.node[i]]:
                    by_node[self.node[i]] = max(end, by_node.get(self.node[i], 0))
            if by_node:
                out[t] = start, by_node
        return out

    def _full(self, stays: dict[int, tuple[int, dict[int, int]]], room: float) -> list[int]:
        """Return the positions at which everything that may be there is more than there is room for."""
        change = [0] * (self.problem.count + 1)
        for t, (start, ends) in stays.items():
            change[start] += int(self.problem.flows.bytes[t])
            change[max(ends.values())] -= int(self.problem.flows.bytes[t])
        return [p for p, held in enumerate(accumulate(change[:-1])) if held > room]

    def _resident(self, m: int, t: int, held: tuple[int, int], ends: dict[int, int]) -> None:
        """One node says until when a tensor (its start and bytes) is held; nodes in the memory ask for their ends at least."""
        stops = sorted(set(ends.values()))
        node = self.residency[m, t] = self._node([0] * (len(stops) + 1))
        self.demand += [(node, k, held[0], end, held[1], m) for k, end in enumerate(stops, 1)]
        for n in sorted(ends):
            short = [k <= stops.index(ends[n]) for k in range(len(stops) + 1)]
            asks = [[FORBIDDEN if self.memory[s] == m and less else 0 for less in short] for s in self.at[n]]
            self.tables.append((n, node, asks))
