"""Networks of SANA-FE, with the cores of their neurons: YAML (``.yaml``, ``.yml``) of version 2, text (``.net``) of version 1.

Both were learnt from SANA-FE's documentation and by running version 2.2.9; no text of it is used here. Files that we export
(:func:`nmsolve.hw.sanafe.export_sanafe`) have a section ``nmsolve``, which SANA-FE does not look at: it says what else belongs
to the graph, and the very same graph is read again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from nmsolve.model.contained import Reply, one_reply
from nmsolve.model.errors import InputError
from nmsolve.model.files import extension
from nmsolve.model.formats.populations import Neurons, assembled
from nmsolve.model.formats.sanafe_own import ids_and_nodes, own_graph
from nmsolve.model.formats.sanafe_text import Parsed, parse_netlist, parse_yaml
from nmsolve.model.graph import LogicGraph
from nmsolve.model.types import AnyArray, IntArray, first_true

#: The text form of version 1.
NETLIST = ".net"


def load(path: Path) -> LogicGraph:
    """Read a network: directed, every neuron multicasts, once per step if nothing else is known; ids are ``group/number``.

    SANA-FE finds rates out by simulation. Weights of synapses are no traffic. In files of ours all is as it was exported.

    Raises
    ------
    InputError : YAML is needed and PyYAML not installed; not such a file, with the entry or line that is wrong
    """
    parsed = read_parsed(path)
    if parsed.section is not None:
        return own_graph(parsed, path)
    groups = [Neurons(name, size, soma) for name, size, soma in parsed.groups]
    return assembled(parsed.name or path.stem, groups, [(parsed.source, parsed.target)])


def read_parsed(path: Path) -> Parsed:
    """Return what a file says, read in a process of its own. InputError as :func:`load`."""
    reply = one_reply(partial(_reply, path), path)
    groups = [(str(name), int(size), str(soma)) for name, size, soma in reply.value["groups"]]
    arrays: dict[str, AnyArray] = reply.arrays
    source, target, tile, place = (arrays[k].astype(np.int64) for k in ARRAYS)
    return Parsed(reply.value["name"], groups, source, target, tile, place, reply.value["section"])


ARRAYS = ("source", "target", "tile", "place")


def _reply(path: Path) -> Reply:
    parsed = (parse_netlist if extension(path) == NETLIST else parse_yaml)(path)
    if not sum(size for _, size, _ in parsed.groups):
        raise InputError("the network has no neurons", str(path), "at least one")
    value = {"name": parsed.name, "groups": parsed.groups, "section": parsed.section}
    return Reply(value, {k: np.ascontiguousarray(getattr(parsed, k), np.int64) for k in ARRAYS})


def placement(path: Path, graph: LogicGraph) -> tuple[IntArray, IntArray]:
    """Return (n,) tile and place within it of every node of ``graph``, which was read from a file with the same neurons.

    Raises
    ------
    InputError : as :func:`load`; other neurons; a neuron without a core
    """
    parsed = read_parsed(path)
    names = [f"{name}/{i}" for name, size, _ in parsed.groups for i in range(size)]
    tile, place = parsed.tile, parsed.place
    if parsed.section is not None:
        ids, node = ids_and_nodes(parsed, path)
        if (k := first_true((tile != tile[node]) | (place != place[node]))) is not None:
            raise InputError(
                f"neuron {names[k]} is on another core than the node that it sends for",
                str(path),
                "one core",
            )
        names = [str(v) for v in ids]
    if (lost := np.flatnonzero(tile[: len(names)] < 0)).size:
        raise InputError(f"neuron {names[lost[0]]!r} has no core", str(path), "a mapping of every neuron")
    at = {name: i for i, name in enumerate(names)}
    order = [at.get(str(graph.node_id(u)), -1) for u in range(graph.n)]
    if len(names) != graph.n or -1 in order:
        what = (
            f"{len(names)} neurons"
            if len(names) != graph.n
            else f"no neuron {graph.node_id(order.index(-1))!r}"
        )
        raise InputError(what, str(path), f"the {graph.n} nodes of {graph.name}")
    return tile[order], place[order]
