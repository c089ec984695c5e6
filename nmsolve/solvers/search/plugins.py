"""Engines of other packages: found by entry points, checked before they run, known to benchmarks by their code.

A package offers an engine for mappings in the group ``nmsolve.engines``, one for another problem in ``nmsolve.engines.pipeline``,
``.routing``, ``.assignment`` or ``.schedule``: the name of the entry point is that of the engine, its object is the class
(docs/extend.md). Nothing is imported before an engine is asked for.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nmsolve.model.errors import InputError

#: Groups of entry points, for mappings and for other problems.
GROUP = "nmsolve.engines"
#: What an engine says it finds.
FINDS = ("mappings", "bounds", "both")


def plugged(problem: str = "") -> dict[str, EntryPoint]:
    """Return by name the engines that installed packages offer for a ``problem`` (mappings if empty), in order of their names."""
    found = entry_points(group=f"{GROUP}.{problem}" if problem else GROUP)
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def load(entry: EntryPoint) -> Any:
    """Return a new engine of another package.

    Raises
    ------
    InputError : it cannot be imported or made, or is no engine, or has another name than its entry point
    """
    where = f"{entry.name} of {package_of(entry)}"
    try:
        engine = entry.load()()
    except Exception as error:
        raise InputError(
            f"engine {where} cannot be loaded ({type(error).__name__}: {error})", "--engines"
        ) from error
    require_engine(engine, where)
    if engine.name != entry.name:
        raise InputError(f"engine {where} calls itself {engine.name!r}", "--engines", "one name for both")
    return engine


def package_of(entry: EntryPoint) -> str:
    """Return the name and version of the package that an entry point is from."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def require_engine(engine: Any, where: str) -> None:
    """Raise InputError unless an object has what :class:`nmsolve.model.engine.Engine` asks for."""
    lacks = [name for name in ("refuses", "run") if not callable(getattr(engine, name, None))]
    if not isinstance(getattr(engine, "name", None), str) or not engine.name:
        lacks.insert(0, "name")
    if getattr(engine, "finds", None) not in FINDS:
        lacks.append("finds (mappings, bounds or both)")
    if isinstance(engine, type):
        raise InputError(f"{where} is a class", "engines", f"an engine: {engine.__name__}()")
    if lacks:
        raise InputError(
            f"{where} is no engine: it has no {', '.join(lacks)}", "engines", "see docs/extend.md"
        )


def code_of_plugins() -> bytes:
    """Return a digest of the source of all packages that offer engines: other code, other runs. Empty if there are none."""
    groups = ("", ".pipeline", ".routing", ".assignment", ".schedule")
    found = [one for group in groups for one in entry_points(group=GROUP + group)]
    if not found:
        return b""
    digest = hashlib.sha256()
    for one in sorted(found, key=lambda one: (one.group, one.name)):
        digest.update(f"{one.group} {one.name} {one.value} {package_of(one)}\0".encode())
    for package in sorted({one.module.partition(".")[0] for one in found}):
        for path in _sources(package):
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _sources(package: str) -> list[Path]:
    """Return the Python files of a package or module, without importing it; none if it is not there."""
    spec = find_spec(package)
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)] if spec.origin else []
    return sorted(path for root in spec.submodule_search_locations for path in Path(root).rglob("*.py"))
