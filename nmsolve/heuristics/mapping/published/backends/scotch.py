"""The engine ``scotch``: SCOTCH's static mapping onto a mesh (Pellegrini and Roman 1996), by its program ``scotch_gmap``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from nmsolve.heuristics.mapping.common.repair import repair
from nmsolve.heuristics.mapping.published.backends.task import uneven, whole_sizes, whole_weights
from nmsolve.model.engine import Context
from nmsolve.model.errors import NmsolveError
from nmsolve.model.mapping.features import ANY, takes
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray

#: The program, and what brings it.
PROGRAM, HOW = "scotch_gmap", "apt install scotch"
#: Seconds between two looks at the clock while it runs.
NAP = 0.05


def _plain_mesh(problem: MappingProblem) -> str | None:
    m = problem.machine
    if m.distance_matrix is not None or m.torus or m.faulty_links or not m.usable.all():
        return "it knows whole meshes only"
    return uneven(problem)


_takes = takes(f"{ANY} -constraints", _plain_mesh)


class Scotch:
    """One mapping after the other until time is up, each of the nodes renumbered at random, as SCOTCH's seed changes nothing."""

    name = "scotch"
    finds = "mappings"

    def refuses(self, problem: MappingProblem) -> str | None:
        """Say that the problem has rules which SCOTCH does not know, or that the program is not there; None if neither."""
        reason = _takes(problem)
        if reason is None and shutil.which(PROGRAM) is None:
            reason = f"the program {PROGRAM} is not installed: {HOW}"
        return reason

    def run(self, problem: MappingProblem, context: Context) -> None:
        """Map, repair what holds too much, offer; again with other numbers.

        Raises
        ------
        NmsolveError : the program fails
        """
        seed = context.seed
        while not context.should_stop():
            wish = gmap(problem, seed, context)
            if wish is None:
                return
            core = repair(problem, wish)
            if core is not None:
                context.offer(core, "static mapping")
            seed += 1


def gmap(problem: MappingProblem, seed: int, context: Context) -> IntArray | None:
    """Return (n,) core of every node as SCOTCH maps them, perhaps over capacity; None where it was stopped."""
    n, machine = problem.n, problem.machine
    number = np.random.default_rng(seed).permutation(n)
    with tempfile.TemporaryDirectory(prefix="nmsolve-") as name:
        folder = Path(name)
        balance = _write(problem, number, folder)
        (folder / "mesh.tgt").write_text(f"mesh2D {machine.cols} {machine.rows}\n")
        words = [PROGRAM, "graph.grf", "mesh.tgt", "out.map", f"-b{balance:.4f}"]
        once = os.environ | {"SCOTCH_PTHREAD_NUMBER": "1"}
        with subprocess.Popen(
            words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=once
        ) as process:
            while process.poll() is None:
                if context.should_stop():
                    process.kill()
                    return None
                try:
                    process.wait(NAP)
                except subprocess.TimeoutExpired:
                    continue
            said = process.stderr.read() if process.stderr else ""
        if process.returncode or not (folder / "out.map").is_file():
            raise NmsolveError(f"{PROGRAM} failed: {' '.join(said.split())[:200]}")
        found = np.loadtxt(folder / "out.map", skiprows=1, dtype=np.int64, ndmin=2)
    core = np.empty(n, np.int64)
    core[found[:, 0]] = found[:, 1]
    return core[number]


def _write(problem: MappingProblem, number: IntArray, folder: Path) -> float:
    """Write the graph, node u under ``number[u]``, with sizes of the scarcest resource; return the imbalance that is allowed."""
    indptr, indices, weights = problem.graph.traffic
    whole = whole_weights(weights)
    sizes, balance = np.ones(problem.n, np.int64), 0.0
    if problem.resources:
        capacity = problem.capacity.min(axis=0)
        scarce = int(np.argmax(problem.sizes.sum(axis=0) / np.maximum(capacity, 1)))
        sizes, limit = whole_sizes(problem.sizes[:, scarce], int(capacity[scarce]))
        mean = float(sizes.sum()) / problem.machine.size
        balance = max(0.0, limit / mean - 1) if mean else 0.0
    with open(folder / "graph.grf", "w") as out:
        out.write(f"0\n{problem.n} {len(indices)}\n0 011\n")
        for u in np.argsort(number).tolist():
            a, b = indptr[u], indptr[u + 1]
            pairs = np.stack([whole[a:b], number[indices[a:b]]], 1).ravel().tolist()
            out.write(" ".join(map(str, [int(sizes[u]), b - a, *pairs])) + "\n")
    return min(balance, 10.0)
