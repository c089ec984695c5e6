"""The explorable page: what its data say, and in a browser: routes and loads, pointer, keys, search, narrow screens, colours."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_support import Opened, chromium, fits
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st

from nmsolve.hw.machines import load_machine
from nmsolve.hw.routes import link_loads
from nmsolve.hw.scores import score
from nmsolve.kinds.mapping.page import render_html
from nmsolve.kinds.mapping.report import build_report
from nmsolve.model.bound import Event, Result
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import AnyArray
from nmsolve.report import explore
from nmsolve.report.explore import column, explored, grouped, searched

EVIL = "</script><script>alert(1)</script>"


def opened(packed: dict[str, str]) -> AnyArray:
    """Return the array of a column, by other code than the page's."""
    kinds = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "f4": "<f4", "f8": "<f8"}
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), kinds[packed["kind"]])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 2**33)) | st.lists(st.floats(-1e6, 1e6, width=32)))
def test_columns_hold_what_goes_in(values: list[Any]) -> None:
    """Whole numbers exactly, others as single floats."""
    assert opened(column(np.array(values))).tolist() == [float(v) for v in values]


def problem_on(machine: Machine, seed: int = 1, nodes: int = 60) -> tuple[MappingProblem, Result]:
    """Messages of both sorts between random nodes, each with a name, on usable cores that are drawn at random."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, nodes, (2, 4 * nodes))
    graph = LogicGraph.from_edges(
        nodes, source, target, rng.integers(1, 9, 4 * nodes).astype(float), resources=("neurons",),
        sizes=np.ones((nodes, 1), np.int64), ids=[f"{'ab'[k % 2]}{EVIL}/{k}" for k in range(nodes)], name=f"evil {EVIL}",
    )  # fmt: skip
    many = rng.random(nodes) < 0.5
    graph = replace(graph, multicast=many, rate=np.where(many, 3.0, graph.rate))
    problem = MappingProblem(graph, machine, "hops", (), nodes)
    core = rng.choice(np.flatnonzero(machine.usable), nodes)
    value = score(graph, machine, core)["hops"]
    events = (Event(0.1, "incumbent", "first-fit", 2 * value), Event(0.3, "bound", "star", None, value / 2))
    result = Result(
        "feasible", "time", "hops", core, value, value / 2, 0.5, (), scores=score(graph, machine, core), events=events,
        wall_seconds=1.0,
    )  # fmt: skip
    return problem, result


def write_page(path: Path, problem: MappingProblem, result: Result) -> Path:
    path.write_text(render_html(problem, result, build_report(problem, result, [], {}), "nmsolve verify x"))
    return path


def boards() -> dict[str, Machine]:
    """A mesh, a torus, dead links and a faulty core, and chips whose crossings are long."""
    mesh = load_machine("mesh:5x7")
    return {
        "mesh": mesh,
        "torus": replace(mesh, torus=True),
        "faults": replace(
            mesh, faulty_cores=(9,), faulty_links=((0, 1), (1, 0), (17, 24), (24, 17), (18, 17))
        ),
        "chips": replace(Machine("chips", (2, 2), (2, 3), torus=True), crossing_weight=7.0),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


@pytest.mark.parametrize("name", boards())
def test_the_script_finds_the_routes_of_the_evaluator(name: str, browser: Any, tmp_path: Path) -> None:
    """Loads of all links, added up in the page from its messages, are those of the evaluator; names are text, not markup."""
    problem, result = problem_on(boards()[name])
    page = Opened(browser, write_page(tmp_path / "page.html", problem, result))
    loads = page.page.evaluate("Array.from(explorer.mapped.recomputed())")
    assert loads == pytest.approx(link_loads(problem.graph, problem.machine, result.core).tolist(), abs=1e-9)
    hottest = int(np.argmax(loads))
    flows = page.page.evaluate("(link) => explorer.mapped.flowsOver(link)", hottest)
    assert sum(f["weight"] for f in flows) == pytest.approx(loads[hottest])
    assert EVIL in page.page.locator("h1").inner_text() and page.page.locator("script").count() == 3
    page.close()


def test_pointer_keys_and_search(browser: Any, tmp_path: Path) -> None:
    """Each of them leads to the same details; Escape leads back."""
    problem, result = problem_on(load_machine("mesh:5x7"))
    page = Opened(browser, write_page(tmp_path / "page.html", problem, result))
    board, panel = page.part("board"), page.part("panel")
    assert "The whole board" in panel.inner_text()
    core = int(np.argmax(np.bincount(result.core)))
    x, y = page.of_core(core)
    board.hover(position={"x": x, "y": y})
    assert page.part("tip").inner_text().startswith(f"core ({core // 7}, {core % 7}): ")
    board.click(position={"x": x, "y": y})
    nodes = [k for k in range(problem.graph.n) if result.core[k] == core]
    assert f"Core ({core // 7}, {core % 7})" in panel.inner_text()
    assert panel.locator(".chips button").all_inner_texts() == [problem.graph.ids[k] for k in nodes]
    panel.locator(".chips button").first.click()
    assert panel.locator("h3").inner_text() == f"Node {problem.graph.ids[nodes[0]]}"
    board.focus()
    page.page.keyboard.press("ArrowRight" if core % 7 < 6 else "ArrowLeft")
    beside = core + 1 if core % 7 < 6 else core - 1
    assert f"Core ({beside // 7}, {beside % 7})" in panel.inner_text()
    before = page.page.evaluate("explorer.board.at.k")
    page.page.keyboard.press("+")
    assert page.page.evaluate("explorer.board.at.k") == pytest.approx(1.5 * before)
    page.page.keyboard.press("0")
    assert page.page.evaluate("explorer.board.at.k") == pytest.approx(before)
    page.page.keyboard.press("/")
    page.page.keyboard.type(f"{problem.graph.ids[41]}")
    assert page.part("matches").locator("button").all_inner_texts() == [problem.graph.ids[41]]
    page.page.keyboard.press("Enter")
    assert panel.locator("h3").inner_text() == f"Node {problem.graph.ids[41]}"
    page.page.keyboard.press("Escape")
    assert "The whole board" in panel.inner_text()
    hot = panel.locator("button").first
    text = hot.inner_text()
    hot.click()
    assert panel.locator("h3").inner_text() == f"Link {text}" and "Largest flows" in panel.inner_text()
    page.close()


@pytest.mark.parametrize("width", [400, 1400])
def test_narrow_and_wide_light_and_dark(width: int, browser: Any, tmp_path: Path) -> None:
    """Nothing sticks out to the right; the theme follows the system until the button is pressed."""
    problem, result = problem_on(load_machine("mesh:5x7"))
    page = Opened(browser, write_page(tmp_path / "page.html", problem, result), width, "dark")
    assert page.part("board").bounding_box()["width"] > 0.5 * min(width, 900)
    fits(page, width)
    page.part("time").locator("svg").hover()
    assert "bound" in page.part("time-said").inner_text()
    page.close()


def test_populations_else_communities() -> None:
    """Four cliques that hardly talk are four communities; ids with a slash name populations themselves."""
    size, count = 8, 4
    inside = [
        (a, b) for c in range(count) for a in range(c * size, (c + 1) * size) for b in range(c * size, a)
    ]
    source, target = np.array([*inside, (0, 8), (9, 16), (17, 24)]).T
    graph = LogicGraph.from_edges(size * count, source, target, directed=False)
    problem = MappingProblem(graph, load_machine("mesh:6x6"), "hops", (), 1)
    of, names, title = grouped(problem)
    assert title == "community" and len(names) == count
    assert len(set(zip(of.tolist(), (np.arange(size * count) // size).tolist(), strict=True))) == count
    named = replace(graph, ids=tuple(f"p{k % 3}/{k}" for k in range(graph.n)))
    assert grouped(replace(problem, graph=named))[1:] == (["p0", "p1", "p2"], "population")


def test_large_networks_are_sums_per_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit of nodes no node is listed; above that of bytes no message is, and without weights before that."""
    problem, result = problem_on(load_machine("mesh:5x7"))
    whole = explored(problem, result.core, searched((), 0.0, None))
    assert whole["messages"]["weight"] is not None
    rest = sum(len(c["data"]) for k, c in whole["messages"].items() if k != "weight")
    monkeypatch.setattr(explore, "NODE_BYTES", 0)
    for most, left in ((rest, {"weight"}), (rest - 1, None)):
        monkeypatch.setattr(explore, "MESSAGE_BYTES", most)
        found = explored(problem, result.core, searched((), 0.0, None))["messages"]
        assert found is None if left is None else {k for k, c in found.items() if c is None} == left
    monkeypatch.setattr(explore, "MOST_NODES", problem.graph.n - 1)
    sums = explored(problem, result.core, searched((), 0.0, None))
    assert sums["core"] is sums["ids"] is sums["messages"] is None
    amounts = opened(sums["groups"]["count"]).reshape(-1, 2).sum(axis=1)
    assert amounts.tolist() == np.bincount(result.core, minlength=35).tolist()
    pairs = sums["pairs"]
    assert (
        opened(pairs["weight"]).sum() == pytest.approx(opened(whole["pairs"]["weight"]).sum())
        and sums["loads"]
    )


def test_plain_pages_have_no_script(tmp_path: Path) -> None:
    """The command writes the explorer, or with ``--plain`` still pictures."""
    words = ("map", Path(__file__).parent.parent / "examples" / "first.json", "--gap", "100%")
    run_here(*words, "-o", tmp_path / "lively")
    run_here(*words, "-o", tmp_path / "plain", "--plain")
    lively, plain = ((tmp_path / name / "report.html").read_text() for name in ("lively", "plain"))
    data = json.loads(lively.split('id="explorer-data">')[1].split("</script>")[0])
    assert data["nodes"] == 6 and opened(data["core"]).tolist() == _cores(tmp_path / "lively")
    assert "<script" not in plain and plain.count("<svg") >= 4


def _cores(folder: Path) -> list[int]:
    content = json.loads((folder / "mapping.json").read_text())
    return [2 * r + c for r, c in zip(content["row"], content["col"], strict=True)]
