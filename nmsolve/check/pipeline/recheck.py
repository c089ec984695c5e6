"""Bounds of pipelines recomputed from their certificates, by other code than that which found them, in fractions.

``work`` is summed, ``layer`` and ``layer-cut`` are a minimum cut of NetworkX, ``cover`` is :mod:`.cover`,
``downsets`` is :mod:`nmsolve.check.pipeline.downset_bound`; a bound on what plans use is one on the period of those that use
less. Certificates are strangers' files: every field is looked at before it is used, and the value is the last float below
the exact number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.foreign import foreign_recheck, unknown_method
from nmsolve.check.pipeline.batch_bound import Certificate, Slow, batch_bound_holds, most_held
from nmsolve.check.pipeline.blocks import companions, round_down
from nmsolve.check.pipeline.chain_bound import chain_bound_holds, period_at_least
from nmsolve.check.pipeline.cover import number, recheck_cover
from nmsolve.check.pipeline.downset_bound import TooLarge, contiguous_bound_holds
from nmsolve.check.rechecked import refused
from nmsolve.model.bound import Bound, BoundCheck, Stage, meets
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.goals import SLOWEST, Goal
from nmsolve.model.pipeline.objectives import PERIOD, aimed, goals_of, limited
from nmsolve.model.pipeline.problem import PipelineProblem

#: Methods with certificates that can be recomputed here; the optimum of a chain is :mod:`nmsolve.check.pipeline.chain_bound`.
CERTIFIED = ("work", "layer", "layer-cut", "cover")
#: The engine whose bound is the optimum of a chain, and those of whose bounds only their word is left (of ``downsets`` where
#: there are too many to list again).
CHAIN, WORDS = "chain", ("downsets", "pipeline-cpsat", "pipeline-mip")
#: The engine whose bound is on the time of a batch along a chain, or on its energy.
BATCH = "chain-batch"
#: What storage alone says of the cores and the memory that plans use.
COUNTING = "counting"
#: Methods of ours, whose claims no other package may re-check.
METHODS = (*CERTIFIED, *WORDS, CHAIN, BATCH, COUNTING)
#: Objectives may differ from what is recomputed by this share: sums of floats in another order.
TOLERANCE = 1e-9
#: What the storage of a stage, a sum of floats, may be off by.
FLOATS = 1 - Fraction(1, 10**13)


def check_plan_bound(
    problem: PipelineProblem, bound: Bound, objective: float = math.inf, seconds: float = 60.0
) -> BoundCheck:
    """Re-check a bound on the largest load from its certificate, as :func:`recheck_bound` or the chain's own check can.

    Parameters
    ----------
    objective : of a known plan; no bound may be above it
    seconds : most time for a certificate that takes a search
    """
    try:
        return _check_plan(problem, bound, objective, seconds)
    except InputError as error:
        return refused(f"the certificate is broken: {error}")


def _check_plan(problem: PipelineProblem, bound: Bound, objective: float, seconds: float) -> BoundCheck:
    """Re-check a bound. InputError for a certificate that does not fit the problem."""
    value = f"{bound.value:,.10g}"
    chain = bound.method == CHAIN and problem.split == "chain"
    foreign = bound.method not in METHODS
    if not chain and not foreign and bound.method in (CHAIN, COUNTING):
        return refused(unknown_method(bound.method))
    if bound.scope != "full" or not 0 <= bound.value <= objective * (1 + TOLERANCE):
        text = f"{value} ({bound.scope}) is not a bound of all plans: one is known with {objective:,.10g}"
        return refused(text)
    if foreign:
        there = foreign_recheck("pipeline", bound, (problem,), seconds)
        return there or refused(unknown_method(bound.method))
    if bound.value == 0:
        return BoundCheck(True, 0.0, "no load is below 0")
    if not problem.groups.single and bound.method not in (CHAIN, BATCH):
        text = f"{value} of {bound.method} is about stages of one group that moves data through one core"
        return refused(text)
    if bound.method == BATCH and problem.goal.held is not None and not problem.goal.adds_up:
        return _check_held(problem, problem.goal.held, bound, seconds)
    if bound.method == BATCH or problem.goal.adds_up:
        return _check_batch(problem, bound, value, seconds)
    if bound.method == "downsets":
        if problem.split != "contiguous":
            text = f"{value} is no bound of downsets: they bound plans of the split contiguous, this one is {problem.split}"
            return refused(text)
        return _check_downsets(problem, bound, value, seconds)
    if bound.method in WORDS:
        text = f"{value} rests on the word of {bound.method}; nothing here can be recomputed"
        return BoundCheck(True, bound.value, text, bound.method)
    if chain:
        holds = chain_bound_holds(problem, bound.value)
        text = f"recomputed: {'no' if holds else 'some'} chain of stages is below {value}"
        return BoundCheck(holds, bound.value if holds else math.nan, text)
    found = recheck_bound(problem, bound.method, bound.certificate, seconds)
    if found is None:
        text = f"the certificate does not prove {value}, at least not within {seconds:.0f} s"
        return refused(text)
    text = f"recomputed from the certificate: {found:,.10g}, claimed {value}"
    return BoundCheck(bound.value <= found, found, text)


def _check_batch(problem: PipelineProblem, bound: Bound, value: str, seconds: float) -> BoundCheck:
    """Prove a bound on the time of a batch, or on energy, again from its ceilings and prices."""
    if bound.method != BATCH or not problem.goal.adds_up:
        return refused(f"{value} of {bound.method} is no bound on what this problem minimises")
    if math.isinf(bound.value):
        holds = period_at_least(problem, most_held(problem) + 1)
        text = f"recomputed: {'no' if holds else 'some'} chain of stages keeps the rules"
        return BoundCheck(holds, bound.value if holds else math.nan, text)
    try:
        proof = _batch_proof(bound.certificate)
        holds = period_at_least(problem, proof.floor) and batch_bound_holds(
            problem, bound.value, proof, seconds
        )
    except Slow:
        return refused(f"{value} is not decided within {seconds:.0f} s and the memory of a check")
    ceilings = f"{len(proof.ceilings)} ceiling{'s' if len(proof.ceilings) > 1 else ''}"
    which = "no" if holds else "some"
    text = (
        f"recomputed from {ceilings}: {which} chain of stages may {problem.goal.words.verb} less than {value}"
    )
    return BoundCheck(holds, bound.value if holds else math.nan, text)


def _check_held(
    problem: PipelineProblem, held: tuple[Goal, float], bound: Bound, seconds: float
) -> BoundCheck:
    """Return whether the period is as long as claimed where another goal is held: within a load, there is always more of that."""
    within, below = number(bound.certificate, "within"), bound.certificate.get("least")
    least = math.inf if below is None else number(bound.certificate, "least")
    (goal, most), ticks = held, problem.ticks
    if within != int(within) or not 0 <= within < 2**62 or meets(most, least):
        text = f"that {goal.name} is held at {most:,.10g} does not prove {bound.value:,.10g}"
        return refused(text)
    value, longest = ticks.seconds(int(within) + 1), ticks.seconds(int(within))
    inner = replace(problem, goal=replace(goal, held=(SLOWEST, longest)))
    found = check_plan_bound(inner, replace(bound, value=least), seconds=seconds)
    holds = found.ok and bound.value <= value
    text = f"with a period of {longest:,.10g} {goal.name} is at least {least:,.10g}, above {most:,.10g}: {found.text}"
    return BoundCheck(holds, value if holds else math.nan, text, found.word)


def _require_method(certificate: Mapping[str, Any], method: str) -> None:
    """Refuse a certificate that says it is of another method."""
    said = certificate.get("method", method)
    if not isinstance(said, str) or said != method:
        raise InputError(f"its method is {str(said)[:40]!r}", "certificate", method)


def _batch_proof(certificate: Mapping[str, Any]) -> Certificate:
    """Return the certificate's numbers. InputError where they are none."""
    _require_method(certificate, BATCH)
    floor, ceilings, prices = (certificate.get(key) for key in ("floor", "ceiling", "price"))
    ceilings, prices = (x.tolist() if isinstance(x, np.ndarray) else x for x in (ceilings, prices))
    if not isinstance(ceilings, list) or not all(_is_ticks(c) for c in (floor, *ceilings)):
        raise InputError("its floor or ceilings", "certificate", "whole ticks from 0 to 2^62")
    if not isinstance(prices, list) or len(prices) != len(ceilings) or not all(map(_is_price, prices)):
        raise InputError("its prices", "certificate", "a number >= 0 for every ceiling")
    return Certificate(int(floor or 0), [int(c) for c in ceilings], [float(p) for p in prices])


def _is_ticks(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= 2**62 and value == int(value)


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < 2.0**80


def _check_downsets(problem: PipelineProblem, bound: Bound, value: str, seconds: float) -> BoundCheck:
    """List all downsets again; where there are too many, the bound rests on the word of its engine."""
    try:
        holds = contiguous_bound_holds(problem, companions(problem), bound.value, seconds)
    except TooLarge as why:
        text = f"{value} rests on the word of downsets; listing them again: {why}"
        return BoundCheck(True, bound.value, text, bound.method)
    text = f"recomputed: {'no' if holds else 'some'} sequence of downsets is below {value}"
    return BoundCheck(holds, bound.value if holds else math.nan, text)


def check_stage_bound(
    problem: PipelineProblem, stage: Stage, bound: Bound, known: float = math.inf, seconds: float = 60.0
) -> BoundCheck:
    """Re-check a bound on any objective of plans within the ceilings of ``stage``.

    Parameters
    ----------
    known : the least known value of such a plan; no bound may be above it
    """
    try:
        goals = goals_of(problem)
        if stage.objective in goals:
            inside = aimed(problem, goals, stage.objective, stage.ceilings)
            found = check_plan_bound(inside, bound, known, seconds)
        else:
            found = _check_least(
                limited(problem, stage.ceilings),
                stage.objective,
                dict(stage.ceilings).get(PERIOD, math.inf),
                bound,
                seconds,
            )
    except InputError as error:
        return refused(f"the certificate is broken: {error}")
    if bound.scope != "full":
        return refused(f"a bound with scope {bound.scope[:20]!r} says nothing of all plans")
    if found.ok and bound.value > known * (1 + TOLERANCE):
        text = f"{bound.value:,.10g} is above a known plan with {known:,.10g}"
        return refused(text)
    if found.word and stage.problem != problem.content_hash:
        text = f"given about problem {stage.problem[:16]}, this one is {problem.content_hash[:16]}"
        return refused(text)
    return found


def _check_least(
    problem: PipelineProblem, name: str, period: float, bound: Bound, seconds: float
) -> BoundCheck:
    """Return whether a plan that keeps the ``period`` needs as much as the bound says: with less, none is as fast.

    Raises
    ------
    InputError : a certificate that does not fit the problem
    """
    if bound.method == COUNTING:
        counted = _least_counted(problem, name)
        text = f"recomputed: plans need {counted:,} of {name}, claimed {bound.value:,.10g}"
        return BoundCheck(0 <= bound.value <= counted, float(counted), text)
    most, below = number(bound.certificate, "most"), bound.certificate.get("period")
    least = math.inf if below is None else number(bound.certificate, "period")
    slow = "there is no plan" if below is None else f"no period is below {least:,.10g}"
    if most != int(most) or not 0 <= bound.value <= most + 1 or meets(period, least):
        text = f"with {most:,.10g} of {name} {slow}, for a period of {period:,.10g}"
        return refused(f"{text} that does not prove {bound.value:,.10g}")
    tighter = limited(problem, ((name, most),))
    inner = replace(bound, value=least)
    found = check_plan_bound(tighter, inner, seconds=seconds)
    value = most + 1 if found.ok else math.nan
    return found._replace(value=value, text=f"with {most:,.10g} of {name} {slow}: {found.text}")


def _least_counted(problem: PipelineProblem, name: str) -> int:
    """Return what plans need at least of a limit, by storage alone, in fractions."""
    if problem.hosts or name == "stages":
        return 1 if name == "stages" else 0
    storage = [Fraction(float(s)) for s in problem.storage]
    if name == "cores":
        limited = problem.memory is not None and problem.memory > 0 and not problem.streams
        return max(1, math.ceil(sum(storage) / Fraction(problem.memory or 0) * FLOATS)) if limited else 1
    held: dict[int, Fraction] = {}
    for group, one in zip(companions(problem), storage, strict=True):
        held[group] = held.get(group, Fraction(0)) + one
    return math.ceil(max(max(held.values()) / problem.largest_group, sum(storage) / problem.cores) * FLOATS)


def recheck_bound(
    problem: PipelineProblem, method: str, certificate: Mapping[str, Any], seconds: float = 60.0
) -> float | None:
    """Return what the certificate proves, None if nothing (or nothing is decided within ``seconds``).

    Raises
    ------
    InputError : an unknown method or a certificate that does not fit the problem
    """
    _require_method(certificate, method)
    if method == "work":
        return _work(problem, number(certificate, "rate"))
    if method in ("layer", "layer-cut"):
        return _layer(problem, _layer_number(problem, certificate))
    if method == "cover":
        return recheck_cover(problem, certificate, seconds)
    raise InputError(f"unknown method {method!r}", "certificate", ", ".join(CERTIFIED))


def _layer_number(problem: PipelineProblem, certificate: Mapping[str, Any]) -> int:
    value = number(certificate, "layer")
    if value != int(value) or value >= problem.count:
        raise InputError(f"layer {value:g}", "certificate", f"one of {problem.count} layers")
    return int(value)


def _work(problem: PipelineProblem, rate: float) -> float:
    """Return ``sum min(a_l, r h_l) / (N + r H)``, see :func:`nmsolve.solvers.pipeline.bounds.work_bound`."""
    hosts = problem.hosts if problem.host_time is not None else 0
    total = Fraction(0)
    for layer in range(problem.count):
        times = problem.time[layer, : problem.largest_group].tolist()
        least = min((c + 1) * Fraction(t) for c, t in enumerate(times))
        if hosts and problem.host_time is not None and math.isfinite(problem.host_time[layer]):
            least = min(least, Fraction(rate) * Fraction(float(problem.host_time[layer])))
        total += least
    cores = min(problem.cores, problem.stages * problem.largest_group)
    return round_down(total / (cores + Fraction(rate) * hosts))


def _layer(problem: PipelineProblem, layer: int) -> float:
    """Return the least cost of any set of layers with this one and all that must be with it."""
    import networkx as nx

    group = companions(problem)
    mine = [k for k in range(problem.count) if group[k] == group[layer]]
    hosted = [math.inf]
    if problem.hosts and problem.host_time is not None:
        hosted = [float(problem.host_time[k]) for k in mine]
    compute = [Fraction(float(t)) for t in problem.time[:, problem.largest_group - 1]]
    if problem.overlap:
        value = sum((compute[k] for k in mine), Fraction(0))
    else:
        graph, tensors = nx.DiGraph(), problem.tensors
        graph.add_node("sink")
        for k in mine:
            graph.add_edge("source", k)
        first = {k: group.index(k) for k in set(group)}
        for k in range(problem.count):
            graph.add_edge(k, "sink", capacity=compute[k])
            if first[group[k]] != k:  # other companions are not parted either
                graph.add_edge(k, first[group[k]])
                graph.add_edge(first[group[k]], k)
        for t in range(tensors.count):
            ends = {
                int(tensors.source[t]),
                *tensors.targets[tensors.indptr[t] : tensors.indptr[t + 1]].tolist(),
            }
            graph.add_edge(("in", t), ("out", t), capacity=Fraction(float(tensors.time[t])))
            for k in ends:
                graph.add_edge(k, ("in", t))
                graph.add_edge(("out", t), k)
        value = Fraction(nx.minimum_cut(graph, "source", "sink")[0])
    if all(map(math.isfinite, hosted)):
        value = min(value, sum(map(Fraction, hosted), Fraction(0)))
    return round_down(value)
