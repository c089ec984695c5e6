"""Writing the twin models of any problem to files, for other solvers and for reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError

#: Endings of the files that :func:`write_model` makes.
ENDINGS = (".lp", ".mps", ".cpsat.pb", ".cpsat.pbtxt")


def require_statable(why: str | None) -> None:
    """Raise InputError if there is a reason ``why`` exact engines refuse the problem."""
    if why is not None:
        raise InputError(f"no model is written: {why}", "--write-model", "a smaller or simpler problem")


def write_model(name: str, mip: Any, cpsat: Any, folder: str | Path) -> tuple[Path, ...]:
    """Write a mixed-integer model as LP and MPS and its CP-SAT twin as binary and text proto.

    Variables have the names of docs/models.md: ``x(3_7)`` is node 3 on core 7. LP and MPS have the user's objective,
    whatever the model is scaled by inside. The protos hold whole numbers, and the model's name says what the objective is
    multiplied by (scaled back, values would be within CP-SAT's absolute gap limit of 10^-4).

    Parameters
    ----------
    name : of the files, before :data:`ENDINGS`
    mip, cpsat : built models as :mod:`.mip` and :mod:`.cpsat` take them, with ``claim.factor``; not to be solved afterwards

    Raises
    ------
    InputError : the folder cannot be written
    """
    folder = Path(folder)
    paths = tuple(folder / f"{name}{ending}" for ending in ENDINGS)
    mip.model.cost.set_value(mip.model.cost.expr / mip.claim.factor)
    cpsat.model.proto.name = f"{name}, objective times {cpsat.claim.factor!r}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths[:2]:
            mip.model.write(str(path), io_options={"symbolic_solver_labels": True})
        written = [cpsat.model.export_to_file(str(path)) for path in paths[2:]]
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot write the model: {reason}", str(folder), "a folder that can be written"
        ) from error
    if not all(written):
        raise InputError("cannot write the model", str(folder), "a folder that can be written")
    return paths
