"""What a user sees of every kind of problem and every command: exit codes, names of files, keys of JSON, ``--help``.

``python tests/golden_runs.py`` writes ``tests/data/golden/`` anew; do that only where users get something better.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_support import run_here
from test_cli_pipeline import network

EXAMPLES = Path(__file__).parent.parent / "examples"
GOLDEN = Path(__file__).parent / "data" / "golden"
#: Long: what is shown may not depend on the speed of a machine. All problems are solved in seconds.
LIMIT = ("-t", 120, "--workers", 1)
#: Objects whose keys are names of the problem or of engines.
OPEN = (
    "scores",
    "baselines",
    "inputs.limits",
    "bounds.certificate",
    "stages.bounds.certificate",
    "stages.ceilings",
)


class Row(NamedTuple):
    """A kind of problem: its command with its input, two objectives, an engine that proves nothing, ``explain`` of its input; two
    objectives in order, where they are others."""

    given: tuple[object, ...]
    two: str
    engine: str
    explain: tuple[object, ...]
    ordered: str = ""


ONNX = ("m.onnx", "--bind", "batch=8", "-m")
BOARD, UNITS = ("first.json", "-m", "mesh:2x2"), (*ONNX, "laptop-npu")
KINDS = {
    "mapping": Row(("map", *BOARD), "hops,max-link", "first-fit", ("explain", *BOARD)),
    "routing": Row(("route", "mapping-run"), "turns,max-link", "named", ("explain", "route", "mapping-run")),
    "pipeline": Row(
        ("pipeline", *ONNX, "mesh:2x2"), "period,stages", "groups-local", ("explain", "pipeline", *ONNX, "mesh:2x2"),
        "batch,period",
    ),
    "assignment": Row(("assign", *UNITS), "latency,energy", "threshold", ("explain", "assign", *UNITS)),
    "schedule": Row(("schedule", "tasks.json"), "makespan,energy", "heft", ("explain", "schedule", "tasks.json")),
}  # fmt: skip


def cells(kind: str) -> Iterator[tuple[str, tuple[object, ...], str]]:
    """Yield verb, command and the folder or file that it leaves, if any; in order, as later ones need what earlier ones left."""
    given, two, engine, explain, ordered = KINDS[kind]
    run, begun = f"{kind}-run", f"{kind}-begun"
    small = [{"tasks.json": "one.json"}.get(str(word), word) for word in given]  # whose model may be written
    yield "run", (*given, *LIMIT, "-o", run), run
    yield "verify", ("verify", run, "--bound", "--json"), ""
    yield "score", ("score", run, "--json"), ""
    yield "gap", ("gap", run, *LIMIT, "-o", f"{kind}-gap"), f"{kind}-gap"
    yield "run with one engine", (*given, *LIMIT, "--engines", engine, "-o", begun), begun
    yield "resume", ("resume", begun, *LIMIT, "--engines", "auto", "-o", f"{kind}-on"), f"{kind}-on"
    yield "explain", (*explain, "-o", f"{kind}-why.json", "--json"), f"{kind}-why.json"
    yield "front", (*given, *LIMIT, "--pareto", two, "--points", 2, "-o", f"{kind}-front"), f"{kind}-front"
    yield "in order", (*given, *LIMIT, "--objective", ordered or two, "-o", f"{kind}-two"), f"{kind}-two"
    yield "draw", ("draw", run, "-o", f"{kind}.svg"), f"{kind}.svg"
    yield (
        "model",
        (*small, *LIMIT, "--engines", engine, "--write-model", "written", "-o", f"{kind}-model"),
        "written",
    )


def seen(folder: Path, kind: str) -> dict[str, Any]:
    """Run all cells of a kind in a folder, and return what a user sees of them."""
    network(folder / "m.onnx")
    for name in ("first.json", "tasks.json"):
        (folder / name).write_bytes((EXAMPLES / name).read_bytes())
    tasks = json.loads((EXAMPLES / "tasks.json").read_text())
    one = tasks["tasks"][0] | {"frames": 1, "processes": tasks["tasks"][0]["processes"][:1]}
    (folder / "one.json").write_text(json.dumps(tasks | {"tasks": [one], "interactions": []}))
    if kind == "routing":
        run_here(*KINDS["mapping"].given, *LIMIT, "-o", "mapping-run")
    out: dict[str, Any] = {}
    for verb, words, left in cells(kind):
        done = run_here(*words, code=None)
        cell: dict[str, Any] = {"exit": done.returncode}
        if done.returncode == 2:
            cell["error"] = done.stderr.strip().splitlines()[-1].replace(str(folder), ".")
        if "--json" in words:
            cell["output"] = sorted(
                {key for line in done.stdout.splitlines() for key in keys(json.loads(line))}
            )
        out[verb] = cell | ({"files": files(folder / left, folder)} if left else {})
    return out


def files(left: Path, folder: Path) -> dict[str, Any]:
    """Return the files that a command left, with the keys of those of JSON."""
    found = (
        sorted(p for p in left.rglob("*") if p.is_file())
        if left.is_dir()
        else [left]
        if left.exists()
        else []
    )
    return {str(p.relative_to(folder)): of_json(p) for p in found}


def of_json(path: Path) -> list[str] | None:
    """Return the keys of a file of JSON; None for another."""
    if path.suffix == ".json":
        return sorted(set(keys(json.loads(path.read_text()))))
    if path.suffix == ".jsonl":
        return sorted({key for line in path.read_text().splitlines() for key in keys(json.loads(line))})
    return None


def keys(content: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys, joined by dots; objects in lists have those of their list."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            inner = f"{path}.{key}".lstrip(".")
            yield inner
            if inner not in OPEN:
                yield from keys(value, inner)
    elif isinstance(content, list):
        for value in content:
            yield from keys(value, path)


def commands() -> Iterable[str]:
    """Return the names of all commands."""
    text = run_here("--help").stdout.split("Commands:")[1]
    return [line[2:19].strip() for line in text.splitlines() if line.startswith("  ") and line[2:3] != " "]


def helps() -> str:
    """Return ``--help`` of every command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setattr("sys.argv", ["nmsolve"])
        patch.setattr(sys.modules["__main__"], "__package__", None)  # `python -m pytest` is in the usage, too
        return "".join(f"# {name}\n{run_here(*name.split(), '--help').stdout}\n" for name in commands())


def main() -> None:
    """Write everything anew."""
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / "help.txt").write_text(helps())
    for kind in sys.argv[1:] or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            (GOLDEN / f"{kind}.json").write_text(json.dumps(seen(Path(folder), kind), indent=1) + "\n")


if __name__ == "__main__":
    main()
