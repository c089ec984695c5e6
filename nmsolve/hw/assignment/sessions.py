"""How long sessions of ONNX Runtime take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.hw.assignment.runtime import session_of
from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.formats.onnx.parse import first_line
from nmsolve.model.types import AnyArray


@dataclass(frozen=True)
class Patience:
    """How carefully to measure.

    Attributes
    ----------
    runs : at most this many, after ``warm`` that do not count
    seconds : no more runs begin after that, but ``least`` there are
    quantile : which of the times counts
    """

    runs: int = 20
    warm: int = 2
    seconds: float = 0.5
    least: int = 5
    quantile: float = 0.1


@dataclass(frozen=True)
class Times:
    """ps of one run (a low quantile), median divided by it, and how many runs there were."""

    time: float
    spread: float
    runs: int


class Session:
    """A model ready to run on the host with some threads, as the runner of programs would run it.

    Parameters
    ----------
    model : bytes of the model
    fused : with all optimisations but those of memory layout; otherwise with none
    optimised, profile : as in :func:`nmsolve.hw.assignment.runtime.session_of`

    Raises
    ------
    BackendError : the runtime does not take the model
    """

    def __init__(
        self,
        model: bytes,
        threads: int,
        *,
        fused: bool = False,
        optimised: Path | None = None,
        profile: Path | None = None,
    ) -> None:
        level = "extended" if fused else "off"
        with _told():
            self._session = session_of(model, "", threads, level, optimised=optimised, profile=profile)
            self._binding = self._session.io_binding()
        self._held: list[Any] = []

    def feed(self, inputs: Mapping[str, AnyArray], outputs: tuple[str, ...]) -> None:
        """Bind inputs and outputs.

        Raises
        ------
        BackendError : they do not fit the model
        """
        import onnxruntime

        with _told():
            for name, array in inputs.items():
                self._held.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
                self._binding.bind_ortvalue_input(name, self._held[-1])
            for name in outputs:
                self._binding.bind_output(name, "cpu")

    def run(self) -> None:
        """Run once.

        Raises
        ------
        BackendError : the runtime fails
        """
        with _told():
            self._session.run_with_iobinding(self._binding)

    def profiled(self) -> Path:
        """End profiling; return the file with the times of all nodes."""
        return Path(self._session.end_profiling())


def timed(run: Callable[[], None], patience: Patience) -> Times:
    """Return how long a run takes."""
    for _ in range(patience.warm):
        run()
    taken: list[int] = []
    end = time.monotonic() + patience.seconds
    while len(taken) < patience.least or (len(taken) < patience.runs and time.monotonic() < end):
        start = time.perf_counter_ns()
        run()
        taken.append(time.perf_counter_ns() - start)
    low = float(np.quantile(taken, patience.quantile, method="lower"))
    return Times(1000.0 * max(low, 1.0), max(1.0, float(np.median(taken)) / max(low, 1.0)), len(taken))


@contextmanager
def _told() -> Iterator[None]:
    """Tell errors of the runtime, which have many types, as one of this program's own: a node fails, the others go on."""
    try:
        yield
    except InputError as error:
        raise BackendError(error.what) from None
    except Exception as error:  # noqa: BLE001 -- the runtime's exceptions share no base class but this one
        raise BackendError(f"onnxruntime: {first_line(error)}") from None
