"""What a report of a pipeline says in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.parts import among, proved_words
from nmsolve.model.bound import meets
from nmsolve.model.pipeline.objectives import ENERGY, PERIOD
from nmsolve.report.figures import number, percent

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.report import PipelineReport, StagePart

#: What is said where filling and draining take more than this part of the time.
MUCH, HINT = 0.1, " `--objective batch` looks for the plan that is fastest for this many."
#: Most names of control flow that a sentence lists.
NAMED = 4


def cores_words(stage: StagePart) -> str:
    """Return a stage's cores, as replicas x cores of each where there are several."""
    return f"{stage.replicas}x{stage.group}" if stage.replicas > 1 else str(stage.cores or "host")


def pipeline_words(report: PipelineReport) -> list[str]:
    """Describe in sentences what is proved, and how much worse simpler plans are."""
    unit, goal = (f" {x}" if x else "" for x in (report.unit, report.goal_unit))
    takes = "The slowest stage takes" if report.minimised == PERIOD else "A micro-batch needs"
    if report.rounds is not None:
        takes = f"{_counted(report.rounds).capitalize()} take{'s' if report.rounds == 1 else ''}"
    units = {ENERGY: "uJ"}
    within = among(
        "plans", report.inputs, "", lambda k, v: f"{number(v)} {units.get(k, report.unit)}".rstrip()
    )
    words = [proved_words(report, "plan", within + takes, lambda v: f"{number(v)}{goal}", _by_word(report))]
    if report.objective is None:
        return words
    if report.minimised != PERIOD:
        words.append(f"The slowest stage takes {number(max(s.load for s in report.stages))}{unit}.")
    elif report.work > 0:
        words.append(
            f"All work shared out evenly over the cores, without transfer, would take {number(report.work)}{unit}; "
            f"the plan takes {report.objective / report.work:.3f} times that."
        )
    for b in report.baselines:
        if b.objective is None:
            words.append(f"{_capital(b.name)}: not possible, {b.trouble}.")
        elif report.objective > 0:
            as_much = "much" if report.minimised == ENERGY else "long"
            words.append(
                f"{_capital(b.name)}: {number(b.objective)}{goal}, {b.objective / report.objective:.2f} times as {as_much}."
            )
    words += _energy_words(report)
    several = [s.replicas for s in report.stages if s.replicas > 1]
    if report.batch is not None and report.batch.batches > 1:
        batch = report.batch
        takes = f"{_counted(batch.batches)} take {number(batch.total)}{unit}, {percent(batch.share)} of it to fill and drain"
        if report.rounds is not None:
            takes = f"{percent(batch.share)} of that time is to fill and drain"
        words.append(
            f"{takes} the pipeline; all cores work {percent(batch.utilisation)} of the time."
            + (
                HINT
                if report.minimised == PERIOD
                and not report.inputs.get("before")
                and report.split == "chain"
                and batch.share > MUCH
                and not several
                else ""
            )
        )
    if several:
        words.append(
            f"{len(several)} of {len(report.stages)} stages have replicas, up to {max(several)}, which take micro-batches in "
            "turns; their times are per micro-batch."
        )
    moved = sum(s.streamed for s in report.stages)
    if moved:
        words.append(
            f"{size_words(moved)} do not fit on the cores and are moved from and to off-chip memory in every run"
            f"{' and in every trip of the loops of their stage' if report.loops else ''}, by "
            f"{sum(s.streamed > 0 for s in report.stages)} of {len(report.stages)} stages."
        )
    if report.loops:
        named = [f"{x.name} ({x.trips:,} trip{'s' if x.trips != 1 else ''})" for x in report.loops]
        more = f" and {len(named) - NAMED:,} more" if len(named) > NAMED else ""
        words.append(f"Each loop stays in one stage: {', '.join(named[:NAMED])}{more}.")
    guessed = [b.name for b in report.branches if b.assumed]
    if guessed:
        more = f" and {len(guessed) - NAMED:,} more" if len(guessed) > NAMED else ""
        words.append(
            f"Assumed: each branch of {', '.join(guessed[:NAMED])}{more} is taken in half of the runs (--branch states "
            "how often)."
        )
    if report.assumed:
        words.append(
            "Times are those of an assumed core, not of a real machine: use them to compare plans, not to predict a chip."
        )
    return words


def _energy_words(report: PipelineReport) -> list[str]:
    """Describe what energy is spent on."""
    found = report.energy
    if found is None or not found.total:
        return []
    shares = {
        "operations": found.compute, "transfer between stages": found.transfer, "exchange inside them": found.exchange,
        "off-chip memory": found.offchip, "static power": found.static,
    }  # fmt: skip
    named = [f"{percent(part / found.total)} for {name}" for name, part in shares.items() if part]
    return [f"Energy of a micro-batch: {number(found.total)} uJ, {', '.join(named)}."]


def _counted(batches: int) -> str:
    return f"{batches:,} micro-batch" + "es" * (batches > 1)


def size_words(count: float) -> str:
    """Return a number of bytes for people, in MiB or KiB from 10 of them on."""
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= 10 * size:
            return f"{number(count / size)} {unit}"
    return f"{number(count)} B"


def _by_word(report: PipelineReport) -> str:
    """Return the solver on whose word the bound rests, if no recomputed bound reaches it."""
    words = {c.name: c.word for c in report.checks if c.word}
    checked = {c.name for c in report.checks if c.ok and not c.word}
    recomputed = [b.value for b in report.bounds if f"bound {b.method}" in checked]
    bound = report.bound or 0.0
    if not words or any(meets(value, bound) for value in recomputed):
        return ""
    best = max(
        (b for b in report.bounds if f"bound {b.method}" in words), key=lambda b: b.value, default=None
    )
    return "" if best is None else f" (on the word of {words[f'bound {best.method}']})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
