"""Reports of answers written again from the files of problem and answer, for :mod:`nmsolve.kinds.check_fields`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nmsolve.kinds.check_fields import RUN, inputs_of_options
from nmsolve.model.bound import Bound


class Again(NamedTuple):
    """A report written again; ``unread``: its fields that nothing can be said of."""

    content: dict[str, Any]
    unread: frozenset[str]


def inputs_again(
    report: Mapping[str, Any], inputs: msgspec.Struct, options: Collection[str] = ()
) -> dict[str, Any]:
    """Return the inputs of a report as they would be written again: those that state the problem, and ``options``."""
    said = report.get("inputs") or {}
    stated = msgspec.to_builtins(inputs)
    return {k: v for k, v in stated.items() if k in said} | inputs_of_options(report, options)


def as_written(report: msgspec.Struct, bounds: Sequence[Bound] | None, unread: Collection[str] = ()) -> Again:
    """Return a report as its file would hold it; without ``bounds`` these are not read."""
    content = msgspec.json.decode(msgspec.json.encode(report))
    return Again(content, RUN | frozenset(unread) | frozenset(() if bounds is not None else ("bounds",)))
