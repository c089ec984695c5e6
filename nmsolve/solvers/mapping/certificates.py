"""Certificates of bounds: written to JSON, read back, and re-checked without the code that found them.

:func:`check_bound` recomputes what a certificate proves from the problem alone, in plain NumPy (nothing from
:mod:`nmsolve.solvers.mapping.bounds` is used), and refuses a claim above that. The bounds and why they hold are in
docs/bounds.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nmsolve.hw.cost import uses_links, uses_nets
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound, BoundCheck, Stage
from nmsolve.model.errors import InputError
from nmsolve.model.graph import LogicGraph, pieces
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.recheck.chessboard import recheck_chessboard
from nmsolve.solvers.mapping.recheck.core_traffic import recheck_core_traffic
from nmsolve.solvers.mapping.recheck.counting import recheck_gilmore_lawler, recheck_neighbours
from nmsolve.solvers.mapping.recheck.eigenvalues import DECOMPOSED, FACTORED
from nmsolve.solvers.mapping.recheck.exchange import recheck_exchange
from nmsolve.solvers.mapping.recheck.fan_out import recheck_fan_out
from nmsolve.solvers.mapping.recheck.geometry import disagreement
from nmsolve.solvers.mapping.recheck.link_load import recheck_link_load
from nmsolve.solvers.mapping.recheck.parts import EPS, EXACT, CertificateError, granularity, risen
from nmsolve.solvers.mapping.recheck.slots import recheck_slots
from nmsolve.solvers.mapping.recheck.spectral import (
    recheck_partition_placement,
    recheck_parts,
    recheck_projection,
)
from nmsolve.solvers.mapping.recheck.split import recheck_split
from nmsolve.solvers.mapping.recheck.spread import recheck_spread
from nmsolve.solvers.mapping.recheck.stated import contracted
from nmsolve.solvers.mapping.recheck.step_ceiling import recheck_step_ceiling
from nmsolve.solvers.mapping.recheck.step_load import recheck_step_load
from nmsolve.solvers.mapping.recheck.step_power import recheck_step_power
from nmsolve.solvers.mapping.recheck.stored import needed
from nmsolve.solvers.mapping.recheck.subgraphs import recheck_subgraphs
from nmsolve.solvers.mapping.recheck.trees import recheck_tree_parts
from nmsolve.solvers.search.foreign_recheck import SECONDS, foreign_recheck, unknown_method

RECHECKS: dict[str, Callable[..., float]] = {
    "star": recheck_neighbours,
    "fan-out": recheck_fan_out,
    "gilmore-lawler": recheck_gilmore_lawler,
    "projection": recheck_projection,
    "split": recheck_split,
    "subgraphs": recheck_subgraphs,
    "spread": recheck_spread,
    "joint": recheck_partition_placement,
    "parts": recheck_parts,
    "chessboard": recheck_chessboard,
    "cover": recheck_core_traffic,
    "tree-parts": recheck_tree_parts,
    "link-load": recheck_link_load,
    "slots": recheck_slots,
    "exchange": recheck_exchange,
    "step-load": recheck_step_load,
    "step-ceiling": recheck_step_ceiling,
    "step-power": recheck_step_power,
}
#: Of these the one that uses ceilings: its bounds hold under them only.
CEILED = frozenset({"step-ceiling"})
#: Those that search again, and may be told for how long.
SEARCHED = frozenset({"subgraphs"})
#: Engines that prove optimality or infeasibility by search and leave only a status.
WORDS = ("cpsat", "mip", "branch-bound")
#: Of these the one whose search is repeated by other code, as far as that ends in time.
SEARCH = "branch-bound"
#: The same for mappings with chosen routes.
FREE_WORDS = ("joint-cpsat", "joint-mip", "tree-branching", "tree-partitions")
#: Methods of ours, whose claims no other package may re-check.
METHODS = frozenset((*RECHECKS, *WORDS, *FREE_WORDS))
#: Re-checks that rest on eigenvalues of a matrix over all nodes.
EIGENVALUES = ("joint", "parts", "chessboard", "tree-parts")
#: Those that are recomputed by passes over messages, so also from disk; placement bounds look at parts only.
FROM_DISK = {"fan-out", "joint", "parts"}
FORMAT = "nmsolve-certificates-1"
#: What the file, one of its stages and one of its bounds may say.
MEMBERS = ("run", "format", "problem", "bounds", "stages")
STAGE = ("objective", "ceilings", "problem", "bounds")
ROW = ("objective", "method", "scope", "value", "certificate")


def check_bound(
    problem: MappingProblem,
    bound: Bound,
    core: IntArray | None = None,
    about: str | None = None,
    *,
    free_routes: bool = False,
    seconds: float = SECONDS,
) -> BoundCheck:
    """Re-check a bound from its certificate.

    Parameters
    ----------
    problem : the problem as stated; ``together`` groups are merged here, with code that the engines do not use
    core : (n,) mapping; needed for scope ``placement`` (the parts are its parts), and if given no bound of scope
        ``full`` may exceed its objective
    about : hash of the problem that the bound was stored with; None for a bound that was just found
    free_routes : True if routes were chosen, too: a word about the machine's own routes then says nothing, nor does their
        cost, while what is recomputed holds for any routes
    seconds : how long the re-check of another package, or a second search, may take

    Notes
    -----
    Bounds of solvers that leave only a status cannot be recomputed (branch and bound is, if a second search ends in time): they
    pass as *trusted* if they were given about this very problem and no known mapping contradicts them. The re-check of an
    installed package is that package's word, and not for chosen routes. A word may use ceilings and the migration budget, and
    says so; of what is recomputed here only ``step-ceiling`` uses ceilings, all else holds with and without them.
    """
    wrong = _no_claim(bound, free_routes)
    if wrong is not None:
        return BoundCheck(False, np.nan, wrong)
    if bound.method not in METHODS:
        return _by_package(problem, bound, core, seconds)
    if bound.scope == "placement" and not uses_links(problem):
        if core is None:
            return BoundCheck(False, np.nan, "a placement bound needs the mapping whose parts it keeps")
        if uses_nets(problem):  # parts are joined by pairs here, and trees cost less than all their pairs
            return BoundCheck(False, np.nan, "placement bounds are for sums over pairs")
        if core.shape != (problem.n,) or core.min() < 0 or core.max() >= problem.cores:
            return BoundCheck(False, np.nan, "a placement bound needs a core for every node")
        problem = _parts(problem, core)
    elif bound.scope == "full" and core is not None and not free_routes:
        above = _above(problem, bound, core)
        if above is not None:
            return above
    if bound.value <= 0:
        return BoundCheck(True, 0.0, "no objective is below 0")
    if bound.method == SEARCH and bound.scope == "full" and np.isfinite(bound.value):
        return _by_search(problem, bound, about, seconds)
    if bound.method not in RECHECKS and bound.scope == "full":
        return _on_trust(problem, bound, about)
    if bound.method not in RECHECKS:
        return BoundCheck(False, np.nan, f"{bound.method} says nothing about placements alone")
    if uses_links(problem) and (bound.method not in problem.aim.bounds or bound.scope != "full"):
        return BoundCheck(False, np.nan, f"{bound.method} bounds sums, not the objective {problem.objective}")
    apart = disagreement(problem.machine, problem.aim.quantity)
    if apart is not None:
        return BoundCheck(False, np.nan, f"a mistake in nmsolve: {apart}")
    try:
        problem = problem if bound.method in CEILED else contracted(problem)
        within = {"seconds": seconds} if bound.method in SEARCHED else {}
        value = RECHECKS[bound.method](problem, bound.certificate, **within)
        if np.isnan(value) and within:
            return _on_trust(
                problem, bound, about, f"its sets are not searched again within {seconds:,.0f} s"
            )
    except CertificateError as broken:
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: {broken}")
    if not np.isfinite(value):
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: the numbers are too large")
    value = risen(value, granularity(problem))
    if not bound.value <= value:
        text = f"the certificate proves only {value:.17g}, the claim is {bound.value:.17g}"
        return BoundCheck(False, value, text)
    return BoundCheck(
        True, value, f"recomputed from the certificate: {value:.10g}{_certainty(problem, bound)}"
    )


def needed_from_disk(problem: MappingProblem, bound: Bound) -> int:
    """Return the bytes that the re-check of a bound takes beside a graph on disk; 0 where that is next to nothing."""
    lam = bound.certificate.get("eigenvalues")
    large = problem.graph.on_disk and problem.n > DECOMPOSED and bound.method in EIGENVALUES
    return needed(problem.n, len(lam)) if large and isinstance(lam, np.ndarray | list) else 0


def _certainty(problem: MappingProblem, bound: Bound) -> str:
    """Return what the check says of itself where it is not exact: eigenvalues of matrices too large to factor."""
    most = DECOMPOSED if problem.graph.on_disk else FACTORED
    by_chance = bound.certificate.get("inner", bound.method) in EIGENVALUES and problem.n > most
    return ", with probability above 1 - 5e-13 over the checker's own random vectors" if by_chance else ""


def _no_claim(bound: Bound, free_routes: bool) -> str | None:
    """Why nothing is claimed that could be looked at: an unknown method, another method's certificate, no number, no scope."""
    if bound.method not in RECHECKS and bound.method not in (FREE_WORDS if free_routes else WORDS):
        whose = "chosen routes" if free_routes else "the machine's own routes"
        if bound.method in METHODS or free_routes:
            return f"no engine for {whose} is called {bound.method!r}, so its claim does not count"
    method = bound.certificate.get("method", bound.method)
    if not isinstance(method, str) or method != bound.method:
        return f"the certificate is for {method!r}, the bound claims {bound.method!r}"
    if np.isnan(bound.value):
        return "the claim is not a number"
    return None if bound.scope in ("full", "placement") else f"unknown scope {bound.scope!r}"


def _above(problem: MappingProblem, bound: Bound, core: IntArray) -> BoundCheck | None:
    """Return the outcome if a bound is above the objective of a known mapping, else None."""
    cost = objective_value(problem, core)
    text = f"{bound.value:.10g} is above the cost {cost:.10g} of a known mapping"
    return BoundCheck(False, cost, text) if bound.value > cost * (1 + 1e-9) else None


def _by_package(problem: MappingProblem, bound: Bound, core: IntArray | None, seconds: float) -> BoundCheck:
    """Return what the re-check of an installed package says, of the problem with ``together`` groups merged."""
    above = None if core is None else _above(problem, bound, core)
    if above is not None:
        return above
    step = granularity(problem)
    try:
        merged = contracted(problem)
    except CertificateError as broken:
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: {broken}")
    found = foreign_recheck("", bound, (merged,), seconds, lambda value: risen(value, step))
    return found or BoundCheck(False, np.nan, unknown_method(bound.method))


def _by_search(problem: MappingProblem, bound: Bound, about: str | None, seconds: float) -> BoundCheck:
    """Return the outcome of a second search, for all mappings whatever the ceilings; on trust where it does not tell."""
    # its kernels take memory that nothing else needs
    from nmsolve.solvers.mapping.recheck.repeated import search_again

    try:
        found = search_again(contracted(problem), bound.value, bound.certificate, seconds)
    except CertificateError as broken:
        return BoundCheck(False, np.nan, f"certificate of {bound.method}: {broken}")
    if found:
        return BoundCheck(True, bound.value, "recomputed by a second search: no mapping costs less")
    if found is None or problem.ceilings or problem.limits_moves:
        why = f"a second search does not end within {seconds:,.0f} s, or cannot tell"
        return _on_trust(problem, bound, about, why)
    return BoundCheck(False, np.nan, f"a second search found a mapping below the claim {bound.value:.17g}")


def _on_trust(
    problem: MappingProblem, bound: Bound, about: str | None, why: str = "nothing here can be recomputed"
) -> BoundCheck:
    if about is not None and about != problem.hash:
        return BoundCheck(False, np.nan, f"given about problem {about}, this one is {problem.hash}")
    status = bound.certificate.get("status")
    status = status if isinstance(status, str) else "none"
    within = [f"{name} at most {most:.10g}" for name, most in problem.ceilings]
    within += ["the migration budget"] if problem.limits_moves else []
    only = f"; it is about mappings within {' and '.join(within)} only" if within else ""
    text = f"rests on the word of {bound.method} (status {status}); {why}{only}"
    return BoundCheck(True, bound.value, text, bound.method)


def _parts(problem: MappingProblem, core: IntArray) -> MappingProblem:
    """Return the parts of a mapping as nodes, one per core; traffic between two parts is rounded down where it is not whole."""
    graph = problem.graph
    number = np.full(problem.cores, -1, np.int64)
    used = np.flatnonzero(np.bincount(core, minlength=problem.cores))
    number[used] = np.arange(len(used))
    between, many = np.zeros((len(used), len(used))), np.zeros((len(used), len(used)))
    whole = True
    for rows, row in pieces(graph):
        at = number[core[rows.source[row]]], number[core[rows.targets]]
        np.add.at(between, at, rows.weights)
        np.add.at(many, at, 1.0)
        whole &= bool((rows.weights == np.rint(rows.weights)).all())
    if not (whole and between.sum() < EXACT):
        between *= 1.0 - many * EPS
    np.fill_diagonal(between, 0.0)
    a, b = np.nonzero(between)
    parts = LogicGraph.from_edges(len(used), a, b, between[a, b], name=graph.name)
    return MappingProblem(parts, problem.machine, problem.objective, (), 1)


#: Numbers of an array that are turned into text at once.
_PIECE = 1 << 16
_ENCODER = msgspec.json.Encoder()


def certificate_to_json(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certificate as plain JSON values; arrays become lists (floats survive exactly), also in lists of certificates."""
    return {key: _plain(value) for key, value in certificate.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return [certificate_to_json(one) if isinstance(one, Mapping) else one for one in value]
    return value


def certificate_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of :func:`certificate_to_json`: lists of numbers that floats hold exactly become arrays, all else stays."""
    return {key: _restored(value) for key, value in data.items()}


def _restored(value: Any) -> Any:
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return [certificate_from_json(one) if isinstance(one, Mapping) else one for one in value]
    return np.asarray(value, np.float64) if _are_floats(value) else value


def _are_floats(value: Any) -> bool:
    """Return whether this is a list of numbers of moderate size, and floats lose nothing of them."""
    return isinstance(value, list) and all(
        type(v) in (int, float) and abs(v) < 2**1000 and float(v) == v for v in value
    )


def certificates_to_json(
    problem: MappingProblem, bounds: Sequence[Bound], earlier: Sequence[Stage] = ()
) -> str:
    """The file ``certificates.json``: every bound with its certificate, and the hash of the problem it is about; the same of
    ``earlier`` problems of a run in order."""
    content = {"format": FORMAT, "problem": problem.hash, "bounds": _rows(bounds)}
    return _text(content | ({"stages": _stage_rows(earlier, RECHECKS)} if earlier else {}))


def certificates_text(
    about: str, bounds: Iterable[tuple[str, Bound]], earlier: Sequence[Stage] = (), free: Collection[str] = ()
) -> str:
    """The same for a problem of another kind with the hash ``about``; a bound comes with its objective, "" if there is one.

    ``free`` : methods of which a recomputed bound holds under all ceilings
    """
    rows = [({"objective": name} if name else {}) | _rows([b])[0] for name, b in bounds]
    content = {"format": FORMAT, "problem": about, "bounds": rows}
    return _text(content | ({"stages": _stage_rows(earlier, free)} if earlier else {}))


def stages_to_json(stages: Sequence[Stage], free: Collection[str]) -> str:
    """The file ``pareto-certificates.json``: the same for the problems of a front of any kind, of which none is the last word.

    ``free`` : methods of which a recomputed bound holds under all ceilings
    """
    return _text({"format": FORMAT, "stages": _stage_rows(stages, free)})


def _text(content: dict[str, Any]) -> str:
    # six times as fast as the standard library, and there may be 10^7 numbers
    out = bytearray()
    _ENCODER.encode_into(content, out)
    out += b"\n"
    return out.decode()


def _long(value: Any) -> Any:
    """Return a long array as the text of its list, made piece by piece: a list of numbers takes four times as much memory."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and len(value) > _PIECE):
        return value
    out = bytearray(b"[")
    for first in range(0, len(value), _PIECE):
        out += b"," if first else b""
        out += _ENCODER.encode(value[first : first + _PIECE].tolist())[1:-1]
    out += b"]"
    return msgspec.Raw(out)


def _rows(bounds: Sequence[Bound]) -> list[dict[str, Any]]:
    return [
        {
            "method": b.method,
            "scope": b.scope,
            "value": b.value if np.isfinite(b.value) else None,
            "certificate": certificate_to_json({key: _long(value) for key, value in b.certificate.items()}),
        }
        for b in bounds
    ]


def _stage_rows(stages: Sequence[Stage], free: Collection[str]) -> list[dict[str, Any]]:
    """Of what holds under all ceilings, only the best of every method for an objective. All else."""
    best: dict[tuple[str, str], Bound] = {}
    full = [(s, [b for b in s.bounds if b.scope == "full"]) for s in stages]
    for s, bounds in full:
        for b in bounds:
            if b.value > best.setdefault((s.objective, b.method), b).value:
                best[s.objective, b.method] = b
    out = []
    for s, bounds in full:
        kept = [b for b in bounds if b.method not in free or best[s.objective, b.method] is b]
        row = {"objective": s.objective, "ceilings": dict(s.ceilings), "problem": s.problem}
        out += [row | {"bounds": _rows(kept)}] if kept else []
    return out


def certificates_from_json(data: bytes | str, where: str = "certificates.json") -> list[Bound]:
    """Read ``certificates.json``. A value of ``null`` is infinite (no mapping exists).

    Raises
    ------
    InputError : not JSON, or not of this shape
    """
    file = _file(data, where)
    if not isinstance(file.get("bounds"), list):
        raise InputError("not a certificate file", where, f'"format": "{FORMAT}" and a list "bounds"')
    return _bounds(file["bounds"], f"{where}: $.bounds")


def stages_from_json(data: bytes | str, where: str = "certificates.json") -> list[Stage]:
    """Return the problems in it that are not the final one: those before it, or those of a front; none if it lists none.

    Raises
    ------
    InputError : not JSON, or not of this shape
    """
    rows = _file(data, where).get("stages", [])
    if not isinstance(rows, list):
        raise InputError("stages is not a list", where, "a list of objects")
    out = []
    for i, row in enumerate(rows):
        at = f"{where}: $.stages[{i}]"
        if not isinstance(row, dict) or not isinstance(row.get("bounds"), list):
            raise InputError("not a stage", at, "an object with objective, ceilings, problem and bounds")
        objective, limits, problem = row.get("objective"), row.get("ceilings"), row.get("problem")
        if not isinstance(objective, str) or not isinstance(problem, str) or not isinstance(limits, dict):
            raise InputError("objective, ceilings or problem is missing", at, "text, an object and text")
        _require_known(row, STAGE, at)
        ceilings = tuple((name, _value(most, at)) for name, most in limits.items())
        out.append(Stage(objective, ceilings, problem, tuple(_bounds(row["bounds"], f"{at}.bounds"))))
    return out


def _file(data: bytes | str, where: str) -> dict[str, Any]:
    try:
        text = data if isinstance(data, str) else data.decode()  # json.loads takes bytes that are not UTF-8
        file = json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_number)
        if "\\u" in text:
            json.dumps(file, ensure_ascii=False).encode()  # halves of surrogate pairs, which are no text
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error})", where, "a file written by nmsolve map") from error
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        raise InputError("not a certificate file", where, f'"format": "{FORMAT}" and a list "bounds"')
    _require_known(file, MEMBERS, where)
    return file


def _require_known(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    unknown = next((k for k in content if k not in known), None)
    if unknown is not None:
        raise InputError(f"unknown member {unknown[:40]!r}", where, ", ".join(known))


def _bounds(rows: Sequence[Any], where: str) -> list[Bound]:
    out = []
    for i, row in enumerate(rows):
        at = f"{where}[{i}]"
        if not isinstance(row, dict) or not isinstance(row.get("certificate"), dict):
            raise InputError("not a certificate", at, "an object with method, scope, value and certificate")
        method, scope, value = row.get("method"), row.get("scope"), row.get("value")
        if not isinstance(method, str) or not isinstance(scope, str):
            raise InputError("method or scope is missing", at, "text")
        number = float("inf") if value is None else _value(value, at)
        _require_known(row, ROW, at)
        out.append(Bound(number, method, scope, certificate_from_json(row["certificate"])))
    return out


def _value(value: Any, at: str) -> float:
    """Return a finite number from the file."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"value is {value!r}", at, "a number, or null for infinite")
    try:
        number = float(value)
    except OverflowError:
        raise InputError("value is too large", at, "a number, or null for infinite") from None
    if not np.isfinite(number):
        raise InputError(f"value is {number}", at, "a number, or null for infinite")
    return number


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different: of two equal ones, readers would disagree which counts."""
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} twice in one object")
    return out


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")
