"""Assignments as a benchmark sees them, and their suite: generated models on the presets, and a generated cost network."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmsolve.kinds.assignment.statement import AssignInputs, state_problem
from nmsolve.kinds.bench import Bench, Checked, Maker, Stated, in_time

if TYPE_CHECKING:
    from nmsolve.kinds.assignment.check import Problem
    from nmsolve.kinds.time_left import TimeLeft
    from nmsolve.model.bound import Result

SEED = 1


def state(
    model: Path,
    machine: str | None = None,
    objective: str = "latency",
    bind: str | None = None,
    strict: bool = False,
    library: str | None = None,
    constraints: str | None = None,
) -> Stated:
    """Return the problem of ``nmsolve assign`` with these options.

    Raises
    ------
    InputError : a wrong file, options that do not belong together, a problem that cannot be stated
    """
    from nmsolve.model.assignment.network import CostNetwork
    from nmsolve.solvers.assignment.api import solve_assignment, solve_network

    whole = objective == "makespan"
    inputs = AssignInputs(str(model), machine, bind, strict, library, constraints, objective, whole)
    problem = state_problem(inputs).problem
    check = partial(_check, problem)
    if isinstance(problem, CostNetwork):
        sizes = {"nodes": problem.count, "strategies": len(problem.cost)}
        return Stated(problem, problem.content_hash, "cost", sizes, partial(solve_network, problem), check)
    sizes = {"operators": problem.count - 2, "units": problem.units.count}
    solve = partial(solve_assignment, problem)
    return Stated(problem, problem.content_hash, problem.objective, sizes, solve, check)


def _check(problem: Problem, result: Result[Any], time_left: TimeLeft) -> Checked:
    """Return the rules and the objectives, as ``nmsolve assign`` checks them."""
    from nmsolve.kinds.assignment.check import result_checks

    solution = result.solution
    assert solution is not None
    return in_time(time_left, "assignment", lambda: result_checks(problem, solution, result))


def blocks(count: int, width: int, branches: int, **options: Any) -> Maker:
    """Return a model of this many blocks: ``branches`` products of ``width`` squared side by side, their sum, a softmax that few
    accelerators like, and a reshape whose lengths are read from the data's shape."""

    def make(path: Path) -> dict[str, Any]:
        from onnx import TensorProto, helper, save

        nodes, weights, last = [], [], "x"
        zero = helper.make_tensor("zero", TensorProto.INT64, [1], [0])
        rest = helper.make_tensor("rest", TensorProto.INT64, [1], [width])
        for b in range(count):
            made = []
            for k in range(branches):
                name = f"w{b}_{k}"
                raw = bytes(4 * width * width)
                weights.append(helper.make_tensor(name, TensorProto.FLOAT, [width, width], raw, raw=True))
                nodes.append(
                    helper.make_node("MatMul", [last, name], [f"m{b}_{k}"], f"block{b}/branch{k}/matmul")
                )
                nodes.append(
                    helper.make_node("Relu", [f"m{b}_{k}"], [f"r{b}_{k}"], f"block{b}/branch{k}/relu")
                )
                made.append(f"r{b}_{k}")
            nodes.append(helper.make_node("Sum", made, [f"s{b}"], f"block{b}/sum"))
            nodes.append(helper.make_node("Softmax", [f"s{b}"], [f"p{b}"], f"block{b}/softmax"))
            nodes.append(helper.make_node("Shape", [last], [f"shape{b}"], f"block{b}/shape"))
            nodes.append(helper.make_node("Gather", [f"shape{b}", "zero"], [f"n{b}"], f"block{b}/gather"))
            nodes.append(
                helper.make_node("Concat", [f"n{b}", "rest"], [f"to{b}"], f"block{b}/concat", axis=0)
            )
            nodes.append(helper.make_node("Reshape", [f"p{b}", f"to{b}"], [f"x{b}"], f"block{b}/reshape"))
            last = f"x{b}"
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]) for name in ("x", last)
        ]
        graph = helper.make_graph(nodes, "blocks", ends[:1], ends[1:], [*weights, zero, rest])
        file = path.with_name(f"{path.name}.onnx")
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
        return {"model": file, "bind": "batch=1024", **options}

    return make


def network(nodes: int, strategies: int, reach: int, room: float, seed: int = SEED) -> Maker:
    """Return a cost network: every node is joined with one to three of the ``reach`` before it; memory is limited to ``room``
    times what the cheapest strategies need at their peak."""

    def make(path: Path) -> dict[str, Any]:
        import msgspec

        from nmsolve.model.files import write_atomic

        rng = np.random.default_rng(seed)
        costs = rng.integers(0, 1000, (nodes, strategies)).tolist()
        usages = rng.integers(1, 100, (nodes, strategies)).tolist()
        ends = [
            [int(a), k]
            for k in range(1, nodes)
            for a in sorted({int(k - d) for d in rng.integers(1, min(reach, k) + 1, 3)})
        ]
        tables = [rng.integers(0, 400, strategies * strategies).tolist() for _ in ends]
        intervals = [[k, min(nodes, k + int(d))] for k, d in enumerate(rng.integers(1, reach + 1, nodes))]
        held = np.zeros(nodes)
        for row, use, (first, end) in zip(costs, usages, intervals, strict=True):
            held[first:end] += use[int(np.argmin(row))]
        content = {
            "name": path.name,
            "nodes": {"intervals": intervals, "costs": costs, "usages": usages},
            "edges": {"nodes": ends, "costs": tables},
            "usage_limit": int(room * held.max()),
        }
        file = path.with_name(f"{path.name}.iopddl.json")
        write_atomic(file, msgspec.json.encode({"problem": content}))
        return {"model": file}

    return make


ASSIGNMENTS = {
    "blocks-8": blocks(8, 128, 2, machine="laptop-npu"),
    "blocks-8-energy": blocks(8, 128, 2, machine="laptop-npu", objective="energy"),
    "blocks-8-soc": blocks(8, 128, 3, machine="soc-3"),
    "blocks-8-load": blocks(8, 128, 3, machine="soc-3", objective="load"),
    "blocks-8-makespan": blocks(8, 128, 3, machine="soc-3", objective="makespan"),
    "blocks-40-server": blocks(40, 128, 4, machine="server-4acc"),
    "blocks-40-server-load": blocks(40, 128, 4, machine="server-4acc", objective="load"),
    "network-60": network(60, 5, 6, 0.9),
    "network-400": network(400, 8, 12, 0.85),
}


BENCH = Bench(
    state, "solvers.assignment.registry:REGISTRY", {"assignments": ASSIGNMENTS},
    lambda path: path.is_file() and (path.name.endswith((".onnx", ".json.gz")) or "iopddl" in path.name),
)  # fmt: skip
