"""One way to weaken an engine."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """Replace ``old``, which occurs once in ``file`` (within the package), by ``new``; then ``test`` must fail.

    ``engine`` is the name in a registry, ``what`` the mutation in words. ``floor``: the test fails by a floor of strength, else
    because something is wrong.
    """

    engine: str
    what: str
    test: str
    file: str
    old: str
    new: str
    floor: bool = True
