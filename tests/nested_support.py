"""Random nested programs: as an ONNX model, as the same model inlined by hand, and run step by step by an interpreter.

All tensors have one row. ``Relu``, ``MatMul`` and ``ReduceMax`` read a tensor that an operator made; results of an ``If`` are
read by ``Sum``, which takes any number of tensors, so that the inlined model can read what both branches made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_support import model, value, weight

WIDTHS = (2, 3, 5)


@dataclass
class Step:
    """An operator; ``If`` and ``Loop`` have blocks and several results."""

    kind: str
    name: str
    reads: list[str]
    makes: list[str]
    blocks: list[Block] = field(default_factory=list)
    condition: str = ""
    trips: int = 1
    states: list[str] = field(default_factory=list)  # of a loop: names inside


@dataclass
class Block:
    steps: list[Step] = field(default_factory=list)
    results: list[str] = field(default_factory=list)


@dataclass
class Program:
    """Widths of all tensors (0: one number), which of them an ``If`` or loop made, and the conditions that are inputs."""

    main: Block
    width: dict[str, int]
    joined: set[str]
    conditions: list[str]


@st.composite
def programs(draw: st.DrawFn, loops: bool = True, computed: bool = True, most: int = 7) -> Program:
    """Up to ``most`` operators besides what control flow must have; ``computed``: operators may make conditions."""
    p = Program(Block(), {"x": 3}, set(), [])
    left = [most]

    def fresh(width: int) -> str:
        name = f"t{len(p.width)}"
        p.width[name] = width
        return name

    def operator(block: Block, scope: list[str]) -> str:
        plain = [n for n in scope if n not in p.joined and p.width[n]]
        name = draw(st.sampled_from([n for n in scope if p.width[n]]))
        kind = "Sum" if name in p.joined else draw(st.sampled_from(["Relu", "MatMul", "Sum"]))
        width, reads = p.width[name], [name]
        if kind == "MatMul":
            width = draw(st.sampled_from(WIDTHS))
        if kind == "Sum":
            same = [n for n in scope if p.width[n] == width]
            reads = list(dict.fromkeys([name, *draw(st.lists(st.sampled_from(same), max_size=2))]))
        assert plain
        made = fresh(width)
        block.steps.append(Step(kind, f"{kind}_{made}", reads, [made]))
        scope.append(made)
        return made

    def condition(block: Block, scope: list[str]) -> str:
        plain = [n for n in scope if n not in p.joined and p.width[n]]
        if computed and draw(st.booleans()):
            made = fresh(0)
            block.steps.append(Step("ReduceMax", f"max_{made}", [draw(st.sampled_from(plain))], [made]))
            return made
        p.conditions.append(f"c{len(p.conditions)}")
        return p.conditions[-1]

    def fill(block: Block, scope: list[str], depth: int) -> None:
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(["op", "op", "If", "Loop"] if depth < 3 else ["op"]))
            if left[0] <= 0 or (kind == "Loop" and not loops):
                kind = "op"
            left[0] -= 1
            if kind == "op":
                operator(block, scope)
            elif kind == "If":
                chosen = condition(block, scope)
                step = Step("If", f"if_{len(p.width)}", [], [], condition=chosen)
                inner = []
                for _side in range(2):
                    step.blocks.append(Block())
                    inner.append(list(scope))
                    fill(step.blocks[-1], inner[-1], depth + 1)
                ends = [operator(b, s) for b, s in zip(step.blocks, inner, strict=True)]
                if p.width[ends[0]] == p.width[ends[1]]:
                    for b, e in zip(step.blocks, ends, strict=True):
                        b.results.append(e)
                else:
                    for b, e in zip(step.blocks, ends, strict=True):  # make them fit
                        made = fresh(4)
                        b.steps.append(Step("MatMul", f"MatMul_{made}", [e], [made]))
                        b.results.append(made)
                made = fresh(p.width[step.blocks[0].results[0]])
                p.joined.add(made)
                step.makes.append(made)
                block.steps.append(step)
                scope.append(made)
            else:
                first = draw(st.sampled_from([n for n in scope if p.width[n]]))
                inside = fresh(p.width[first])
                step = Step(
                    "Loop", f"loop_{len(p.width)}", [first], [], [Block()], trips=draw(st.integers(1, 3))
                )
                step.states.append(inside)
                own = [*scope, inside]
                fill(step.blocks[0], own, depth + 1)
                last = operator(step.blocks[0], own)
                made = fresh(p.width[first])
                step.blocks[0].steps.append(Step("MatMul", f"MatMul_{made}", [last], [made]))
                step.blocks[0].results.append(made)
                out, stack = fresh(p.width[first]), fresh(0)
                step.makes += [out, stack]
                block.steps.append(step)
                scope.append(out)

    scope = ["x"]
    fill(p.main, scope, 0)
    p.main.results.append(operator(p.main, scope))
    p.main.results += [s.makes[1] for s in p.main.steps if s.kind == "Loop"]
    return p


# ------------------------------------------------------------------------------------------------ as models


def _node(p: Program, step: Step, reads: list[str], weights: list[Any]) -> Any:
    if step.kind == "MatMul":
        name = f"w_{step.makes[0]}"
        weights.append(weight(name, np.zeros((p.width[step.reads[0]], p.width[step.makes[0]]), np.float32)))
        reads = [*reads, name]
    more = {"keepdims": 0} if step.kind == "ReduceMax" else {}
    return helper.make_node(step.kind, reads, step.makes, step.name, **more)


def nested(p: Program) -> Any:
    """The program with bodies."""
    weights: list[Any] = [weight("zero", np.zeros((), np.float32)), weight("yes", np.array(True))]

    def condition(name: str, nodes: list[Any]) -> str:
        if name in p.conditions:
            return name
        nodes.append(helper.make_node("Greater", [name, "zero"], [f"{name}_true"], f"{name}_greater"))
        return f"{name}_true"

    def nodes_of(block: Block) -> list[Any]:
        nodes: list[Any] = []
        for step in block.steps:
            if step.kind == "If":
                chosen = condition(step.condition, nodes)
                bodies = [
                    helper.make_graph(nodes_of(b), "branch", [], [value(r, 1, p.width[r]) for r in b.results])
                    for b in step.blocks
                ]
                nodes.append(
                    helper.make_node("If", [chosen], step.makes, step.name, then_branch=bodies[0], else_branch=bodies[1])
                )  # fmt: skip
            elif step.kind == "Loop":
                body, state, out = step.blocks[0], step.states[0], step.blocks[0].results[0]
                inner = [
                    *nodes_of(body),
                    helper.make_node("Identity", [f"{state}_on"], [f"{state}_go"], f"{state}_id"),
                ]
                inputs = [
                    value(f"{state}_i", dtype=TensorProto.INT64), value(f"{state}_on", dtype=TensorProto.BOOL),
                    value(state, 1, p.width[state]),
                ]  # fmt: skip
                shape = (1, p.width[out])
                outputs = [
                    value(f"{state}_go", dtype=TensorProto.BOOL),
                    value(out, *shape),
                    value(out, *shape),
                ]
                weights.append(weight(f"{state}_most", np.array(step.trips)))
                graph = helper.make_graph(inner, "body", inputs, outputs)
                nodes.append(
                    helper.make_node("Loop", [f"{state}_most", "yes", step.reads[0]], step.makes, step.name, body=graph)
                )  # fmt: skip
            else:
                nodes.append(_node(p, step, step.reads, weights))
        return nodes

    nodes = nodes_of(p.main)
    return _model(p, nodes, p.main.results, weights, p.conditions)


def inlined(p: Program) -> Any:
    """Both branches of every ``If``, one after the other; who reads a result of the ``If`` reads those of both. No loops."""
    weights: list[Any] = []
    means: dict[str, list[str]] = {}

    def real(names: list[str]) -> list[str]:
        found = [m for n in names for m in (real(means[n]) if n in means else [n])]
        return list(dict.fromkeys(found))

    def nodes_of(block: Block) -> Iterator[Any]:
        for step in block.steps:
            for inner in step.blocks:
                yield from nodes_of(inner)
            if step.kind == "If":
                means[step.makes[0]] = [b.results[0] for b in step.blocks]
            else:
                yield _node(p, step, real(step.reads), weights)

    nodes = list(nodes_of(p.main))
    return _model(p, nodes, real(p.main.results), weights, [])


def _model(
    p: Program, nodes: list[Any], outputs: list[str], weights: list[Any], conditions: list[str]
) -> Any:
    given = [value("x", 1, 3), *(value(c, dtype=TensorProto.BOOL) for c in conditions)]
    return model(nodes, given, list(dict.fromkeys(outputs)), weights)


# ------------------------------------------------------------------------------------------------ step by step


@dataclass
class Run:
    """One run: what happened in order, and how probable it is.

    ``steps``: path of the layer, real tensors that it reads, real tensors (name, bytes) that it makes. ``needs``: (path, real
    tensor): the layer's stage must have the tensor in this run, whether the layer runs or not.
    """

    probability: float
    steps: list[tuple[str, list[str], list[tuple[str, int]]]]
    needs: set[tuple[str, str]]
    outputs: list[str]


def layers_in(block: Block, path: str) -> list[str]:
    """Paths of all layers, whether they run or not."""
    out = []
    for step in block.steps:
        name = path + step.name
        if step.kind == "If":
            for side, inner in zip(("then", "else"), step.blocks, strict=True):
                out += layers_in(inner, f"{name}/{side}/")
        elif step.kind == "Loop":
            out += [f"{name}/start", *layers_in(step.blocks[0], f"{name}/"), f"{name}/end"]
        else:
            out.append(name)
    return out


def every_run(p: Program, chance: Callable[[str], float], most: int = 400) -> list[Run]:
    """All outcomes of all conditions, every trip apart; ``chance`` of an ``If``. Empty if there are more than ``most``."""
    done, waiting = [], [[]]
    while waiting:
        decisions = waiting.pop()
        run = _run(p, decisions, chance)
        if run is None:
            waiting += [[*decisions, True], [*decisions, False]]
        else:
            done.append(run)
        if len(done) + len(waiting) > most:
            return []
    return done


class _Undecided(Exception):
    pass


def _run(p: Program, decisions: list[bool], chance: Callable[[str], float]) -> Run | None:
    left, copies = list(decisions), [0]
    run = Run(1.0, [], set(), [])

    def go(block: Block, path: str, scope: dict[str, list[str]], loop: str) -> None:
        """``scope``: real tensors behind a name, the value first, then the conditions that chose it; ``loop``: its end."""
        for step in block.steps:
            name = path + step.name
            reads = [r for n in step.reads for r in scope[n]]
            if step.kind == "If":
                told = scope.get(step.condition, [])
                inside = [
                    x
                    for s, b in zip(("then", "else"), step.blocks, strict=True)
                    for x in layers_in(b, f"{name}/{s}/")
                ]
                if not loop:
                    run.needs |= {(layer, real) for layer in inside for real in told}
                if not left:
                    raise _Undecided
                holds = left.pop(0)
                run.probability *= chance(name) if holds else 1 - chance(name)
                taken, side = (step.blocks[0], "then") if holds else (step.blocks[1], "else")
                own = dict(scope)
                go(taken, f"{name}/{side}/", own, loop)
                scope[step.makes[0]] = [*own[taken.results[0]], *told]
            elif step.kind == "Loop":
                turn(step, name, scope, loop, reads)
            else:
                copies[0] += 1
                real = f"{step.makes[0]}@{copies[0]}"
                run.steps.append((name, reads, [(real, 4 * max(1, p.width[step.makes[0]]))]))
                scope[step.makes[0]] = [real]

    def turn(step: Step, name: str, scope: dict[str, list[str]], loop: str, reads: list[str]) -> None:
        body, out = step.blocks[0], step.blocks[0].results[0]
        copies[0] += 1
        stack = f"{step.makes[1]}@{copies[0]}"
        outside = set(scope)
        run.steps.append((f"{name}/start", reads, [(stack, 4 * p.width[out] * step.trips)]))
        state = scope[step.reads[0]]
        for _ in range(step.trips):
            own = dict(scope) | {step.states[0]: state}
            go(body, f"{name}/", own, loop or f"{name}/end")
            state = own[out]
        captured = [r for n in names_in(body) & outside for r in scope[n]]
        run.steps.append((f"{name}/end", [*state, stack, *captured], []))
        if not loop:
            run.needs.update((f"{name}/end", r) for r in captured)
        scope[step.makes[0]], scope[step.makes[1]] = state, [stack]

    scope: dict[str, list[str]] = {"x": ["x"]}
    try:
        go(p.main, "", scope, "")
    except _Undecided:
        return None
    run.outputs = [r for n in p.main.results for r in scope[n]]
    return run


def names_in(block: Block) -> set[str]:
    """All names that a block and the blocks in it read."""
    out = set()
    for step in block.steps:
        out |= {*step.reads, *([step.condition] if step.condition else [])}
        for inner in step.blocks:
            out |= names_in(inner) | set(inner.results)
    return out


def used_in(runs: list[Run]) -> set[str]:
    """Names of tensors that are read in some run, or leave the model."""
    read = {r for run in runs for _, reads, _ in run.steps for r in reads}
    return {r.split("@")[0] for r in read | {r for run in runs for r in run.outputs}}


def peak(run: Run, used: set[str]) -> int:
    """Most bytes that real tensors, from the step that makes them to the last that reads them, hold at once; of those in use."""
    sizes, first, last = {"x": 12}, {"x": 0}, {"x": 0}
    for k, (_, reads, makes) in enumerate(run.steps):
        for real, size in makes:
            sizes[real], first[real], last[real] = size, k, k
        for real in reads:
            last[real] = k
    for real in run.outputs:
        last[real] = len(run.steps) - 1
    kept = [r for r in sizes if r.split("@")[0] in used]
    return max(sum(sizes[r] for r in kept if first[r] <= k <= last[r]) for k in range(len(run.steps)))
