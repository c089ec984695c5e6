"""``nmsolve draw``: pictures of runs in three forms, the same bytes again, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_support import run_here
from test_cli_pipeline import network

EXAMPLE = Path(__file__).parent.parent / "examples" / "first.json"
BEGINS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
#: Pictures are drawn for real.
pytestmark = pytest.mark.rendered


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mapping of the example."""
    out = tmp_path_factory.mktemp("drawn") / "run"
    run_here("map", EXAMPLE, "-t", "3", "-o", out)
    return out


@pytest.mark.parametrize(
    ("what", "form"), [("cores", "svg"), ("links", "png"), ("search", "pdf"), ("resources", "png")]
)
def test_pictures_of_a_mapping(what: str, form: str, run: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.{form}" for name in ("a", "b")]
    for file in files:
        assert run_here("draw", run, "--what", what, "-o", file).stdout.strip() == str(file)
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(BEGINS[form]) and first == second and len(first) > 2000


def test_a_mapping_alone_has_no_search_and_a_plan_has_stages(run: Path, tmp_path: Path) -> None:
    words = ("--graph", EXAMPLE, "-o", tmp_path / "x.svg")
    (tmp_path / "cores.txt").write_text("0\n1\n2\n3\n0\n1\n")
    run_here("draw", tmp_path / "cores.txt", *words)
    assert (
        "one of cores, resources, links"
        in run_here("draw", tmp_path / "cores.txt", *words, "--what", "search", code=2).stderr
    )
    pytest.importorskip("sympy")
    out = tmp_path / "plan"
    run_here("pipeline", network(tmp_path / "m.onnx"), "--bind", "batch=8", "-n", "8", "-t", "5", "-o", out)
    run_here("draw", out, "-o", tmp_path / "stages.svg")
    assert (tmp_path / "stages.svg").read_bytes() == _again(out, "stages", tmp_path / "again.svg")
    assert _again(out, "search", tmp_path / "search.svg").startswith(b"<?xml")


def _again(out: Path, what: str, file: Path) -> bytes:
    run_here("draw", out, "--what", what, "-o", file)
    return file.read_bytes()


def test_other_forms_and_folders_are_refused(run: Path, tmp_path: Path) -> None:
    assert "ends with .svg, .png, .pdf" in run_here("draw", run, "-o", tmp_path / "x.gif", code=2).stderr
    assert "no such folder" in run_here("draw", run, "-o", tmp_path / "no" / "x.svg", code=2).stderr
    assert (
        "there is no such file or folder"
        in run_here("draw", tmp_path / "no", "-o", tmp_path / "x.svg", code=2).stderr
    )


def test_assignments_routes_and_schedules_have_pictures_of_their_own(run: Path, tmp_path: Path) -> None:
    """The first of them where none is named; a picture that there is not is refused with those that there are."""
    examples = EXAMPLE.parent
    model = examples.parent / "tests" / "data" / "onnx" / "mobilenet_v2.onnx"
    run_here("route", run, "--gap", "0.9", "-t", "60", "-o", tmp_path / "routes")
    words = (
        model,
        "-m",
        examples / "processors.toml",
        "--gap",
        "0.9",
        "-t",
        "60",
        "-o",
        tmp_path / "assigned",
    )
    run_here("assign", *words)
    run_here("schedule", examples / "tasks.json", "-t", "60", "-o", tmp_path / "packed")
    kinds = {
        "routes": ("links", "directions", "search"),
        "assigned": ("network", "costs", "memory", "schedule", "search"),
        "packed": ("schedule", "use", "peaks", "energy", "search"),
    }
    for name, wanted in kinds.items():
        said = run_here("draw", tmp_path / name, "--what", "cores", "-o", tmp_path / "x.svg", code=2).stderr
        assert "expected one of " + ", ".join(wanted) in said.replace("turns, ", "")
        run_here("draw", tmp_path / name, "-o", tmp_path / "first.svg")
        assert (tmp_path / "first.svg").read_bytes() == _again(
            tmp_path / name, wanted[0], tmp_path / "again.svg"
        )
        for kind in wanted[1:]:
            assert len(_again(tmp_path / name, kind, tmp_path / f"{kind}.svg")) > 2000
    (tmp_path / "routes" / "route-report.json").write_text('{"inputs": {"detour": "far"}}')
    assert "invalid inputs" in run_here("draw", tmp_path / "routes", "-o", tmp_path / "x.svg", code=2).stderr
