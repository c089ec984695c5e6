"""What an operator costs where it was not measured: launch, arithmetic, memory (M3.8, origin ``assumed``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nmsolve.hw.assignment.machine import Processor, Rate, width_of
from nmsolve.hw.assignment.tiling import Extent, Tiles, choose_tiles, read_again, tile_count, tiled_time
from nmsolve.model.operators.classes import CONTROL, SHAPE_ONLY, tensor_class
from nmsolve.model.operators.graph import Operator, OperatorGraph, Tensor
from nmsolve.model.operators.macs import FREE
from nmsolve.model.operators.sizes import elements_of

#: Operators that read only as much of their first input as they give.
PICKING = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})


class OperatorWork(NamedTuple):
    """What one run of an operator does.

    Attributes
    ----------
    kind : its type
    width : that it computes in
    needed : all widths that a processor must be able to handle
    macs, elements : multiply-accumulate operations, and elements worked without them
    bytes : read and written, each tensor once; 0 for operators that only rename
    extent : rows, columns and inner length of a product, None for other operators
    streamed, held : bytes that its rows and its columns come from
    """

    kind: str
    width: str
    needed: frozenset[str]
    macs: int
    elements: int
    bytes: int
    extent: Extent | None = None
    streamed: int = 0
    held: int = 0


def widths_of(graph: OperatorGraph, operator: Operator) -> tuple[str, frozenset[str]]:
    """Return the width that an operator computes in, and all that a processor must handle to run it.

    An operator with MACs computes in the width of its first input, ``Shape`` and its like in that of their result, any other in
    that of its largest tensor, the result first among equals. Other widths are needed for tensors of class tensor (see
    ``classes``), and for both sides of a ``Cast``; truth values only where they are all there is.
    """
    outputs = [graph.tensors[k] for k in operator.outputs if k >= 0]
    inputs = [graph.tensors[k] for k in operator.inputs if k >= 0]
    seen = [] if operator.kind in SHAPE_ONLY else inputs
    if operator.kind in _PRODUCTS and inputs:
        main = inputs[0]
    elif outputs or seen:
        main = max([*outputs, *seen], key=_size)  # max keeps the first of equals
    else:
        return "", frozenset()
    needed = {width_of(main.dtype)}
    for t in [*outputs, *seen]:
        if t.dtype != "bool" and (operator.kind == "Cast" or tensor_class(t) == "tensor"):
            needed.add(width_of(t.dtype))
    return width_of(main.dtype), frozenset(needed - {""})


_PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "MatMul", "MatMulInteger", "QLinearMatMul", "Gemm", "Attention",
    "FusedConv", "FusedMatMul", "FusedGemm", "MatMulNBits", "LSTM", "GRU", "RNN",
})  # fmt: skip


def _size(tensor: Tensor) -> int:
    count = elements_of(tensor)
    return count if isinstance(count, int) else 0


def bytes_touched(kind: str, read: int, written: int) -> int:
    """Return bytes that an operator reads and writes: none if it only renames, as much as it gives if it picks."""
    if kind in FREE:
        return 0
    return min(read, written) + written if kind in PICKING else read + written


def why_not(processor: Processor, work: OperatorWork) -> str | None:
    """Return why a processor cannot run an operator, or None: control flow, its type, or a width."""
    if work.kind in CONTROL and not processor.host:
        return "control flow"
    if not processor.can_run(work.kind):
        return f"type {work.kind}"
    for width in sorted(work.needed):
        rate = processor.rates.get(width)
        if rate is None or (work.macs and width == work.width and not rate.macs):
            return f"width {width}"
    return None


def roofline(processor: Processor, work: Iterable[OperatorWork]) -> tuple[float, float]:
    """Return ps and pJ of operators that run as one on a unit of a processor that can run them.

    ``time = launch + max(sum MACs / peak, sum elements / rate, sum bytes / bandwidth)``, each width at its own rate: copies go on
    beside arithmetic (M3.4). A product that does not fit what the unit holds on chip is done in tiles (M3.3): it reads more
    (:func:`nmsolve.hw.assignment.tiling.read_again`), and waits for its first tile, or for all of them if its copies are not
    doubled.
    ``energy = sum (MACs + elements) * energy of the width + bytes * energy of the memory``.
    """
    macs = elements = bytes_ = waits = energy = 0.0
    for w in work:
        rate = _rate(processor, w.width)
        macs += w.macs / rate.macs if w.macs else 0.0
        elements += w.elements / rate.elements
        moved, alone = w.bytes, 0.0
        tiles = tiles_of(processor, w)
        if tiles is not None and w.extent is not None:
            again = read_again(w.extent, tiles, w.streamed, w.held)
            moved += again
            alone = (w.streamed + w.held + again) / (tile_count(w.extent, tiles) if tiles.doubled else 1)
        bytes_ += moved - alone
        waits += alone
        energy += (w.macs + w.elements) * rate.energy + moved * processor.energy_byte
    busy = max(macs, elements, bytes_ / processor.bandwidth) + waits / processor.bandwidth
    return processor.launch + 1e12 * busy, energy


def arithmetic(processor: Processor, work: OperatorWork) -> tuple[float, float]:
    """Return ps and pJ of an operator's arithmetic alone on a processor that can run it: its complexity there (M3.7).

    ``MACs / peak + elements / rate``, and ``(MACs + elements) * energy``, each at the rates of the width that it computes in: a
    multiplication and an addition for one of them alone, floats for whole numbers, and the amount of work.
    """
    rate = _rate(processor, work.width)
    time = (work.macs / rate.macs if work.macs else 0.0) + work.elements / rate.elements
    return 1e12 * time, (work.macs + work.elements) * rate.energy


def tiles_of(processor: Processor, work: OperatorWork) -> Tiles | None:
    """Return the tiles in which a unit does a product; None if all of it fits on chip, or the unit's own memory is not known.

    Copies are doubled if that is faster: it hides them behind the arithmetic, but leaves less room for the result.
    """
    extent = work.extent
    if extent is None or not processor.on_chip:
        return None
    compute, best, least = work.macs / _rate(processor, work.width).macs, None, 0.0
    for doubled in (True, False):
        sizes = (int(extent.rows), int(extent.columns), int(extent.inner))
        tiles = choose_tiles(extent, *sizes, processor.on_chip, doubled)
        if tiles is None:
            return None
        read = work.streamed + work.held + read_again(extent, tiles, work.streamed, work.held)
        time = tiled_time(tile_count(extent, tiles), read / processor.bandwidth, compute, doubled)
        if best is None or time < least:
            best, least = tiles, time
    return best


def _rate(processor: Processor, width: str) -> Rate:
    """Return the rate of a width; of an unknown type of elements that of the slowest."""
    return processor.rates.get(width) or min(processor.rates.values(), key=lambda r: r.elements)
