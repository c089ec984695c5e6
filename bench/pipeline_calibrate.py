"""The times that ``nmsolve pipeline`` gives to layers, against measured ones: threads of this host as cores.

``python bench/pipeline_calibrate.py MODEL.onnx ... [--other MODEL.onnx ...] [--bind batch=1,seq=128] [--write host.toml]`` runs
models in ONNX Runtime on 1 and on 2 threads, operator by operator. It cuts every MODEL into groups of ten layers in a row. Every
other group gives figures of a core: ``bandwidth`` is that of copies of the tensors it ends with; ``mac_rate`` and
``element_rate`` are those with the least error of its layers on one thread, then ``group_sync`` on two. Printed is the error on
the rest, and on the models after ``--other``, of which nothing is fitted:

* of layers whose sizes are not among those fitted, and of copies of the tensors between groups, as a cut makes them;
* of groups, run as models of their own: sums of their layers' times, as in the load of a stage.

A time is *off* by max(model / measured, measured / model). ``--write`` keeps the figures as a machine of two cores.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import spearmanr

from nmsolve.hw.assignment.fused_profile import filled, whole_times
from nmsolve.hw.assignment.runtime import Patience, Session, require_runtime, runtime_name, session_of, timed
from nmsolve.hw.machine_write import save_machine
from nmsolve.hw.pipeline.tiles import layer_times
from nmsolve.model.errors import BackendError, InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.formats.onnx.parse import read_model
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.operators.binding import bound_graph, parse_bindings, symbols_of
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.pipeline.figures import ASSUMED, CoreFigures
from nmsolve.model.types import BoolArray, FloatArray, IntArray

#: Numbers of threads, which stand for cores; layers of a group.
THREADS, SIZE = (1, 2), 10
#: Logarithms of the least and the most MACs or elements per second.
RATES = np.log(1e7), np.log(1e14)


class Sample(NamedTuple):
    """What was measured of a model of L layers in G groups; times in us, by number of threads.

    ``times`` (T, L) of layers; ``group`` (L,) of each; ``groups`` (T, G) of groups; ``tensors`` (K, 3): the group before one that
    begins with a tensor, its bytes, us of its copy.
    """

    layers: Layers
    times: FloatArray
    group: IntArray
    groups: FloatArray
    tensors: FloatArray


class Error(NamedTuple):
    """How far stated times are from measured ones: factors, rank correlation, and the ratio of the sums."""

    count: int
    median: float
    high: float
    rank: float
    total: float


def error_of(stated: FloatArray, measured: FloatArray) -> Error:
    """Return the error of times above 0."""
    off = np.exp(np.abs(np.log(stated / measured)))
    rank = spearmanr(stated, measured).statistic if len(off) > 2 else np.nan
    numbers = np.median(off), np.quantile(off, 0.9), rank, stated.sum() / measured.sum()
    return Error(len(off), *map(float, numbers))


def fit(parts: Sequence[tuple[Layers, FloatArray, BoolArray]], bandwidth: float) -> CoreFigures:
    """Return the figures whose times are nearest to measured ones: the least mean of |log(stated / measured)|.

    Each layer weighs what it takes. Rates are those of a core alone; the time to meet is that with which groups then come
    nearest. Tiles are those of the assumed core.

    Parameters
    ----------
    parts : layers, (T, L) us measured on :data:`THREADS`, (L,) which of them count
    bandwidth : bytes per second of a core
    """
    taken = [np.concatenate([times[row, own] for _, times, own in parts]) for row in range(len(THREADS))]

    def figures(x: FloatArray, sync: float | None = None) -> CoreFigures:
        macs, elements = np.exp(np.clip(x, *RATES)).tolist()
        return CoreFigures(macs, elements, bandwidth, ASSUMED.tile_channels, ASSUMED.tile_rows, sync=sync)

    def loss(x: FloatArray, sync: float | None = None) -> float:
        row = int(sync is not None)
        stated = [times_of(layers, figures(x, sync))[row, own] for layers, _, own in parts]
        return float(np.average(np.abs(np.log(np.concatenate(stated) / taken[row])), weights=taken[row]))

    rates = np.full(2, np.mean(RATES))
    for _ in range(3):  # a simplex that has become flat begins anew
        rates = minimize(loss, rates, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7}).x
    low, high = 1.0, 1e9
    for _ in range(3):
        tried = np.geomspace(low, high, 60)
        best = int(np.argmin([loss(rates, float(sync)) for sync in tried]))
        low, high = tried[max(0, best - 1)], tried[min(59, best + 1)]
    return figures(rates, float(tried[best]))


def times_of(layers: Layers, figures: CoreFigures) -> FloatArray:
    """Return (T, L) us that a pipeline gives to layers on :data:`THREADS` cores."""
    return layer_times(layers, figures, max(THREADS))[:, [t - 1 for t in THREADS]].T


def works(layers: Layers) -> BoolArray:
    """Return (L,) which layers have any work: Flatten and its like have none."""
    return (layers.macs > 0) | (layers.elements > 0)


def same(layers: Layers) -> list[tuple[object, ...]]:
    """Return (L,) what makes two layers the same to a pipeline."""
    columns = (layers.macs, layers.elements, layers.channels, layers.rows, layers.weight_bytes)
    return list(zip(layers.kinds, *(c.tolist() for c in columns), strict=True))


def measure(path: Path, stated: Mapping[str, int], runs: int) -> Sample:
    """Run a model and its groups.

    Raises
    ------
    InputError, BackendError : it is small, has control flow or too many weights, or the runtime does not take it
    """
    whole, proto = load_onnx(path), read_model(path)
    bindings = {name: stated[name] for name in symbols_of(whole) if name in stated}
    layers, graph = layers_of(whole, bindings), bound_graph(whole, bindings)
    if layers.nesting is not None or layers.count <= SIZE:
        wanted = f"more than {SIZE}, and no If, Loop or Scan"
        raise InputError(f"{layers.count} layers, or control flow", str(path), wanted)
    own = [graph.operators[k].outputs for k in layers.operators]
    results = [[graph.tensors[t].name for t in outputs if t >= 0] for outputs in own]
    times = np.empty((len(THREADS), layers.count))
    for row, threads in enumerate(THREADS):
        plain = whole_times(proto, graph, bindings, threads, runs).plain
        times[row] = [1e-6 * plain[own[0]].low for own in results]
    taken, tensors, patience = [], [], Patience(runs=runs, seconds=2.0)
    for number, (data, inputs, outputs) in enumerate(pieces(*filled(proto, graph, bindings), graph, results)):
        for threads in THREADS:
            session = Session(data, threads)
            session.feed(inputs, outputs)
            taken.append(1e-6 * timed(session.run, patience).time)
        for array in (inputs[name] for own in results for name in own if name in inputs):
            copy = timed(partial(np.copyto, np.empty_like(array), array), replace(patience, seconds=0.1))
            tensors.append((number - 1, array.nbytes, 1e-6 * copy.time))
    groups = np.array(taken).reshape(-1, len(THREADS)).T
    return Sample(layers, times, np.arange(layers.count) // SIZE, groups, np.array(tensors).reshape(-1, 3))


def pieces(
    model: Any, feeds: Mapping[str, Any], graph: OperatorGraph, results: Sequence[Sequence[str]]
) -> Iterator[tuple[bytes, dict[str, Any], tuple[str, ...]]]:
    """Yield every group as a model, its inputs and the names of its results. ``results``: what every layer makes, by name."""
    from onnx import helper, numpy_helper

    nodes = list(model.graph.node)
    place = {name: k for k, node in enumerate(nodes) for name in node.output}
    begins = sorted(place[own[0]] for own in results[SIZE::SIZE])
    stored = {t.name: t for t in model.graph.initializer}
    types = {t.name: helper.np_dtype_to_tensor_dtype(np.dtype(t.dtype)) for t in graph.tensors if t.dtype}

    def info(name: str, shape: tuple[int, ...] | None = None) -> Any:
        return helper.make_tensor_value_info(name, types[name], shape)

    cuts = []
    for a, b in itertools.pairwise([0, *begins, len(nodes)]):
        made = [name for node in nodes[a:b] for name in node.output if name]
        read = {name for node in nodes[a:b] for name in node.input if name} - set(made)
        later = {name for node in nodes[b:] for name in node.input} | {o.name for o in model.graph.output}
        cuts.append((nodes[a:b], sorted(read), tuple(name for name in made if name in later)))
    crossing = sorted({name for _, read, _ in cuts for name in read} - stored.keys() - feeds.keys())
    asked = type(model)()
    asked.CopyFrom(model)
    del asked.graph.output[:]
    asked.graph.output.extend(info(name) for name in crossing)
    found = session_of(asked.SerializeToString(), "", 1, "off").run(crossing, dict(feeds))
    values = {**feeds, **dict(zip(crossing, found, strict=True))}
    for own, read, made in cuts:
        inputs = {name: np.asarray(values[name]) for name in read if name not in stored}
        weights = [numpy_helper.from_array(numpy_helper.to_array(stored[n]), n) for n in read if n in stored]
        body = helper.make_graph(
            own, "group", [info(n, a.shape) for n, a in inputs.items()], [info(n) for n in made], weights
        )
        part = helper.make_model(body, opset_imports=list(model.opset_import), ir_version=model.ir_version)
        yield part.SerializeToString(), inputs, made


def compared(
    sample: Sample, figures: CoreFigures, layers: BoolArray, groups: BoolArray
) -> Iterator[tuple[str, Error]]:
    """Yield what is compared, and the error, for some layers and groups of a model."""
    table = times_of(sample.layers, figures)
    for row, threads in enumerate(THREADS):
        if layers.any():
            yield f"layers | {threads}", error_of(table[row, layers], sample.times[row, layers])
    for row, threads in enumerate(THREADS):
        sums = np.bincount(sample.group, table[row])
        yield f"groups | {threads}", error_of(sums[groups], sample.groups[row, groups])
    _, size, took = sample.tensors[groups[sample.tensors[:, 0].astype(int)]].T
    if len(size):
        yield "tensors |", error_of(1e6 * size / figures.bandwidth, took)


def by_kind(samples: Mapping[str, Sample], figures: CoreFigures) -> Iterator[tuple[str, int, FloatArray]]:
    """Yield operators, the longest first, how many there are, and (1 + T,) stated over measured time; first of a core alone."""
    found: dict[str, list[FloatArray]] = {}
    for s in samples.values():
        alone = times_of(s.layers, replace(figures, sync=None))[:1]
        both = np.stack([np.vstack([alone, times_of(s.layers, figures)]), np.vstack([s.times[:1], s.times])])
        for k in np.flatnonzero(works(s.layers)).tolist():
            found.setdefault(s.layers.kinds[k], []).append(both[:, :, k])
    for kind, own in sorted(found.items(), key=lambda item: -sum(p[1, 0] for p in item[1])):
        stated, took = np.sum(own, axis=0)
        yield kind, len(own), stated / took


def machine_of(figures: CoreFigures) -> Machine:
    """Return this host as a machine with a core for every thread."""
    source = (
        f"fitted by bench/pipeline_calibrate.py, {platform.node()} ({platform.machine()}), {runtime_name()}"
    )
    stated = {
        "mac_rate": (figures.mac_rate, "MACs/s"), "element_rate": (figures.element_rate, "elements/s"),
        "bandwidth": (figures.bandwidth, "bytes/s"), "tile_channels": (figures.tile_channels, "channels"),
        "tile_rows": (figures.tile_rows, "rows"), "group_sync": (figures.sync or 0.0, "ns"),
    }  # fmt: skip
    table = {key: Figure(float(f"{value:.4g}"), unit, source) for key, (value, unit) in stated.items()}
    return Machine("host", (1, 1), (1, max(THREADS)), figures=table, notes="Threads of this host as cores.")


def report(samples: Mapping[str, Sample], fitted: set[str], write: Path | None) -> None:
    """Fit, and print figures and tables; in the last one, operators that occur more than once."""
    own = [s for name, s in samples.items() if name in fitted]
    parts = [(s.layers, s.times, works(s.layers) & (s.group % 2 == 0)) for s in own]
    copies = np.concatenate([s.tensors[s.tensors[:, 0] % 2 == 0] for s in own])
    figures = fit(parts, 1e6 * float(copies[:, 1].sum() / copies[:, 2].sum()))
    known = {kind for layers, _, used in parts for kind, k in zip(same(layers), used, strict=True) if k}
    rates = f"{figures.mac_rate / 1e9:.3g} GMACs/s, {figures.element_rate / 1e9:.3g} G elements/s"
    moved = f"{figures.bandwidth / 1e9:.3g} GB/s, group_sync {1e-3 * (figures.sync or 0):.3g} us"
    print(f"{runtime_name()}, load {os.getloadavg()[0]:.1f}: {rates}, {moved}\n")
    print(
        "| model | what | threads | number | off, median | off, 90 % | rank correlation | stated / measured |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name, s in samples.items():
        held = (np.arange(s.groups.shape[1]) % 2 == 1) | (name not in fitted)
        new = np.array([kind not in known for kind in same(s.layers)]) & works(s.layers) & held[s.group]
        for what, e in compared(s, figures, new, held):
            numbers, note = (
                " | ".join(f"{x:.2f}" for x in e[1:]),
                "" if name in fitted else ", nothing fitted",
            )
            print(f"| {name}{note} | {what} | {e.count} | {numbers} |")
    print("\n| operator | number | alone / measured | 1 thread | 2 threads |\n|---|---:|---:|---:|---:|")
    for kind, count, ratio in by_kind(samples, figures):
        if count > 1:
            print(f"| {kind} | {count} | " + " | ".join(f"{x:.2f}" for x in ratio) + " |")
    if write is not None:
        save_machine(machine_of(figures), write)


def main() -> int:
    """Measure, fit, compare; 2 where the runtime is missing or an input is wrong."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--other", nargs="*", type=Path, default=[])
    parser.add_argument("--bind")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--write", type=Path)
    o = parser.parse_args()
    try:
        require_runtime(o.models[0], "calibrating")
        given = parse_bindings(o.bind)
        samples = {path.stem: measure(path, given, o.runs) for path in [*o.models, *o.other]}
        report(samples, {path.stem for path in o.models}, o.write)
    except (BackendError, InputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
