"""The log that the allocation is fitted to: runs of single engines with their curves, one line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmsolve.model.errors import InputError

#: Points of a curve that are kept.
POINTS = 40


@dataclass(frozen=True)
class Slice:
    """One run of one engine.

    Attributes
    ----------
    instance : name of the problem
    features : of the problem (:func:`.features.features_of`)
    proves : the engine finds bounds; the curve is one of bounds, else of objectives
    limit : seconds that it was given
    took : CPU seconds that its process needed
    curve : seconds and values, each better than the one before
    """

    instance: str
    features: Sequence[float]
    engine: str
    proves: bool
    limit: float
    took: float
    curve: Sequence[tuple[float, float]]

    def line(self) -> str:
        """Return the run as a line of the file."""
        return json.dumps(vars(self)) + "\n"


def read_slices(path: Path) -> list[Slice]:
    """Return the runs in a file, none if there is no file; a last line that was cut off is left out.

    Raises
    ------
    InputError : a line that is no run
    """
    if not path.exists():
        return []
    out: list[Slice] = []
    for number, line in enumerate(path.read_text().split("\n")[:-1]):
        try:
            read = json.loads(line)
            out.append(Slice(**(read | {"curve": [(at, value) for at, value in read["curve"]]})))
        except (ValueError, TypeError, KeyError):
            wanted = "a file of `nmsolve train auto`"
            raise InputError(f"line {number + 1} is no logged run", str(path), wanted) from None
    return out


def thinned(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return about POINTS points of a curve, the last one among them."""
    kept = list(curve[:: max(1, len(curve) // POINTS)])
    return kept if not curve or kept[-1] == curve[-1] else [*kept, curve[-1]]
