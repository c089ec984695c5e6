"""``nmsolve info model.onnx``: what every operator of a model costs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.answer import tell
from nmsolve.model.quantities import counted

if TYPE_CHECKING:
    from nmsolve.cli.commands import InfoOptions
    from nmsolve.model.operators.graph import OperatorGraph
    from nmsolve.model.operators.scalars.passes import PassCount
    from nmsolve.model.operators.scalars.program import ScalarProgram
    from nmsolve.model.operators.table import ModelMemory, Row, Table

_HEAD = ("operator", "kind", "output", "MACs", "parameters", "bytes", "MACs/byte", "work", "class")
#: Columns of numbers, aligned right.
_RIGHT = {"MACs", "parameters", "bytes", "MACs/byte"}
#: Longer expressions are cut in the table; --json has them whole.
_WIDEST = 40
#: Steps of the arithmetic at run time that are listed.
_STEPS = 12
#: The same for sums, which have a separate line.
_SUM = 200


def run_info_onnx(o: InfoOptions) -> int:
    """Print the table of a model."""
    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.binding import parse_bindings
    from nmsolve.model.operators.scalars.passes import optimised
    from nmsolve.model.operators.scalars.trace import traced
    from nmsolve.model.operators.table import table_of

    bindings = parse_bindings(o.bind)
    graph = load_onnx(o.graph, strict=o.strict, bindings=bindings)
    table = table_of(graph, bindings)
    left, passes = optimised(traced(table.graph))
    memory = _memory(graph, bindings, table)
    sums = (*_sums(table), *_memory_words(memory), *_arithmetic(left, passes))
    lines = (*_introduction(table), "", *_columns(table.rows), "", *sums)
    done = tell(o.json, _records(table, left, passes, memory) if o.json else (), lines)
    for warning in () if o.json else table.graph.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return done


# ------------------------------------------------------------------------------------------------ text


def _introduction(table: Table) -> list[str]:
    graph = table.graph
    hint = f"   (--bind {table.symbols[0]}=NUMBER)" if table.symbols else ""
    return [
        f"{graph.name}: {len(graph.operators):,} operators",
        f"  inputs         {_tensors(graph, graph.inputs)}",
        f"  outputs        {_tensors(graph, graph.outputs)}",
        f"  symbols        {', '.join(table.symbols) or 'none'}{hint}",
    ]


def _tensors(graph: OperatorGraph, numbers: Sequence[int]) -> str:
    named = [f"{graph.tensors[k].name}{_shape(graph.tensors[k].shape)}" for k in numbers]
    return ", ".join(named[:8]) + (f" and {len(named) - 8:,} more" if len(named) > 8 else "")


def _columns(rows: Sequence[Row]) -> list[str]:
    """Return the table, columns as wide as they need."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(_HEAD))]
    return [
        "  ".join(
            cell.rjust(width) if head in _RIGHT else cell.ljust(width)
            for cell, width, head in zip(line, widths, _HEAD, strict=True)
        ).rstrip()
        for line in cells
    ]


def _cells(row: Row) -> tuple[str, ...]:
    kind = row.kind if _is_one(row.trips) else f"{row.kind} x {_figure(row.trips)}"
    shape = "-" if not row.shapes else _shape(row.shapes[0])
    more = f" +{len(row.shapes) - 1}" if len(row.shapes) > 1 else ""
    intensity = "-" if row.intensity is None else f"{row.intensity:,.2f}" if row.intensity else "0"
    return (
        "  " * row.depth + row.name, kind, shape + more, _figure(row.macs), _figure(row.parameters), _figure(row.bytes),
        intensity, row.work, row.kind_class,
    )  # fmt: skip


def _sums(table: Table) -> list[str]:
    classes = table.classes
    lines = [
        f"MACs           {_figure(table.macs, _SUM)}"
        + (f"   ({counted(table.unknown, 'operator')} unknown)" if table.unknown else ""),
        f"parameters     {_figure(table.parameters, _SUM)}",
        f"weights        {_figure(table.weight_bytes, _SUM)} bytes",
        f"results        {_figure(table.activation_bytes, _SUM)} bytes of all operators",
        f"classes        {classes['tensor']:,} tensor, {classes['scalar']:,} scalar operators, bodies of control flow included",
        "kinds          " + ", ".join(f"{count:,} {kind}" for kind, count, _ in table.kinds[:12])
        + (f" and {len(table.kinds) - 12:,} other kinds" if len(table.kinds) > 12 else ""),
    ]  # fmt: skip
    return lines


def _memory(graph: OperatorGraph, bindings: Mapping[str, int], table: Table) -> ModelMemory | str:
    """Return the memory of the whole model, or why it is not known."""
    from nmsolve.model.errors import InputError
    from nmsolve.model.operators.layers import layers_of
    from nmsolve.model.operators.table import memory_of

    try:
        return memory_of(table.graph, layers_of(graph, bindings))
    except InputError as error:
        return f"{error.what}; {error.expected}" if error.expected else error.what


def _memory_words(memory: ModelMemory | str) -> list[str]:
    """Return weights by type, and the most that is live at once."""
    if isinstance(memory, str):
        return [f"live           not known: {memory}"]
    widths = ", ".join(f"{size:,} bytes of {dtype}" for dtype, size in memory.weights.items() if size)
    return [
        f"live           {memory.live:,} bytes at most at once, in the model's order; first at {memory.layer!r}",
        f"widths         {widths or 'no weights'}",
    ]


def _arithmetic(left: ScalarProgram, passes: Sequence[PassCount]) -> list[str]:
    """Return what the model computes on lengths and indices, what every pass takes off, and the steps that remain."""
    before = passes[0].before
    removed = ", ".join(f"{p.before - p.after:,} {p.name}" for p in passes if p.after < p.before)
    gone = f" (without {removed})" if removed else ""
    steps = left.steps_as_text() if left.count else []
    more = [f"... {len(steps) - _STEPS:,} more"] if len(steps) > _STEPS else []
    return [
        f"arithmetic     {before:,} steps on lengths and indices; {left.count:,} remain to be computed at run time{gone}",
        *(f"               {line}" for line in steps[:_STEPS] + more),
    ]


def _figure(count: Any, widest: int = _WIDEST) -> str:
    if count is None:
        return "?"
    if isinstance(count, int):
        return f"{count:,}"
    text = str(count)
    return text if len(text) <= widest else text[: widest - 3] + "..."


def _shape(shape: Sequence[Any] | None) -> str:
    return "[?]" if shape is None else "[" + ",".join(str(d) for d in shape) + "]"


def _is_one(trips: Any) -> bool:
    return isinstance(trips, int) and trips == 1


# ------------------------------------------------------------------------------------------------ JSON


def _records(
    table: Table, left: ScalarProgram, passes: Sequence[PassCount], memory: ModelMemory | str
) -> list[dict[str, object]]:
    """Return the model, then every operator; expressions are texts, what is not known is null."""
    graph = table.graph
    model: dict[str, object] = {
        "type": "model",
        "name": graph.name,
        "operators": len(graph.operators),
        "inputs": {graph.tensors[k].name: _plain_shape(graph.tensors[k].shape) for k in graph.inputs},
        "outputs": {graph.tensors[k].name: _plain_shape(graph.tensors[k].shape) for k in graph.outputs},
        "symbols": list(table.symbols),
        "macs": _plain(table.macs),
        "elements": _plain(table.elements),
        "parameters": _plain(table.parameters),
        "weight_bytes": _plain(table.weight_bytes),
        "activation_bytes": _plain(table.activation_bytes),
        "unknown": table.unknown,
        "classes": dict(table.classes),
        "kinds": {kind: {"operators": count, "macs": _plain(macs)} for kind, count, macs in table.kinds},
        "live_bytes": None if isinstance(memory, str) else memory.live,
        "live_at": None if isinstance(memory, str) else memory.layer,
        "weight_widths": None if isinstance(memory, str) else dict(memory.weights),
        "warnings": list(graph.warnings),
        "arithmetic": {
            "steps": passes[0].before,
            "passes": {p.name: p.after for p in passes},
            "remaining": left.text() if left.count else [],
        },
    }
    return [model, *(_record(row) for row in table.rows)]


def _record(row: Row) -> dict[str, object]:
    figures = (
        "macs", "elements", "parameters", "weight_bytes", "input_bytes", "output_bytes", "bytes", "trips",
    )  # fmt: skip
    return {
        "type": "operator",
        "name": row.name,
        "kind": row.kind,
        "depth": row.depth,
        "shapes": [_plain_shape(shape) for shape in row.shapes],
        **{name: _plain(getattr(row, name)) for name in figures},
        "intensity": row.intensity,
        "class": row.kind_class,
        "work": row.work,
    }


def _plain(count: Any) -> int | str | None:
    return count if count is None or isinstance(count, int) else str(count)


def _plain_shape(shape: Sequence[Any] | None) -> list[int | str | None] | None:
    return None if shape is None else [_plain(d) for d in shape]
