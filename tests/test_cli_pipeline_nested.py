"""``nmsolve pipeline`` of models with control flow: options, files, marks in bodies, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_support import model, saved, value, weight

import nmsolve

Called = Any
LOOP = Path(__file__).parent / "data" / "onnx" / "loop_if_decoder.onnx"
SIZES = "batch=1,width=64"


def exits(folder: Path) -> Path:
    """Two early exits, the second inside the first's other branch; both branches of the second call their result the same."""
    w = [weight(f"w{k}", np.zeros((64, 64), np.float32)) for k in range(6)]
    w.append(weight("half", np.array(0.5, np.float32)))

    def product(x: str, k: int, made: str) -> Any:
        return helper.make_node("MatMul", [x, f"w{k}"], [made], f"matmul{k}")

    def surely(x: str, name: str) -> list[Any]:
        most = helper.make_node("ReduceMax", [x], [f"{name}_most"], f"{name}_most", keepdims=0)
        return [most, helper.make_node("Greater", [f"{name}_most", "half"], [f"{name}_sure"], f"{name}_sure")]

    def choice(name: str, made: str, one: list[Any], other: list[Any]) -> Any:
        bodies = [
            helper.make_graph(nodes, name, [], [value(nodes[-1].output[0], 8, 64)]) for nodes in (one, other)
        ]
        return helper.make_node(
            "If", [f"{name}_sure"], [made], name, then_branch=bodies[0], else_branch=bodies[1]
        )

    last = choice("exit_2", "r2", [product("c", 3, "out")], [product("c", 4, "d"), product("d", 5, "out")])
    inner = [product("a", 2, "c"), *surely("c", "exit_2"), last]
    nodes = [
        product("x", 0, "a"),
        *surely("a", "exit_1"),
        choice("exit_1", "r1", [product("a", 1, "b")], inner),
    ]
    return saved(model(nodes, [value("x", 8, 64)], [value("r1", 8, 64)], w), folder, "exits.onnx")


NAMES = [
    "matmul0", "exit_1_most", "exit_1/then/matmul1", "exit_1/else/matmul2", "exit_1/else/exit_2_most",
    "exit_1/else/exit_2/then/matmul3", "exit_1/else/exit_2/else/matmul4", "exit_1/else/exit_2/else/matmul5",
]  # fmt: skip


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "pipeline-report.json").read_text())
    return report


def test_early_exits_from_the_model_to_the_marked_copy(call: Called, tmp_path: Path) -> None:
    """Layers have paths; probabilities multiply; the copy has the stage of every node in every body; verify states it again."""
    source, out, copy = exits(tmp_path), tmp_path / "out", tmp_path / "copy.onnx"
    code, text, _ = call(
        "pipeline", source, "-n", 8, "--branch", "exit_1=0.25", "-o", out, "--write-onnx", copy
    )
    assert code == 0
    assert "Assumed: each branch of exit_1/else/exit_2 is taken in half of the runs" in text
    plan, report = json.loads((out / "plan.json").read_text()), report_of(out)
    assert plan["layer"] == NAMES
    assert report["branches"] == [
        {"name": "exit_1", "probability": 0.25, "assumed": False},
        {"name": "exit_1/else/exit_2", "probability": 0.5, "assumed": True},
    ]
    one = 8 * 64 * 64 / 64e3  # us of a product on one core
    products = 1 + 0.25 + 0.75 * (1 + 0.5 + 0.5 * 2)
    assert report["work"] * 8 == pytest.approx(products * one + (8 * 64) / 16e3 * 1.75)
    assert call("verify", out, "--bound")[0] == 0
    stage = dict(zip(plan["layer"], plan["stage"], strict=True))
    found: dict[str, int] = {}

    def read(graph: Any, path: str) -> None:
        for node in graph.node:
            assert [d.configuration_id for d in node.device_configurations] == ["nmsolve"]
            found[path + node.name] = node.device_configurations[0].pipeline_stage
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    read(attribute.g, f"{path}{node.name}/{attribute.name.partition('_')[0]}/")

    read(onnx.load(copy).graph, "")
    assert {name: found[name] for name in NAMES} == stage and "exit_1/else/exit_2" in found


def test_another_probability_is_another_problem(call: Called, tmp_path: Path) -> None:
    """A report whose options were changed does not fit its plan; both branches in full are the most work."""
    source, out = exits(tmp_path), tmp_path / "out"
    work = {}
    for branch in ("*=both", "*=1", "exit_1=1,exit_1/else/exit_2=0", "exit_2=both,*=0"):
        assert call("pipeline", source, "-n", 8, "--branch", branch, "-o", out)[0] == 0
        work[branch] = report_of(out)["work"] * 8 / (8 * 64 * 64 / 64e3)
    assert [round(w) for w in work.values()] == [6, 2, 2, 5]
    path = out / "pipeline-report.json"
    path.write_text(path.read_text().replace("exit_2=both,*=0", "exit_2=both,*=1"))
    assert call("verify", out)[0] != 0


@pytest.mark.parametrize(
    ("branch", "text"),
    [
        (
            "exit_3=0.5",
            "no If 'exit_3' with work in its branches; expected one of exit_1, exit_1/else/exit_2",
        ),
        ("matmul0=0.5", "no If 'matmul0'"),
        ("exit_1=1.5", "'1.5' for 'exit_1'; expected a number from 0 to 1, or both"),
        ("exit_1=-0.1", "from 0 to 1"),
        ("exit_1=nan", "from 0 to 1"),
        ("exit_1=often", "'often' for 'exit_1'"),
        ("exit_1", "cannot read 'exit_1'; expected NODE=PROBABILITY"),
        ("exit_1=0.5,exit_1=0.1", "named twice"),
    ],
)
def test_probabilities_that_make_no_sense(call: Called, tmp_path: Path, branch: str, text: str) -> None:
    """One line, exit code 2."""
    code, _, error = call("pipeline", exits(tmp_path), "-n", 8, "--branch", branch, "-o", tmp_path / "out")
    lines = [line for line in error.splitlines() if line.strip()]
    assert code == 2 and len(lines) == 1 and "--branch" in lines[0] and text in lines[0]


def test_names_that_two_nodes_have_need_their_path(call: Called, tmp_path: Path) -> None:
    """An If in each branch with one name: the error lists both paths, and a path works."""
    w = [weight("w", np.zeros((64, 64), np.float32))]

    def inner(made: str) -> Any:
        bodies = [
            helper.make_graph(
                [helper.make_node("MatMul", ["x", "w"], [f"{made}{k}"], "m")],
                "b",
                [],
                [value(f"{made}{k}", 8, 64)],
            )
            for k in range(2)
        ]
        node = helper.make_node("If", ["c"], [made], "again", then_branch=bodies[0], else_branch=bodies[1])
        return helper.make_graph([node], "b", [], [value(made, 8, 64)])

    node = helper.make_node("If", ["d"], ["y"], "outer", then_branch=inner("p"), else_branch=inner("q"))
    given = [value("x", 8, 64), value("c", dtype=TensorProto.BOOL), value("d", dtype=TensorProto.BOOL)]
    source = saved(model([node], given, [value("y", 8, 64)], w), tmp_path, "two.onnx")
    code, _, error = call("pipeline", source, "-n", 8, "--branch", "again=0.5", "-o", tmp_path / "out")
    assert (
        code == 2
        and "2 nodes are called 'again'; expected one of outer/then/again, outer/else/again" in error
    )
    assert call("pipeline", source, "-n", 8, "--branch", "outer/then/again=1", "-o", tmp_path / "out")[0] == 0


def test_a_loop_stays_in_one_stage_and_trips_must_be_known(call: Called, tmp_path: Path) -> None:
    """In a chain and in both other splits; without trips one line names them."""
    out = tmp_path / "out"
    code, _, error = call("pipeline", LOOP, "-n", 64, "--bind", SIZES, "-o", out)
    assert code == 2 and error.count("\n") == 1
    assert "Loop 'Loop_32': the number of trips depends on 'trips_Loop_32'" in error
    for split in ("chain", "contiguous", "any"):
        words = ["--bind", f"{SIZES},trips_Loop_32=8", "--split", split, "-k", 6, "--exact-stages", "-t", 5]
        assert call("pipeline", LOOP, "-n", 64, *words, "-o", out)[0] in (0, 1, 3)
        plan = json.loads((out / "plan.json").read_text())
        inside = {
            s for name, s in zip(plan["layer"], plan["stage"], strict=True) if name.startswith("Loop_32/")
        }
        assert len(inside) == 1 and len(plan["layer"]) == 51
        assert call("verify", out)[0] == 0
    assert plan["layer"][11] == "Loop_32/start" and plan["layer"][-1] == "Loop_32/end"


def test_an_if_that_shapes_decide_has_one_branch(call: Called, tmp_path: Path) -> None:
    """Its other branch is no layer, and a probability for it is refused."""
    words = ["--bind", f"{SIZES},trips_Loop_32=8", "-o", tmp_path / "out"]
    code, _, error = call("pipeline", LOOP, "-n", 64, *words, "--branch", "If_87=0.5")
    assert code == 2 and "the condition of 'Loop_32/If_87' follows from shapes" in error


def test_what_a_loop_streams_moves_in_every_trip(call: Called, tmp_path: Path) -> None:
    """One core too small for the loop: twice the trips, nearly twice the time off chip; every figure is recomputed."""
    times = []
    for trips in (8, 16):
        out = tmp_path / f"out{trips}"
        words = [
            "--bind",
            f"{SIZES},trips_Loop_32={trips}",
            "--core-memory",
            "1MiB",
            "--offchip-bandwidth",
            "10GB/s",
        ]
        code, text, _ = call("pipeline", LOOP, "-n", 1, *words, "-o", out)
        assert code == 0 and f"Each loop stays in one stage: Loop_32 ({trips} trips)." in text
        assert "in every run and in every trip of the loops of their stage" in text
        part = report_of(out)["stages"][0]
        assert part["offchip"] == pytest.approx(1e6 * part["streamed"] * (1 + trips) / 10e9)
        times.append(part["offchip"])
        assert report_of(out)["loops"] == [{"name": "Loop_32", "trips": trips}]
        code, text, _ = call("verify", out, "--bound")
        assert code == 0 and "recomputed: at most" in text
    assert times[1] / times[0] == pytest.approx(17 / 9)


def test_the_function_and_going_on_from_a_run(call: Called, tmp_path: Path) -> None:
    """``nmsolve.pipeline`` takes a mapping; its files say what the command's do; `gap` states the same problem."""
    source, out = exits(tmp_path), tmp_path / "out"
    answer = nmsolve.pipeline(source, 8, branch={"exit_1": 0.25, "exit_2": "both"}, time_limit=5)
    assert answer.given.layers is not None and answer.given.layers.nesting is not None
    assert [(b.probability, b.both) for b in answer.given.layers.nesting.branches] == [
        (0.25, False),
        (0.5, True),
    ]
    answer.save(out)
    assert report_of(out)["inputs"]["branch"] == "exit_1=0.25,exit_2=both"
    assert nmsolve.verify(out).ok
    assert call("gap", out, "-o", tmp_path / "gap")[0] == 0
    assert report_of(tmp_path / "gap")["problem"] == report_of(out)["problem"]
