"""Writing the exact models of a mapping problem to files, for other solvers and for reading."""

from __future__ import annotations

from pathlib import Path

from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.exact.size import refusal

#: Files that :func:`write_model` makes.
FILES = ("mapping.lp", "mapping.mps", "mapping.cpsat.pb", "mapping.cpsat.pbtxt")


def write_model(problem: MappingProblem, folder: str | Path) -> tuple[Path, ...]:
    """Write the mixed-integer model as LP and MPS and the CP-SAT model as binary and text proto.

    Variable names are those of docs/models.md: ``x(3_7)`` is node 3 on core 7. The problem must hold no
    ``together`` constraint (see :func:`nmsolve.model.mapping.reduce.merge_together`).

    Returns the paths written (see ``FILES``).

    Raises
    ------
    InputError : the problem is too large to be stated exactly, or the folder cannot be written
    """
    why = refusal(problem)
    if why is not None:
        raise InputError(f"no model is written: {why}", "--write-model", "a smaller problem")
    from nmsolve.solvers.mapping.cpsat.model import build as build_cpsat
    from nmsolve.solvers.mapping.mip.model import build as build_mip

    folder = Path(folder)
    paths = tuple(folder / name for name in FILES)
    mip, cpsat = build_mip(problem).model, build_cpsat(problem).model
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths[:2]:
            mip.write(str(path), io_options={"symbolic_solver_labels": True})
        written = [cpsat.export_to_file(str(path)) for path in paths[2:]]
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot write the model: {reason}", str(folder), "a folder that can be written"
        ) from error
    if not all(written):
        raise InputError("cannot write the model", str(folder), "a folder that can be written")
    return paths
