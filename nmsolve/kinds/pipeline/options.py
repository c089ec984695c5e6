"""The options of ``nmsolve pipeline``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from nmsolve.kinds.options import (
    Bind,
    Chips,
    ConflictOptions,
    Json,
    Out,
    Points,
    SearchOptions,
    Strict,
    TrainOptions,
    published,
)
from nmsolve.kinds.parameters import Argument, Option

# One option, one line:
# fmt: off

RewardTerms = A[str | None, Option(help="Weights of the reward of method M5, e.g. storage=0.5,routing=0, "
                                        "or a file of terms (.toml). "
                                        "[default: a=1,compute=0.005,storage=0.005,routing=0.005,penalty=2]")]


@dataclass(frozen=True)
class PipelineProblemOptions:
    """A network, and which stages it may be split into."""

    model: A[Path, Argument(help="Model (.onnx), or cost graph in the format of msr-fiddle/dnn-partitioning (.json).")]
    cores: A[int | None, Option("--cores", "-n", min=1, help="Number of cores.")] = None
    machine: A[str | None, Option("--machine", "-m", help="Take cores and figures from a preset, mesh:RxC[,chips] or a "
                                  "machine.toml.")] = None
    chips: Chips = None
    stages: A[int | None, Option("--stages", "-k", min=1, help="Most stages allowed. [default: as many as fit]")] = None
    exact_stages: A[bool, Option("--exact-stages", help="Use exactly --stages stages, not fewer.")] = False
    use_all: A[bool, Option("--use-all", help="Leave no core without a stage.")] = False
    core_memory: A[str | None, Option(help="Memory per core, e.g. 2MiB. [default: the machine's]")] = None
    offchip_bandwidth: A[str | None, Option(help="Bandwidth of off-chip memory for all cores together, e.g. 25.6GB/s; what its "
                                            "cores cannot hold is moved in every run. 0: none. [default: the machine's]")] = None
    group_sync: A[str | None, Option(help="Time in which the cores of a group meet before a layer, e.g. 500ns; what they "
                                     "exchange for it counts then, too. [default: the machine's, else neither counts]")] = None
    group_border: A[str | None, Option(help="What a group of cores takes in and gives out through: one core, or a side of the "
                                       "square of its cores. [default: the machine's, else core]")] = None
    overlap: A[bool, Option("--overlap", help="Let cores compute and transfer at the same time.")] = False
    split: A[str | None, Option(help="chain: stages follow the model's order; contiguous: data only flow forwards; any: no rule. "
                                "[default: chain for .onnx, contiguous for .json]")] = None
    bind: Bind = None
    branch: A[str | None, Option(help="How often the condition of an If holds, e.g. exit_1=0.3,exit_2=both; both: both branches "
                                 "count in full; *: all others. [default: 0.5]")] = None
    strict: Strict = False
    objective: A[str, Option(help="period: the slowest stage; batch: the time of --batches micro-batches; energy: that of "
                                  "one; or period and another one in order of importance.")] = "period"
    replicas: A[int, Option(min=1, help="Most replicas of a stage: groups of cores that each hold all of it and take "
                                        "micro-batches in turns.")] = 1
    batches: A[int, Option("--batches", "-B", min=1, help="Number of micro-batches whose total time is reported, and with "
                                                          "objective batch minimised.")] = 8


@dataclass(frozen=True)
class PipelineOptions(SearchOptions, PipelineProblemOptions):
    """Split a network into stages on groups of cores for least time of the slowest stage or a batch, or energy, with a bound."""

    method: A[str | None, published(m5="learned groups of cores")] = None
    warm_start: A[Path | None, Option(help="Start from this plan (plan.json, or its folder).")] = None
    place: A[bool, Option("--place", help="Also place the stages on the machine's cores (needs --machine).")] = False
    write_onnx: A[Path | None, Option(help="Write a copy of the model that states the stage of every operator.")] = None
    reward: RewardTerms = None
    trace: A[bool, Option("--trace", help="Also write trace.json, which Perfetto and chrome://tracing open.")] = False
    pareto: A[str | None, Option(help="Compute the front of two of period (the slowest stage), cores, stages and core-memory, "
                                 "e.g. period,cores, instead of one plan.")] = None
    points: Points = 8
    out: Out = Path("nmsolve-pipeline")
    json: Json = False


@dataclass(frozen=True)
class ExplainPipelineOptions(ConflictOptions, PipelineProblemOptions):
    """Find out whether a network can be split into stages; if not, show a smallest set of limits that conflict."""


@dataclass(frozen=True)
class TrainM5Options(TrainOptions):
    """Train the policy of method M5 (engine m5-policy): pipelines cut into stages by actions."""

    cores: A[str, Option(help="Numbers of cores, with commas.")] = "8,12,16,24,32,48,64"
    layers: A[str, Option(help="Least and most layers of a random pipeline, with a dash.")] = "20-200"
    reward: RewardTerms = None
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("m5.safetensors")


#: Of the command, and of ``nmsolve explain``.
OPTIONS, EXPLAIN = PipelineOptions, ExplainPipelineOptions
#: Where the names of its objectives are.
OBJECTIVE_TABLE = "model.pipeline.objectives:PIPELINE_OBJECTIVES"
#: What folders of instances hold, for ``nmsolve bench``.
BENCHED = "models, cost graphs"
