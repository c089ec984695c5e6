"""What ``verify`` checks of any answer whose objectives are whole numbers, whatever its problem."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmsolve.check.claims import WRITTEN, gap_check, status_check
from nmsolve.kinds.check_bounds import Budget, Proofs, budget_of
from nmsolve.kinds.check_fields import shown as field_shown
from nmsolve.kinds.parts import CheckPart, check_parts
from nmsolve.kinds.verdict import unread_checks
from nmsolve.model.bound import BoundCheck, Stage
from nmsolve.model.errors import InputError
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.check_fields import Again
    from nmsolve.kinds.loading import Held
    from nmsolve.kinds.verbs import VerifyOptions
    from nmsolve.model.bound import Bound, Ceilings, Result

#: Seconds that re-checking one bound may take, about.
SECONDS = 600.0


class FileChecks(NamedTuple):
    """What the file of an answer and its certificates were checked for.

    Attributes
    ----------
    checks : of rules, objective, gap, status and bounds
    solution : the answer
    values : its objectives as recomputed, by name; none if it breaks a rule
    bounds : of the certificates; None where these were not read
    unread : of other files that were checked: name, content, and fields of it that nothing can be said of
    """

    checks: list[CheckPart]
    solution: Any
    values: Mapping[str, float]
    bounds: Sequence[Bound] | None
    unread: Sequence[tuple[str, Mapping[str, Any], Collection[str]]] = ()


class WholeBounds(ABC):
    """How bounds of a ``problem`` in whole numbers are re-checked."""

    exact = True
    slow: Collection[str] = ()

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    @property
    def minimised(self) -> tuple[str, Ceilings]:
        """Objective and ceilings of the problem."""
        return self.problem.objective, self.problem.ceilings

    @property
    @abstractmethod
    def free(self) -> Collection[str]:
        """Methods that are recomputed: they use no ceilings."""

    @abstractmethod
    def restated(self, stage: Stage) -> Any:
        """Return the problem of a stage: its objective under its ceilings.

        Raises
        ------
        InputError : there is none
        """

    @abstractmethod
    def recheck(self, problem: Any, bound: Bound, about: str, seconds: float) -> BoundCheck:
        """Re-check a bound of ``problem``, kept with one of hash ``about``, by other code than that which found it."""

    def check(
        self, stage: Stage, bound: Bound, solution: Any, least: float, seconds: float = SECONDS
    ) -> BoundCheck:
        """Re-check a bound of the stage, of which an answer with the ``least`` value is known."""
        try:
            problem = self.restated(stage)
        except InputError as error:
            return BoundCheck(False, math.nan, error.what)
        found = self.recheck(problem, bound, stage.problem, min(seconds, SECONDS))
        if found.ok and bound.value > least:
            return BoundCheck(
                False, math.nan, f"{number(bound.value)} is above a known answer with {number(least)}"
            )
        return found

    def step(self, objective: str) -> float:
        """1: everything is whole."""
        return 1.0

    def hash_of(self, stage: Stage) -> str:
        """Return the hash of the stated problem."""
        try:
            return str(self.restated(stage).content_hash)
        except InputError:
            return ""


def bound_checks(
    of: WholeBounds, answer: Any, scores: Mapping[str, float], bounds: Sequence[Bound]
) -> list[CheckPart]:
    """Re-check the bounds of a fresh result."""
    stage = Stage(*of.minimised, of.problem.content_hash, tuple(bounds))
    return Proofs(of, [(answer, scores)]).take(stage)


def value_checks(
    name: str,
    walked: Mapping[str, int],
    found: Mapping[str, int],
    how: str,
    said: tuple[object, Mapping[str, Any]],
    ceilings: Ceilings,
) -> list[CheckPart]:
    """Check every objective of a legal answer, by two evaluators, and its ceilings.

    Parameters
    ----------
    name : the objective that is minimised
    walked, found : all objectives by the second evaluator (``how`` it works) and by the evaluator
    said : objective and scores of the report
    """
    objective, scores = said
    same = walked == found and equal(objective, walked[name])
    text = (
        f"{name} is {walked[name]:,} ({how}), {found[name]:,} (evaluator), the report says {shown(objective)}"
    )
    checks = [CheckPart("objective", same, text)]
    differ = [
        f"{k} is {v:,}, the report says {shown(scores.get(k))}"
        for k, v in walked.items()
        if not equal(scores.get(k), v)
    ]
    checks.append(CheckPart("scores", not differ, "; ".join(differ) or "every objective recomputed"))
    for other, most in ceilings:
        ok = walked.get(other, math.inf) <= most
        text = f"{other} is {walked[other]:,}, it was held at {most:,.0f}" if other in walked else "unknown"
        checks.append(CheckPart(f"held {other}", ok, text))
    return checks


def equal(said: object, found: int) -> bool:
    """Return whether a value from a file is this number."""
    if not isinstance(said, int | float) or isinstance(said, bool):
        return False
    return said == found if isinstance(said, int) else said == float(found)


def shown(value: object) -> str:
    """Return a value from a file for a message."""
    if isinstance(value, float):
        return f"{int(value):,}" if value.is_integer() and abs(value) < WRITTEN else number(value)
    return f"{value:,}" if isinstance(value, int) and abs(value) < WRITTEN else field_shown(value)


def result_parts(result: Result[Any], thing: str) -> list[CheckPart]:
    """Check gap and status of a fresh result; ``thing`` is what was looked for, e.g. ``an assignment``."""
    said = {"status": result.status, "bound_scope": "full"}
    told = [gap_check("gap", result.objective, result.bound, result.gap)]
    told.append(status_check(said, result.objective, result.bound, thing, exact=True))
    return check_parts(told)


def problem_check(report: Mapping[str, Any], here: str, what: str) -> CheckPart:
    """Check that a report is about the problem with hash ``here``, which is stated by ``what``."""
    about = report.get("graph")
    said = about.get("problem") if isinstance(about, dict) else None
    same = said == here
    return CheckPart("problem", same, f"the report is about {f'this {what}' if same else 'another problem'}")


def said_values(report: Mapping[str, Any]) -> tuple[object, Mapping[str, Any]]:
    """Return objective and scores of a report, for :func:`value_checks`."""
    scores = report.get("scores")
    return report.get("objective"), scores if isinstance(scores, dict) else {}


def claim_checks(
    report: Mapping[str, Any], before: Sequence[Held], thing: str, proofs: Path | None, known: tuple[Any, Mapping[str, float]],
    bounds: WholeBounds, about: tuple[str, Ceilings], budget: Budget | None = None,
) -> list[CheckPart]:  # fmt: skip
    """Check what a report claims of gap, status and bounds.

    Parameters
    ----------
    before : objectives that were minimised first, whose values are the last of the ceilings
    proofs : file of certificates, to be re-checked; None leaves the bounds unread
    known : the answer and its objectives as recomputed, none if it breaks a rule
    about : objective and ceilings of the problem
    budget : time for the re-checks
    """
    from nmsolve.kinds.loading import problem_of

    objective, limit, gap = (report.get(key) for key in ("objective", "bound", "gap"))
    told = [
        gap_check("gap", objective, limit, gap),
        status_check(report, objective, limit, thing, exact=True),
    ]
    told += [
        replace(
            status_check({"status": b.status}, b.value, b.bound, thing, exact=True),
            name=f"held {b.objective} status",
        )
        for b in before
    ]
    checks = check_parts(told)
    if proofs is None:
        return checks + unread_checks(report, before)
    said, here = problem_of(proofs), bounds.problem.content_hash
    if said != here:
        text = f"{proofs.name} is about problem {said[:64]}, this one is {here}"
        checks.append(CheckPart("certificates", False, text))
    if not known[1]:
        return checks
    return checks + _proved(report, before, proofs, known, about, Proofs(bounds, [known], budget))


def whole_file_checks(
    report: Mapping[str, Any], before: Sequence[Held], thing: str, about: str, proofs: Path, bounds: WholeBounds,
    answer: tuple[Any, list[CheckPart], Mapping[str, float]], o: VerifyOptions,
) -> FileChecks:  # fmt: skip
    """Check what a report says of an answer, and with ``--bound`` the certificates beside it.

    Parameters
    ----------
    before : objectives that were minimised first
    thing, about : what was looked for, and what states the problem, in words
    proofs : file of the certificates
    answer : it, its checks and its objectives as recomputed, none if it breaks a rule
    """
    from nmsolve.kinds.loading import load_certificates

    solution, found, values = answer
    checks = [problem_check(report, bounds.problem.content_hash, about), *found]
    read = proofs if o.bound else None
    checks += claim_checks(
        report, before, thing, read, (solution, values), bounds, bounds.minimised, budget_of(o, report)
    )
    return FileChecks(checks, solution, values, load_certificates(proofs)[1] if o.bound and values else None)


def whole_checks(
    path: Path, report: Mapping[str, Any], again: Again, write: Callable[[Path], None], files: Sequence[str],
    found: FileChecks, model: Path | None,
) -> list[CheckPart]:  # fmt: skip
    """Check every other field of a report and of the file of its answer, and name what was not read.

    Parameters
    ----------
    path : file of the answer; ``write`` writes that answer once more
    again : the report written again
    files : that a run may leave
    found : what was checked of answer and certificates
    model : the file that ``--graph`` names instead of the report's, which gives its problem another name
    """
    from nmsolve.kinds.check_fields import answer_check, field_check, not_read

    renamed = (
        set() if model is None else {"inputs.model", "inputs.tasks", "graph.name", "problem.name", "name"}
    )
    unread = again.unread | renamed
    read = {path.name, "report.json", "pipeline-report.json", *(name for name, *_ in found.unread)}
    read |= set() if found.bounds is None else {"certificates.json"}
    there = [f.relative_to(path.parent).as_posix() for name in files for f in sorted(path.parent.glob(name))]
    left = [f for f in there if f not in read]
    own = "pipeline-report.json" if "pipeline-report.json" in files else "report.json"
    return [
        field_check(own, report, again.content, unread),
        answer_check(path, write, renamed),
        not_read([(own, report, unread), *found.unread], left),
    ]


def _proved(
    report: Mapping[str, Any], before: Sequence[Held], path: Path, known: tuple[Any, Mapping[str, float]],
    about: tuple[str, Ceilings], proofs: Proofs,
) -> list[CheckPart]:  # fmt: skip
    """Re-check every certificate, and that the report claims no more than the certificates prove."""
    from nmsolve.kinds.loading import load_certificates, load_stages

    here, found = load_certificates(path)
    name, ceilings = about
    checks = proofs.take(Stage(name, ceilings, here, tuple(found)))
    checks += [c for s in load_stages(path) for c in proofs.take(s, named=True)]
    asked = len(ceilings) - len(before)
    for k, b in enumerate(before):
        if b.bound:
            within = dict(ceilings[: asked + k])
            checks.append(proofs.claim(f"held {b.objective} bound", b.bound, b.value, b.objective, within))
    if report.get("bound") is not None:
        claim = proofs.claim("full bound", report.get("bound"), report.get("objective"), name, dict(ceilings))
        checks.append(claim)
    return checks
