"""Variables of the CP-SAT model of mapping."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nmsolve.solvers.mapping.exact.data import ExactData
from nmsolve.solvers.mapping.exact.rows import wants_links

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass
class NetVariables:
    """Variables of one message that is charged by its route tree.

    ``present[p]``: some node of the net is on core ``p``. ``across[j]``: the route crosses between column ``j``
    and ``j + 1`` in the row of its source. ``along[c][i]``: it crosses between row ``i`` and ``i + 1`` in column ``c``.
    """

    present: list[Any]
    across: list[Any] = field(default_factory=list)
    along: list[list[Any]] = field(default_factory=list)


@dataclass
class Variables:
    """All variables of the model.

    Attributes
    ----------
    x : x[u][p] is 1 if node u is on core p
    column, row : position of every node's column and row line; None where the axis costs nothing
    dx, dy : distance of every pair along the two axes, at least the true one; None as above
    turn_x, turn_y : on a torus, how many times (-1, 0, 1) the short way of a pair goes round; else None
    apart : 1 if the nodes of the pair are on different cores; None where no two nodes that talk may share one
    far : distance of every pair where a matrix gives it; None otherwise
    nets : one per net
    """

    x: list[list[Any]]
    column: list[Any] | None
    row: list[Any] | None
    dx: list[Any] | None
    dy: list[Any] | None
    turn_x: list[Any] | None
    turn_y: list[Any] | None
    apart: list[Any] | None
    far: list[Any] | None
    nets: list[NetVariables]


def make_variables(model: cp_model.CpModel, data: ExactData, x: list[list[Any]] | None = None) -> Variables:
    """Create the variables of ``data`` in ``model`` (no constraints yet); ``x`` if the mapping's are there already."""
    nodes, pairs = range(data.n), range(data.edges)
    xs, ys = data.x, data.y
    column = row = dx = dy = turn_x = turn_y = far = apart = None
    if data.edges and xs[-1] > 0:
        column = [model.new_int_var(0, int(xs[-1]), f"column[{u}]") for u in nodes]
        dx = [model.new_int_var(0, _farthest(int(xs[-1]), data.wrap_x), f"dx[{e}]") for e in pairs]
        if data.wrap_x:
            turn_x = [model.new_int_var(-1, 1, f"turn_x[{e}]") for e in pairs]
    if data.edges and ys[-1] > 0:
        row = [model.new_int_var(0, int(ys[-1]), f"row[{u}]") for u in nodes]
        dy = [model.new_int_var(0, _farthest(int(ys[-1]), data.wrap_y), f"dy[{e}]") for e in pairs]
        if data.wrap_y:
            turn_y = [model.new_int_var(-1, 1, f"turn_y[{e}]") for e in pairs]
    if data.matrix.shape[0]:
        far = [model.new_int_var(0, int(data.matrix.max()), f"far[{e}]") for e in pairs]
    if wants_links(data):
        apart = [model.new_bool_var(f"apart[{e}]") for e in pairs]
    return Variables(
        x=x or [[model.new_bool_var(f"x[{u},{p}]") for p in range(data.cores)] for u in nodes],
        column=column,
        row=row,
        dx=dx,
        dy=dy,
        turn_x=turn_x,
        turn_y=turn_y,
        apart=apart,
        far=far,
        nets=[_net_variables(model, data, i) for i in range(len(data.nets))],
    )


def _farthest(open_axis: int, wrap: int) -> int:
    """Largest distance along an axis: its length, or half its circumference on a torus."""
    return min(open_axis, wrap // 2) if wrap else open_axis


def _net_variables(model: cp_model.CpModel, data: ExactData, i: int) -> NetVariables:
    out = NetVariables([model.new_bool_var(f"present[{i},{p}]") for p in range(data.cores)])
    if data.spans:
        rows, cols = len(data.y), len(data.x)
        out.across = [model.new_bool_var(f"across[{i},{j}]") for j in range(cols - 1)]
        out.along = [
            [model.new_bool_var(f"along[{i},{c},{j}]") for j in range(rows - 1)] for c in range(cols)
        ]
    return out


def dot(weights: Iterable[int], terms: Iterable[Any]) -> Any:
    """``sum_k weights[k] * terms[k]`` without a chain of additions; the number 0 where nothing is left."""
    from ortools.sat.python import cp_model

    kept = [(int(w), t) for w, t in zip(weights, terms, strict=True) if w]
    fixed = sum(w * t for w, t in kept if isinstance(t, int))
    free = [(w, t) for w, t in kept if not isinstance(t, int)]
    if not free:
        return fixed
    return cp_model.LinearExpr.weighted_sum([t for _, t in free], [w for w, _ in free]) + fixed


def total(terms: Iterable[Any]) -> Any:
    """``sum_k terms[k]``, as :func:`dot` with all weights 1."""
    listed = list(terms)
    return dot([1] * len(listed), listed)


def pair_distance(data: ExactData, v: Variables, e: int) -> Any:
    """The distance of pair ``e`` as a linear expression (or a number where it is constant)."""
    if v.far is not None:
        return v.far[e]
    terms: list[Any] = [axis[e] for axis in (v.dx, v.dy) if axis is not None]
    apart = 1 if v.apart is None else v.apart[e]
    return dot([1] * len(terms) + [data.step], [*terms, apart])
