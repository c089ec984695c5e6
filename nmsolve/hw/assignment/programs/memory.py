"""Places for tensors in a memory: intervals of time get addresses that do not overlap (M3.4, M3.10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nmsolve.hw.assignment.programs.manifest import BufferEntry, PeakEntry, PieceEntry, ProgramEntry


class Live(NamedTuple):
    """A tensor that is held from position ``first`` to position ``last``, both included, and its bytes."""

    first: int
    last: int
    bytes: int


#: Addresses are multiples of this (bytes), as wide as the widest vector registers.
ALIGNMENT = 64


def offsets_of(tensors: Sequence[Live]) -> tuple[list[int], int]:
    """Return an address for every tensor, and the bytes that all need together.

    Largest first, each at the lowest address where it is free of those before it that live at the same time. This is
    colouring of intervals with widths; the least possible is hard to find, and at least what lives at once.
    """
    offsets, end = [0] * len(tensors), 0
    placed: list[tuple[int, int, int, int]] = []  # address, end, first, last, by address
    for k in sorted(range(len(tensors)), key=lambda k: (-tensors[k].bytes, tensors[k].first, k)):
        first, last, size = tensors[k]
        at = 0
        for start, stop, since, until in placed:
            if since > last or until < first:
                continue
            if start >= at + size:
                break
            at = max(at, -(-stop // ALIGNMENT) * ALIGNMENT)
        offsets[k] = at
        if size:
            placed.append((at, at + size, first, last))
            placed.sort()
            end = max(end, at + size)
    return offsets, end


def most_at_once(tensors: Sequence[Live]) -> int:
    """Return the most bytes that are held at one position: no plan needs less."""
    change: dict[int, int] = {}
    for first, last, size in tensors:
        change[first] = change.get(first, 0) + size
        change[last + 1] = change.get(last + 1, 0) - size
    held = most = 0
    for position in sorted(change):
        held += change[position]
        most = max(most, held)
    return most


def plan_buffers(
    program: ProgramEntry,
    ends: tuple[str, str],
    memory: Mapping[str, str],
    sizes: Mapping[int, Mapping[str, int | None]],
) -> dict[str, PeakEntry]:
    """Give the tensors of a program, and of the bodies in it, their places, and return what each memory needs.

    A tensor is in the memory of its maker, and its copies in those of its users, from the piece that makes it to the last
    piece that uses it there; an output to the end of the program.

    Parameters
    ----------
    ends : unit where inputs come from, and unit where outputs go to
    memory : of every unit
    sizes : bytes of tensors, by the program's ``id`` and name
    """
    held: dict[tuple[str, str], Live] = {}
    own = sizes[id(program)]
    born = dict.fromkeys(program.inputs, (0, memory[ends[0]]))
    last = max(len(program.pieces) - 1, 0)

    def keep(name: str, where: str, until: int) -> None:
        first = born[name][0]
        old = held.get((name, where), Live(first, first, own.get(name) or 0))
        held[name, where] = old._replace(last=max(old.last, until))

    for name, (_, where) in born.items():
        keep(name, where, 0)
    inner: dict[str, list[tuple[int, str, PeakEntry]]] = {}
    for k, piece in enumerate(program.pieces):
        where = memory[piece.unit]
        for name, unit in _users(piece):
            if name in born:
                keep(name, memory[unit], k)
        for body in piece.bodies:
            for peak in plan_buffers(body, (piece.unit, piece.unit), memory, sizes).values():
                inner.setdefault(peak.memory, []).append((k, piece.name, peak))
        for name in piece.outputs:
            born[name] = (k, where)
            keep(name, where, k)
    for name in program.outputs:
        if name in born:
            keep(name, memory[ends[1]], last)
    return {
        m: _placed(
            program, m, {name: live for (name, at), live in held.items() if at == m}, own, inner.get(m, [])
        )
        for m in sorted({at for _, at in held} | set(inner))
    }


def _users(piece: PieceEntry) -> Iterator[tuple[str, str]]:
    """Yield what a piece needs, and on which unit: what bodies take from outside is needed where they use it."""
    own = piece.inputs if piece.kind == "graph" else [name for name in piece.operands if name]
    yield from ((name, piece.unit) for name in own)
    for body in piece.bodies:
        hidden = {*body.inputs, *(name for inner in body.pieces for name in inner.outputs)}
        for inner in body.pieces:
            yield from ((name, unit) for name, unit in _users(inner) if name not in hidden)


def _placed(
    program: ProgramEntry, where: str, held: dict[str, Live], sizes: Mapping[str, int | None],
    inner: Sequence[tuple[int, str, PeakEntry]],
) -> PeakEntry:  # fmt: skip
    """Add the buffers of one memory to a program; bodies of one operator share the largest of their memories."""
    unknown = sum(sizes.get(name) is None for name in held) + sum(peak.unknown for _, _, peak in inner)
    needed = dict(held)
    for k, name, peak in inner:
        most = max((held[f"@{name}"].bytes if f"@{name}" in held else 0), peak.bytes)
        held[f"@{name}"] = Live(k, k, most)
        least = max((needed[f"@{name}"].bytes if f"@{name}" in needed else 0), peak.needed)
        needed[f"@{name}"] = Live(k, k, least)
    names = sorted(held)
    offsets, total = offsets_of([held[name] for name in names])
    for name, offset in zip(names, offsets, strict=True):
        first, last, size = held[name]
        program.buffers.append(BufferEntry(name, where, first, last, size, offset))
    return PeakEntry(where, total, most_at_once(list(needed.values())), unknown)
