"""Which engines run on a problem, in which order and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from nmsolve.model.engine import Engine
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.branch_bound.few_moves import too_many_moves
from nmsolve.solvers.mapping.registry import REGISTRY
from nmsolve.solvers.search.entries import steps_for
from nmsolve.solvers.search.portfolio import CHILD_LEAST, Step

#: Called with (engine name, status with the reason) for every engine that was considered and left out.
Refused = Callable[[str, str], None]


#: The heuristics where many nodes share a core, unless more is known of the network (:func:`_of_pairs`).
MULTILEVEL = {"multilevel": 1.0}
#: Up to this many nodes and cores, exact engines have a chance to prove something.
EXACT_NODES, EXACT_CORES = 40, 64
#: Up to this many nodes proofs take seconds: nothing else gets more than QUICK seconds before.
EASY_NODES, QUICK = 16, 0.5
#: On larger small problems, part of the time that all heuristics together and every bound may use before the exact engines.
SMALL_MAPPINGS, SMALL_BOUND = 0.25, 0.1
#: Share of the machine's room that is used from which, and up to which, the bound ``joint`` is the better and the worse.
FULL, LOOSE = 0.75, 0.5
#: First run of a bound, and of all heuristics together, as parts of the time limit.
FIRST_BOUND, FIRST_MAPPINGS = 0.05, 0.5
#: A bound gets this many times the seconds that it needs before it says anything, up to a part of the time limit. Linear
#: algebra cannot be interrupted: one that needs more is not begun. Neighbour counting says little where cores hold many nodes.
ENOUGH, MOST, MOST_OF = 2.0, 0.45, {"star": 0.05, "projection": 0.2}
#: On disk nothing takes turns: what every engine gets of the time, one after the other, as all memory is one engine's at a time.
STORED = {"star": 0.05, "external": 0.5, "joint": 0.45, "parts": 0.45}
#: CPU seconds per connection, and per connection and vector, that a bound from disk needs before it says anything.
PASSES, VECTOR = 3e-6, 8e-8
#: From this many nodes, or connections, on, tables of what every node costs everywhere take longer to fill than the search.
LARGE_NODES, LARGE_EDGES = 200_000, 20_000_000
#: They are too large for `multilevel`, too, from this many entries on, one for every node and row or column, where nodes have
#: from CROWDED neighbours on (below; up to SAMPLED, where it searches samples) and cores hold MANY nodes: snn100k on 16x16 cores.
ENTRIES, SAMPLED, MANY = 3_000_000, 128.0, 100
#: Neighbours per node from which paths through the network say less than eigenvalues; with several nodes per core, up to FEW
#: neighbours and from MANY_NODES nodes on, they say more.
CROWDED, FEW, MANY_NODES = 24.0, 13.0, 2000
#: A network is local if two steps lead to less than this part of as many nodes as there are ways, as seen from this many nodes.
#: From SEVERAL_NODES on paths then say more than eigenvalues: on geometric, layered and community networks, not on random ones.
LOCAL, SEEN, SEVERAL_NODES = 0.6, 64, 200


def with_automatic(
    problem: MappingProblem, names: Sequence[str | Engine], seconds: float, workers: int, refused: Refused
) -> list[Step]:
    """Return the plan of ``--engines auto,...``: engines that automatic mode would not run, then automatic mode.

    Methods that end by themselves get what they need up to a fair share of the time, for cut short they leave nothing; others
    are brief.

    Raises
    ------
    InputError : as of :func:`chosen` and :func:`automatic`
    """
    steps = automatic(problem, seconds, workers, refused)
    running = {step.engine.name for step in steps}
    more = [one for one in names if one != "auto" and one not in running]
    brief, fair = FIRST_BOUND * seconds, seconds / (1 + len(more))
    own = chosen(problem, more, refused) if more else []
    ends = {name for name, entry in REGISTRY.items() if entry.ends}
    return [*(replace(step, first=fair if step.engine.name in ends else brief) for step in own), *steps]


def chosen(problem: MappingProblem, names: Sequence[str | Engine], refused: Refused) -> list[Step]:
    """Return the plan of ``--engines``: the named engines in this order with equal shares.

    Raises
    ------
    InputError : no name, an unknown one, or every engine refuses the problem
    """
    if not names:
        raise InputError("no engine is given", "--engines", "one of " + ", ".join(REGISTRY))
    steps, refusals = steps_for(REGISTRY, problem, names)
    for name, reason in refusals.items():
        refused(name, f"refused: {reason}")
    if not steps:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
        raise InputError("every chosen engine refuses: " + reasons, "--engines", "other engines")
    return steps


def automatic(problem: MappingProblem, seconds: float, workers: int, refused: Refused) -> list[Step]:
    """Return the plan of automatic mode: the cheapest bounds, heuristics and all other bounds briefly, then exact engines where
    they have a chance; what they leave goes where it brings most (:mod:`nmsolve.solvers.search.race`).

    On small problems heuristics and bounds are brief (EASY_NODES, SMALL_MAPPINGS) and the exact engines get the rest. With
    several workers the heuristics start first, and the bounds beside them. ``seconds`` is the time limit. A graph that
    is on disk gets the engines that read it block by block.

    Raises
    ------
    InputError : the graph is on disk, and no engine that finds mappings takes the problem
    """
    few = problem.free_nodes <= EXACT_NODES and problem.cores <= EXACT_CORES and not problem.graph.on_disk
    small = few or (problem.limits_moves and too_many_moves(problem) is None)
    heuristics, plain, aimed = _heuristics(problem), *_bounds(problem)
    combined = 0.0
    if heuristics == MULTILEVEL:
        heuristics, combined = _of_pairs(problem, seconds)
    # Bounds may need long for their first value, and estimates of that fail: only the cheapest come before a mapping.
    cheap = [name for name in plain if name == "star" and workers == 1]
    order = [*cheap, *heuristics, *(name for name in plain if name not in cheap), *aimed]
    usual = STORED if problem.graph.on_disk else heuristics
    shares = {name: usual.get(name, 1.0) for name in order} | (_exact(problem) if small else {})
    steps, refusals = steps_for(REGISTRY, problem, None, shares=shares)
    late = {name: _too_slow(name, problem, seconds) or outdone(name, problem) for name in shares}
    runs = [name for name in shares if late[name] is None and name not in refusals]
    for name in _behind_spread(problem) if "spread" in runs else ():
        if late.get(name, "") is None:
            late[name] = "the network is sparse and local, where the bound `spread` is better"
            runs = [other for other in runs if other != name]
    if "split" in runs:
        late["projection"] = late["projection"] or "the bound `split` is better"
    for name in shares:
        if name in refusals or late[name] is not None:
            refused(name, f"refused: {refusals[name]}" if name in refusals else f"not run: {late[name]}")
    if problem.graph.on_disk and "external" in refusals:
        raise InputError(
            f"the graph is on disk; external: {refusals['external']}",
            problem.graph.name,
            "more --memory, or another problem",
        )
    steps = [step for step in steps if late[step.engine.name] is None]
    if "multilevel" in heuristics:
        steps = [_multilevel(step, combined) if step.engine.name == "multilevel" else step for step in steps]
    if problem.graph.on_disk:  # in this process, with all threads: its memory is what the budget leaves
        return [replace(step, threads=True) for step in steps]
    first = _first_runs([step.engine.name for step in steps], heuristics, problem, seconds, small)
    # A brief step is worth no process of its own; a process is worth no brief step.
    least = CHILD_LEAST if workers > 1 and not small else 0.0
    return [
        replace(step, first=max(first[name], least), quick=step.quick or small)
        if (name := step.engine.name) in first
        else step
        for step in steps
    ]


def _first_runs(
    names: Sequence[str],
    heuristics: Mapping[str, float],
    problem: MappingProblem,
    seconds: float,
    small: bool,
) -> dict[str, float]:
    """Seconds of the first run of all but exact engines; heuristics with no bound to race with have all the time at once."""
    bounds = [name for name in names if name in chain(*_bounds(problem))]
    finders = [name for name in names if name in heuristics]
    whole = sum(heuristics[name] for name in finders)
    mappings = (SMALL_MAPPINGS if small else FIRST_MAPPINGS) * seconds
    first = {name: heuristics[name] / whole * mappings for name in finders}
    if not small and bounds in ([], ["star"]):
        first = dict.fromkeys(finders, math.inf)
    part = SMALL_BOUND if small else FIRST_BOUND
    for name in bounds:
        enough = min(ENOUGH * least_seconds(name, problem), MOST_OF.get(name, MOST) * seconds)
        first[name] = max(part * seconds, enough)
    brief = first if problem.free_nodes <= EASY_NODES else _bounds(problem)[0]
    return {name: min(span, QUICK) if small and name in brief else span for name, span in first.items()}


def _bounds(problem: MappingProblem) -> tuple[list[str], list[str]]:
    """Return the bounds for the kind of problem: those that need no mapping, and those that aim at the best one."""
    if problem.graph.on_disk:
        if problem.one_per_core or problem.uses_links:
            return ["star"], []
        return ["star"], ["parts"] if problem.uses_nets else ["joint", "parts"]
    plain = ["star", "projection"] if problem.one_per_core else ["star", "parts", "joint"]
    if problem.objective == "reward":
        return plain, ["exchange"]
    if problem.aim.charges == "time":
        return [], ["step-load", "step-ceiling"] if problem.ceilings else ["step-load"]
    if problem.aim.charges == "power":
        return [], ["step-power"]
    lent = ["step-ceiling"] if problem.times_steps else []
    if problem.uses_links:
        return plain, ["link-load"]
    if problem.uses_nets:  # tree-parts is the stronger one of the kind of parts
        return ["star"], ["tree-parts", "slots", "cover", "spread", *lent]
    few = ["split", "spread"] if problem.one_per_core else ["slots", "cover", "spread"]
    return plain, [*few, *lent]


def _exact(problem: MappingProblem) -> dict[str, float]:
    """Return the exact engines with their shares; beyond EASY_NODES with one node per core CP-SAT proves nothing."""
    if problem.one_per_core and problem.free_nodes > EASY_NODES:
        return {"branch-bound": 0.9, "cpsat": 0.1}
    return {"branch-bound": 0.7, "cpsat": 0.3}


def least_seconds(name: str, problem: MappingProblem) -> float:
    """CPU seconds a bound needs before it says anything, as measured on one core; 0 for those that need none."""
    n, m, cores = problem.n, problem.graph.m, problem.cores
    if name == "star" and not problem.graph.on_disk:
        return 6e-7 * m
    if name == "projection":
        return 1.6e-9 * cores**3
    if name == "split":
        return 1e-8 * cores**3
    if problem.graph.on_disk:
        return (PASSES + VECTOR * min(cores, 24)) * (m + 20 * n) if name in ("joint", "parts") else 0.0
    if name == "parts":
        return 1.6e-7 * (m + 20 * n) * min(-(-n // _room(problem)) + 8, 48, n)
    if name == "spread":
        return 1e-5 * (m + 20 * n)
    if name == "tree-parts":
        return 4e-7 * (m + problem.graph.rows) * (min(-(-n // _room(problem)), 40) + 8)
    if name == "joint":
        lines = problem.machine.rows + problem.machine.cols
        return 1.5e-7 * (m + 20 * n) * min(lines + 6, 48, n)
    return 0.0


def outdone(name: str, problem: MappingProblem) -> str | None:
    """Return why another bound is the better one, or None.

    Several nodes per core: joint on well filled cores, parts on loosely filled ones. Spread pays where nodes have not many
    neighbours.
    """
    if name == "spread" and problem.n <= EXACT_NODES:
        return "exact engines prove more on few nodes"
    if name == "spread" and problem.uses_nets:
        if problem.one_per_core:
            return "with one node per core the bounds `slots` and `star` are better for messages"
        return "eigenvalues are better for messages on many nodes" if problem.n > MANY_NODES else None
    if name == "spread" and _neighbours(problem) > CROWDED:
        return "eigenvalues are better where nodes have many neighbours"
    if name not in ("parts", "joint") or problem.uses_nets or problem.machine.distance_matrix is not None:
        return None
    fill = problem.n / max(1, _room(problem) * int(problem.machine.usable.sum()))
    if name == "parts" and fill > FULL:
        return "cores are well filled, where the bound `joint` is better"
    if name == "joint" and fill < LOOSE:
        return "cores are loosely filled, where the bound `parts` is better"
    return None


def _behind_spread(problem: MappingProblem) -> tuple[str, ...]:
    """Return the bounds that are not worth their time where ``spread`` runs."""
    if problem.one_per_core:
        return ("split", "projection") if problem.n >= SEVERAL_NODES and _local(problem) else ()
    return ("joint", "parts") if problem.n >= MANY_NODES and _neighbours(problem) <= FEW else ()


def _neighbours(problem: MappingProblem) -> float:
    """Return the mean number of nodes that a node sends to or receives from; where that is above CROWDED, at least that."""
    if problem.graph.m > 2 * CROWDED * problem.n:
        return problem.graph.m / problem.n
    return len(problem.graph.traffic[1]) / problem.n


def _local(problem: MappingProblem) -> bool:
    """Return whether neighbours of a node have neighbours in common."""
    indptr, indices, _ = problem.graph.traffic
    ways, reached = 0, 0
    for u in np.linspace(0, problem.n - 1, min(SEEN, problem.n)).astype(np.int64):
        two = [indices[indptr[v] : indptr[v + 1]] for v in indices[indptr[u] : indptr[u + 1]]]
        ways += sum(map(len, two))
        reached += len(np.unique(np.concatenate(two))) if two else 0
    return reached < LOCAL * ways


def _room(problem: MappingProblem) -> int:
    from nmsolve.solvers.mapping.bounds.pairs import room_per_core

    return max(1, room_per_core(problem))


def _too_slow(name: str, problem: MappingProblem, seconds: float) -> str | None:
    """Return why a bound does not pay in so short a run, or None."""
    least = 1.1 * least_seconds(name, problem)
    if least <= MOST_OF.get(name, MOST) * seconds:
        return None
    return f"it would take about {least:.1f} of {seconds:g} seconds"


def _heuristics(problem: MappingProblem) -> dict[str, float]:
    """Return the heuristics for the kind of problem, with their parts of the time that heuristics get first."""
    if problem.graph.on_disk:
        return {"external": 1.0}
    if problem.limits_moves:
        return {"remap": 1.0}
    if problem.times_steps:
        return {"steps": 1.0}
    if problem.ceilings or problem.table_limit is not None:
        return {"links": 1.0}
    if problem.axons is not None:
        return {"first-fit" if problem.uses_links else "nets": 1.0}
    if problem.objective == "reward":
        return {"multilevel": 0.3, "reward": 0.7}
    if problem.uses_links:
        return {"multilevel": 0.3, "links": 0.7}
    if problem.uses_nets:
        whole = problem.aim.reach or problem.graph.multicast.all()  # as `external` needs it
        return {"external": 1.0} if whole and _large(problem) else {"nets": 1.0}
    if problem.one_per_core:
        mesh = problem.machine.distance_matrix is None
        return {"anneal": 0.5, "tabu": 0.5} if mesh else {"anneal": 0.1, "tabu": 0.9}
    return MULTILEVEL


def _of_pairs(problem: MappingProblem, seconds: float) -> tuple[dict[str, float], float]:
    """Return the heuristics where many nodes share a core and edges are charged one by one, and the part that is combined."""
    from nmsolve.heuristics.mapping.multilevel.combining import CUT_NODES, combined_part

    cut = problem.objective == "cut" and problem.n >= CUT_NODES
    priced = problem.machine.distance_matrix is None and _priced(problem)
    combined = combined_part(problem, seconds)
    if combined == 0.0 and problem.kinds is None and (_large(problem) or cut or priced):
        return {"external": 1.0}, combined
    return MULTILEVEL, combined


def _multilevel(step: Step, combined: float) -> Step:
    """Return the step of `multilevel` with what is known of its way. Combining alone uses all workers as threads."""
    from nmsolve.heuristics.mapping.multilevel.mapper import Multilevel

    return replace(step, engine=Multilevel(combined), threads=combined == 1.0)


def _large(problem: MappingProblem) -> bool:
    """Return whether only `external` has the memory and the time; it knows no kinds."""
    return problem.kinds is None and (problem.n >= LARGE_NODES or problem.graph.m >= LARGE_EDGES)


def _priced(problem: MappingProblem) -> bool:
    """Return whether market prices are better on a mesh than tables of what every node costs everywhere (ENTRIES)."""
    neighbours, room = 2 * problem.graph.m / max(1, problem.n), MANY * int(problem.machine.usable.sum())
    entries = problem.n * (problem.machine.rows + problem.machine.cols)
    return CROWDED <= neighbours < SAMPLED and problem.n >= room and entries >= ENTRIES
