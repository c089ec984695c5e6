"""Assignments once more, for ``verify``: costs added operator by operator, the schedule re-evaluated event by event.

Plain Python; shares no code with :mod:`nmsolve.hw.assignment.evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.assignment.network import CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.types import IntArray


def reevaluated_objectives(problem: AssignProblem, answer: Assignment) -> dict[str, int]:
    """Return latency, energy, load and makespan of a legal assignment, in ps and pJ."""
    time, energy = _runs(problem, answer)
    moved = _transfers(problem, answer)
    loads = reevaluated_loads(problem, answer)
    return {
        "latency": sum(time) + sum(int(problem.flows.time[t, a, b]) for t, a, b in moved),
        "energy": sum(energy) + sum(int(problem.flows.energy[t, a, b]) for t, a, b in moved),
        "load": max(loads.values()),
        "makespan": _EventSimulation(problem, answer, time).end(),
    }


def reevaluated_loads(problem: AssignProblem, answer: Assignment) -> dict[str, int]:
    """Return ps of work of every unit and channel, by name."""
    units = problem.units
    loads = dict.fromkeys((*units.names, *units.channels), 0)
    time, _ = _runs(problem, answer)
    for i, spent in enumerate(time):
        loads[units.names[int(answer.unit[i])]] += spent
    for t, origin, goal in _transfers(problem, answer):
        channel = int(units.channel[origin, goal])
        if channel >= 0:
            loads[units.channels[channel]] += int(problem.flows.time[t, origin, goal])
    return loads


def _runs(problem: AssignProblem, answer: Assignment) -> tuple[list[int], list[int]]:
    """Return time and energy of every operator; what a fused group saves is taken off its members, the last one first."""
    unit = [int(j) for j in answer.unit]
    time = [int(problem.time[i, j]) for i, j in enumerate(unit)]
    energy = [int(problem.energy[i, j]) for i, j in enumerate(unit)]
    for k, chosen in enumerate(answer.fused.tolist()):
        if not chosen:
            continue
        own = [int(i) for i in problem.groups.of(k)]
        for cost, saved in ((time, problem.groups.time), (energy, problem.groups.energy)):
            left = int(saved[k, unit[own[0]]])
            for i in reversed(own):
                part = min(left, cost[i])
                cost[i], left = cost[i] - part, left - part
    return time, energy


def _transfers(problem: AssignProblem, answer: Assignment) -> list[tuple[int, int, int]]:
    """Return every tensor with the site that makes it and each other site that wants it, once."""
    out, flows, site = [], problem.flows, problem.units.site
    for t in range(flows.count):
        origin = int(site[int(answer.unit[int(flows.source[t])])])
        wanted = {int(site[int(answer.unit[int(k)])]) for k in flows.users(t)}
        out += [(t, origin, goal) for goal in sorted(wanted - {origin})]
    return out


@dataclass
class _Job:
    """What runs as one: its operators' summed time, its unit and site, and the tensors that it waits for."""

    rank: int
    unit: int
    site: int
    time: int = 0
    needs: set[int] = field(default_factory=set)


class _EventSimulation:
    """Event simulation of a schedule: at each event every ready operator starts, in list order.

    A unit takes its jobs in list order. A channel serves the first job in the order that still lacks an input from it. It sends
    the oldest such input first, and of two made at the same time the one with the lower number.
    """

    def __init__(self, problem: AssignProblem, answer: Assignment, time: list[int]) -> None:
        self.problem, self.units = problem, problem.units
        self.last = list(range(problem.count))
        for k, chosen in enumerate(answer.fused.tolist()):
            if chosen:
                own = problem.groups.of(k).tolist()
                for i in own:
                    self.last[i] = own[-1]
        self.jobs: dict[int, _Job] = {}
        for i, last in enumerate(self.last):
            unit = int(answer.unit[last])
            job = self.jobs.setdefault(last, _Job(int(answer.rank[last]), unit, int(self.units.site[unit])))
            job.time += time[i]
        flows = problem.flows
        self.maker = [self.last[int(i)] for i in flows.source]
        for t in range(flows.count):
            for k in flows.users(t).tolist():
                if (
                    int(answer.rank[k]) > int(answer.rank[int(flows.source[t])])
                    and self.last[k] != self.maker[t]
                ):
                    self.jobs[self.last[k]].needs.add(t)
        self.order = sorted(self.jobs, key=lambda j: self.jobs[j].rank)
        self.queue: list[list[int]] = [[] for _ in self.units.names]
        #: Of every channel: the jobs that want something through it, in order, with what they are the first to want.
        self.wanted: list[list[tuple[int, set[int]]]] = [[] for _ in self.units.channels]
        self._line_up()
        self.finish: dict[int, int] = {}
        self.arrival: dict[tuple[int, int], int] = {}

    def _line_up(self) -> None:
        """Fill the queues of units and channels."""
        asked: set[tuple[int, int]] = set()
        for j in self.order:
            job = self.jobs[j]
            self.queue[job.unit].append(j)
            through: dict[int, set[int]] = {}
            for t in job.needs:
                origin = self.jobs[self.maker[t]].site
                channel = int(self.units.channel[origin, job.site])
                if origin != job.site and channel >= 0 and (t, job.site) not in asked:
                    through.setdefault(channel, set()).add(t)
                asked.add((t, job.site))
            for channel, tensors in through.items():
                self.wanted[channel].append((j, tensors))

    def end(self) -> int:
        """Return when the last job or transfer ends."""
        now = 0
        free, quiet = [0] * self.units.count, [0] * len(self.units.channels)
        while any(self.queue) or any(self.wanted):
            able = [self._job(u, now) for u in range(len(free)) if self.queue[u] and free[u] <= now]
            able += [self._sent(c, now) for c in range(len(quiet)) if self.wanted[c] and quiet[c] <= now]
            ready = min((a for a in able if a is not None), default=None)
            if ready is None:
                times = [*free, *quiet, *self.finish.values(), *self.arrival.values()]
                now = min(moment for moment in times if moment > now)
                continue
            _, _, where, what = ready
            if what < 0:
                j = self.queue[where].pop(0)
                free[where] = self.finish[j] = now + self.jobs[j].time
                self._unhindered(j)
            else:
                j, tensors = self.wanted[where][0]
                origin, goal = self.jobs[self.maker[what]].site, self.jobs[j].site
                quiet[where] = now + int(self.problem.flows.time[what, origin, goal])
                self.arrival[what, goal] = quiet[where]
                tensors.discard(what)
                if not tensors:
                    self.wanted[where].pop(0)
        return max([0, *self.finish.values(), *self.arrival.values()])

    def _unhindered(self, maker: int) -> None:
        """Transfers that need no channel begin as soon as their tensor is made."""
        origin = self.jobs[maker].site
        for job in self.jobs.values():
            if job.site == origin or int(self.units.channel[origin, job.site]) >= 0:
                continue
            for t in job.needs:
                if self.maker[t] == maker:
                    moved = int(self.problem.flows.time[t, origin, job.site])
                    self.arrival[t, job.site] = self.finish[maker] + moved

    def _job(self, unit: int, now: int) -> tuple[int, int, int, int] | None:
        """Return (rank, 1, unit, -1) if the unit's next job has all that it needs, else None."""
        job = self.jobs[self.queue[unit][0]]
        for t in job.needs:
            made = self.finish.get(self.maker[t])
            here = made if self.jobs[self.maker[t]].site == job.site else self.arrival.get((t, job.site))
            if here is None or here > now:
                return None
        return job.rank, 1, unit, -1

    def _sent(self, channel: int, now: int) -> tuple[int, int, int, int] | None:
        """Return (rank of who wants it, 0, channel, tensor) of what the channel sends next, None if that is not made yet."""
        j, tensors = self.wanted[channel][0]
        made = [(self.finish[self.maker[t]], t) for t in tensors if self.maker[t] in self.finish]
        first = min(made, default=None)
        if first is None or first[0] > now:
            return None
        return self.jobs[j].rank, 0, channel, first[1]


def reevaluated_cost(network: CostNetwork, strategy: IntArray) -> int:
    """Return what legal strategies (N,) of a cost network cost, node by node and pair by pair."""
    chosen = [int(s) for s in strategy]
    total = network.constant
    for node, s in enumerate(chosen):
        total += int(network.cost[int(network.ptr[node]) + s])
    for e, (u, v) in enumerate(network.ends.tolist()):
        width = int(network.ptr[v + 1]) - int(network.ptr[v])
        total += int(network.table[int(network.table_ptr[e]) + chosen[u] * width + chosen[v]])
    return total
