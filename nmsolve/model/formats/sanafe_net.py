"""SANA-FE's text of version 1: a line per group (``g``), neuron (``n``), edge (``e``) and mapping (``&``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import believed_nodes, read_limited
from nmsolve.model.formats.sanafe_layers import MOST_SYNAPSES, Groups, Parsed
from nmsolve.model.formats.yaml_text import whole

#: A line of each kind, as messages show it.
KINDS = {
    "g": "g COUNT",
    "n": "n GROUP.NEURON",
    "e": "e GROUP.NEURON->GROUP.NEURON",
    "&": "& GROUP.NEURON@TILE.CORE",
}


def parse(path: Path) -> Parsed:
    """Return what a file says; attributes besides a group's ``soma_hw_name`` are not looked at.

    Raises
    ------
    InputError : not such a file (with the line), more than :data:`MOST_SYNAPSES` synapses
    """
    data = read_limited(path)
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", str(path), "SANA-FE's text of networks") from None
    groups, ends = Groups(believed_nodes(len(data))), []
    cores: dict[int, tuple[int, int]] = {}
    for number, line in enumerate(lines, 1):
        words, where = line.split(), f"{path}:{number}"
        if not words or words[0].startswith("#"):
            continue
        kind = words[0][0]
        if kind not in KINDS or len(words) < 2:
            raise InputError(
                f"found {line.strip()[:60]!r}", where, "a line such as " + ", ".join(KINDS.values())
            )
        if kind == "g":
            soma = next((w.partition("=")[2] for w in words[2:] if w.startswith("soma_hw_name=")), "")
            groups.add(str(len(groups.rows())), whole(words[1], where), soma, where)
        elif kind == "n":
            _neuron(groups, words[1], where, kind)
        elif kind == "e":
            begin, arrow, end = words[1].partition("->")
            if not arrow:
                raise InputError(f"found {words[1][:60]!r}", where, KINDS[kind])
            ends += [_neuron(groups, begin, where, kind), _neuron(groups, end.partition(":")[0], where, kind)]
            if len(ends) > 2 * MOST_SYNAPSES:
                raise InputError(f"{len(ends) // 2:,} synapses", where, f"at most {MOST_SYNAPSES:,}")
        else:
            name, _, core = words[1].partition("@")
            tile, point, place = core.partition(".")
            if not point:
                raise InputError(f"found {words[1][:60]!r}", where, KINDS[kind])
            cores[_neuron(groups, name, where, kind)] = whole(tile, where), whole(place, where)
    at = np.full((groups.neurons, 2), -1)
    if cores:
        at[list(cores)] = list(cores.values())
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return Parsed("", groups.rows(), pairs[:, 0], pairs[:, 1], at[:, 0], at[:, 1])


def _neuron(groups: Groups, text: str, where: str, kind: str) -> int:
    found = groups.find(text, where)
    if found.neuron is None:
        raise InputError(f"found {text[:60]!r}", where, KINDS[kind])
    return found.neuron
