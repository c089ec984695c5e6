"""``--prohibit-turns``: the routes of the answer obey it, or the run is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmsolve.kinds.mapping.given import CHOSEN
from nmsolve.kinds.mapping.routes import AFTER
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.turns import TurnSet

#: Target cores whose routes are looked at together.
TOGETHER = 256


def with_turns(problem: MappingProblem, spec: str | None, route: str, names: Iterable[str]) -> MappingProblem:
    """Return the problem with the turns that ``spec`` prohibits (None: none).

    Parameters
    ----------
    route : ``given``, ``joint``, or what is done after the mapping (:data:`nmsolve.kinds.mapping.routes.AFTER`)
    names : all objectives of the run

    Raises
    ------
    InputError : ``spec`` is wrong, or the routes asked for, or those that an objective looks at, take prohibited turns
    """
    if spec is None:
        return problem
    from nmsolve.hw.obey import own_turn, require_own_routes, rule_turn
    from nmsolve.model.turns import turn_set

    machine = problem.machine
    if machine.distance_matrix is not None:
        raise InputError("turns on a machine given by a distance matrix", "--prohibit-turns", "a mesh")
    turns = turn_set(spec, machine)
    problem = replace(problem, turns=turns)
    if route == "joint":
        return problem
    if route == CHOSEN:
        _require_shortest(problem, turns)
    else:
        wrong = own_turn(machine, turns) if route == "given" else rule_turn(machine, route, turns)
        if wrong is not None:
            whose = "the machine's own routes" if route == "given" else f"routes by {route}"
            raise InputError(
                f"{whose} take the prohibited {wrong}", "--prohibit-turns", _that_obey(problem, turns)
            )
    for name in names:
        require_own_routes(replace(problem, objective=name, ceilings=()))
    return problem


def resolved(spec: str | None) -> str | None:
    """Return the option as a report keeps it: a file by its whole path."""
    return str(Path(spec).resolve()) if spec is not None and spec.endswith(".json") else spec


def own_turns(spec: str | None, route: str | None) -> str | None:
    """The turns that the machine's own (or joint) routes are held against: none where the answer's routes came after it."""
    return None if route in AFTER else spec


def _that_obey(problem: MappingProblem, turns: TurnSet) -> str:
    """Return routes that do obey, as ``--route`` names them."""
    from nmsolve.hw.obey import obeying_rules, own_turn

    names = [f"--route {rule}" for rule in obeying_rules(problem.machine, turns)]
    if own_turn(problem.machine, turns) is None:
        names.insert(0, "--route given")
    return ", ".join([*names, f"--route {CHOSEN}", "--route joint"])


def _require_shortest(problem: MappingProblem, turns: TurnSet) -> None:
    """Require a shortest route between any two usable cores, as chosen routes are shortest ones."""
    from nmsolve.hw.obey import obeying_rules
    from nmsolve.model.routing.flows import Flows
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.solvers.routing.fit import require_routes

    machine = problem.machine
    if obeying_rules(machine, turns) and not machine.faulty_links and not machine.torus:
        return  # every rule with a name leaves a shortest route
    cores = np.flatnonzero(machine.usable)
    for some in np.array_split(cores, -(-len(cores) // TOGETHER)):
        source, target = (a.ravel() for a in np.meshgrid(cores, some, indexing="ij"))
        apart = source != target
        source, target = source[apart], target[apart]
        flows = Flows(
            source.astype(np.int32), np.arange(len(source) + 1), target.astype(np.int32), np.ones(len(source))
        )
        try:
            require_routes(RoutingProblem(machine, flows, turns=turns))
        except InputError as error:
            raise InputError(
                f"{error.what}: chosen routes must be shortest ones",
                "--prohibit-turns",
                "turns that leave a shortest route, or --route joint",
            ) from None
