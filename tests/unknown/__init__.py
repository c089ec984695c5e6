"""Inputs with something that their reader does not know, a module per area: each has ``ROWS``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A file that holds what its reader does not know.

    Attributes
    ----------
    reader : module of the reader below ``nmsolve``, e.g. ``model.formats.edge_list``
    read : what reads the file
    file : its name
    content : its text or bytes, or what writes it to a path
    unknown : the member, column, section, unit or type; the refusal or the warning names it
    """

    reader: str
    read: Callable[[Path], object]
    file: str
    content: str | bytes | Callable[[Path], None]
    unknown: str

    def write(self, folder: Path) -> Path:
        """Write the file into ``folder``, and return its path."""
        path = folder / self.file
        if callable(self.content):
            self.content(path)
        else:
            path.write_bytes(self.content.encode() if isinstance(self.content, str) else self.content)
        return path
