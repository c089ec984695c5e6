"""Weakens engines one by one and shows that their floors notice: ``python tests/strength/mutants.py [WORD ...]``.

Each mutation of :mod:`mutations` is applied to a copy of the package in a temporary folder, and the test of its floor runs there.
With words, only mutations whose test or text has one of them. Run by hand after an engine has changed: all take some minutes.
Exit code 1 if a mutation survives, no longer fits the code, or fails otherwise than by its floor.

Compiled kernels of other modules may hold the mutated code, inlined. So those of every module that imports the mutated one, at
first or second hand, are compiled again; all others keep what is compiled.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pytest
from mutation import Mutation
from mutations import MUTATIONS

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "nmsolve"
#: How a test fails that finds something wrong.
ASSERTED = re.compile(r"^E +(?:AssertionError|assert |Failed: )", re.MULTILINE)
FLOOR = re.compile(r"AssertionError: ((?:found|proved) .*, floor .*)")


def importers() -> dict[str, set[str]]:
    """Files (within the package) that import a file, by that file."""
    out: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
            elif isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            else:
                continue
            for name in names:
                parts = name.split(".")[1:]
                for file in ("/".join(parts) + ".py", "/".join([*parts, "__init__.py"])):
                    if name.startswith("nmsolve") and (PACKAGE / file).is_file():
                        out[file].add(str(path.relative_to(PACKAGE)))
    return out


def touched(file: str, by: dict[str, set[str]]) -> list[str]:
    """The file and all that import it, at first or second hand."""
    out, todo = {file}, [file]
    while todo:
        new = by[todo.pop()] - out
        out |= new
        todo += new
    return sorted(out)


def forget_kernels(package: Path, files: list[str]) -> None:
    """Delete what is compiled of these files."""
    for file in files:
        path = package / file
        for kind in ("nbi", "nbc", "pyc"):
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.{kind}"):
                compiled.unlink()


def restore(package: Path, files: list[str]) -> None:
    """Source and compiled kernels as they were."""
    forget_kernels(package, files)
    for file in files:
        path = PACKAGE / file
        shutil.copy2(path, package / file)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            shutil.copy2(compiled, package / compiled.relative_to(PACKAGE))


def judge(mutation: Mutation, folder: Path, by: dict[str, set[str]]) -> str:
    """What became of the floor under a mutation: ``killed: ...``, or what is wrong."""
    file = folder / "nmsolve" / mutation.file
    text = file.read_text("utf-8")
    if text.count(mutation.old) != 1:
        return f"STALE: the text to replace occurs {text.count(mutation.old)} times in {mutation.file}"
    files = touched(mutation.file, by)
    forget_kernels(folder / "nmsolve", files)
    file.write_text(text.replace(mutation.old, mutation.new), "utf-8")
    try:
        passed, said = tested(mutation.test, folder)
    finally:
        restore(folder / "nmsolve", files)
    if passed:
        return "SURVIVED"
    if not mutation.floor and ASSERTED.search(said):
        return "killed"
    found = FLOOR.search(said)
    return f"killed: {found[1]}" if found else "FAILED OTHERWISE:\n" + said[-3000:]


def tested(test: str, folder: Path) -> tuple[bool, str]:
    """Whether a test passes with the package in ``folder``, and what pytest said.

    In a fork of this process, which has loaded what takes long to load, but nothing of the package.
    """
    said = folder / "said.txt"
    child = os.fork()
    if child == 0:
        code = 3
        try:
            with said.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            sys.path.insert(0, str(folder))
            sys.path.append(str(HERE.parents[1]))  # for ``tests``
            os.chdir(folder)
            code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", str(HERE / test)]))
            package = sys.modules.get("nmsolve")
            if package is not None and not str(package.__file__).startswith(str(folder)):
                print("the copy is not what ran:", package.__file__)
                code = 4
            sys.stdout.flush()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0, said.read_text("utf-8", "replace")


def main() -> int:
    """Judge all mutations that were asked for; the exit code."""
    words = sys.argv[1:]
    chosen = [m for m in MUTATIONS if not words or any(w in f"{m.test} {m.engine} {m.what}" for w in words)]
    by, bad = importers(), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        shutil.copytree(PACKAGE, folder / "nmsolve")
        for heavy in (
            "numba",
            "scipy.optimize",
            "scipy.sparse.csgraph",
            "scipy.sparse.linalg",
            "ortools.sat.python.cp_model",
        ):
            import_module(heavy)
        assert "nmsolve" not in sys.modules
        for mutation in chosen:
            begun = time.monotonic()
            verdict = judge(mutation, folder, by)
            bad += not verdict.startswith("killed")
            print(
                f"{mutation.engine:18} {mutation.what}: {verdict} ({time.monotonic() - begun:.0f} s)",
                flush=True,
            )
    print(f"{len(chosen) - bad} of {len(chosen)} mutations killed")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
