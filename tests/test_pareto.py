"""Several objectives: lexicographic order and the front of two, against trying every mapping."""

from __future__ import annotations

import functools
import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from nmsolve.check.certificates import stages_from_json, stages_to_json
from nmsolve.check.mapping.recheck import RECHECKS
from nmsolve.cli.app import application
from nmsolve.cli.check import run_verify
from nmsolve.heuristics.mapping.links.moves import move
from nmsolve.heuristics.mapping.links.state import build
from nmsolve.hw.machines import load_machine
from nmsolve.hw.routes import link_loads
from nmsolve.hw.scores import objective_value, score
from nmsolve.kinds.mapping.front import MapFront
from nmsolve.kinds.mapping.given import Given
from nmsolve.kinds.mapping.kind import KIND
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.pareto import say_front, write_front
from nmsolve.kinds.time_left import TimeLeft
from nmsolve.kinds.verbs import VerifyOptions
from nmsolve.model.bound import Bound, Result, Stage, gap
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.solution import check_mapping
from nmsolve.solvers.mapping.api import solve
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.multi_objective import MappingObjectives, Solve
from nmsolve.solvers.multi_objective import lexicographic, pareto_front, word_of

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

NAMES = ("hops", "max-link")


def random_problem(seed: int, n: int = 5) -> MappingProblem:
    """A few nodes on four cores, two on a core."""
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((n, n)) < 0.6)
    graph = LogicGraph.from_edges(
        n, i, j, rng.integers(1, 9, len(i)).astype(float), multicast=rng.random(n) < 0.4
    )
    return MappingProblem(graph, Machine("m", (1, 1), (2, 2)), "hops", (), 2)


def value(problem: MappingProblem, name: str, core: np.ndarray) -> float:
    return objective_value(replace(problem, objective=name, ceilings=()), core)


def all_values(problem: MappingProblem) -> set[tuple[float, float]]:
    """Values of both objectives over all legal mappings."""
    out = set()
    for cores in itertools.product(range(problem.cores), repeat=problem.n):
        core = np.array(cores)
        if not check_mapping(problem, core):
            out.add((value(problem, NAMES[0], core), value(problem, NAMES[1], core)))
    return out


def by_search(problem, seconds, start):
    return solve(problem, time_limit=0.6, engines=["links"] if problem.ceilings else None, warm_start=start)


def by_trying(problem, seconds, start):
    """A solver that tries everything, in the shape the front wants it."""
    best, least = None, np.inf
    for cores in itertools.product(range(problem.cores), repeat=problem.n):
        core = np.array(cores)
        if check_mapping(problem, core) or any(value(problem, k, core) > v for k, v in problem.ceilings):
            continue
        if value(problem, problem.objective, core) < least:
            best, least = core, value(problem, problem.objective, core)
    return Result("optimal", "gap", problem.objective, best, least, least, 0.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_points_of_the_front_are_on_the_true_front(seed):
    problem = random_problem(seed)
    values = all_values(problem)
    front = {v for v in values if not any(w != v and w[0] <= v[0] and w[1] <= v[1] for w in values)}
    found = pareto_front(MappingObjectives(problem, by_trying), NAMES, 4, 5.0)
    assert {p.values for p in found.points} <= front and all(p.proven for p in found.points)
    assert found.ideal == (min(v[0] for v in front), min(v[1] for v in front)) == found.bounds
    assert [p.values for p in found.points] == sorted(p.values for p in found.points)


def test_search_keeps_ceilings_and_files_hold_what_was_found(tmp_path):
    problem = random_problem(5, n=7)
    found = pareto_front(MappingObjectives(problem, by_search), NAMES, 3, 2.0)
    for p in found.points:
        assert p.values == (value(problem, "hops", p.solution), value(problem, "max-link", p.solution))
        assert p.ceiling is None or p.values[1] <= p.ceiling
    write_front(tmp_path, MapFront(problem), found, {}, TimeLeft())
    written = json.loads((tmp_path / "pareto.json").read_text())
    assert [tuple(row["values"].values()) for row in written["points"]] == [p.values for p in found.points]
    assert (
        "<svg" in (tmp_path / "pareto.svg").read_text() and "<svg" in (tmp_path / "pareto.html").read_text()
    )
    assert all((tmp_path / row["mapping"]).exists() for row in written["points"])


def test_lexicographic_holds_what_came_before():
    problem = random_problem(3)
    stages = lexicographic(MappingObjectives(problem, by_trying), NAMES, 5.0)
    least = min(all_values(problem))
    assert (stages[0][1].objective, stages[1][1].objective) == least
    assert stages[1][0].ceilings == (("hops", least[0]),)


def test_loads_and_sums_of_the_search_state_are_those_of_the_evaluator():
    rng = np.random.default_rng(0)
    names = ["hops", "multicast-hops", "cut", "connectivity", "energy"]
    for trial in range(9):
        graph = random_problem(trial, n=14).graph
        machine = [
            Machine("m", (1, 1), (3, 3)),
            Machine("m", (1, 1), (3, 3), torus=True),
            Machine("m", (1, 1), (3, 3), faulty_links=((0, 1), (4, 5))),
        ][trial % 3]
        kept = names if trial % 3 == 0 else names[:-1]
        problem = MappingProblem(graph, machine, "max-link", (), 9, ceilings=tuple((k, 1e9) for k in kept))
        state = build(problem, rng.integers(0, 9, 14))
        for _ in range(20):
            move(state, int(rng.integers(14)), int(rng.integers(9)))
        truth = score(graph, machine, state.room.core)
        assert state.loads == pytest.approx(link_loads(graph, machine, state.room.core))
        sums = state.factor @ state.sums + state.linked
        assert sums == pytest.approx([truth[k] for k in kept])


def test_command_line_front_order_and_bad_input(tmp_path):
    graph = tmp_path / "g.json"
    save_graph(random_problem(4).graph, graph)
    run = lambda *more: CliRunner().invoke(application(), ["map", str(graph), "-m", "mesh:2x2", *more])  # noqa: E731
    done = run("--objective", "hops,max-link", "-t", "2", "-o", str(tmp_path / "lex"))
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "lex" / "report.json").read_text())
    assert report["objective_name"] == "max-link" and report["inputs"]["before"][0]["objective"] == "hops"
    for bad in (("--pareto", "hops"), ("--pareto", "hops,heat"), ("--objective", "hops,hops")):
        assert isinstance(run(*bad).exception, InputError)
    assert isinstance(run("--pareto", "hops,cut", "--points", "1").exception, InputError)
    assert isinstance(run("--pareto", "hops,cut", "--objective", "energy").exception, InputError)
    assert isinstance(run("--route", "joint", "--objective", "hops,cut").exception, InputError)
    assert isinstance(run("--route", "nowhere").exception, InputError)


def by_word(problem: MappingProblem, seconds: float, start: np.ndarray | None) -> Result:
    """The least value of all, proved by CP-SAT as it says; beside it the neighbour-counting bound of hops."""
    found = by_trying(problem, seconds, start)
    word = Bound(float(found.objective or 0), "cpsat", "full", {"status": "OPTIMAL"})
    bounds = (word, *((neighbour_bound(problem),) if problem.objective == "hops" else ()))
    return replace(found, bounds=bounds, scores=score(problem.graph, problem.machine, found.core))


def by_star(problem: MappingProblem, seconds: float, start: np.ndarray | None) -> Result:
    """The same without any word."""
    found = by_word(problem, seconds, start)
    bound = found.bounds[1].value if found.bounds[1:] else None
    share = gap(found.objective, bound)
    return replace(found, bounds=found.bounds[1:], status="feasible", bound=bound, gap=share)


def front_folder(folder: Path, solver: Solve) -> Path:
    """A front of two points as ``map --pareto`` writes it."""
    problem = replace(random_problem(2), machine=load_machine("mesh:2x2"))
    save_graph(problem.graph, folder / "g.json")
    front = pareto_front(MappingObjectives(problem, solver), NAMES, 3, 5.0)
    assert len(front.points) > 1
    inputs = {"graph": str(folder / "g.json"), "machine": "mesh:2x2", "node_limit": problem.node_limit}
    write_front(folder, MapFront(problem), front, inputs, TimeLeft(0))
    return folder


def order_folder(folder: Path, solver: Solve) -> Path:
    """A run in order as ``map --objective hops,max-link`` writes it."""
    problem = replace(random_problem(2), machine=load_machine("mesh:2x2"))
    save_graph(problem.graph, folder / "g.json")
    (first, held), (stage, result) = lexicographic(MappingObjectives(problem, solver), NAMES, 5.0)
    last = replace(problem, objective=stage.objective, ceilings=stage.ceilings)
    before = {"objective": "hops", "value": held.objective, "bound": held.bound, "status": held.status}
    inputs = {"graph": str(folder / "g.json"), "machine": "mesh:2x2", "node_limit": problem.node_limit}
    o = MapOptions(folder / "g.json", out=folder)
    KIND.write(o, Given(last, o), result, inputs | {"before": [before]}, TimeLeft(0), new_run(), [first])
    return folder


def code(path: Path, trust: bool = False) -> int:
    """Exit code of ``nmsolve verify PATH --bound``; 2 for what cannot be read."""
    try:
        return run_verify(VerifyOptions(path, bound=True, trust_solver=trust))
    except InputError:
        return 2


Make = Callable[[Path, Solve], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Make, Solve], Path]:
    """A folder that is made when it is first asked for."""
    return functools.cache(lambda kind, solver: kind(tmp_path_factory.mktemp("several"), solver))


@pytest.mark.parametrize("kind", [front_folder, order_folder])
def test_what_several_objectives_claim_is_recomputed_or_named(
    kind: Make, made: Callable[[Make, Solve], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code(made(kind, by_star)) == 0
    assert "cpsat" not in capsys.readouterr().out
    folder = made(kind, by_word)
    assert (code(folder), code(folder, trust=True)) == (6, 0)
    assert "rests on the word of cpsat" in capsys.readouterr().out
    assert run_verify(VerifyOptions(folder)) == 0 and "only claimed" in capsys.readouterr().out


Change = Callable[[dict[str, Any], dict[str, Any]], None]


def forged(folder: Path, to: Path, change: Change) -> Path:
    """A copy of the folder with report and certificates changed together."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    names = next(pair for pair in (("pareto.json", "pareto-certificates.json"), ("report.json", "certificates.json"))
                 if (to / pair[0]).exists())  # fmt: skip
    files = [json.loads((to / name).read_text()) for name in names]
    change(*files)
    for name, content in zip(names, files, strict=True):
        (to / name).write_text(json.dumps(content))
    return to


def swap_bounds(report: dict[str, Any], proofs: dict[str, Any]) -> None:
    """Words of one stage in another's place."""
    a, b = proofs["stages"][0], next(s for s in proofs["stages"] if s["objective"] == "max-link")
    a["bounds"], b["bounds"] = b["bounds"], a["bounds"]


#: What somebody would like to have proved, and is refused though words are trusted.
FORGED: dict[str, Change] = {
    "a point's bound above it": lambda f, c: f["points"][0].update(bound=2 * f["points"][0]["bound"]),
    "a bound below 0": lambda f, c: f["points"][0].update(bound=-1.0),
    "a bound of all above a point": lambda f, c: f.update(bounds=[2 * f["bounds"][0], None]),
    "another graph": lambda f, c: f.update(graph={"hash": "0" * 16}),
    "an ideal below the points": lambda f, c: f.update(ideal=[0.0, 0.0]),
    "dominated, but better": lambda f, c: f["dominated"].append({"values": {"hops": 0.0, "max-link": 1e9}}),
    "dominated, without values": lambda f, c: f["dominated"].append({"values": {}}),
    "no stage": lambda f, c: c.update(stages=[]),
    "no stage of one objective": lambda f, c: c.update(
        stages=[s for s in c["stages"] if s["objective"] == "hops"]
    ),
    "no stage with ceilings": lambda f, c: c.update(stages=[s for s in c["stages"] if not s["ceilings"]]),
    "more proved than the certificate": lambda f, c: c["stages"][0]["bounds"][1].update(value=f["bounds"][0]),
    "a word above a mapping": lambda f, c: c["stages"][0]["bounds"][0].update(value=2 * f["bounds"][0]),
    "nobody's word": lambda f, c: c["stages"][0]["bounds"][0].update(method="my-blog"),
    "a word about placements": lambda f, c: c["stages"][0]["bounds"][0].update(scope="placement"),
    "bounds of another stage": swap_bounds,
    "a word about another problem": lambda f, c: c["stages"][0].update(problem="0" * 16),
    "another ceiling": lambda f, c: c["stages"][1]["ceilings"].update(hops=1e9),
    "another objective": lambda f, c: c["stages"][1].update(objective="cut"),
}


@pytest.mark.parametrize("what", FORGED)
def test_no_forged_front_is_believed(what: str, made: Callable[[Make, Solve], Path], tmp_path: Path) -> None:
    assert code(forged(made(front_folder, by_word), tmp_path, FORGED[what]), trust=True) == 1


def test_a_front_claims_no_more_than_its_certificates_prove(
    made: Callable[[Make, Solve], Path], tmp_path: Path
) -> None:
    """Without words the neighbour-counting bound is all that is proved: nothing above it, and no point."""
    folder = made(front_folder, by_star)
    changes: list[Change] = [
        lambda f, c: f["points"][0].update(proven=True, bound=None),
        lambda f, c: f["points"][0].update(bound=f["points"][0]["values"]["hops"]),
        lambda f, c: f.update(bounds=[f["ideal"][0], None]),
        lambda f, c: f.update(bounds=[None, f["ideal"][1]]),
    ]
    for change in changes:
        assert code(forged(folder, tmp_path, change), trust=True) == 1
    assert code(forged(folder, tmp_path, lambda f, c: None)) == 0
    (tmp_path / "pareto-certificates.json").unlink()
    assert code(tmp_path, trust=True) == 1


def held(report: dict[str, Any]) -> dict[str, Any]:
    """What is said of the earlier objective."""
    found: dict[str, Any] = report["inputs"]["before"][0]
    return found


#: The same for objectives in order.
HELD: dict[str, Change] = {
    "a bound above the value": lambda r, c: held(r).update(bound=2 * held(r)["value"]),
    "no stage": lambda r, c: c.update(stages=[]),
    "stages are gone": lambda r, c: c.pop("stages"),
    "a word above the mapping": lambda r, c: c["stages"][0]["bounds"][0].update(value=2 * held(r)["value"]),
    "more proved than the certificate": lambda r, c: c["stages"][0]["bounds"][1].update(
        value=held(r)["value"]
    ),
    "a word about another problem": lambda r, c: c["stages"][0].update(problem=c["problem"]),
    "a word within a ceiling": lambda r, c: c["stages"][0].update(ceilings={"max-link": 1e9}),
    "bounds of the last objective": lambda r, c: c["stages"][0].update(bounds=c["bounds"]),
    "held at more": lambda r, c: held(r).update(value=held(r)["value"] + 1, bound=held(r)["value"] + 1),
}


@pytest.mark.parametrize("what", HELD)
def test_no_forged_value_of_an_earlier_objective_is_believed(
    what: str, made: Callable[[Make, Solve], Path], tmp_path: Path
) -> None:
    assert code(forged(made(order_folder, by_word), tmp_path, HELD[what]), trust=True) == 1


def test_of_recomputed_bounds_a_front_keeps_one_of_a_method() -> None:
    """However many stages there are: it holds under all ceilings, and the best one proves most."""
    weak, strong = (Bound(v, "star", "full", {"method": "star"}) for v in (1.0, 2.0))
    word, kept = Bound(3.0, "cpsat"), Bound(9.0, "star", "placement")
    stages = [
        Stage("hops", (), "a", (weak, kept)), Stage("hops", (("cut", 1.0),), "b", (strong, word)),
        Stage("hops", (("cut", 2.0),), "c", (word,)), Stage("hops", (("cut", 3.0),), "d", (weak,)),
    ]  # fmt: skip
    read = stages_from_json(stages_to_json(stages, RECHECKS))
    assert read == [replace(stages[1], bounds=(strong, word)), stages[2]]


@pytest.mark.parametrize(("bounds", "word"), [
    ((Bound(7.0, "cpsat"), Bound(6.0, "star")), "cpsat"),
    ((Bound(7.0, "cpsat"), Bound(7.0, "star")), ""),
    ((Bound(9.0, "star", "placement"), Bound(7.0, "mip"), Bound(7.0, "branch-bound")), "mip or branch-bound"),
    ((), ""),
])  # fmt: skip
def test_a_proof_says_on_whose_word_it_is(bounds: tuple[Bound, ...], word: str) -> None:
    assert word_of(Result("optimal", "gap", "hops", None, 7.0, 7.0, 0.0, bounds), RECHECKS) == word


def test_terminal_and_page_name_the_solver_of_a_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = replace(random_problem(2), machine=load_machine("mesh:2x2"))
    front = pareto_front(MappingObjectives(problem, by_word), NAMES, 3, 5.0)
    write_front(tmp_path, MapFront(problem), front, {}, TimeLeft())
    say_front(front, tmp_path)
    assert front.points[0].proven
    assert "proved, on the word of cpsat" in capsys.readouterr().out
    assert "proved, on the word of cpsat" in (tmp_path / "pareto.html").read_text()


def test_a_front_of_one_point_is_not_searched_twice() -> None:
    """Both ends are the same: of an objective with itself there is nothing to trade."""
    problem, asked = random_problem(1), []

    def solver(problem: MappingProblem, seconds: float, start: np.ndarray | None) -> Result:
        asked.append(problem.objective)
        return by_trying(problem, seconds, start)

    front = pareto_front(MappingObjectives(problem, solver), ("hops", "hops"), 6, 5.0)
    assert len(front.points) == 1 and front.points[0].proven and not front.dominated and len(asked) == 3
