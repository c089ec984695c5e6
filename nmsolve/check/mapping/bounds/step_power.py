"""Re-check of bounds on the energy of a step: every piece of the times that a step may take is valued again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from nmsolve.check.mapping.bounds.link_load import proved_of_sum
from nmsolve.check.mapping.bounds.parts import EPS, CertificateError, below, usable_cores
from nmsolve.check.mapping.bounds.step_load import require_figures, work_of
from nmsolve.check.mapping.step_energy import NEEDED, work_in_pj
from nmsolve.model.machine import LARGEST
from nmsolve.model.mapping.problem import MappingProblem

#: Most pieces that are looked at.
MOST = 1000


def recheck_step_power(problem: MappingProblem, certificate: Mapping[str, Any]) -> float:
    """Return the least energy of a step (times its time) over all pieces, each with what its own certificate proves of messages.

    Raises
    ------
    CertificateError : another objective, times that do not rise, a wrong inner certificate, or figures are missing
    """
    if problem.aim.charges != "power":
        raise CertificateError("the bound is for the energy of a step")
    require_figures(problem, NEEDED)
    ends, proofs = _ends(certificate.get("until")), certificate.get("proofs")
    if not isinstance(proofs, list | tuple):
        raise CertificateError("'proofs' is no list")
    work, cores = work_of(problem), len(usable_cores(problem))
    begins = Fraction(work.least(cores, Fraction(0)))
    machine, spent = problem.machine, Fraction(work_in_pj(problem.graph, problem.machine))
    if not any(figure.value > 0 for figure in machine.energy.values()):
        raise CertificateError("the machine has no figures of energy")
    chips = Fraction(machine.figures["power_chip"].value) * machine.n_chips
    each = Fraction(machine.figures["power_core"].value)
    if len(proofs) != len(ends) + 1:
        raise CertificateError(f"'proofs' holds {len(proofs)} entries, expected {len(ends) + 1}")
    values, low = [], begins
    for high, proof in zip([*ends, None], proofs, strict=True):
        room = problem.n if high is None else work.room(float(high))
        if problem.node_limit is not None:
            room = min(room, problem.node_limit)
        least, low = low, max(low, high or low)
        if room * cores < problem.n:
            continue  # no step is so short
        if not isinstance(proof, Mapping):
            raise CertificateError("an entry of 'proofs' is no certificate")
        total = replace(problem, objective="energy", migration=None, ceilings=(), node_limit=room)
        paid = max(Fraction(0), proved_of_sum(total, proof)) if proof else Fraction(0)
        energy = spent + paid + (chips + each * -(-problem.n // room)) * least
        values.append(energy * (least if problem.objective == "energy-delay" else 1))
    wrong = Fraction(8 * (problem.graph.m + problem.graph.rows + problem.n + 8)) * Fraction(EPS)
    return below(min(values, default=Fraction(0)) * (1 - wrong))


def _ends(until: Any) -> list[Fraction]:
    """Return the ends of pieces in ns, which have to rise."""
    values = np.asarray(until if isinstance(until, list | tuple | np.ndarray) else [np.nan])
    if values.dtype.kind not in "iuf" or values.ndim != 1 or len(values) > MOST:
        values = np.array([np.nan]) if values.size else values.astype(np.float64).reshape(-1)
    if not ((values > 0) & (values < LARGEST)).all() or (np.diff(values) <= 0).any():
        raise CertificateError(f"'until' is no list of at most {MOST} rising times in ns")
    return [Fraction(float(value)) for value in values]
