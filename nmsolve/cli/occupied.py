"""``--occupied``: networks of earlier runs that are on the machine already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.types import IntArray


def beside_earlier(machine: Machine, runs: Sequence[str | Path], memory: int | None = None) -> Machine:
    """The machine with what the networks of earlier ``runs`` (folders, or mappings with a report beside) hold of it.

    Raises
    ------
    InputError : no report or graph, a graph that has changed since, a mapping for another machine, a run named twice
    """
    from nmsolve.hw.occupied import beside

    files = [_mapping_of(Path(run)) for run in runs]
    for i, file in enumerate(files):
        if file in files[:i]:
            raise InputError("the run is named twice", str(file), "every earlier run once")
    return beside(machine, [_network(file, machine, memory) for file in files]) if files else machine


def _mapping_of(run: Path) -> Path:
    if not run.exists():
        raise InputError("no such file or directory", str(run), "the output folder of an earlier run")
    return (run / "mapping.json" if run.is_dir() else run).resolve()


def _network(file: Path, machine: Machine, memory: int | None) -> tuple[LogicGraph, IntArray]:
    """Graph and mapping of an earlier run; whatever else was on the machine then is said by its own run."""
    from nmsolve.cli.loading import stated_inputs
    from nmsolve.model.mapping.files import read_mapping
    from nmsolve.solvers.mapping.needs import load_within

    inputs = stated_inputs(file.parent / "report.json")
    if inputs.graph is None:
        raise InputError(
            "the report names no graph", str(file.parent / "report.json"), "a run of nmsolve map"
        )
    graph = load_within(Path(inputs.graph), memory)
    return graph, read_mapping(file, graph, machine, other_faults=True)
