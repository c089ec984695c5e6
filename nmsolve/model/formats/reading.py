"""Options of reading: what the user says of a graph that its file cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nmsolve.model.errors import InputError


class GraphReading(msgspec.Struct, frozen=True):
    """How a graph file is read. Reports state it, so that later commands read the same graph.

    Attributes
    ----------
    pattern : every stored entry of a matrix weighs 1
    absolute : an entry of a matrix weighs its absolute value
    nodes : path of the node table beside an edge list
    multicast : every node sends one message per step to all its targets
    """

    pattern: bool = False
    absolute: bool = False
    nodes: str | None = None
    multicast: bool = False

    def options(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        return {f: v for f in GraphReading.__struct_fields__ if (v := getattr(self, f))}

    def require(self, known: tuple[str, ...], path: Path, who: str = "") -> None:
        """Refuse options that the format of this file, or ``who``, has no use for.

        Raises
        ------
        InputError : an option that is not in ``known``, or both ways to read entries
        """
        for name in self.options():
            if name not in known:
                what = f"--{name} has no meaning for {who or f'a {path.suffix.lower()} file'}"
                raise InputError(what, str(path), _FOR[name])
        if self.pattern and self.absolute:
            raise InputError("--pattern and --absolute", str(path), "one of them")


#: What files an option is for.
_FOR = dict.fromkeys(("pattern", "absolute"), "a matrix: .mtx, or an .npz of SciPy")
_FOR["nodes"] = "an edge list: .txt, .edges, .csv or .tsv"
#: A file is read as it is.
AS_IT_IS = GraphReading()
