"""What simple methods make of a mapping's problem, beside what was found."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from conftest import Called

import nmsolve

FIRST = Path(nmsolve.__file__).parent.parent / "examples" / "first.json"


def ring_cost(core: tuple[int, ...]) -> int:
    """Hops of a ring of messages on 2x3 cores, link by link."""
    at = [divmod(place, 3) for place in core]
    return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in zip(at, at[1:] + at[:1], strict=True))


def test_no_simple_method_is_below_the_optimum_and_file_order_is_what_it_says() -> None:
    """Six nodes in a ring, one per core: the optimum by all 720 mappings, the order of the file by hand."""
    answer = nmsolve.map(nx.cycle_graph(6), "mesh:2x3", balance=0.0, time_limit=5)
    best = min(map(ring_cost, itertools.permutations(range(6))))
    assert answer.objective == best
    found = {rule.name: rule for rule in answer.yardsticks}
    assert list(found) == ["random", "in-order", "first-fit", "m2"]
    assert found["in-order"].objective == ring_cost(tuple(range(6)))
    for rule in found.values():
        assert rule.objective is not None and rule.objective >= best
        assert rule.loss == pytest.approx(rule.objective / best - 1)
        assert rule.gap == pytest.approx((rule.objective - answer.bound) / rule.objective)
    values = [ring_cost(tuple(np.random.default_rng(k).permutation(6))) for k in range(50)]
    assert min(values) <= found["random"].objective <= max(values)


def test_a_run_has_the_table_only_where_there_is_time_and_no_named_engine(
    tmp_path: Path, call: Called
) -> None:
    """In report.json, on the page and in the terminal from 3 s on; verify takes the file as it is."""

    def rules(*options: object) -> tuple[list[str], str]:
        code, out, _ = call("map", FIRST, "-o", tmp_path / "o", *options)
        assert code == 0 and call("verify", tmp_path / "o")[0] == 0
        report = json.loads((tmp_path / "o" / "report.json").read_text())
        return [rule["name"] for rule in report["rules"]], out

    names, out = rules("-t", 20)
    assert names == ["random", "in-order", "first-fit", "m2"] and "The rule first-fit gives" in out
    assert "What simple methods lose" in (tmp_path / "o" / "report.html").read_text()
    for options in (("-t", 2), ("-t", 5, "--engines", "multilevel"), ("-t", 5, "--limit", "max-link=1e6")):
        names, out = rules(*options)
        assert names == [] and "The rule" not in out
