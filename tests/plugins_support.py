"""Engines and packages that tests of plug-ins use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import nmsolve
from nmsolve.model.bound import Bound
from nmsolve.model.engine import Context
from nmsolve.model.mapping.problem import MappingProblem

ROOT = Path(__file__).resolve().parent.parent
RING = nmsolve.LogicGraph.from_edges(12, np.arange(12), (np.arange(12) + 1) % 12)
MESH = nmsolve.machine("mesh:3x4")


class Row:
    """Nodes by number on cores by number; ``claims`` is the bound that it says to have proved."""

    name = "row"
    finds = "both"

    def __init__(self, claims: Bound | None = None, core: Any = None) -> None:
        self.claims, self.core = claims, core

    def refuses(self, problem: MappingProblem) -> str | None:
        """Return a reason for boards of one row only."""
        machine = getattr(problem, "machine", None)
        return "one row" if machine is not None and machine.rows == 1 else None

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Offer the mapping, and the bound."""
        context.offer(np.arange(problem.n) if self.core is None else self.core, "by number")
        if self.claims is not None:
            context.raise_bound(self.claims)


class RowApart(Row):
    """The same in a process of its own."""

    name = "row-apart"
    child = True


def run(*engines: Any, **options: Any) -> nmsolve.Result[Any]:
    return nmsolve.map(RING, MESH, engines=list(engines), **{"time_limit": 30, "seed": 1, **options})


def call(path: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nmsolve", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(path)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


FIRST = ROOT / "examples" / "first.json"


def package(folder: Path, code: str, **offers: str) -> Path:
    """A folder on which a package is installed: the module ``strange``, and the lines of every group of entry points."""
    info = folder / "strange-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "strange.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    groups = (f"[nmsolve.{group}]\n{lines}\n" for group, lines in offers.items())
    (info / "entry_points.txt").write_text("".join(groups))
    return folder
