"""Plain words of a command line as its options, without typer: loading it takes a third of the time that a run needs to start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from nmsolve.kinds.parameters import Parameter
from nmsolve.model.errors import InputError

#: How numbers are plainly written.
_NUMBERS = {int: re.compile(r"\d{1,15}", re.ASCII), float: re.compile(r"\d{1,15}(\.\d{1,15})?", re.ASCII)}


class _NotPlain(Exception):
    """Typer has to look at the words."""


class _Field(NamedTuple):
    """A field of options.

    Attributes
    ----------
    kind : the type of its value, or of each of its values
    several : it takes more than one
    """

    name: str
    kind: Any
    several: bool
    parameter: Parameter

    def value(self, text: str) -> Any:
        """Return the value that a text gives, if it is plain and allowed."""
        p = self.parameter
        if p.parser is not None:
            value = p.parser(text)
        elif self.kind in _NUMBERS:
            if not _NUMBERS[self.kind].fullmatch(text):
                raise _NotPlain
            value = self.kind(text)
        elif self.kind in (str, Path) and text:
            value = self.kind(text)
        else:
            raise _NotPlain
        if (p.min is not None and value < p.min) or (p.max is not None and value > p.max):
            raise _NotPlain
        return value if p.callback is None else p.callback(value)


def read(options: type, words: Sequence[str]) -> Any | None:
    """Return the ``options``, a dataclass, that plain words state; None where typer has to look at them.

    Plain are arguments, and options by their whole names with values that do not begin with ``-``; an option that takes one value
    stands once. Typer also has rarer ways to write them. It says what is wrong with words, and gives help.
    """
    hints = get_type_hints(options, include_extras=True)
    try:
        values = _values([_field(f.name, hints[f.name]) for f in fields(options)], words)
    except (_NotPlain, InputError):  # typer comes to the same error, in its order
        return None
    missing = {f.name for f in fields(options) if f.default is MISSING} - values.keys()
    return None if missing else options(**values)


def _field(name: str, hint: Any) -> _Field:
    kind, parameter = get_args(hint)
    if isinstance(kind, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    several = get_origin(kind) is list
    return _Field(name, get_args(kind)[0] if several else kind, several, parameter)


def _values(known: Sequence[_Field], words: Sequence[str]) -> dict[str, Any]:
    """Return values by the names of their fields."""
    by_name = _by_name(known)
    rest, stated, values = list(words), list[str](), dict[str, Any]()
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            stated.append(word)
            continue
        name, equals, text = word.partition("=")
        field = by_name.get(name)
        if field is None or (equals and (field.kind is bool or not name.startswith("--"))):
            raise _NotPlain
        if field.kind is bool:
            _put(values, field, True)
            continue
        if not equals:
            text = rest.pop(0) if rest else "-"
        if text.startswith("-"):
            raise _NotPlain
        _put(values, field, field.value(text))
    for field in (f for f in known if f.parameter.argument):
        taken, stated = (stated, []) if field.several else (stated[:1], stated[1:])
        for text in taken:
            _put(values, field, field.value(text))
    if stated:
        raise _NotPlain
    return values


def _by_name(known: Sequence[_Field]) -> Mapping[str, _Field]:
    """Return options by each of their names; those that can also be denied (``--fused/--no-fused``) are typer's."""
    out: dict[str, _Field] = {}
    for field in known:
        if not field.parameter.argument:
            names = field.parameter.names or (f"--{field.name.replace('_', '-')}",)
            out |= dict.fromkeys((name for name in names if "/" not in name), field)
    return out


def _put(values: dict[str, Any], field: _Field, value: Any) -> None:
    if field.several:
        values.setdefault(field.name, []).append(value)
    elif field.name in values:
        raise _NotPlain
    else:
        values[field.name] = value
