"""The run's side of errands: parts of one engine's work on other machines. What does not come back was not done."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from nmsolve.model.engine import Doer
from nmsolve.solvers.cluster.machines import Cluster, Seat

#: Seconds without an answer after which a part that was asked for is given up, and with it the thread that has it.
SILENT = 10.0


class _Out(NamedTuple):
    """An errand under way: who is on it, and the reference to its answer."""

    seat: Seat
    answer: Any


class RemoteErrands:
    """The run's side: see :class:`nmsolve.model.engine.Errands`.

    Parameters
    ----------
    cluster : with its agents
    doer : travels once to every machine
    look : sees who has come and gone
    took : called with the CPU seconds of every part that comes back
    """

    def __init__(
        self, cluster: Cluster, doer: Doer, look: Callable[[], None], took: Callable[[float], None]
    ) -> None:
        self._cluster, self._look, self._took = cluster, look, took
        self._of = cluster.next_number()
        self._doer = [cluster.ray.put(pickle.dumps(doer, protocol=5))]
        self._out: dict[int, _Out] = {}
        self._asked: dict[int, float] = {}
        self._dead: set[str] = set()

    def free(self) -> int:
        """Return how many threads have nothing to do."""
        self._look()
        return sum(max(0, seat.free()) for seat in self._seats())

    def _seats(self) -> list[Seat]:
        """Return the machines, but for those whose agent is known here to be dead before the census knows."""
        return [seat for seat in self._cluster.seats.values() if seat.name not in self._dead]

    def send(self, part: Any) -> int:
        """Give a part to the machine with most free threads; return the number of the errand."""
        seat = max(self._seats(), key=lambda seat: seat.free())
        number = self._cluster.next_number()
        self._out[number] = _Out(seat, seat.agent.work.remote(self._of, self._doer, number, part))
        seat.errands.add(number)
        return number

    def hurry(self, number: int) -> None:
        """Ask for what has come of a part so far. What is silent long after that counts as lost."""
        if number not in self._asked:
            self._asked[number] = time.monotonic()
            self._out[number].seat.agent.hurry.remote(number)

    def back(self, seconds: float) -> list[tuple[int, Any]]:
        """Return what has come back, after at most so long: numbers, and what came of the part, None if it was lost.

        Raises
        ------
        Exception : what the doer raised
        """
        ray = self._cluster.ray
        number_of = {out.answer: number for number, out in self._out.items()}
        if not number_of:
            time.sleep(seconds)
            return []
        ray.wait(list(number_of), num_returns=1, timeout=seconds)
        there, _ = ray.wait(list(number_of), num_returns=len(number_of), timeout=0)
        found = []
        for answer in there:
            number = number_of[answer]
            try:
                reply, cpu = ray.get(answer)
                self._took(cpu)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError:  # its machine is gone, or the agent there
                reply = None
                self._dead.add(self._out[number].seat.name)
            self._forget(number).errands.discard(number)
            found.append((number, reply))
        late = time.monotonic() - SILENT
        for number in [number for number, asked in self._asked.items() if asked < late]:
            self._forget(number)
            found.append((number, None))
        return found

    def close(self) -> None:
        """Give up what is still out: it ends with its run."""
        for number in list(self._out):
            self.hurry(number)
            self._forget(number).errands.discard(number)

    def _forget(self, number: int) -> Seat:
        self._asked.pop(number, None)
        return self._out.pop(number).seat
