"""What fusion gains on this host: the whole model run as it is and optimised, node by node (M3.7, O).

The runtime's optimised model names the tensors that its nodes make as the original does. So every optimised node stands for the
original nodes between its results and its inputs. A group of operators is measured if the optimised nodes that stand for any of
them stand for no others but constants and those that only rename; otherwise its gain cannot be attributed.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmsolve.hw.assignment.random_values import Roles, random_input, random_weight
from nmsolve.hw.assignment.runtime import Session
from nmsolve.model.errors import BackendError
from nmsolve.model.formats.onnx.values import DTYPES
from nmsolve.model.operators.binding import bind
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.operators.sizes import BITS
from nmsolve.model.types import AnyArray

#: Most bytes of weights of a model that is run whole.
MOST_WEIGHTS = 1_500_000_000


class Took(NamedTuple):
    """ps: a low quantile, and the median."""

    low: float
    median: float


class Parts(NamedTuple):
    """How long a run of the whole model takes.

    Attributes
    ----------
    plain : by the result of every original node
    fused : by the set of the results of the original nodes that optimised nodes stand for
    all_plain, all_fused : of all nodes, original and optimised
    """

    plain: dict[str, Took]
    fused: dict[frozenset[str], Took]
    all_plain: Took
    all_fused: Took


def whole_times(
    proto: Any, graph: OperatorGraph, bindings: Mapping[str, int], threads: int, runs: int
) -> Parts:
    """Run a model whole, as it is and optimised.

    Parameters
    ----------
    proto : its ``ModelProto``, weights missing or not
    graph : the same with numbers for shapes

    Raises
    ------
    BackendError : the runtime does not take it, or it has too many weights
    InputError : its inputs or weights cannot be made up
    """
    model, feeds = filled(proto, graph, bindings)
    for k, node in enumerate(model.graph.node):
        node.name = f"nmsolve-{k}"
    outputs = tuple(o.name for o in model.graph.output)
    with tempfile.TemporaryDirectory(prefix="nmsolve-") as name:
        folder = Path(name)
        data, optimised = model.SerializeToString(), folder / "optimised.onnx"
        sessions = (
            Session(data, threads, profile=folder / "plain"),
            Session(data, threads, fused=True, optimised=optimised, profile=folder / "fused"),
        )
        plain, fused = _alternating(sessions, feeds, outputs, runs)
        import onnx

        after = onnx.load(str(optimised), load_external_data=False).graph
    names = {node.name: node.output[0] for node in model.graph.node if node.output}
    return Parts(
        {names[node]: took for node, took in plain.items() if node in names},
        {
            region: added(fused[name] for name in own if name in fused)
            for region, own in _regions(model.graph, after)
        },
        added(plain.values()),
        added(fused.values()),
    )


def added(parts: Iterable[Took]) -> Took:
    """Return the sum of times."""
    parts = list(parts)
    return Took(sum(t.low for t in parts), sum(t.median for t in parts))


def filled(proto: Any, graph: OperatorGraph, bindings: Mapping[str, int]) -> tuple[Any, dict[str, AnyArray]]:
    """Return the model with random weights where they are missing, and random inputs.

    Raises
    ------
    BackendError : too many bytes of weights
    InputError : inputs or weights that cannot be made up
    """
    from onnx import helper, numpy_helper

    model, roles = type(proto)(), Roles(proto.graph)
    model.CopyFrom(proto)
    tensors = {t.name: t for t in graph.tensors}
    stored = {t.name for t in model.graph.initializer if not t.external_data}
    missing = [t for t in graph.tensors if t.weight and t.producer < 0 and t.name not in stored]
    shapes = {t.name: [bind(d, bindings) for d in t.shape or ()] for t in missing}
    strange = next((t for t in missing if t.dtype not in DTYPES[1:]), None)
    if strange is not None:
        raise BackendError(f"no random values of type {strange.dtype or 'unknown'}")
    size = sum((BITS.get(t.dtype) or 8) * math.prod(shapes[t.name]) // 8 for t in missing)
    if size > MOST_WEIGHTS:
        raise BackendError(f"{size:,} bytes of weights are too many to run the model whole")
    kept = [t for t in model.graph.initializer if t.name in stored]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    for t in missing:
        info = helper.make_tensor_value_info(t.name, DTYPES.index(t.dtype), shapes[t.name])
        model.graph.initializer.append(numpy_helper.from_array(random_weight(info, roles, 0), t.name))
    names = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model, {i.name: random_input(i, tensors[i.name].shape or (), bindings, roles, 0) for i in inputs}


def _alternating(
    sessions: tuple[Session, Session], feeds: Mapping[str, AnyArray], outputs: tuple[str, ...], runs: int
) -> list[dict[str, Took]]:
    """Return how long every node took, by name, in sessions that run in turn: what else the host does slows both."""
    for session in sessions:
        session.feed(feeds, outputs)
    for _ in range(runs + 1):
        for session in sessions:
            session.run()
    return [_read(session, runs) for session in sessions]


def _read(session: Session, runs: int) -> dict[str, Took]:
    """Return times by node of a session that ran once more often than ``runs``; the first run does not count.

    The low one is a mean of the fastest quarter, since the profiler counts whole microseconds.
    """
    taken: dict[str, list[int]] = {}
    try:
        events = json.loads(session.profiled().read_text("utf-8"))
    except (OSError, ValueError):
        raise BackendError("onnxruntime wrote no profile") from None
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith("_kernel_time"):
            taken.setdefault(name.removesuffix("_kernel_time"), []).append(int(event["dur"]))
    out = {}
    for name, times in taken.items():
        own = sorted(times[len(times) // (runs + 1) :] or times)
        each = 1e6 * max(1, round(len(own) / runs))
        out[name] = Took(each * float(np.mean(own[: max(1, len(own) // 4)])), each * float(np.median(own)))
    return out


def _regions(before: Any, after: Any) -> list[tuple[frozenset[str], tuple[str, ...]]]:
    """Return what optimised nodes stand for: the first results of original nodes, and the names of the optimised ones.

    Optimised nodes that hand each other tensors unknown to the original stand for something together. The way goes from their
    results back to their inputs, through the original graph; where it does not end at their inputs they are left out.
    """
    maker = {name: node for node in before.node for name in node.output if name}
    constants = {t.name for t in (*before.initializer, *after.initializer)}
    given = {i.name for i in before.input}
    found = []
    for nodes in _clusters(after, {*maker, *constants, *given}):
        ends = {name for node in nodes for name in node.input} | constants
        region: set[str] = set()
        queue = [name for node in nodes for name in node.output if name in maker]
        fine = bool(queue)
        while queue and fine:
            original = maker[queue.pop()]
            if original.output[0] in region:
                continue
            region.add(original.output[0])
            for name in original.input:
                if name and name not in ends:
                    fine = fine and name in maker and name not in given
                    queue.append(name)
        if fine:
            found.append((frozenset(region), tuple(node.name for node in nodes)))
    return found


def _clusters(graph: Any, known: set[str]) -> list[list[Any]]:
    """Return sets of nodes that tensors outside ``known`` join."""
    mark = list(range(len(graph.node)))

    def root(k: int) -> int:
        while mark[k] != k:
            mark[k] = mark[mark[k]]
            k = mark[k]
        return k

    by_name: dict[str, int] = {}
    for k, node in enumerate(graph.node):
        for name in (*node.input, *node.output):
            if name and name not in known:
                mark[root(k)] = root(by_name.setdefault(name, k))
    sets: dict[int, list[Any]] = {}
    for k, node in enumerate(graph.node):
        sets.setdefault(root(k), []).append(node)
    return list(sets.values())
