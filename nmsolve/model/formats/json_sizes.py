"""Sizes of the nodes of a node-link file: one rule (``docs/files.md``); anything ambiguous is refused.

A node names a resource at top level, in ``sizes``, or, ``neurons`` alone, as ``size``. What it does not name counts 0,
unless another reading is as likely.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from nmsolve.model import errors
from nmsolve.model.errors import InputError, doubtful
from nmsolve.model.formats.json_parts import whole
from nmsolve.model.types import IntArray

#: Keys of a node that are resources in any file, so that a wrong value there is an error.
RESOURCES = (
    "neurons",
    "synapses",
    "axons",
    "axons_in",
    "axons_out",
    "fan_in",
    "fan_out",
    "compartments",
    "bytes",
    "memory",
    "macs",
)
#: Keys of a node that are never resources.
RESERVED = frozenset({"id", "name", "label", "kind", "multicast", "rate", "size", "sizes"})

#: Keys of a node with a meaning of their own.
READ = frozenset({"id", "kind", "multicast", "rate", "size", "sizes"})

#: Most resources of a file, and most different keys of nodes: every node gets a number for each resource.
MOST_RESOURCES, MOST_KEYS = 64, 1000

Node = dict[str, Any]


def node_sizes(
    nodes: list[Node], attributes: dict[str, Any], where: str
) -> tuple[tuple[str, ...], IntArray | None]:
    """Resource names and (n, R) sizes; ``neurons`` and None (1 each) if no node names a resource.

    Parameters
    ----------
    nodes : as decoded
    attributes : the file's ``graph``, which may name resources (``resources``, ``capacity``)
    where : the file, for errors

    Raises
    ------
    InputError : no whole number, two unlike sizes of one resource, or a node of which it is not clear whether it has
        none of a resource or names it elsewhere; with the JSON path
    """
    keys = set(chain.from_iterable(nodes))
    if len(keys) > MOST_KEYS:
        raise InputError(f"{len(keys)} different keys", f"{where}: $.nodes", f"at most {MOST_KEYS}")
    listed = _listed(attributes, keys, where)
    objects = _objects(nodes, where) if "sizes" in keys else None
    named = {} if objects is None else dict.fromkeys(chain.from_iterable(objects))
    known = {*RESOURCES, *named, *(listed or ())}
    if isinstance(attributes.get("capacity"), dict):
        known |= attributes["capacity"].keys()
    top = _top_keys(nodes, keys, listed, known, where)
    _warn(sorted(keys - {*top, *READ}), [r for r in top if r not in known], where)
    if len({*named, *top}) > MOST_RESOURCES:
        raise InputError(f"{len({*named, *top})} resources", f"{where}: $.nodes", f"at most {MOST_RESOURCES}")
    sources: dict[str, list[tuple[str, list[Any]]]] = {}
    if objects is not None:
        for name in named:
            sources.setdefault(name, []).append((f".sizes.{name}", [o.get(name, _NONE) for o in objects]))
    if "size" in keys:
        sources.setdefault("neurons", []).append((".size", [node.get("size", _NONE) for node in nodes]))
    for name in top:
        sources.setdefault(name, []).append((f".{name}", [node.get(name, _NONE) for node in nodes]))
    if not sources:
        return ("neurons",), None
    with_object = np.array(["sizes" in node for node in nodes])
    columns = {
        name: _column(name, places, with_object, name in known, where) for name, places in sources.items()
    }
    names = tuple(sorted(columns, key=lambda r: (RESOURCES.index(r) if r in RESOURCES else 99, r)))
    return names, np.stack([columns[r] for r in names], axis=1)


def _warn(unread: list[str], assumed: list[str], where: str) -> None:
    """Say which keys of nodes are passed over, and which are taken for resources though no list names them."""
    errors.name_unread("key", unread, f"{where}: $.nodes", "ids, sizes, kind, multicast, rate")
    if assumed:
        what = f"{errors.listed('key', assumed)} counted as resources: all values are whole numbers"
        doubtful(what, f"{where}: $.nodes", "resources in sizes, or named in graph.resources")


#: What a node has in a place where it names nothing (None is a value, and a wrong one).
_NONE = object()


def _column(
    name: str,
    places: list[tuple[str, list[Any]]],
    with_object: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    known: bool,
    where: str,
) -> IntArray:
    """Return (n,) what every node takes of one resource, from all the places where nodes name it."""
    n = len(with_object)
    out, said, at_top = np.zeros(n, np.int64), np.full(n, -1), False
    for k, (key, values) in enumerate(places):
        at_top = at_top or not key.startswith(".sizes.")
        for i, value in enumerate(values):
            if value is _NONE:
                continue
            size = whole(value, f"{where}: $.nodes[{i}]{key}")
            if said[i] >= 0 and size != out[i]:
                raise InputError(
                    f"{size} {name}, but {places[said[i]][0][1:]} says {out[i]}",
                    f"{where}: $.nodes[{i}]{key}",
                    "only one of them, or equal values",
                )
            out[i], said[i] = size, k
    # With an object of sizes a node has said all; then 0 is plain unless others do not keep this resource there.
    unclear = (said < 0) & (with_object & at_top if name != "neurons" else ~with_object | at_top)
    if known and unclear.any():
        i, other = int(np.argmax(unclear)), int(np.argmax(said >= 0))
        raise InputError(
            f"the node has no {name}, but node {other} has it ({places[said[other]][0][1:]})",
            f"{where}: $.nodes[{i}]",
            f"{name} of every node, 0 if it has none",
        )
    return out


def _objects(nodes: list[Node], where: str) -> list[dict[str, Any]]:
    """Return the ``sizes`` of every node, empty where it has none."""
    out = [node.get("sizes", {}) for node in nodes]
    for i, sizes in enumerate(out):
        if not isinstance(sizes, dict):
            raise InputError(
                f"found {sizes!r}", f"{where}: $.nodes[{i}].sizes", "resource names with whole numbers"
            )
    return out


def _listed(attributes: dict[str, Any], keys: set[str], where: str) -> list[str] | None:
    """Return ``graph.resources``, or None; every name must be there, and a top-level ``neurons`` be among them."""
    listed = attributes.get("resources")
    if listed is None:
        return None
    place = f"{where}: $.graph.resources"
    if not (isinstance(listed, list) and all(isinstance(r, str) for r in listed)):
        raise InputError(f"found {listed!r}", place, "a list of names")
    for name in listed:
        if name in RESERVED:
            raise InputError(f"{name!r} is a reserved key", place, "no " + ", ".join(sorted(RESERVED)))
    if "neurons" in keys and "neurons" not in listed:
        raise InputError("neurons of nodes are not in the list", place, "neurons as well")
    return listed


def _top_keys(
    nodes: list[Node], keys: set[str], listed: list[str] | None, known: set[str], where: str
) -> list[str]:
    """Return top-level keys that are resources: ``graph.resources`` if given, else known and whole-number ones."""
    if listed is not None:
        for name in listed:
            if name not in keys and not any(name in node.get("sizes", ()) for node in nodes):
                raise InputError(f"no node has {name!r}", f"{where}: $.graph.resources", "keys of nodes")
        return [r for r in dict.fromkeys(listed) if r in keys]
    out = []
    for key in sorted(keys - RESERVED):
        if key in known:
            out.append(key)
            continue
        values = {i: node[key] for i, node in enumerate(nodes) if key in node}
        whole_ones = [type(v) is int and v >= 0 for v in values.values()]
        if all(whole_ones):
            out.append(key)
        elif any(whole_ones):
            mixed = next((i for i, v in values.items() if type(v) is float), None)
            if mixed is not None:
                raise InputError(
                    f"found {values[mixed]!r} where other nodes have whole numbers, which make it a resource",
                    f"{where}: $.nodes[{mixed}].{key}",
                    "whole numbers, or the names of all resources in graph.resources",
                )
    return out
