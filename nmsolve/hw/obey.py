"""Which routes obey prohibited turns (M1.9): the machine's own, those of a named rule, any shortest ones."""

from __future__ import annotations

import numpy as np

from nmsolve.hw.detours import route_trees
from nmsolve.model.errors import InputError
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.turns import LETTERS, RULES, TurnSet, possible_turns, turn_set
from nmsolve.model.types import AnyArray, BoolArray


def follows_own_routes(problem: MappingProblem) -> bool:
    """True if the objective, a ceiling or a limit of the problem looks at the machine's own routes, not at distances alone."""
    aims = [problem.aim, *(OBJECTIVES[name] for name, _ in problem.ceilings)]
    trees = bool(problem.graph.multicast.any()) and any(aim.charges == "trees" for aim in aims)
    return trees or any(aim.links for aim in aims) or problem.table_limit is not None


def require_own_routes(problem: MappingProblem) -> None:
    """Raise InputError where the problem looks at the machine's own routes and these take turns that it prohibits."""
    if problem.turns is None or not follows_own_routes(problem):
        return
    wrong = own_turn(problem.machine, problem.turns)
    if wrong is not None:
        raise InputError(
            f"objective {problem.objective} follows the machine's own routes, which take the prohibited {wrong}",
            f"turns {problem.turns.name}", "hops, cut or connectivity with chosen routes, or --route joint",
        )  # fmt: skip


def own_turn(machine: Machine, turns: TurnSet) -> str | None:
    """Return a turn that the machine's own routes between two cores take and ``turns`` prohibits, in words; None: they obey."""
    if not machine.faulty_links:
        return rule_turn(machine, "xy", turns)
    taken = np.zeros((machine.size, 4, 4), bool)
    before, core = route_trees(machine).before, np.arange(machine.size)
    for p in np.flatnonzero(machine.usable):
        at = before[p].astype(np.int64)  # the route goes from p on to `back`, `at`, and the core
        back = at[at]
        turned = (at != core) & (back != at)
        a, b, c = back[turned], at[turned], core[turned]
        taken[b, _direction(machine, a, b), _direction(machine, b, c)] = True
    return _in_words(machine, taken & ~turns.allowed)


def rule_turn(machine: Machine, rule: str, turns: TurnSet) -> str | None:
    """Return a turn that routes by ``rule`` (of ``RULES``) may take and ``turns`` prohibits, in words; None: they obey."""
    may = turn_set(rule, machine).allowed & possible_turns(machine)
    return _in_words(machine, may & ~turns.allowed)


def obeying_rules(machine: Machine, turns: TurnSet) -> list[str]:
    """Return the rules with a name that obey a turn set."""
    return [rule for rule in RULES if rule_turn(machine, rule, turns) is None]


def _direction(machine: Machine, a: AnyArray, b: AnyArray) -> AnyArray:
    """Return directions of travel from cores to neighbours (0 east, 1 west, 2 south, 3 north), also over the edge of a torus."""
    down, right = b // machine.cols - a // machine.cols, b % machine.cols - a % machine.cols
    west, north = (
        np.isin(right, (-1, max(2, machine.cols - 1))),
        np.isin(down, (-1, max(2, machine.rows - 1))),
    )
    return np.where(down == 0, np.where(west, 1, 0), np.where(north, 3, 2))


def _in_words(machine: Machine, wrong: BoolArray) -> str | None:
    bad = np.argwhere(wrong)
    if not len(bad):
        return None
    core, before, after = bad[0].tolist()
    return f"turn {LETTERS[before]}{LETTERS[after]} in core {core} (row {core // machine.cols}, column {core % machine.cols})"
