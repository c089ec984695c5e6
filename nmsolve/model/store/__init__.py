"""Graphs on disk (M2.1): the ``.nmz`` store, its writer and reader, and graphs that stay there. See ``docs/nmz.md``."""

from nmsolve.model.store.block import Block
from nmsolve.model.store.graph import StoredGraph, load, open_graph
from nmsolve.model.store.manifest import Coding, Manifest, Shard
from nmsolve.model.store.reader import Store
from nmsolve.model.store.writer import StoreWriter

__all__ = [
    "Block",
    "Coding",
    "Manifest",
    "Shard",
    "Store",
    "StoreWriter",
    "StoredGraph",
    "load",
    "open_graph",
]
