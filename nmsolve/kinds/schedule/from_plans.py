"""``nmsolve schedule --from``: output folders of ``nmsolve pipeline`` as the networks to be scheduled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmsolve.kinds import values as opt
from nmsolve.kinds.options import AnswerOptions
from nmsolve.kinds.pipeline.check_floorplan import FOLDER
from nmsolve.kinds.pipeline.kind import KIND as PIPELINES
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run, settle
from nmsolve.model.files import read_limited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nmsolve.hw.schedule.from_runs import PlannedRun
    from nmsolve.kinds.schedule.options import ScheduleOptions
    from nmsolve.model.pipeline.plan import PipelinePlan

#: The networks as the command writes them, to be seen and edited.
TASKS = "tasks.json"


def with_tasks(o: ScheduleOptions) -> ScheduleOptions:
    """Write the networks of ``--from`` into the output folder, and return the options with this file and its machine.

    Raises
    ------
    InputError : not the folder of a plan, plans that cannot be scheduled together, no machine or several
    """
    from nmsolve.hw.machines import load_machine
    from nmsolve.hw.schedule.from_runs import tasks_from_runs
    from nmsolve.kinds.answer import prepare_folder
    from nmsolve.model.schedule.tasks_file import encoded, write_tasks

    for option, value in {"TASKS": o.tasks, "--reschedule": o.reschedule}.items():
        if value is not None:
            raise InputError("the plans say it", option, "none with --from")
    found = [read_run(folder) for folder in o.from_ or ()]
    machine = o.machine or _one_machine([m for _, m in found], o.from_ or ())
    for run, name in found:
        if run.cores is not None and opt.text_or_file(machine) != name:
            raise InputError(
                f"its stages are placed on {name}", run.where, f"a plan placed on {machine}, or not placed"
            )
    tasks = tasks_from_runs([run for run, _ in found], load_machine(machine), o.frames or 1)
    prepare_folder(o.out)
    path = o.out / TASKS
    if path.exists() and read_limited(path) != encoded(tasks):
        what = "it holds other tasks than those of the plans, and would be replaced"
        raise InputError(what, str(path), "another --out, or no such file")
    write_tasks(path, tasks)
    return replace(o, tasks=o.out / TASKS, machine=machine)


def _one_machine(names: Sequence[str | None], folders: Sequence[Path]) -> str:
    """Return the machine that all plans are for."""
    known = set(names)
    if None in known or len(known) > 1:
        what = (
            "the plans are for different machines" if len(known - {None}) > 1 else "a plan is for no machine"
        )
        raise InputError(what, ", ".join(str(f) for f in folders), "--machine M")
    return str(names[0])


def read_run(folder: Path) -> tuple[PlannedRun, str | None]:
    """Return the plan in a folder, with its placement if it has one, and the machine that it was made for.

    Raises
    ------
    InputError : not the output folder of ``nmsolve pipeline``, files of different runs, a plan that breaks a rule
    """
    from nmsolve.hw.schedule.from_runs import PlannedRun
    from nmsolve.model.pipeline.check import plan_complaint
    from nmsolve.model.pipeline.figures import machine_figures
    from nmsolve.model.pipeline.files import read_plan

    settle(folder)
    if not (folder / PIPELINES.answer).is_file() or not (folder / PIPELINES.report).is_file():
        missing = PIPELINES.answer if not (folder / PIPELINES.answer).is_file() else PIPELINES.report
        raise InputError(f"no {missing}", str(folder), "the output folder of `nmsolve pipeline`")
    require_one_run(folder, [PIPELINES.report, PIPELINES.answer])
    inputs = PIPELINES.read_inputs(folder / PIPELINES.report)[1]
    given = PIPELINES.state(inputs)
    plan = read_plan(folder / PIPELINES.answer, given.problem)
    complaint = plan_complaint(given.problem, plan)
    if complaint is not None:
        raise InputError(
            f"the plan breaks a rule: {complaint}", str(folder / PIPELINES.answer), "a legal one"
        )
    speed = machine_figures(given.machine).bandwidth if given.layers is not None else 0.0
    cores = _placed(folder, plan) if (folder / FOLDER / "mapping.json").is_file() else None
    if inputs.chips is not None and given.machine is not None:
        raise InputError(
            f"a plan for {inputs.chips} chips", str(folder), "a plan for a machine that --machine names"
        )
    return PlannedRun(str(folder), given.problem, plan, given.unit, speed, cores), inputs.machine


def _placed(folder: Path, plan: PipelinePlan) -> list[list[str]]:
    """Return the units of every stage, from the mapping of its tiles."""
    from nmsolve.kinds.loading import load_answer

    loaded = load_answer(AnswerOptions(folder / FOLDER))
    count = int(plan.cores.sum())
    if loaded.graph.n != count:
        raise InputError(
            f"{loaded.graph.n} tiles for a plan with {count} cores", str(folder / FOLDER), "a tile per core"
        )
    place = {loaded.graph.node_id(i): int(c) for i, c in enumerate(loaded.core.tolist())}
    found, cols = [], loaded.machine.cols
    for k, cores in enumerate(plan.cores.tolist()):
        own = [place.get(f"s{k}/{i}", -1) for i in range(cores)]
        if min(own) < 0 or len(set(own)) < cores:
            raise InputError(
                f"the tiles of stage {k} have no cores of their own", str(folder / FOLDER), "a tile per core"
            )
        found.append([f"{c // cols},{c % cols}" for c in own])
    return found
