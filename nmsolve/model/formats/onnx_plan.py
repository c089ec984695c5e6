"""A copy of an ONNX model that states the pipeline stage of every operator (:mod:`.onnx.devices`).

Where the installed package has no device configurations, the stage is metadata of the node. Its layer is ``stage_0``,
``stage_1``, ..., by which a session of ONNX Runtime gives stages to devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.formats.onnx.devices import name_devices, place_node
from nmsolve.model.formats.onnx.nodes import Scope, scope_of
from nmsolve.model.operators.graph import OperatorGraph
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.types import IntArray

if TYPE_CHECKING:
    from nmsolve.model.contained import Reply
    from nmsolve.model.operators.unfold import Unfolded

#: The bodies around a node, as :class:`nmsolve.model.operators.unfold.Place` has them.
Bodies: TypeAlias = "tuple[tuple[str, int], ...]"
#: Stages by bodies and name of a result.
Makers: TypeAlias = "dict[tuple[Bodies, str], int]"


def write_onnx_plan(
    source: str | Path, target: str | Path, graph: OperatorGraph, operators: Sequence[int] | IntArray, plan: PipelinePlan,
    unfolded: Unfolded | None = None,
) -> int:  # fmt: skip
    """Write the copy; returns the number of operators that were given a stage.

    Operators that are no layers (shapes, constants) go to the stage that makes what they use, else to the first that uses
    what they make; nodes in bodies that have none of their own, to the stage of the control flow around them. One device stands
    for one stage, with its cores in its name. Weights are neither read nor changed; weights in files apart keep their paths,
    which are relative to the model.

    Parameters
    ----------
    graph : as read from ``source``
    operators : (L,) number of every layer's operator in ``graph``, or in ``unfolded``: the model with its bodies written out

    Raises
    ------
    InputError : ``source`` is not a model, ``target`` is ``source`` or cannot be written
    """
    from nmsolve.model.contained import one_reply
    from nmsolve.model.formats.onnx import require_package

    if Path(source).resolve() == Path(target).resolve():
        raise InputError("the copy would overwrite the model", str(target), "another file")
    require_package(source)
    stages = operator_stages(graph if unfolded is None else unfolded.graph, operators, plan.stage)
    makers: Makers = {
        ((), t.name): stages[t.producer] for t in graph.tensors if t.producer >= 0 and unfolded is None
    }
    if unfolded is not None:
        for place, names, stage in zip(unfolded.places, unfolded.results, stages, strict=True):
            makers.update(((place.bodies, name), stage) for name in names)
    marked, copy = one_reply(partial(_copy, source, makers, plan), source)
    write_atomic(target, copy["model"].tobytes())
    return int(marked)


def _copy(source: str | Path, makers: Makers, plan: PipelinePlan) -> Reply:
    """Return the model with stages, and how many operators have one."""
    from nmsolve.model.contained import Reply
    from nmsolve.model.formats.onnx.parse import read_model

    model = read_model(source)
    names = [f"stage_{k}_" + (f"cores_{c}" if c else "host") for k, c in enumerate(plan.cores.tolist())]
    name_devices(model, names)
    marked = _mark(scope_of(model.graph, source), makers)
    return Reply(marked, {"model": np.frombuffer(model.SerializeToString(), np.uint8)})


def operator_stages(
    graph: OperatorGraph, operators: Sequence[int] | IntArray, stage: Sequence[int] | IntArray
) -> list[int]:
    """Return the stage of every operator of the graph, layers or not.

    ``operators`` (L,) are the layers, ``stage`` (L,) their stages. Any other operator gets the latest stage that it reads
    from, else the earliest that reads from it, else 0.
    """
    out = [-1] * len(graph.operators)
    for number, own in zip(np.asarray(operators).tolist(), np.asarray(stage).tolist(), strict=True):
        out[number] = own
    makers = [[graph.tensors[k].producer for k in o.inputs if k >= 0] for o in graph.operators]
    users: list[list[int]] = [[] for _ in graph.operators]
    for number, before in enumerate(makers):  # operators are in topological order
        known = [out[p] for p in before if p >= 0]
        if out[number] < 0:
            out[number] = max(known, default=-1)
        for p in before:
            if p >= 0:
                users[p].append(number)
    for number in range(len(out) - 1, -1, -1):
        if out[number] < 0:
            after = [out[u] for u in users[number] if out[u] >= 0]
            out[number] = min(after, default=0)
    return out


def _mark(scope: Scope, makers: Makers, bodies: Bodies = (), around: int | None = None) -> int:
    """State the stages of the nodes of a graph and of the bodies in it; returns how many have one.

    Nodes are found by the ``bodies`` around them and the name of a tensor they make; ``around``: the stage of the control flow
    whose body this is.
    """
    marked = 0
    for node in scope.nodes:
        made = [name for name in node.proto.output if name]
        stage = next((makers[bodies, name] for name in made if (bodies, name) in makers), around)
        if stage is None:
            continue
        marked += 1
        place_node(node.proto, stage, f"stage_{stage}")
        for k, body in enumerate(node.bodies):
            marked += _mark(body, makers, (*bodies, (made[0] if made else "", k)), stage)
    return marked
