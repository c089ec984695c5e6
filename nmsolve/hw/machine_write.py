"""A machine as the TOML file that gives it back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from nmsolve.hw.machine_file import KINDS, machine_from_table
from nmsolve.model.errors import InputError
from nmsolve.model.files import read_table, write_atomic
from nmsolve.model.machine import Figure, Machine


def save_machine(machine: Machine, path: str | Path) -> None:
    """Write ``machine`` as TOML (docs/machines.md).

    Raises
    ------
    InputError : it has what such a file cannot say: a distance matrix, cores that other networks hold in part, a link that is
        dead in one direction only
    """
    text = "\n".join(_lines(machine)) + "\n"
    said = None
    if machine.distance_matrix is None and not machine.held:
        said = machine_from_table(read_table(text.encode(), str(path)), str(path))
    if said is None or said.hash != machine.hash:
        what = (
            "a distance matrix" if machine.distance_matrix is not None
            else "cores that other networks hold in part" if machine.held else "links that are dead in one direction"
        )  # fmt: skip
        raise InputError(f"a machine with {what} has no file", machine.name, "the file or name it comes from")
    write_atomic(Path(path), text)


def _lines(m: Machine) -> Iterator[str]:
    yield f"name = {_text(m.name)}"
    yield f"chips = {list(m.chips)}"
    yield f"cores = {list(m.cores)}"
    yield f"torus = {str(m.torus).lower()}"
    yield f"link_weight = {float(m.link_weight)!r}"
    yield f"crossing_weight = {float(m.crossing_weight)!r}"
    yield f"faulty_cores = {[_place(m, p) for p in m.faulty_cores]}"
    yield f"taken_cores = {[_place(m, p) for p in m.taken_cores]}"
    both = sorted({(min(a, b), max(a, b)) for a, b in m.faulty_links})
    yield f"faulty_links = {[[_place(m, a), _place(m, b)] for a, b in both]}"
    yield f"notes = {_text(m.notes)}"
    if m.kinds_per_core is not None:
        stated = m.figures.get(f"capacity.{KINDS}", Figure(m.kinds_per_core))
        yield from _entries({KINDS: stated}, {KINDS: m.kinds_per_core})
    yield "[ports]"
    for name, where in m.ports.items():
        yield f"{_text(name)} = {_text(where) if isinstance(where, str) else [_place(m, p) for p in where]}"
    known = {k: m.figures.get(f"capacity.{k}", Figure(v)) for k, v in m.capacity.items()}
    yield from _table("capacity", known, m.capacity)
    yield from _table("energy", m.energy)
    yield from _table("latency", m.latency)
    yield from _table("figures", {k: f for k, f in m.figures.items() if not k.startswith("capacity.")})
    for resource, own in m.core_capacity.items():
        for amount in np.unique(own[own != m.capacity[resource]]).tolist():
            yield "[[core]]"
            yield f"cores = {np.flatnonzero(own == amount).tolist()}"
            yield f"capacity = {{ {_text(resource)} = {amount} }}"


def _table(
    name: str, figures: Mapping[str, Figure], values: Mapping[str, int] | None = None
) -> Iterator[str]:
    """Yield one table of figures; ``values`` go before those of the figures."""
    yield f"[{name}]"
    yield from _entries(figures, values)


def _entries(figures: Mapping[str, Figure], values: Mapping[str, int] | None = None) -> Iterator[str]:
    for key, f in figures.items():
        value = f.value if values is None else values[key]
        more = f"unit = {_text(f.unit)}, source = {_text(f.source)}, verified = {str(f.verified).lower()}"
        yield f"{_text(key)} = {{ value = {value!r}, {more} }}"


def _place(m: Machine, core: int) -> list[int]:
    return list(divmod(core, m.cols))


def _text(text: str) -> str:
    """Return a basic string; JSON escapes what TOML wants escaped, except one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
