"""ONNX Runtime (extra ``runtime``): whether it is there, and sessions, alike for what is measured and what is executed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.formats.onnx.parse import first_line
from nmsolve.model.types import AnyArray

#: Names of ONNX Runtime's graph optimisations, from none to all.
LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


def require_runtime(where: str | Path = "", doing: str = "running ONNX models") -> None:
    """Check that models can be executed here.

    Parameters
    ----------
    doing : what needs it

    Raises
    ------
    InputError : the package onnxruntime is not installed
    """
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        raise InputError(
            f"{doing} needs the package onnxruntime", str(where), "pip install 'nmsolve[onnx,runtime]'"
        ) from None


def runtime_name() -> str:
    """Return name and version of the runtime."""
    import onnxruntime

    return f"onnxruntime {onnxruntime.__version__}"


def session_of(
    model: bytes, where: str | Path, threads: int = 1, level: str = "basic", *,
    optimised: Path | None = None, profile: Path | None = None,
) -> Any:  # fmt: skip
    """Return an ``InferenceSession`` on the CPU for a serialised model.

    Parameters
    ----------
    threads : of one operator; threads do not spin while they wait, as other sessions need the processor
    level : graph optimisation, a name of :data:`LEVELS`
    optimised : where to write the model as the runtime runs it
    profile : prefix of the file that the runtime's profiler writes

    Raises
    ------
    InputError : ONNX Runtime does not accept the model, or is not installed
    """
    require_runtime(where)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[level])
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4  # errors come back as exceptions
    if optimised is not None:
        options.optimized_model_filepath = str(optimised)
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", f"{optimised.name}.data"
        )
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # its own classes have no common root
        raise InputError(
            f"ONNX Runtime does not accept the model: {first_line(error)}",
            str(where),
            "a model that it can run",
        ) from None


def run_session(session: Any, outputs: list[str], feeds: dict[str, Any], where: str | Path) -> list[Any]:
    """Return the ``OrtValue`` of every output.

    Raises
    ------
    InputError : ONNX Runtime fails, e.g. because shapes do not fit the model
    """
    try:
        found: list[Any] = session.run_with_ort_values(outputs, feeds)
    except Exception as error:  # noqa: BLE001  # its own classes have no common root
        raise InputError(
            f"ONNX Runtime fails: {first_line(error)}",
            str(where),
            "a model that it can run with these inputs",
        ) from None
    return found


#: Kinds of numpy's own numbers and truth values, which ONNX Runtime takes as they are.
OWN_KINDS = "biuf"


def to_runtime(array: AnyArray, element_type: int) -> Any:
    """Return an ``OrtValue`` that reads the array's own memory.

    Parameters
    ----------
    element_type : number of ONNX's data type; those that numpy has not are arrays of the package ml_dtypes

    Raises
    ------
    InputError : it holds texts, which ONNX Runtime does not take this way
    """
    import onnxruntime

    if array.dtype.kind not in OWN_KINDS + "V":
        raise InputError(f"a tensor of {array.dtype}", "", "numbers or truth values")

    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind in OWN_KINDS:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    bits = array.view(f"u{array.dtype.itemsize}")
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, element_type)


def to_numpy(value: Any, name: str) -> AnyArray:
    """Return a copy of a tensor.

    Raises
    ------
    InputError : it is no tensor, or of a type that numpy has not
    """
    if not value.is_tensor():
        raise InputError(f"value {name!r} is a {value.data_type()}", "", "a tensor")
    try:
        return np.array(value.numpy(), copy=True)
    except RuntimeError:
        raise InputError(f"value {name!r} is a {value.data_type()}", "", "a type that numpy has") from None


def sent(value: Any, name: str) -> Any:
    """Return a copy in memory of its own: what a transfer between two memories does.

    What cannot be copied through numpy (sequences, texts, rare types) is handed over as it is.
    """
    try:
        return to_runtime(to_numpy(value, name), value.element_type())
    except InputError:
        return value


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
