"""Mappings: a graph and a machine in; a core for every node, a proof and a page out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nmsolve.kinds.kind import Explainable, Kind, Pictures, Scores, plain_scores
from nmsolve.kinds.mapping.found import MAP_FILES
from nmsolve.kinds.mapping.options import MapOptions

if TYPE_CHECKING:
    from nmsolve.kinds.front import FrontKind
    from nmsolve.kinds.kind import Start
    from nmsolve.kinds.mapping.options import (
        DrawOptions,
        ExplainOptions,
        GapOptions,
        ScoreOptions,
        VerifyOptions,
    )
    from nmsolve.kinds.mapping.report import CheckPart
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.types import IntArray


class MapKind(Kind):
    """Nodes on cores."""

    name, noun, options = "map", "mapping", MapOptions
    method_tables = ("check.mapping.recheck:METHODS",)
    answer, report, files = "mapping.json", "report.json", MAP_FILES

    def run(self, o: MapOptions, start: Start | None = None) -> int:
        """Run ``nmsolve map``."""
        from nmsolve.kinds.mapping.run import run_map

        return run_map(o, start)

    def answer_of(self, path: Path, source: Path | None = None) -> Path | None:
        """Return the file, or that in the folder; any file may hold a mapping."""
        return path / self.answer if (path / self.answer).exists() else path

    def again(self, inputs: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return objectives and limits as options have them, and where a migration budget counts from."""
        limits = msgspec.convert(inputs.get("limits", {}), dict[str, float])
        budget = inputs.get("migration_budget")
        return {
            "objective": ",".join(msgspec.convert(inputs.get("objectives", ["hops"]), list[str])),
            "limit": [f"{k}={v!r}" for k, v in limits.items()] or None,
            "warm_start": None if budget is None else inputs.get("reference_file"),
            "gap": None,
        }

    def gap(self, path: Path, o: GapOptions) -> int:
        """Raise the bound."""
        from nmsolve.kinds.mapping.gap import gap_of_mapping

        return gap_of_mapping(o)

    def verify(self, path: Path, o: VerifyOptions) -> list[CheckPart]:
        """Return every check, also of routes beside it."""
        from nmsolve.kinds.mapping.check import verify_mapping

        return verify_mapping(o)

    def score(self, path: Path, o: ScoreOptions) -> Scores:
        """Return every objective of mappings."""
        from nmsolve.hw.scores import score
        from nmsolve.kinds.loading import load_answer

        loaded = load_answer(o, o.memory)
        scores = score(loaded.graph, loaded.machine, loaded.core)
        return plain_scores({"graph": loaded.graph.name, "machine": loaded.machine.name}, scores)

    def pictures(self, path: Path, o: DrawOptions) -> Pictures:
        """Return ``cores``, ``resources`` and ``links``."""
        from nmsolve.kinds.loading import load_answer
        from nmsolve.kinds.mapping.pictures import mapping_pictures

        loaded = load_answer(o)
        return mapping_pictures(loaded.problem(), loaded.core)

    def front_of(self, path: Path, objectives: Sequence[str], first: str, o: VerifyOptions) -> FrontKind:
        """Return mapping.json per point."""
        from nmsolve.kinds.loading import load_answer
        from nmsolve.kinds.mapping.front import MapFront
        from nmsolve.model.mapping.problem import MappingProblem

        given = load_answer(replace(o, mapping=path.parent / first, placement=None))
        problem = MappingProblem(
            given.graph, given.machine, objectives[0], given.constraints(o.constraints), given.node_limit(o.balance),
            given.migration(), turns=given.turns(),
        )  # fmt: skip
        return MapFront(problem, o.prohibit_turns or given.inputs.prohibit_turns)

    def front_inputs(
        self, path: Path, inputs: dict[str, Any], objectives: tuple[str, str]
    ) -> tuple[dict[str, Any], Sequence[str]]:
        """Return those that state the problem, and how it is searched."""
        from nmsolve.kinds.loading import stated_inputs
        from nmsolve.kinds.mapping.check import MAP_OPTIONS
        from nmsolve.kinds.rewritten import inputs_again

        names = {"objectives": list(objectives)} if "objectives" in inputs else {}
        stated = stated_inputs(path)
        known = {} if stated.route in ("given", None) else {"route": "given"}  # fronts have no other
        return inputs_again({"inputs": inputs}, stated, MAP_OPTIONS) | names | known, MAP_OPTIONS

    def explained(self, o: ExplainOptions) -> Explainable:
        """Return capacities and side constraints."""
        from nmsolve.kinds.loading import given_reading, instance
        from nmsolve.model.mapping.constraints_file import load_constraints

        graph, machine = instance(o.graph, o.machine, o.chips, None, o.occupied or (), given_reading(o))
        constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
        return explainable(graph, machine, constraints, o.balance)


def explainable(
    graph: LogicGraph, machine: Machine, constraints: Sequence[SideConstraint], balance: float | None
) -> Explainable:
    """Return the limits of a problem, whether it can be solved or not."""
    from nmsolve.model.mapping.files import write_mapping
    from nmsolve.model.mapping.problem import MappingProblem, default_node_limit
    from nmsolve.solvers.mapping.explain import MappingLimits

    limit = default_node_limit(graph, machine, balance) if machine.usable.any() else None
    limits = MappingLimits(MappingProblem(graph, machine, "cut", tuple(constraints), limit))

    def found(core: IntArray) -> str:
        return f"a mapping onto {len(set(core.tolist()))} cores"

    def write(path: Path, core: IntArray) -> None:
        write_mapping(path, graph, machine, core)

    return Explainable(
        limits, {"graph": graph.name, "machine": machine.name}, f"{graph.name} on {machine.name}", "mapped",
        "mapping", "program, node by node,", found, write,
    )  # fmt: skip


KIND = MapKind()
