"""``nmsolve.pipeline``: a network split into stages on groups of cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import msgspec

from nmsolve.hw.machine_write import save_machine
from nmsolve.kinds.answer import explained, prepare_file
from nmsolve.kinds.explain import Explained, explanation
from nmsolve.kinds.mapping.python import MappingAnswer
from nmsolve.kinds.mapping.python import map as map_graph
from nmsolve.kinds.pipeline.kind import KIND, explainable
from nmsolve.kinds.pipeline.options import PipelineOptions
from nmsolve.kinds.pipeline.report import PipelineReport
from nmsolve.kinds.pipeline.statement import (
    Given,
    PipelineInputs,
    objectives_in,
    require_policy,
    state_problem,
    stated_inputs,
)
from nmsolve.kinds.python.answers import started_from, table
from nmsolve.kinds.python.how import TIME_LIMIT, How, MapHow, in_order, run_options
from nmsolve.kinds.python.inputs import FOLDER, MachineLike, grid_text, machine_text, source_machine
from nmsolve.kinds.python.stated import StatedAnswer, solved
from nmsolve.model.arguments import plain_arguments
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.objectives import PERIOD
from nmsolve.model.pipeline.plan import PipelinePlan


class PipelineHow(How, total=False):
    """``chips``: of the machine, (rows, columns) or "3x4"; ``strict``: refuse unknown operators of ONNX models.
    ``offchip_bandwidth``: of off-chip memory, bytes per second or text such as 25.6GB/s; the machine's if not given.
    ``group_sync``: in which the cores of a group meet, ns or text such as 500ns; what they exchange counts then, too; the
    machine's if not given. ``branch``: how often the condition of an ``If`` holds, as ``{"exit_1": 0.3, "exit_2": "both"}``
    or text; 0.5 if not given. ``objective``: period, batch or energy, or period and another in order; ``replicas`` and
    ``group_border`` (core or side) as of the command. ``reward``: weights of the reward of method M5 for the engine
    ``m5-policy``, as in ``"storage=0.5,routing=0"``.
    """

    chips: str | tuple[int, int] | None
    strict: bool
    offchip_bandwidth: float | str | None
    group_sync: float | str | None
    branch: Mapping[str, float | str] | str | None
    objective: str | Sequence[str] | None
    replicas: int
    group_border: str | None
    reward: str | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PipelineAnswer(StatedAnswer[PipelinePlan]):
    """A plan, ``solution``: the stage of every layer and the cores of every stage, with a bound on the slowest stage.

    Attributes
    ----------
    given : the stated problem, and the model, the layers and the machine that it was made from
    options : those of the command that gives the same answer
    """

    kind = KIND
    given: Given
    options: PipelineOptions

    def files(self, folder: Path) -> PipelineOptions:
        """Return the options with the file of a machine that came as an object, in ``folder``."""
        o = replace(self.options, out=folder)
        if self.given.machine is not None and o.machine is None:
            path = folder / FOLDER / "machine.toml"
            path.parent.mkdir(exist_ok=True)
            save_machine(self.given.machine, path)
            o = replace(o, machine=str(path))
        return o

    def stated(self, folder: Path) -> tuple[PipelineOptions, PipelineInputs]:
        """Return options and inputs, with the file of a machine that came as an object."""
        o = self.files(folder)
        return o, msgspec.structs.replace(
            stated_inputs(o, o.reward), objective=self.inputs.objective, before=self.inputs.before
        )

    def _require_files(self) -> None:
        pass  # what came as an object is written

    @cached_property
    def stage(self) -> dict[str, int]:
        """Layer -> stage; empty if no plan was found."""
        plan = self.solution
        return {} if plan is None else dict(zip(self.problem.labels, plan.stage.tolist(), strict=True))

    @cached_property
    def report(self) -> PipelineReport:
        """The object in pipeline-report.json (docs/files.md): loads of stages, plans to compare with, micro-batches."""
        return KIND.build_report(self.options, self.given, self, {}, [])

    def _search(self) -> tuple[Any, ...]:
        return self.events, self.wall_seconds, self.problem.goal.words.title

    def place(self, **options: Unpack[MapHow]) -> MappingAnswer:
        """Place every tile of the plan on a core of the machine of its own; options as for :func:`nmsolve.map`.

        Raises
        ------
        InputError : no plan, or no machine
        DoesNotFitError : a tile needs more than a core holds
        """
        from nmsolve.hw.pipeline.to_graph import tile_graph

        if self.solution is None or self.given.machine is None:
            what = "no plan was found" if self.solution is None else "no machine to place on"
            raise InputError(what, "place", "a plan that was made for a machine")
        graph = tile_graph(self.problem, self.solution, self.given.whole, self.given.received)
        objective = "multicast-hops" if graph.multicast.any() else "hops"
        return map_graph(graph, self.given.machine, objective=objective, balance=0.0, **options)

    def write_onnx(self, path: str | Path) -> Path:
        """Write a copy of the model that states the stage of every operator. Return its path. InputError without any."""
        from nmsolve.model.formats.onnx_plan import write_onnx_plan

        out, graph, layers = Path(path), self.given.graph, self.given.layers
        if graph is None or layers is None or self.solution is None:
            raise InputError("no plan of an ONNX model", str(out), "an answer with a plan, of a .onnx input")
        prepare_file(out, self.options)
        unfolded = None if layers.nesting is None else layers.nesting.unfolded
        write_onnx_plan(self.options.model, out, graph, layers.operators, self.solution, unfolded)
        return out

    def to_dataframe(self) -> Any:
        """Return a row per stage: cores, layers, first and last layer, times, storage per core. BackendError without pandas."""
        stages = self.report.stages
        names = (
            "cores",
            "layers",
            "first",
            "last",
            "compute",
            "exchange",
            "transfer_in",
            "transfer_out",
            "offchip",
            "weights",
            "live",
            "streamed",
            "storage",
            "load",
            "use",
        )
        return table(
            {"stage": range(len(stages))} | {name: [getattr(s, name) for s in stages] for name in names}
        )


@plain_arguments
def pipeline(
    model: str | Path,
    cores: int | None = None,
    machine: MachineLike | None = None,
    *,
    stages: int | None = None,
    exact_stages: bool = False,
    use_all: bool = False,
    core_memory: int | str | None = None,
    overlap: bool = False,
    split: str | None = None,
    bind: Mapping[str, int] | str | None = None,
    warm_start: PipelineAnswer | PipelinePlan | str | Path | None = None,
    batches: int = 8,
    **options: Unpack[PipelineHow],
) -> PipelineAnswer:
    """Split a network into stages on groups of cores so that the slowest stage is as fast as possible, with a bound.

    Parameters
    ----------
    model : .onnx, or a cost graph in the format of msr-fiddle/dnn-partitioning (.json)
    cores : number of cores
    machine : a preset, ``mesh:RxC``, a machine.toml or a Machine: cores and figures
    stages : most stages allowed; as many as fit if not given
    exact_stages : exactly ``stages`` stages
    use_all : no core without a stage
    core_memory : bytes per core, or text such as 2MiB; the machine's if not given
    overlap : cores compute and transfer at the same time
    split : chain, contiguous or any (docs/pipeline.md)
    bind : values of the symbols in input shapes
    warm_start : a plan to start from
    batches : micro-batches whose total time is reported, with objective batch minimised
    options : as for :func:`nmsolve.map`, and those of :class:`PipelineHow`

    Raises
    ------
    InputError : an argument is wrong, or counting shows that nothing fits
    """
    given: Any = dict(options)
    chips, strict = given.pop("chips", None), given.pop("strict", False)
    offchip, branch = given.pop("offchip_bandwidth", None), given.pop("branch", None)
    sync = given.pop("group_sync", None)
    rules = {
        name: given.pop(name) for name in ("objective", "replicas", "group_border", "reward") if name in given
    }
    if "objective" in rules:
        rules["objective"] = PERIOD if rules["objective"] is None else in_order(rules["objective"])
    how = run_options(given)
    require_policy(rules.get("reward"), how.get("engines"))
    with explained("pipeline"):
        o, stated = stated_plan(
            model, cores, machine, stages=stages, exact_stages=exact_stages, use_all=use_all, core_memory=core_memory,
            overlap=overlap, split=split, bind=bind, chips=chips, strict=strict, offchip_bandwidth=offchip,
            group_sync=sync, branch=branch, batches=batches, **rules,
        )  # fmt: skip
        o = replace(
            o, seed=how.get("seed", 0), workers=how.get("workers", 1), cluster=how.get("cluster"),
            time_limit=repr(float(how["time_limit"])),
        )  # fmt: skip
        first = started_from(warm_start, PipelinePlan, KIND.answer, partial(KIND.read, given=stated))
        found = solved(KIND, stated, stated_inputs(o, o.reward), objectives_in(o.objective), first, how)
    return PipelineAnswer(**found, options=o)


def stated_plan(
    model: str | Path, cores: int | None, machine: MachineLike | None, *,
    core_memory: int | str | None = None, bind: Mapping[str, int] | str | None = None,
    chips: str | tuple[int, int] | None = None, offchip_bandwidth: float | str | None = None,
    group_sync: float | str | None = None, branch: Mapping[str, float | str] | str | None = None, **rules: Any,
) -> tuple[PipelineOptions, Given]:  # fmt: skip
    """Return the options that state a problem, and the problem. ``rules`` : the other ones of :func:`pipeline`.

    Raises
    ------
    InputError : anything wrong with them
    """
    board = None if machine is None else source_machine(machine, chips)
    o = PipelineOptions(
        model=Path(model).resolve(), cores=cores, machine=machine_text(machine),
        chips=grid_text(chips), core_memory=None if core_memory is None else str(core_memory), bind=_bound(bind),
        offchip_bandwidth=None if offchip_bandwidth is None else str(offchip_bandwidth),
        group_sync=None if group_sync is None else str(group_sync), branch=_bound(branch), **rules,
    )  # fmt: skip
    return o, state_problem(stated_inputs(o, o.reward), board)


def _bound(bind: Mapping[str, Any] | str | None) -> str | None:
    """Return values of names as options have them: ``batch=8,seq=128``."""
    return ",".join(f"{k}={v}" for k, v in bind.items()) if isinstance(bind, Mapping) else bind


class PlanLimits(TypedDict, total=False):
    """What is required of a plan; as for :func:`nmsolve.pipeline`."""

    stages: int | None
    exact_stages: bool
    use_all: bool
    core_memory: int | str | None
    overlap: bool
    split: str | None
    bind: Mapping[str, int] | str | None
    chips: str | tuple[int, int] | None
    strict: bool
    offchip_bandwidth: float | str | None
    group_sync: float | str | None
    branch: Mapping[str, float | str] | str | None


@plain_arguments
def explain_pipeline(
    model: str | Path,
    cores: int | None = None,
    machine: MachineLike | None = None,
    *,
    time_limit: float | str = TIME_LIMIT,
    seed: int = 0,
    **limits: Unpack[PlanLimits],
) -> Explained[PipelinePlan]:
    """Find out whether a network can be split into stages; if not, a smallest set of limits that conflict.

    Parameters
    ----------
    model, cores, machine, limits : as for :func:`nmsolve.pipeline`
    time_limit, seed : as for :func:`nmsolve.explain`

    Raises
    ------
    InputError : an argument is wrong
    """
    _, given = stated_plan(model, cores, machine, **limits)
    return explanation(explainable(given.problem), time_limit, seed)
