"""Objects of an engine on all machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nmsolve.model.engine import RemoteLost

#: Bytes from which an array goes to all machines as one object.
LARGE = 1 << 16
#: Seconds between two checks whether to stop during a call, and the timeout of a call.
LOOK, ANSWER_TIMEOUT = 0.5, 30.0


class RemoteObjects:
    """Actors, one on each machine, as engines know them: see :class:`nmsolve.model.engine.Remotes`.

    They end when nothing refers to them. A machine without an answer counts as lost after :data:`ANSWER_TIMEOUT` seconds, or
    soon after ``should_stop``.
    """

    def __init__(self, ray: Any, actors: Sequence[Any], should_stop: Callable[[], bool]) -> None:
        self._ray, self._actors, self._should_stop = ray, actors, should_stop

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._actors)

    def ask(self, method: str, *args: object) -> Callable[[], list[Any]]:
        """Begin the same call of all, to which large arrays travel once; what is returned waits for the results."""
        once = [self._ray.put(x) if getattr(x, "nbytes", 0) > LARGE else x for x in args]
        return self.ask_each(method, [once] * len(self._actors))

    def ask_each(self, method: str, each: Sequence[Sequence[object]]) -> Callable[[], list[Any]]:
        """Begin a call of each with arguments of its own; what is returned waits for the results."""
        calls = [getattr(actor, method).remote(*args) for actor, args in zip(self._actors, each, strict=True)]

        def results() -> list[Any]:
            waited = 0.0
            while True:
                try:
                    found: list[Any] = self._ray.get(calls, timeout=LOOK)
                    return found
                except self._ray.exceptions.GetTimeoutError as error:
                    waited += LOOK
                    if waited >= ANSWER_TIMEOUT or self._should_stop():
                        raise RemoteLost("no answer") from error
                except self._ray.exceptions.RayActorError as error:
                    raise RemoteLost(str(error)) from error

        return results
