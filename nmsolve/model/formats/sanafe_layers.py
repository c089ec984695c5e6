"""What a network of SANA-FE is read into: groups of neurons, and what joins whole groups: dense, sparse, convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.formats.yaml_text import listed, need, span, whole
from nmsolve.model.types import IntArray

#: More synapses than this are not read; SANA-FE itself takes tens of gigabytes for them.
MOST_SYNAPSES = 20_000_000
#: The section of our own (:mod:`.sanafe_own`).
SECTION = "nmsolve"


class Parsed(NamedTuple):
    """What a file says.

    ``groups``: name, number of neurons and soma of each; ``source``, ``target`` (synapses,): numbers of neurons, counted over all
    groups; ``tile``, ``place`` (neurons,): where the neurons are, -1 where that is not said; ``section``: ours, or None.
    """

    name: str
    groups: list[tuple[str, int, str]]
    source: IntArray
    target: IntArray
    tile: IntArray
    place: IntArray
    section: Mapping[str, Any] | None = None


class Place(NamedTuple):
    """A group (number of its first neuron, how many), and one neuron of it, counted over all groups, or None for the group."""

    first: int
    size: int
    neuron: int | None


class Groups:
    """The groups so far, in the order of the file; ``most`` neurons are believed."""

    def __init__(self, most: int) -> None:
        self.neurons = 0
        self._most = most
        self._of: dict[str, tuple[int, int, str]] = {}

    def believe(self, count: int, where: str) -> None:
        """Refuse a group that makes more neurons than a file of this size may have."""
        if self.neurons + count > self._most:
            raise InputError(
                f"{self.neurons + count:,} neurons", where, f"at most {self._most:,} for a file of this size"
            )

    def add(self, name: str, size: int, soma: str, where: str) -> None:
        """Add a group. InputError for a name that is taken, or that addresses could not hold."""
        if name in self._of or "." in name or "->" in name:
            what = f"a second group {name[:60]!r}" if name in self._of else f"a group called {name[:60]!r}"
            raise InputError(what, where, "another name, without point or arrow")
        self.believe(size, where)
        self._of[name] = self.neurons, size, soma
        self.neurons += size

    def rows(self) -> list[tuple[str, int, str]]:
        """Return name, size and soma of every group."""
        return [(name, size, soma) for name, (_, size, soma) in self._of.items()]

    def _group(self, name: str, where: str) -> tuple[int, int]:
        if name not in self._of:
            raise InputError(f"there is no group {name[:60]!r}", where, "a group of this network")
        return self._of[name][:2]

    def find(self, text: str, where: str) -> Place:
        """Return what ``group`` or ``group.number`` names. InputError if there is no such thing."""
        name, point, number = text.strip().partition(".")
        first, size = self._group(name, where)
        if not point:
            return Place(first, size, None)
        neuron = whole(number, where)
        if neuron >= size:
            raise InputError(f"neuron {text.strip()[:60]!r}", where, f"0..{size - 1} in this group")
        return Place(first, size, first + neuron)

    def neurons_of(self, text: str, where: str) -> slice:
        """Return the neurons of ``group``, ``group.3`` or ``group.0..7``. InputError if there are none such."""
        name, point, numbers = text.strip().partition(".")
        first, size = self._group(name, where)
        begin, end = span(numbers, where) if point else (0, size - 1)
        if end >= size:
            raise InputError(f"neuron {end} of group {name[:60]!r}", where, f"0..{size - 1}")
        return slice(first + begin, first + end + 1)


def _dense(table: dict[str, Any], a: Place, b: Place, where: str, room: int) -> IntArray:
    """Everything with everything, row by row of the weights."""
    del table  # weights, one for each: no traffic
    _fits(a.size * b.size, room, where)
    source, target = np.indices((a.size, b.size)).reshape(2, -1)
    return np.column_stack([a.first + source, b.first + target])


def _sparse(table: dict[str, Any], a: Place, b: Place, where: str, room: int) -> IntArray:
    key = "source_target_pairs"
    rows = listed(need(table, key, where), f"{where}.{key}")
    _fits(len(rows), room, where)
    out = np.empty((len(rows), 2), np.int64)
    for i, row in enumerate(rows):
        here = f"{where}.{key}[{i}]"
        if len(listed(row, here)) != 2:
            raise InputError(f"{len(row)} numbers", here, "source and target")
        for k, (value, group) in enumerate(zip(row, (a, b), strict=True)):
            number = whole(value, here)
            if number >= group.size:
                raise InputError(f"neuron {number} of a group of {group.size}", here, f"0..{group.size - 1}")
            out[i, k] = group.first + number
    return out


def _convolution(table: dict[str, Any], a: Place, b: Place, where: str, room: int) -> IntArray:
    """Two dimensions, no padding; neurons are numbered by channel, then row, then column."""

    def number(key: str) -> int:
        return whole(need(table, key, where), f"{where}.{key}", 1)

    channels, kernels = number("input_channels"), number("kernel_count")
    size, kernel, stride = (
        [number(f"{what}_{way}") for way in ("height", "width")] for what in ("input", "kernel", "stride")
    )
    if kernel[0] > size[0] or kernel[1] > size[1]:
        raise InputError(
            f"a kernel of {kernel[0]} x {kernel[1]}", where, f"at most {size[0]} x {size[1]}, the input"
        )
    out = [(s - k) // step + 1 for s, k, step in zip(size, kernel, stride, strict=True)]
    for what, group, wanted in (
        ("source", a, channels * size[0] * size[1]),
        ("target", b, kernels * out[0] * out[1]),
    ):
        if group.size != wanted:
            raise InputError(
                f"the {what} group has {group.size} neurons", where, f"{wanted}, as the convolution says"
            )
    _fits(b.size * channels * kernel[0] * kernel[1], room, where)
    to, down, across, channel, y, x = np.indices((kernels, *out, channels, *kernel)).reshape(6, -1)
    source = (channel * size[0] + down * stride[0] + y) * size[1] + across * stride[1] + x
    target = (to * out[0] + down) * out[1] + across
    return np.column_stack([a.first + source, b.first + target])


def _fits(count: int, room: int, where: str) -> None:
    if count > room:
        raise InputError(f"{count:,} synapses in one entry", where, f"at most {max(room, 0):,} more")


#: What the edges between two groups may be.
LAYERS: dict[str, Callable[[dict[str, Any], Place, Place, str, int], IntArray]] = {
    "dense": _dense, "conv2d": _convolution, "sparse": _sparse,
}  # fmt: skip
