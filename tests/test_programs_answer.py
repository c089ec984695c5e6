"""Programs of answers: units, ends, predictions and what stands come from the problem as it was stated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_support import own_inference, saved
from programs_support import devices_of, loop_model, random_model

from nmsolve.hw.assignment.evaluate import all_objectives, moves_of
from nmsolve.hw.assignment.machine_file import load_processors
from nmsolve.hw.assignment.programs.manifest import all_pieces, read_manifest
from nmsolve.hw.assignment.programs.of_answer import write_programs
from nmsolve.hw.assignment.programs.run import run_programs
from nmsolve.hw.assignment.state import StatedAssignment, state_assignment
from nmsolve.model.assignment.assignment import Assignment
from nmsolve.model.operators.binding import symbols_of


def stated(proto: Any, machine: str, objective: str = "latency") -> StatedAssignment:
    graph = own_inference(proto)
    bindings = dict.fromkeys(symbols_of(graph), 3)
    return state_assignment(graph, load_processors(machine), bindings=bindings, objective=objective)


def random_answer(of: StatedAssignment, seed: int) -> Assignment:
    """Every operator on a random unit that can run it."""
    problem, rng = of.problem, np.random.default_rng(seed)
    unit = np.array([rng.choice(np.flatnonzero(row >= 0)) for row in problem.time])
    return Assignment(unit, np.zeros(problem.groups.count, bool), np.arange(problem.count))


@pytest.mark.parametrize("machine", ["laptop-npu", "server-4acc", "soc-3"])
@pytest.mark.parametrize("objective", ["latency", "makespan"])
def test_any_answer_becomes_programs_that_equal_the_model(
    tmp_path: Path, machine: str, objective: str
) -> None:
    for seed, proto in enumerate((random_model(1, 25), loop_model())):
        path = saved(proto, tmp_path, f"{seed}.onnx")
        of = stated(proto, machine, objective)
        answer = random_answer(of, seed)
        manifest = write_programs(path, of, answer, tmp_path / "programs", graph=own_inference(proto))
        names = of.problem.units.names
        assert [u.name for u in manifest.units] == list(names)
        assert manifest.home == names[answer.unit[0]] and manifest.target == names[answer.unit[-1]]
        assert (
            manifest.predicted == all_objectives(of.problem, answer)
            and manifest.assignment == of.problem.content_hash
        )
        where = dict(zip(of.problem.labels, (names[j] for j in answer.unit), strict=True))
        for piece in manifest.program.pieces:
            assert all(where[name] == piece.unit for name in piece.operators)
        assert read_manifest(tmp_path / "programs") == manifest
        marked = onnx.load(tmp_path / "programs" / "marked.onnx")
        own = {path: where for path, where in devices_of(marked).items() if path not in of.left_out}
        assert (
            own.items()
            >= {path: names[j] for path, j in zip(of.operators, answer.unit, strict=True) if path}.items()
        )
        report = run_programs(tmp_path / "programs", path)
        assert report.equal and len(report.cases) == 3
        assert report.predicted_total["latency"] == manifest.predicted["latency"] / 1e12


def test_predictions_of_pieces_and_transfers_add_up_to_the_latency(tmp_path: Path) -> None:
    """Without control flow and fusion every picosecond of the latency is in a piece or in a transfer."""
    proto = random_model(9, 30)
    path = saved(proto, tmp_path)
    of = stated(proto, "soc-3")
    for seed in range(4):
        answer = random_answer(of, seed)
        manifest = write_programs(path, of, answer, tmp_path / "programs", graph=own_inference(proto))
        done = {name for p in manifest.program.pieces for name in p.operators}
        dead = [i for i, name in enumerate(of.problem.labels) if name not in done]
        ran = sum(p.predicted or 0 for p in manifest.program.pieces)
        assert ran + sum(int(of.problem.time[i, answer.unit[i]]) for i in dead) == sum(
            int(of.problem.time[i, j]) for i, j in enumerate(answer.unit)
        )
        problem, moves = of.problem, moves_of(of.problem, answer.unit)
        whole = {
            (problem.flows.names[t], a, b): int(problem.flows.time[t, a, b])
            for t, a, b in zip(*map(list, moves), strict=True)
        }
        site = {u.name: u.site for u in manifest.units}
        sent = {(t.tensor, site[t.origin], site[t.goal]): t.predicted for t in manifest.program.transfers}
        assert sent and all(whole[key] == value for key, value in sent.items())


def test_operators_on_constants_alone_are_copied_to_whoever_uses_them(tmp_path: Path) -> None:
    """The weight's transposition stands: both units that use it run it, nothing is sent."""
    from onnx_support import model, value, weight
    from programs_support import node

    proto = model(
        [
            node("Transpose", ["w"], ["wt"]),
            node("MatMul", ["x", "wt"], ["a"]),
            node("MatMul", ["a", "wt"], ["y"]),
        ],
        [value("x", "batch", 4)], [value("y", None, None)], [weight("w", np.eye(4, dtype=np.float32)[::-1])],
    )  # fmt: skip
    path = saved(proto, tmp_path)
    of = stated(proto, "laptop-npu")
    assert of.left_out == ((0,),)
    answer = Assignment(np.array([0, 0, 1, 0]), np.zeros(of.problem.groups.count, bool), np.arange(4))
    manifest = write_programs(path, of, answer, tmp_path / "programs", graph=own_inference(proto))
    first, second = manifest.program.pieces
    assert first.operators == ["MatMul_1"] and second.operators == ["MatMul_2"]
    assert (first.inputs, second.inputs) == (["x"], ["a"])
    assert {t.tensor for t in manifest.program.transfers} == {"a", "y"}
    assert run_programs(tmp_path / "programs", path).equal
    assert all(p.predicted is not None for p in all_pieces(manifest.program))


def test_pieces_have_the_threads_of_their_processor_and_no_more_than_the_host_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Predictions are for these threads, of accelerators too: threads of a host may stand for them."""
    from nmsolve.hw.assignment.programs import run

    (tmp_path / "m.toml").write_text(
        'name = "m"\n[[memory]]\nname = "ram"\n'
        + "".join(
            f'[[processor]]\nname = "{name}"\nkind = "{kind}"\nthreads = {threads}\nmemory = "ram"\nbandwidth = 10\n'
            f"widths = {{ {', '.join(f'{w} = {{ macs = 1, elements = 1 }}' for w in ('float32', 'int64', 'bool'))} }}\n"
            for name, kind, threads in (("one", "host", 1), ("many", "accelerator", 4096))
        )
    )
    proto = random_model(1, 25)
    path = saved(proto, tmp_path)
    of = stated(proto, str(tmp_path / "m.toml"))
    write_programs(path, of, random_answer(of, 1), tmp_path / "programs", graph=own_inference(proto))
    manifest = read_manifest(tmp_path / "programs")
    assert {u.name: u.threads for u in manifest.units} == {"one": 1, "many": 4096}
    asked: list[int] = []

    def noted(model: bytes, where: Path, threads: int, level: str) -> Any:
        asked.append(threads)
        return session_of(model, where, threads, level)

    session_of = run.session_of
    monkeypatch.setattr(run, "session_of", noted)
    monkeypatch.setattr(run, "cores", lambda: 3)
    assert run.run_programs(tmp_path / "programs", path).equal
    assert set(asked) == {1, 3}
