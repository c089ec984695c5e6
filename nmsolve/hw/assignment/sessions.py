"""Sessions of onnxruntime and how long they take: the only file of the profiler that knows the runtime (extra ``runtime``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.types import AnyArray


@dataclass(frozen=True)
class Patience:
    """How carefully to measure.

    Attributes
    ----------
    runs : at most so many, after ``warm`` that do not count
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


def require_runtime(path: object) -> None:
    """Check that models can be run here.

    Raises
    ------
    InputError : the package onnxruntime is not installed
    """
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        raise InputError(
            "measuring needs the package onnxruntime", str(path), "pip install 'nmsolve[onnx,runtime]'"
        ) from None


def runtime_name() -> str:
    """Return name and version of the runtime."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}"


class Session:
    """A model ready to run on the host with some threads.

    Parameters
    ----------
    model : bytes of the model, or its file
    fused : with all optimisations but those of memory layout; otherwise with none
    optimised : where to write the model as the runtime runs it
    profile : prefix of the file that its profiler writes

    Raises
    ------
    BackendError : the runtime does not take the model
    """

    def __init__(
        self,
        model: bytes | Path,
        threads: int,
        *,
        fused: bool = False,
        optimised: Path | None = None,
        profile: Path | None = None,
    ) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        level = ort.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_ENABLE_EXTENDED if fused else level.ORT_DISABLE_ALL
        options.log_severity_level = 4
        if optimised is not None:
            options.optimized_model_filepath = str(optimised)
            options.add_session_config_entry(
                "session.optimized_model_external_initializers_file_name", f"{optimised.name}.data"
            )
        if profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, str(profile)
        source = model if isinstance(model, bytes) else str(model)
        self._session = _told(
            lambda: ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        )
        self._binding = self._session.io_binding()
        self._held: list[Any] = []

    def feed(self, inputs: Mapping[str, AnyArray], outputs: tuple[str, ...]) -> None:
        """Bind inputs and outputs.

        Raises
        ------
        BackendError : they do not fit the model
        """
        import onnxruntime as ort

        for name, array in inputs.items():
            self._held.append(_told(ort.OrtValue.ortvalue_from_numpy, array))
            _told(self._binding.bind_ortvalue_input, name, self._held[-1])
        for name in outputs:
            _told(self._binding.bind_output, name, "cpu")

    def run(self) -> None:
        """Run once.

        Raises
        ------
        BackendError : the runtime fails
        """
        _told(self._session.run_with_iobinding, self._binding)

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


def _told(call: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Return what a call of the runtime gives; its errors, which have many types, in one line."""
    try:
        return call(*arguments, **settings)
    except Exception as error:  # noqa: BLE001 -- the runtime's exceptions share no base class but this one
        words = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise BackendError(f"onnxruntime: {words}") from None
