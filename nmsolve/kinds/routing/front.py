"""Points of fronts that are routes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds.in_order import PLAIN
from nmsolve.kinds.routing.check import file_checks, write_answer
from nmsolve.kinds.routing.proofs import RouteBounds
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.kinds.loading import Loaded
    from nmsolve.kinds.parts import CheckPart
    from nmsolve.kinds.routing.statement import Given
    from nmsolve.model.types import IntArray


@dataclass(frozen=True)
class RouteFront(RouteBounds):
    """Points are routes of the mapping in ``loaded``."""

    loaded: Loaded
    command, key, units = "route", "routes", PLAIN

    @property
    def title(self) -> str:
        """Graph and machine."""
        return f"routes of {self.loaded.graph.name} on {self.loaded.machine.name}"

    def about(self) -> dict[str, dict[str, str]]:
        """Flows, machine and rules."""
        return {"problem": {"name": self.title, "hash": self.problem.content_hash}}

    def write(self, path: Path, solution: IntArray) -> None:
        """Write ``solution`` (slots + channels,) as flow-routes.json."""
        from nmsolve.solvers.routing.api import chosen_routes

        write_answer(path, self.problem, chosen_routes(self.problem, solution))

    def write_beside(self, folder: Path) -> None:
        """Write nothing: the mapping has its own folder."""

    def read(self, path: Path, values: Mapping[str, float]) -> tuple[None, dict[str, float], list[str]]:
        """Return every check that routes get, and that they keep the rules of the front."""
        from nmsolve.hw.routing.values import routing_value
        from nmsolve.model.routing.files import read_flow_routes

        p = self.problem
        wrong = [f"{c.name}: {c.text}" for c in file_checks(self.loaded, path, values, p.turns) if not c.ok]
        file = read_flow_routes(path, p.machine)
        for name in ("form", "detour", "table_limit", "channels"):
            if getattr(file.problem, name) != getattr(p, name):
                wrong.append(f"{name} is {getattr(file.problem, name)}, the front's is {getattr(p, name)}")
        if wrong or file.numbering is None:
            return None, {}, wrong or ["no numbers of channels"]
        return None, {k: routing_value(file.problem, file.routes, file.numbering, k) for k in p.objective}, []

    def file_check(self, path: Path, solution: None, unread: Collection[str]) -> CheckPart:
        """The file written again with its own routes."""
        from nmsolve.kinds.routing.rewritten import routes_check
        from nmsolve.model.routing.files import read_flow_routes

        return routes_check(path, read_flow_routes(path, self.problem.machine), self.problem)


def route_scores(given: Given, path: Path) -> dict[str, float]:
    """Return every objective of the routes in a file, by its own rules. InputError if they break one."""
    from nmsolve.model.routing.files import read_flow_routes
    from nmsolve.model.routing.objectives import ROUTING_OBJECTIVES

    machine = given.loaded.machine
    problem = replace(read_flow_routes(path, machine).problem, objective=tuple(ROUTING_OBJECTIVES))
    _, scores, wrong = RouteFront(problem, given.loaded).read(path, {})
    if wrong:
        raise InputError(f"the routes break a rule: {wrong[0]}", str(path), "legal ones")
    return scores
