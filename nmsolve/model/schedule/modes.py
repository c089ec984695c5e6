"""The modes of processes: unit sets that they name, spans and energies there, and what must fit their memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.schedule.budgets import Budgets
from nmsolve.model.schedule.build import MOST_MODES, whole
from nmsolve.model.schedule.problem import Items, Modes, Units, UnitSets
from nmsolve.model.schedule.tasks_file import Interaction, Links, Process, UnitSet
from nmsolve.model.schedule.tasks_units import SetNumbers
from nmsolve.model.types import IntArray


class _Way(NamedTuple):
    """A unit set, its span, the energy (None: by power), working bytes, and (B,) what it uses of budgets."""

    unit_set: int
    span: int
    energy: int | None
    working: int
    use: list[int]


class ModeTable:
    """Modes of one process after the other, and the items that they need."""

    def __init__(
        self, sets: SetNumbers, units: Units, on: IntArray, links: Links, budgets: dict[str, int], path: str
    ) -> None:
        """``on`` (U,): energy per tick of a unit at work; ``budgets``: amounts by name."""
        self.sets, self.memory, self.links, self.path = sets, units.memory.tolist(), links, path
        self.budgets = budgets
        self.on = on.tolist()
        self.first = [0]
        self.span: list[int] = []
        self.unit_set: list[int] = []
        self.energy: list[int] = []
        self.item: list[int] = []
        self.working: list[int] = []
        self.use: list[list[int]] = []
        self._items: dict[tuple[str, int], int] = {}
        self._bytes: dict[str, int] = {}
        self._each: list[int] | None = None
        self._power: dict[int, tuple[int, int]] = {}

    def candidates(self, stated: list[UnitSet] | str | None, where: str) -> list[int]:
        """Return the numbers of the sets that a network or process may use; every unit alone if it does not say.

        Raises
        ------
        InputError : an unknown unit, a set twice, none at all
        """
        if stated is None or stated == "each":
            if self._each is None:
                self._each = self.sets.each()
            return self._each
        if isinstance(stated, str):
            return [self.sets.of(stated, where)]
        found = [self.sets.of(one, f"{where}[{k}]") for k, one in enumerate(stated)]
        if len(set(found)) < len(found) or not found:
            twice = next((s for s in found if found.count(s) > 1), -1)
            what = f"the units {self.sets.text(twice)} twice" if found else "no unit set"
            raise InputError(what, f"{self.path}: {where}", "different unit sets, at least one")
        return found

    def add(self, p: Process, where: str, label: str, default: list[int]) -> None:
        """Add the modes of a process; ``default`` are the sets of its network.

        Raises
        ------
        InputError : neither a span nor alternatives, or both; no set with enough memory; weights of two sizes
        """
        ways: list[_Way]
        if p.alternatives is not None:
            if p.sets is not None or p.span is not None:
                raise InputError(
                    f"process {label!r} has alternatives, and sets or a span besides",
                    f"{self.path}: {where}",
                    "one of the two",
                )
            if not p.alternatives:
                raise InputError(
                    f"process {label!r} has no alternative", f"{self.path}: {where}", "at least one"
                )
            ways = []
            for k, a in enumerate(p.alternatives):
                s = self.sets.of(a.units, f"{where}.alternatives[{k}].units")
                energy = p.energy if a.energy is None else a.energy
                working = self._by_size(p.working, s, where, "working") if a.working is None else a.working
                place = where if a.uses is None else f"{where}.alternatives[{k}]"
                use = self._use(p.uses if a.uses is None else a.uses, s, place)
                ways.append(_Way(s, a.span, energy, working, use))
        elif p.span is None:
            raise InputError(
                f"process {label!r} has no span", f"{self.path}: {where}", "a span, or alternatives"
            )
        else:
            chosen = default if p.sets is None else self.candidates(p.sets, f"{where}.sets")
            ways = [self._way(p, p.span, s, where) for s in chosen]
        self._append(p, ways, where, label)

    def add_interaction(
        self, p: Interaction, where: str, label: str, default: tuple[list[int], list[int]]
    ) -> None:
        """Add the modes of an interaction: one for every unit that two sets, one of each network, have in common.

        Or as its ``runs_on`` says, for all these units together, or for all units of both sets.

        Raises
        ------
        InputError : no pair of sets meets; else as :meth:`add`
        """
        if p.runs_on not in ("one", "common", "all"):
            raise InputError(
                f"runs_on is {p.runs_on!r}", f"{self.path}: {where}.runs_on", "one, common or all"
            )
        unknown = next((name for name in p.sets if name not in p.between), None)
        if unknown is not None:
            raise InputError(
                f"sets of {unknown!r}", f"{self.path}: {where}.sets", " and ".join(map(repr, p.between))
            )
        one, other = (
            self.candidates(p.sets[name], f"{where}.sets.{name}") if name in p.sets else default[k]
            for k, name in enumerate(p.between)
        )
        if len(one) * len(other) > MOST_MODES:
            raise InputError(
                f"{len(one) * len(other):,} pairs of unit sets",
                f"{self.path}: {where}",
                f"at most {MOST_MODES:,}",
            )
        members = self.sets.members
        lists = [(set(members[a]), [set(members[b]) for b in other]) for a in one]
        pairs = [(a, b) for a, bs in lists for b in bs if a & b]
        met = [a | b if p.runs_on == "all" else a & b for a, b in pairs]
        if p.runs_on == "one":
            met = [{unit} for unit in sorted(set().union(*met))]
        if not met:
            first, second = (", ".join(self.sets.text(s) for s in side[:6]) for side in (one, other))
            raise DoesNotFitError(
                f"interaction {label!r} has no common unit: {p.between[0]!r} may use {first}, {p.between[1]!r} {second}",
                f"{self.path}: {where}", "unit sets that meet",
            )  # fmt: skip
        found = dict.fromkeys(self.sets.intern(tuple(sorted(m))) for m in met)
        self._append(p, [self._way(p, p.span, s, where) for s in found], where, label)

    def _way(self, p: Process | Interaction, span: int | dict[str, int], s: int, where: str) -> _Way:
        return _Way(
            s, self._by_size(span, s, where, "span"), p.energy, self._by_size(p.working, s, where, "working"),
            self._use(p.uses, s, where),
        )  # fmt: skip

    def _use(self, uses: Mapping[str, int | dict[str, int]], s: int, where: str) -> list[int]:
        """Return (B,) what a mode on a set uses of every budget."""
        unknown = next((name for name in uses if name not in self.budgets), None)
        if unknown is not None:
            known = ", ".join(map(repr, self.budgets)) or "none, the file has no budgets"
            raise InputError(f"unknown budget {unknown!r}", f"{self.path}: {where}.uses", known)
        return [self._by_size(uses.get(name, 0), s, where, f"uses.{name}") for name in self.budgets]

    def _by_size(self, stated: int | dict[str, int], s: int, where: str, what: str) -> int:
        if isinstance(stated, int):
            return stated
        size = str(len(self.sets.members[s]))
        if size not in stated:
            raise InputError(
                f"{what} has no entry {size!r}",
                f"{self.path}: {where}.{what}",
                f"one for the units {self.sets.text(s)}",
            )
        return stated[size]

    def _append(self, p: Process | Interaction, ways: list[_Way], where: str, label: str) -> None:
        """Add the modes whose memory suffices."""
        if (
            p.weights is not None
            and self._bytes.setdefault(p.weights.name, p.weights.bytes) != p.weights.bytes
        ):
            raise InputError(
                f"weights {p.weights.name!r} have {p.weights.bytes:,} bytes here and {self._bytes[p.weights.name]:,} elsewhere",
                f"{self.path}: {where}.weights", "the same size everywhere",
            )  # fmt: skip
        lacking = []
        for s, span, energy, working, use in ways:
            power, room = self._figures(s)
            share = 0 if p.weights is None else -(-p.weights.bytes // len(self.sets.members[s]))
            if working + share > room:
                lacking.append((working + share - room, working + share, room, s))
                continue
            self.span.append(span)
            self.unit_set.append(s)
            self.energy.append(span * power if energy is None else energy)
            self.working.append(working)
            self.use.append(use)
            self.item.append(-1 if not share or p.weights is None else self._item(p.weights.name, s))
        self.first.append(len(self.span))
        if self.first[-1] == self.first[-2]:
            _, need, room, s = min(lacking)
            raise DoesNotFitError(
                f"no unit set of process {label!r} has enough memory: the nearest, {self.sets.text(s)}, has "
                f"{room:,} bytes per unit, it needs {need:,}", f"{self.path}: {where}", f"at least {need - room:,} bytes more",
            )  # fmt: skip
        if len(self.span) > MOST_MODES:
            raise InputError(f"more than {MOST_MODES:,} modes", f"{self.path}: {where}", "fewer unit sets")

    def _figures(self, s: int) -> tuple[int, int]:
        """Return energy per tick of a set at work, and bytes of its smallest memory."""
        found = self._power.get(s)
        if found is None:
            members = self.sets.members[s]
            found = self._power[s] = sum(self.on[u] for u in members), min(self.memory[u] for u in members)
        return found

    def _item(self, name: str, s: int) -> int:
        return self._items.setdefault((name, s), len(self._items))

    def finished(self, sets: UnitSets) -> tuple[Modes, Items, Budgets]:
        """Return modes, items and budgets of one frame; every set has its number in ``sets``."""
        size = np.diff(sets.indptr)
        where = whole([s for _, s in self._items])
        listed = [self._bytes[name] for name, _ in self._items]
        whole_bytes = whole(listed)
        share = -(-whole_bytes // size[where]) if len(where) else whole_bytes
        band = self.links.load_bandwidth
        load = -(-share // band) if band else np.zeros(len(where), np.int64)
        # as Python's numbers: a product may be beyond 64 bits
        energy = whole([size * self.links.load_energy for size in listed])
        items = Items(tuple(name for name, _ in self._items), where, share, load, energy)
        modes = Modes(
            whole(self.first), whole(self.span), whole(self.unit_set), np.zeros((len(self.span), 0), np.int64),
            whole(self.energy), whole(self.item), whole(self.working),
        )  # fmt: skip
        if not self.budgets:
            return modes, items, Budgets()
        use = whole([used for row in self.use for used in row]).reshape(len(self.use), len(self.budgets))
        return modes, items, Budgets(tuple(self.budgets), whole(list(self.budgets.values())), use)
