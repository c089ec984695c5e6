"""Small assignment problems for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nmsolve.model.assignment.assignment import Assignment, fused_where_possible
from nmsolve.model.assignment.problem import AssignProblem, Flows, Groups, Units


def random_problem(
    seed: int, operators: int = 8, units: int = 3, objective: str = "latency", room: float = np.inf
) -> AssignProblem:
    """Operators that use one or two of the four before them, on units with a memory each; one channel for all transfers but
    those of the first site, which need none; costs of 0 are common. Pairs that follow each other alone may be fused."""
    rng = np.random.default_rng(seed)
    count = operators + 2
    users: list[set[int]] = [set() for _ in range(count)]
    for k in range(1, count):
        for maker in set(rng.integers(max(0, k - 4), k, 2).tolist()):
            users[maker].add(k)
    makers = [i for i in range(count) if users[i]]
    time = rng.integers(0, 20, (count, units)) * rng.integers(0, 2, (count, units))
    time[1:-1][rng.random((operators, units)) < 0.15] = -1
    nowhere = (time < 0).all(axis=1)
    time[nowhere, 0] = 5
    energy = np.where(time < 0, -1, rng.integers(0, 9, time.shape))
    targets = [k for i in makers for k in sorted(users[i])]
    indptr = np.cumsum([0, *(len(users[i]) for i in makers)])
    source = np.array(makers)
    cost = rng.integers(0, 12, (len(makers), units, units)) * (1 - np.eye(units, dtype=np.int64))
    pairs = [(i, next(iter(users[i]))) for i in range(1, count - 2) if len(users[i]) == 1]
    pairs = [(i, k) for i, k in pairs if 0 < k < count - 1]
    gain = np.zeros((len(pairs), units), np.int64)
    for g, own in enumerate(pairs):
        both = (time[list(own)] >= 0).all(axis=0)
        gain[g] = np.where(both, time[list(own)].sum(axis=0) // 3, 0)
    channel = np.where(np.eye(units, dtype=bool), -1, 0)
    channel[0] = -1
    flows = Flows(
        tuple(f"t{i}" for i in makers), source, indptr, np.array(targets), source.copy(), np.array(targets),
        rng.integers(1, 9, len(makers)), np.zeros(len(makers), bool), cost, cost // 2,
    )  # fmt: skip
    kinds = ("@in", *(["Add"] * operators), "@out")
    return AssignProblem(
        f"random-{seed}", ("@in", *(f"op{k}" for k in range(1, count - 1)), "@out"), kinds,
        np.zeros(count, bool), time, energy, flows,
        Groups(np.arange(len(pairs) + 1) * 2, np.array([i for own in pairs for i in own], np.int64), gain, gain * 0),
        Units(
            tuple("host" if j == 0 else f"npu/{j - 1}" for j in range(units)), np.arange(units) == 0, np.arange(units),
            np.arange(units), tuple(f"memory{j}" for j in range(units)), np.full(units, room), channel, ("bus",),
        ),
        objective=objective,
    )  # fmt: skip


def random_assignment(problem: AssignProblem, seed: int) -> Assignment:
    """Return units that can run their operators, what can be fused, and for a makespan a random legal order."""
    rng = np.random.default_rng(seed)
    unit = np.array([rng.choice(np.flatnonzero(row >= 0)) for row in problem.time])
    rank = np.arange(problem.count)
    if problem.objective == "makespan":
        needs = [set() for _ in range(problem.count)]
        for t in range(problem.flows.count):
            for k in problem.flows.users(t).tolist():
                needs[k].add(int(problem.flows.source[t]))
        done: list[int] = []
        while len(done) < problem.count:
            able = [i for i in range(problem.count) if i not in done and needs[i] <= set(done)]
            done.append(int(rng.choice(able)))
        rank = np.argsort(done)
    return Assignment(unit, fused_where_possible(problem, unit), rank)


def small_model(path: Path, layers: int = 3, width: int = 256) -> Path:
    """A chain of MatMul and Relu over (batch, ``width``), its batch read from the shape and used to reshape at the end."""
    from onnx import TensorProto, helper, save

    nodes, weights, last = [], [], "x"
    for k in range(layers):
        size = [width, width]
        weights.append(
            helper.make_tensor(f"w{k}", TensorProto.FLOAT, size, bytes(4 * width * width), raw=True)
        )
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"h{k}"], f"matmul{k}"))
        nodes.append(helper.make_node("Relu", [f"h{k}"], [f"a{k}"], f"relu{k}"))
        last = f"a{k}"
    weights += [
        helper.make_tensor("first", TensorProto.INT64, [1], [0]),
        helper.make_tensor("rest", TensorProto.INT64, [2], [2, width // 2]),
    ]
    nodes += [
        helper.make_node("Shape", ["x"], ["shape"], "shape"),
        helper.make_node("Gather", ["shape", "first"], ["batch"], "gather"),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], "concat", axis=0),
        helper.make_node("Reshape", [last, "wanted"], ["y"], "reshape"),
    ]
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2, width // 2])], weights,
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


#: A machine of a host and a fast accelerator in a memory of its own.
MACHINE = """
name = "pair"

[[memory]]
name = "ram"
bytes = {{ value = 1, unit = "GiB" }}

[[memory]]
name = "local"
bytes = {{ value = {local}, unit = "B" }}

[[processor]]
name = "host"
kind = "host"
memory = "ram"
bandwidth = 10
launch = 1

[processor.widths]
{width} = {{ macs = 10, elements = 1, energy = 5 }}
int64 = {{ macs = 1, elements = 1, energy = 5 }}

[[processor]]
name = "fast"
kind = "accelerator"
memory = "local"
cores = 1
bandwidth = 100
launch = 5

[processor.widths]
{width} = {{ macs = 1000, elements = 100, energy = 1 }}

[[link]]
name = "bus"
between = ["ram", "local"]
bandwidth = 5
latency = 2
"""


def pair_machine(path: Path, local: int = 2**30, width: str = "float32") -> Path:
    """Write :data:`MACHINE`; ``local``: bytes of the accelerator's memory."""
    path.write_text(MACHINE.format(local=local, width=width))
    return path
