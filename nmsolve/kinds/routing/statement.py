"""The routing problem that options state, the same for ``nmsolve route`` and what reads its reports."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

from nmsolve.kinds import values as opt
from nmsolve.kinds.loading import Loaded, load_answer
from nmsolve.kinds.options import AnswerOptions
from nmsolve.kinds.routing.options import RouteOptions

if TYPE_CHECKING:
    from nmsolve.model.machine import Machine
    from nmsolve.model.routing.problem import RoutingProblem
    from nmsolve.model.turns import TurnSet

#: What states no problem: where the mapping was, which ``verify`` is told, and how to search.
PLACES = ("mapping", "graph", "machine", "chips", "placement", "engines", "time_limit")


class RouteInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The options that state the problem, as in route-report.json, and those of the search that a later run takes over.

    How the graph is read is stated where it is not read as it is.
    """

    mapping: str
    graph: str | None = None
    machine: str | None = None
    chips: str | None = None
    placement: str | None = None
    pattern: bool | UnsetType = UNSET
    absolute: bool | UnsetType = UNSET
    nodes: str | UnsetType | None = UNSET
    multicast: bool | UnsetType = UNSET
    objective: str = RouteOptions.objective
    turns: str = RouteOptions.turns
    form: str = RouteOptions.form
    table_limit: int | None = None
    detour: int = 0
    channels: int = 1
    engines: str | None = None
    time_limit: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The objectives, in order of priority."""
        return tuple(opt.names(self.objective) or ())


@dataclass(frozen=True, eq=False)
class Given:
    """A stated problem with the mapping that its flows are of."""

    loaded: Loaded
    problem: RoutingProblem

    @property
    def names(self) -> dict[str, str]:
        """Names of graph and machine."""
        return {"graph": self.loaded.graph.name, "machine": self.loaded.machine.name}


def stated_inputs(o: AnswerOptions) -> RouteInputs:
    """Return the part of the options that states the problem, with paths as they are given."""
    return RouteInputs(mapping=str(o.mapping), **_stated(o))


def moved(inputs: RouteInputs, o: AnswerOptions) -> RouteInputs:
    """Return the inputs of a report, but for what options say of graph, machine, placement and objective."""
    return msgspec.structs.replace(inputs, **_stated(o))


def _stated(o: AnswerOptions) -> dict[str, Any]:
    names = [k for k in RouteInputs.__struct_fields__ if k not in ("mapping", "engines", "time_limit")]
    given = {k: v for k in names if (v := getattr(o, k, None)) is not None and v is not False}
    return {k: str(v) if isinstance(v, Path) else v for k, v in given.items()}


def mapping_options(inputs: RouteInputs) -> dict[str, Any]:
    """Return the options that name the mapping and what it belongs to."""
    told = msgspec.to_builtins(inputs)
    own = {f.name: told[f.name] for f in fields(AnswerOptions) if told.get(f.name) is not None}
    return own | {k: Path(own[k]) for k in ("mapping", "graph", "placement", "nodes") if k in own}


def state_problem(inputs: RouteInputs, memory: str | None = None) -> Given:
    """Load the mapping and state the problem of its flows; ``memory``: ``--memory``.

    Raises
    ------
    InputError : a wrong file, no graph or machine given, a rule or an objective that does not exist
    """
    return placed_problem(load_answer(AnswerOptions(**mapping_options(inputs)), memory), inputs)


def placed_problem(loaded: Loaded, inputs: RouteInputs) -> Given:
    """Return the problem of the flows of a mapping, by the rules and objectives of the inputs. InputError as above."""
    from nmsolve.model.routing.flows import flows_of
    from nmsolve.model.routing.problem import RoutingProblem

    flows = flows_of(loaded.graph, loaded.core, loaded.machine.size)
    problem = RoutingProblem(
        loaded.machine, flows, inputs.names, inputs.form, inputs.detour, inputs.table_limit,
        turns_option(inputs.turns, loaded.machine), inputs.channels,
    )  # fmt: skip
    return Given(loaded, problem)


def turns_option(text: str | None, machine: Machine) -> TurnSet | None:
    """Parse ``chosen`` or None -> None; anything that :func:`nmsolve.model.turns.turn_set` reads -> that turn set."""
    from nmsolve.model.turns import turn_set

    return None if text in (None, "chosen") else turn_set(text, machine)
