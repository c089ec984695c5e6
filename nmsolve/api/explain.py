"""``nmsolve.explain``: is there any mapping, and if not, which limits conflict."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nmsolve.api.how import TIME_LIMIT
from nmsolve.api.inputs import ConstraintsLike, MachineLike, Source, source_of
from nmsolve.cli.answer import prepare_file
from nmsolve.cli.explain import find_conflict, problem_to_explain
from nmsolve.cli.options import seconds as require_seconds
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.mapping.files import write_mapping
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.explain import MappingLimits
from nmsolve.solvers.search.conflict import Explanation, Limit


@dataclass(frozen=True, eq=False)
class Explained:
    """Whether anything fits, and why not.

    Attributes
    ----------
    found : a checked mapping, or limits that conflict, with a certificate
    confirmed : a second program confirms the conflict; None: it could not tell, or there is none
    """

    found: Explanation[IntArray]
    confirmed: bool | None
    source: Source

    @property
    def status(self) -> str:
        """``feasible``, ``infeasible`` (proved) or ``unknown``."""
        return self.found.status

    @cached_property
    def mapping(self) -> dict[Hashable, int]:
        """Some mapping that keeps every limit, node -> core; empty if none was found."""
        core = self.found.solution
        return {} if core is None else dict(zip(self.source.named.nodes, core.tolist(), strict=True))

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits (``kind``, ``name``, ``words``) that no mapping keeps together; empty if there is no conflict."""
        return () if self.found.conflict is None else self.found.conflict.limits

    @property
    def minimal(self) -> bool:
        """True if without any one of ``limits`` the others can be kept, each case with a checked mapping."""
        return self.found.conflict is not None and self.found.conflict.minimal

    @property
    def text(self) -> str:
        """Why, in words, as far as counting can say."""
        return "" if self.found.conflict is None else self.found.conflict.text

    def save(self, path: str | Path) -> Path:
        """Write the mapping, or the proof of the conflict, as ``nmsolve explain --out`` does. Return the path.

        Raises
        ------
        InputError : neither was found, or a file that cannot be written
        """
        out = Path(path)
        prepare_file(out)
        if self.found.solution is not None:
            write_mapping(out, self.source.named.graph, self.source.board, self.found.solution)
        elif self.found.conflict is not None:
            write_atomic(out, json.dumps(self.found.conflict.certificate) + "\n")
        else:
            raise InputError("nothing was found", str(out), "more time")
        return out


def explain(
    graph: GraphLike,
    machine: MachineLike | None = None,
    *,
    constraints: ConstraintsLike = (),
    balance: float | None = None,
    chips: str | tuple[int, int] | None = None,
    occupied: Sequence[str | Path] = (),
    time_limit: float = TIME_LIMIT,
    seed: int = 0,
) -> Explained:
    """Find out whether any mapping exists; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    graph, machine, constraints, balance, chips, occupied : as for :func:`nmsolve.map`
    time_limit : seconds
    seed : of all random choices

    Raises
    ------
    InputError : an argument is wrong; a graph that does not fit is none

    Examples
    --------
    Two nodes that must be apart cannot share the one core of a machine.

    >>> import nmsolve, numpy
    >>> apart = {"kind": "apart", "nodes": [0, 1]}
    >>> found = nmsolve.explain(numpy.eye(2), "mesh:1x1", constraints=[apart], balance=1)
    >>> found.status, [limit.name for limit in found.limits]
    ('infeasible', ['apart 0'])
    """
    require_seconds(str(time_limit))
    source = source_of(graph, machine, chips, constraints, occupied)
    problem: Any = problem_to_explain(source.named.graph, source.board, source.constraints, balance)
    found, confirmed = find_conflict(MappingLimits(problem), time_limit, seed)
    return Explained(found, confirmed, source)
