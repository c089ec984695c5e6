"""ONNX Runtime (extra ``runtime``): whether it is there, and sessions, alike for what is measured and what is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx.parse import first_line

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
