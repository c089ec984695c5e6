"""``plan.json``: the stage of every layer and the cores of every stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.file_set import settle
from nmsolve.model.files import decode_json, read_limited, write_atomic
from nmsolve.model.identity import Identity
from nmsolve.model.pipeline.plan import PipelinePlan
from nmsolve.model.pipeline.problem import PipelineProblem

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class PlanFile(msgspec.Struct):
    """The content of ``plan.json``.

    Attributes
    ----------
    problem : its name and content hash; an empty hash is not compared
    cores : cores of every stage, 0 for a host
    layer : names of the layers, in the problem's order
    stage : stage of every layer, ``0..len(cores) - 1``
    """

    problem: Identity
    cores: list[Number]
    layer: list[str]
    stage: list[Number]


def write_plan(path: str | Path, problem: PipelineProblem, plan: PipelinePlan) -> None:
    """Write the file, whole or not at all."""
    content = PlanFile(
        Identity(problem.name, problem.content_hash), plan.cores.tolist(), list(problem.labels), plan.stage.tolist()
    )  # fmt: skip
    write_atomic(path, msgspec.json.encode(content) + b"\n")


def read_plan(path: str | Path, problem: PipelineProblem, other_rules: bool = False) -> PipelinePlan:
    """Read the file; its shape is checked here, the rules by :mod:`nmsolve.model.pipeline.check`.

    ``other_rules`` : it may be of another problem with the same layers.

    Raises
    ------
    InputError : not of this shape, of another problem, other layers, or a stage that does not exist
    """
    settle(Path(path).parent)
    file = decode_json(read_limited(path), PlanFile, path)
    if not other_rules:
        same = Identity(problem.name, problem.content_hash)
        what = "the plan is for another problem"
        file.problem.require(same, what, f"{path}: $.problem", ": the same input and options")
    for name, count in (("layer", len(file.layer)), ("stage", len(file.stage))):
        if count != problem.count:
            raise InputError(f"{count} values", f"{path}: $.{name}", f"{problem.count}, one per layer")
    for k, (found, wanted) in enumerate(zip(file.layer, problem.labels, strict=True)):
        if found != wanted:
            raise InputError(f"layer {found!r}", f"{path}: $.layer[{k}]", repr(wanted))
    for k, stage in enumerate(file.stage):
        if stage >= len(file.cores):
            raise InputError(
                f"stage {stage} does not exist", f"{path}: $.stage[{k}]", f"0..{len(file.cores) - 1}"
            )
    return PipelinePlan(np.array(file.stage, np.int64), np.array(file.cores, np.int64))
