"""The engine ``network-cpsat``: CP-SAT on the contracted network (:mod:`nmsolve.model.assignment.contract`).

One 0-1 variable per strategy and per allowed entry of a table; those of a row or column of a table add up to the strategy
they belong to. Memory has a row for every position that is not covered by another one
(:mod:`nmsolve.model.assignment.tight`).

Where a solution is known, only what a better one may take is stated, by reduced costs: what messages and prices prove is a
sum of minima. A solution with strategy a of node i costs at least that sum, what a costs there beyond its node's least, and
what the rows of a in the tables of i cost beyond their tables' least. Where that is not below the cost of the known solution,
a is forbidden; entries of tables likewise. What is left contracts further, its bound is higher. Floats with a margin: what
rests on it is as good as an exact solver's word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nmsolve.heuristics.assignment.messages import MessageAscent, Network
from nmsolve.model.assignment.contract import Contracted, contracted
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.assignment.reduction import SUMS, Reduced, reduced
from nmsolve.model.assignment.tight import tight_positions
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.types import FloatArray, IntArray
from nmsolve.solvers.assignment.checker import AssignChecker, NetworkChecker
from nmsolve.solvers.search.exact import run_model
from nmsolve.solvers.search.incumbent import judge
from nmsolve.solvers.search.rows import Built, CpSatRows, Value
from nmsolve.solvers.search.scaling import OBJECTIVE_LIMIT, Scale

#: Most variables, and entries of rows of memory.
MAX_VARIABLES, MAX_ENTRIES = 500_000, 3_000_000


class NetworkCpSat:
    """Exact strategies by OR-Tools CP-SAT; runs in a child process."""

    name = "network-cpsat"
    finds = "both"

    def refuses(self, problem: AssignProblem | CostNetwork) -> str | None:
        """No sums, ceilings on other objectives, and what is too large."""
        if not isinstance(problem, CostNetwork):
            if problem.objective not in SUMS:
                return f"{problem.objective} is no sum of costs"
            if problem.ceilings:
                return "takes no ceilings on other objectives"
        small = contracted(reduced(problem).network)
        if small is None:
            return "strategies that nodes need exclude each other"
        size = len(small.network.cost) + len(small.network.table)
        return f"a model of {size} variables, the limit is {MAX_VARIABLES}" if size > MAX_VARIABLES else None

    def run(self, problem: AssignProblem | CostNetwork, context: Context) -> None:
        """Solve the model; solutions and bounds are forwarded as they come. CP-SAT's own status is the certificate."""
        whole = reduced(problem)
        small = contracted(whole.network)
        tight = None if small is None else tight_positions(small.network)
        if small is None or tight is None or not tight.whole or len(tight.row) > MAX_ENTRIES:
            context.note(f"more than {MAX_ENTRIES} entries of rows of memory")
            return
        known, value = context.incumbent()
        chain: list[Contracted] | None = [small]
        if known is not None:
            chain = better_only(small, value, context.should_stop)
        if chain is None:
            certificate = {"status": "nothing better is left", "seed": context.seed}
            context.raise_bound(Bound(value, self.name, certificate=certificate))
            return
        start = None if known is None else whole.lower(known)
        for one in chain:
            start = None if start is None else one.lower(start)
        checker = NetworkChecker(problem) if isinstance(problem, CostNetwork) else AssignChecker(problem)
        built = build(whole, chain, start, context.bound())

        def worth(solution: IntArray) -> float:
            return judge(checker, solution)[2]

        if known is None:
            run_model(built, "cpsat", self.name, context, worth)
        else:
            run_model(built, "cpsat", self.name, _Rest(context, value), worth)


class _Rest:
    """A context for a model of the better solutions only: no bound is above the known cost, which they may not reach."""

    def __init__(self, context: Context, value: float) -> None:
        self._context, self._value = context, value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def incumbent(self) -> tuple[None, float]:
        """Return none: the model may have no solution."""
        return None, math.inf

    def raise_bound(self, bound: Bound) -> bool:
        """Pass a bound on, up to what is known."""
        least = min(bound.value, self._value, self._context.incumbent()[1])
        return self._context.raise_bound(replace(bound, value=least))


def build(
    whole: Reduced, chain: list[Contracted], start: IntArray | None = None, bound: float = 0.0
) -> Built:
    """State the network for CP-SAT.

    Parameters
    ----------
    chain : contractions, each of the one before; the last one is stated
    start : strategies to begin with, as a hint
    bound : a proven lower bound on the cost, added as a row
    """
    net, rows = chain[-1].network, CpSatRows()
    finite = [c[c < FORBIDDEN].astype(np.float64) for c in (net.cost, net.table)]
    largest = sum(float(c.sum()) for c in finite) + abs(net.constant)
    shift = max(0, int(np.ceil(np.log2(max(1.0, largest) / OBJECTIVE_LIMIT))))
    x = list(rows.binary("x", range(len(net.cost))).values())
    for a, b in zip(net.ptr[:-1].tolist(), net.ptr[1:].tolist(), strict=True):
        rows.exactly_one(x[a:b])
    costs, terms = (net.cost >> shift).tolist(), list(x)
    for e, (u, v) in enumerate(net.ends.tolist()):
        allowed = net.tables(e) < FORBIDDEN
        y = rows.binary(f"y{e}", map(tuple, np.argwhere(allowed).tolist()))
        for side, node in enumerate((u, v)):
            own: list[list[Any]] = [[] for _ in range(allowed.shape[side])]
            for index, variable in y.items():
                own[index[side]].append(variable)
            for k, variables in enumerate(own):
                rows.add(rows.total(variables) == x[net.ptr[node] + k])
        costs += (net.tables(e)[allowed] >> shift).tolist()
        terms += y.values()
    tight = tight_positions(net)
    for r, slack in enumerate(tight.slack.tolist()):
        at = slice(tight.row_ptr[r], tight.row_ptr[r + 1])
        rows.add(rows.dot(tight.needed[at], [x[k] for k in tight.choice[at]]) <= slack)
    goal = rows.dot(costs, terms) + (net.constant >> shift)
    claim = Scale(2.0**-shift, shift == 0, integral=True)
    least = claim.floor_row(bound)
    if least is not None:
        rows.add(goal >= least)
    rows.minimise(goal)
    if start is not None:
        for i, strategy in enumerate(start.tolist()):
            for k in range(net.ptr[i], net.ptr[i + 1]):
                rows.hint(x[k], int(k == net.ptr[i] + strategy))
    return Built(rows.model, claim, partial(_solution, whole, chain, x))


def _solution(whole: Reduced, chain: list[Contracted], x: list[Any], value: Value) -> IntArray:
    """Return a solution of the model as engines offer it."""
    strategy: IntArray = np.flatnonzero([value(variable) for variable in x]) - chain[-1].network.ptr[:-1]
    for one in reversed(chain):
        strategy = one.lift(strategy)
    return whole.lift(strategy)


#: Rounds at most; the last one is that which forbids less than this share of what there is.
ROUNDS, LITTLE = 6, 0.02
#: Sweeps per temperature, and the share of the first temperature at which a round ends.
SWEEPS, COLD = 60, 1e-5
#: Floating error, as a share of the known cost.
MARGIN = 1e-9


def better_only(small: Contracted, known: float, stop: Callable[[], bool]) -> list[Contracted] | None:
    """Return contractions, each of the network of the one before; None if there is no solution cheaper than ``known``.

    Parameters
    ----------
    small : the first of them
    known : what a solution costs; costs are whole numbers
    """
    chain = [small]
    most = known - 1 + MARGIN * abs(known)
    for _ in range(ROUNDS):
        network = chain[-1].network
        tight = tight_positions(network)
        if (tight.slack < 0).any():
            return None
        ascent = MessageAscent(network, tight, stop)
        ascent.cool(ascent.hottest(known), COLD, SWEEPS)
        if ascent.best > most:
            return None
        if stop():
            break
        price, message = ascent.proof
        charge = np.zeros(len(network.cost))
        row = np.repeat(np.arange(len(price)), np.diff(tight.row_ptr))
        np.add.at(charge, tight.choice, price[row] * tight.needed)
        left = forbidden(network, ascent.net, charge, message, most - ascent.best)
        following = contracted(left)
        if following is None:
            return None
        before, after = (
            len(network.cost) + len(network.table),
            len(following.network.cost) + len(following.network.table),
        )
        if before - after < LITTLE * before:
            break
        chain.append(following)
    return chain


def forbidden(
    network: CostNetwork, net: Network, charge: FloatArray, message: FloatArray, room: float
) -> CostNetwork:
    """Return the network without what costs more than ``room`` above the bound.

    Parameters
    ----------
    charge : (choices,) what memory costs
    message : see :class:`~nmsolve.heuristics.assignment.messages.MessageAscent`
    """
    own = net.cost + charge
    rests = []
    for e, (u, v) in enumerate(network.ends.tolist()):
        tables = np.where(network.tables(e) < FORBIDDEN, network.tables(e), np.inf)
        rows, columns = tables.shape
        first = message[net.to[e, 0] : net.to[e, 0] + rows]
        second = message[net.to[e, 1] : net.to[e, 1] + columns]
        own[net.ptr[u] : net.ptr[u + 1]] += first
        own[net.ptr[v] : net.ptr[v + 1]] += second
        rest = tables - first[:, None] - second
        rests.append(rest - rest.min())
    own -= np.repeat(np.minimum.reduceat(own, net.ptr[:-1]), np.diff(net.ptr))
    for (u, v), rest in zip(network.ends.tolist(), rests, strict=True):
        own[net.ptr[u] : net.ptr[u + 1]] += rest.min(axis=1)
        own[net.ptr[v] : net.ptr[v + 1]] += rest.min(axis=0)
    table = network.table.copy()
    for e, ((u, v), rest) in enumerate(zip(network.ends.tolist(), rests, strict=True)):
        first = own[net.ptr[u] : net.ptr[u + 1]] - rest.min(axis=1)
        second = own[net.ptr[v] : net.ptr[v + 1]] - rest.min(axis=0)
        dear = (rest + first[:, None] + second > room).ravel()
        table[network.table_ptr[e] : network.table_ptr[e + 1]][dear] = FORBIDDEN
    return replace(network, cost=np.where(own > room, FORBIDDEN, network.cost), table=table)
