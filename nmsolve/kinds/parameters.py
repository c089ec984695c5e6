"""How parameters of commands are written and what is said of them: the second part of their annotations.

:mod:`nmsolve.cli.app` hands them to typer. Whoever uses a kind from Python does not load it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """A parameter of a command.

    Attributes
    ----------
    help : what it means
    names : of an option, e.g. ``--out`` and ``-o``; none: ``--`` and the name of its field
    argument : it has no name, and stands where it stands
    parser : makes the value from text, in place of its type
    callback : checks the value and returns it
    metavar : what stands for the value in help
    min, max : of a number
    """

    help: str
    names: tuple[str, ...] = ()
    argument: bool = False
    parser: Callable[[str], Any] | None = None
    callback: Callable[[Any], Any] | None = None
    metavar: str | None = None
    min: float | None = None
    max: float | None = None


def Option(*names: str, help: str, **more: Any) -> Parameter:
    """Return a parameter with names; fields as of :class:`Parameter`."""
    return Parameter(help, names, **more)


def Argument(*, help: str, **more: Any) -> Parameter:
    """Return a parameter without a name; fields as of :class:`Parameter`."""
    return Parameter(help, argument=True, **more)
