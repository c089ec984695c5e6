"""``verify`` through the command: every field counts or is named, numbers of any size are one line, re-checks end in time."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_support import run_here

from nmsolve.kinds.check_bounds import LATE, Budget
from nmsolve.kinds.check_fields import differences, same
from nmsolve.model.bound import Bound, BoundCheck

EXAMPLE = Path(__file__).parents[1] / "examples" / "first.json"


@pytest.fixture(scope="module")
def mapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on the first example."""
    out = tmp_path_factory.mktemp("mapped")
    run_here("map", EXAMPLE, "-o", out, "-t", 20, "--engines", "first-fit,star,parts")
    return out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        # scores that no second program computes; the case says that they could be set to 0
        *(({"scores": {name: 0.0}}, f"$.scores.{name} is")
          for name in ("latency-average", "latency-max", "table-entries", "hysmap")),
        ({"scores": {"beauty": 1.0}}, "$.scores.beauty is no field that nmsolve writes here"),
        ({"machine": {"rows": 3}}, "$.machine.rows is 2, the file says 3"),
        ({"graph": {"nodes": 10**20}}, "$.graph.nodes is 6, the file says 100000000000000000000"),
        ({"bound_scope": "placement"}, "$.bound_scope"),
        ({"objective": 10**20}, "the report says 100000000000000000000"),
        ({"objective": 10**400}, "number out of range"),
        ({"bound": 10**20}, "is above the objective"),
        ({"bound": "1"}, "expected `float | null`, got `str`"),
        ({"inputs": {"colour": 1}}, "$.inputs.colour is no field"),
        ({"inputs": {"node_limit": 6}}, "certificates.json is about problem"),
    ],
)  # fmt: skip
def test_an_altered_field_fails_in_one_line(
    change: dict[str, Any], words: str, mapped: Path, tmp_path: Path
) -> None:
    """Values are those of a legal mapping, so whatever else is said of it is false."""
    for file in mapped.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    report = json.loads((tmp_path / "report.json").read_text())
    for key, value in change.items():
        report[key] = report[key] | value if isinstance(value, dict) else value
    (tmp_path / "report.json").write_text(json.dumps(report))
    failed = [
        line for line in run_here("verify", tmp_path, code=1).stdout.splitlines() if line.startswith("FAILED")
    ]
    assert any(words in line for line in failed), failed


def test_what_was_not_read_is_named(mapped: Path) -> None:
    """Times and engines prove nothing; pages are not opened; certificates only with --bound."""
    *_, last = run_here("verify", mapped).stdout.splitlines()
    named = last.replace(";", ",").split()
    assert (
        last.startswith("-")
        and {"wall_seconds,", "report.html"} <= {*named}
        and "certificates.json," in named
    )
    assert "certificates.json" not in run_here("verify", mapped, "--bound").stdout.splitlines()[-1]


def test_members_of_certificates_that_no_check_reads_are_named(mapped: Path, tmp_path: Path) -> None:
    """Of every kind; what honest certificates say is read."""
    folders = [mapped]
    tasks = Path(__file__).parents[1] / "examples" / "tasks.json"
    model = Path(__file__).parent / "data" / "onnx" / "mobilenet_v2.onnx"
    for kind, *given in (
        ("schedule", tasks),
        ("pipeline", model, "-m", "mesh:2x2"),
        ("assign", model, "-m", "laptop-npu"),
    ):
        folders.append(tmp_path / str(kind))
        run_here(str(kind), *given, "-t", 8, "-o", folders[-1])
    for k, folder in enumerate(folders):
        other = tmp_path / f"other{k}"
        shutil.copytree(folder, other)
        content = json.loads((folder / "certificates.json").read_text())
        for row in content["bounds"]:
            row["certificate"]["beauty"] = 1
        (other / "certificates.json").write_text(json.dumps(content))
        honest, altered = (
            [
                line
                for line in run_here("verify", f, "--bound", "--trust-solver").stdout.splitlines()
                if " bound " in line
            ]
            for f in (folder, other)
        )
        assert not [line for line in honest if "not read of it" in line]
        named = [line for line in altered if "not read of it: beauty" in line]
        assert len(named) == len(content["bounds"]) > 0, altered


def test_bounds_that_are_not_checked_in_time_rest_on_a_word(mapped: Path) -> None:
    """Exit code 6, as for a solver's word; 0 where that is trusted; a broken limit is refused."""
    text = run_here("verify", mapped, "--bound", "-t", "0.000001s", code=6).stdout
    assert "not re-checked: the 0 s of --time-limit are over" in text and LATE in text
    run_here("verify", mapped, "--bound", "-t", "0.000001s", "--trust-solver", code=0)
    run_here("verify", mapped, "--bound", "-t", "soon", code=2)


def test_a_check_that_ends_late_refutes_only_with_a_value() -> None:
    """What took too long says nothing; a claim that was shown to be wrong stays wrong."""
    budget, bound = Budget(1e-9), Bound(5.0, "star")
    assert (
        budget.rechecked("star", bound, lambda *_: BoundCheck(False, 3.0, "")).word == LATE
    )  # it never began
    slow = Budget(60.0)
    assert not slow.rechecked("star", bound, lambda *_: BoundCheck(False, 3.0, "wrong")).ok
    assert not slow.rechecked("star", bound, lambda *_: BoundCheck(False, math.nan, "broken")).ok


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (2**53 + 1, 2**53, False), (2**53 + 1, 2**53 + 1, True), (10**400, 1.0, False), (10**400, 10**400, True),
        (1.0, 1 + 1e-12, True), (1.0, 1 + 1e-6, False), (True, 1, False), (1, True, False), (None, 0, False), ("1", 1, False),
        (1, 1.0, True), (float(2**60), 2**60, True),
    ],
)  # fmt: skip
def test_values_are_equal_if_they_say_the_same(one: object, other: object, equal: bool) -> None:
    """Whole numbers exactly, beyond 2^53 too; a bool is no number."""
    assert same(one, other) is equal


def test_differences_name_the_place() -> None:
    said = {"a": [{"b": 1}, {"b": 2}], "c": "x", "more": 0, "run": "1"}
    again = {"a": [{"b": 1}, {"b": 3}], "c": None, "d": None, "e": 1}
    assert list(differences(said, again, {"run"})) == [
        "$.a[1].b is 3, the file says 2",
        "$.c is nothing, the file says x",
        "$.more is no field that nmsolve writes here",
        "$.e is 1, the file says nothing",
    ]
