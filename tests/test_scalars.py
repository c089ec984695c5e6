"""Scalar programs: what they compute equals the model and NumPy; passes keep every result; tiles cover everything once."""

import json
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.hw.assignment.programs.of_answer import scalar_program, tiled_operators
from nmsolve.hw.assignment.roofline import roofline
from nmsolve.hw.assignment.state import state_assignment
from nmsolve.hw.assignment.tiling import (
    Extent,
    Tiles,
    choose_tiles,
    read_again,
    tile_bytes,
    tile_count,
    tile_program,
    tiled_time,
)
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.scalars.lower import Unlowerable, lower
from nmsolve.model.operators.scalars.passes import PASSES, first_difference, optimised
from nmsolve.model.operators.scalars.program import STEPS, Builder, ScalarProgram, Step, write_scalars
from nmsolve.model.operators.scalars.trace import traced

BINARY = ["add", "sub", "mul", "floordiv", "truncdiv", "mod", "min", "max", "lt", "le", "eq", "div"]


@st.composite
def programs(draw: st.DrawFn) -> ScalarProgram:
    """Random programs over two lengths, a symbol and a few constants."""
    b = Builder()
    numbers = [b.symbol("n", True), b.symbol("m", True), b.symbol("k")]
    numbers += [b.const(draw(st.sampled_from([0, 1, 2, 3, 7, Fraction(1, 2)]))) for _ in range(3)]
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from([*BINARY, "neg", "floor", "select"]))
        pick = st.sampled_from(numbers)
        if kind == "select":
            numbers.append(b.add(kind, b.add("lt", draw(pick), draw(pick)), draw(pick), draw(pick)))
        elif kind in ("neg", "floor"):
            numbers.append(b.add(kind, draw(pick)))
        else:
            made = b.add(kind, draw(pick), draw(pick))
            if kind not in ("lt", "le", "eq"):
                numbers.append(made)
            else:
                b.results[f"truth{made}"] = made
    b.results |= {"last": numbers[-1], "middle": numbers[len(numbers) // 2]}
    return b.program()


@settings(max_examples=60, deadline=None)
@given(programs())
def test_passes_keep_results_and_never_lengthen(program: ScalarProgram) -> None:
    shorter, counts = optimised(program)
    assert first_difference(program, shorter, seed=99) is None
    assert shorter.results.keys() == program.results.keys()
    assert all(c.after <= c.before for c in counts) and [c.name for c in counts] == list(PASSES)


def test_a_wrong_pass_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    b.results["r"] = b.add("add", b.symbol("n", True), b.const(1))

    def wrong(program: ScalarProgram) -> ScalarProgram:
        return ScalarProgram((*program.steps[:2], Step("sub", (0, 1))), program.results)

    monkeypatch.setitem(PASSES, "constants", wrong)
    with pytest.raises(AssertionError, match="'constants' changes r"):
        optimised(b.program())


def test_equal_and_known_steps_go() -> None:
    b = Builder()
    n = b.symbol("n", True)
    twice = [b.add("mul", n, b.const(2)), b.add("mul", b.const(2), n)]
    b.results["zero"] = b.add("sub", *twice)
    b.results["half"] = b.add("floordiv", twice[0], b.const(2))
    b.results["wide"] = b.add("max", n, b.const(1))
    shorter, _ = optimised(b.program())
    assert shorter.count == 0 and shorter.run({"n": 5}) == {"zero": 0, "half": 5, "wide": 5}


def test_a_half_over_one_is_rounded_down() -> None:
    b = Builder()
    n = b.symbol("n", True)
    b.results["r"] = b.add("floordiv", b.const(Fraction(1, 2)), b.add("floordiv", n, n))
    shorter, _ = optimised(b.program())
    assert shorter.run({"n": 5}) == b.program().run({"n": 5}) == {"r": 0}


def test_a_program_says_what_is_missing() -> None:
    b = Builder()
    b.results["r"] = b.add("floordiv", b.const(1), b.symbol("n", True))
    with pytest.raises(InputError, match="symbol 'n' has no value"):
        b.program().run({})
    with pytest.raises(InputError, match="cannot compute floordiv with n=0"):
        b.program().run({"n": 0})
    assert b.program().text()[-1] == "r = %2"


@pytest.mark.parametrize("step", ["mul", "div"])
@pytest.mark.parametrize("sum_", [False, True])
def test_squares_of_squares_neither_grow_without_end_nor_are_multiplied_out(step: str, sum_: bool) -> None:
    """A model may hold any arithmetic: 40 squares are a number of 2^40 times its bits, or a polynomial of as many terms."""
    b = Builder()
    one, value = b.const(1), b.symbol("n", True)
    if sum_:
        value = b.add("add", value, b.symbol("m", True))
    for _ in range(40):
        value = b.add(step, value, value if step == "mul" else b.add("div", one, value))
    b.results["r"] = value
    shorter, _ = optimised(b.program())
    with pytest.raises(InputError, match="shape arithmetic cannot compute"):
        b.program().run({"n": 3, "m": 4})
    if not sum_:
        assert b.program().run({"n": 1}) == shorter.run({"n": 1}) == {"r": 1}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 50), st.integers(1, 50))
def test_expressions_are_lowered_to_what_they_equal(x: int, y: int) -> None:
    n, m = sympy.symbols("n m", integer=True, positive=True)
    expressions = [
        sympy.floor(n / 2 + sympy.Rational(1, 2)), sympy.ceiling((n + 3) / m), sympy.Max(n, 2 * m, 7) - n**2, -n - m,
        sympy.Mod(n, m) * sympy.Min(n, m), sympy.Piecewise((n, n < m), (m - 1, True)), 3 - n, n / 3 + m / 6, 1 - n - m,
        sympy.Piecewise((1, sympy.Ne(n, m) & (n >= 3)), (0, True)),
    ]  # fmt: skip
    b = Builder(shared=True)
    for k, e in enumerate(expressions):
        b.results[str(k)] = lower(b, e)
    found = b.program().run({"n": x, "m": y})
    for k, e in enumerate(expressions):
        value = e.subs({n: x, m: y})
        assert Fraction(found[str(k)]) == Fraction(int(value.p), int(value.q)), e
    with pytest.raises(Unlowerable):
        lower(b, sympy.sin(n))


def _dynamic_model(path: Path) -> onnx.ModelProto:
    """x (batch, seq, 8) -> shapes by arithmetic, as exporters write it -> reshape and expand."""
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Constant", [], ["i0"], value_int=0),
        node("Constant", [], ["i1"], value_ints=[1]),
        node("Constant", [], ["four"], value_ints=[4]),
        node("Constant", [], ["zero"], value_ints=[0]),
        node("Constant", [], ["minus"], value_ints=[-1]),
        node("Gather", ["s", "i0"], ["batch"]),
        node("Gather", ["s", "i1"], ["seq"]),
        node("Unsqueeze", ["batch", "zero"], ["batch1"]),
        node("Mul", ["batch1", "seq"], ["both"]),
        node("Add", ["both", "four"], ["more"]),
        node("Sub", ["more", "four"], ["same"]),
        node("Concat", ["same", "minus"], ["flat"], axis=0),
        node("Reshape", ["x", "flat"], ["y"]),
        node("Div", ["seq", "four"], ["part"]),
        node("Max", ["part", "i1"], ["least"]),
        node("Concat", ["least", "i1"], ["wide"], axis=0),
        node("ConstantOfShape", ["wide"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "dynamic", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", 8])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "z")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, path)
    return model


def test_inputs_that_are_left_out_keep_their_place(tmp_path: Path) -> None:
    """Slice with steps and without axes: the steps are no axes."""
    bounds = [
        helper.make_tensor(n, TensorProto.INT64, [1], [v]) for n, v in (("b", 1), ("e", -9), ("st", -1))
    ]
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Slice", ["s", "b", "e", "", "st"], ["p"]),
        helper.make_node("Reshape", ["x", "p"], ["y"], name="turned"),
    ]  # fmt: skip
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    graph = helper.make_graph(nodes, "g", [given], [made], bounds)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "m.onnx")
    program = traced(load_onnx(tmp_path / "m.onnx"))
    assert program.run({"n": 3}) == {"turned:1[0]": 4, "turned:1[1]": 3}


def test_a_models_arithmetic_is_what_the_model_computes(tmp_path: Path) -> None:
    model = _dynamic_model(tmp_path / "m.onnx")
    program = traced(load_onnx(tmp_path / "m.onnx"))
    assert program.symbols == ("batch", "seq") and program.count == 5
    shorter, _ = optimised(program)
    assert shorter.count == 3  # batch * seq; seq // 4; max(that, 1)
    asks = onnx.ModelProto()
    asks.CopyFrom(model)
    asks.graph.output.extend(
        helper.make_tensor_value_info(n, TensorProto.INT64, None) for n in ("flat", "wide")
    )
    for batch, seq in ((1, 1), (3, 5), (2, 64)):
        _, _, flat, wide = ReferenceEvaluator(asks).run(None, {"x": np.zeros((batch, seq, 8), np.float32)})
        numbers = shorter.run({"batch": batch, "seq": seq})
        reshape = [v for k, v in numbers.items() if k.startswith("Reshape")]
        filled = [v for k, v in numbers.items() if k.startswith("ConstantOfShape")]
        assert reshape == flat.tolist() and filled == wide.tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300), st.integers(1, 300), st.sampled_from([0, 1, 64, 500]), st.booleans(), st.integers(600, 40_000)
)  # fmt: skip
def test_tiles_fit_and_cover_everything_once(
    rows: int, columns: int, inner: int, doubled: bool, budget: int
) -> None:
    n, m = sympy.symbols("n m", integer=True, positive=True)
    extent = Extent(n, m, inner, inputs=2)
    tiles = choose_tiles(extent, rows, columns, inner, budget, doubled)
    if tiles is None:
        assert tile_bytes(extent, rows, columns, inner, False) <= budget
        return
    assert tile_bytes(extent, tiles.rows, tiles.columns, tiles.depth, doubled) <= budget
    program, covered = tile_program("t", extent, tiles), 0
    at_first = {"n": rows, "m": columns, "t:row": 0, "t:column": 0, "t:inner": 0}
    axes = [("row", rows, tiles.rows), ("column", columns, tiles.columns), ("inner", inner, tiles.depth)]
    for axis, length, tile in axes[: 3 if inner else 2]:
        found = program.run(at_first)
        count, rest = int(found[f"t:{axis}_tiles"]), int(found[f"t:{axis}_rest"])
        assert 1 <= rest <= tile and (count - 1) * tile + rest == length
        assert program.run({**at_first, f"t:{axis}": count - 1})[f"t:{axis}_offset"] == (count - 1) * tile
        covered += count
    assert covered > 2 or doubled  # it did not fit as it is


def test_tiles_read_as_little_as_any_that_fit() -> None:
    """Every tile of a product of 40 x 30 with 20 products, tried one by one."""
    extent, budget = Extent(40, 30, 20, element=1), 700

    def read(r: int, c: int) -> int:
        return read_again(extent, Tiles(r, c, 20, False), 40 * 20, 30 * 20)

    fitting = [
        (r, c) for r in range(1, 41) for c in range(1, 31) if tile_bytes(extent, r, c, 20, False) <= budget
    ]
    tiles = choose_tiles(extent, 40, 30, 20, budget, False)
    assert tiles is not None and read(tiles.rows, tiles.columns) <= 1.25 * min(read(r, c) for r, c in fitting)


def test_tiles_that_cannot_fit_are_refused() -> None:
    with pytest.raises(InputError, match="one element needs"):
        choose_tiles(Extent(4, 4, 1000), 4, 4, 1000, 10)


def test_copies_hide_behind_arithmetic() -> None:
    assert tiled_time(10, 10.0, 30.0, False) == 40
    assert tiled_time(10, 10.0, 30.0, True) == 1 + 27 + 3
    assert tiled_time(10, 30.0, 10.0, True) == 3 + 27 + 1
    assert tiled_time(1, 3.0, 1.0, True) == tiled_time(1, 3.0, 1.0, False)
    assert tile_count(Extent(10, 7, 5), Tiles(4, 7, 2, True)) == 3 * 1 * 3


def test_every_step_has_a_meaning() -> None:
    for name, function in STEPS.items():
        arguments = {"neg": 1, "abs": 1, "sign": 1, "floor": 1, "ceil": 1, "not": 1, "select": 3}.get(name, 2)
        function(*[2] * arguments)
    assert STEPS["truncdiv"](-7, 2) == -3 and STEPS["floordiv"](-7, 2) == -4
    with pytest.raises(ArithmeticError):
        STEPS["pow"](2, 10**9)


@settings(max_examples=30, deadline=None)
@given(programs())
def test_files_say_all_of_a_program(program: ScalarProgram) -> None:
    """Steps, constants as exact numbers, symbols by name, and results."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scalars.json"
        write_scalars(path, program)
        content = json.loads(path.read_bytes())

    def constant(text: str) -> Any:
        return text == "true" if text in ("true", "false") else Fraction(text)

    assert content["format"] == "nmsolve scalars 1" and content["results"] == program.results
    for said, step in zip(content["steps"], program.steps, strict=True):
        assert said["kind"] == step.kind and tuple(said.get("args", ())) == step.args
        if step.kind == "const":
            assert constant(said["value"]) == step.value
        elif step.kind in ("length", "symbol"):
            assert said["value"] == step.value


def test_products_that_do_not_fit_run_in_tiles_of_the_models_lengths(tmp_path: Path) -> None:
    """A matrix product of (rows, 512) and (512, 512) on an accelerator that holds 64 KiB."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    weight = helper.make_tensor("w", TensorProto.FLOAT, [512, 512], bytes(4 * 512 * 512), raw=True)
    graph = helper.make_graph(
        [node], "m", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 512])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 512])], [weight],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    (tmp_path / "machine.toml").write_text(
        "name = 't'\n[[memory]]\nname = 'm'\n"
        "[[processor]]\nname = 'cpu'\nkind = 'host'\nmemory = 'm'\nbandwidth = 1\nlaunch = 1\n"
        "[processor.widths]\nfloat32 = { macs = 1, elements = 1 }\n"
        "[[processor]]\nname = 'npu'\nkind = 'accelerator'\nmemory = 'm'\nbandwidth = 10\nlaunch = 1\n"
        "on_chip = { value = 64, unit = 'KiB' }\n[processor.widths]\nfloat32 = { macs = 1000, elements = 10 }\n"
    )
    model = load_onnx(tmp_path / "m.onnx")
    stated = state_assignment(model, load_processors(str(tmp_path / "machine.toml")), bindings={"rows": 1000})
    unit = np.array([0, 1, 0])
    answer = Assignment(unit, np.zeros(0, bool), np.arange(3))
    (tiles,) = tiled_operators(stated, answer).values()
    work = stated.estimates.works[1]
    assert work is not None and work.extent is not None
    assert tile_bytes(work.extent, tiles.rows, tiles.columns, tiles.depth, tiles.doubled) <= 65536
    accelerator = stated.machine.processors[1]
    assert roofline(accelerator, [work])[0] > roofline(accelerator, [work._replace(extent=None)])[0]
    numbers = scalar_program(model, stated, answer).run(
        {"rows": 77, "product:row": 1, "product:column": 0, "product:inner": 0}
    )
    assert numbers["product:row_tiles"] == -(-77 // tiles.rows)
    assert numbers["product:row_offset"] == tiles.rows
    assert not tiled_operators(stated, Assignment(np.array([0, 0, 0]), np.zeros(0, bool), np.arange(3)))
