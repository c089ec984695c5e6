"""The options of ``nmsolve train`` (:mod:`nmsolve.cli.commands` has the others)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A

from typer import Option

from nmsolve.kinds.options import Json, Seed


@dataclass(frozen=True)
class TrainOptions:
    """How long a policy is trained, and where it is written."""

    seconds: A[float, Option(min=0, help="CPU seconds to train.")] = 600.0
    updates: A[
        int | None,
        Option(min=0, help="End after this many updates; with the same seed this gives the same file."),
    ] = None
    seed: Seed = 0
    resume: A[bool, Option("--resume", help="Go on from the state beside --out.")] = False
    json: Json = False


@dataclass(frozen=True)
class TrainM1Options(TrainOptions):
    """Train the policy of method M1 (engine m1-policy): logical nodes to the cores of a processor."""

    family: A[str, Option(help="Generators of training graphs, with commas.")] = (
        "mesh-geo,mesh-comm,mesh-layered"
    )
    side: A[int, Option(min=2, max=16, help="Rows and columns of the processor.")] = 8
    algorithm: A[str, Option(help="ppo (clipped ratio) or gradient (plain policy gradient).")] = "ppo"
    mean: A[bool, Option("--mean", help="A node's weights are means per channel, not sums.")] = False
    distance: A[str, Option(help="To the nearest free core: manhattan or euclidean.")] = "manhattan"
    reward: A[
        str,
        Option(help="Weights of the reward's terms: deadlock=0,hops=0.5,faults=0.1. [default: as published]"),
    ] = ""
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("m1.safetensors")


@dataclass(frozen=True)
class TrainM5Options(TrainOptions):
    """Train the policy of method M5 (engine m5-policy): pipelines cut into stages by actions."""

    cores: A[str, Option(help="Numbers of cores, with commas.")] = "8,16,32"
    layers: A[str, Option(help="Least and most layers of a random pipeline, with a dash.")] = "20-120"
    reward: A[
        str,
        Option(help="Weights of the worst compute, storage and routing, e.g. storage=0.1. [default: 0 each]"),
    ] = ""
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("m5.safetensors")


@dataclass(frozen=True)
class TrainDualsOptions(TrainOptions):
    """Train what a bound's multipliers begin with (engines projection, joint, parts, cover); needs no torch."""

    bound: A[str, Option(help="projection, joint, parts or cover.")] = "joint"
    family: A[str, Option(help="Generators of training graphs, with commas.")] = (
        "mesh-geo,mesh-comm,mesh-layered"
    )
    nodes: A[str, Option(help="Nodes of training graphs, with commas.")] = "64,256"
    pool: A[int, Option(min=1, help="Training graphs.")] = 192
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("duals.safetensors")


@dataclass(frozen=True)
class TrainPolicyOptions(TrainOptions):
    """Train the placement policy (engine policy): a graph network whose answers are assigned to cores."""

    family: A[str, Option(help="Generators of training graphs, with commas.")] = (
        "mesh-geo,mesh-comm,mesh-layered"
    )
    sides: A[str, Option(help="Rows and columns of training boards, with commas, in turn.")] = "8,6,8,10"
    rounds: A[int, Option(help="Rounds of messages.")] = 24
    imitation: A[
        float, Option(min=0, help="Weight of what a short local search makes of the policy's own placements.")
    ] = 1.0
    out: A[Path, Option("--out", "-o", help="Model file.")] = Path("policy.safetensors")
