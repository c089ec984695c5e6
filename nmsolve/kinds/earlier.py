"""What a run takes over from an earlier one: its answer, its proofs, and with ``nmsolve resume`` and ``gap`` its options."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nmsolve.kinds.answer import OK
from nmsolve.kinds.assignment.options import AssignOptions
from nmsolve.kinds.assignment.statement import is_assignment
from nmsolve.kinds.loading import Held, read_certificates, read_object
from nmsolve.kinds.mapping.options import MapOptions
from nmsolve.kinds.options import ResumeOptions
from nmsolve.kinds.pipeline.options import PipelineOptions
from nmsolve.kinds.routing.options import RouteOptions
from nmsolve.kinds.schedule.options import ScheduleOptions
from nmsolve.kinds.schedule.statement import ScheduleInputs, is_schedule, located, options_of
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run, settle

if TYPE_CHECKING:
    from nmsolve.model.bound import Bound

#: Options that name output files: never taken from a report, which may come from anyone.
WRITTEN = ("out", "scratch", "write_model", "write_onnx", "memory_of")


@dataclass(frozen=True)
class Start:
    """Where a search starts that continues an earlier run.

    Attributes
    ----------
    answer : its file
    stays : the answer is kept as it is, and only bounds are raised (``nmsolve gap``)
    """

    answer: Path
    stays: bool = False

    def known(self, proofs: str, about: str) -> list[tuple[str, Bound]]:
        """Return every bound of a certificate file beside the answer with its objective, none of a file about another problem.

        ``about`` : hash of the problem
        """
        path = self.answer.parent / proofs
        if not path.exists():
            return []
        said, bounds = read_certificates(path)
        return bounds if said == about else []


class Kind(NamedTuple):
    """A command whose runs can be gone on with: its function, its options, and what its runs call report, answer and proofs."""

    run: str
    options: type
    report: str
    answer: str
    proofs: str


MAP = Kind("kinds.mapping.run:run_map", MapOptions, "report.json", "mapping.json", "certificates.json")
ROUTE = Kind(
    "kinds.routing.run:run_route",
    RouteOptions,
    "route-report.json",
    "flow-routes.json",
    "route-certificates.json",
)
PIPELINE = Kind(
    "kinds.pipeline.run:run_pipeline",
    PipelineOptions,
    "pipeline-report.json",
    "plan.json",
    "certificates.json",
)
ASSIGN = Kind(
    "kinds.assignment.run:run_assign", AssignOptions, "report.json", "assignment.json", "certificates.json"
)

SCHEDULE = Kind(
    "kinds.schedule.run:run_schedule",
    ScheduleOptions,
    "report.json",
    "schedule.json",
    "certificates.json",
)


def run_resume(o: ResumeOptions) -> int:
    """Run the earlier command once more from where it ended; its exit code, 0 where nothing is left to do.

    Raises
    ------
    InputError : not the folder of a run that can be gone on with, or anything wrong with what it names
    """
    settle(o.run)
    kind = next((kind for kind in (MAP, ROUTE, PIPELINE) if (o.run / kind.report).exists()), None)
    if kind is MAP:
        kind = ASSIGN if is_assignment(o.run) else SCHEDULE if is_schedule(o.run) else MAP
    if kind is None:
        wanted = "the output folder of `nmsolve map`, `route`, `pipeline`, `assign` or `schedule` (a front has none)"
        raise InputError("the folder holds no report of a run", str(o.run), wanted)
    report = read_object(o.run / kind.report)
    if report.get("status") in ("optimal", "infeasible"):
        print(f"nothing is left to do: the run proved its problem {report['status']}")
        return OK
    given = {f.name: getattr(o, f.name) for f in fields(o) if f.name != "run"}
    return run_again(kind, o.run / kind.answer, given | {"out": o.out or o.run})


def answer_of(path: Path) -> tuple[Kind, Path] | None:
    """Of which kind the answer is that ``path``, a file or the folder of a run, is about; None if a mapping is meant."""
    for kind in (ROUTE, PIPELINE):
        if path.name == kind.answer or (
            path.is_dir() and (path / kind.report).exists() and not (path / MAP.answer).exists()
        ):
            return kind, path / kind.answer if path.is_dir() else path
    return None


def run_again(kind: Kind, answer: Path, given: dict[str, Any], stays: bool = False) -> int:
    """Run a command with the options of the run that left ``answer``, except for those that are ``given``; its exit code.

    Raises
    ------
    InputError : no report beside the answer, or not what nmsolve wrote
    """
    report = answer.parent / kind.report
    if not report.exists():
        raise InputError(
            f"no {kind.report} beside the answer", str(answer.parent), "the output folder of a run"
        )
    require_one_run(answer.parent, [kind.report, kind.answer, kind.proofs])
    options = stated_options(kind, read_object(report).get("inputs"), given, report)
    module, _, function = kind.run.partition(":")
    body = getattr(import_module(f"nmsolve.{module}"), function)
    code: int = body(options, Start(answer, stays) if stays or answer.exists() else None)
    return code


def stated_options(kind: Kind, inputs: object, given: dict[str, Any], where: Path) -> Any:
    """Return the options that the ``inputs`` of a report hold, but for those that are ``given``.

    Raises
    ------
    InputError : not what nmsolve wrote
    """
    stated = {k: v for k, v in inputs.items() if v is not None} if isinstance(inputs, dict) else {}
    names = {f.name for f in fields(kind.options)}
    try:
        stated = {
            k: v for k, v in (stated | _renamed(kind, stated, where.parent)).items() if k not in WRITTEN
        }
        stated |= {k: v for k, v in given.items() if v is not None}
        return msgspec.convert(
            {k: v for k, v in stated.items() if k in names},
            kind.options,
            dec_hook=lambda cls, value: cls(value),
        )
    except (msgspec.ValidationError, TypeError) as error:
        text = f"invalid inputs ({error})"
        raise InputError(text, f"{where}: $.inputs", "a report that nmsolve wrote") from None


def _renamed(kind: Kind, stated: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return options that a report holds by another name, in another form, or that say where the earlier run began."""
    if kind is PIPELINE:
        names = ("core_memory", "offchip_bandwidth", "group_sync")
        return {name: None if stated.get(name) is None else str(stated[name]) for name in names}
    if kind is ROUTE:
        return {"warm_start": None}
    if kind is ASSIGN:
        before = msgspec.convert(stated.get("before", []), list[Held])
        last = msgspec.convert(stated.get("objective", "latency"), str)
        return {"objective": ",".join([*(held.objective for held in before), last])}
    if kind is SCHEDULE:
        return options_of(located(msgspec.convert(stated, ScheduleInputs), folder))
    budget = stated.get("migration_budget")
    return {
        "objective": ",".join(msgspec.convert(stated.get("objectives", ["hops"]), list[str])),
        "limit": [
            f"{k}={v!r}" for k, v in msgspec.convert(stated.get("limits", {}), dict[str, float]).items()
        ]
        or None,
        "warm_start": None if budget is None else stated.get("reference_file"),
        "gap": None,
    }
