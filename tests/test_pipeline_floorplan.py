"""Regions of stages on the board: in one piece, side by side, on usable cores, by a check that shares no code with the search."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cli_pipeline import network

from nmsolve.heuristics.pipeline.floorplan import Floorplan, bands, floorplan
from nmsolve.hw.machines import load_machine
from nmsolve.hw.pipeline.regions import apart, region_pieces
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.types import FloatArray, IntArray


def chain_traffic(count: int) -> FloatArray:
    """Every stage sends the next one a byte."""
    return np.eye(count, k=1)


def checked(machine: Machine, sizes: IntArray, traffic: FloatArray, found: Floorplan) -> tuple[int, int]:
    """Return pieces too many and pairs apart, recomputed; sizes and usable cores hold."""
    count = len(sizes)
    on = np.flatnonzero((found.stage >= 0) & (found.stage < count))
    assert machine.usable[on].all() and (found.stage[machine.usable] >= 0).all()
    assert np.bincount(found.stage[on], minlength=count).tolist() == sizes.tolist()
    pieces = sum(region_pieces(machine, on, found.stage[on]).values()) - int((sizes > 0).sum())
    return pieces, len(apart(machine, on, found.stage[on], traffic))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_stages_of_a_chain_are_whole_and_touch(data: st.DataObject) -> None:
    """On every mesh and torus without faults, for stages of any sizes, hosts among them."""
    rows, cols = data.draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    machine = Machine("m", (1, 1), (rows, cols), torus=data.draw(st.booleans()))
    cuts = data.draw(st.lists(st.integers(0, rows * cols), min_size=1, max_size=8).map(sorted))
    sizes = np.diff([0, *cuts])
    traffic = chain_traffic(len(sizes))
    found = floorplan(machine, sizes, traffic, data.draw(st.integers(0, 9)))
    assert checked(machine, sizes, traffic, found) == (found.pieces, found.apart)
    assert found.pieces == 0 and found.apart == 0
    strip = Floorplan(next(bands(machine, sizes)), 0, 0)
    assert checked(machine, sizes, traffic, strip) == (0, 0)  # the whole board is one path


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_what_is_said_of_boards_with_faults_is_true(data: st.DataObject) -> None:
    """Faulty cores, links dead one way, several chips: pieces and pairs apart are counted right."""
    machine = Machine("m", (1, 2), (4, 3))
    faulty = data.draw(st.sets(st.integers(0, machine.size - 1), max_size=5))
    links = data.draw(st.sets(st.integers(0, machine.size - 1), max_size=4))
    dead = tuple((p, machine.neighbours(p)[0]) for p in sorted(links))
    machine = replace(machine, faulty_cores=tuple(sorted(faulty)), faulty_links=dead)
    left = int(machine.usable.sum())
    sizes = np.diff([0, *data.draw(st.lists(st.integers(0, left), min_size=1, max_size=6).map(sorted))])
    traffic = np.triu(np.ones((len(sizes), len(sizes))), 1) * data.draw(st.integers(0, 1))
    found = floorplan(machine, sizes, traffic, 1)
    assert checked(machine, sizes, traffic, found) == (found.pieces, found.apart)


@pytest.mark.parametrize(("spec", "stages"), [("mesh:8x8", 9), ("mesh:16x16", 23), ("wormhole", 11)])
def test_exchanges_make_regions_closer_and_rounder_than_strips(spec: str, stages: int) -> None:
    """By ways between middles and widths, below every cut of strips that is whole; equal seeds give equal regions."""
    machine = load_machine(spec)
    sizes = np.random.default_rng(1).multinomial(machine.size - stages - 3, np.full(stages, 1 / stages)) + 1
    traffic = chain_traffic(stages)
    at = np.stack(np.divmod(np.arange(machine.size), machine.cols), axis=1).astype(float)

    def cost(stage: IntArray) -> float:
        own = [at[stage == s] for s in range(stages)]
        ways = sum(np.abs(a.mean(axis=0) - b.mean(axis=0)).sum() for a, b in pairwise(own))
        widths = sum(
            sent * np.sqrt(((a - a.mean(axis=0)) ** 2).sum(axis=1).mean())
            for a, sent in zip(own, [1, *[2] * (stages - 2), 1], strict=True)
        )
        return float(ways + 2 * widths)

    whole = [
        cost(start)
        for start in bands(machine, sizes)
        if checked(machine, sizes, traffic, Floorplan(start, 0, 0)) == (0, 0)
    ]
    found = floorplan(machine, sizes, traffic, 0)
    assert whole and (found.pieces, found.apart) == (0, 0) and cost(found.stage) < 0.97 * min(whole)
    assert np.array_equal(found.stage, floorplan(machine, sizes, traffic, 0).stage)


def test_pieces_and_stages_apart_are_counted() -> None:
    """Cores 0 to 5 in a row belong to stages 0, 2, 0, 1, 1, 2; then a link dies one way."""
    row = Machine("row", (1, 1), (1, 6))
    core, stage, traffic = np.arange(6), np.array([0, 2, 0, 1, 1, 2]), chain_traffic(3)
    assert region_pieces(row, core, stage) == {0: 2, 1: 1, 2: 2} and apart(row, core, stage, traffic) == []
    cut = replace(row, faulty_links=((4, 3), (4, 5)))
    assert region_pieces(cut, core, stage)[1] == 2 and apart(cut, core, stage, traffic) == [(1, 2)]
    assert apart(cut, core, stage, 0 * traffic) == []
    assert apart(row, core[:4], np.array([0, 2, 2, 1]), traffic + np.eye(3, k=2)) == [(0, 1)]


def test_a_machine_without_links_has_no_regions() -> None:
    machine = Machine("table", (1, 1), (1, 4), distance_matrix=1.0 - np.eye(4))
    with pytest.raises(InputError, match="distance matrix"):
        floorplan(machine, np.array([2, 2]), chain_traffic(2))


def test_verify_finds_torn_stages_and_tiles_of_another_plan(tmp_path: Path) -> None:
    """Two cores of different stages change places in the files: the pipeline's own check says so."""
    pytest.importorskip("sympy")
    source, out = network(tmp_path / "m.onnx"), tmp_path / "out"
    words = ("--bind", "batch=8", "-m", "mesh:4x4", "--stages", "4", "--exact-stages", "-t", "10")
    said = run_here("pipeline", source, *words, "--gap", "90%", "--place", "-o", out, code=None)
    assert "every stage in one piece" in said.stderr
    checks = {r["name"]: r for r in map(json.loads, run_here("verify", out, "--json").stdout.splitlines())}
    assert checks["tiles"]["ok"] and "in one piece" in checks["floorplan"]["text"]
    mapping = out / "placement" / "mapping.json"
    content, plan = json.loads(mapping.read_text()), json.loads((out / "plan.json").read_text())
    for key in ("row", "col"):
        content[key] = content[key][1:] + content[key][:1]  # one core along, over the ends of stages
    stage = np.repeat(np.arange(4), plan["cores"])
    core = np.array(content["row"]) * 4 + np.array(content["col"])
    torn = any(k > 1 for k in region_pieces(load_machine("mesh:4x4"), core, stage).values())
    mapping.write_text(json.dumps(content))
    rows = map(json.loads, run_here("verify", out, "--json", code=1 if torn else 0).stdout.splitlines())
    assert {r["name"]: r["ok"] for r in rows}["floorplan"] is not torn
    content["row"][1], content["col"][1] = content["row"][0], content["col"][0]
    mapping.write_text(json.dumps(content))
    assert "two tiles share a core" in run_here("verify", out, code=1).stdout
    tiles = out / "placement" / "tiles.json"
    tiles.write_text(tiles.read_text().replace("s0/0", "s9/0"))
    assert "not the graph of this plan's tiles" in run_here("verify", out, code=1).stdout


def test_where_no_stage_can_be_whole_tiles_are_placed_freely(tmp_path: Path) -> None:
    """A fault in the middle of a row parts the one stage; the command and ``verify`` say so, and nothing fails."""
    pytest.importorskip("sympy")
    source, out, row = network(tmp_path / "m.onnx"), tmp_path / "out", tmp_path / "row.toml"
    row.write_text("cores = [1, 5]\nfaulty_cores = [[0, 2]]\n")
    words = ("--bind", "batch=8", "-m", row, "--stages", "1", "--use-all", "-t", "10", "--place", "-o", out)
    assert "tiles are placed freely" in run_here("pipeline", source, *words, code=None).stderr
    assert json.loads((out / "placement" / "constraints.json").read_text()) == {"constraints": []}
    assert "stage 0 is in 2 pieces" in run_here("verify", out).stdout
