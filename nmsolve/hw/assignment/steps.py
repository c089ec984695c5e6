"""A program as the problem sees it: steps, and what they send each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nmsolve.model.operators.costs import OperatorCost
from nmsolve.model.operators.graph import Operator, OperatorGraph

#: Numbers of operators and bodies on the way to something inside.
Path = tuple[int, ...]


@dataclass(eq=False)
class Step:
    """One operator, or ``@in``, ``@out``.

    Attributes
    ----------
    label : unique; the path of names through bodies
    path : its number in the model, or numbers: operator, body, operator in the body, ...; () for ``@in`` and ``@out``
    graph, operator, cost : what it is; None for ``@in`` and ``@out``
    runs : how often it runs in one inference; half of the runs of an ``If`` for either branch if nothing is known
    turns : of control flow, how often its bodies run in one inference, all together
    last : position of the last step inside its bodies; its own without bodies
    """

    label: str
    path: Path = ()
    graph: OperatorGraph | None = None
    operator: Operator | None = None
    cost: OperatorCost | None = None
    runs: float = 1.0
    turns: float = 0.0
    last: int = 0


@dataclass(eq=False)
class Flow:
    """A tensor on its way from one step to others, or what control flow tells the steps in a body.

    Attributes
    ----------
    name : for people
    path : of the tensor: its number, or operator, body, number in the body, ...; () for what no tensor stands for
    source : step that makes it
    since : the position from which it is held
    held : bytes
    moved : bytes of one transfer
    runs : transfers in one inference, to every site that needs it
    kept : it stands
    control : it is a round trip: control flow stops what runs at a site, and goes on
    parameter : a scalar made outside control flow: a host passes it with the start of a kernel (M3.6)
    users : step -> last position at which it needs the tensor
    """

    name: str
    path: Path
    source: int
    since: int
    held: int
    moved: int
    runs: float
    kept: bool = False
    control: bool = False
    parameter: bool = False
    users: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Program:
    """Steps in an order in which they can run, ``@in`` first and ``@out`` last, and what they send each other.

    ``left_out``: paths of operators that are done before the run, and of those that no output needs.
    """

    name: str
    steps: tuple[Step, ...]
    flows: tuple[Flow, ...]
    left_out: tuple[Path, ...]
    bindings: Mapping[str, int]
