"""The learned parts, by the name that ``nmsolve bench learn`` knows them by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from nmsolve.kinds.mapping.learned.suite import Row, Suite
from nmsolve.learn.checkpoint import DUALS


@dataclass(frozen=True)
class Part:
    """A learned part.

    Attributes
    ----------
    title : of its table
    base : what it is compared with, for the text above the table
    models : methods of the models that it uses, as :mod:`nmsolve.learn.checkpoint` names them
    """

    title: str
    base: str
    models: tuple[str, ...] = ()

    def compare(self, name: str) -> Callable[[Suite], Iterator[Row]]:
        """Return what compares; ``name`` is that of the part and of its module here."""
        function: Callable[[Suite], Iterator[Row]] = import_module(
            f"nmsolve.kinds.mapping.learned.{name}"
        ).compare
        return function


PARTS = {
    "published": Part(
        "Method M1 as published",
        "the same engine with a network that has learned nothing; the gain is in the objective of the best placement",
        ("m1",),
    ),
    "duals": Part(
        "Predicted multipliers",
        "the same ascents from their usual start, which take T to their end (4 CPU s at most) and reach the bound B; the gain is "
        "in the bound at T/10, in parts of B. `constant` knows only loads, `random` is shuffled, `perfect` begins with the end",
        tuple(f"duals-{bound}" for bound in DUALS),
    ),
}
