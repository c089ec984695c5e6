"""Patterns, matrices, steps of a mapping and traces on disk."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.noc import CONFIG_B, CONFIG_SPIKE, PATTERNS, pattern, read_trace, steps_of_flows, write_trace
from nmsolve.hw.noc import traffic as traffic_module
from nmsolve.hw.noc.state import alias_tables
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.routing.flows import Flows

SQUARE = Machine("m", (1, 1), (4, 4))


@pytest.mark.parametrize("name", PATTERNS)
def test_every_core_sends_the_load(name: str) -> None:
    traffic = pattern(SQUARE, name, 0.2, CONFIG_B, hotspots=[3, 5])
    assert np.bincount(traffic.source, traffic.rate, 16) * 4 == pytest.approx(np.full(16, 0.2))


def test_where_patterns_send_to() -> None:
    """Core 6 is in row 1, column 2; its number in bits is 0110."""
    goals = {
        n: pattern(SQUARE, n, 0.1, CONFIG_B).targets[6] for n in PATTERNS if n not in ("uniform", "hotspot")
    }
    assert goals == {
        "bit-complement": 9, "bit-reverse": 6, "shuffle": 12, "transpose": 9, "tornado": 2 * 4 + 3, "neighbour": 2 * 4 + 3,
    }  # fmt: skip
    hot = pattern(SQUARE, "hotspot", 0.4, CONFIG_SPIKE, hotspots=[3], share=0.5)
    at_core_3 = hot.rate[hot.targets == 3]
    assert at_core_3 == pytest.approx(np.full(16, 0.4 * (0.5 + 0.5 / 16)))


def test_faulty_cores_neither_send_nor_receive() -> None:
    machine = Machine("m", (1, 1), (4, 4), faulty_cores=(6,))
    for name in PATTERNS:
        traffic = pattern(machine, name, 0.1, CONFIG_B, hotspots=[1])
        assert 6 not in traffic.source and 6 not in traffic.targets


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=4))
def test_alias_tables_give_every_flow_its_share(rates: list[list[int]]) -> None:
    start = np.concatenate([[0], np.cumsum([len(r) for r in rates])])
    rate = np.array([x for r in rates for x in r], float)
    share, alias = alias_tables(rate, start)
    for a, b in pairwise(start.tolist()):
        if rate[a:b].sum() > 0 and b - a > 1:
            drawn = share[a:b] / (b - a)
            np.add.at(drawn, alias[a:b] - a, (1 - share[a:b]) / (b - a))
            assert drawn == pytest.approx(rate[a:b] / rate[a:b].sum(), abs=1e-12)


def test_steps_hold_every_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole rates are sent as they are, others at random with that mean; in bundles where there are too many."""
    flows = Flows.of_pairs([0, 1, 2, 3], [1, 2, 3, 0], [7.0, 1.0, 2.5, 30.0])
    for most in (1 << 22, 8):
        monkeypatch.setattr(traffic_module, "MOST_ENTRIES", most)
        steps = steps_of_flows(flows, 200, 50, seed=3)
        assert (np.unique(steps.cycle) == np.arange(200) * 50).all() and steps.steps == 200
        sent = np.bincount(steps.flow, steps.count)
        assert sent[[0, 1, 3]].tolist() == [1400, 200, 6000]
        assert abs(sent[2] - 500) < 5 * np.sqrt(500)
        assert (steps.count.max() == 1) == (most > 8)
    assert len(np.unique(steps_of_flows(flows, 1, 0, seed=1).cycle)) == 1


def test_a_trace_survives_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("step,source,targets,count\n0,1,2 3,4\n0,2,5,1\n7,1,3 2,2\n")
    trace = read_trace(path, SQUARE, 100)
    assert trace.cycle.tolist() == [0, 0, 700] and trace.flow.tolist() == [0, 1, 0]
    assert trace.count.tolist() == [4, 1, 2] and trace.targets.tolist() == [2, 3, 5] and trace.steps == 8
    write_trace(tmp_path / "again.csv", trace)
    again = read_trace(tmp_path / "again.csv", SQUARE, 100)
    assert [
        a.tolist() for a in (again.source, again.indptr, again.targets, again.cycle, again.flow, again.count)
    ] == [
        a.tolist() for a in (trace.source, trace.indptr, trace.targets, trace.cycle, trace.flow, trace.count)
    ]
    one = trace.unicast()
    assert one.indptr.tolist() == [0, 1, 2, 3] and one.flow.tolist() == [0, 1, 2, 0, 1]
    assert one.count.tolist() == [4, 4, 1, 2, 2] and one.cycle.tolist() == [0, 0, 0, 700, 700]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3,0,1,1\n2,0,1,1\n", r"t.csv:2: step 2 comes after step 3"),
        ("0,0,99,1\n", r"t.csv:1: core 99 does not exist"),
        ("0,0,0,1\n", r"t.csv:1: core 0 sends to itself"),
        ("0,0,1\n", r"t.csv:1"),
        ("0,0,1,x\n", r"t.csv:1"),
        ("0,0,1,0\n", r"t.csv:1.*a count >= 1"),
        ("0,0,,1\n", r"t.csv:1"),
        ("", r"a trace without packets"),
    ],
)
def test_bad_traces_name_the_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_trace(path, SQUARE, 10)
