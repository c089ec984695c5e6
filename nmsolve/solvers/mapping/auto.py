"""Which engines there are, and which of them run on a problem, in which order and for how long."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.model.engine import Engine
from nmsolve.model.errors import InputError
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.search.portfolio import Step

#: Called with (engine name, status with the reason) for every engine that was considered and left out.
Refused = Callable[[str, str], None]


@dataclass(frozen=True)
class Entry:
    """Where an engine lives and how it is run.

    Attributes
    ----------
    module, cls : imported when the engine is first wanted
    child : native solver, runs in a child process
    repeat : worth another run with another seed
    quick : takes milliseconds
    budgeted : obeys a migration budget; engines that do not only see problems without one, unless they only bound
    limited : obeys ceilings on other objectives, likewise
    about : one line for people
    """

    module: str
    cls: str
    about: str
    child: bool = False
    repeat: bool = False
    quick: bool = False
    budgeted: bool = False
    limited: bool = False

    def step(self, engine: Engine, share: float = 1.0, most: float = math.inf) -> Step:
        """The engine's place in a plan; with ``most`` it is worth no process of its own."""
        quick = self.quick or most < math.inf
        return Step(engine, share, child=self.child, repeat=self.repeat, quick=quick, most=most)


_H, _S = "nmsolve.heuristics.mapping.", "nmsolve.solvers.mapping."
REGISTRY: dict[str, Entry] = {
    "first-fit": Entry(_H + "first_fit", "FirstFit", "some feasible mapping at once"),
    "multilevel": Entry(_H + "multilevel.engine", "Multilevel", "integrated multilevel mapper, many nodes per core", repeat=True),
    "anneal": Entry(_H + "placement.engine", "Anneal", "annealing and iterated local search, one node per core", repeat=True),
    "tabu": Entry(_H + "placement.tabu", "Tabu", "tabu on a crossed population, one node per core, up to 200 cores", repeat=True),
    "lns": Entry(_H + "lns.engine", "Lns", "large-neighbourhood search from the best mapping, one node per core", repeat=True),
    "nets": Entry(_H + "nets", "Nets", "local search on multicast objectives", repeat=True),
    "links": Entry(_H + "links", "Links", "local search on link loads, and under ceilings", repeat=True, limited=True),
    "m2": Entry(_H + "m2", "M2", "the published multilevel topology mapping (M2.2 to M2.8)", repeat=True),
    "communities": Entry(_H + "communities", "Communities", "the published split by communities (M1.3, M1.4)", repeat=True),
    "simple-annealing": Entry(_H + "prior_art.engines", "SimpleAnnealing", "simulated annealing as published (Connolly 1990), to compare with", repeat=True),
    "genetic": Entry(_H + "prior_art.engines", "GeneticAlgorithm", "genetic algorithm (Ahuja et al. 2000), to compare with", repeat=True),
    "ant-colony": Entry(_H + "prior_art.engines", "AntColonyOptimisation", "MAX-MIN ant system (2000), to compare with", repeat=True),
    "particle-swarm": Entry(_H + "prior_art.engines", "DiscreteParticleSwarm", "discrete particle swarm (2014), to compare with", repeat=True),
    "remap": Entry(_H + "remap", "Remap", "annealing within a migration budget", repeat=True, budgeted=True),
    "star": Entry(_S + "bounds.engines", "Star", "star bound", quick=True),
    "gilmore-lawler": Entry(_S + "bounds.engines", "GilmoreLawler", "Gilmore-Lawler bound, one node per core"),
    "projection": Entry(_S + "bounds.engines", "Projection", "projection bound with tuned diagonal, one node per core"),
    "split": Entry(_S + "bounds.split.engine", "Split", "spectral, Gilmore-Lawler and distance rows together, one node per core"),
    "subgraphs": Entry(_S + "bounds.subgraphs.engine", "Subgraphs", "small sets solved exactly, stars and metric rows together, one node per core"),
    "joint": Entry(_S + "bounds.engines", "Joint", "spectral bound of the joint problem, many nodes per core"),
    "parts": Entry(_S + "bounds.engines", "Parts", "spectral bound on traffic that must leave its core, any objective"),
    "tree-parts": Entry(_S + "bounds.trees_engines", "TreeParts", "spectral bound on cores that messages must reach"),
    "slots": Entry(_S + "bounds.trees_engines", "Slots", "split bound of small partitions, joint problems and trees"),
    "link-load": Entry(_S + "bounds.trees_engines", "LinkLoad", "bound on the hottest link from bounds on sums"),
    "cover": Entry(_S + "bounds.engines", "Cover", "covering bound on what every core must send and receive, few nodes per core"),
    "branch-bound": Entry(_S + "branch_bound", "BranchBound", "branch and bound, few nodes, one per core"),
    "cpsat": Entry(_S + "cpsat.engine", "CpSat", "exact model for OR-Tools CP-SAT", child=True, budgeted=True, limited=True),
    "cpsat-lns": Entry(_S + "cpsat_lns.engine", "CpSatLns", "exact repair of a few nodes at a time", child=True, repeat=True),
    "mip": Entry(_S + "mip.engine", "Mip", "exact model for HiGHS or other MIP solvers", child=True, budgeted=True, limited=True),
}  # fmt: skip

#: Up to this many nodes and cores, exact engines have a chance to prove something.
EXACT_NODES, EXACT_CORES = 40, 64
#: The exact engines of automatic mode, with their shares.
EXACT = {"branch-bound": 0.7, "cpsat": 0.3}
#: On problems that small, seconds for every heuristic and bound before the exact engines start.
QUICK = 0.5
#: Beyond so many nodes proofs are rare: every heuristic gets this part of the time first.
EASY_NODES, SMALL_PART = 12, 0.25
#: Share of the machine's room that is used from which, and up to which, the joint bound is the better and the worse.
FULL, LOOSE = 0.75, 0.5
#: Seconds in which the projection bound gets most of what it ever gets.
SPECTRAL = 2.5
#: Share of the covering bound, where it applies.
COVER = 0.15
#: Sum of the shares of the heuristics.
HEURISTICS = 0.9
#: Smallest part of the time limit for one spectral bound, and the largest with one and with several nodes per core
#: (where one such bound is all there is). Linear algebra cannot be interrupted: a bound that needs more is not begun.
LEAST_PART, MOST_PART, LEAST_PART_JOINT, MOST_PART_JOINT = 0.06, 0.1, 0.25, 0.35


def make_engine(name: str, mip_solver: str = "highs") -> Engine:
    """The engine called ``name``.

    Raises
    ------
    InputError : no such engine; the message suggests the nearest name
    """
    entry = REGISTRY.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, REGISTRY, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"unknown engine {name!r}", "", hint + "one of " + ", ".join(REGISTRY))
    cls = getattr(import_module(entry.module), entry.cls)
    engine: Engine = cls(mip_solver) if name == "mip" else cls()
    return engine


def chosen(
    problem: MappingProblem, names: Sequence[str], refused: Refused, mip_solver: str = "highs"
) -> list[Step]:
    """The plan of ``--engines``: the named engines in this order with equal shares.

    Raises
    ------
    InputError : no name, an unknown one, or every engine refuses the problem
    """
    if not names:
        raise InputError("no engine is named", "--engines", "one of " + ", ".join(REGISTRY))
    steps, reasons = [], []
    for name in dict.fromkeys(names):
        engine = make_engine(name, mip_solver)
        reason = _refusal(name, engine, problem)
        if reason is None:
            steps.append(REGISTRY[name].step(engine))
        else:
            reasons.append(f"{name}: {reason}")
            refused(name, f"refused: {reason}")
    if not steps:
        raise InputError("every chosen engine refuses: " + "; ".join(reasons), "--engines", "other engines")
    return steps


def _refusal(name: str, engine: Engine, problem: MappingProblem) -> str | None:
    """Why the engine does not take the problem, or None. Bounds hold with a migration budget as without one."""
    if problem.limits_moves and engine.finds != "bounds" and not REGISTRY[name].budgeted:
        return "it knows no migration budget"
    if problem.ceilings and engine.finds != "bounds" and not REGISTRY[name].limited:
        return "it knows no ceilings on other objectives"
    return engine.refuses(problem)


def automatic(
    problem: MappingProblem, seconds: float, workers: int, refused: Refused, mip_solver: str = "highs"
) -> list[Step]:
    """The plan of automatic mode: cheap bounds, then heuristics, then exact engines where they have a chance.

    On small problems heuristics and bounds get half a second each (heuristics more beyond EASY_NODES) and the exact
    engines the rest, in rising order of cost; on others the bounds get a tenth to a third and the heuristics the rest.
    With several workers the heuristics start first, and the bounds beside them. ``seconds`` is the time limit.
    """
    small = problem.n <= EXACT_NODES and problem.cores <= EXACT_CORES
    bounds = {"gilmore-lawler": 0.04}
    for name in ("projection", "parts", "joint"):
        least = LEAST_PART if problem.one_per_core else LEAST_PART_JOINT
        wish = max(SPECTRAL, 1.1 * least_seconds(name, problem)) / seconds
        part = min(_most_part(problem), max(least, wish))
        bounds[name] = HEURISTICS * part / (1 - part)
    bounds["cover"] = COVER
    heuristics = _heuristics(problem)
    shares = {"star": 0.01} | (bounds | heuristics if workers == 1 else heuristics | bounds)
    if small:
        shares |= EXACT
    steps = []
    for name, share in shares.items():
        engine = make_engine(name, mip_solver)
        reason = _refusal(name, engine, problem)
        late = _too_slow(name, problem, seconds) or outdone(name, problem)
        if reason is not None or late is not None:
            refused(name, f"not run: {late}" if reason is None else f"refused: {reason}")
            continue
        brief = small and name not in EXACT  # cut short, a proof would be lost
        most = max(QUICK, SMALL_PART * seconds) if name in heuristics and problem.n > EASY_NODES else QUICK
        steps.append(REGISTRY[name].step(engine, share, most if brief else math.inf))
    return steps


def least_seconds(name: str, problem: MappingProblem) -> float:
    """CPU seconds a bound needs before it says anything, as measured on one core; 0 for those that need none."""
    n, m, cores = problem.n, problem.graph.m, problem.cores
    if name == "gilmore-lawler":
        return 2.5e-10 * cores**3
    if name == "projection":
        return 1.6e-9 * cores**3
    if name == "parts":
        return 1.6e-7 * (m + 20 * n) * min(-(-n // _room(problem)) + 8, 48, n)
    if name == "joint":
        lines = problem.machine.rows + problem.machine.cols
        return 3.2e-7 * (m + 20 * n) * min(lines + 6, 48, n)
    return 0.0


def outdone(name: str, problem: MappingProblem) -> str | None:
    """Why another spectral bound is the better one, or None: joint on well filled cores, parts on loosely filled ones."""
    if name not in ("parts", "joint") or uses_nets(problem) or problem.machine.distance_matrix is not None:
        return None
    fill = problem.n / max(1, _room(problem) * int(problem.machine.usable.sum()))
    if name == "parts" and fill > FULL:
        return "cores are well filled, where the joint bound is better"
    if name == "joint" and fill < LOOSE:
        return "cores are loosely filled, where the parts bound is better"
    return None


def _room(problem: MappingProblem) -> int:
    from nmsolve.solvers.mapping.bounds.pairs import room_per_core

    return max(1, room_per_core(problem))


def _most_part(problem: MappingProblem) -> float:
    return MOST_PART if problem.one_per_core else MOST_PART_JOINT


def _too_slow(name: str, problem: MappingProblem, seconds: float) -> str | None:
    """Why a bound does not pay in so short a run, or None."""
    least = 1.1 * least_seconds(name, problem)
    if least <= _most_part(problem) * seconds:
        return None
    return f"it would take about {least:.1f} of {seconds:g} seconds"


def _heuristics(problem: MappingProblem) -> dict[str, float]:
    """The heuristics for the kind of problem, with their shares, which add up to HEURISTICS."""
    if problem.limits_moves:
        return {"remap": HEURISTICS}
    if problem.ceilings:
        return {"links": HEURISTICS}
    if uses_links(problem):
        return {"multilevel": 0.25, "links": 0.65}
    if problem.one_per_core and not uses_nets(problem):
        if problem.machine.distance_matrix is not None:
            return {"anneal": 0.3, "tabu": 0.6}
        return {"tabu": 0.05, "anneal": 0.85}
    if uses_nets(problem):
        return {"multilevel": 0.25, "nets": 0.65}
    return {"multilevel": 0.9}
