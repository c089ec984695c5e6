"""``nmsolve score`` and ``nmsolve verify`` of any answer: from files alone, without trusting what made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.check_front import front_checks, front_file
from nmsolve.kinds.kind import Scores
from nmsolve.kinds.loading import WrongTypeError
from nmsolve.kinds.parts import CheckPart
from nmsolve.kinds.registry import kind_of
from nmsolve.model.file_set import settle

if TYPE_CHECKING:
    from nmsolve.kinds.verbs import ScoreOptions, VerifyOptions


def scored(o: ScoreOptions) -> Scores:
    """Return every objective of an answer, of whatever kind.

    Raises
    ------
    InputError : files that cannot be read, an answer that breaks a rule, or options that do not apply to it
    """
    kind, path = kind_of(o.mapping, o.graph)
    return kind.score(path, o)


def checked(o: VerifyOptions) -> list[CheckPart]:
    """Return all checks of an answer, of whatever kind, from its files; a single one if a field has a wrong type.

    Raises
    ------
    InputError : files that cannot be read, of different runs, or options that do not apply to them
    """
    settle(o.mapping if o.mapping.is_dir() else o.mapping.parent)
    kind, path = kind_of(o.mapping)
    front = front_file(o.mapping) if path == o.mapping else None
    try:
        return kind.verify(path, o) if front is None else front_checks(front, o)
    except WrongTypeError as error:
        return [CheckPart("types", False, str(error))]
