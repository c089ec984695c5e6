"""What bench/scale.py needs of nmsolve for others: their input files, part graphs, and the score of their answers.

    scale_tools.py graph NET.nmz OUT.parhip              symmetric traffic, streamed
    scale_tools.py text NET.nmz OUT.graph                the same as METIS text (for Mt-KaHyPar)
    scale_tools.py nets NET.nmz OUT.hgr                  messages as hMETIS text
    scale_tools.py quotient NET.nmz PART.npy OUT.parhip  traffic between parts
    scale_tools.py compose PART.npy WHERE.npy OUT.npy     the core of every node, from its part and the part's core
    scale_tools.py synapses NET.nmz                       how many it has
    scale_tools.py score NET.nmz MACHINE BALANCE OBJECTIVE CORE.npy

The last prints a JSON line with the objective and what is wrong with the mapping, by nmsolve's own evaluator.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.model.store import Block, Store, open_graph
from nmsolve.model.store.block import Records, symmetric
from nmsolve.model.store.regroup import regrouped
from nmsolve.model.store.scratch import Scratch
from nmsolve.solvers.mapping.api import make_problem

MEMORY = 2**30
#: Others take whole weights: rates in Hz are given in thousandths.
FINE = 1000


def graph(net: Path, out: Path) -> None:
    """Write the symmetric traffic of a store for KaMinPar, and for all who read its arrays."""
    with Store(net) as store, Scratch(out.parent) as scratch:
        blocks = regrouped(
            symmetric(store.blocks(workers=2)),
            store.n,
            memory=MEMORY,
            scratch=scratch,
            drop_loops=True,
            workers=2,
        )
        write_parhip(out, store.n, blocks, 1 if open_graph(net).integral else FINE)


def write_parhip(out: Path, n: int, blocks: Iterable[Block], scale: int) -> None:
    """ParHIP's binary format in 32 bits: header, byte offsets (64 bits), neighbours, node weights 1, edge weights."""
    offsets = np.zeros(n + 1, np.int64)
    head = 8 * (n + 4)
    m = 0
    with out.open("wb") as file, tempfile.TemporaryFile(dir=out.parent) as weights:
        file.seek(head)
        for block in blocks:
            k = len(block.indptr) - 1
            offsets[block.first + 1 : block.first + k + 1] = m + block.indptr[1:]
            m += len(block.neighbour)
            block.neighbour.astype(np.uint32).tofile(file)
            np.maximum(1, np.rint(block.weight * scale)).astype(np.uint32).tofile(weights)
        np.ones(n, np.uint32).tofile(file)
        weights.seek(0)
        while part := weights.read(2**24):
            file.write(part)
        file.seek(0)
        np.array([8 + 16 + 32, n, m], np.uint64).tofile(file)
        (head + 4 * offsets).astype(np.uint64).tofile(file)


def text(net: Path, out: Path) -> None:
    """METIS's text format."""
    from scale_peer import read_parhip

    binary = out.with_suffix(".parhip")
    if not binary.exists():
        graph(net, binary)
    indptr, indices, weights = read_parhip(binary)
    with out.open("w") as file:
        file.write(f"{len(indptr) - 1} {len(indices) // 2} 1\n")
        for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
            pairs = np.stack([indices[a:b] + 1, weights[a:b]], 1).ravel().tolist()
            file.write(" ".join(map(str, pairs)) + "\n")


def nets(net: Path, out: Path) -> None:
    """hMETIS's text format: a message is its rate, its source and its targets, counted from 1."""
    network = open_graph(net)
    scale = 1 if network.integral else FINE
    count = sum(int((np.diff(rows.indptr) > 0).sum()) for rows in network.blocks())
    with out.open("w") as file:
        file.write(f"{count} {network.n} 1\n")
        for rows in network.blocks():
            for i in np.flatnonzero(np.diff(rows.indptr)).tolist():
                pins = rows.targets[rows.indptr[i] : rows.indptr[i + 1]] + 1
                rate = max(1, round(float(rows.rate[i]) * scale))
                file.write(f"{rate} {rows.source[i] + 1} " + " ".join(map(str, pins.tolist())) + "\n")


def quotient(net: Path, part_file: Path, out: Path) -> None:
    """Traffic between parts, in the same format as :func:`graph`."""
    part = np.load(part_file).astype(np.int32)
    parts = int(part.max()) + 1
    scale = 1 if open_graph(net).integral else FINE

    def records() -> Iterable[Records]:
        with Store(net) as store:
            for r in symmetric(store.blocks(workers=2)):
                yield Records(part[r.key], part[r.neighbour], r.weight, np.empty(0, np.int32))

    with Scratch(out.parent) as scratch:
        blocks = regrouped(records(), parts, memory=MEMORY, scratch=scratch, drop_loops=True, workers=2)
        write_parhip(out, parts, blocks, scale)


def compose(part: Path, where: Path, out: Path) -> None:
    """The core of every node."""
    np.save(out, np.load(where)[np.load(part)])


def synapses(net: Path) -> None:
    """Synapses, several between the same two neurons counted each."""
    with Store(net) as store:
        print(
            sum(
                int(block.size.sum()) if len(block.size) else len(block.neighbour) for block in store.blocks()
            )
        )


def score(net: Path, machine: str, balance: str, objective: str, core_file: Path) -> None:
    """The objective of a mapping, and the first complaint about it."""
    share = None if balance == "none" else float(balance)
    problem = make_problem(open_graph(net), load_machine(machine), objective=objective, balance=share)
    core = np.load(core_file)
    complaints = check_mapping(problem, core)
    over = 0.0
    if problem.resources:
        load = np.bincount(core, problem.sizes[:, 0], problem.cores)
        over = float((load / np.maximum(problem.capacity[:, 0], 1)).max() - 1)
    value = objective_value(problem, core)
    print(json.dumps({"value": value, "wrong": str(complaints[0]) if complaints else "", "over": over}))


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "score":
        score(Path(rest[0]), *rest[1:4], Path(rest[4]))
    elif what == "synapses":
        synapses(Path(rest[0]))
    else:
        {"graph": graph, "text": text, "nets": nets, "quotient": quotient, "compose": compose}[what](
            *map(Path, rest)
        )
