"""Every engine for mappings."""

from __future__ import annotations

from nmsolve.model.engine import Engine
from nmsolve.solvers.search.entries import Entry, look_up, plug_ins

_H, _S = "heuristics.mapping.", "solvers.mapping."
_PUB = _H + "published."
REGISTRY: dict[str, Entry] = {
    "first-fit": Entry(_H + "first_fit:FirstFit", "some feasible mapping at once", threads=True),
    "multilevel": Entry(_H + "multilevel.mapper:Multilevel", "integrated multilevel mapper, many nodes per core", repeat=True),
    "external": Entry(_H + "external.engine:External", "any graph size", repeat=True, restart=0.2, threads=True),
    "anneal": Entry(_H + "placement.engine:Anneal", "annealing and iterated local search, one node per core", repeat=True),
    "tabu": Entry(_H + "placement.tabu:Tabu", "tabu on a crossed population, one node per core, up to 200 cores", repeat=True),
    "nets": Entry(
        _H + "nets:Nets", "local search on multicast objectives, or within axon tables", repeat=True, threads=True
    ),
    "links": Entry(_H + "links:Links", "local search on link loads, ceilings, tables", repeat=True),
    "steps": Entry(_H + "steps:Steps", "local search on the time of a step", repeat=True),
    "reward": Entry(_H + "reward:Reward", "local search on the reward of method M1 (M1.7)", repeat=True),
    "m2": Entry(_PUB + "m2:M2", "published multilevel mapping (M2.1 to M2.8)", repeat=True, ends=True, threads=True),
    "communities": Entry(_PUB + "communities:Communities", "published split by communities (M1.3, M1.4)", repeat=True, ends=True),
    "m1-policy": Entry("learn.mapping.engine:M1Policy", "the published learned placement (M1.1 to M1.8)", repeat=True, ends=True),
    "simple-annealing": Entry(_PUB + "prior_art.engines:simple_annealing", "annealing (Connolly 1990), to compare", repeat=True),
    "genetic": Entry(_PUB + "prior_art.engines:genetic_algorithm", "genetic algorithm (Ahuja 2000), to compare", repeat=True),
    "ant-colony": Entry(_PUB + "prior_art.engines:ant_colony", "MAX-MIN ants, to compare", repeat=True),
    "particle-swarm": Entry(_PUB + "prior_art.engines:particle_swarm", "particle swarm, to compare", repeat=True),
    "metis": Entry(_PUB + "backends.engine:metis", "METIS (extra), its parts placed, to compare", child=True),
    "kaminpar": Entry(_PUB + "backends.engine:kaminpar", "KaMinPar (extra), its parts placed, to compare", child=True),
    "mtkahypar": Entry(_PUB + "backends.engine:mtkahypar", "Mt-KaHyPar (extra), its parts placed, to compare", child=True),
    "scotch": Entry(_PUB + "backends.scotch:Scotch", "SCOTCH's static mapping (a program), to compare", child=True),
    "in-order": Entry(_PUB + "backends.in_order:InOrder", "nodes in order fill the cores, as SANA-FE's backend for Fugu does"),
    "remap": Entry(_H + "remap:Remap", "annealing within a migration budget", repeat=True),
    "star": Entry(_S + "bounds.engines:NeighbourCounting", "neighbour-counting bound", quick=True, threads=True),
    "projection": Entry(_S + "bounds.engines:Projection", "projection bound with tuned diagonal, one node per core"),
    "split": Entry(_S + "bounds.engines:Split", "spectral, Gilmore-Lawler and distance rows together, one node per core"),
    "spread": Entry(_S + "bounds.engines:Spread", "traffic led along paths to pairs whose distances add up; sparse networks"),
    "joint": Entry(_S + "bounds.engines:PartitionPlacement", "spectral bound of partition and placement, many nodes per core"),
    "parts": Entry(_S + "bounds.engines:Parts", "spectral bound on traffic that must leave its core, any objective"),
    "tree-parts": Entry(_S + "bounds.engines:TreeParts", "spectral bound on cores that messages must reach"),
    "slots": Entry(_S + "bounds.engines:Slots", "split bound of small partitions, joint problems and trees"),
    "link-load": Entry(_S + "bounds.engines:LinkLoad", "bound on the hottest link from bounds on sums"),
    "step-load": Entry(_S + "bounds.engines:StepLoad", "bound on the time of a step from what all cores do"),
    "step-power": Entry(_S + "bounds.engines:StepPower", "bound on the energy of a step, piece by piece of its times"),
    "step-ceiling": Entry(_S + "bounds.engines:StepCeiling", "bound that a ceiling on step time or sum lends the other"),
    "exchange": Entry(_S + "bounds.engines:Exchange", "bound on the reward of method M1 from bounds on sums"),
    "cover": Entry(_S + "bounds.engines:CoreTraffic", "bound on what every core must send and receive, few nodes per core"),
    "branch-bound": Entry(_S + "branch_bound:BranchBound", "branch and bound, few nodes, one or several per core", threads=True),
    "cpsat": Entry(_S + "exact.model:CpSat", "exact model for CP-SAT", child=True),
    "mip": Entry(_S + "exact.model:Mip", "exact model for MIP solvers", child=True),
}  # fmt: skip
REGISTRY |= plug_ins(REGISTRY)


def make_engine(name: str) -> Engine:
    """Return the engine called ``name``.

    Raises
    ------
    InputError : no such engine; the message suggests the nearest name
    """
    engine: Engine = look_up(REGISTRY, name).make()
    return engine
