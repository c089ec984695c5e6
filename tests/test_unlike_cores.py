"""Cores that hold unlike amounts: every engine on random small problems, against brute force written here."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from brute_support import costs_of
from command_support import run_here
from exact_support import Recorder, random_graph
from hw_reference import times

import nmsolve
from nmsolve.check.mapping.verify import verify
from nmsolve.hw.describe import describe
from nmsolve.hw.occupied import beside
from nmsolve.model.errors import InputError, NmsolveError
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.fit import explain_misfit
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.mapping.reduce import merge_together
from nmsolve.report.core_figures import resource_table
from nmsolve.report.pictures import resource_use
from nmsolve.report.use_chart import use_chart
from nmsolve.solvers.mapping.registry import REGISTRY, make_engine

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered


class Brief(Recorder):
    """A recorder that asks to stop after some seconds."""

    def __init__(self, problem: MappingProblem, seconds: float) -> None:
        super().__init__(problem)
        self.end = time.monotonic() + seconds

    def time_left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def should_stop(self) -> bool:
        return time.monotonic() > self.end


SEEDS = 30
#: Engines whose run to its end is a proof.
EXACT = ("cpsat", "mip", "branch-bound")
#: Published methods that know one size of cores; their answers are repaired, which may fail where there is little room.
MAY_FAIL = ("m2", "communities", "in-order")


def unlike(seed: int) -> MappingProblem:
    """3 to 5 nodes with sizes on 4 to 6 cores, of which some hold little and some much; every third: one node per core."""
    rng = np.random.default_rng(seed)
    single = seed % 3 == 0
    n = int(rng.integers(3, 5)) if single else int(rng.integers(4, 6))
    chips, cores = (((1, 1), (2, 2)), ((1, 2), (2, 1)), ((1, 1), (2, 3)), ((1, 2), (1, 3)))[seed % 4]
    size = chips[1] * cores[0] * cores[1]
    objective = ("hops", "cut", "multicast-hops", "connectivity", "energy", "max-link", "reward")[seed % 7]
    timed = seed % 13 == 4
    objective = "step-time" if timed else objective
    sizes = rng.integers(3, 6, (n, 1)) if single else rng.integers(1, 4, (n, 1))
    own = rng.permutation([5, 5, 5, 4, 3, 0][:size]) if single else rng.integers(1, 9, size)
    held = (rng.random(size) < 0.2).astype(np.int64)
    graph = random_graph(
        rng,
        n,
        objective in ("multicast-hops", "connectivity", "step-time"),
        resources=("neurons",),
        sizes=sizes,
    )
    rules = (SideConstraint("a", "apart", (0, 1)),) if seed % 5 == 0 else ()
    if seed % 11 == 10 and not timed:
        rules += (SideConstraint("t", "together", (1, 2)),)
    machine = Machine(
        "unlike", chips, cores, capacity={"neurons": 5},
        core_capacity={"neurons": own.astype(np.int64)}, held={"neurons": held} if seed % 5 == 1 else {},
        figures=times(seed % 2 == 0) if timed else {},
    )  # fmt: skip
    return MappingProblem(graph, machine, objective, rules)


def legal(problem: MappingProblem) -> list[tuple[int, ...]]:
    """Every mapping within the room of every core and the rules, in plain Python."""
    machine, sizes = problem.machine, problem.graph.sizes[:, 0].tolist()
    room = machine.core_capacity["neurons"].tolist()
    if machine.held:
        room = [max(0, a - b) for a, b in zip(room, machine.held["neurons"].tolist(), strict=True)]
    out = []
    for core in itertools.product(range(machine.size), repeat=problem.n):
        load = [0] * machine.size
        for u, p in enumerate(core):
            load[p] += sizes[u]
        if any(a > b for a, b in zip(load, room, strict=True)):
            continue
        if any((core[c.nodes[0]] == core[c.nodes[1]]) != (c.kind == "together") for c in problem.constraints):
            continue
        out.append(core)
    return out


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_engine_keeps_to_every_core(seed: int) -> None:
    problem = unlike(seed)
    mappings = legal(problem)
    best = float(costs_of(problem, np.array(mappings)).min()) if mappings else np.inf
    if explain_misfit(problem):
        assert not mappings
        return
    reduced = merge_together(problem).reduced
    for name in REGISTRY:
        engine = make_engine(name)
        if engine.refuses(reduced) is not None:
            continue
        if not mappings and name not in EXACT:
            continue
        context = Brief(reduced, 20.0 if name in EXACT else 0.04)
        try:
            engine.run(reduced, context)
        except NmsolveError:
            assert name in MAY_FAIL and len(mappings) < 500, name
        assert context.low <= best * (1 + 1e-9) + 1e-9, name
        assert context.value >= best - 1e-9, name
        if name in EXACT:
            assert context.low == np.inf if not mappings else (context.value == pytest.approx(best)), name
            if mappings:
                assert context.low == pytest.approx(best, rel=3e-6), name


@pytest.mark.parametrize("seed", range(30, 40))
def test_mappings_within_a_budget_keep_to_every_core(seed: int) -> None:
    """A migration budget from a mapping that the smaller cores rule out in part."""
    problem = replace(unlike(seed), objective="hops", constraints=())
    reference = np.random.default_rng(seed).integers(0, problem.cores, problem.n)
    problem = replace(problem, migration=Migration.of(reference, problem.n - 1))
    mappings = [core for core in legal(problem) if (np.array(core) != reference).sum() < problem.n]
    best = float(costs_of(problem, np.array(mappings)).min()) if mappings else np.inf
    for name in ("remap", "cpsat", "mip"):
        engine, context = make_engine(name), Brief(problem, 20.0 if name in EXACT else 0.05)
        if engine.refuses(problem) is not None or not (mappings or name in EXACT):
            continue
        engine.run(problem, context)
        assert context.value >= best - 1e-9, name
        if name in EXACT and not explain_misfit(problem):
            assert context.value == pytest.approx(best), name


def test_random_problems_reach_every_engine() -> None:
    """No engine is left out because it refuses all of them (partitioners do by name; two have own tests)."""
    problems = [unlike(seed) for seed in range(SEEDS)]
    fit = [merge_together(p).reduced for p in problems if not explain_misfit(p)]
    assert len(fit) >= 20 and sum(p.one_per_core for p in fit) >= 5
    for name in REGISTRY.keys() - {
        "metis",
        "kaminpar",
        "mtkahypar",
        "scotch",
        "remap",
        "step-ceiling",
        "step-power",
    }:
        assert any(make_engine(name).refuses(p) is None for p in fit), name


# ---- machine files, --occupied -------------------------------------------------------------------------------


def toml(folder: Path, *tables: str) -> Path:
    path = folder / "m.toml"
    head = "cores = [2, 3]\nchips = [1, 2]\n[capacity]\nneurons = 10\nsynapses = 100\n"
    path.write_text(head + "".join(f"[[core]]\n{table}\n" for table in tables))
    return path


def test_core_tables_name_cores_rectangles_and_chips(tmp_path: Path) -> None:
    path = toml(
        tmp_path, "cores = 0\ncapacity = {neurons = 1}", "chips = [1]\ncapacity = {neurons = 20}",
        "rectangle = [1, 1, 2, 4]\ncapacity = {neurons = 0, synapses = 7}", "cores = [9]\ncapacity = {neurons = 5}",
    )  # fmt: skip
    machine = nmsolve.machine(str(path))
    assert machine.limits("neurons").reshape(2, 6).tolist() == [
        [1, 10, 10, 20, 20, 20],
        [10, 0, 0, 5, 20, 20],
    ]
    assert machine.limits("synapses").reshape(2, 6).tolist() == [[100] * 6, [100, 7, 7, 7, 100, 100]]
    alike = nmsolve.machine(str(toml(tmp_path)))
    assert alike.hash != machine.hash and not alike.core_capacity
    shown = [row["value"] for row in describe(machine) if row["name"] == "neurons of unlike cores"]
    assert shown == ["0 on 2 cores, 1 on 1 core, 5 on 1 core, 10 on 3 cores, 20 on 5 cores"]
    assert not machine.with_chips(1, 1).core_capacity


def test_a_pattern_of_cores_repeats_over_a_board_of_any_size(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        "every = [2, 4]\nat = [[0, 0], [1, 3]]\ncapacity = {neurons = 3}",
        "cores = 1\ncapacity = {neurons = 1}",
    )
    machine = nmsolve.machine(str(path))
    assert machine.limits("neurons").reshape(2, 6).tolist() == [
        [3, 1, 10, 10, 3, 10],
        [10, 10, 10, 3, 10, 10],
    ]
    wider = nmsolve.machine(str(path), chips=(1, 3))
    assert wider.limits("neurons").reshape(2, 9)[:, 7:].tolist() == [[10, 3], [3, 10]]
    assert wider.limits("neurons")[1] == 10
    own = tmp_path / "own.toml"
    own.write_text('preset = "spinnaker1"\n[capacity]\nneurons = 100\n')
    assert set(nmsolve.machine(str(own)).limits("neurons").tolist()) == {100}
    assert set(nmsolve.machine(str(own)).limits("processors").tolist()) == {16, 17}
    own.write_text('preset = "spinnaker1"\ncores = [4, 4]\n')
    assert not nmsolve.machine(str(own)).core_capacity


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("cores = 12\ncapacity = {neurons = 1}", "$.core[0].cores: cores 12"),
        ("chips = 2\ncapacity = {neurons = 1}", "$.core[0].chips: chips 2"),
        ("rectangle = [0, 0, 3, 1]\ncapacity = {neurons = 1}", "$.core[0].rectangle"),
        ("cores = 1\nchips = 1\ncapacity = {neurons = 1}", "cores by cores and chips"),
        ("capacity = {neurons = 1}", "cores by nothing"),
        ("cores = []\ncapacity = {neurons = 1}", "$.core[0].cores"),
        ("cores = 1\ncapacity = {bytes = 1}", "$.core[0].capacity.bytes: [capacity] does not limit bytes"),
        ("cores = 1\ncapacity = {neurons = -1}", "$.core[0].capacity.neurons"),
        ("cores = 1\ncapacity = {neurons = 1e20}", "$.core[0].capacity.neurons"),
        ("cores = 1\nneurons = 3", "$.core[0]"),
        ("at = [[0, 1]]\ncapacity = {neurons = 1}", "$.core[0]: at without every"),
        ("every = [2, 2]\ncapacity = {neurons = 1}", "`at` alone beside it"),
        ("every = [2, 2]\nat = [[0, 1]]\ncores = 1\ncapacity = {neurons = 1}", "`at` alone beside it"),
        ("every = [0, 2]\nat = [[0, 1]]\ncapacity = {neurons = 1}", "1 to 1024 rows and columns"),
        ("every = [2, 2]\nat = [[0, 2]]\ncapacity = {neurons = 1}", "$.core[0].at: core [0, 2]"),
        ("every = [2, 2]\nat = [[0, 1]]\ncapacity = {bytes = 1}", "$.core[0].capacity.bytes"),
    ],
)
def test_wrong_core_tables_name_their_path(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        nmsolve.machine(str(toml(tmp_path, table)))
    assert message in str(error.value)


def put(folder: Path, name: str, nodes: int, neurons: int) -> Path:
    path = folder / f"{name}.json"
    edges = [{"source": i, "target": (i + 1) % nodes} for i in range(nodes)]
    path.write_text(
        json.dumps({"nodes": [{"id": i, "neurons": neurons} for i in range(nodes)], "edges": edges})
    )
    return path


def run(*arguments: object) -> CompletedProcess[str]:
    return run_here(*arguments, code=None)


def test_networks_share_a_machine(tmp_path: Path) -> None:
    """Three rings of three nodes on four cores of 10: each fits beside the others only where these leave room."""
    machine = tmp_path / "m.toml"
    machine.write_text(
        "cores = [2, 2]\n[capacity]\nneurons = 10\n[[core]]\ncores = 3\ncapacity = {neurons = 16}\n"
    )
    first, second, third = (put(tmp_path, name, 3, size) for name, size in (("a", 6), ("b", 4), ("c", 8)))
    a, b = tmp_path / "out-a", tmp_path / "out-b"
    assert run("map", first, "-m", machine, "-t", 10, "-o", a).returncode == 0
    done = run("map", second, "-m", machine, "-t", 10, "-o", b, "--occupied", a)
    assert done.returncode == 0, done.stderr
    load = np.zeros(4, int)
    for folder, size in ((a, 6), (b, 4)):
        content = json.loads((folder / "mapping.json").read_text())
        np.add.at(load, np.array(content["row"]) * 2 + np.array(content["col"]), size)
    assert (load <= [10, 10, 10, 16]).all() and load.sum() == 30
    checked = run("verify", b)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "all 3 nodes within every limit" in checked.stdout
    full = run(
        "map", third, "-m", machine, "-t", 5, "-o", tmp_path / "out-c", "--occupied", a, "--occupied", b
    )
    assert full.returncode == 4 or full.returncode == 2
    assert "neurons" in full.stderr and not (tmp_path / "out-c").exists()
    assert run("explain", third, "-m", machine, "--occupied", a, "--occupied", b).returncode == 4
    # What is no longer what it was is noticed.
    report = json.loads((a / "mapping.json").read_text())
    report["row"], report["col"] = report["row"][::-1], [1 - c for c in report["col"]]
    report.pop("chip")
    (a / "mapping.json").write_text(json.dumps(report))
    moved = run("verify", b)
    assert moved.returncode == 2 and "machine" in moved.stderr
    put(tmp_path, "a", 3, 5)
    changed = run("map", second, "-m", machine, "-t", 5, "-o", b, "--occupied", a)
    assert changed.returncode == 2 and "graph" in changed.stderr
    first.unlink()
    assert run("map", second, "-m", machine, "-t", 5, "-o", b, "--occupied", a).returncode == 2


def test_page_shows_the_limit_of_every_core() -> None:
    problem = unlike(1)
    core = np.array(next(iter(legal(problem))))
    names, used, limits = resource_table(problem, core)
    assert names == ["neurons"] and isinstance(limits[0], np.ndarray)
    assert (
        limits[0].tolist() == problem.machine.limits("neurons").tolist() and (used[:, 0] <= limits[0]).all()
    )
    for draw in (resource_use, use_chart):
        drawn = draw(names, used, limits, problem.machine.usable)
        assert "limit of each core" in drawn and f"{used.max():,}" in drawn


def test_occupied_runs_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    machine = tmp_path / "m.toml"
    machine.write_text("cores = [2, 2]\n[capacity]\nneurons = 10\n")
    graph, a = put(tmp_path, "a", 3, 2), tmp_path / "out-a"
    assert run("map", graph, "-m", machine, "-t", 5, "-o", a).returncode == 0
    start = ("map", graph, "-t", 5, "-o")
    for arguments, words in (
        ((tmp_path / "b", "-m", machine, "--occupied", a, "--occupied", a), "given twice"),
        ((a, "-m", machine, "--occupied", a), "another folder"),
        ((tmp_path / "b", "-m", "mesh:2x2", "--occupied", a), "machine"),
        ((tmp_path / "b", "-m", machine, "--occupied", tmp_path / "none"), "none"),
    ):
        done = run(*start, *arguments)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "b").exists()


def test_axon_tables_beside_another_network() -> None:
    """Entries of an earlier network count where they could bind the next one, else they do not matter."""
    graph = nmsolve.LogicGraph.from_edges(
        3, [0, 0, 1], [1, 2, 2], resources=("neurons",), sizes=np.ones((3, 1), int)
    )
    for limit, refused in ((50, False), (3, True)):
        machine = Machine("m", (1, 1), (1, 3), capacity={"neurons": 2, "axons_in": limit})
        full = beside(machine, [(graph, np.array([0, 1, 2]))])
        assert full.limits("neurons").tolist() == [1, 1, 1]
        assert full.limits("axons_in").tolist() == [limit, limit - 1, limit - 2]
        problem = MappingProblem(graph, full)
        if refused:
            with pytest.raises(InputError, match="cores differ in axons_in"):
                _ = problem.axons
        else:
            assert problem.axons is None
    with pytest.raises(InputError, match="uses none of the resources"):
        beside(nmsolve.machine("mesh:1x3"), [(graph, np.array([0, 1, 2]))])


def tables(name: str, stated: int, own: list[int]) -> MappingProblem:
    """Four nodes on three cores for two each; one sends to all, the others to their neighbour."""
    graph = nmsolve.LogicGraph.from_edges(
        4, [0, 0, 0, 1, 2, 3], [1, 2, 3, 2, 3, 0], resources=("neurons",), sizes=np.ones((4, 1), int)
    )
    machine = Machine(
        "m", (1, 1), (1, 3), capacity={"neurons": 2, name: stated}, core_capacity={name: np.array(own)}
    )
    return MappingProblem(graph, machine)


@pytest.mark.parametrize("name", ["axons_in", "axons_out", "table_entries"])
@pytest.mark.parametrize("own", [[9, 9, 9], [8, 9, 10]])
def test_tables_are_as_large_as_core_tables_say(name: str, own: list[int]) -> None:
    """``[capacity]`` says 1, but every core has this many entries that no mapping could need more."""
    problem = tables(name, 1, own)
    assert problem.axons is None and problem.table_limit is None and not explain_misfit(problem)
    walked = verify(problem.graph, problem.machine, (), np.array([0, 0, 1, 2]))
    assert all(c.ok for c in walked.checks)


@pytest.mark.parametrize("name", ["axons_in", "axons_out", "table_entries"])
def test_tables_that_are_smaller_than_stated_bind(name: str) -> None:
    """Where all cores have 2 entries, 2 is the limit; unlike ones that could be full are refused."""
    problem = tables(name, 9, [2, 2, 2])
    kept = problem.axons
    found = {"table_entries": problem.table_limit}
    if kept is not None:
        found |= {"axons_in": kept.most_in, "axons_out": kept.most_out}
    assert found[name] == 2
    with pytest.raises(InputError, match=f"differ in {name}"):
        unlike = tables(name, 9, [2, 3, 2])
        _ = unlike.axons, unlike.table_limit
