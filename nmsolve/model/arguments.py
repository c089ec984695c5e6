"""Arguments of the functions that ``import nmsolve`` offers, checked by their annotations as far as these can be checked."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from nmsolve.model.errors import InputError, shortened

P = ParamSpec("P")
R = TypeVar("R")

#: Types by their names in annotations, and what they are in words.
_PLAIN: dict[str, tuple[Any, str]] = {
    "str": (str, "text"), "int": (numbers.Integral, "a whole number"), "float": (numbers.Real, "a number"),
    "bool": (bool, "True or False"), "Path": (os.PathLike, "a path"), "None": (type(None), "None"),
    "object": (object, "anything"), "Sequence": (Sequence, "a list"), "Mapping": (Mapping, "a mapping"),
    "tuple": ((tuple, list), "a tuple"), "Callable": (Callable, "a function"),
}  # fmt: skip
#: Numbers that may come as text with a unit, or as a word, too: what reads them says what is wrong.
_QUANTITIES = {"time_limit", "workers"}


class _Type(NamedTuple):
    """One type of an annotation: what ``isinstance`` takes, its words, and the alternatives of each thing inside.

    ``text`` : text may stand for several, e.g. names of engines: one of the alternatives inside is text, others cannot be told
    """

    is_a: Any
    words: str
    inside: tuple[_Union, ...] = ()
    text: bool = False

    def fits(self, value: object) -> bool:
        """Return whether a value is of this type."""
        if isinstance(value, bool) and self.is_a not in (bool, object):
            return False
        if not isinstance(value, self.is_a):
            return False
        if isinstance(value, str | bytes) and self.is_a is Sequence:
            return self.text and isinstance(value, str)
        if isinstance(value, Mapping) and len(self.inside) == 2:
            keys, values = self.inside
            return all(keys.fits(k) and values.fits(v) for k, v in value.items())
        if self.is_a is Sequence and self.inside:
            return all(self.inside[0].fits(one) for one in value)  # type: ignore[attr-defined]
        if self.inside:
            return len(value) == len(self.inside) and all(  # type: ignore[arg-type]
                kind.fits(one)
                for kind, one in zip(self.inside, value, strict=True)  # type: ignore[call-overload]
            )
        return True


class _Union(NamedTuple):
    """The types that a value may have."""

    types: tuple[_Type, ...]

    def fits(self, value: object) -> bool:
        """Return whether a value is of one of them."""
        return any(one.fits(value) for one in self.types)

    @property
    def words(self) -> str:
        """Return what is wanted."""
        return ", ".join(one.words for one in self.types)


def plain_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments of other types than the annotations of ``function`` say, as InputError; what these do not say passes.

    Names are looked up where the function is; aliases and protocols are not looked into. A ``TypedDict`` of further options
    (``Unpack``) counts as if its keys were arguments.
    """
    signature = inspect.signature(function)
    wanted: dict[str, _Union] | None = None  # made at the first call: what the module imports is known then

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal wanted
        if wanted is None:
            wanted = dict(_wanted(function))
        given = signature.bind(*args, **kwargs).arguments
        rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), "")
        for name, value in {**given, **given.get(rest, {})}.items():
            if name in wanted and not wanted[name].fits(value):
                raise InputError(f"{name} is {shortened(repr(value))}", function.__name__, wanted[name].words)
        return function(*args, **kwargs)

    return called


def _wanted(function: Callable[..., Any]) -> Iterator[tuple[str, _Union]]:
    """Yield the name of every argument whose types are known, and these."""
    here = inspect.unwrap(function).__globals__
    for name, annotation in inspect.get_annotations(function).items():
        text = str(annotation)
        if text.startswith("Unpack["):
            for key, inner in here[text[len("Unpack[") : -1]].__annotations__.items():
                module = getattr(inner, "__forward_module__", None)
                where = sys.modules[module].__dict__ if isinstance(module, str) else here
                found = _union(str(getattr(inner, "__forward_arg__", inner)), where)
                if found is not None and key not in _QUANTITIES:
                    yield key, found
        elif name != "return" and (found := _union(text, here)) is not None:
            yield name, found


def _union(text: str, where: Mapping[str, Any]) -> _Union | None:
    """Return the types of an annotation; None where one of them cannot be told."""
    types = [_type(part, where) for part in _split(text, " | ")]
    return None if None in types else _Union(tuple(one for one in types if one is not None))


def _type(text: str, where: Mapping[str, Any]) -> _Type | None:
    """Return one type; None for an alias, a protocol or a name that is not there."""
    name, _, rest = text.partition("[")
    inside = [_union(part, where) for part in _split(rest[:-1], ", ")] if rest and name != "Callable" else []
    known = tuple(one for one in inside if one is not None)
    if name in _PLAIN:
        is_a, words = _PLAIN[name]
        known = known if len(known) == len(inside) else ()
        each = [" or ".join(t.words for t in one.types) for one in known]
        of = f" of {(' -> ' if name == 'Mapping' else ' and ').join(each)}" if each else ""
        return _Type(is_a, words + of, known, not known and "str" in _split(rest[:-1], " | "))
    found = where.get(name)
    if not isinstance(found, type) or getattr(found, "_is_protocol", False):
        return None
    return _Type(found, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")


def _split(text: str, between: str) -> list[str]:
    """Split a type at what stands ``between``, outside all brackets."""
    parts, depth = [""], 0
    for part in text.split(between):
        parts[-1] += part
        depth += part.count("[") - part.count("]")
        if depth:
            parts[-1] += between
        else:
            parts.append("")
    return parts[:-1]
