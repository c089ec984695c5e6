"""First solutions by min-conflicts: tight networks with known answers get one, tiny networks agree with trying all strategies."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from assign_networks_support import all_solutions, random_network
from assign_support import random_problem
from test_assign_subgraphs import Offers

from nmsolve.heuristics.assignment.conflict_kernels import begin, count_broken, repair
from nmsolve.heuristics.assignment.min_conflicts import MinConflicts, rules_of, start_of
from nmsolve.heuristics.assignment.network_search import NetworkSearch
from nmsolve.heuristics.rng import new_rng
from nmsolve.model.assignment.contract import contracted
from nmsolve.model.assignment.generate import generate_network, generate_network_file, solution_path
from nmsolve.model.assignment.network import FORBIDDEN, CostNetwork, network_complaint, network_cost, peak_of
from nmsolve.model.assignment.spans import spans_of
from nmsolve.model.assignment.tight import tight_positions
from nmsolve.model.errors import InputError
from nmsolve.model.formats.iopddl import load_iopddl, load_solution, save_iopddl
from nmsolve.solvers.assignment.api import solve_assignment, solve_network
from nmsolve.solvers.assignment.registry import plan_of


def test_a_tiny_network_gets_an_answer_wherever_one_exists():
    """Forty random networks, several of them without an answer; all solutions of each are tried."""
    without = 0
    for seed in range(40):
        network = random_network(seed, equal=0.2, capacity=12.0)
        offers = Offers(network)
        offers.end -= 28
        if contracted(network) is None or not all_solutions(network):
            without += 1
            offers.end -= 1.9
            MinConflicts().run(network, offers)
            assert not offers.costs and offers.notes
        else:
            MinConflicts().run(network, offers)
            assert offers.costs, seed
    assert 5 < without < 35


@pytest.mark.parametrize(
    ("nodes", "strategies", "pairs", "forbidden", "tightness", "thrift"),
    [
        (100, 4, 1.2, 0.2, 0.99, 0.3),
        (200, 8, 1.5, 0.4, 0.95, 0.5),
        (200, 4, 2.0, 0.6, 0.99, 0.5),
        (300, 10, 1.5, 0.5, 1.0, 1.0),
        (1000, 6, 3.0, 0.4, 0.99, 0.5),
        (3000, 10, 1.5, 0.3, 0.85, 0.0),
    ],
)
def test_tight_networks_with_a_known_answer_get_one(nodes, strategies, pairs, forbidden, tightness, thrift):
    network, known = generate_network(
        nodes, strategies, pairs=pairs, forbidden=forbidden, tightness=tightness, thrift=thrift, seed=7
    )
    assert network_complaint(network, known) is None
    assert peak_of(network, known, 0)[0] >= tightness * network.capacity[0] - 1
    assert abs((network.table >= FORBIDDEN).mean() - forbidden) < 0.05
    offers = Offers(network, seed=3)
    MinConflicts().run(network, offers)
    assert len(offers.costs) == 2 and offers.costs[1] <= offers.costs[0]  # repaired, then descended


def without_least_memory(nodes: int = 60) -> CostNetwork:
    """A chain of nodes with a small and a large strategy, no two small ones side by side; memory lets just half of them be large
    at any time, so that least memory breaks every pair."""
    ends = np.column_stack([np.arange(nodes - 1), np.arange(1, nodes)])
    table = np.tile([FORBIDDEN, 0, 0, FORBIDDEN], nodes - 1)
    table[3::4] = 0
    demand = np.array([[2 * i + a, 0, 5, (1, 10)[a], 0] for i in range(nodes) for a in range(2)])
    return CostNetwork(
        "alternating", np.arange(nodes + 1) * 2, np.zeros(2 * nodes, np.int64), ends, np.arange(nodes) * 4, table, demand,
        np.array([11.0 * (nodes // 2)]),
    )  # fmt: skip


def test_weights_lead_out_of_a_start_that_breaks_every_limit():
    """Exactly ``nodes / 2`` large strategies must be placed so that no two small ones meet: the start has none or too many."""
    network = without_least_memory()
    offers = Offers(network, seed=2)
    MinConflicts().run(network, offers)
    assert offers.known is not None and offers.known.sum() == network.count // 2


def test_a_solution_that_is_known_is_left_to_others():
    network, known = generate_network(50, 4, seed=1)
    offers = Offers(network, known=known)
    MinConflicts().run(network, offers)
    assert not offers.costs


def test_time_is_kept_where_there_is_no_answer():
    """Three nodes that must differ with two strategies each: nothing to prune, no answer."""
    ends, different = np.array([[0, 1], [1, 2], [0, 2]]), np.tile([FORBIDDEN, 0, 0, FORBIDDEN], 3)
    network = CostNetwork(
        "odd ring", np.arange(4) * 2, np.zeros(6, np.int64), ends, np.arange(4) * 4, different, np.zeros((0, 5), np.int64),
        np.array([np.inf]),
    )  # fmt: skip
    offers = Offers(network)
    offers.end -= 29
    MinConflicts().run(network, offers)
    assert not offers.costs and offers.notes


def test_spans_hold_what_rows_hold_also_of_several_memories():
    """Bytes at every row by intervals, against the rows that are made entry by entry, for random strategies."""
    rng = np.random.default_rng(5)
    for seed in range(10):
        network = random_network(seed, capacity=9.0)
        network = replace(network, capacity=np.array([9.0, 7.0]))
        network.demand[::2, 4] = 1
        tight = tight_positions(network)
        for spans in (spans_of(network, tight), spans_of(network)):
            rows = spans.rows(tight.memory, tight.position)
            assert (spans.limit[rows] == tight.slack).all()
            for _ in range(5):
                taken = network.ptr[:-1] + rng.integers(0, np.diff(network.ptr))
                used = np.zeros(len(spans.limit), np.int64)
                for choice in taken.tolist():
                    for k in range(spans.ptr[choice], spans.ptr[choice + 1]):
                        used[spans.first[k] : spans.last[k]] += spans.amount[k]
                assert (used[rows] == tight.used(taken)).all()


def test_every_kind_of_assignment_begins_with_it():
    """Sums, loads, makespans and cost networks; only ceilings are beyond it."""
    for objective in ("latency", "energy", "load", "makespan"):
        problem = replace(random_problem(3), objective=objective)
        steps, _ = plan_of(problem, None)
        assert "min-conflicts" in [step.engine.name for step in steps]
        result = solve_assignment(problem, time_limit=20, engines=["min-conflicts"], seed=1)
        assert result.solution is not None
    network, _ = generate_network(40, 4, seed=1)
    steps, _ = plan_of(network, None)
    assert steps[0].engine.name == "min-conflicts"
    held = replace(random_problem(3), ceilings=(("energy", 10**9),))
    assert MinConflicts().refuses(held) == "takes no ceilings on other objectives"


def needy(*capacity: float) -> CostNetwork:
    """Two nodes that need 10 bytes each of every memory, whatever they do."""
    rows = [(k, 0, 2, 10, m) for m in range(len(capacity)) for k in range(4)]
    return CostNetwork(
        "needy", np.array([0, 2, 4]), np.array([1, 2, 3, 4]), np.array([[0, 1]]), np.array([0, 4]), np.arange(4),
        np.array(rows), np.array(capacity),
    )  # fmt: skip


def test_a_memory_that_no_choice_keeps_has_no_nodes_to_change():
    """It was a segmentation fault: a node was drawn from a list of none."""
    network = contracted(needy(5.0, 30.0)).network
    rules = rules_of(network)
    now = start_of(rules)
    begin(rules, now)
    count_broken(rules, now)
    assert rules.limit.tolist() == [-15] and not len(rules.users)
    assert repair(rules, now, 100, new_rng(1)) == 1
    offers = Offers(network)
    MinConflicts().run(network, offers)
    assert not offers.costs and "more than a memory holds" in offers.notes[0]


def test_what_no_choice_keeps_is_proved_infeasible_by_the_command(tmp_path):
    """Too little memory for any choice, and a pair that is wholly forbidden: each is said once, and the exit code is 4."""
    never = replace(needy(100.0), table=np.full(4, FORBIDDEN))
    for name, network in (("small", needy(5.0)), ("never", never)):
        path = tmp_path / f"{name}.json"
        save_iopddl(network, path)
        done = subprocess.run(
            [sys.executable, "-m", "nmsolve", "assign", str(path), "-t", "60", "-o", str(tmp_path / name)],
            capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 4 and "infeasible" in done.stdout, done.stderr
        assert done.stderr.count("subgraphs: strategies") <= 1


@pytest.mark.parametrize("engine", [MinConflicts, NetworkSearch])
def test_nothing_large_begins_when_time_is_up(engine, monkeypatch):
    """Rules and rows of memory take seconds for 100,000 nodes, in one piece."""
    for name in ("min_conflicts.rules_of", "network_search.tight_positions"):
        monkeypatch.setattr(f"nmsolve.heuristics.assignment.{name}", lambda network: pytest.fail("it began"))
    offers = Offers(needy(30.0))
    offers.end = 0.0
    engine().run(offers.network, offers)
    assert not offers.costs and offers.notes == ["time was up before the search began"]


def test_notes_are_said_once(tmp_path):
    result = solve_network(needy(5.0), time_limit=20.0, engines=["subgraphs"])
    assert [e.text for e in result.events if e.kind == "note" and e.engine == "subgraphs"] == [
        "strategies that nodes need exclude each other, or need too much memory: there is no solution"
    ]


def test_the_search_goes_on_from_the_first_answer():
    network, known = generate_network(150, 6, forbidden=0.5, tightness=0.97, seed=4)
    first = solve_network(network, time_limit=20, engines=["min-conflicts"])
    both = solve_network(network, time_limit=8, engines=["min-conflicts", "subgraphs"])
    assert first.objective is not None and both.objective is not None
    assert both.objective < first.objective < math.inf
    assert both.objective < network_cost(network, known)


def test_generated_files_are_read_back_and_the_command_answers(tmp_path):
    path = tmp_path / "tight.json.gz"
    run = [sys.executable, "-m", "nmsolve"]
    made = subprocess.run(
        [*run, "generate", "assignment", "--nodes", "60", "--forbidden", "0.5", "--seed", "3", "--out", str(path)],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert "an answer that keeps all rules" in made.stdout
    assert list(json.loads(gzip.decompress(path.read_bytes()))) == ["problem"]  # it was packed twice
    network = load_iopddl(path)
    known = load_solution(solution_path(path), network)
    assert network_complaint(network, known) is None and solution_path(path).name == "tight.solution.json"
    again, _ = generate_network(60, forbidden=0.5, seed=3)
    assert again.content_hash == network.content_hash
    done = subprocess.run(
        [*run, "assign", str(path), "-t", "60", "--engines", "min-conflicts", "-o", str(tmp_path / "run")],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert "min-conflicts (repaired)" in done.stderr and "feasible: cost" in done.stdout
    scored = subprocess.run(
        [*run, "score", str(solution_path(path)), "--graph", str(path)], capture_output=True, text=True, cwd=tmp_path, check=True
    )  # fmt: skip
    assert f"{network_cost(network, known):,}" in scored.stdout
    gap = subprocess.run(
        [*run, "gap", str(solution_path(path)), "--graph", str(path), "-t", "3", "-o", str(tmp_path / "gap")],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert "start (given)" in gap.stderr


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.txt", {}, "a name that ends in .json or .json.gz"),
        ("a.json", {"tightness": "1.2"}, "tightness is 1.2"),
        ("a.json", {"forbiden": "0.2"}, "forbiden"),
        ("a.json", {"nodes": "100000", "strategies": "900"}, "entries"),
    ],
)
def test_wrong_parameters_are_refused_by_name(tmp_path, name, options, words):
    with pytest.raises(InputError) as caught:
        generate_network_file(tmp_path / name, options)
    assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_only_networks_of_the_contests_form_are_written(tmp_path):
    network, _ = generate_network(10, 3, seed=1)
    more = np.concatenate([network.demand, network.demand[:1]])
    with pytest.raises(InputError, match="several intervals"):
        save_iopddl(replace(network, demand=more), tmp_path / "a.json")
