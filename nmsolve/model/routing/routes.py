"""The answer of the routing problem: which channels every flow takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.turns import TurnSet
from nmsolve.model.types import IntArray, frozen, picked, starts


@dataclass(frozen=True, eq=False)
class Routes:
    """A tree of channels for every flow; the tree of a unicast flow is a path.

    Attributes
    ----------
    channels : virtual channels per link, V; channel ``V * link + v``, ``link = 4 * core + direction``
    indptr : (F + 1,) int64; flow ``f`` takes ``channel[indptr[f]:indptr[f + 1]]``
    channel : (K,) int64
    parent : (K,) int64 index into ``channel`` of the channel before it, -1 where the flow leaves its source; always a
        smaller index
    """

    channels: int
    indptr: IntArray
    channel: IntArray
    parent: IntArray

    def __post_init__(self) -> None:
        k = len(self.channel)
        if len(self.parent) != k or not len(self.indptr) or int(self.indptr[-1]) != k or self.channels < 1:
            raise InputError("arrays of routes have different lengths", "", f"{k} channels")
        if k and not ((self.parent < np.arange(k)) & (self.parent >= -1)).all():
            raise InputError("a channel of a route comes before its parent", "", "parents first")
        for a in (self.indptr, self.channel, self.parent):
            frozen(a)

    @property
    def count(self) -> int:
        """Number of flows."""
        return len(self.indptr) - 1

    @property
    def links(self) -> IntArray:
        """(K,) link of every channel."""
        out: IntArray = self.channel // self.channels
        return out

    @property
    def flow(self) -> IntArray:
        """(K,) flow that every entry belongs to."""
        return np.repeat(np.arange(self.count), np.diff(self.indptr))

    def of(self, flow: int) -> IntArray:
        """Return (channels,) the channels of one flow, parents first."""
        return self.channel[self.indptr[flow] : self.indptr[flow + 1]]

    def taken(self, order: IntArray) -> Routes:
        """Return the routes of the flows ``order`` (k,), in this order."""
        indptr, at = picked(self.indptr, order)
        parent = self.parent[at]
        above = np.where(parent < 0, -1, parent + np.arange(len(at)) - at)
        return Routes(self.channels, indptr, self.channel[at], above)

    @classmethod
    def of_paths(cls, paths: Sequence[Sequence[int]], channels: int = 1) -> Routes:
        """Return routes of unicast flows from lists of channels in order of travel."""
        indptr = starts(np.array([len(p) for p in paths], np.int64))
        channel = np.fromiter((c for p in paths for c in p), np.int64, int(indptr[-1]))
        parent = np.arange(-1, len(channel) - 1, dtype=np.int64)
        parent[indptr[:-1][np.diff(indptr) > 0]] = -1
        return cls(channels, indptr, channel, parent)


@dataclass(frozen=True, eq=False)
class ChosenRoutes:
    """Routes that a search chose, with why they cannot deadlock.

    Attributes
    ----------
    numbering : (4 * P * V,) number of every channel, -1 where there is none; grows along every dependency of the routes
    turns : the turn set that goes with the numbering (or was given), or None where none is chosen (rings, virtual channels)
    """

    routes: Routes
    numbering: IntArray
    turns: TurnSet | None
