"""Pages of pipelines, assignments, routes and schedules to explore: their figures, and pointer, keys, search, narrow screens."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_support import Opened, chromium, fits
from command_support import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_cli_pipeline import cost_graph, network

from nmsolve.model.formats import save_graph
from nmsolve.model.graph import LogicGraph
from nmsolve.report.explore_network import Sent, positions

EXAMPLES = Path(__file__).parent.parent / "examples"
MODELS = Path(__file__).parent / "data" / "onnx"
EVIL = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


def data_of(page: Path) -> dict[str, Any]:
    """Return what the page's script is given."""
    text = page.read_text().split('id="explorer-data">')[1].split("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def opened(packed: dict[str, str]) -> list[Any]:
    """Return the values of a column, by other code than the page's."""
    data = zlib.decompress(base64.b64decode(packed["data"]))
    if packed["kind"] == "text":
        return data.decode().split("\n")
    kinds = {"u1": "<u1", "u2": "<u2", "u4": "<u4", "f4": "<f4", "f8": "<f8"}
    return np.frombuffer(data, kinds[packed["kind"]]).tolist()


def sent_along(ends: list[tuple[int, int]]) -> Sent:
    """Return one tensor for every pair of nodes."""
    a, b = np.array(ends, np.int64).reshape(-1, 2).T
    none = np.zeros(0, np.int64)
    return Sent(None, a, np.arange(len(a) + 1), b, np.ones(len(a)), none, none, none, [])


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 30).flatmap(lambda n: st.tuples(
    st.just(n), st.lists(st.tuples(st.integers(0, n), st.integers(0, n)), max_size=60))))  # fmt: skip
def test_nodes_stand_apart_and_data_flow_to_the_right(made: tuple[int, list[tuple[int, int]]]) -> None:
    """Also where nodes are joined in circles, or to nothing; without a circle no line goes back."""
    count, ends = made
    row, x, y = positions(count, sent_along(ends))
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == count
    assert x.min() == 0 and row.min() == 0 and np.isfinite(y).all()
    rows = [y[row == k] for k in range(int(row.max()) + 1)]
    assert all(one.max() < other.min() for one, other in pairwise(rows) if len(one) and len(other))
    for a, b in ends:
        if a < b < count and all(p < q for p, q in ends if p < count and q < count):
            assert (row[a], x[a]) < (row[b], x[b])


def test_a_thousand_layers_take_little_time_and_room() -> None:
    """A chain of 2,000 with a bypass over every third: about as wide as it is high."""
    ends = [(k, k + 1) for k in range(1999)] + [(k, k + 3) for k in range(0, 1990, 3)]
    _, x, y = positions(2000, sent_along(ends))
    assert 0.3 < x.max() / y.max() < 3


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ResNet-50 in four stages."""
    out = tmp_path_factory.mktemp("pipeline") / "run"
    run_here(
        "pipeline",
        MODELS / "resnet50.onnx",
        "-n",
        16,
        "-k",
        4,
        "--exact-stages",
        "-t",
        "60",
        "-o",
        out,
        "--gap",
        "0.9",
    )
    return out


def test_stages_have_the_figures_of_the_report(pipeline: Path, browser: Any) -> None:
    """What the page adds up from its layers and tensors is what the report says of every stage."""
    report = json.loads((pipeline / "pipeline-report.json").read_text())
    page = Opened(browser, pipeline / "pipeline.html")
    told = page.page.evaluate(
        "explorer.layered.parts.map((p, k) => { const g = explorer.layered, pairs = Array.from(g.pairs.values());"
        "const sum = (own, of) => d3sum(pairs.filter((q) => q.pair[own] === k).map(of));"
        "function d3sum(values) { return values.reduce((a, b) => a + b, 0); }"
        "return {layers: g.slice(g.members, k).length, into: sum(1, (q) => q.bytes), time: sum(1, (q) => g.cost(q.moves, 0)),"
        "compute: d3sum(g.slice(g.members, k).map((node) => g.figures[0].of[node]))}; })"
    )
    assert len(told) == 4 == len(report["stages"])
    for one, stage in zip(told, report["stages"], strict=True):
        assert one["layers"] == stage["layers"] and one["into"] == pytest.approx(stage["volume_in"])
        assert one["time"] == pytest.approx(stage["transfer_in"], rel=1e-5)
        assert one["compute"] == pytest.approx(stage["compute"], rel=1e-5)
    page.close()


def test_pointer_keys_and_search_on_layers(pipeline: Path, browser: Any) -> None:
    """Each leads to the layer, its stage, its tensors; Escape leads back."""
    page = Opened(browser, pipeline / "pipeline.html")
    data, panel, board = data_of(pipeline / "pipeline.html"), page.part("panel"), page.part("board")
    labels, part = opened(data["labels"]), opened(data["of"])
    assert "The whole network" in panel.inner_text()
    x, y = page.page.evaluate("explorer.graph.at.apply(explorer.graph.middle(7))")
    board.hover(position={"x": x, "y": y})
    assert (
        page.part("tip").inner_text().startswith(f"{labels[7]} (")
        and f"stage {part[7]}" in page.part("tip").inner_text()
    )
    board.click(position={"x": x, "y": y})
    assert panel.locator("h3").inner_text() == labels[7] and "Tensors in" in panel.inner_text()
    board.focus()
    page.page.keyboard.press("ArrowLeft")
    before = page.page.evaluate("explorer.layered.tensors.source[explorer.layered.used_by(7)[0]]")
    assert panel.locator("h3").inner_text() == labels[before]
    page.page.keyboard.press("ArrowRight")
    assert panel.locator("h3").inner_text() == labels[7]
    page.page.keyboard.press("/")
    page.page.keyboard.type(labels[100])
    page.page.keyboard.press("Enter")
    assert panel.locator("h3").inner_text() == labels[100]
    panel.locator("button", has_text=f"stage {part[100]}").click()
    assert (
        panel.locator("h3").inner_text() == f"stage {part[100]}"
        and "Most of its load is" in panel.inner_text()
    )
    panel.locator("button", has_text="→").first.click()
    assert "→" in panel.locator("h3").inner_text() and "time through one core" in panel.inner_text()
    panel.locator("button", has_text="from").first.click()
    assert "Used by" in panel.inner_text() and "Moved" in panel.inner_text()
    page.page.keyboard.press("Escape")
    assert "The whole network" in panel.inner_text()
    page.close()


@pytest.mark.parametrize("width", [400, 1400])
def test_a_network_on_narrow_and_wide_screens(width: int, pipeline: Path, browser: Any) -> None:
    """Nothing sticks out to the right; every choice of colours says what it means; the theme can be changed."""
    page = Opened(browser, pipeline / "pipeline.html", width, "dark")
    fits(page, width)
    page.close()


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        (
            "small_cnn.onnx",
            (
                "-n",
                6,
                "-k",
                2,
                "--exact-stages",
                "--replicas",
                3,
                "--objective",
                "period",
                "--bind",
                "batch=2",
            ),
            "cores",
        ),
        ("diamond.json", (), "load"),
    ],
)
def test_plans_of_every_sort_can_be_explored(
    model: str, more: tuple[object, ...], said: str, browser: Any, tmp_path: Path
) -> None:
    """Replicas, and a cost graph: every stage says what it takes."""
    source = cost_graph(tmp_path / model) if model.endswith(".json") else MODELS / model
    run_here("pipeline", source, *more, "-t", "60", "--gap", "0.9", "-o", tmp_path / "out")
    page = Opened(browser, tmp_path / "out" / "pipeline.html")
    for k in range(page.page.evaluate("explorer.layered.parts.length")):
        page.page.evaluate("(k) => explorer.choose({kind: 'part', part: k}, true)", k)
        assert said in page.part("panel").inner_text() and "NaN" not in page.part("panel").inner_text()
    page.close()


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MobileNet on three processors."""
    out = tmp_path_factory.mktemp("assignment") / "run"
    processors = EXAMPLES / "processors.toml"
    words = ("--objective", "makespan", "--gap", "0.9", "-t", "60", "-o", out)
    run_here("assign", MODELS / "mobilenet_v2.onnx", "-m", processors, *words)
    return out


def test_processors_have_the_figures_of_the_report(assignment: Path, browser: Any) -> None:
    """Times and energies of the operators add up to those of the processors, moves to all that is brought to them."""
    report = json.loads((assignment / "report.json").read_text())
    page = Opened(browser, assignment / "report.html")
    told = page.page.evaluate(
        "explorer.layered.parts.map((p, k) => { const g = explorer.layered, own = g.slice(g.members, k);"
        "const sum = (values) => values.reduce((a, b) => a + b, 0);"
        "return [own.length, ...[0, 1].map((f) => sum(own.map((node) => g.figures[f].of[node])))]; })"
    )
    for one, unit in zip(told, report["units"], strict=True):
        assert one == pytest.approx([unit["operators"], unit["run"], unit["energy"]], rel=1e-5)
    brought = page.page.evaluate("explorer.layered.moves.costs[0].of.reduce((a, b) => a + b, 0)")
    assert brought == pytest.approx(sum(u["transfer"] + u["interrupts"] for u in report["units"]), rel=1e-5)
    page.close()


def test_an_operator_says_where_it_could_run_instead(assignment: Path, browser: Any) -> None:
    """Search, the operator, a tensor that is brought, and the way between two processors; on a telephone as well."""
    report = json.loads((assignment / "report.json").read_text())
    page, other = (
        Opened(browser, assignment / "report.html"),
        Opened(browser, assignment / "report.html", 400, "dark"),
    )
    panel = page.part("panel")
    op = next(op for op in report["operators"] if op["alternatives"] and not op["name"].startswith("@"))
    page.page.keyboard.press("/")
    page.page.keyboard.type(op["name"])
    page.page.keyboard.press("Enter")
    said = panel.inner_text()
    assert panel.locator("h3").inner_text() == op["name"] and op["unit"] in said
    assert f"instead on {op['alternatives'][0]['unit']}" in said and op["origin"] in said
    page.page.keyboard.press("Escape")
    panel.locator("button", has_text="→").first.click()
    assert "energy" in panel.inner_text() and "tensors" in panel.inner_text()
    page.close()
    fits(other, 400)
    other.close()


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Routes for the messages of 40 nodes, some of them multicast, on 16 cores."""
    folder, rng = tmp_path_factory.mktemp("routes"), np.random.default_rng(3)
    source, target = rng.integers(0, 40, (2, 120))
    graph = LogicGraph.from_edges(40, source, target, rng.integers(1, 9, 120).astype(float))
    save_graph(replace(graph, multicast=np.arange(40) % 2 == 0, rate=np.full(40, 3.0)), folder / "net.json")
    (folder / "cores.txt").write_text("".join(f"{k}\n" for k in rng.integers(0, 16, 40)))
    words = (
        folder / "cores.txt",
        "--graph",
        folder / "net.json",
        "-m",
        "mesh:4x4",
        "--gap",
        "0.9",
        "-t",
        "60",
    )
    run_here("route", *words, "-o", folder / "run")
    return folder / "run"


def test_routes_are_those_that_were_decided(routes: Path, browser: Any) -> None:
    """Flows and their links are those of the file, and their rates add up to the loads of the links."""
    decided = json.loads((routes / "flow-routes.json").read_text())["flows"]
    page = Opened(browser, routes / "route.html")
    shown = page.page.evaluate(
        "Array.from({length: explorer.routed.count}, (_, f) => [explorer.routed.flows.source[f], explorer.routed.targets(f),"
        " explorer.routed.links(f).map((link) => [link >> 2, explorer.routed.board.ends[link]])])"
    )
    told = [[f["source"], f["targets"], sorted(link[:2] for link in f["links"])] for f in decided]
    assert [[a, b, sorted(links)] for a, b, links in shown] == told and any(len(b) > 1 for _, b, _ in shown)
    again, loads = page.page.evaluate(
        "[Array.from(explorer.routed.recomputed()), Array.from(explorer.routed.loads)]"
    )
    assert again == pytest.approx(loads) and max(loads) > 0
    page.close()


def test_pointer_keys_and_search_on_routes(routes: Path, browser: Any) -> None:
    """A core leads to its flows, a flow to its links, a link to its flows; on a telephone nothing sticks out."""
    page, other = Opened(browser, routes / "route.html"), Opened(browser, routes / "route.html", 400, "dark")
    panel, board = page.part("panel"), page.part("board")
    x, y = page.of_core(5)
    board.hover(position={"x": x, "y": y})
    assert page.part("tip").inner_text().startswith("core (1, 1): sends")
    board.click(position={"x": x, "y": y})
    assert "Flows that leave it" in panel.inner_text() and panel.locator("h3").inner_text() == "Core (1, 1)"
    board.focus()
    page.page.keyboard.press("ArrowDown")
    assert panel.locator("h3").inner_text() == "Core (2, 1)"
    page.page.keyboard.press("/")
    name = page.page.evaluate("explorer.routed.flowName(0)")
    page.page.keyboard.type(name)
    page.page.keyboard.press("Enter")
    assert panel.locator("h3").inner_text() == f"Flow {name}" and "Its route" in panel.inner_text()
    panel.locator("tr", has_text="in all").locator("button").first.click()
    assert panel.locator("h3").inner_text().startswith("Link") and name in panel.inner_text()
    page.page.keyboard.press("Escape")
    assert "The whole board" in panel.inner_text()
    page.close()
    fits(other, 400)
    other.close()


@pytest.fixture(scope="module")
def schedule(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks on four units."""
    out = tmp_path_factory.mktemp("schedule") / "run"
    run_here("schedule", EXAMPLES / "tasks.json", "-t", "60", "-o", out)
    return out


def test_pointer_keys_and_search_on_a_schedule(schedule: Path, browser: Any) -> None:
    """Each shows a process or a stretch of time; Escape leaves."""
    page = Opened(browser, schedule / "report.html", part="schedule-gantt")
    chart, found = page.page.locator("#schedule-gantt"), page.page.locator("#schedule-found")
    x, y = page.page.evaluate("schedule.at(schedule.bars[0].who[0])")
    chart.hover(position={"x": x, "y": y})
    assert " ticks)" in page.page.locator("#schedule-tip").inner_text()
    page.page.keyboard.press("/")
    page.page.keyboard.type("decode@1")
    assert page.page.locator("#schedule-matches button").all_inner_texts() == ["speech/decode@1"]
    before = page.page.evaluate("schedule.view.to - schedule.view.from")
    page.page.locator("#schedule-matches button").click()
    content = json.loads((schedule / "schedule.json").read_text())["processes"]
    start, end = next((p["start"], p["end"]) for p in content if p["process"] == "speech/decode@1")
    assert f"{start} to {end} ({end - start} ticks)" in found.inner_text()
    seen = page.page.evaluate("[schedule.view.from, schedule.view.to]")
    assert seen[0] < end and seen[1] > start
    page.page.keyboard.press("Escape")
    assert found.inner_text() == "" and page.page.evaluate("schedule.shown.found") == -1
    chart.focus()
    page.page.keyboard.press("0")
    assert page.page.evaluate("schedule.view.to - schedule.view.from") == before
    page.page.keyboard.press("+")
    assert page.page.evaluate("schedule.view.to - schedule.view.from") == pytest.approx(0.6 * before)
    page.close()


def test_a_schedule_on_a_telephone_in_the_dark(schedule: Path, browser: Any) -> None:
    """Nothing sticks out to the right; the chart is dark until the button is pressed."""
    page = Opened(browser, schedule / "report.html", 400, "dark", "schedule-gantt")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 400
    chart = page.page.locator("#schedule-gantt")

    def corner() -> Any:
        return Image.open(io.BytesIO(chart.screenshot())).convert("RGB").getpixel((4, 4))

    dark = corner()
    page.page.locator("#schedule-theme").click()
    page.page.evaluate("new Promise(requestAnimationFrame)")
    assert (dark, corner()) == ((22, 22, 22), (255, 255, 255))
    page.close()


def test_names_are_text_and_plain_pages_have_no_script(browser: Any, tmp_path: Path) -> None:
    """Whatever a model calls its layers; ``--plain`` writes still pictures for every task."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(network(tmp_path / "m.onnx"))
    model.graph.node[0].name = EVIL
    onnx.save(model, tmp_path / "m.onnx")
    words = {
        "pipeline.html": ("pipeline", tmp_path / "m.onnx", "--bind", "batch=8", "-n", 4),
        "report.html": (
            "assign",
            tmp_path / "m.onnx",
            "--bind",
            "batch=8",
            "-m",
            EXAMPLES / "processors.toml",
        ),
    }
    for name, run in words.items():
        run_here(*run, "-t", "60", "--gap", "0.9", "-o", tmp_path / "run")
        page = Opened(browser, tmp_path / "run" / name)
        assert page.page.locator("script").count() == 3
        page.page.evaluate("explorer.choose({kind: 'node', node: 0}, true)")
        assert page.part("panel").locator("h3").inner_text() == EVIL
        page.close()
        run_here(*run, "-t", "60", "--gap", "0.9", "-o", tmp_path / "run", "--plain")
        assert "<script" not in (text := (tmp_path / "run" / name).read_text()) and text.count("<svg") >= 4
    run_here("schedule", EXAMPLES / "tasks.json", "-t", "60", "-o", tmp_path / "packed", "--plain")
    run_here("map", EXAMPLES / "first.json", "-t", "5", "-o", tmp_path / "mapped", "--plain")
    run_here("route", tmp_path / "mapped", "-t", "60", "--gap", "0.9", "-o", tmp_path / "routed", "--plain")
    for page_file in (tmp_path / "packed" / "report.html", tmp_path / "routed" / "route.html"):
        assert "<script" not in (text := page_file.read_text()) and text.count("<svg") >= 4
