"""Learned plans of automatic mode: what they hold, when the fixed one stays, the log and the table that they come from."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Called

import nmsolve
from nmsolve.learn.allocation.features import FEATURES, KINDS, features_of
from nmsolve.learn.allocation.log import Slice, read_slices, thinned
from nmsolve.learn.allocation.plan import LEAST_PART, Shares, near, planned, uniform
from nmsolve.learn.allocation.table import GRID, NO_BOUND, Table, allocation_table, fitted, table_of
from nmsolve.learn.checkpoint import load, model_path
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.allocation.apply import BRIEF, allocated
from nmsolve.solvers.mapping.allocation.instances import TRAINED, UNSEEN, held_out, of_family, training
from nmsolve.solvers.mapping.allocation.measures import primal_integral, worth
from nmsolve.solvers.mapping.allocation.slices import Curves, log_slices
from nmsolve.solvers.mapping.api import make_problem
from nmsolve.solvers.mapping.auto import automatic
from nmsolve.solvers.search.portfolio import Step


def steps_of(problem: MappingProblem, seconds: float, workers: int = 1) -> list[Step]:
    """The fixed plan."""
    return automatic(problem, seconds, workers, lambda name, why: None)


def learned(
    problem: MappingProblem, seconds: float, allocate: str = "learned"
) -> tuple[list[Step], list[str]]:
    """The learned plan, and what was noted."""
    notes: list[str] = []
    return allocated(allocate, steps_of(problem, seconds), problem, seconds, 1, notes.append), notes


PROBLEMS = [training(number).problem() for number in (1, 2, 4, 7)]


@pytest.mark.parametrize("seconds", [1.0, 2.0, 10.0, 60.0])
@pytest.mark.parametrize("allocate", ["learned", "constant", "uniform"])
def test_slices_fit_into_the_time_and_heuristics_have_their_part(seconds: float, allocate: str) -> None:
    for problem in PROBLEMS:
        steps, notes = learned(problem, seconds, allocate)
        spans = {s.engine.name: s.first for s in steps if not s.quick}
        assert not notes and all(0 < span < seconds for span in spans.values())
        finders = sum(s.first for s in steps if s.engine.finds != "bounds")
        assert (
            finders < seconds and max(spans.values()) <= seconds
        )  # no bound is planned beyond what heuristics leave
        assert allocate != "uniform" or sum(spans.values()) <= seconds
        assert all(s.first <= seconds - finders for s in steps if s.engine.finds == "bounds" and not s.quick)
        assert finders >= 0.99 * LEAST_PART * seconds or allocate == "uniform"
        names = [s.engine.finds == "bounds" for s in steps if not s.quick]
        assert names == sorted(names)  # mappings first: bounds aim at them


def test_every_engine_of_the_fixed_plan_has_its_turn_and_those_without_a_slice_come_last_and_briefly() -> (
    None
):
    for problem in (*PROBLEMS, held_out(3).problem()):
        for seconds in (2.0, 10.0):
            fixed = steps_of(problem, seconds)
            steps = learned(problem, seconds)[0]
            assert {s.engine.name for s in steps} == {s.engine.name for s in fixed}
            names = [s.engine.name for s in fixed]
            shares = planned(allocation_table(), features_of(problem), names, seconds)
            assert shares is not None
            slices = shares.finders | shares.provers
            logged = allocation_table().engines  # of bounds that were not, the next test
            others = [
                s
                for s in steps
                if s.engine.name not in slices
                and not s.quick
                and (s.engine.finds != "bounds" or s.engine.name in logged)
            ]
            assert steps[len(steps) - len(others) :] == others
            assert all(s.first <= BRIEF * seconds for s in others if s.engine.finds != "bounds")


def test_a_bound_that_was_never_logged_has_its_first_run_of_the_fixed_plan_before_other_bounds() -> None:
    problem = make_problem(generate("mesh-rnd", nodes=576, seed=100), nmsolve.machine("mesh:24x24"))
    assert "projection" not in allocation_table().engines
    fixed = {s.engine.name: s.first for s in steps_of(problem, 2.0)}
    steps = learned(problem, 2.0)[0]
    bounds = [s for s in steps if s.engine.finds == "bounds" and not s.quick]
    assert bounds[0].engine.name == "projection" and bounds[0].first == fixed["projection"]


def test_equal_problems_get_equal_plans() -> None:
    for problem in PROBLEMS:
        one, two = (
            [(s.engine.name, s.first) for s in learned(problem, 4.0)[0]],
            [(s.engine.name, s.first) for s in learned(problem, 4.0)[0]],
        )
        assert one == two


def test_a_plan_takes_the_engine_that_was_better_on_problems_like_this_one() -> None:
    features = np.zeros((6, len(FEATURES)))
    features[:, FEATURES.index("log2 n")] = [6, 6, 6, 11, 11, 11]
    levels = np.zeros((6, 3, len(GRID)))
    levels[:3, 0], levels[3:, 0] = 0.0, 0.5  # "a" is perfect on small problems
    levels[:3, 1], levels[3:, 1] = 0.5, 0.0  # "b" on large ones
    levels[:, 2] = np.linspace(3.0, 1.0, len(GRID))  # a bound that gains all the time
    table = Table(["a", "b", "c"], [False, False, True], features, levels, np.full((6, 3), 1e6))
    for size, wanted, other in ((6, "a", "b"), (11, "b", "a")):
        of = np.zeros(len(FEATURES))
        of[FEATURES.index("log2 n")] = size
        shares = planned(table, of, ["a", "b", "c"], 2.0)
        assert shares is not None and set(shares.finders) == {wanted} and other not in shares.finders
        assert shares.provers["c"] > 2 * GRID[0]
    blind = planned(table, features[0], ["a", "b", "c"], 2.0, blind=True)
    assert blind is not None and set(blind.finders) == {"a", "b"}
    strange = features[0].copy()
    strange[0] = KINDS.index("reward")
    assert planned(table, strange, ["a", "b", "c"], 2.0) is None and not len(near(table, strange)[0])
    assert planned(table, features[0], ["unknown"], 2.0) is None
    assert uniform({"a": False, "c": True}, 2.0) == Shares({"a": 0.92}, {"c": 0.92})


def test_the_fixed_plan_stays_where_the_learned_one_has_no_say() -> None:
    problem = PROBLEMS[0]
    fixed = steps_of(problem, 2.0)
    small = make_problem(generate("mesh-comm", nodes=16), nmsolve.machine("mesh:4x4"))
    links = training(3).problem()
    assert links.objective == "max-link"
    cases = (
        (problem, fixed, 2, "one worker"),
        (small, steps_of(small, 2.0), 1, "exact engines"),
        (links, steps_of(links, 2.0), 1, "go on from one another"),
        (replace(problem, ceilings=(("cut", 1e9),)), fixed, 1, "limits"),
    )
    for of, steps, workers, why in cases:
        notes: list[str] = []
        assert allocated("learned", steps, of, 2.0, workers, notes.append) == steps
        assert len(notes) == 1 and why in notes[0]
        assert allocated("fixed", steps, of, 2.0, workers, notes.append) == steps and len(notes) == 1


@pytest.mark.parametrize("content", [b"", b"not a model", None])
def test_with_a_damaged_model_the_fixed_plan_runs_and_one_line_says_so(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = model_path("auto").read_bytes()
    spoilt = data[:-1] + bytes([data[-1] ^ 1]) if content is None else content
    (tmp_path / "auto.safetensors").write_bytes(spoilt)
    monkeypatch.setenv("NMSOLVE_MODELS", str(tmp_path))
    steps, notes = learned(PROBLEMS[0], 2.0)
    assert [(s.engine.name, s.first) for s in steps] == [
        (s.engine.name, s.first) for s in steps_of(PROBLEMS[0], 2.0)
    ]
    assert len(notes) == 1 and "fixed plan runs" in notes[0] and "\n" not in notes[0]


def test_the_model_of_the_package_is_small_and_a_table_of_other_features_is_refused() -> None:
    assert model_path("auto").stat().st_size < 200_000
    table = allocation_table()
    assert len(table.features) >= 300 and set(table.features[:, 0]) == set(range(len(KINDS)))
    model = table.checkpoint({})
    with pytest.raises(InputError, match="other kinds"):
        table_of(replace(model, facts={**model.facts, "names": ["n"]}))
    with pytest.raises(InputError, match="levels"):
        table_of(replace(model, arrays={**model.arrays, "levels": model.arrays["levels"][:, :3]}))
    with pytest.raises(InputError, match="unknown problems"):
        table_of(replace(model, arrays={**model.arrays, "ran": model.arrays["ran"] + 1000}))
    again = table_of(model)
    assert (again.levels == table.levels).all() and (again.ends == table.ends).all()


def test_levels_are_distances_from_the_best_and_runs_go_on_as_longer_ones_did() -> None:
    def run(instance: str, engine: str, limit: float, curve: list[tuple[float, float]]) -> Slice:
        return Slice(instance, [0.0] * len(FEATURES), engine, engine == "up", limit, limit, curve)

    log = [
        run("long", "down", 4.0, [(0.01, 200.0), (0.5, 100.0)]),
        run("long", "up", 4.0, [(0.01, 25.0), (2.5, 50.0)]),
        run("short", "down", 0.8, [(0.01, 100.0)]),
        run("short", "up", 0.8, [(0.01, 25.0)]),
    ]
    table = fitted(log)
    assert table.engines == ["down", "up"] and list(table.proves) == [False, True]
    long, short = table.levels
    assert long[0, 0] == pytest.approx(np.log(2)) and long[0, -1] == 0
    assert long[1, 0] == pytest.approx(np.log(4)) and long[1, -1] == pytest.approx(np.log(2))
    assert short[1, 0] == pytest.approx(np.log(4)) and short[1, -1] == pytest.approx(np.log(2))
    assert (
        fitted(reversed(log)).checkpoint({}).hash != ""
        and fitted(log).checkpoint({}).hash == table.checkpoint({}).hash
    )
    with pytest.raises(InputError, match="nothing to fit"):
        fitted(log[:1])
    silent = fitted([*log, run("short", "late", 0.8, [])])
    assert (silent.levels[:, silent.engines.index("late")] <= NO_BOUND).all()


def test_a_log_that_was_cut_off_can_be_read_and_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    one = Slice("a", [1.0], "star", True, 0.8, 0.1, [(0.1, 2.0)])
    path.write_text(one.line() + one.line()[:30])
    assert read_slices(path) == [one] and read_slices(tmp_path / "none") == []
    path.write_text("{}\n")
    with pytest.raises(InputError, match="line 1 is no logged run"):
        read_slices(path)
    curve = [(float(k), 1.0) for k in range(205)]
    assert len(thinned(curve)) < 50 and thinned(curve)[-1] == curve[-1] and thinned([]) == []


def test_held_out_problems_are_of_other_seeds_and_every_fifth_of_an_unseen_family() -> None:
    seen, unseen = [training(k) for k in range(300)], [held_out(k) for k in range(60)]
    assert min(one.seed for one in seen) == TRAINED > max(one.seed for one in unseen)
    assert UNSEEN not in {one.family for one in seen} and sum(one.family == UNSEEN for one in unseen) >= 12
    assert len({one.name for one in seen}) == 300 and training(5) == training(5)
    assert of_family(UNSEEN, 100, True).alone and not of_family(UNSEEN, 100, False).alone


def test_measures_of_a_run() -> None:
    assert primal_integral([(0.5, 20.0), (1.0, 10.0)], 10.0, 2.0) == pytest.approx((0.5 + 0.25) / 2)
    assert primal_integral([], 10.0, 2.0) == 1.0
    base = worth(Curves([(1.0, 20.0)], [(0.5, 5.0)], None, 2.0), 10.0, 2.0)
    better = worth(Curves([(0.0, 10.0)], [(0.5, 8.0)], None, 2.0), 10.0, 2.0)
    gains = better.gains(base)
    assert gains == pytest.approx({"objective": 0.5, "primal integral": 0.75, "bound": 0.375, "gap": 0.55})
    nothing = worth(Curves([], [], None, 2.0), 10.0, 2.0)
    assert nothing.gap == 1.0 and base.gains(nothing)["objective"] == 0.0


def test_training_writes_a_log_that_can_be_gone_on_with_and_a_table_that_plans(tmp_path: Path) -> None:
    out, log = tmp_path / "auto.safetensors", tmp_path / "auto.slices.jsonl"
    command = [sys.executable, "-m", "nmsolve", "train", "auto", "--instances", "3", "--longest", "0.1"]
    done = subprocess.run([*command, "--out", str(out), "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    before = read_slices(log)
    assert told["instances"] == 3 and told["runs"] == len(before)
    assert {one.instance for one in before} == {training(k).name for k in range(3)}
    assert {one.limit for one in before} == {0.1} and {one.proves for one in before} == {False, True}
    assert f"`{told['hash']}`" in out.with_suffix(".md").read_text()
    assert table_of(load(out, "auto")).levels.shape[0] == 3

    log.write_text(log.read_text()[:-10])  # killed while it wrote
    instances = [(k, training(k)) for k in range(3)]
    again = log_slices(log, instances, 10.0, lambda text: None, 0.1)
    assert again[:-1] == before[:-1] and again[-1].engine == before[-1].engine
    assert [one.line() for one in read_slices(log)] == [one.line() for one in again]
    assert log_slices(log, instances, 0.0, lambda text: None, 0.1) == again


def test_the_option_runs_says_what_it_is_and_is_refused_beside_engines(call: Called, tmp_path: Path) -> None:
    graph, out = tmp_path / "g.json", tmp_path / "out"
    assert call("generate", "mesh-comm", "--nodes", "64", "--out", str(graph))[0] == 0
    arguments = ("map", str(graph), "-m", "mesh:8x8", "-t", "0.7s", "--out", str(out))
    code, _, errors = call(*arguments, "--allocate", "learned")
    assert code in (0, 3, 4), errors
    report = json.loads((out / "report.json").read_text())
    assert report["inputs"]["allocate"] == "learned" and 0 < report["bound"] <= report["objective"]
    assert all(check["ok"] for check in report["checks"])
    assert "fixed plan" not in (out / "events.jsonl").read_text()
    for wrong in (("--allocate", "guessed"), ("--allocate", "learned", "--engines", "star")):
        code, _, errors = call(*arguments, *wrong)
        assert code == 2 and "--allocate" in errors and errors.count("\n") == 1
