"""Is there any answer within the limits of a problem; if not, which of them conflict?"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nmsolve.kinds.answer import prepare_file
from nmsolve.kinds.kind import Explainable
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.quantities import seconds
from nmsolve.solvers.search.conflict import Explanation, Limit

if TYPE_CHECKING:
    from nmsolve.solvers.search.conflict import Limits

S = TypeVar("S")
#: Part of the time limit for finding a conflict; the rest is for checking it with a second program.
FIND_PART = 0.7


def find_conflict(limits: Limits[S], seconds: float, seed: int) -> tuple[Explanation[S], bool | None]:
    """Look for a solution or a smallest conflict; the latter is confirmed by a second program, or None: it could not tell."""
    from nmsolve.solvers.search.conflict import recheck_conflict, smallest_conflict

    with TimeLeft() as time_left:
        found = smallest_conflict(limits, FIND_PART * seconds, seed)
        confirmed = None
        if found.conflict is not None and not time_left.asked:
            confirmed = recheck_conflict(limits, found.certificate, (1 - FIND_PART) * seconds)
    return found, confirmed


@dataclass(frozen=True, eq=False, repr=False)
class Explained(Generic[S]):
    """Whether anything fits, and why not.

    Attributes
    ----------
    found : a checked solution, or limits that conflict, with a certificate
    confirmed : a second program confirms the conflict; None: it could not tell, or there is none
    nodes : what the nodes are called, where mappings are looked for
    write : writes a solution to a file
    """

    found: Explanation[S]
    confirmed: bool | None
    write: Callable[[Path, S], None]
    nodes: Sequence[Hashable] = ()

    def __repr__(self) -> str:
        """Return what was found, in a line."""
        names = ", ".join(f"{x.kind} {x.name}".strip() for x in self.limits)
        return f"Explained({self.status}{': ' + names if names else ''})"

    @property
    def status(self) -> str:
        """``feasible``, ``infeasible`` (proved) or ``unknown``."""
        return self.found.status

    @property
    def solution(self) -> S | None:
        """Some solution that keeps every limit: the core of every node, routes or a plan; None if none was found."""
        return self.found.solution

    @cached_property
    def mapping(self) -> dict[Hashable, int]:
        """The same as node -> core, where mappings are looked for; else empty."""
        core: Any = self.found.solution
        return dict(zip(self.nodes, core.tolist(), strict=True)) if self.nodes and core is not None else {}

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits (``kind``, ``name``, ``words``) that nothing keeps together; empty if there is no conflict."""
        return () if self.found.conflict is None else self.found.conflict.limits

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every separate reason in words; ``limits`` and ``text`` are those of the first one. All of them must go."""
        return tuple(c.text for c in self.found.conflicts)

    @property
    def lift(self) -> tuple[Limit, ...]:
        """Limits without which some solution keeps all others, as was checked; empty if none was found in time."""
        return self.found.lift

    @property
    def minimal(self) -> bool:
        """True if without any one of ``limits`` the others can be kept, each case with a checked solution."""
        return self.found.conflict is not None and self.found.conflict.minimal

    @property
    def text(self) -> str:
        """Why, in words, as far as counting can say."""
        return "" if self.found.conflict is None else self.found.conflict.text

    def save(self, path: str | Path) -> Path:
        """Write the solution, or the proof of the conflict, as ``nmsolve explain --out`` does. Return the path.

        Raises
        ------
        InputError : neither was found, or a file that cannot be written
        """
        out = Path(path)
        prepare_file(out)
        if self.found.solution is not None:
            self.write(out, self.found.solution)
        elif self.found.conflict is not None:
            write_atomic(out, json.dumps(self.found.certificate) + "\n")
        else:
            raise InputError("nothing was found", str(out), "more time")
        return out


def explanation(
    about: Explainable, time_limit: float | str, seed: int, nodes: Sequence[Hashable] = ()
) -> Explained[Any]:
    """Return whether anything keeps these limits; ``nodes``: what they are called. InputError for a wrong time limit."""
    found, confirmed = find_conflict(about.limits, seconds(time_limit, "time_limit"), seed)
    return Explained(found, confirmed, about.write, nodes)
