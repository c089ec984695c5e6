"""Fronts of two objectives: what differs between the kinds of their points, and how these are checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nmsolve.kinds.check_bounds import BoundChecks
from nmsolve.kinds.check_fields import answer_check

if TYPE_CHECKING:
    from nmsolve.kinds.parts import CheckPart

#: Format of pareto.json.
FORMAT = "nmsolve-pareto-1"
#: The bounds of everything that was solved for a front, with their certificates.
PROOFS = "pareto-certificates.json"


class FrontKind(BoundChecks, Protocol):
    """The points of a front as files."""

    @property
    def command(self) -> str:
        """The command that makes such fronts."""

    @property
    def key(self) -> str:
        """How pareto.json calls the file of a point."""

    @property
    def title(self) -> str:
        """Which problem, for people."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of objectives; those that are not in it are plain figures."""

    def about(self) -> dict[str, dict[str, str]]:
        """Name and hash of what the front is about."""

    def write(self, path: Path, solution: Any) -> None:
        """Write the file of a point."""

    def write_beside(self, folder: Path) -> None:
        """Write files that the points have in common."""

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[Any, dict[str, float], list[str]]:
        """Return the solution in the file of a point, its objectives as recomputed, and which checks it fails.

        Parameters
        ----------
        values : the objectives that are claimed

        Raises
        ------
        InputError : not such a file
        """

    def file_check(self, path: Path, solution: Any, unread: Collection[str]) -> CheckPart:
        """Check every other field of the file of a point, but for those that are ``unread``."""


class Rewritten:
    """Points whose files are written again as a whole; the front is about a problem that its kind's files state."""

    problem: Any

    @property
    def title(self) -> str:
        """Name of the problem."""
        return str(self.problem.name)

    def about(self) -> dict[str, dict[str, str]]:
        """Return name and hash of the problem."""
        return {"problem": {"name": self.title, "hash": self.problem.content_hash}}

    def write_beside(self, folder: Path) -> None:
        """Write nothing."""

    def file_check(self, path: Path, solution: Any, unread: Collection[str]) -> CheckPart:
        """The file written again."""
        write: Callable[[Path, Any], None] = self.write  # type: ignore[attr-defined]
        return answer_check(path, lambda to: write(to, solution), unread)
