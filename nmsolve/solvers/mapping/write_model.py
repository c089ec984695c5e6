"""Writing the exact models of a mapping problem to files, for other solvers and for reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmsolve.hw.cost import uses_links
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.exact.size import refuses_exact

#: Files that :func:`write_model` makes.
FILES = ("mapping.lp", "mapping.mps", "mapping.cpsat.pb", "mapping.cpsat.pbtxt")


def write_model(
    problem: MappingProblem, folder: str | Path, *, free_routes: bool = False
) -> tuple[Path, ...]:
    """Write the mixed-integer model as LP and MPS and the CP-SAT model as binary and text proto.

    Variable names are those of docs/models.md: ``x(3_7)`` is node 3 on core 7. The problem must hold no
    ``together`` constraint (see :func:`nmsolve.model.mapping.reduce.merge_together`).

    With ``free_routes`` it is the joint model, in which messages choose their route trees.

    Returns the paths written (see ``FILES``).

    Raises
    ------
    InputError : the problem is too large to be stated exactly, or the folder cannot be written
    """
    why = _refusal(problem, free_routes)
    if why is not None:
        raise InputError(f"no model is written: {why}", "--write-model", "a smaller problem")
    folder = Path(folder)
    paths = tuple(folder / name for name in FILES)
    mip, cpsat = _models(problem, free_routes)
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


def _refusal(problem: MappingProblem, free_routes: bool) -> str | None:
    if not free_routes:
        return refuses_exact(problem)
    from nmsolve.solvers.mapping.joint.engines import refuses_model
    from nmsolve.solvers.mapping.joint.problem import JointProblem, require_links

    require_links(problem)
    return refuses_model(JointProblem(problem))


def _models(problem: MappingProblem, free_routes: bool) -> tuple[Any, Any]:
    """The Pyomo model and the CP-SAT model."""
    if free_routes or uses_links(problem) or problem.ceilings:
        from nmsolve.solvers.mapping.joint.cpsat import build as routed_cpsat
        from nmsolve.solvers.mapping.joint.mip import build as routed_mip

        return routed_mip(problem, free=free_routes).model, routed_cpsat(problem, free=free_routes).model
    from nmsolve.solvers.mapping.cpsat.model import build as build_cpsat
    from nmsolve.solvers.mapping.mip.model import build as build_mip

    return build_mip(problem).model, build_cpsat(problem).model
