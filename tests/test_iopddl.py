"""The reader of the contest's instances: example, packed files, and what it says of damaged ones."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from nmsolve.model.assignment.network import FORBIDDEN, network_complaint, network_cost
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.formats.iopddl import is_iopddl, load_iopddl, load_solution, save_solution

#: The five-node example of the contest's text: [0, 0, 2, 1, 0] costs 445, [0, 0, 2, 0, 0] costs 545.
EXAMPLE = {
    "problem": {
        "name": "example",
        "nodes": {
            "intervals": [[30, 70], [40, 70], [50, 120], [110, 140], [110, 150]],
            "costs": [[15], [55, 65], [25, 45, 35], [85, 75], [95]],
            "usages": [[10], [25, 25], [15, 20, 15], [10, 10], [15]],
        },
        "edges": {
            "nodes": [[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]],
            "costs": [[30, 40], [50, 10, 40], [90, 10, 20, 80], [60, 20, 30], [70, 60]],
        },
        "usage_limit": 50,
    }
}


def written(folder: Path, content: object, name: str = "example.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def test_example_has_the_published_costs_and_its_optimum_is_found_by_trying_all(tmp_path):
    network = load_iopddl(written(tmp_path, EXAMPLE))
    assert network.name == "example"
    assert network_cost(network, np.array([0, 0, 2, 1, 0])) == 445
    assert network_cost(network, np.array([0, 0, 2, 0, 0])) == 545
    every = [np.array(s) for s in itertools.product(*map(range, np.diff(network.ptr)))]
    costs = {tuple(s.tolist()): network_cost(network, s) for s in every if not network_complaint(network, s)}
    assert costs[0, 0, 2, 1, 0] == 445
    # by hand: 15 + 55 + 45 + 75 + 95 for nodes, 30 + 10 + 10 + 20 + 60 for pairs; it needs 55 of 50 bytes in [50, 70)
    cheapest = np.array([0, 0, 1, 1, 0])
    assert network_cost(network, cheapest) == 415
    assert network_complaint(network, cheapest) == "memory 0 holds 55 at position 50, the limit is 50"
    assert min(costs.values()) == 445


def test_packed_and_plain_files_are_the_same_network(tmp_path):
    plain = written(tmp_path, EXAMPLE)
    packed = tmp_path / "example.json.gz"
    half = len(plain.read_bytes()) // 2
    packed.write_bytes(
        b"".join(gzip.compress(p) for p in (plain.read_bytes()[:half], plain.read_bytes()[half:]))
    )
    assert load_iopddl(packed).content_hash == load_iopddl(plain).content_hash
    assert is_iopddl(packed) and is_iopddl(plain)
    assert not is_iopddl(written(tmp_path, {"nodes": [], "edges": []}, "graph.json"))


def test_a_huge_cost_means_never_and_an_empty_interval_needs_nothing(tmp_path):
    content = copy.deepcopy(EXAMPLE)
    content["problem"]["nodes"]["costs"][1][0] = 10**30
    content["problem"]["nodes"]["intervals"][2] = [50, 50]
    network = load_iopddl(written(tmp_path, content))
    assert network.cost[1] == FORBIDDEN
    assert network_cost(network, np.array([0, 0, 1, 1, 0])) == FORBIDDEN
    assert network_complaint(network, np.array([0, 1, 1, 1, 0])) is None


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("nodes", "costs", 2, 1), -1, "$.problem.nodes.costs[2][1]: a cost of -1"),
        (("nodes", "costs", 2), [], "$.problem.nodes.costs[2]: 0 entries"),
        (("nodes", "costs"), [], "$.problem.nodes.costs: no nodes"),
        (("nodes", "costs", 2, 1), 1.5, "$.problem.nodes.costs[2][1]: found float"),
        (("nodes", "usages", 1), [25], "$.problem.nodes.usages[1]: 1 entries; expected 2"),
        (("nodes", "usages", 1, 0), -3, "$.problem.nodes.usages[1]: a usage of -3"),
        (("nodes", "usages", 1, 0), 2**62, "$.problem.nodes.usages[1]: usages add up"),
        (("nodes", "usages", 1, 0), 10**400, "$.problem.nodes.usages[1]: usages add up"),
        (("nodes", "intervals", 0), [70, 30], "$.problem.nodes.intervals[0]: found [70, 30]"),
        (("nodes", "intervals"), [[30, 70]], "$.problem.nodes.intervals: 1 entries for 5 nodes"),
        (("edges", "nodes", 1), [0, 5], "$.problem.edges.nodes[1]: there is no node 5"),
        (("edges", "nodes", 1), [2, 2], "$.problem.edges.nodes[1]: node 2 is paired with itself"),
        (("edges", "nodes", 1), [0, 1, 2], "$.problem.edges.nodes[1]: Expected array of length 2"),
        (("edges", "costs", 2), [1, 2, 3], "$.problem.edges.costs[2]: 3 costs; expected 2 x 2"),
        (("edges", "costs"), [], "$.problem.edges.costs: 0 tables for 5 pairs"),
        (("usage_limit",), -1, "$.problem.usage_limit: found -1"),
        (("usage_limit",), 2**62, "expected 0..4611686018427387903, or none"),
        (("usage_limit",), 10**400, f"$.problem.usage_limit: found 1{'0' * 39}...; expected"),
        (("nodes", "intervals", 0), [0, 10**400], f"found [0, 1{'0' * 39}...]; expected"),
        (("nodes",), None, "$.problem.nodes: found null"),
    ],
)
def test_a_damaged_instance_is_named_with_its_place(tmp_path, keys, value, words):
    content = copy.deepcopy(EXAMPLE)
    part = content["problem"]
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path = written(tmp_path, content)
    with pytest.raises(InputError) as error:
        load_iopddl(path)
    assert words in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("over", [0, 1])
def test_costs_that_doubles_do_not_count_are_refused(tmp_path, over):
    """2^53 in all is the last that every answer can have; the search, reports and checks have doubles."""
    content = {
        "problem": {
            "nodes": {"intervals": [[1, 3], [2, 5]], "costs": [[2**52], [2**52 - 2]], "usages": [[0], [5]]},
            "edges": {"nodes": [[1, 0]], "costs": [[2 + over]]},
        }
    }
    path = written(tmp_path, content)
    if over:
        with pytest.raises(
            InputError, match=r"\$\.problem: every solution costs 9,007,199,254,740,993 or more"
        ):
            load_iopddl(path)
    else:
        assert network_cost(load_iopddl(path), np.array([0, 0])) == 2**53


def test_costs_that_only_bad_answers_have_are_named(tmp_path):
    content = copy.deepcopy(EXAMPLE)
    content["problem"]["nodes"]["costs"][1][0] = 10**17
    with pytest.warns(InputWarning, match="sums above 9,007,199,254,740,992 are rounded"):
        load_iopddl(written(tmp_path, content))
    content["problem"]["nodes"]["costs"][1][0] = 10**18
    content["problem"]["usage_limit"] = 2**53 + 1
    with pytest.raises(InputError, match="usage_limit: found 9007199254740993"):
        load_iopddl(written(tmp_path, content))


def test_bombs_and_torn_files_are_refused(tmp_path):
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * (80 * 2**20), 9))
    with pytest.raises(InputError, match="unpack to more than"):
        load_iopddl(bomb)
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(gzip.compress(json.dumps(EXAMPLE).encode())[:-20])
    with pytest.raises(InputError, match="ends early"):
        load_iopddl(torn)
    torn.write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(InputError, match="damaged"):
        load_iopddl(torn)
    assert not is_iopddl(torn)
    with pytest.raises(InputError, match="no such file"):
        is_iopddl(tmp_path / "nothing.json")


def test_solutions_are_written_and_read(tmp_path):
    network, path = load_iopddl(written(tmp_path, EXAMPLE)), tmp_path / "solution.json"
    save_solution(np.array([0, 0, 2, 1, 0]), path)
    assert path.read_text() == "[0,0,2,1,0]\n"
    assert load_solution(path, network).tolist() == [0, 0, 2, 1, 0]
    for text, words in (
        ("[0,0]", "2 strategies"),
        ("[0,0,3,1,0]", r"\$\[2\]: strategy 3"),
        ('["a"]', "found str"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            load_solution(path, network)
