"""Engines of other packages: found by entry points, checked before they run.

A package offers an engine for mappings in the group ``nmsolve.engines``, one for another problem in ``nmsolve.engines.pipeline``,
``.routing``, ``.assignment`` or ``.schedule``: the name of the entry point is that of the engine, its object is the class
(docs/extend.md). Nothing is imported before an engine is asked for.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from nmsolve.model import plugins
from nmsolve.model.errors import InputError

#: What an engine says it finds.
FINDS = ("mappings", "bounds", "both")


def plugged(problem: str = "") -> dict[str, EntryPoint]:
    """Return by name the engines that installed packages offer for a ``problem`` (mappings if empty), in order of their names."""
    return {one.name: one for one in plugins.offered(plugins.group_of(plugins.ENGINES, problem))}


def load(entry: EntryPoint) -> Any:
    """Return a new engine of another package.

    Raises
    ------
    InputError : it cannot be imported or made, or is no engine, or has another name than its entry point
    """
    where = f"{entry.name} of {plugins.package_of(entry)}"
    try:
        engine = entry.load()()
    except Exception as error:
        raise InputError(
            f"engine {where} cannot be loaded ({plugins.in_a_line(error)})", "--engines"
        ) from error
    require_engine(engine, where)
    if engine.name != entry.name:
        raise InputError(f"engine {where} calls itself {engine.name!r}", "--engines", "one name for both")
    return engine


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
