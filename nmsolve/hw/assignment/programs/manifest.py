"""``manifest.json``: which pieces there are, what runs when and where, what is sent, and where tensors lie in memory."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from nmsolve.hw.assignment.machine import MOST_THREADS
from nmsolve.model.identity import Identity

Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Position = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=MOST_THREADS)]
Name = Annotated[str, msgspec.Meta(max_length=4096)]


class UnitEntry(msgspec.Struct):
    """A processor or one of its cores.

    Attributes
    ----------
    name : as in the assignment, e.g. ``npu/2``
    processor, core : the processor and the number of the core
    host : it steers the others
    threads : that stand for it when the programs are executed
    site : units of one site exchange tensors for nothing
    memory : in which its tensors lie
    """

    name: Name
    processor: Name
    core: Position = 0
    host: bool = False
    threads: Threads = 1
    site: Position = 0
    memory: Name = ""


class StackEntry(msgspec.Struct):
    """A tensor that control flow builds from one slice per turn: its type and the shape of a slice, 0 where not known."""

    dtype: Name
    shape: list[Number]


class TransferEntry(msgspec.Struct):
    """A tensor that is sent from the site of one unit to that of another, in a body once per turn.

    ``bytes`` is None where its shape is not known; ``predicted``: picoseconds of all turns, where the assignment knows.
    """

    tensor: Name
    origin: Name
    goal: Name
    bytes: Number | None = None
    predicted: Number | None = None


class BufferEntry(msgspec.Struct):
    """A tensor in a memory: from before piece ``first`` to after piece ``last`` it lies at ``offset`` (bytes)."""

    tensor: Name
    memory: Name
    first: Position
    last: Position
    bytes: Number
    offset: Number


class PieceEntry(msgspec.Struct, omit_defaults=True):
    """What one unit does in one go.

    Attributes
    ----------
    kind : ``graph``: a model to run; ``loop``, ``scan``, ``if``: control flow that the runner executes, as its bodies are on
        several units
    operators : which, by name; in bodies with the names of the operators around them. Those on which no output depends are in
        no piece
    inputs, outputs : tensors that it needs from before and makes for later
    shapes : tensors of other sites of which it needs the shape only, which is known where the tensor is not: its file has an
        input ``NAME@shape`` for each
    weights : stripped weights of the model that it uses, inputs of its file
    file, sha256 : of a ``graph``: the model's file in the folder of the manifest, and its hash
    operands, results : of control flow: its inputs and outputs in order, empty where one is left out
    bodies : the body of a loop or scan; of ``if`` what to do if the condition holds, then what to do if not
    settings : attributes of a scan
    stacked : what a loop or scan builds from slices, in order
    predicted : picoseconds that the assignment says it takes, all turns of loops around it included
    """

    name: Name
    kind: Literal["graph", "loop", "scan", "if"]
    unit: Name
    operators: list[Name]
    inputs: list[Name]
    outputs: list[Name]
    weights: list[Name] = []
    shapes: list[Name] = []
    file: Name = ""
    sha256: Name = ""
    operands: list[Name] = []
    results: list[Name] = []
    bodies: list[ProgramEntry] = []
    settings: dict[str, list[int]] = {}
    stacked: list[StackEntry] = []
    predicted: Number | None = None


class ProgramEntry(msgspec.Struct):
    """Pieces in an order in which they can run one after the other.

    Attributes
    ----------
    inputs, outputs : tensors from and to outside; a body may use tensors of the graphs around it, too
    transfers : each before its first use at the goal
    buffers : for execution in this order; a body's memory is a buffer of the program around it, named ``@`` and its piece
    """

    inputs: list[Name]
    outputs: list[Name]
    pieces: list[PieceEntry]
    transfers: list[TransferEntry]
    buffers: list[BufferEntry]


class PeakEntry(msgspec.Struct):
    """A memory: ``bytes`` of its plan, ``needed`` by any plan (what lives at once), ``unknown`` tensors without a size."""

    memory: Name
    bytes: Number
    needed: Number
    unknown: Number = 0


class Manifest(msgspec.Struct):
    """The content of ``manifest.json``.

    Attributes
    ----------
    format : of this file
    model : its file's name, and the SHA-256 of its content
    assignment : hash of the assignment that it was made from
    home, target : unit where inputs come from, and unit where outputs go to
    inputs, outputs : of the model, without stripped weights; ``program.outputs`` says which tensor each output is
    weights : the model's stripped weights: whoever runs it gives them a value
    bindings : values of symbols for which bytes were computed
    predicted : picoseconds end to end that the assignment says, by objective
    """

    format: Literal["nmsolve programs 1"]
    model: Identity
    assignment: Name
    home: Name
    target: Name
    inputs: list[Name]
    outputs: list[Name]
    weights: list[Name]
    units: list[UnitEntry]
    bindings: dict[str, int]
    program: ProgramEntry
    peaks: list[PeakEntry]
    predicted: dict[str, Number] = {}
