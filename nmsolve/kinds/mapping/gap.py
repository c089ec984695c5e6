"""``nmsolve gap``: how far an answer, of nmsolve or of any tool, can be from the best one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds import values as opt
from nmsolve.kinds.loading import Loaded, given_reading, load_answer, load_certificates
from nmsolve.kinds.mapping.given import Given
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.mapping.routes import AFTER
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.verbs import GapOptions
    from nmsolve.model.bound import Bound
    from nmsolve.model.mapping.problem import MappingProblem

#: Routes that belong to the answer of a run: bounds here are for the machine's own routes.
ROUTED = (*AFTER, "joint")


def stated_by(o: GapOptions) -> tuple[MapOptions, Given, dict[str, Any], list[Bound]]:
    """Return what options of ``nmsolve gap`` ask: those of a run, the problem with the mapping, the inputs of the report, and
    bounds from before.

    Raises
    ------
    InputError : anything wrong with the input, or the answer breaks a rule
    """
    from nmsolve.solvers.bounding import require_feasible
    from nmsolve.solvers.mapping.task import MappingTask

    loaded = load_answer(o, o.memory)
    problem = gap_problem(o, loaded)
    require_feasible(MappingTask(problem, loaded.core), problem.graph.name)
    known = _known(o, loaded, problem)
    if known:
        best = max((b.value for b in known if b.scope == "full"), default=None)
        print(f"known before: {counted(len(known), 'bound')}, the best {number(best)}", file=sys.stderr)
    inputs = _inputs(o, loaded, problem)
    names = ("time_limit", "gap", "seed", "workers", "cluster", "engines", "memory", "out", "json")
    options = MapOptions(
        Path(inputs["graph"]), nodes=o.nodes, constraints=o.constraints, warm_start=o.mapping,
        prohibit_turns=inputs["prohibit_turns"], **{name: getattr(o, name) for name in names},
    )  # fmt: skip
    return options, Given(problem, options, loaded.core), inputs, known


def gap_problem(o: GapOptions, loaded: Loaded) -> MappingProblem:
    """Return the problem as the options state it, else as the report beside the mapping does."""
    from dataclasses import replace

    from nmsolve.hw.obey import require_own_routes
    from nmsolve.model.mapping.problem import tell_unicast
    from nmsolve.solvers.mapping.api import make_problem

    report = loaded.report or {}
    objective = o.objective or str(report.get("objective_name") or "hops")
    problem = make_problem(
        loaded.graph, loaded.machine, objective=objective, constraints=loaded.constraints(o.constraints),
        balance=o.balance,
    )  # fmt: skip
    tell_unicast([objective], loaded.graph)
    turns = None if loaded.inputs.route in ROUTED else loaded.turns()
    problem = replace(problem, node_limit=loaded.node_limit(o.balance), terms=loaded.terms(), turns=turns)
    require_own_routes(problem)
    return problem


def _known(o: GapOptions, loaded: Loaded, problem: MappingProblem) -> list[Bound]:
    """Return bounds from before: those beside the mapping, and those of an earlier run into the same folder."""
    beside = [loaded.folder] if loaded.report is not None else []
    return known_in([*beside, o.out], problem)


def known_in(folders: Sequence[Path], problem: MappingProblem) -> list[Bound]:
    """Return the bounds of this problem in the certificates of ``folders``, as far as there are any."""
    known: list[Bound] = []
    for folder in dict.fromkeys(f.resolve() for f in folders):
        path = folder / "certificates.json"
        if path.exists():
            about, bounds = load_certificates(path)
            if about == problem.hash:
                known += bounds
    return known


def _inputs(o: GapOptions, loaded: Loaded, problem: MappingProblem) -> dict[str, Any]:
    """Return what ``verify`` needs to load the problem again: the options, else the paths of the report beside the mapping."""
    before = loaded.inputs
    return {
        "graph": opt.whole(o.graph) or before.graph,
        "machine": opt.text_or_file(o.machine or before.machine),
        "chips": o.chips or before.chips,
        **given_reading(o, before).options(),
        "constraints": opt.whole(o.constraints) or before.constraints,
        "balance": o.balance,
        "core_memory": before.core_memory,
        "node_limit": problem.node_limit,
        "occupied": list(before.occupied),
        "mapping": opt.whole(o.mapping),
        "placement": opt.whole(o.placement),
        "time_limit": opt.seconds(o.time_limit),
        "gap": opt.fraction(o.gap),
        "workers": o.workers,
        "engines": o.engines,
        "prohibit_turns": None if before.route in ROUTED else before.prohibit_turns,
        "reward": before.reward,
    }
