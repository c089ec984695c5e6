"""The interface between engines and the search: two small protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from nmsolve.model.bound import Bound
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray


class ScratchPlace(NamedTuple):
    """A folder for data that does not fit in memory, and whether to continue from what a killed run left there.

    ``folder`` is None for the system's folder for temporary files.
    """

    folder: Path | None = None
    resume: bool = False


class SubtaskWorker(Protocol):
    """Worker object for remote subtasks of an engine. It is sent to each machine once; each copy runs one subtask at a time."""

    def work(self, subtask: Any, should_stop: Callable[[], bool]) -> Any:
        """Return the result of a subtask, soon after ``should_stop``."""


class Subtasks(Protocol):
    """Free threads of other machines that run subtasks of one engine. A subtask is lost when its machine dies or is too slow."""

    def free(self) -> int:
        """Return the number of idle threads."""

    def send(self, subtask: Any) -> int:
        """Send a subtask to a machine with an idle thread; return its number."""

    def recall(self, number: int) -> None:
        """Stop a subtask: its worker returns the result so far."""

    def back(self, seconds: float) -> list[tuple[int, Any]]:
        """Return (number, result) of the finished subtasks after at most ``seconds``; the result of a lost one is None."""

    def close(self) -> None:
        """Cancel all running subtasks."""


class RemoteLost(Exception):
    """A machine of :class:`Remotes` is lost."""


class Remotes(Protocol):
    """Objects of one engine, one on each of several machines. They keep their state between calls."""

    def __len__(self) -> int:
        """Return how many there are."""

    def ask(self, method: str, *args: object) -> Callable[[], list[Any]]:
        """Begin the same call of all; what is returned waits for the results. Either may raise :class:`RemoteLost`."""

    def ask_each(self, method: str, each: Sequence[Sequence[object]]) -> Callable[[], list[Any]]:
        """Begin a call of each with arguments of its own; as :meth:`ask`."""


class Context(Protocol):
    """What an engine may read and do while it runs. All calls are cheap; only ``offer`` costs an evaluation."""

    @property
    def seed(self) -> int:
        """Return the seed of this engine's random numbers."""

    @property
    def workers(self) -> int:
        """Return the number of threads or processes that this engine may use."""

    @property
    def memory(self) -> int | None:
        """Return the bytes that this engine may still allocate (budget minus what is in use), or None without a budget."""

    @property
    def scratch(self) -> ScratchPlace:
        """Return where this engine may put files; it removes them before it ends."""

    def subtasks(self, worker: SubtaskWorker) -> Subtasks | None:
        """Return idle threads of other machines that run subtasks by ``worker``, or None without other machines."""

    def remotes(self, kind: type) -> Remotes | None:
        """Make an object of a class on every machine of the cluster, from the threads that it may use; None without one."""

    def incumbent(self) -> tuple[IntArray | None, float]:
        """Return the best mapping (n,) so far and its objective; ``(None, inf)`` if there is none."""

    def bound(self) -> float:
        """Return the best proven lower bound on the whole problem; 0 if none (all objectives are >= 0)."""

    def time_left(self) -> float:
        """Return the wall seconds that this engine may still use."""

    @property
    def pace(self) -> float:
        """Return the part of the time left that this run may expect to work: less than 1 where others take turns with it."""

    def worked(self) -> float:
        """Return the seconds that this run has worked; what it was paused for does not count."""

    def should_stop(self) -> bool:
        """Return True once time is up, the gap is reached or the user interrupted. Ask at least every 0.2 s."""

    def offer(self, core: IntArray, move: str = "") -> bool:
        """Offer a mapping (n,); it is checked and rescored. Return True if it became the incumbent."""

    def raise_bound(self, bound: Bound) -> bool:
        """Offer a bound. Return True if it is the best of its scope so far."""

    def note(self, text: str) -> None:
        """Add a line for people to the events. Changes nothing else."""


class Engine(Protocol):
    """A method for the mapping problem. Its problems have no ``together`` constraints (they are merged before).

    ``name`` is what ``--engines`` and the events call it; ``finds`` is ``mappings``, ``bounds`` or ``both``.
    """

    name: str
    finds: str

    def refuses(self, problem: MappingProblem) -> str | None:
        """Return why this engine cannot take the problem, or None if it can. Must be fast."""

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Work until done or ``context.should_stop()``. Deterministic by ``context.seed`` unless cut short by time."""


@runtime_checkable
class Resumable(Protocol):
    """An engine that can go on from where an earlier run of its own stopped: what it needs is in its last claim's certificate."""

    def resume(self, claim: Bound) -> None:
        """Begin the next run where the run of ``claim`` stopped, if its certificate says where; else it begins anew."""
