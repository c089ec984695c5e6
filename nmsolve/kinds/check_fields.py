"""That the files of an answer say nothing else than their problem and answer give: written again, and compared field by field.

A field is one of three things. Either it follows from problem and answer: then the file is written again from these, by the code
that writes it after a search, and has to be equal. Or it tells how the run went (:data:`RUN`): then no file can prove it, and
``verify`` names it as not read. Or nmsolve writes no such field: then it is named, and the check fails.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from nmsolve.check.claims import MOST, TOLERANCE
from nmsolve.kinds.parts import CheckPart, EnginePart
from nmsolve.kinds.verdict import NOT_READ
from nmsolve.model.bound import Bound, EngineShare, Result, gap

if TYPE_CHECKING:
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine

S = TypeVar("S")

#: Fields of every report that tell how the run went. ``checks`` are those of the run, which ``verify`` makes itself; of
#: ``bounds.package`` it says itself whose word a bound rests on.
RUN = frozenset((
    "run", "version", "stop_reason", "method", "contributions", "wall_seconds", "cpu_seconds", "memory", "memory_peak", "seed",
    "engines", "checks", "not_checked", "bounds.package",
))  # fmt: skip
#: Differences that a message lists.
LISTED = 3


def inputs_of_options(report: Mapping[str, Any], options: Collection[str]) -> dict[str, Any]:
    """Return what the inputs of a report say of these options."""
    said = report.get("inputs") or {}
    return {k: said[k] for k in options if k in said}


def under(name: str, keys: Collection[str]) -> frozenset[str]:
    """Return the paths of ``keys`` in the object ``name``."""
    return frozenset(f"{name}.{key}" for key in keys)


def claimed_result(
    report: Mapping[str, Any], solution: S, objective: tuple[str, Any], scores: Mapping[str, Any], bounds: Sequence[Bound]
) -> Result[S]:  # fmt: skip
    """Return the result of which a run would write this report: what follows from the answer as recomputed, the rest as said.

    Parameters
    ----------
    report : of the right types (:func:`require_types`)
    objective, scores : name and value of what was minimised, and all objectives, as recomputed
    bounds : those of the certificates beside the report
    """
    name, value = objective
    low, engines = report.get("bound"), msgspec.convert(report.get("engines", []), list[EnginePart])
    kept = report.get("placement_bound")
    return Result(
        status=report.get("status", ""), stop_reason="", objective_name=name, solution=solution, objective=value, bound=low,
        gap=gap(value, low), bounds=tuple(bounds), placement_bound=kept, placement_gap=gap(value, kept), scores=scores,
        engines=tuple(EngineShare(*msgspec.structs.astuple(e)) for e in engines), seed=report.get("seed", 0),
    )  # fmt: skip


def field_check(file: str, said: Mapping[str, Any], again: object, unread: Collection[str] = ()) -> CheckPart:
    """Compare a file of an answer, or a part of one, with the same written ``again``.

    Parameters
    ----------
    unread : fields that nothing can be said of: keys joined by dots, without numbers of lists; with all that is in them
    """
    wrong = list(differences(said, msgspec.to_builtins(again), unread))
    more = f"; {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
    text = "; ".join(wrong[:LISTED]) + more or f"all {leaves(said, unread):,} values recomputed"
    return CheckPart(f"fields of {file}", not wrong, text)


def answer_check(path: Path, write: Callable[[Path], None], unread: Collection[str] = ()) -> CheckPart:
    """Compare the file of an answer with what ``write`` makes of the answer that was read from it.

    What a file by hand leaves out, or states by an empty hash, it does not claim; ``processes`` may come in any order.
    """
    from nmsolve.kinds.loading import read_object

    said = read_object(path)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / path.name)
        again = read_object(Path(folder) / path.name)
    if "processes" in said:
        said, again = (
            c | {"processes": sorted(c["processes"], key=itemgetter("process"))} for c in (said, again)
        )
    return field_check(path.name, said, said_of(said, again), {"run", *unread})


def mapping_check(path: Path, graph: LogicGraph, machine: Machine, unread: Collection[str]) -> CheckPart:
    """Check what a mapping.json says beside its columns, which its reader checks."""
    from nmsolve.model.files import decode_json, read_limited
    from nmsolve.model.mapping.files import MappingFile, identities

    content = decode_json(read_limited(path), dict[str, msgspec.Raw], path)
    said = {k: msgspec.json.decode(v) if k in ("graph", "machine") else None for k, v in content.items()}
    again = dict.fromkeys(MappingFile.__struct_fields__) | msgspec.to_builtins(identities(graph, machine))
    return field_check(path.name, said, said_of(said, again), unread)


def said_of(said: Any, again: Any) -> Any:
    """Return of a file that is written ``again`` what the other says as well."""
    if isinstance(said, dict) and isinstance(again, dict):
        return {k: said[k] if said[k] == "" else said_of(said[k], v) for k, v in again.items() if k in said}
    if isinstance(said, list) and isinstance(again, list) and len(said) == len(again):
        return [said_of(one, other) for one, other in zip(said, again, strict=True)]
    return again


def not_read(
    parts: Iterable[tuple[str, Mapping[str, Any], Collection[str]]], files: Iterable[str]
) -> CheckPart:
    """Return the line that names all that was not read.

    Parameters
    ----------
    parts : file, content, and fields of it that were not read
    files : of the run, that were not read at all
    """
    words = []
    for file, said, unread in parts:
        names = sorted({_inside(path, unread) for path, _ in _fields(said)} - {""})
        words += [f"{file} {', '.join(names)}"] if names else []
    return CheckPart(NOT_READ, True, "; ".join([*words, *files]))


def differences(
    said: Any, again: Any, unread: Collection[str], path: str = "", where: str = "$"
) -> Iterator[str]:
    """Yield where a value of a file is not what it would be if it were written again; a key that is missing means null."""
    if path in unread:
        return
    if isinstance(again, Mapping) and isinstance(said, Mapping):
        for key in dict.fromkeys((*said, *again)):
            inner, at = f"{path}.{key}".lstrip("."), f"{where}.{shown(key)}"
            if key in again:
                yield from differences(said.get(key), again[key], unread, inner, at)
            elif inner not in unread:
                yield f"{at} is no field that nmsolve writes here"
    elif isinstance(again, list | tuple) and isinstance(said, list | tuple):
        if len(again) != len(said):
            yield f"{where} has {len(said):,} entries, not {len(again):,}"
            return
        for k, (one, other) in enumerate(zip(said, again, strict=True)):
            yield from differences(one, other, unread, path, f"{where}[{k}]")
    elif not same(said, again):
        yield f"{where} is {shown(again)}, the file says {shown(said)}"


def same(said: object, again: object) -> bool:
    """Return whether two values of JSON are equal: whole numbers exactly, others but for the rounding of sums."""
    if isinstance(said, bool) or isinstance(again, bool):
        return said is again
    if isinstance(said, int | float) and isinstance(again, int | float):
        if isinstance(said, int) and isinstance(again, int):
            return said == again
        close = abs(said) <= MOST and abs(again) <= MOST
        return close and math.isclose(said, again, rel_tol=TOLERANCE, abs_tol=1e-12)
    return type(said) is type(again) and said == again


def shown(value: object) -> str:
    """Return a value from a file for a message, whole numbers with all their digits."""
    if value is None:
        return "nothing"
    if isinstance(value, int) and abs(value) > MOST:
        return f"a whole number of {value.bit_length():,} bits"
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def leaves(said: object, unread: Collection[str]) -> int:
    """Return how many values of a file were compared."""
    return sum(not _inside(path, unread) for path, _ in _fields(said))


def _fields(said: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every value that is no object and no list, with its path."""
    if isinstance(said, Mapping):
        for key, value in said.items():
            yield from _fields(value, f"{path}.{key}".lstrip("."))
    elif isinstance(said, list | tuple):
        for value in said:
            yield from _fields(value, path)
    else:
        yield path, said


def _inside(path: str, unread: Collection[str]) -> str:
    """Return the unread field that a path is, or is in; "" for none."""
    parts = path.split(".")
    return next((p for k in range(len(parts)) if (p := ".".join(parts[: k + 1])) in unread), "")


class Again(NamedTuple):
    """A report written again; ``unread``: its fields that nothing can be said of."""

    content: dict[str, Any]
    unread: frozenset[str]


def inputs_again(
    report: Mapping[str, Any], inputs: msgspec.Struct, options: Collection[str] = ()
) -> dict[str, Any]:
    """Return the inputs of a report as they would be written again: those that state the problem, and ``options``."""
    said = report.get("inputs") or {}
    stated = msgspec.to_builtins(inputs)
    return {k: v for k, v in stated.items() if k in said} | inputs_of_options(report, options)


def as_written(report: msgspec.Struct, bounds: Sequence[Bound] | None, unread: Collection[str] = ()) -> Again:
    """Return a report as its file would hold it; without ``bounds`` these are not read."""
    content = msgspec.json.decode(msgspec.json.encode(report))
    return Again(content, RUN | frozenset(unread) | frozenset(() if bounds is not None else ("bounds",)))
