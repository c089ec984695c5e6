"""Whole output folders of ``map`` and ``route`` forged on purpose: nothing that ``verify --bound`` ends with 0 for is false.

Every folder is made by the command itself; then fields are changed, parts dropped and files of another problem put in
their place. The truth is the best of all mappings (all routes), each with the values of the evaluator, which tests/differential
holds against a reference of its own. ``NMSOLVE_FORGED=100000 pytest tests/adversary/test_forged_folders.py`` tries longer.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import itertools
import json
import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from command_support import run_here
from test_forged_pipelines import mutated

from nmsolve.cli.check import run_verify
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import score
from nmsolve.kinds.verbs import VerifyOptions
from nmsolve.model.bound import gap, meets
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import new_run
from nmsolve.model.graph import LogicGraph

TRIES = int(os.environ.get("NMSOLVE_FORGED", "250"))
EDGES = {
    "g": [(0, 1, 3), (1, 2, 5), (2, 3, 2), (0, 3, 4), (1, 3, 1), (0, 2, 2)],
    "other": [(0, 1, 9), (1, 2, 1), (2, 3, 7), (0, 3, 2), (1, 3, 6)],
}
#: Command lines without graph and folder; the first objective is what the run is about.
RUNS: dict[str, tuple[str, ...]] = {
    "alone": ("map", "--machine", "mesh:2x2", "--engines", "star,projection,tabu"),
    "two": ("map", "--machine", "two.toml", "--engines", "star,parts,slots,joint,cover,first-fit"),
    "order": ("map", "--machine", "two.toml", "--engines", "cover,parts,first-fit", "--objective", "cut,hops"),
    # Without an engine that proves the optimum: on its word alone no folder is accepted, and nothing would be tried.
    "joint": ("map", "--machine", "mesh:2x2", "--route", "joint", "--objective", "max-link", "--engines", "bounds"),
    "xy": ("map", "--machine", "mesh:2x2", "--route", "xy", "--engines", "star,tabu"),
    "front": ("map", "--machine", "mesh:2x2", "--engines", "star,split,link-load,links,tabu",
              "--pareto", "hops,max-link", "--points", "3"),
    "words": ("map", "--machine", "two.toml", "--engines", "star,parts,link-load,cpsat,links",
              "--pareto", "hops,max-link", "--points", "3"),
}  # fmt: skip
Folder = dict[str, Any]


def command(*arguments: object) -> None:
    """``nmsolve ARGUMENTS``, silently."""
    done = run_here(*arguments, code=None)
    assert done.returncode in (0, 3), done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The output folder of a run on one of the two graphs, made when it is first asked for."""
    base = tmp_path_factory.mktemp("forged")
    (base / "two.toml").write_text('name = "two"\ncores = [2, 2]\n[capacity]\nneurons = 2\n')
    for name, edges in EDGES.items():
        rows = [{"source": a, "target": b, "weight": w} for a, b, w in edges]
        content = {"directed": True, "multigraph": False, "graph": {"name": name}, "edges": rows,
                   "nodes": [{"id": i, "sizes": {"neurons": 1}} for i in range(4)]}  # fmt: skip
        (base / f"{name}.json").write_text(json.dumps(content))

    def folder(kind: str, name: str) -> Path:
        out = base / f"{kind}-{name}"
        if not out.exists() and kind == "route":
            command("route", folder("alone", name), "-o", out, "-t", 3)
        elif not out.exists():
            verb, *rest = (str(base / r) if r.endswith(".toml") else r for r in RUNS[kind])
            command(verb, base / f"{name}.json", "-o", out, "-t", 2, *rest)
        return out

    return folder


def files_of(folder: Path) -> Folder:
    """All JSON files of a folder."""
    return {p.name: json.loads(p.read_text()) for p in sorted(folder.glob("*.json"))}


def accepted(folder: Path, routes: Path | None = None) -> bool:
    """Whether ``verify --bound`` ends with 0."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = run_verify(VerifyOptions(folder, bound=True, routes=routes))
        except InputError:
            return False
    assert code in (0, 1, 6)
    return code == 0


@functools.cache
def table(name: str, per: int) -> list[tuple[tuple[int, ...], dict[str, float]]]:
    """Every mapping with at most ``per`` nodes on a core, with all its objectives."""
    edges = EDGES[name]
    graph = LogicGraph.from_edges(
        4, [e[0] for e in edges], [e[1] for e in edges], [float(e[2]) for e in edges]
    )
    board = load_machine("mesh:2x2")
    return [
        (core, score(graph, board, np.array(core)))
        for core in itertools.product(range(4), repeat=4)
        if max(core.count(p) for p in core) <= per
    ]


def best_with_routes(flows: Sequence[tuple[int, int, float]], shortest: bool) -> float:
    """Least largest load on 2x2 over all simple routes of ``flows`` whose links wait for each other in no ring."""
    ring = nx.Graph([(0, 1), (1, 3), (3, 2), (2, 0)])
    ways = []
    for a, b, _ in flows:
        some = [list(itertools.pairwise(p)) for p in nx.all_simple_paths(ring, a, b)]
        ways.append([p for p in some if not shortest or len(p) == min(map(len, some))])
    best = math.inf
    for paths in itertools.product(*ways):
        loads: dict[tuple[int, int], float] = {}
        for (_, _, w), path in zip(flows, paths, strict=True):
            for link in path:
                loads[link] = loads.get(link, 0.0) + w
        waits = nx.DiGraph([pair for path in paths for pair in itertools.pairwise(path)])
        if max(loads.values(), default=0.0) < best and nx.is_directed_acyclic_graph(waits):
            best = max(loads.values(), default=0.0)
    return best


def say_better(report: dict[str, Any], rng: random.Random, scores: dict[str, float], depth: int = 0) -> None:
    """What a forger would like to say: another bound with the gap that belongs to it, optimal, another objective, other rules."""
    draw = rng.random()
    if draw < 0.5:
        value = report.get("objective")
        value = value if isinstance(value, int | float) else 1.0
        bound = value * rng.choice((1, 1, 0.99, 0.7, 1 - 1e-9, 1.2))
        report |= {
            "bound": bound,
            "gap": gap(value, bound),
            "bound_scope": rng.choice(("full", None, "placement")),
        }
        report["status"] = rng.choice(("optimal", "feasible"))
    elif draw < 0.65:
        value = report.get("objective")
        bound = (value if isinstance(value, int | float) else 1.0) * rng.choice((1, 0.9, 0.5))
        report |= {"placement_bound": bound, "placement_gap": gap(value, bound)}
    elif draw < 0.8:
        name = rng.choice(sorted(scores))
        report |= {"objective_name": name, "objective": scores[name]}
        report["gap"] = gap(scores[name], report.get("bound") if _is_number(report.get("bound")) else None)
    else:
        key, value = rng.choice((
            ("route", "joint"), ("route", "given"), ("route", None), ("route", "xy"), ("in_turns", True),
            ("in_turns", False), ("node_limit", 1), ("node_limit", 2), ("prohibit_turns", "xy"), ("prohibit_turns", None),
            ("before", []), ("before", [{"objective": "cut", "value": 3.0}]), ("before", [{"objective": "hops", "value": 1e9}]),
            ("before", [{"objective": "hops", "value": scores["hops"], "bound": scores["hops"], "status": "optimal"}]),
            ("machine", "mesh:1x4"), ("occupied", []), ("migration_budget", 0),
        ))  # fmt: skip
        if isinstance(report.get("inputs"), dict):
            report["inputs"][key] = value
    if depth < 2 and rng.random() < 0.6:
        say_better(report, rng, scores, depth + 1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def forged(files: Folder, other: Folder, rng: random.Random, scores: dict[str, float]) -> Folder:
    """The folder with some of it changed; all files of one run."""
    new = copy.deepcopy(files)
    report = new.get("report.json") or new.get("route-report.json")
    if report is not None and rng.random() < 0.75:
        say_better(report, rng, scores)
    part = None if report is None else report.get("routing")
    if isinstance(part, dict) and rng.random() < 0.3:
        for o in part.get("objectives") or ():
            o |= {"bound": o["value"], "gap": 0.0, "proved": True}
        draw = rng.random()
        if draw < 0.3:
            del new["flow-routes.json"]
        elif draw < 0.6:  # another report in front of this one, that says less
            rules = {"form": "flow", "detour": 0, "table_limit": None, "channels": 1, "turns": None}
            new["route-report.json"] = {"status": "feasible", "objectives": [], "inputs": rules}
    for name in [k for k in new if k.endswith("certificates.json") and rng.random() < 0.6]:
        stages = new[name].get("stages", [])
        forge_stages(stages, rng)
        for row in [*new[name].get("bounds", ()), *(row for stage in stages for row in stage["bounds"])]:
            draw = rng.random()
            if draw < 0.3 and report is not None and _is_number(report.get("bound")):
                row["value"] = report["bound"]
            elif draw < 0.4:
                row["certificate"] = mutated(row["certificate"], rng)
            elif draw < 0.5:
                row["scope"] = rng.choice(("full", "placement"))
            elif draw < 0.55:
                row["method"] = rng.choice(("cpsat", "mip", "star", "cover", "my-blog", "link-load"))
    rows = (new.get("certificates.json") or {}).get("bounds", [])
    if "report.json" in new and rng.random() < 0.9:  # a forger knows that verify compares the two
        new["report.json"]["bounds"] = [{k: row[k] for k in ("method", "scope", "value")} for row in rows]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        name = rng.choice(sorted(new))
        draw = rng.random()
        if draw < 0.7:
            new[name] = mutated(new[name], rng)
        elif draw < 0.85 and name in other:
            new[name] = copy.deepcopy(other[name])
        elif draw < 0.95 and len(new) > 1:
            del new[name]
    run = new_run()
    for content in new.values():
        if isinstance(content, dict):
            content["run"] = run
    return new


def forge_stages(stages: list[dict[str, Any]], rng: random.Random) -> None:
    """Stages dropped, with each other's bounds, with other ceilings."""
    for stage in list(stages):
        draw = rng.random()
        if draw < 0.1:
            stages.remove(stage)
        elif draw < 0.25:
            other = rng.choice(stages)
            part = rng.choice(("bounds", "ceilings", "problem", "objective"))
            stage[part], other[part] = other[part], stage[part]
        elif draw < 0.35:
            name = rng.choice(("hops", "max-link", "cut"))
            stage["ceilings"] = {} if rng.random() < 0.3 else {name: float(rng.randint(1, 60))}


def say_better_front(front: dict[str, Any], rng: random.Random) -> None:
    """What a forger would like to say of a front: higher bounds, points proved, another ceiling."""
    for point in front["points"]:
        values = list(point["values"].values())
        draw = rng.random()
        if draw < 0.4:
            point["bound"] = rng.choice((None, values[0], values[0] * rng.random()))
        if draw > 0.3:
            point["proven"] = rng.random() < 0.5
        if draw > 0.9:
            point["ceiling"] = rng.choice((None, values[1], values[1] * 1.5))
    for k in (0, 1):
        if rng.random() < 0.5:
            front["bounds"][k] = rng.choice((None, 0, front["ideal"][k], front["ideal"][k] * rng.random()))


def write(folder: Path, files: Folder) -> None:
    """The files, and no other JSON, in ``folder``."""
    for old in folder.glob("*.json"):
        old.unlink()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def false_claims(new: Folder, name: str) -> Iterator[str]:
    """What the report of an accepted folder says that is not so."""
    report, core = new["report.json"], tuple(cores_of(new["mapping.json"]))
    inputs = report.get("inputs") or {}
    what, per = report["objective_name"], 2 if str(inputs.get("machine")).endswith("two.toml") else 1
    allowed = table(name, per)
    values = dict(allowed)[core]
    free = inputs.get("route") == "joint" or inputs.get("in_turns")
    if inputs.get("node_limit") is not None:
        allowed = [row for row in allowed if max(row[0].count(p) for p in row[0]) <= inputs["node_limit"]]
    for held in inputs.get("before") or ():
        allowed = [row for row in allowed if row[1][held["objective"]] <= held["value"] * (1 + 1e-9) + 1e-9]
    least = min((row[1][what] for row in allowed), default=math.inf)
    if free and what == "max-link":
        least = min(best_with_routes([(c[a], c[b], w) for a, b, w in EDGES[name]], False) for c, _ in allowed)
    elif math.isfinite(values[what]) and not meets(values[what], report["objective"]):
        yield f"{what} is {values[what]}"
    bound = report.get("bound")
    if bound is not None and not (bound <= least or meets(least, bound)):
        yield f"bound {bound}, optimum {least}"
    for k, held in enumerate(inputs.get("before") or ()):
        low = least_within(
            table(name, per), held["objective"], inputs["before"][:k], inputs.get("node_limit")
        )
        said = held["value"] if held.get("status") == "optimal" else held.get("bound") or 0
        if not (said <= low or meets(low, said)):
            yield f"{held}, optimum {low}"
    if report["status"] == "optimal" and not meets(least, report["objective"]):
        yield f"optimal at {report['objective']}, optimum {least}"
    kept = report.get("placement_bound")
    if kept is not None:
        mates = [(i, j) for i in range(4) for j in range(4) if core[i] == core[j]]
        same = [r[1][what] for r in table(name, per) if all(r[0][i] == r[0][j] for i, j in mates)
                and len(set(r[0])) == len(set(core))]  # fmt: skip
        if not (kept <= min(same) or meets(min(same), kept)):
            yield f"placement bound {kept}, optimum {min(same)}"
    routing = report.get("routing")
    if isinstance(routing, dict):
        flows = [(core[a], core[b], float(w)) for a, b, w in EDGES[name] if core[a] != core[b]]
        yield from false_routes(routing.get("objectives") or (), flows)


def false_routes(
    objectives: Sequence[dict[str, Any]], flows: Sequence[tuple[int, int, float]]
) -> Iterator[str]:
    """The same of what is said of routes: loads by all shortest routes, two prohibited turns break the two rings of 2x2."""
    far = {(a, b): (a % 2 != b % 2) + (a // 2 != b // 2) for a in range(4) for b in range(4)}
    truth = {
        "max-link": best_with_routes(flows, True), "total-link": sum(w * far[a, b] for a, b, w in flows), "turns": 2.0,
    }  # fmt: skip
    for o in objectives:
        if o.get("bound") is not None and not o["bound"] <= truth[o["name"]] * (1 + 1e-9):
            yield f"routes: {o}, optimum {truth[o['name']]}"
        if o["name"] == "max-link" and o["proved"] and not meets(truth["max-link"], o["value"]):
            yield f"routes: {o} is not proved"


def least_within(
    rows: Sequence[tuple[tuple[int, ...], dict[str, float]]],
    what: str,
    ceilings: Sequence[dict[str, Any]],
    limit: int | None,
) -> float:
    """Least ``what`` of all mappings that keep values held before, with at most ``limit`` nodes on a core."""
    return min(
        (
            scores[what]
            for core, scores in rows
            if (limit is None or max(core.count(p) for p in core) <= limit)
            and all(scores[h["objective"]] <= h["value"] * (1 + 1e-9) + 1e-9 for h in ceilings)
        ),
        default=math.inf,
    )


def false_fronts(new: Folder, name: str, per: int) -> Iterator[str]:
    """What the front of an accepted folder says that is not so."""
    front = new["pareto.json"]
    rows, (one, two) = table(name, per), front["objectives"]
    limit = (front.get("inputs") or {}).get("node_limit")

    def least(what: str, **ceilings: float) -> float:
        return least_within(rows, what, [{"objective": k, "value": v} for k, v in ceilings.items()], limit)

    def proves(said: float | None, low: float) -> bool:
        return said is None or said <= low or meets(low, said)

    for k, what in enumerate((one, two)):
        if not proves(front["bounds"][k], least(what)):
            yield f"bound {front['bounds'][k]} of {what}, optimum {least(what)}"
        if front["ideal"][k] != min(p["values"][what] for p in front["points"]):
            yield f"ideal {front['ideal']}"
    for point in front["points"]:
        found, ceiling = dict(rows)[tuple(cores_of(new[point["mapping"]]))], point["ceiling"]
        if not all(meets(found[k], point["values"][k]) for k in (one, two)):
            yield f"{point}, the mapping has {found}"
        low = least(one) if ceiling is None else least(one, **{two: ceiling})
        if not proves(point["bound"], low):
            yield f"{point}, optimum {low}"
        best = least(one, **{two: found[two]}), least(two, **{one: found[one]})
        if point["proven"] and not (proves(found[one], best[0]) and proves(found[two], best[1])):
            yield f"{point} is no point of the front: {best}"


def cores_of(mapping: dict[str, Any]) -> list[int]:
    """The core of every node from a mapping.json."""
    at = {str(v): 2 * r + c for v, r, c in zip(mapping["node"], mapping["row"], mapping["col"], strict=True)}
    return [int(at[str(k)]) for k in range(4)]


@pytest.mark.parametrize("kind", ["alone", "two", "order", "joint", "xy"])
def test_no_forged_folder_of_a_mapping_is_believed(
    kind: str, made: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Report, certificates, mapping and routes are changed together."""
    files, other = files_of(made(kind, "g")), files_of(made("alone", "other"))
    core = tuple(cores_of(files["mapping.json"]))
    scores = dict(table("g", 2))[core]
    write(tmp_path, files)
    assert accepted(tmp_path) or kind == "joint", kind
    rng, passed = random.Random(kind), 0
    for _ in range(TRIES):
        new = forged(files, other, rng, scores)
        write(tmp_path, new)
        if accepted(tmp_path) and "report.json" in new and "mapping.json" in new:
            passed += 1
            wrong = list(false_claims(new, "g"))
            assert not wrong, (wrong, json.dumps(new))
    assert passed > TRIES // 100


@pytest.mark.parametrize(("kind", "name", "per"), [("front", "g", 1), ("words", "other", 2)])
def test_no_forged_front_is_believed(
    kind: str, name: str, per: int, made: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Front, certificates of all its stages and mappings are changed together."""
    files, other = files_of(made(kind, name)), files_of(made("alone", "g" if name == "other" else "other"))
    write(tmp_path, files)
    assert accepted(tmp_path) or kind == "words"
    scores, rng, passed = dict(table(name, per)), random.Random(kind), 0
    for _ in range(TRIES):
        better = copy.deepcopy(files)
        say_better_front(better["pareto.json"], rng)
        new = forged(better, other, rng, scores[tuple(cores_of(files["point-1.json"]))])
        write(tmp_path, new)
        if accepted(tmp_path) and "pareto.json" in new:
            passed += 1
            wrong = list(false_fronts(new, name, per))
            assert not wrong, (wrong, json.dumps(new))
    assert passed > TRIES // 100


def test_no_forged_routes_are_believed(made: Callable[[str, str], Path], tmp_path: Path) -> None:
    """The folder of ``route`` beside an honest mapping."""
    files, other = files_of(made("route", "g")), files_of(made("xy", "g"))
    mapping = made("alone", "g")
    core = cores_of(json.loads((mapping / "mapping.json").read_text()))
    flows = [(core[a], core[b], float(w)) for a, b, w in EDGES["g"]]
    rng, passed = random.Random("route"), 0
    for _ in range(TRIES):
        new = forged(files, other, rng, {"hops": 1.0})
        for o in (new.get("route-report.json") or {}).get("objectives") or ():
            if isinstance(o, dict) and rng.random() < 0.3 and _is_number(o.get("value")):
                bound = o["value"] * rng.choice((1, 1, 0.9, 0.5))
                o |= {"bound": bound, "gap": gap(o["value"], bound), "proved": bound == o["value"]}
                for row in (new.get("route-certificates.json") or {}).get("bounds") or ():
                    if isinstance(row, dict) and row.get("objective") == o.get("name") and rng.random() < 0.5:
                        row["value"] = bound
        write(tmp_path, new)
        if accepted(mapping, tmp_path / "flow-routes.json") and "route-report.json" in new:
            passed += 1
            wrong = list(false_routes(new["route-report.json"]["objectives"], flows))
            assert not wrong, (wrong, json.dumps(new))
    assert passed > TRIES // 100
