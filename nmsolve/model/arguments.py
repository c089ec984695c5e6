"""Arguments of the functions that ``import nmsolve`` offers, checked by their annotations where these are plain."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from nmsolve.model.errors import InputError, shortened

P = ParamSpec("P")
R = TypeVar("R")

#: Plain types by their names in annotations, and what they are in words.
_PLAIN: dict[str, tuple[type, str]] = {
    "str": (str, "text"), "int": (numbers.Integral, "a whole number"), "float": (numbers.Real, "a number"),
    "bool": (bool, "True or False"), "Path": (os.PathLike, "a path"), "None": (type(None), "None"),
    "Sequence[str]": (Sequence, "several of them"), "Mapping[str, int]": (Mapping, "name -> number"),
}  # fmt: skip


def plain_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments of other types than the annotations of ``function`` say, as InputError; types that are not plain pass."""
    annotations: dict[str, object] = inspect.get_annotations(function)
    kinds = {name: str(text).split(" | ") for name, text in annotations.items() if name != "return"}
    plain = {name: parts for name, parts in kinds.items() if all(part in _PLAIN for part in parts)}
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            parts = plain.get(name)
            if parts is None:
                continue
            fits = isinstance(value, tuple(_PLAIN[part][0] for part in parts))
            if not fits or (isinstance(value, bool) and "bool" not in parts):
                wanted = ", ".join(_PLAIN[part][1] for part in parts)
                raise InputError(f"{name} is {shortened(repr(value))}", function.__name__, wanted)
        return function(*args, **kwargs)

    return called
