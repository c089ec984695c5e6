"""Can messages wait for each other in a ring? Plain Python from the definitions; nothing is shared with what made the routes.

A message that holds a link and takes another one next waits for it. What waits for nothing that is left is taken away, again and
again (Kahn 1962): what remains, if anything, holds a ring. Messages fit into one buffer, and there is one channel per link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from nmsolve.model.machine import Machine
from nmsolve.model.mapping.routes import RoutesFile
from nmsolve.model.turns import TurnSet

#: A directed link: the core it leaves, the core it reaches.
Link = tuple[int, int]


def routes_ring(file: RoutesFile) -> str | None:
    """Return the ring of links that messages of a ``routes.json`` can wait for each other in, in words; None if there is none."""
    return _in_words(_ring(pair for message in file.messages for pair in _next_links(message.links)))


def turns_ring(machine: Machine, turns: TurnSet) -> str | None:
    """Return the same if messages may take any turn of a turn set over healthy links."""
    ways = [(a, at, b) for a, at, b in _healthy(machine) if a != b and _allowed(machine, turns, a, at, b)]
    return _in_words(_ring(((a, at), (at, b)) for a, at, b in ways))


def prohibited_count(machine: Machine, turns: TurnSet) -> int:
    """90-degree turns between healthy links that a turn set prohibits."""
    return sum(not _allowed(machine, turns, a, at, b) for a, at, b in right_angles(machine))


def right_angles(machine: Machine) -> list[tuple[int, int, int]]:
    """Return all (from core, at core, to core) where two healthy links meet at a right angle."""
    return [
        (a, at, b)
        for a, at, b in _healthy(machine)
        if (_letter(machine, a, at) in "EW") != (_letter(machine, at, b) in "EW")
    ]


def _healthy(machine: Machine) -> Iterator[tuple[int, int, int]]:
    """Yield all (from core, at core, to core) where one healthy link leads on to another."""
    dead = set(machine.faulty_links)
    for at in range(machine.size):
        near = machine.neighbours(at)
        yield from ((a, at, b) for a in near for b in near if (a, at) not in dead and (at, b) not in dead)


def prohibited_turn(machine: Machine, turns: TurnSet, trees: Iterable[list[Link]]) -> str | None:
    """Return the first turn of the routes ``trees`` (links of each, in any order) that the turn set does not allow, in words."""
    for k, links in enumerate(trees):
        for (a, at), (_, b) in _next_links(links):
            if not _allowed(machine, turns, a, at, b):
                name = f"{_letter(machine, a, at)}{_letter(machine, at, b)}"
                return f"route {k} takes the turn {name} in core {at}, which {turns.name or 'the turn set'} prohibits"
    return None


def _next_links(links: Iterable[Link]) -> list[tuple[Link, Link]]:
    """Return pairs of links of one tree of which the second leaves the core that the first reaches."""
    out: dict[int, list[Link]] = defaultdict(list)
    mine = [(int(a), int(b)) for a, b in links]
    for link in mine:
        out[link[0]].append(link)
    return [(link, after) for link in mine for after in out[link[1]]]


def _ring(pairs: Iterable[tuple[Link, Link]]) -> list[Link]:
    """Return a ring of links, each waiting for the next and the last for the first; empty if there is none."""
    waits: dict[Link, set[Link]] = defaultdict(set)
    for before, after in pairs:
        waits[before].add(after)
    held: Mapping[Link, list[Link]] = _backwards(waits)
    left = {link: len(after) for link, after in waits.items()}
    done = [link for link in held if link not in waits]
    while done:
        for before in held.get(done.pop(), ()):
            left[before] -= 1
            if left[before] == 0:
                del left[before]
                done.append(before)
    if not left:
        return []
    walked: list[Link] = [min(left)]
    while True:
        link = min(after for after in waits[walked[-1]] if after in left)
        if link in walked:
            return walked[walked.index(link) :]
        walked.append(link)


def _backwards(waits: Mapping[Link, set[Link]]) -> dict[Link, list[Link]]:
    out: dict[Link, list[Link]] = defaultdict(list)
    for before, some in waits.items():
        for after in some:
            out[after].append(before)
    return out


def _in_words(ring: list[Link]) -> str | None:
    if not ring:
        return None
    return "core " + " -> ".join(str(core) for core in (ring[0][0], *(link[1] for link in ring)))


def _allowed(machine: Machine, turns: TurnSet, a: int, at: int, b: int) -> bool:
    """Return whether what came from core ``a`` may leave core ``at`` for core ``b``."""
    before, after = _letter(machine, a, at), _letter(machine, at, b)
    return bool(turns.allowed[at, "EWSN".index(before), "EWSN".index(after)])


def _letter(machine: Machine, a: int, b: int) -> str:
    """Return the direction of travel from core ``a`` to its neighbour ``b``; over the edge of a torus it goes on the same way."""
    (row, col), (to_row, to_col) = divmod(a, machine.cols), divmod(b, machine.cols)
    if row == to_row:
        return "W" if to_col - col in (-1, max(2, machine.cols - 1)) else "E"
    return "N" if to_row - row in (-1, max(2, machine.rows - 1)) else "S"
