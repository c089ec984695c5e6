"""The problem that the options of ``nmsolve map`` state, and options that do not go together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nmsolve.kinds import values as opt
from nmsolve.kinds.answer import hint
from nmsolve.kinds.loading import given_reading, instance
from nmsolve.kinds.mapping.given import Given
from nmsolve.kinds.mapping.routes import require_route
from nmsolve.kinds.mapping.turns import resolved, with_turns
from nmsolve.kinds.pareto import require_front
from nmsolve.model.errors import DoesNotFitError, InputError, doubtful
from nmsolve.model.mapping.problem import tell_unicast
from nmsolve.solvers.mapping.multi_objective import objective_names

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import MapOptions
    from nmsolve.model.engine import Engine
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.mapping.migration import Migration
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: A placeholder for a ceiling that is not known yet.
_ANY_VALUE = 1e30
#: The objective where neither the options nor the machine say more.
PLAIN, TIMED = "hops", "step-time"


def objectives_of(o: MapOptions) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the objectives in their order, and those of the front, if one is asked for.

    Raises
    ------
    InputError : an unknown objective, or options that do not go together
    """
    require_route(o)
    names = objective_names(o.objective or PLAIN)
    front = None if o.pareto is None else require_front(o, objective_names(o.pareto, "--pareto"))
    many = front is not None or len(names) > 1
    if o.route == "joint" and many:
        raise InputError("several objectives with free routes", "--route", "given, or one objective")
    if o.method is not None and (many or o.route == "joint"):
        raise InputError(
            "a published method with several objectives or free routes",
            "--method",
            "one objective, given routes",
        )
    return names, front


def with_objective(
    o: MapOptions, graph: LogicGraph, machine: Machine, constraints: Sequence[SideConstraint]
) -> MapOptions:  # fmt: skip
    """Return the options with an objective: without ``--objective`` how long a step takes, where the machine has the figures.

    Fewest hops where it has not, where the step time takes no part of the problem (an undirected graph or one on disk, nodes kept
    together, a migration budget, routes of another choice, a limit of it), and for what a front is not about.
    """
    from nmsolve.hw.step_time import has_step_time

    if o.objective is not None:
        return o
    plain = (
        o.pareto is not None or o.route != "given" or o.migration_budget is not None or TIMED in limits_of(o)
    )
    plain = plain or graph.on_disk or any(c.kind == "together" for c in constraints)
    return replace(o, objective=PLAIN if plain or not has_step_time(graph, machine) else TIMED)


def _chosen_words(asked: MapOptions, o: MapOptions, machine: Machine) -> tuple[str, ...]:
    """Return what is said where the machine chose the objective."""
    if asked.objective is not None or o.objective == PLAIN:
        return ()
    why = f"{machine.name} has the figures of how long a step takes"
    return (f"Objective {o.objective}: {why}; --objective takes another, such as hops.",)


def state_map(
    o: MapOptions, graph: LogicGraph, machine: Machine, constraints: Sequence[SideConstraint],
    start: IntArray | None, engines: Sequence[str | Engine] | None,
) -> MappingProblem:  # fmt: skip
    """Return the problem of graph and machine under the options.

    Parameters
    ----------
    start : (n,) the mapping that a migration budget counts from
    engines : those asked for, or None

    Raises
    ------
    InputError, DoesNotFitError : options that do not fit the problem; a graph that cannot fit, shown by counting
    """
    from nmsolve.hw.magnitude import require_scale
    from nmsolve.solvers.mapping.api import make_problem

    if o.mip_solver != "highs":
        from nmsolve.solvers.search.mip import available

        if not available(o.mip_solver):
            what = f"Pyomo finds no MIP solver called {o.mip_solver!r}"
            raise InputError(what, "--mip-solver", "highs, or an installed one")
    if o.route not in ("given", "joint") and machine.distance_matrix is not None:
        raise InputError("routes on a machine given by a distance matrix", "--route", "given")
    migration = _migration(o, start)
    try:
        problem = make_problem(
            graph, machine, objective=objective_names(o.objective or PLAIN)[0], constraints=constraints, balance=o.balance,
            migration=migration,
        )  # fmt: skip
    except DoesNotFitError as error:
        more = "" if "migration budget" in error.what else hint()
        raise DoesNotFitError(error.what + more, error.where) from None
    if o.balance is not None and o.balance > 1:
        what = f"balance {o.balance:g} lets cores hold {1 + o.balance:g} times an even share of nodes"
        doubtful(what, "--balance", f"{o.balance / 100:g} for {o.balance:g} %")
    _warn_of_sizes(problem)
    names = objective_names(o.pareto or o.objective or PLAIN)
    problem = _weighed(o, _limited(o, problem, names), names)
    tell_unicast((*names, *dict(problem.ceilings)), graph)
    for name in (
        *names,
        *dict(problem.ceilings),
    ):  # one that comes later must not lose the answers of those before
        require_scale(replace(problem, objective=name))
    if engines is not None and len(names) > 1:
        _require_engines(o, problem, names, engines)
    if problem.graph.on_disk and len(names) > 1:
        raise InputError(
            "several objectives on a graph on disk", "--memory", "a larger --memory, or one objective"
        )
    return with_turns(problem, o.prohibit_turns, o.route, names)


def limits_of(o: MapOptions) -> dict[str, float]:
    """Return the values of ``--limit`` by objective, in its unit."""
    from nmsolve.model.mapping.objectives import OBJECTIVES

    return opt.limits(o.limit, {name: aim.unit for name, aim in OBJECTIVES.items() if not aim.alone})


def _weighed(o: MapOptions, problem: MappingProblem, names: tuple[str, ...]) -> MappingProblem:
    """Return the problem with the weights of ``--reward``."""
    from nmsolve.model.mapping.reward_terms import reward_terms

    if o.reward is not None and "reward" not in names:
        raise InputError(
            f"weights of the reward with the objective {','.join(names)}", "--reward", "--objective reward"
        )
    return replace(problem, terms=reward_terms(o.reward, problem.machine))


def _limited(o: MapOptions, problem: MappingProblem, names: tuple[str, ...]) -> MappingProblem:
    """Return the problem with the ceilings of ``--limit``."""
    limits = limits_of(o)
    both = [name for name in limits if name in names]
    if both:
        raise InputError(f"{both[0]} is an objective and has a limit", "--limit", "one of the two")
    if limits and o.route == "joint":
        raise InputError("limits with free routes", "--route", "given")
    if limits and problem.graph.on_disk:
        raise InputError("limits on a graph on disk", "--limit", "a larger --memory, or no limits")
    limited = replace(problem, ceilings=tuple(limits.items()))
    if "step-time" in limits:
        from nmsolve.hw.magnitude import require_scale
        from nmsolve.solvers.mapping.bounds.step_load import shortest_step

        require_scale(limited)
        least = shortest_step(problem)
        if least > limits["step-time"]:
            what = f"no step is shorter than {least:,.0f} ns, the limit is {limits['step-time']:,.0f}"
            raise DoesNotFitError(f"{what}: all cores together have that much to do", "--limit")
    return limited


def _require_engines(
    o: MapOptions, problem: MappingProblem, names: tuple[str, ...], engines: Sequence[Any]
) -> None:
    """Refuse, before the search, engines none of which takes a later objective while earlier ones are held."""
    from nmsolve.model.mapping.reduce import merge_together
    from nmsolve.solvers.mapping.auto import chosen

    for k, name in enumerate(names):
        held = names[:k] if o.pareto is None else [other for other in names if other != name]
        ceilings = (*problem.ceilings, *((other, _ANY_VALUE) for other in held))
        stage = replace(problem, objective=name, ceilings=ceilings)
        if "auto" not in engines:
            chosen(merge_together(stage).reduced, engines, lambda *_: None)


def _warn_of_sizes(problem: MappingProblem) -> None:
    """Say that the limit of nodes per core is all that evens out sizes that differ; synapses, which readers count, aside."""
    graph, machine, limit = problem.graph, problem.machine, problem.node_limit
    if limit is None or limit == 1:
        return
    for name, sizes in zip(graph.resources, graph.sizes.T, strict=True):
        most, total = int(sizes.max()), int(sizes.sum())
        if name in machine.capacity or name == "synapses" or most == sizes.min():
            continue
        share = max(most, math.ceil(1.03 * total / int(machine.usable.sum())))
        doubtful(
            f"nodes are limited to {limit} per core, {name} are not, though nodes have {sizes.min()} to {most} of them",
            machine.name,
            f"{name} = {share} (1.03 times an even share) under [capacity] of a machine.toml",
        )


def _migration(o: MapOptions, start: IntArray | None) -> Migration | None:
    from nmsolve.model.mapping.migration import Migration

    if o.migration_budget is None:
        return None
    if start is None:
        raise InputError(
            "a migration budget needs a mapping to stay close to", "--migration-budget", "--warm-start FILE"
        )
    return Migration.of(start, o.migration_budget)


def load_map(o: MapOptions) -> Given:
    """Read the files that the options name, and state the problem.

    Raises
    ------
    InputError : a wrong file, or options that do not belong together
    DoesNotFitError : no mapping exists, shown by counting
    """
    from nmsolve.model.mapping.any_file import read_any_mapping
    from nmsolve.model.mapping.constraints_file import load_constraints

    memory, reading = opt.size_in_bytes(o.memory), given_reading(o)
    graph, machine = instance(o.graph, o.machine, o.chips, memory, o.occupied or (), reading)
    for run in o.occupied or ():
        if o.out.resolve() in (run.resolve(), run.resolve().parent):
            raise InputError("the run would overwrite an earlier one", str(o.out), "another folder for --out")
    constraints = () if o.constraints is None else load_constraints(o.constraints, graph, machine)
    start = None
    if o.warm_start is not None:
        first = o.warm_start / "mapping.json" if o.warm_start.is_dir() else o.warm_start
        start = read_any_mapping(first, graph, machine, other_faults=True)
    chosen = with_objective(o, graph, machine, constraints)
    problem = state_map(chosen, graph, machine, constraints, start, opt.names(o.engines))
    return Given(problem, chosen, start, _chosen_words(o, chosen, machine))


def map_inputs(o: MapOptions, problem: MappingProblem) -> dict[str, Any]:
    """Return what ``verify`` needs to load the same problem again."""
    return {
        "graph": opt.whole(o.graph),
        "machine": opt.text_or_file(o.machine),
        "chips": o.chips,
        **given_reading(o).options(),
        "constraints": opt.whole(o.constraints),
        "balance": o.balance,
        "node_limit": problem.node_limit,
        "occupied": [opt.whole(run) for run in o.occupied or ()],
        "warm_start": opt.whole(o.warm_start),
        "migration_budget": o.migration_budget,
        "reference": None if problem.migration is None else problem.migration.reference_hash,
        "reference_file": None if problem.migration is None else str((o.out / "reference.json").resolve()),
        "time_limit": opt.seconds(o.time_limit),
        "gap": opt.fraction(o.gap),
        "workers": o.workers,
        "engines": o.engines,
        "prohibit_turns": resolved(o.prohibit_turns),
        "reward": opt.text_or_file(o.reward),
        "route": o.route,
        "limits": limits_of(o),
        "objectives": list(objective_names(o.pareto or o.objective or PLAIN)),
    }
