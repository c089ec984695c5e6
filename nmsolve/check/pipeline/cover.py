"""Certificates of ``cover`` re-checked: that no stage can hold what prices say one must.

What is asked is stated in :mod:`.blocks`. That there is no such block is found out by following partial blocks
(:mod:`.sweep`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.pipeline.blocks import LARGEST, Blocks, blocks_of, companions
from nmsolve.check.pipeline.sweep import Question, States, no_block, states_of
from nmsolve.model import clock
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.problem import PipelineProblem

#: Up to this number of groups all sets are tried.
FEW = 6


def recheck_cover(problem: PipelineProblem, certificate: Mapping[str, Any], seconds: float) -> float | None:
    """Return the value that the certificate proves; None if it proves nothing.

    Raises
    ------
    InputError : a field is missing, of the wrong kind, or does not fit the problem
    """
    ceiling, factor = number(certificate, "ceiling"), number(certificate, "factor")
    if ceiling != int(ceiling) or ceiling >= LARGEST or factor < 1e-300:
        raise InputError(f"ceiling {ceiling:g}, factor {factor:g}", "certificate", "a whole number, a factor")
    price = _wholes(certificate, "price", LARGEST)
    item = _wholes(certificate, "item", len(price) - 1)
    if len(item) != problem.count or sum(price) > LARGEST:
        raise InputError("items do not fit the layers", "certificate", "a cover of this problem")
    worth = [0] * problem.count
    for k, p in enumerate(price):
        if k in item:  # a price is that of the item's first layer
            worth[item.index(k)] = p
    core = number(certificate, "core") if "core" in certificate else 0.0
    if core != int(core) or core > LARGEST // problem.cores:
        raise InputError(f"core is {core:g}", "certificate", "a whole number")
    place = item if "turn" not in certificate else _places(certificate, item)
    sizes, value = blocks_of(problem, worth, int(ceiling), Fraction(factor), int(core))
    if not sizes:
        return None
    if len(sizes[0].price) <= FEW:
        return value if all(map(_none_of_all, sizes)) else None
    return value if _none_swept(sizes, problem, place, clock.now() + seconds) else None


def _places(certificate: Mapping[str, Any], item: list[int]) -> list[int]:
    """(L,) in which turn the items of layers come; it only decides how long the check takes."""
    turn = _wholes(certificate, "turn", max(item))
    when = {k: t for t, k in enumerate(turn)}
    return [when.get(k, 0) for k in item]


def _none_swept(sizes: list[Blocks], problem: PipelineProblem, place: list[int], end: float) -> bool | None:
    """Return whether there is no block on groups of any size; None: not decided."""
    first, group = sizes[0], companions(problem)
    places = [0] * len(first.price)
    for layer, g in enumerate(group):
        places[g] = max(places[g], place[layer])
    states = states_of(len(first.price), first.tensors, first.order, places)
    if states is None:
        return None
    undecided = False
    for blocks in sizes:
        none = (
            False
            if blocks.memory is None
            else no_block(states, _asked(blocks, states, False), (clock.now() + end) / 2)
        )
        none = none or no_block(states, _asked(blocks, states, True), end)
        if none is False:
            return False
        undecided |= none is None
    return None if undecided else True


def _none_of_all(blocks: Blocks) -> bool:
    """Return whether no set of groups at all is a block of such a price."""
    every = range(len(blocks.price))
    return not any(blocks.holds({g for g in every if mask >> g & 1}) for mask in range(1, 2 ** len(every)))


def _wholes(certificate: Mapping[str, Any], name: str, largest: int) -> list[int]:
    """Return a field that must be a list of whole numbers from 0 to ``largest``."""
    values = certificate.get(name)
    if not isinstance(values, list | np.ndarray) or len(values) == 0:
        raise InputError(f"{name} is not a list", "certificate", "whole numbers")
    out = []
    for v in values.tolist() if isinstance(values, np.ndarray) else values:
        if isinstance(v, bool) or not isinstance(v, int | float) or not 0 <= v <= largest or v != int(v):
            raise InputError(f"{name} holds {str(v)[:40]}", "certificate", f"whole numbers up to {largest}")
        out.append(int(v))
    return out


def _asked(blocks: Blocks, states: States, stores: bool) -> Question:
    """Return the question on one size as numbers along the states; without ``stores`` with no rule on memory, which asks for
    less."""
    turn, needs, limit = states.part, [blocks.time], [blocks.ceiling]
    if blocks.overlap:
        needs, limit = [*needs, [0] * len(turn)], [*limit, blocks.ceiling]
    if stores and blocks.memory is not None:
        needs, limit = [*needs, blocks.storage], [*limit, blocks.memory]
    return Question(
        np.array(blocks.price, np.int64)[turn], np.ascontiguousarray(np.array(needs, np.int64).T[turn]),
        int(blocks.overlap), np.array(limit, np.int64), blocks.least,
    )  # fmt: skip


def number(certificate: Mapping[str, Any], name: str) -> float:
    """Return a field that must be a finite number >= 0. InputError otherwise."""
    value = certificate.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e300:
        raise InputError(f"{name} is {str(value)[:40]}", "certificate", "a number from 0 to 1e300")
    return float(value)
