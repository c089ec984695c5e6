"""The machine: a board of chips, each a mesh of cores, with limits, faults and figures."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Weights of links, distances and costs per message end here; so do objectives (:mod:`nmsolve.hw.magnitude`).
LARGEST = 1e30
#: Capacities end here: whole numbers of 64 bits can still be added up.
MOST_CAPACITY = 2**62
#: Where input and output reach a board: the cores of its first or last row or column; ``edge``: all four.
SIDES = ("north", "south", "east", "west", "edge")


@dataclass(frozen=True)
class Figure:
    """One number of a chip, with where it comes from.

    ``verified`` is False where the number was not read at its source; ``nmsolve hw show`` marks it.
    """

    value: float
    unit: str = ""
    source: str = ""
    verified: bool = False


@dataclass(frozen=True, eq=False)
class Machine:
    """A board of ``chips`` (rows, columns), each a mesh of ``cores`` (rows, columns).

    Cores are numbered ``row * cols + col`` in *board* coordinates: row 0 is the top row of the whole board.
    Neighbouring cores are joined by one link in each direction. A link inside a chip has weight
    ``link_weight``, one between two chips ``crossing_weight``; the *distance* of two cores is the weight of a
    shortest route. With ``torus`` the board's opposite edges are joined (by links of ``crossing_weight`` if
    there is more than one chip along that axis, else ``link_weight``).

    A *faulty* or *taken* core can hold no node; its router still forwards messages. A *faulty link* carries
    nothing, in either direction given: name both directions if both are dead. Cores that dead links cut off
    hold no node either (:attr:`cut_off`).

    ``distance_matrix`` replaces the mesh altogether (any topology, e.g. from QAPLIB); ``chips`` is then
    (1, 1) and ``cores`` is (1, number of cores).

    Attributes
    ----------
    chips, cores : (rows, columns), each >= 1
    capacity : resource name -> what one core holds (whole number); any other resource is unlimited
    link_weight, crossing_weight : > 0
    faulty_cores, taken_cores : core numbers; also taken as (row, column) pairs
    faulty_links : (from core, to core) pairs of neighbours, likewise
    energy : figures ``message``, ``router``, ``link_x``, ``link_y``, ``crossing`` per message, in pJ;
        missing ones are 0
    latency : figures ``router``, ``link_x``, ``link_y``, ``crossing`` in ns; missing ones are 0
    figures : everything else worth knowing (``nmsolve hw show``)
    notes : how the machine is modelled and what is left out, for people
    core_capacity : resource name -> (size,) int64 what each core holds, where cores are not alike; ``capacity`` names the
        resource, too (:meth:`limits` is what counts)
    held : resource name -> (size,) int64 what other networks hold of each core already
    kinds_per_core : most kinds of nodes (:attr:`nmsolve.model.graph.LogicGraph.kinds`) that may share a core; None: any number
    ports : name -> where input and output reach the board: one of :data:`SIDES`, or core numbers
    pattern : resource name -> (R, C) int64 what the core in row r and column c holds, by r mod R and c mod C; ``core_capacity``
        has the same for this board, :meth:`with_chips` makes that of another board from it
    """

    name: str
    chips: tuple[int, int]
    cores: tuple[int, int]
    torus: bool = False
    capacity: MappingType[str, int] = field(default_factory=dict)
    link_weight: float = 1.0
    crossing_weight: float = 1.0
    faulty_cores: tuple[int, ...] = ()
    taken_cores: tuple[int, ...] = ()
    faulty_links: tuple[tuple[int, int], ...] = ()
    energy: MappingType[str, Figure] = field(default_factory=dict)
    latency: MappingType[str, Figure] = field(default_factory=dict)
    figures: MappingType[str, Figure] = field(default_factory=dict)
    distance_matrix: FloatArray | None = None
    notes: str = ""
    core_capacity: MappingType[str, IntArray] = field(default_factory=dict)
    held: MappingType[str, IntArray] = field(default_factory=dict)
    kinds_per_core: int | None = None
    ports: MappingType[str, str | tuple[int, ...]] = field(default_factory=dict)
    pattern: MappingType[str, IntArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, pair in (("chips", self.chips), ("cores", self.cores)):
            if not (
                isinstance(pair, tuple | list) and len(pair) == 2 and all(_whole(v) and v >= 1 for v in pair)
            ):
                raise InputError(f"{what} are {pair!r}", self.name, "two whole numbers >= 1")
        if not isinstance(self.torus, bool):
            raise InputError(f"torus is {self.torus!r}", self.name, "True or False")
        for name in ("faulty_cores", "taken_cores"):
            object.__setattr__(self, name, tuple(self._number(p, name) for p in getattr(self, name)))
        for link in self.faulty_links:
            if not (isinstance(link, tuple | list) and len(link) == 2):
                raise InputError(f"faulty_links has {link!r}", self.name, "pairs (from core, to core)")
        links = tuple(
            (self._number(a, "faulty_links"), self._number(b, "faulty_links")) for a, b in self.faulty_links
        )
        object.__setattr__(self, "faulty_links", links)
        for what, weight in (("link_weight", self.link_weight), ("crossing_weight", self.crossing_weight)):
            if not 0 < weight < LARGEST:
                raise InputError(f"{what} is {weight}", self.name, "a finite number > 0, below 1e30")
        if self.kinds_per_core is not None and self.kinds_per_core < 1:
            raise InputError(f"kinds_per_core is {self.kinds_per_core}", self.name, "a whole number >= 1")
        for resource, limit in self.capacity.items():
            if not (_whole(limit) and 0 <= limit < MOST_CAPACITY):
                raise InputError(
                    f"capacity of {resource} is {limit!r}", self.name, "a whole number from 0 to 2^62"
                )
        for per_core in (self.core_capacity, self.held):
            for resource, amount in per_core.items():
                if amount.shape != (self.size,) or not 0 <= amount.min() <= amount.max() < MOST_CAPACITY:
                    raise InputError(
                        f"{resource} of every core", self.name, f"{self.size} whole numbers from 0 to 2^62"
                    )
                amount.setflags(write=False)
        for what, table in (("energy", self.energy), ("latency", self.latency)):
            for key, figure in table.items():
                if not 0 <= figure.value < LARGEST:
                    raise InputError(f"{what} {key} is {figure.value}", self.name, "0 to 1e30")
        for what, cores in (("faulty", self.faulty_cores), ("taken", self.taken_cores)):
            for p in cores:
                if not 0 <= p < self.size:
                    raise InputError(f"{what} core {p} does not exist", self.name, f"0..{self.size - 1}")
        for a, b in self.faulty_links:
            if not (0 <= a < self.size and 0 <= b < self.size and b in self.neighbours(a)):
                raise InputError(
                    f"faulty link {a} -> {b} does not exist", self.name, "two neighbouring cores"
                )
        if self.distance_matrix is not None:
            d = self.distance_matrix
            if d.shape != (self.size, self.size) or not (d < LARGEST).all() or d.min() < 0:
                raise InputError(
                    f"distance matrix has shape {d.shape}",
                    self.name,
                    f"{self.size} x {self.size} numbers from 0 to 1e30",
                )
            d.setflags(write=False)
        for name, where in self.ports.items():
            if name in SIDES or not name:
                raise InputError(f"a port called {name!r}", self.name, "a name that is no side of the board")
            if not isinstance(where, str):
                wrong = [p for p in where if not 0 <= p < self.size]
                if wrong or not where:
                    what = f"core {wrong[0]} does not exist" if wrong else "no cores"
                    raise InputError(f"port {name!r}: {what}", self.name, f"some of 0..{self.size - 1}")
            elif where not in SIDES:
                raise InputError(f"port {name!r} is at {where!r}", self.name, "one of " + ", ".join(SIDES))
            else:
                self.at(where)

    def _number(self, core: object, what: str) -> int:
        """Return the number of a core that is given by its number, or by row and column."""
        if _whole(core):
            return int(core)  # type: ignore[call-overload, no-any-return]
        if isinstance(core, tuple | list) and len(core) == 2 and all(_whole(v) for v in core):
            row, col = core
            if 0 <= row < self.rows and 0 <= col < self.cols:
                return int(row * self.cols + col)
        expected = f"core numbers, or (row, column) within {self.rows} x {self.cols}"
        raise InputError(f"{what} has {core!r}", self.name, expected)

    def at(self, place: str) -> tuple[int, ...]:
        """Return the cores at a side of the board (one of :data:`SIDES`) or at a port, usable or not, ascending.

        Raises
        ------
        InputError : no such place; a side of a torus or of a machine given by a distance matrix, which have none
        """
        where = self.ports.get(place, place)
        if not isinstance(where, str):
            return tuple(sorted(set(where)))
        if where not in SIDES:
            ports = ", ".join(self.ports) or "a port under [ports] of the machine file (there is none)"
            raise InputError(
                f"no side or port is called {place!r}", self.name, f"{', '.join(SIDES)}, or {ports}"
            )
        if self.torus or self.distance_matrix is not None:
            kind = "a torus" if self.torus else "a machine given by a distance matrix"
            raise InputError(f"{kind} has no {where} side", self.name, "ports of listed cores, or a mesh")
        row, col = np.divmod(np.arange(self.size), self.cols)
        on = {
            "north": row == 0, "south": row == self.rows - 1, "east": col == self.cols - 1, "west": col == 0,
            "edge": (row == 0) | (row == self.rows - 1) | (col == 0) | (col == self.cols - 1),
        }  # fmt: skip
        return tuple(np.flatnonzero(on[where]).tolist())

    @property
    def rows(self) -> int:
        """Rows of cores on the whole board."""
        return self.chips[0] * self.cores[0]

    @property
    def cols(self) -> int:
        """Columns of cores on the whole board."""
        return self.chips[1] * self.cores[1]

    @property
    def size(self) -> int:
        """Number of cores, usable or not."""
        return self.rows * self.cols

    @property
    def n_chips(self) -> int:
        """Number of chips on the board."""
        return self.chips[0] * self.chips[1]

    @cached_property
    def usable(self) -> BoolArray:
        """(size,) bool: cores that may hold nodes: healthy ones that are not cut off."""
        out = self.healthy.copy()
        out[list(self.cut_off)] = False
        return out

    @cached_property
    def healthy(self) -> BoolArray:
        """(size,) bool: cores that are neither faulty nor taken."""
        out = np.ones(self.size, bool)
        out[list(self.faulty_cores + self.taken_cores)] = False
        return out

    @cached_property
    def cut_off(self) -> tuple[int, ...]:
        """Cores that dead links part from those in use, ascending; they hold no node.

        In use is one strongly connected component of the links that work: messages pass between any two of its cores, both ways,
        also through routers of faulty and taken cores. It is the one with most healthy cores; of equal ones that with the lowest
        healthy core.
        """
        healthy = self.healthy
        if not self.faulty_links or not healthy.any():
            return ()
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        dead = set(self.faulty_links)
        links = [(p, q) for p in range(self.size) for q in self.neighbours(p) if (p, q) not in dead]
        start, end = np.array(links, np.int64).reshape(-1, 2).T
        works = coo_array((np.ones(len(links), bool), (start, end)), shape=(self.size, self.size))
        piece = connected_components(works, connection="strong")[1]
        most = np.bincount(piece, healthy)[piece]
        kept = piece[np.flatnonzero(healthy & (most == most.max()))[0]]
        return tuple(np.flatnonzero(piece != kept).tolist())

    def lifting(self, **changes: Any) -> Machine:
        """Return this machine with other limits and the same cores cut off, whichever component is then the largest."""
        out = replace(self, **changes)
        out.__dict__["cut_off"] = self.cut_off
        return out

    def holding(self, resource: str, amount: int) -> Machine:
        """Return this machine with another capacity of every core, e.g. the memory that a plan was made for."""
        return replace(self, capacity={**self.capacity, resource: amount})

    def limits(self, resource: str) -> IntArray:
        """Return (size,) int64: what every core still holds of a resource that ``capacity`` names, usable or not."""
        own = self.core_capacity.get(resource)
        room: IntArray = np.full(self.size, self.capacity[resource], np.int64) if own is None else own
        return np.maximum(room - self.held[resource], 0) if resource in self.held else room.copy()

    @cached_property
    def chip_of(self) -> IntArray:
        """(size,) int64: chip number of every core, ``chip_row * chips[1] + chip_col``."""
        r, c = np.divmod(np.arange(self.size), self.cols)
        chip: IntArray = (r // self.cores[0]) * self.chips[1] + c // self.cores[1]
        return chip

    def line_weights(self, axis: int) -> FloatArray:
        """Return (lines,) the weights of the links between consecutive rows (axis 0) or columns (axis 1).

        Entry ``i`` joins line ``i`` and ``i + 1``. On a torus one more entry joins last and first.
        """
        lines, per_chip, chips = (self.rows, self.cores[0], self.chips[0])
        if axis == 1:
            lines, per_chip, chips = (self.cols, self.cores[1], self.chips[1])
        w = np.full(lines - 1, self.link_weight, np.float64)
        w[per_chip - 1 :: per_chip] = self.crossing_weight
        if self.torus and lines > 2:  # two lines are neighbours already
            w = np.append(w, self.crossing_weight if chips > 1 else self.link_weight)
        return w

    def neighbours(self, core: int) -> list[int]:
        """Return cores joined to ``core`` by a mesh link (faulty ones included); empty for a matrix topology."""
        if self.distance_matrix is not None:
            return []
        r, c = divmod(core, self.cols)
        out = []
        for dr, dc in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            rr, cc = r + dr, c + dc
            if self.torus:
                rr, cc = rr % self.rows, cc % self.cols
            if 0 <= rr < self.rows and 0 <= cc < self.cols and (rr, cc) != (r, c):
                q = rr * self.cols + cc
                if q not in out:
                    out.append(q)
        return out

    def with_chips(self, rows: int, cols: int) -> Machine:
        """Return the same kind of machine with another number of chips, all healthy and free.

        Cores are alike but for a :attr:`pattern`. Ports at sides stay at the sides of the new board; those of listed cores are
        left out.
        """
        return replace(
            self,
            chips=(rows, cols),
            faulty_cores=(),
            taken_cores=(),
            faulty_links=(),
            core_capacity=tiled(self.pattern, rows * self.cores[0], cols * self.cores[1]),
            held={},
            ports={name: where for name, where in self.ports.items() if isinstance(where, str)},
        )

    @cached_property
    def hash(self) -> str:
        """Content hash (hex, 16 digits) of everything that decides what a mapping is worth."""
        h = hashlib.sha256()
        energy = sorted((k, f.value) for k, f in self.energy.items())
        latency = sorted((k, f.value) for k, f in self.latency.items())
        h.update(
            repr((self.chips, self.cores, self.torus, sorted(self.capacity.items()), self.link_weight,
                  self.crossing_weight, sorted(self.faulty_cores), sorted(self.taken_cores),
                  sorted(self.faulty_links), energy, latency)).encode()
        )  # fmt: skip
        for per_core in (self.core_capacity, self.held):
            if per_core:
                h.update(repr([(r, tuple(per_core[r].tolist())) for r in sorted(per_core)]).encode() + b";")
        if self.kinds_per_core is not None:
            h.update(f"kinds {self.kinds_per_core};".encode())
        if self.distance_matrix is not None:
            h.update(np.ascontiguousarray(self.distance_matrix, np.float64).data)
        return h.hexdigest()[:16]


def tiled(pattern: MappingType[str, IntArray], rows: int, cols: int) -> dict[str, IntArray]:
    """Return what every core of a board of ``rows`` x ``cols`` cores holds: resource name -> (rows * cols,) int64."""
    row, col = np.divmod(np.arange(rows * cols), cols)
    return {r: own[row % own.shape[0], col % own.shape[1]] for r, own in pattern.items()}


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
