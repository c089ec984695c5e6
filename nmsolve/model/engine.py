"""The seam between engines and the search: two protocols of few methods."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from nmsolve.model.bound import Bound
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


class ScratchPlace(NamedTuple):
    """Where engines may put what does not fit in memory, and whether they should continue from what a killed run left there.

    ``folder`` is None for the system's folder for temporary files.
    """

    folder: Path | None = None
    resume: bool = False


class Context(Protocol):
    """What an engine may know and do while it runs. Safe to call often; only ``offer`` costs an evaluation."""

    @property
    def seed(self) -> int:
        """Seed of this engine's random numbers."""

    @property
    def workers(self) -> int:
        """Threads or processes this engine may use."""

    @property
    def memory(self) -> int | None:
        """Bytes this engine may still take (the budget less what all processes hold now), or None: no budget."""

    @property
    def scratch(self) -> ScratchPlace:
        """Where this engine may put files of its own; it removes them before it ends."""

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Best mapping so far and its objective; ``(None, inf)`` if there is none."""

    def bound(self) -> float:
        """Best proven lower bound on the whole problem so far; 0 if none (all objectives are >= 0)."""

    def time_left(self) -> float:
        """Seconds this engine may still use (wall). May be called often."""

    def should_stop(self) -> bool:
        """True once time is up, the gap is reached or the user interrupted. Ask at least every 0.2 s."""

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Offer a mapping (n,); it is checked and rescored. True if it became the incumbent."""

    def raise_bound(self, bound: Bound) -> bool:
        """Offer a bound. True if it is the best of its scope so far."""

    def note(self, text: str) -> None:
        """Add a line to the events: what was tried and what came of it, for people. Changes nothing else."""


class Engine(Protocol):
    """A method for the mapping problem. Problems it sees hold no ``together`` constraint (merged before).

    ``name`` is what ``--engines`` and the events call it; ``finds`` is ``mappings``, ``bounds`` or ``both``.
    """

    name: str
    finds: str

    def refuses(self, problem: MappingProblem) -> str | None:
        """Why this engine cannot take the problem, in words, or None if it can. Must be fast."""

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Work until done or ``context.should_stop()``. Deterministic by ``context.seed`` unless cut short by time."""
