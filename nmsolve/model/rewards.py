"""Rewards of methods M1 and M5 as users state them: weights of named terms, and terms of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import read_limited, read_table
from nmsolve.model.types import FloatArray

#: What the name of a file of terms ends with.
FILE = ".toml"


@dataclass(frozen=True)
class Weighed:
    """Weights >= 0 of a reward's terms, one field each, and ``own`` terms beside them."""

    def __post_init__(self) -> None:
        for name, value in self.weights.items():
            _weight(name, value, "reward")

    @property
    def weights(self) -> dict[str, float]:
        """The weights by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "own"}


class StatedReward(NamedTuple):
    """What a text or file says.

    Attributes
    ----------
    weights : of terms by name
    own : tables of terms of one's own by name, as the file has them
    where : the option, or the file
    """

    weights: dict[str, float]
    own: dict[str, dict[str, object]]
    where: str


def stated_reward(text: str | None) -> StatedReward:
    """Return what ``--reward`` says: ``deadlock=0,hops=0.5``, or the path of a TOML file of such weights and of tables.

    Raises
    ------
    InputError : no such file, no TOML; a weight that is no finite number >= 0
    """
    path = (text or "").strip()
    if not path.lower().endswith(FILE):
        return StatedReward(_weights(path), {}, "--reward")
    table = read_table(read_limited(path), path)
    own = {name: value for name, value in table.items() if isinstance(value, dict)}
    weights = {name: _weight(name, value, path) for name, value in table.items() if name not in own}
    return StatedReward(weights, own, path)


def _weights(text: str) -> dict[str, float]:
    """Return the weights of a text like ``deadlock=0,hops=0.5``."""
    out: dict[str, float] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = (p.strip() for p in part.partition("="))
        try:
            out[name] = _weight(name, float(value), "--reward")
        except ValueError:
            raise InputError(
                f"the weight {part!r}", "--reward", "NAME=NUMBER, with commas, or a file of terms (.toml)"
            ) from None
    return out


def _weight(name: str, value: object, where: str) -> float:
    """Return a weight as stated."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InputError(f"the reward's weight {name} is {value}", where, "a finite number >= 0")
    return float(value)


def own_table(
    stated: StatedReward, name: str, forms: Sequence[str], taken: Sequence[str]
) -> tuple[float, str, FloatArray]:
    """Return weight, form and numbers of a term of one's own: a table with ``weight`` (1 if not given) and one of ``forms``.

    ``taken`` : names of the reward's other terms

    Raises
    ------
    InputError : a name that is taken, other keys, no or several forms, or numbers that are not finite or below 0
    """
    table, where = dict(stated.own[name]), f"{stated.where}, [{name}]"
    if name in taken:
        raise InputError(
            "the reward has a term of this name", where, f"a weight: {name} = 1, or another name"
        )
    weight = _weight(name, table.pop("weight", 1.0), where)
    if len(table) != 1 or not set(table) <= set(forms):
        raise InputError(
            f"it has {', '.join(table) or 'nothing'} beside its weight", where, "one of " + ", ".join(forms)
        )
    ((form, values),) = table.items()
    return weight, form, prices(values, f"{where} {form}")


def prices(values: object, where: str) -> FloatArray:
    """Return numbers as an array; InputError if they are none, not finite or below 0, or rows differ in length."""
    try:
        found = np.array(values)
    except (TypeError, ValueError, OverflowError):  # rows of different length, and what no array is made of
        found = np.empty(0)
    if not found.size or found.dtype.kind not in "iuf" or not (np.isfinite(found) & (found >= 0)).all():
        raise InputError("these are no prices", where, "finite numbers >= 0, as many in every row")
    return found.astype(np.float64)
