"""``nmsolve pipeline`` with its options. The body only imports and calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated as A

import typer
from typer import Argument, Option

from nmsolve.cli.commands import Bind, Chips, Gap, Json, Memory, Out, Seed, TimeLimit, Workers


def pipeline_command(
    model: A[Path, Argument(help="A model (.onnx) or a cost graph of msr-fiddle/dnn-partitioning (.json).")],
    cores: A[int | None, Option("--cores", "-n", min=1, help="How many cores there are.")] = None,
    machine: A[
        str | None,
        Option("--machine", "-m", help="Cores and figures of a preset, mesh:RxC[,chips] or a machine.toml."),
    ] = None,
    chips: Chips = None,
    stages: A[
        int | None, Option("--stages", "-k", min=1, help="Most stages. [default: as many as fit]")
    ] = None,
    exact_stages: A[bool, Option("--exact-stages", help="So many stages, no fewer.")] = False,
    use_all: A[bool, Option("--use-all", help="Every core belongs to a stage.")] = False,
    core_memory: A[
        str | None, Option("--core-memory", help="Memory of a core, e.g. 2MiB. [default: the machine's]")
    ] = None,
    overlap: A[
        bool, Option("--overlap", help="Cores compute and transfer at the same time, not in turn.")
    ] = False,
    split: A[
        str | None,
        Option(
            "--split",
            help="chain: runs of layers in the model's order; contiguous: data pass only forwards; any. "
            "[default: chain for .onnx, contiguous for .json]",
        ),
    ] = None,
    bind: Bind = None,
    strict: A[bool, Option("--strict", help="ONNX: refuse operators that are not known.")] = False,
    time_limit: TimeLimit = "60s",
    gap: Gap = None,
    seed: Seed = 0,
    workers: Workers = 1,
    engines: A[
        str | None, Option("--engines", help="Comma-separated engines instead of automatic choice.")
    ] = None,
    memory: Memory = None,
    batches: A[
        int, Option("--batches", "-B", min=1, help="Micro-batches, for the time that they take together.")
    ] = 8,
    place: A[
        bool, Option("--place", help="Also place the cores of the stages on the machine (needs --machine).")
    ] = False,
    write_onnx: A[
        Path | None,
        Option("--write-onnx", help="Write a copy of the model with the stage of every operator."),
    ] = None,
    out: Out = Path("nmsolve-pipeline"),
    json: Json = False,
) -> None:
    """Cut a network into stages on groups of cores, the slowest stage as fast as possible, with a bound."""
    from nmsolve.cli.pipeline import PipelineOptions, run_pipeline

    options = PipelineOptions(
        model, cores, machine, chips, stages, exact_stages, use_all, core_memory, overlap, split, bind, strict, time_limit, gap,
        seed, workers, engines, memory, batches, place, write_onnx, out, json,
    )  # fmt: skip
    raise typer.Exit(run_pipeline(options))
