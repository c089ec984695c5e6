"""Graph formats of other packages: an entry point's name is the extension, its object a module with ``load``, perhaps ``save``.

A foreign reader gets a stranger's file: both stay in a contained process (:mod:`nmsolve.model.contained`), in which the
package is imported, too. The graph comes back as plain arrays, and is checked as if it had been read from an archive of ours.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError, InputWarning, doubtful
from nmsolve.model.files import input_file, mode_of, reason
from nmsolve.model.formats.npz_own import own_graph, own_members
from nmsolve.model.graph import LogicGraph
from nmsolve.model.plugins import in_a_line, load, package_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Foreign:
    """A format of another package, in the place of a module of ours."""

    entry: EntryPoint

    def load(self, path: Path) -> LogicGraph:
        """Read a graph.

        Raises
        ------
        InputError : no such file; the package cannot be imported, or fails, or gives no graph
        """
        with input_file(path):  # a missing file is no fault of the package
            pass
        return own_graph(one_reply(partial(_read, self.entry, path), path).arrays, path)

    @property
    def save(self) -> Callable[[LogicGraph, Path], None] | None:
        """What writes a graph as :func:`nmsolve.model.formats.save_graph` does, or None. InputError if the package cannot be
        imported."""
        write = getattr(load(self.entry), "save", None)
        return None if write is None else partial(_write, self.entry, write)


def _read(entry: EntryPoint, path: Path) -> Reply:
    """Return the arrays of a graph; errors and warnings that are not ours are those of the package, and named so."""
    try:
        with warnings.catch_warnings(record=True) as seen:
            graph = load(entry).load(path)
        for warning in seen:
            _pass_on(warning.message, entry, path)
        if not isinstance(graph, LogicGraph) or graph.on_disk:
            raise TypeError(f"it gave {type(graph).__name__}, no LogicGraph in memory")
        return Reply(None, own_members(graph))
    except (InputError, MemoryError, RecursionError):
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the reader of {package_of(entry)} failed ({in_a_line(error)})", str(path)
        ) from error


def _pass_on(message: Warning | str, entry: EntryPoint, path: Path) -> None:
    """Give on what a reader warns of; warnings for programmers (deprecated calls and the like) are not for users."""
    if isinstance(message, InputWarning):
        warnings.warn(message, stacklevel=2)
    elif isinstance(message, UserWarning):
        said = f"the reader of {package_of(entry)} warns: {in_a_line(message)}"
        doubtful(said, str(path), "a file that it reads without")


def _write(
    entry: EntryPoint, write: Callable[[LogicGraph, Path], None], graph: LogicGraph, path: Path
) -> None:
    """Write a file of the same name into a folder beside it first, so that an existing one survives any failure."""
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:80]}.") as folder:
            made = Path(folder) / path.name
            try:
                write(graph, made)
            except InputError:
                raise
            except (Exception, SystemExit) as error:
                text = f"the writer of {package_of(entry)} failed ({in_a_line(error)})"
                raise InputError(text, str(path)) from error
            os.chmod(made, mode_of(path))
            os.replace(made, path)
    except OSError as error:
        raise InputError(f"cannot write: {reason(error)}", str(path), "a writable folder") from None
