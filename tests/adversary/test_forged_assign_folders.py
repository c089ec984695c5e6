"""Whole output folders of ``assign`` forged on purpose: nothing that ``verify --bound`` ends with 0 for is false.

Folders are made by the command itself; then fields are changed, parts dropped and files of another model put in their place. The
truth is the best of all assignments of the problem that the report states, each with the values of the tests' own reference.
``NMSOLVE_FORGED=100000 pytest tests/adversary/test_forged_assign_folders.py`` tries longer.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from assign_reference import Answer, Reference
from assignments_support import pair_machine, small_model
from test_forged_folders import Folder, accepted, command, files_of, write
from test_forged_pipelines import mutated

from nmsolve.kinds.assignment.statement import AssignInputs, state_problem
from nmsolve.model.assignment.problem import AssignProblem
from nmsolve.model.bound import gap
from nmsolve.model.file_set import new_run

pytest.importorskip("onnx")
TRIES = int(os.environ.get("NMSOLVE_FORGED", "40"))
#: Options of the runs; the accelerator's memory holds one of two weights in ``tight``.
RUNS: dict[str, tuple[str, ...]] = {
    "latency": ("pair.toml",),
    "tight": ("tight.toml", "--engines", "tree,dual,subgraphs,assign-counting"),
    "load": ("pair.toml", "--objective", "load", "--engines", "assign-counting,list-schedule"),
    "makespan": ("pair.toml", "--objective", "makespan", "--engines", "assign-counting,list-schedule"),
    "order": ("pair.toml", "--objective", "latency,energy", "--engines", "min-cut,tree"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The output folder of a run on one of two models, made when it is first asked for."""
    base = tmp_path_factory.mktemp("forged")
    pair_machine(base / "pair.toml")
    pair_machine(base / "tight.toml", local=4 * 64 * 64 + 5 * 4 * 32 * 64)
    small_model(base / "g.onnx", layers=2, width=64)
    small_model(base / "other.onnx", layers=1, width=128)

    def folder(kind: str, name: str) -> Path:
        out = base / f"{kind}-{name}"
        if not out.exists():
            machine, *rest = RUNS[kind]
            told = ("-m", base / machine, "--bind", "batch=32", "-t", 3, "-o", out)
            command("assign", base / f"{name}.onnx", *told, *rest)
        return out

    return folder


@functools.cache
def best(inputs: str, within: tuple[tuple[str, float], ...], objective: str) -> float:
    """The least value of an objective over all assignments of the stated problem with these values of others; inf if none."""
    problem = stated(inputs)
    own = Reference(problem)
    values = [own.worth(a) for a in every(problem) if own.legal(a)]
    return min(
        (v[objective] for v in values if all(v[k] <= most for k, most in within)), default=float("inf")
    )


def stated(inputs: str) -> AssignProblem:
    """The problem that the inputs of a report state, without what was minimised before."""
    told = msgspec.json.decode(inputs, type=AssignInputs)
    return state_problem(msgspec.structs.replace(told, before=())).operators


def every(problem: AssignProblem) -> Iterator[Answer]:
    """All units of all operators, with all sets of groups fused, for the makespan in all orders."""
    able = [[j for j, t in enumerate(row) if t >= 0] for row in problem.time.tolist()]
    groups = range(problem.groups.count)
    sets = [s for k in range(len(groups) + 1) for s in itertools.combinations(groups, k)]
    ranks = [*orders(problem)] if problem.objective == "makespan" else [tuple(range(problem.count))]
    for unit in itertools.product(*able):
        yield from (Answer(unit, fused, rank) for fused in sets for rank in ranks)


def orders(problem: AssignProblem) -> Iterator[tuple[int, ...]]:
    """The ranks of every order in which operators come after those whose tensors they use."""
    flows = problem.flows
    after = {(int(flows.source[t]), int(k)) for t in range(flows.count) for k in flows.users(t)}

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == problem.count:
            yield tuple(done.index(i) for i in range(problem.count))
        for i in set(range(problem.count)) - set(done):
            if all(a in done for a, b in after if b == i):
                yield from extend((*done, i))

    return extend(())


def forged(files: Folder, other: Folder, rng: random.Random) -> Folder:
    """The folder with some of it changed; all files of one run."""
    new = copy.deepcopy(files)
    report = new["report.json"]
    value = report["objective"]
    if rng.random() < 0.7:
        bound = value * rng.choice((1, 1, 0.99, 0.7, 1 - 1e-9, 1.2)) + rng.choice((0, 0, -1, 1))
        report |= {"bound": bound, "gap": gap(value, bound), "status": rng.choice(("optimal", "feasible"))}
    if rng.random() < 0.3:
        name = rng.choice(sorted(report["scores"]))
        report |= {"objective_name": name, "objective": report["scores"][name]}
    if rng.random() < 0.3:
        key, told = rng.choice((
            ("objective", "energy"), ("objective", "load"), ("before", []), ("bind", "batch=1"), ("whole", True),
            ("before", [{"objective": "latency", "value": value, "bound": value, "status": "optimal"}]), ("constraints", None),
        ))  # fmt: skip
        report["inputs"][key] = told
    proofs = new["certificates.json"]
    for row in [*proofs["bounds"], *(b for s in proofs.get("stages", ()) for b in s["bounds"])]:
        draw = rng.random()
        if draw < 0.3 and isinstance(report["bound"], int | float):
            row["value"] = report["bound"]
        elif draw < 0.45:
            row["certificate"] = mutated(row["certificate"], rng)
        elif draw < 0.5:
            row["method"] = rng.choice(("min-cut", "tree", "dual", "counting", "assign-cpsat", "my-blog"))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        name, draw = rng.choice(sorted(new)), rng.random()
        if draw < 0.75:
            new[name] = mutated(new[name], rng)
        elif draw < 0.9:
            new[name] = copy.deepcopy(other.get(name, {}))
        elif len(new) > 1:
            del new[name]
    run = new_run()
    for content in new.values():
        if isinstance(content, dict):
            content["run"] = run
    return new


def false_claims(new: Folder) -> Iterator[str]:
    """What the report of an accepted folder says that is not so."""
    report = new["report.json"]
    told = {k: v for k, v in report["inputs"].items() if k in AssignInputs.__struct_fields__}
    inputs = msgspec.json.encode(told).decode()
    held = told.get("before") or []
    within: list[tuple[str, float]] = []
    for h in held:
        low = best(inputs, tuple(within), h["objective"])
        if max(h.get("bound") or 0, h["value"] if h.get("status") == "optimal" else 0) > low:
            yield f"{h}, optimum {low}"
        within.append((h["objective"], h["value"]))
    least = best(inputs, tuple(within), report["objective_name"])
    if report["objective"] < least or (report["bound"] or 0) > least:
        yield f"{report['objective']} with bound {report['bound']}, optimum {least}"
    if report["status"] == "optimal" and report["objective"] > least:
        yield f"optimal at {report['objective']}, optimum {least}"


@pytest.mark.parametrize("kind", RUNS)
def test_no_forged_folder_is_believed(made: Callable[[str, str], Path], kind: str, tmp_path: Path) -> None:
    files, other = files_of(made(kind, "g")), files_of(made(kind, "other"))
    write(tmp_path, files)
    whole = accepted(tmp_path)
    assert not [*false_claims(files)]
    rng, believed = random.Random(f"{kind} 1"), 0
    for k in range(TRIES):
        new = forged(files, other, rng)
        write(tmp_path, new)
        if accepted(tmp_path):
            believed += 1
            wrong = [*false_claims(new)]
            assert not wrong, (k, wrong, json.dumps(new)[:2000])
    assert whole and believed > 0
