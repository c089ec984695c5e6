"""Every field of every file of an answer, altered alone: ``verify`` fails, or names the field as not read.

One small run of every command; what is changed is read by ``verify --bound`` in this process. A change that leaves a true but
weaker claim (a lower bound of a front) is no forgery.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from assignments_support import pair_machine, small_model
from command_support import run_here
from schedule_files import tasks_file
from test_forged_folders import files_of, write

from nmsolve.kinds.check import checked
from nmsolve.kinds.verbs import VerifyOptions
from nmsolve.kinds.verdict import NOT_READ
from nmsolve.model.errors import InputError
from nmsolve.model.formats.onnx import load_onnx

#: Proofs of other claims: what still proves these is none the worse for a change, and forgers of their own change it. A little
#: more noise gives the same noisy runs.
PROOFS = {"certificate", "numbering", "worms"}
#: Whether all changes of a field are tried, not only the first.
ALL = "NMSOLVE_FORGED" in os.environ
#: Runs: the input, and the command line without folder and time.
RUNS: dict[str, tuple[str, ...]] = {
    "map": ("map", "g.json", "-m", "two.toml", "--engines", "star,parts,first-fit"),
    "order": ("map", "g.json", "-m", "two.toml", "--objective", "cut,hops", "--engines", "cover,parts,first-fit"),
    "budget": ("map", "g.json", "-m", "two.toml", "--warm-start", "order", "--migration-budget", "2", "--engines", "remap"),
    "xy": ("map", "g.json", "-m", "mesh:2x2", "--route", "xy", "--engines", "star,tabu"),
    "joint": ("map", "g.json", "-m", "mesh:2x2", "--route", "joint", "--objective", "max-link"),
    "turns": ("map", "g.json", "-m", "mesh:2x2", "--route", "chosen", "--objective", "max-link"),
    "route": ("route", "xy"),
    "routes": ("route", "xy", "--pareto", "max-link,turns", "--points", "2"),
    "pareto": ("map", "g.json", "-m", "mesh:2x2", "--pareto", "hops,max-link", "--points", "3",
               "--engines", "star,link-load,links,tabu"),
    "pipeline": ("pipeline", "g.onnx", "--bind", "batch=32", "-m", "mesh:2x2", "--stages", "2", "--exact-stages"),
    "in-order": ("pipeline", "g.onnx", "--bind", "batch=32", "--cores", "4", "--objective", "energy,period"),
    "assign": ("assign", "g.onnx", "-m", "pair.toml", "--bind", "batch=32", "--objective", "latency,energy",
               "--engines", "min-cut,tree"),
    "schedule": ("schedule", "tasks.json", "--noise", "10%", "--runs", "5", "--objective", "makespan,moved",
                 "--engines", "heft,m4,schedule-counting"),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The output folder of a run, made when it is first asked for."""
    base = tmp_path_factory.mktemp("fields")
    edges = [(0, 1, 3), (1, 2, 5), (2, 3, 2), (0, 3, 4), (1, 3, 1), (0, 2, 2)]
    rows = [{"source": a, "target": b, "weight": w} for a, b, w in edges]
    content = {"directed": True, "multigraph": False, "graph": {"name": "g"}, "edges": rows,
               "nodes": [{"id": i, "sizes": {"neurons": 1}} for i in range(4)]}  # fmt: skip
    (base / "g.json").write_text(json.dumps(content))
    (base / "two.toml").write_text('name = "two"\ncores = [2, 2]\n[capacity]\nneurons = 2\n')
    pair_machine(base / "pair.toml")
    small_model(base / "g.onnx", layers=2, width=64)
    tasks_file(base / "tasks.json")

    def folder(kind: str) -> Path:
        out = base / kind
        if not out.exists():
            if RUNS[kind][0] == "route":
                folder("xy")
            if kind == "budget":
                folder("order")
            told = [base / r if r not in RUNS[kind][:1] and (base / r).exists() else r for r in RUNS[kind]]
            done = run_here(*told, "-o", out, "-t", 20 if kind in ("turns", "joint") else 120, code=None)
            assert done.returncode in (0, 3), done.stderr
        return out

    return folder


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is read once: it stays as it is."""
    loaded = functools.cache(lambda path, strict, bound: load_onnx(path, strict, dict(bound)))
    monkeypatch.setattr(
        "nmsolve.model.formats.onnx.load_onnx",
        lambda path, strict=False, bindings=None: loaded(path, strict, tuple((bindings or {}).items())),
    )


def leaves(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value that is no object and no list, and of every list that is not empty."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, (*path, key))
    elif isinstance(content, list):
        if content:
            yield path
        for k, value in enumerate(content):
            yield from leaves(value, (*path, k))
    else:
        yield path


def tried(content: Any) -> Iterator[tuple[str | int, ...]]:
    """All paths, or in a run of minutes one in four, always the same ones."""
    return (path for path in leaves(content) if ALL or zlib.crc32(repr(path).encode()) % 4 == 0)


def at(content: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path."""
    for key in path:
        content = content[key]
    return content


def altered(value: Any) -> list[Any]:
    """Other values of the same type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, -value - 1]
    if isinstance(value, float):
        return [value * (1 + 1e-6) + 1e-6, -value - 1.0, 0.0 if abs(value) > 1e-9 else 1.0]
    if isinstance(value, str):
        return [value + "x"]
    if isinstance(value, list):
        return [value[:-1]]
    return []


def put(content: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy with another value at a path."""
    new = copy.deepcopy(content)
    at(new, path[:-1])[path[-1]] = value
    return new


def weaker(kind: str, path: tuple[str | int, ...], old: Any, new: Any) -> bool:
    """Whether a change leaves a true claim that says less: a lower bound where no gap goes with it, a proof without a claim."""
    keys = {k for k in path if isinstance(k, str)}
    if "stages" in keys and isinstance(old, list):
        return bool(keys & {"bounds"})
    if "ceilings" in keys and kind == "routes":  # bounds on routes that are recomputed hold under any
        return True
    less = isinstance(new, float) and 0 <= new < old
    return (
        less
        and bool(keys & {"stages", "before", "points", "bounds"})
        and path[-1] not in ("ceiling", "hops", "max-link")
    )


def judged(folder: Path, kind: str) -> str | None:
    """What ``verify --bound`` names as not read; None if it refuses the folder."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            alone = kind == "route"  # the routes of a mapping in another folder
            options = (
                VerifyOptions(folder.parent / "xy", routes=folder / "flow-routes.json")
                if alone
                else VerifyOptions(folder)
            )
            checks = checked(replace(options, bound=True))
        except InputError as error:
            assert "\n" not in str(error)
            return None
    if not all(c.ok for c in checks):
        return None
    return "; ".join(c.text for c in checks if c.name == NOT_READ)


def named(words: str, file: str, path: tuple[str | int, ...]) -> bool:
    """Whether the line of what was not read has the field, one that it is in, or the file."""
    keys = [k for k in path if isinstance(k, str)]
    inside = {".".join(keys[: k + 1]) for k in range(len(keys))}
    for part in words.split("; "):
        name, _, fields = part.partition(" ")
        if name == file and (not fields or inside & set(fields.split(", "))):
            return True
    return False


@pytest.mark.parametrize("kind", RUNS)
def test_no_field_is_altered_unseen(kind: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    files = files_of(made(kind))
    if kind == "route":
        shutil.copytree(made("xy"), tmp_path / "xy")
    tmp_path = tmp_path / kind
    tmp_path.mkdir()
    write(tmp_path, files)
    said = judged(tmp_path, kind)
    assert said is not None
    unseen = []
    for file, content in files.items():
        for path in tried(content):
            if PROOFS & set(path) or named(said, file, path) or path == ("noise", "noise"):
                continue
            for value in altered(at(content, path))[: None if ALL else 1]:
                (tmp_path / file).write_text(json.dumps(put(content, path, value)))
                words = judged(tmp_path, kind)
                if words is None or named(words, file, path) or weaker(kind, path, at(content, path), value):
                    continue
                unseen.append((file, path, at(content, path), value))
        (tmp_path / file).write_text(json.dumps(content))
    assert not unseen, "\n".join(map(str, unseen))


#: What a field may hold that nmsolve never writes there.
ODD = (10**20, 10**400, 1e308, -1, -1.5, True, "1", "", None, [], {}, [[]], {"x": 1})


@pytest.mark.parametrize("kind", RUNS)
def test_no_value_of_a_field_ends_in_a_traceback(
    kind: str, made: Callable[[str], Path], tmp_path: Path
) -> None:
    """Numbers of any size and values of any type: one line, or checks."""
    files, folder = files_of(made(kind)), tmp_path / kind
    if kind == "route":
        shutil.copytree(made("xy"), tmp_path / "xy")
    folder.mkdir()
    write(folder, files)
    turn = 0
    for file, content in files.items():
        for path in tried(content):
            for k in range(len(ODD) if ALL else 1):
                (folder / file).write_text(json.dumps(put(content, path, ODD[(turn + k) % len(ODD)])))
                judged(folder, kind)
            turn += 1
        (folder / file).write_text(json.dumps(content))
