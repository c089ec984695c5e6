"""What a shell offers to complete: presets, objectives, engines, generators. Each asks its table when a key is pressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from nmsolve.kinds.registry import FOLDERS, GENERATORS, options_of
from nmsolve.model.lookup import named


def _last(names: Iterable[str], incomplete: str, separators: str = ",") -> list[str]:
    """Return what completes the last part of a list that is being written."""
    start = 1 + max(incomplete.rfind(s) for s in separators)
    return [incomplete[:start] + name for name in names if name.startswith(incomplete[start:])]


def _files(incomplete: str, ending: str) -> Iterator[str]:
    """Return folders and files of one kind."""
    for path in sorted(Path().glob(f"{incomplete}*") if not incomplete.startswith("/") else ()):
        if path.is_dir() or path.suffix == ending:
            yield f"{path}/" if path.is_dir() else str(path)


def machines(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return presets, and files of machines."""
    command = str(ctx.info_name).split()[-1]
    own = getattr(options_of(command), "MACHINES", None) if command in FOLDERS else None
    presets: Iterable[str] = named(own or "hw.machines:list_presets")()
    return [name for name in presets if name.startswith(incomplete)] + list(_files(incomplete, ".toml"))


def objectives(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return objectives of the command's problem; several may stand in a row."""
    name = (
        ctx.info_name if ctx.info_name in FOLDERS else "map"
    )  # of other commands they are those of mappings
    return _last(named(options_of(name).OBJECTIVE_TABLE), incomplete)


def engines(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return engines of the command's problem; several may stand in a row."""
    names = [ctx.info_name] if ctx.info_name in FOLDERS else list(FOLDERS)  # gap, resume, bench take all
    tables = [named(f"solvers.{FOLDERS[name]}.registry:REGISTRY") for name in names]
    return _last(["auto", *(name for table in tables for name in table)], incomplete, ",+")


def generators(incomplete: str) -> list[str]:
    """Return kinds of networks to generate."""
    from nmsolve.model.generators import GENERATORS as OF_GRAPHS

    return [name for name in (*OF_GRAPHS, *GENERATORS, "list") if name.startswith(incomplete)]


#: What completes a parameter, by its name.
COMPLETED = {
    "machine": machines, "objective": objectives, "pareto": objectives, "engines": engines, "methods": engines,
    "kind": generators,
}  # fmt: skip
