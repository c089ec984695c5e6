"""The pipeline problem that options state, the same for ``nmsolve pipeline`` and ``nmsolve verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from nmsolve.kinds.loading import Held
from nmsolve.model.errors import InputError
from nmsolve.model.pipeline.groups import MOST_REPLICAS, Groups
from nmsolve.model.pipeline.objectives import BATCH, ENERGY, GOALS, PERIOD
from nmsolve.model.pipeline.reward import reward_of

if TYPE_CHECKING:
    from nmsolve.kinds.pipeline.options import PipelineProblemOptions
    from nmsolve.model.bound import Ceilings
    from nmsolve.model.machine import Machine
    from nmsolve.model.operators.graph import OperatorGraph
    from nmsolve.model.operators.layers import Layers
    from nmsolve.model.pipeline.figures import CoreFigures
    from nmsolve.model.pipeline.goals import Energy, Goal
    from nmsolve.model.pipeline.problem import PipelineProblem
    from nmsolve.model.types import BoolArray, FloatArray

#: Micro-batches of a batch, if not stated.
BATCHES = 8

#: What groups of cores take in and give out through.
BORDERS = ("core", "side")

Positive = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


#: Why the energy of a cost graph is not known, where that is said, and what is wanted.
NO_ENERGY = "a cost graph says nothing of energy", "--objective energy", "a .onnx file"


class PipelineInputs(msgspec.Struct, frozen=True):
    """The options that state the problem, as in pipeline-report.json; memory in bytes, bandwidth in bytes per second.

    ``reward`` : weights of M5's reward, as stated; ``before`` : objectives that were minimised first, with the values that they
    are held at
    """

    model: str
    cores: Positive | None = None
    machine: str | None = None
    chips: str | None = None
    stages: Positive | None = None
    exact_stages: bool = False
    use_all: bool = False
    core_memory: Annotated[int, msgspec.Meta(ge=1, le=2**62)] | None = None
    overlap: bool = False
    split: str | None = None
    bind: str | None = None
    strict: bool = False
    offchip_bandwidth: Annotated[float, msgspec.Meta(ge=0, lt=2**62)] | None = None
    group_sync: Annotated[float, msgspec.Meta(ge=0, lt=2**62)] | None = None
    branch: str | None = None
    objective: str = PERIOD
    batches: Positive | None = None
    group_border: str | None = None
    replicas: Annotated[int, msgspec.Meta(ge=1, le=MOST_REPLICAS)] = 1
    reward: str | None = None
    before: tuple[Held, ...] = ()


def objectives_in(text: str, where: str = "--objective") -> tuple[str, ...]:
    """Return the objectives of a plan in order. InputError for others, and for two of which neither is the period."""
    from nmsolve.solvers.multi_objective import objective_names

    names = objective_names(text, GOALS, where)
    if len(names) > 1 and (len(names) > 2 or PERIOD not in names):
        raise InputError(f"{text} in order", where, f"{PERIOD} and another one")
    return names


def stated_inputs(o: PipelineProblemOptions, reward: str | None = None) -> PipelineInputs:
    """Return the part of the options that states the problem of the first objective, and the weights of M5's reward."""
    from nmsolve.kinds import values as opt

    names = objectives_in(o.objective)
    return PipelineInputs(
        model=str(o.model.resolve()), cores=o.cores, machine=opt.text_or_file(o.machine), chips=o.chips, stages=o.stages,
        exact_stages=o.exact_stages, use_all=o.use_all, core_memory=opt.size_in_bytes(o.core_memory, "--core-memory"),
        overlap=o.overlap, split=o.split, bind=o.bind, branch=o.branch, strict=o.strict,
        offchip_bandwidth=opt.bandwidth(o.offchip_bandwidth, "--offchip-bandwidth"),
        group_sync=opt.nanoseconds(o.group_sync, "--group-sync"), objective=names[0],
        batches=o.batches if BATCH in names else None, replicas=o.replicas, group_border=o.group_border,
        reward=opt.text_or_file(reward),
    )  # fmt: skip


def require_policy(reward: str | None, engines: Sequence[object] | None) -> None:
    """Raise InputError for weights of M5's reward where the engine that obeys them does not run; unasked it does."""
    names = {e for e in engines or ("auto",) if isinstance(e, str)}
    if reward is not None and not names & {"m5-policy", "auto"}:
        raise InputError(
            "weights of the reward of method M5 without its policy", "--reward", "--engines m5-policy"
        )


@dataclass(frozen=True, eq=False)
class Given:
    """A stated problem with what it was made from.

    Attributes
    ----------
    unit : of all times, "" if unknown
    machine : the one given, or None
    graph, layers : of an ONNX model, else None
    whole : (T,) tensors that every core of a stage needs whole, or None: none
    assumed : the figures of the cores are of no machine
    offchip : bytes per second of off-chip memory; None: there is none
    figures : of a core, for an ONNX model
    energy : of an ONNX model, where the machine's figures say it, else None
    batches : of the objective batch
    held : objectives that were minimised first
    """

    problem: PipelineProblem
    unit: str
    machine: Machine | None
    graph: OperatorGraph | None = None
    layers: Layers | None = None
    whole: BoolArray | None = None
    assumed: bool = False
    offchip: float | None = None
    figures: CoreFigures | None = None
    energy: Energy | None = None
    batches: int = BATCHES
    held: tuple[Held, ...] = ()

    @property
    def goals(self) -> dict[str, Goal]:
        """What can be minimised, by name."""
        from nmsolve.model.pipeline.goals import SLOWEST, Batch

        energy = {} if self.energy is None else {ENERGY: self.energy}
        return {PERIOD: SLOWEST, BATCH: Batch(self.batches), **energy}

    def aimed(self, name: str, ceilings: Ceilings) -> Given:
        """Return the same with another objective and these ceilings. InputError where they do not go together."""
        from nmsolve.model.pipeline.objectives import aimed

        if self.energy is None and ENERGY in (name, *(other for other, _ in ceilings)):
            raise self._no_energy()
        return replace(self, problem=aimed(self.problem, self.goals, name, ceilings))

    def _no_energy(self) -> InputError:
        """Say why energy is not known."""
        if self.figures is None:
            return InputError(*NO_ENERGY)
        return InputError(
            f"the energy of its cores is not given: no {self.figures.no_energy}",
            self.problem.name if self.machine is None else self.machine.name,
            "these keys under [figures] of a machine file, or --cores N alone for assumed cores",
        )

    @cached_property
    def received(self) -> FloatArray | None:
        """(L, C) bytes that all cores of a group exchange for a layer; None where that does not count."""
        if self.layers is None or self.figures is None or self.figures.sync is None:
            return None
        from nmsolve.hw.pipeline.exchange import best_splits

        return best_splits(self.layers, self.figures, self.problem.time.shape[1]).received


def state_problem(inputs: PipelineInputs, machine: Machine | None = None) -> Given:
    """Load the model, and the machine unless it is given, and state the problem.

    Raises
    ------
    InputError : a wrong file, a symbol without a number, no or too few cores, options that do not belong together
    """
    if machine is None and inputs.machine is not None:
        from nmsolve.hw.machines import load_machine
        from nmsolve.kinds.values import chip_grid

        machine = load_machine(inputs.machine, chips=chip_grid(inputs.chips))
    elif machine is None and inputs.chips is not None:
        raise InputError("chips without a machine", "--chips", "--machine as well")
    objectives_in(",".join(_named(inputs)))
    cores = _cores(inputs, machine)
    suffix = Path(inputs.model).suffix.lower()
    if suffix == ".json":
        return _aimed(inputs, _cost_graph(inputs, machine, cores))
    if suffix != ".onnx":
        what = f"cannot read {suffix!r} files" if suffix else "a file without extension"
        raise InputError(what, inputs.model, "a .onnx model or a .json cost graph")
    return _aimed(inputs, _model(inputs, machine, cores))


def _named(inputs: PipelineInputs) -> tuple[str, ...]:
    """Return all objectives, in order."""
    return (*(held.objective for held in inputs.before), inputs.objective)


def _aimed(inputs: PipelineInputs, given: Given) -> Given:
    """Return the problem with its objective, and what is held."""
    held = tuple((held.objective, held.value) for held in inputs.before)
    problem = replace(given.problem, reward=reward_of(inputs.reward, given.problem.count))
    given = replace(given, problem=problem, batches=inputs.batches or BATCHES, held=inputs.before)
    return given.aimed(inputs.objective, held)


def _cores(inputs: PipelineInputs, machine: Machine | None) -> int | None:
    """Return how many cores there are, None if only the input can say."""
    usable = None if machine is None else int(machine.usable.sum())
    if inputs.cores is not None and usable is not None and inputs.cores > usable:
        raise InputError(f"{inputs.cores} cores of a machine with {usable}", "--cores", f"at most {usable}")
    return usable if inputs.cores is None else inputs.cores


def _cost_graph(inputs: PipelineInputs, machine: Machine | None, cores: int | None) -> Given:
    """State a cost graph: it has its own devices, times and memory; options replace what they name."""
    from nmsolve.model.formats.cost_graph import load_cost_graph

    if inputs.bind is not None or inputs.branch is not None:
        raise InputError("--bind and --branch are for ONNX models", inputs.model, "a .onnx file")
    if ENERGY in _named(inputs):
        raise InputError(*NO_ENERGY)
    if inputs.offchip_bandwidth:
        raise InputError("--offchip-bandwidth is for ONNX models", inputs.model, "a .onnx file")
    if inputs.group_border is not None:
        raise InputError("--group-border is for ONNX models", inputs.model, "a .onnx file")
    if inputs.group_sync is not None:
        raise InputError(
            "--group-sync is for ONNX models", inputs.model, "a .onnx file, or times that hold it"
        )
    problem = load_cost_graph(inputs.model)
    if problem.split == "any" != inputs.split:
        raise InputError(
            "the graph holds a backward pass, in which data also pass back", inputs.model,
            "--split any, or the forward pass alone",
        )  # fmt: skip
    cores = problem.cores if cores is None else cores
    problem = replace(
        problem,
        cores=cores,
        stages=inputs.stages or cores + problem.hosts,
        exact_stages=_exact(inputs),
        use_all=inputs.use_all,
        memory=problem.memory if inputs.core_memory is None else float(inputs.core_memory),
        overlap=inputs.overlap,
        split=inputs.split or problem.split,
        groups=Groups(inputs.replicas),
    )
    return Given(problem, "", machine)


def _exact(inputs: PipelineInputs) -> bool:
    if inputs.exact_stages and inputs.stages is None:
        raise InputError("the number of stages is missing", "--exact-stages", "--stages K as well")
    return inputs.exact_stages


def _model(inputs: PipelineInputs, machine: Machine | None, cores: int | None) -> Given:
    """State an ONNX model: its operators are the layers, the machine's figures give their times."""
    from nmsolve.hw.pipeline.energy import energy_of
    from nmsolve.hw.pipeline.tiles import UNIT
    from nmsolve.hw.pipeline.to_graph import needed_whole
    from nmsolve.model.formats.onnx import load_onnx
    from nmsolve.model.operators.binding import parse_bindings
    from nmsolve.model.operators.layers import layers_of

    if cores is None:
        raise InputError("the number of cores is missing", inputs.model, "--cores N or --machine M")
    bindings = parse_bindings(inputs.bind)
    graph = load_onnx(inputs.model, strict=inputs.strict, bindings=bindings)
    layers = layers_of(graph, bindings, branch=inputs.branch)
    figures = _figures(inputs, machine)
    problem = _of_layers(inputs, layers, figures, cores)
    energy = energy_of(layers, figures, cores, cores)
    offchip = figures.offchip if inputs.offchip_bandwidth is None else inputs.offchip_bandwidth
    whole = needed_whole(layers, figures)
    return Given(
        problem, UNIT, machine, graph, layers, whole, figures.assumed, offchip or None, figures, energy
    )


def _of_layers(inputs: PipelineInputs, layers: Layers, figures: CoreFigures, cores: int) -> PipelineProblem:
    """Return the problem of a model's layers on cores with these figures."""
    from nmsolve.hw.pipeline.tiles import pipeline_problem

    problem = pipeline_problem(
        layers,
        figures,
        cores,
        stages=inputs.stages,
        exact_stages=_exact(inputs),
        use_all=inputs.use_all,
        memory=None if inputs.core_memory is None else float(inputs.core_memory),
        overlap=inputs.overlap,
        split=inputs.split or "chain",
        offchip=inputs.offchip_bandwidth,
    )
    name = Path(inputs.model).stem  # exporters call every graph the same
    groups = replace(problem.groups, replicas=inputs.replicas)
    return replace(problem, name=name, groups=groups)


def _figures(inputs: PipelineInputs, machine: Machine | None) -> CoreFigures:
    """Return the machine's figures of a core, with what the options state of groups in their place."""
    from nmsolve.model.pipeline.figures import machine_figures

    figures = machine_figures(machine)
    if inputs.group_sync is not None:
        figures = replace(figures, sync=inputs.group_sync)
    if inputs.group_border is None:
        return figures
    if inputs.group_border not in BORDERS:
        text = f"unknown border {inputs.group_border[:40]!r}"
        raise InputError(text, "--group-border", "one of " + ", ".join(BORDERS))
    return replace(figures, border=inputs.group_border == BORDERS[1])
