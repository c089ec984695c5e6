"""Small pipelines as plain data, and their best plan by trying all of them in fractions.

Written from docs/pipeline.md (*The problem*, *Memory*, *Cost graphs*) alone; nothing here is taken from the package.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

Block = tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """A tensor in a buffer: the layer that makes it (None: an input of the model), those that read it, whether it leaves."""

    maker: int | None
    readers: tuple[int, ...]
    leaves: bool = False


@dataclass(frozen=True)
class Pipeline:
    """L layers and what plans may do with them.

    Attributes
    ----------
    time : (L, C) of layers on 1 to C cores
    storage : (L,) weights, or all that a layer needs of memory
    tensors : maker, readers and time of every tensor
    host : (L,) of layers on a host (inf: impossible), of which there are ``hosts``
    classes : (L,) colour classes, -1: none
    buffers : bytes, and the tensors that lie there: the first one, and what it is called in other shapes
    offchip : time of one core per byte moved off chip; 0: no such memory
    """

    time: tuple[tuple[float, ...], ...]
    storage: tuple[float, ...]
    tensors: tuple[tuple[int, tuple[int, ...], float], ...]
    cores: int
    stages: int
    split: str = "contiguous"
    exact: bool = False
    use_all: bool = False
    memory: float | None = None
    overlap: bool = False
    host: tuple[float, ...] = ()
    hosts: int = 0
    classes: tuple[int, ...] = ()
    buffers: tuple[tuple[int, tuple[Shape, ...]], ...] = ()
    offchip: float = 0.0

    @property
    def count(self) -> int:
        """L."""
        return len(self.time)


def optimum(p: Pipeline) -> Fraction | None:
    """The least largest load of any plan; None if no plan keeps the rules."""
    known: dict[Block, dict[int, Fraction]] = {}
    best: Fraction | None = None
    for blocks in partitions(p.count):
        if len(blocks) > p.stages or (p.exact and len(blocks) != p.stages) or not in_order(p, blocks):
            continue
        for block in blocks:
            if block not in known:
                known[block] = choices(p, block)
        for sizes in itertools.product(*(known[block] for block in blocks)):
            if sum(sizes) > p.cores or (p.use_all and sum(sizes) < p.cores) or sizes.count(0) > p.hosts:
                continue
            worst = max(known[block][c] for block, c in zip(blocks, sizes, strict=True))
            best = worst if best is None else min(best, worst)
    return best


def value_of(p: Pipeline, stage: list[int], cores: list[int]) -> Fraction | None:
    """The largest load of a plan; None if it breaks a rule."""
    blocks = [tuple(k for k in range(p.count) if stage[k] == s) for s in range(len(cores))]
    if not all(blocks) or len(cores) > p.stages or (p.exact and len(cores) != p.stages):
        return None
    if sum(cores) > p.cores or (p.use_all and sum(cores) < p.cores) or cores.count(0) > p.hosts:
        return None
    if any(stage[a] > stage[b] for a, b in pairs(p)) or not in_order(p, blocks):
        return None
    found = [choices(p, block).get(c) for block, c in zip(blocks, cores, strict=True)]
    return None if None in found else max(x for x in found if x is not None)


def partitions(count: int) -> Iterator[list[Block]]:
    """All ways to group layers, whatever the order."""
    if count == 0:
        yield []
        return
    for blocks in partitions(count - 1):
        for k, block in enumerate(blocks):
            yield [*blocks[:k], (*block, count - 1), *blocks[k + 1 :]]
        yield [*blocks, (count - 1,)]


def pairs(p: Pipeline) -> list[tuple[int, int]]:
    """Layers of which the first must not be in a later stage than the second."""
    if p.split == "chain":
        return [(k, k + 1) for k in range(p.count - 1)]
    return [(maker, reader) for maker, readers, _ in p.tensors for reader in readers]


def in_order(p: Pipeline, blocks: list[Block]) -> bool:
    """Whether classes are kept and some order of the groups has every pair in it: no way from a group back to itself."""
    where = {layer: s for s, block in enumerate(blocks) for layer in block}
    for a, b in itertools.combinations(range(p.count), 2):
        if p.classes and p.classes[a] == p.classes[b] >= 0 and where[a] != where[b]:
            return False
    before = {(where[a], where[b]) for a, b in pairs(p) if where[a] != where[b]}
    left = set(range(len(blocks)))
    while left:
        free = {s for s in left if not any(b == s and a in left for a, b in before)}
        if not free:
            return False
        left -= free
    return True


def choices(p: Pipeline, block: Block) -> dict[int, Fraction]:
    """The load of a stage of these layers, by the cores that can hold it; 0 cores: a host."""
    out: dict[int, Fraction] = {}
    if p.hosts and p.host and all(math.isfinite(p.host[k]) for k in block):
        out[0] = sum((Fraction(p.host[k]) for k in block), Fraction(0))
    moved = sum(
        (Fraction(time) for maker, readers, time in p.tensors if _crosses(block, maker, readers)), Fraction(0)
    )
    needs = float(sum(Fraction(p.storage[k]) for k in block)) + peak(p, block)
    for c in range(1, min(len(p.time[0]), p.cores) + 1):
        if p.memory is not None and not p.offchip and needs > c * p.memory:
            continue
        work = sum((Fraction(p.time[k][c - 1]) for k in block), Fraction(0))
        parts = (work, moved, Fraction(streamed(p, block, c)) * Fraction(p.offchip) / c)
        out[c] = max(parts) if p.overlap else sum(parts, Fraction(0))
    return out


def _crosses(block: Block, maker: int, readers: tuple[int, ...]) -> bool:
    ends = {maker, *readers}
    return not ends <= set(block) and bool(ends & set(block))


def peak(p: Pipeline, block: Block) -> int:
    """Most bytes live at once in a stage of these layers, which run in their order."""
    return max(
        sum(
            size
            for size, shapes in p.buffers
            if any(_lives(x, block, t) for x in shapes) or _kept(shapes, block, t)
        )
        for t in block
    )


def _lives(tensor: Shape, block: Block, t: int) -> bool:
    """Whether a tensor is live while layer ``t`` of the stage runs."""
    inside = [k for k in tensor.readers if k in block]
    if tensor.maker in block:
        elsewhere = tensor.leaves or len(inside) < len(tensor.readers)
        return tensor.maker <= t and (elsewhere or any(k >= t for k in inside))
    return any(k >= t for k in inside)


def _kept(shapes: tuple[Shape, ...], block: Block, t: int) -> bool:
    """Whether a buffer that the stage made, or gave another shape, is kept to its end for a later layer elsewhere."""
    made = [x.maker for x in shapes if x.maker in block]
    if not made or min(made) > t:
        return False
    users = {k for x in shapes for k in (*x.readers, *(() if x.maker is None else (x.maker,)))}
    return any(x.leaves for x in shapes) or any(k > min(made) and k not in block for k in users)


def streamed(p: Pipeline, block: Block, c: int) -> int:
    """Bytes that ``c`` cores move from and to off-chip memory in a run: weights first, once; live bytes twice."""
    if p.memory is None or not p.offchip:
        return 0
    weights = int(sum(p.storage[k] for k in block))
    over = max(0, weights + peak(p, block) - c * int(p.memory))
    return over + max(0, over - weights)
