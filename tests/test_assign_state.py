"""A model and a machine become a problem: costs by hand, control flow opened, what is fused, what users demand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines_support import two
from operators_support import Sketch

from nmsolve.hw.assignment.constraints import AssignConstraints, read_constraints
from nmsolve.hw.assignment.evaluate import all_objectives
from nmsolve.hw.assignment.machine_file import load_processors, processor_presets
from nmsolve.hw.assignment.state import StatedAssignment, state_assignment
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.errors import DoesNotFitError, InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.graph import Operator, OperatorGraph

US = 10**6
DATA = Path(__file__).parent / "data" / "onnx"


def layer() -> OperatorGraph:
    """A matrix product of 500,000 MACs with 2,000,000 bytes of weights, then a Relu of 500 elements."""
    s = Sketch("layer")
    x, w = s.input(1, 1000, name="x"), s.weight(1000, 500, name="w")
    y = s.op("MatMul", [x, w], (1, 500), name="mul")
    return s.graph(s.op("Relu", [y], (1, 500), name="relu"))


def flow_of(stated: StatedAssignment, name: str) -> int:
    return stated.problem.flows.names.index(name)


def row(stated: StatedAssignment, label: str) -> int:
    return stated.problem.labels.index(label)


def test_costs_are_those_worked_out_by_hand() -> None:
    """Product: 1 us + 2,006,000 bytes at 1 GB/s; on the accelerator 2 us + a tenth of that. Relu: 1 + 4 us, 2 + 0.4 us."""
    stated = state_assignment(layer(), two())
    p = stated.problem
    assert p.labels == ("@in", "mul", "relu", "@out") and p.kinds[1:3] == ("MatMul", "Relu")
    assert p.time.tolist() == [[0, -1], [2007 * US, 2 * US + 200_600_000], [5 * US, 2_400_000], [0, -1]]
    assert p.energy[1].tolist() == [3 * 500_000 + 2 * 2_006_000, 500_000 + 2_006_000]
    assert stated.operators == ((), (0,), (1,), ()) and not p.scalar.any()
    assert stated.origin[1] == ("assumed", "assumed") and stated.origin[0] == ("assumed", "")


def test_transfers_are_latency_and_bytes_over_bandwidth_and_weights_cost_nothing() -> None:
    """x is 4,000 bytes: 3 + 4 us. The weights lie wherever they are used, from the first position on."""
    stated = state_assignment(layer(), two())
    f = stated.problem.flows
    x, w = flow_of(stated, "x"), flow_of(stated, "w")
    assert f.time[x].tolist() == [[0, 7 * US], [7 * US, 0]] and f.energy[x, 0, 1] == 4 * 4000
    assert f.kept.tolist() == [n == "w" for n in f.names] and not f.time[w].any() and f.bytes[w] == 2_000_000
    assert stated.tensors[x] == (0,) and f.users(w).tolist() == [1]


def test_scalars_of_a_host_come_with_the_start_of_a_kernel() -> None:
    """A shape that the host works out and a number of the caller take no time to get to the accelerator. They do on their way
    back, and so does what the body of control flow makes.
    """
    s = Sketch("shaped")
    x, step = s.input(1, 1000, name="x"), s.input(name="step")
    shape = s.op("Shape", [x], (2,), dtype="int64", name="shape")
    wide = s.op("Mul", [shape, shape], (2,), dtype="int64", name="wide")
    y = s.op("Expand", [x, wide], (1, 1000), name="grown")
    stated = state_assignment(s.graph(s.op("Mul", [y, step], (1, 1000), name="scaled")), two())
    f = stated.problem.flows
    for t in [flow_of(stated, "step"), *np.flatnonzero(f.source == row(stated, "wide")).tolist()]:
        assert f.time[t, 0, 1] == 0 and f.time[t, 1, 0] > 3 * US and f.energy[t, 0, 1] > 0
    assert f.time[flow_of(stated, "x"), 0, 1] == 7 * US
    body, s = Sketch("body"), Sketch("grown")
    body.input(dtype="int64", name="turn")
    on, state = body.input(dtype="bool", name="on"), body.input(name="state")
    doubled = body.op("Add", [state, state], (), name="double")
    factor = s.op(
        "Loop", [s.constant(3), -1, s.input(name="step")], (), name="loop", bodies=(body.graph(on, doubled),)
    )
    stated = state_assignment(
        s.graph(s.op("Mul", [s.input(1, 1000), factor], (1, 1000), name="scaled")), two()
    )
    made = np.flatnonzero(stated.problem.flows.source == row(stated, "loop/body/double"))
    assert len(made) and (stated.problem.flows.time[made, 0, 1] >= 3 * US).all()


def test_fusion_saves_a_launch_and_the_bytes_between() -> None:
    """One launch, and the 2,000 bytes of the product neither written nor read: 5 us on the host, 2.4 us on the accelerator."""
    p = state_assignment(layer(), two()).problem
    assert p.groups.count == 1 and p.groups.of(0).tolist() == [1, 2]
    assert np.abs(p.groups.time[0] - [5 * US, 2_400_000]).max() <= 1
    assert np.abs(p.groups.energy[0] - [2 * 4000, 4000]).max() <= 1
    slow = state_assignment(layer(), two(processor__1__fuses=False)).problem
    assert slow.groups.time[0, 1] == 0 and slow.groups.time[0, 0] > 0


def test_the_evaluator_adds_up_what_was_stated() -> None:
    """All on the accelerator: x there, the result back (2,000 bytes: 5 us), fused."""
    p = state_assignment(layer(), two()).problem
    values = all_objectives(p, Assignment(np.array([0, 1, 1, 0]), np.array([True]), np.arange(4)))
    run = int(p.time[1, 1] + p.time[2, 1] - p.groups.time[0, 1])
    assert values["latency"] == values["makespan"] == 7 * US + run + 5 * US
    assert values["load"] == run


def test_terms_are_transfer_run_and_gains() -> None:
    """C = T + A, P = S + O (M3.6, M3.7), from the host's point of view.

    The Relu has 500 elements, 0.5 us of arithmetic on the host and 0.05 us on the accelerator. It runs there in 2.4 us, not 5:
    in that time the host would do 0.24 of the 0.5 us.
    """
    terms = state_assignment(layer(), two()).terms
    assert terms.transfer[1].tolist() == [0, 7 * US] and terms.transfer[2].tolist() == [0, 5 * US]
    assert terms.accumulated[2].tolist() == [5 * US, 2_400_000]
    assert terms.work[2].tolist() == [500_000, 50_000] and terms.reference.tolist() == [0, 0, 0, 0]
    assert terms.speed[2].tolist() == [0, 260_000] and terms.complexity[2].tolist() == [0, 450_000]
    assert np.abs(terms.fusion[1] - [2_500_000, 1_200_000]).max() <= 1
    assert (terms.cost == terms.transfer + terms.accumulated).all()
    assert (terms.benefit == terms.speed + terms.complexity).all()
    assert not terms.possible[0, 1] and terms.cost[0, 1] == terms.benefit[0, 1] == 0


def test_what_never_changes_is_left_out() -> None:
    """A constant, a weight that is only turned round, and what is made of both; the result stands where it is used."""
    s = Sketch("carried")
    x, w = s.input(1, 64, name="x"), s.weight(32, 64, name="w")
    turned = s.op("Transpose", [w], (64, 32), name="turn")
    twice = s.op("Mul", [turned, s.constant([2.0], "float32")], (64, 32), name="twice")
    y = s.op("MatMul", [x, twice], (1, 32), name="mul")
    stated = state_assignment(s.graph(y), two())
    assert stated.problem.labels == ("@in", "mul", "@out") and stated.left_out == ((0,), (1,))
    (kept,) = np.flatnonzero(stated.problem.flows.kept)
    assert stated.problem.flows.bytes[kept] == 4 * 64 * 32 and stated.tensors[kept] == (twice,)


def test_operators_that_no_output_needs_are_pruned() -> None:
    """Paragraph 20 of the source: the problem is that of the model without them, in the model and in bodies of control flow."""
    plain, more = Sketch("net"), Sketch("net")
    for s in (plain, more):
        x = s.input(1, 64, name="x")
        y = s.op("MatMul", [x, s.weight(64, 32, name="w")], (1, 32), name="mul")
        out = s.op("Relu", [y], (1, 32), name="relu")
    unused = more.op("Exp", [y], (1, 32), name="unused")
    more.op("Neg", [unused], (1, 32), name="after")
    pruned, wanted = (state_assignment(s.graph(out), two()) for s in (more, plain))
    assert pruned.problem.content_hash == wanted.problem.content_hash
    assert pruned.left_out == ((2,), (3,)) and wanted.left_out == ()
    loop = looped(4)
    (at,) = [k for k, operator in enumerate(loop.operators) if operator.bodies]
    body = loop.operators[at].bodies[0]
    tensors = (
        *body.tensors,
        replace(body.tensors[body.outputs[1]], name="lost", producer=len(body.operators)),
    )
    lost = Operator("lost", "Neg", (body.outputs[1],), (len(body.tensors),), "", {}, (), False)
    longer = replace(body, operators=(*body.operators, lost), tensors=tensors)
    changed = [replace(op, bodies=(longer,)) if k == at else op for k, op in enumerate(loop.operators)]
    found = [state_assignment(g, two()).problem for g in (replace(loop, operators=tuple(changed)), loop)]
    assert found[0].content_hash == found[1].content_hash


def test_operators_that_rename_cost_a_launch_and_those_that_pick_what_they_pick() -> None:
    """A Reshape moves nothing; a Gather reads as much of its table as it gives."""
    s = Sketch("views")
    x, t, k = s.input(10, 10), s.weight(100_000, 10), s.input(20, dtype="int64")
    y = s.op("Reshape", [x, s.constant([100])], (100,), name="shape")
    z = s.op("Gather", [t, k], (20, 10), name="pick", axis=0)
    p = state_assignment(s.graph(y, z), two()).problem
    assert p.time[p.labels.index("shape")].tolist() == [US, 2 * US]
    assert p.time[p.labels.index("pick")].tolist() == [
        US + 1_600_000,
        -1,
    ]  # 64-bit places, which the accelerator does not know


def looped(trips: int | None = 4, condition: bool = True) -> OperatorGraph:
    """A loop whose body adds ``c`` to its state of 1,000 floats and, if a condition holds, takes the Relu of it, else the Neg."""
    yes, no = Sketch("yes"), Sketch("no")
    yes.op("Relu", [yes.capture("sum", 1000)], (1000,), name="relu")
    no.op("Neg", [no.capture("sum", 1000)], (1000,), name="neg")
    body = Sketch("body")
    body.input(dtype="int64", name="turn")
    on, state = body.input(dtype="bool", name="on"), body.input(1000, name="state")
    added = body.op("Add", [state, body.capture("c", 1000)], (1000,), name="add")
    body.tensors[added] = body.tensors[added].__class__("sum", "float32", (1000,), producer=0)
    test = body.constant([True], "bool") if condition else on
    out = body.op("If", [test], (1000,), name="if", bodies=(yes.graph(1), no.graph(1)))
    s = Sketch("loop")
    x = s.input(1000, name="x")
    c = s.op("Exp", [s.input(1000, name="z")], (1000,), name="exp")
    s.tensors[c] = s.tensors[c].__class__("c", "float32", (1000,), producer=0)
    most = s.constant(trips) if trips is not None else s.input(dtype="int64", name="steps")
    y = s.op("Loop", [most, -1, x], (1000,), name="loop", bodies=(body.graph(on, out),))
    return s.graph(s.op("Tanh", [y], (1000,), name="tanh"))


def test_bodies_cost_all_their_runs() -> None:
    """Four turns: each operator of the body four times, the branch not taken never, control one launch a run and a turn."""
    stated = state_assignment(looped(), two())
    p = stated.problem
    assert p.labels == (
        "@in", "exp", "loop", "loop/body/add", "loop/body/if", "loop/body/if/yes/relu", "loop/body/if/no/neg", "tanh", "@out",
    )  # fmt: skip
    assert p.time[3].tolist() == [4 * 13 * US, 4 * 3_200_000]  # 12,000 bytes
    assert p.time[5].tolist() == [4 * 9 * US, 4 * 2_800_000] and p.time[6].tolist() == [0, 0]
    assert p.time[2].tolist() == [(1 + 4) * US, -1] and p.time[4].tolist() == [(4 + 4) * US, -1]
    assert stated.operators[5] == (1, 0, 1, 0, 0) and p.scalar[[2, 4]].all()


def test_a_condition_that_is_not_known_takes_either_branch_half_of_the_time() -> None:
    """Four turns are two runs of each."""
    p = state_assignment(looped(condition=False), two()).problem
    assert p.time[5].tolist() == p.time[6].tolist() == [2 * 9 * US, 2 * 2_800_000]


def test_control_flow_is_a_round_trip_a_turn_to_every_site_of_its_body() -> None:
    """Three us there, three back, five for the interruption, four times; nothing on the host itself."""
    stated = state_assignment(looped(), two())
    p = stated.problem
    t = flow_of(stated, "loop/body:control")
    assert p.flows.users(t).tolist() == [3, 4] and stated.tensors[t] == () and p.flows.bytes[t] == 0
    assert p.flows.time[t, 0, 1] == 4 * 11 * US and p.flows.time[t, 0, 0] == 0
    never = flow_of(stated, "loop/body/if/no:control")
    assert p.flows.users(never).tolist() == [6] and not p.flows.time[never].any()


def test_what_goes_round_and_what_bodies_take_is_held_as_long_as_the_loop() -> None:
    """The state is back for the next turn: four transfers; what is taken from outside comes once; the result goes once."""
    stated = state_assignment(looped(), two())
    f = stated.problem.flows
    back = flow_of(stated, "loop/body/if/yes/t1")
    where = [t for t, name in enumerate(f.names) if name == "loop/body/if/yes/t1"]
    assert f.source[back] == 5 and f.users(back).tolist() == [3] and f.since[back] == 2
    assert f.until[f.indptr[back]] == 6 and f.time[back, 0, 1] == 4 * 7 * US
    (out,) = [t for t in where if t != back]
    assert f.users(out).tolist() == [7] and f.time[out, 0, 1] == 7 * US
    c, x = flow_of(stated, "c"), flow_of(stated, "x")
    assert f.until[f.indptr[c]] == 6 and f.time[c, 0, 1] == 7 * US
    assert f.users(x).tolist() == [3] and f.until[f.indptr[x]] == 3


def test_trips_are_given_inferred_or_refused_by_name() -> None:
    """A constant says it, else the symbol of the input that does."""
    with pytest.raises(InputError, match="'steps', without a value; expected --bind steps=NUMBER"):
        state_assignment(looped(None), two())
    given = state_assignment(looped(None), two(), bindings={"steps": 4}).problem
    assert given.time.tolist() == state_assignment(looped(), two()).problem.time.tolist()
    with pytest.raises(InputError, match="no symbol 'stops'"):
        state_assignment(looped(None), two(), bindings={"stops": 4})


def test_for_schedules_control_flow_stays_whole() -> None:
    """On the host the sum of all that is inside; on the accelerator every turn is a round trip, too (loop, and branch taken)."""
    opened = state_assignment(looped(), two()).problem
    stated = state_assignment(looped(), two(), objective="makespan")
    p = stated.problem
    assert p.labels == ("@in", "exp", "loop", "tanh", "@out") and stated.operators[2] == (1,)
    assert p.time[2, 0] == opened.time[2:7, 0].sum()
    control = int(opened.time[[2, 4], 0].sum())
    assert p.time[2, 1] == control + opened.time[[3, 5, 6], 1].sum() + (4 + 4) * 11 * US
    assert sorted(p.flows.users(flow_of(stated, "c")).tolist()) == [2]


def test_a_scan_takes_its_slices_from_one_tensor_and_collects_its_results() -> None:
    """Five slices of 100 floats: the whole tensor comes once and stays; what is collected goes once a turn, and is held whole."""
    body = Sketch("body")
    state, part = body.input(100, name="state"), body.input(100, name="part")
    total = body.op("Add", [state, part], (100,), name="add")
    row = body.op("Exp", [total], (100,), name="exp")
    s = Sketch("scan")
    x = s.op("Neg", [s.input(5, 100, name="x")], (5, 100), name="neg")
    first = s.op("Abs", [s.input(100, name="s")], (100,), name="abs")
    s.op(
        "Scan", [first, x], (100,), (5, 100), name="scan", bodies=(body.graph(total, row),), num_scan_inputs=1
    )
    last, rows = len(s.tensors) - 2, len(s.tensors) - 1
    graph = s.graph(s.op("Relu", [last], (100,), name="end"), s.op("Tanh", [rows], (5, 100), name="all"))
    stated = state_assignment(graph, two())
    p, f = stated.problem, stated.problem.flows
    assert p.labels == ("@in", "neg", "abs", "scan", "scan/body/add", "scan/body/exp", "end", "all", "@out")
    assert p.time[4].tolist() == [5 * 2_200_000, 5 * 2_120_000]
    whole, start = flow_of(stated, graph.tensors[x].name), flow_of(stated, graph.tensors[first].name)
    assert f.users(whole).tolist() == [4] and f.until[f.indptr[whole]] == 5 and f.time[whole, 0, 1] == 5 * US
    assert f.users(start).tolist() == [4] and f.until[f.indptr[start]] == 4
    made = {int(f.users(t)[0]): t for t in range(f.count) if f.source[t] == 4}
    assert (
        f.time[made[4], 0, 1] == 5 * 3_400_000 and f.since[made[4]] == 3
    )  # round and within a turn: one transfer a turn
    assert f.users(made[4]).tolist() == [4, 5] and f.time[made[6], 0, 1] == 3_400_000
    (collected,) = [t for t in range(f.count) if f.source[t] == 5]
    assert (
        f.users(collected).tolist() == [7]
        and f.bytes[collected] == 2000
        and f.time[collected, 0, 1] == 5 * 3_400_000
    )
    assert f.since[collected] == 3


def test_a_state_that_only_goes_round_is_no_circle() -> None:
    """A body that gives its state back as it is: the loop's result is what went in."""
    body = Sketch("body")
    body.input(dtype="int64")
    on, state, other = body.input(dtype="bool"), body.input(10, name="a"), body.input(10, name="b")
    s = Sketch("swap")
    x = s.input(10, name="x")
    y = s.op("Neg", [s.input(10)], (10,), name="neg")
    s.op("Loop", [s.constant(3), -1, x, y], (10,), (10,), name="loop", bodies=(body.graph(on, other, state),))
    out = s.op("Relu", [len(s.tensors) - 2], (10,), name="relu")
    f = state_assignment(s.graph(out), two()).problem.flows
    to_relu = {f.names[t] for t in range(f.count) if 3 in f.users(t)}
    assert to_relu == {"x", s.tensors[y].name}


def test_a_long_chain_of_branches_that_hand_on_what_they_take_is_followed_once() -> None:
    """Two ways through each of 300: what comes out is what went in."""
    s = Sketch("chain")
    x, c = s.input(10, name="x"), s.input(dtype="bool", name="c")
    last = x
    for k in range(300):
        bodies = [Sketch(f"{word}{k}") for word in ("yes", "no")]
        taken = [b.capture(s.tensors[last].name, 10) for b in bodies]
        graphs = tuple(b.graph(t) for b, t in zip(bodies, taken, strict=True))
        last = s.op("If", [c], (10,), name=f"if{k}", bodies=graphs)
    stated = state_assignment(s.graph(s.op("Relu", [last], (10,), name="relu")), two())
    f = stated.problem.flows
    assert stated.problem.count == 303 and f.users(flow_of(stated, "x")).tolist() == [301]


def test_widths_that_no_processor_supports_are_named_with_the_operators() -> None:
    """Only the host has 64-bit whole numbers here; nobody has float64."""
    s = Sketch("wide")
    x = s.input(100, dtype="float64")
    y = s.op("Add", [x, x], (100,), dtype="float64", name="sum")
    with pytest.raises(InputError, match="supports width float64 of 1 operators: 'sum'") as error:
        state_assignment(s.graph(y), two())
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="supports type MatMul of 1 operators: 'mul'"):
        state_assignment(layer(), two(processor__0__never=["MatMul"], processor__1__never=["MatMul"]))


def test_whole_numbers_that_no_accelerator_handles_are_scalar() -> None:
    """A thousand 64-bit places are data by their number; here only the host can work on them. With such a width they are data."""
    s = Sketch("places")
    x = s.input(1000, dtype="int64")
    graph = s.graph(s.op("Add", [x, x], (1000,), dtype="int64", name="sum"))
    assert state_assignment(graph, two()).problem.scalar.tolist() == [False, True, False]
    wide = two(processor__1__widths__int64={"elements": 1})
    assert state_assignment(graph, wide).problem.scalar.tolist() == [False, False, False]


def test_pins_and_prohibitions_leave_only_what_they_allow() -> None:
    """By label, by pattern, by type; places are units or processors."""
    demand = AssignConstraints(pin={"kind:MatMul": "acc"}, forbid={"re*": ["acc"]})
    p = state_assignment(
        layer(), two(processor__1__cores=2, memory__1__each=True), constraints=demand
    ).problem
    assert (p.time >= 0).tolist() == [
        [True, False, False],
        [False, True, True],
        [True, False, False],
        [True, False, False],
    ]
    demand = AssignConstraints(pin={"@out": "acc", "*": "acc"}, together=[["mul", "relu"]])
    p = state_assignment(layer(), two(), constraints=demand).problem
    assert (p.time >= 0).tolist() == [[True, False], [False, True], [False, True], [False, True]]
    assert p.together is not None and p.together.tolist() == [-1, 0, 0, -1]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "contradiction": ({"pin": {"mul": "acc", "kind:MatMul": "cpu"}}, "no place left after pin 'mul' and pin 'kind:MatMul'"),
    "pinned and forbidden": ({"pin": {"mul": "acc"}, "forbid": {"m*": "acc"}}, r"pin 'mul' and forbid 'm\*'"),
    "no such operator": ({"pin": {"dense": "acc"}}, r"\$.pin\['dense'\]: no operator is called"),
    "no such place": ({"pin": {"mul": "npu"}}, r"\$.pin\['mul'\]: no unit or processor is called 'npu'"),
    "alone together": ({"together": [["mul"]]}, r"\$.together\[0\]: 1 operators"),
    "apart together": (
        {"together": [["mul", "relu"]], "pin": {"mul": "acc", "relu": "cpu"}}, "'mul' and 'relu' must share a unit",
    ),
    "no such memory": ({"memory": {"rom": 5}}, "no such memory"),
    "negative memory": ({"memory": {"ram": -5}}, "-5 bytes"),
    "weights fit nowhere": ({"memory": {"ram": 1_000_000, "own": 999_999}}, "the weights are 2,000,000 bytes"),
    "a tensor fits nowhere": ({"memory": {"ram": 1_500_000, "own": 1_500_000}}, "tensor 'w' is 2,000,000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_demands_that_make_no_sense_are_one_line(case: str) -> None:
    """What, where in the file, what was expected."""
    content, words = BAD[case]
    with pytest.raises(InputError, match=words) as error:
        state_assignment(layer(), two(), constraints=AssignConstraints(**content))
    assert "\n" not in str(error.value)


def test_a_pin_to_where_it_cannot_run_is_no_fit() -> None:
    """The accelerator has no 64-bit whole numbers."""
    s = Sketch("whole")
    x = s.input(100, dtype="int64")
    graph = s.graph(s.op("Add", [x, x], (100,), dtype="int64", name="sum"))
    with pytest.raises(DoesNotFitError, match="'sum' \\(Add\\) may only be where it cannot run"):
        state_assignment(graph, two(), constraints=AssignConstraints(pin={"sum": "acc"}))


def test_constraints_come_from_a_file(tmp_path: Path) -> None:
    """Unknown keys are named."""
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"pin": {"mul": ["acc"]}, "memory": {"own": 5}}))
    assert read_constraints(path).pin == {"mul": ["acc"]} and read_constraints(path).where == str(path)
    path.write_text(json.dumps({"pins": {}}))
    with pytest.raises(InputError, match="pins"):
        read_constraints(path)


@pytest.mark.parametrize("preset", processor_presets())
@pytest.mark.parametrize("objective", ["latency", "makespan"])
def test_models_are_stated_on_every_preset(preset: str, objective: str) -> None:
    """A convolutional network, and a decoder with a loop of branches."""
    machine = load_processors(preset)
    for name, bindings in (
        ("mobilenet_v2", {}),
        ("loop_if_decoder", {"batch": 1, "width": 64, "trips_Loop_32": 3}),
    ):
        stated = state_assignment(
            load_onnx(DATA / f"{name}.onnx"), machine, bindings=bindings, objective=objective
        )
        p = stated.problem
        assert p.count == len(stated.operators) == len(stated.origin) and p.flows.count == len(stated.tensors)
        host = np.zeros(p.count, np.int64)
        assert (p.time[:, 0] >= 0).all(), "the host can run everything"
        alone = all_objectives(p, Assignment(host, np.zeros(p.groups.count, bool), np.arange(p.count)))
        assert alone["latency"] == alone["makespan"] == alone["load"] == p.time[:, 0].sum()
        assert p.groups.count >= 3 and (p.groups.time[:, 0] > 0).all()
