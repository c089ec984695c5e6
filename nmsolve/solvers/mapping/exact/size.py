"""The size of an exact model, and the size from which on an engine refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmsolve.hw.cost import core_distance
from nmsolve.model.mapping.features import takes
from nmsolve.model.mapping.objectives import OBJECTIVES
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.exact.axons import axon_terms

#: Most nodes and most cores: some rows are made from n x n and P x P tables.
MAX_SIDE = 1000
#: Largest number of "node on core" variables.
MAX_PLACES = 20_000
#: Largest estimate of non-zeros in the rows that measure distances (edges x lines, edges x cores^2, ...).
MAX_TERMS = 400_000


def _too_large(problem: MappingProblem) -> str | None:
    """Limits: 1,000 nodes, 1,000 cores, nodes x cores <= 20,000 and, for the rows that measure distance, at most
    400,000 terms: pairs x lines x 4 on meshes, pairs x (4 x lines + 2 x cores) where cores hold several nodes,
    pairs x cores^2 for a distance matrix, net pins x cores x lines for route trees. As many for axon tables that could
    bind: two for every pair of a message's end and a core.
    """
    if max(problem.n, problem.cores) > MAX_SIDE:
        return (
            f"{problem.n} nodes and {problem.cores} cores, the limit of exact models is {MAX_SIDE} of either"
        )
    places = problem.n * problem.cores
    if places > MAX_PLACES:
        return f"{places} pairs of node and core, the limit of exact models is {MAX_PLACES}"
    if axon_terms(problem) > MAX_TERMS:
        return f"about {axon_terms(problem)} terms of axon tables, the limit of exact models is {MAX_TERMS}"
    terms = kind_terms(problem)
    if terms > MAX_TERMS:
        return f"about {terms} terms of kinds, the limit of exact models is {MAX_TERMS}"
    if problem.uses_links or problem.ceilings:
        return _routed_refusal(problem)
    machine = problem.machine
    lines = machine.rows + machine.cols
    per_pair = 4 * lines if problem.one_per_core else 4 * lines + 2 * problem.cores
    if not core_distance(problem).separable:
        per_pair = problem.cores**2
    pins = np.diff(problem.graph.indptr)
    terms = int(pins.sum()) * per_pair
    if problem.uses_nets:
        routed = problem.graph.multicast if not problem.aim.reach else np.ones(len(pins), bool)
        per_pin = problem.cores * (1 if problem.aim.reach else lines)
        terms = int(pins[routed].sum()) * per_pin
        if not problem.aim.reach:
            terms += int(pins[~routed].sum()) * per_pair
    if terms > MAX_TERMS:
        return f"about {terms} terms of distance, the limit of exact models is {MAX_TERMS}"
    return None


def kind_terms(problem: MappingProblem) -> int:
    """Estimate of the non-zeros of the rows about kinds."""
    sets = problem.kinds
    return 0 if sets is None else (2 * len(sets.pairs()[0]) + sets.number) * problem.cores


def _routed_refusal(problem: MappingProblem) -> str | None:
    """Return the same for models with link loads or ceilings: message targets x cores^2 terms, and each sum by itself."""
    names = [problem.objective, *(name for name, _ in problem.ceilings)]
    crooked = problem.machine.torus or bool(problem.machine.faulty_links)
    for name in names:
        if OBJECTIVES[name].charges == "time":
            terms = problem.graph.m * problem.cores * (problem.machine.rows + problem.machine.cols)
            if terms > MAX_TERMS:
                return f"about {terms} terms of copies, the limit of exact models is {MAX_TERMS}"
            continue
        if name == "max-link" or (name == "multicast-hops" and crooked):
            terms = problem.graph.m * problem.cores**2
            if terms > MAX_TERMS:
                return f"about {terms} terms of routes, the limit of exact models is {MAX_TERMS}"
            continue
        why = refuses_exact(replace(problem, objective=name, ceilings=()))
        if why is not None:
            return why
    return None


#: Why the exact models do not take a problem, or None. Route trees have to be XY where no model of routes is made.
refuses_exact = takes(
    "trees axons budget kinds -torus -matrix -dead | pairs reach axons budget kinds | load axons budget kinds ceilings"
    " | pairs trees reach axons budget kinds timed +ceilings | time axons budget kinds ceilings -matrix",
    _too_large,
)
