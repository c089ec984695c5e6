"""``nmsolve info`` and ``nmsolve convert``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.registry import DESCRIBED
from nmsolve.model.lookup import named

if TYPE_CHECKING:
    from nmsolve.cli.commands import ConvertOptions, InfoOptions


def run_info(o: InfoOptions) -> int:
    """Print what a graph or model file holds.

    Raises
    ------
    InputError : a file that cannot be read, or options of models for a graph
    """
    path = o.graph
    if path.suffix.lower() == ".onnx":
        from nmsolve.cli.info_onnx import run_info_onnx

        return run_info_onnx(o)
    codes = (tell(path, o) for tell in map(named, DESCRIBED))
    return next(int(code) for code in codes if code is not None)


def run_convert(o: ConvertOptions) -> int:
    """Read one format, write another."""
    import os

    from nmsolve.kinds.answer import require_inputs_kept
    from nmsolve.kinds.loading import given_reading
    from nmsolve.model.errors import InputError
    from nmsolve.model.formats import Rates, convert

    if not o.rates and (o.recorded is not None or o.step is not None):
        raise InputError("--step and --recorded are about a recording", "convert", "--rates FILE")
    rates = Rates(tuple(o.rates), 1000.0 if o.step is None else o.step, o.recorded) if o.rates else None
    require_inputs_kept([o.target], o)
    nodes, edges = convert(o.source, o.target, os.cpu_count() or 1, rates, given_reading(o))
    print(f"{o.target}: {nodes:,} nodes, {edges:,} edges")
    return 0
