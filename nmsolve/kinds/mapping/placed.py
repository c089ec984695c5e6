"""A mapping with its graph and machine, from whatever form it comes in: what routes and simulations start from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmsolve.kinds.loading import Inputs, Loaded, load_answer
from nmsolve.kinds.mapping.python import MappingAnswer, given_source
from nmsolve.kinds.options import AnswerOptions
from nmsolve.kinds.python.inputs import (
    FOLDER,
    MachineLike,
    MappingLike,
    Source,
    core_of,
    grid_text,
    machine_text,
)
from nmsolve.model.errors import InputError
from nmsolve.model.formats.in_memory import GraphLike
from nmsolve.model.mapping.files import write_mapping
from nmsolve.model.types import IntArray

#: The folder of a mapping that has none: nothing is beside it.
NOWHERE = Path(os.devnull)


@dataclass(frozen=True, eq=False)
class Placed:
    """A mapping ``core`` (n,) of the graph in ``loaded``.

    Attributes
    ----------
    loaded : what the commands read of a mapping's files
    source : graph and machine as they were given; None where files name them
    answer : the answer that the mapping is of, or None
    named : the files that name it, as options of commands; empty where there are none
    """

    loaded: Loaded
    source: Source | None = None
    answer: MappingAnswer | None = None
    named: dict[str, Any] | None = None

    @property
    def core(self) -> IntArray:
        """(n,) the core of every node."""
        return self.loaded.core

    def files(self, folder: Path) -> dict[str, Any]:
        """Return ``mapping``, ``graph``, ``machine``, ``chips`` and ``placement`` as options name them.

        What has no file gets one in ``folder``.

        Raises
        ------
        InputError : something cannot be written as a file
        """
        if self.named is not None:
            return self.named
        if self.answer is not None:
            run = self.answer.save(folder / FOLDER / "mapping")
            return {"mapping": run, "graph": None, "machine": None, "chips": None, "placement": None}
        assert self.source is not None
        stated = self.source.files(folder)
        path = folder / FOLDER / "mapping.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_mapping(path, self.loaded.graph, self.loaded.machine, self.core)
        return {"mapping": path, "placement": None} | {k: stated[k] for k in ("graph", "machine", "chips")}


def placed(
    mapping: MappingLike, graph: GraphLike | None, machine: MachineLike | None,
    chips: str | tuple[int, int] | None = None, placement: str | Path | None = None,
) -> Placed:  # fmt: skip
    """Return the mapping with what it belongs to.

    Raises
    ------
    InputError : anything wrong with these, or a mapping without a graph
    """
    if isinstance(mapping, MappingAnswer) and graph is None and machine is None:
        if mapping.core is None:
            raise InputError("no mapping was found", "mapping", "an answer with a mapping")
        problem = mapping.problem
        return Placed(_loaded(problem.graph, problem.machine, mapping.core), answer=mapping)
    if isinstance(mapping, str | Path) and all(isinstance(v, str | Path | None) for v in (graph, machine)):
        grid = grid_text(chips)
        named: dict[str, Any] = {
            "mapping": Path(mapping).resolve(), "graph": None if graph is None else Path(str(graph)).resolve(),
            "machine": machine_text(machine), "chips": grid,
            "placement": None if placement is None else Path(placement).resolve(),
        }  # fmt: skip
        return Placed(load_answer(AnswerOptions(**named)), named=named)
    source = given_source(graph, machine, chips)
    core = core_of(mapping, source.named, source.board)
    return Placed(_loaded(source.named.graph, source.board, core), source)


def _loaded(graph: Any, machine: Any, core: IntArray) -> Loaded:
    return Loaded(NOWHERE, graph, machine, core, None, Inputs(), False)
