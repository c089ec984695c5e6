"""A mapping with everything it belongs to, from the files that ``nmsolve map`` and ``nmsolve gap`` leave behind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from nmsolve.kinds.values import chip_grid, size_in_bytes, whole
from nmsolve.model.errors import InputError
from nmsolve.model.file_set import require_one_run
from nmsolve.model.formats.reading import AS_IT_IS, GraphReading

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import FaultOptions
    from nmsolve.kinds.options import AnswerOptions
    from nmsolve.kinds.simulation.options import SimulateOptions
    from nmsolve.model.bound import Bound, Stage
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.migration import Migration
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.mapping.reward_terms import RewardTerms
    from nmsolve.model.mapping.routes import RoutesFile
    from nmsolve.model.turns import TurnSet
    from nmsolve.model.types import IntArray

T = TypeVar("T")
#: Mappings of a front, beside its pareto.json.
POINT = re.compile(r"point-\d+\.json")


class Held(msgspec.Struct, frozen=True):
    """An earlier objective of a run in order, with the value that the later ones were held to."""

    objective: str
    value: float
    bound: float | None = None
    status: str = "feasible"


class Inputs(GraphReading, frozen=True):
    """The part of report.json's ``inputs`` that states the problem, and how its graph file is read."""

    graph: str | None = None
    machine: str | None = None
    chips: str | None = None
    constraints: str | None = None
    core_memory: Annotated[int, msgspec.Meta(ge=1, le=2**62)] | None = None
    node_limit: Annotated[int, msgspec.Meta(le=2**62)] | None = None
    prohibit_turns: str | None = None
    reward: str | None = None
    route: str | None = None
    in_turns: bool = False
    migration_budget: int | None = None
    reference: str | None = None
    reference_file: str | None = None
    occupied: tuple[str, ...] = ()
    before: tuple[Held, ...] = ()
    limits: dict[str, float] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class Loaded:
    """A mapping with everything it belongs to.

    Attributes
    ----------
    report : the report.json beside the mapping, or None
    inputs : what report.json, or the pareto.json of a front, says about the problem; empty without one
    stated : there is such a file
    """

    folder: Path
    graph: LogicGraph
    machine: Machine
    core: IntArray
    report: dict[str, Any] | None
    inputs: Inputs
    stated: bool

    def named(self, o: AnswerOptions | FaultOptions) -> dict[str, Any]:
        """Return the inputs to report for a mapping: as given on the command line, else as in the report beside the mapping."""
        return {
            "mapping": whole(o.mapping),
            "graph": whole(o.graph) or self.inputs.graph,
            "machine": o.machine or self.inputs.machine,
            "chips": o.chips or self.inputs.chips,
            "placement": whole(o.placement),
            **given_reading(o, self.inputs).options(),
        }

    def node_limit(self, balance: float | None) -> int | None:
        """Return the limit of ``--balance``, else that of the run, else the default."""
        from nmsolve.model.mapping.problem import default_node_limit

        if balance is None and self.stated:
            return self.inputs.node_limit
        return default_node_limit(self.graph, self.machine, balance)

    def problem(self) -> MappingProblem:
        """Return what was minimised, without side constraints: enough to draw the mapping."""
        from nmsolve.model.mapping.objectives import OBJECTIVES
        from nmsolve.model.mapping.problem import MappingProblem

        said = (self.report or {}).get("objective_name")
        objective = said if said in OBJECTIVES else "hops"
        return MappingProblem(self.graph, self.machine, str(objective), (), self.node_limit(None))

    def constraints(self, named: Path | None) -> tuple[Any, ...]:
        """Return the side constraints of the file ``named``, else of the one that the run was given."""
        from nmsolve.model.mapping.constraints_file import load_constraints

        path = named or _path(self.inputs.constraints)
        return () if path is None else load_constraints(path, self.graph, self.machine)

    def migration(self) -> Migration | None:
        """Return the migration budget of the run, with the reference mapping beside the report.

        Raises
        ------
        InputError : the reference is missing, or not the one that the run stayed close to
        """
        from nmsolve.model.mapping.files import read_mapping
        from nmsolve.model.mapping.migration import Migration

        budget, path = self.inputs.migration_budget, self.folder / "reference.json"
        if budget is None:
            return None
        if not path.exists():  # one mapping of several in folders of their own
            path = _path(self.inputs.reference_file) or path
        migration = Migration.of(read_mapping(path, self.graph, self.machine), budget)
        said = self.inputs.reference
        if said != migration.reference_hash:
            raise InputError(
                f"its hash is {migration.reference_hash}",
                str(path),
                f"the mapping with hash {said} that the report names",
            )
        return migration

    def turns(self) -> TurnSet | None:
        """Return the turns that routes of the run may take, or None."""
        from nmsolve.model.turns import turn_set

        spec = self.inputs.prohibit_turns
        return None if spec is None else turn_set(spec, self.machine)

    def terms(self) -> RewardTerms:
        """Return what M1's reward weighs."""
        from nmsolve.model.mapping.reward_terms import reward_terms

        return reward_terms(self.inputs.reward, self.machine)

    def chosen_routes(self) -> RoutesFile | None:
        """Return the ``routes.json`` beside the mapping if its report says that routes were chosen."""
        if self.inputs.route != "joint":
            return None
        from nmsolve.model.mapping.routes import read_routes

        return read_routes(self.folder / "routes.json")


def instance(
    graph: Path,
    machine: str | None,
    chips: str | None,
    memory: int | None = None,
    occupied: Sequence[str | Path] = (),
    reading: GraphReading = AS_IT_IS,
) -> tuple[LogicGraph, Machine]:
    """Load the graph and its machine: the one given on the command line, else the one in the file.

    ``memory`` : most bytes; a .nmz graph that is too large for it stays on disk. ``occupied`` : earlier runs whose networks
    are on the machine already. ``reading`` : how the graph's file is read.

    Raises
    ------
    InputError : a wrong file, or no machine given
    """
    from nmsolve.hw.machines import load_machine
    from nmsolve.model.formats.implied import implied_machine
    from nmsolve.model.mapping.idle import say_idle
    from nmsolve.solvers.mapping.memory_estimate import load_within

    loaded = load_within(graph, memory, reading)
    board = implied_machine(loaded, str(graph))
    if machine is not None:
        board = load_machine(machine, chips=chip_grid(chips))
    if board is None:
        raise InputError(
            "no machine given",
            str(graph),
            "--machine PRESET, mesh:RxC or machine.toml (`nmsolve hw list` shows presets)",
        )
    say_idle(loaded, board)
    return loaded, beside_earlier(board, occupied, memory)


def given_reading(o: object, stated: GraphReading = AS_IT_IS) -> GraphReading:
    """Return how the graph is read: each option as the command gives it, else as ``stated``."""
    nodes = getattr(o, "nodes", None)
    given = {f: getattr(o, f, None) or getattr(stated, f) for f in GraphReading.__struct_fields__}
    return GraphReading(**given | {"nodes": whole(nodes) or stated.nodes})


def load_answer(o: AnswerOptions | FaultOptions | SimulateOptions, memory: str | None = None) -> Loaded:
    """Return the mapping, its report if there is one, and graph and machine as given or as the report names them.

    ``memory`` : ``--memory``; a .nmz graph that is too large for it stays on disk.

    Raises
    ------
    InputError : a wrong file, or no graph or machine given
    """
    from nmsolve.model.mapping.any_file import read_any_mapping

    assert o.mapping is not None
    folder = o.mapping if o.mapping.is_dir() else o.mapping.parent
    path = folder / "mapping.json" if o.mapping.is_dir() else o.mapping
    require_one_run(folder, _siblings(path))
    content = report = None
    inputs = Inputs()
    beside = folder / ("pareto.json" if POINT.fullmatch(path.name) else "report.json")
    if (path.name == "mapping.json" or POINT.fullmatch(path.name)) and beside.exists():
        content = read_object(beside)
        if beside.name == "report.json":
            from nmsolve.kinds.mapping.report import Report

            require_types(content, Report, beside)
        inputs = _checked_inputs(content, beside)
        report = content if beside.name == "report.json" else None
    if content is None and not path.exists():
        what = "the folder holds no answer" if o.mapping.exists() else "there is no such file or folder"
        raise InputError(what, str(o.mapping), "the output folder of a run, or a mapping")
    graph = o.graph or _path(inputs.graph)
    if graph is None:
        raise InputError(
            "no graph given", str(o.mapping), "--graph FILE, or a report.json beside the mapping"
        )
    most = size_in_bytes(memory)
    loaded, board = instance(
        graph, o.machine or inputs.machine, o.chips or inputs.chips, most, inputs.occupied,
        given_reading(o, inputs),
    )  # fmt: skip
    if inputs.core_memory is not None:
        board = board.holding("bytes", inputs.core_memory)
    core = read_any_mapping(path, loaded, board, o.placement)
    return Loaded(folder, loaded, board, core, report, inputs, content is not None)


def _siblings(path: Path) -> tuple[str, ...]:
    """Return the files beside a mapping that are believed to be of its run."""
    if path.name == "mapping.json":
        return ("mapping.json", "report.json", "certificates.json", "routes.json", "reference.json")
    return (path.name, "pareto.json") if POINT.fullmatch(path.name) else ()


def load_certificates(path: Path) -> tuple[str, list[Bound]]:
    """Return the hash of the problem that ``certificates.json`` is about, and its bounds.

    Raises
    ------
    InputError : no such file, or not of this shape
    """
    from nmsolve.check.certificates import certificates_from_json
    from nmsolve.model.files import decode_json, read_limited

    data = read_limited(path)
    about = decode_json(data, _About, path)  # also refuses what nests too deeply for the reader below
    return about.problem, certificates_from_json(data, str(path))


def problem_of(path: Path) -> str:
    """Return the hash of the problem that ``certificates.json`` is about. InputError for another file."""
    from nmsolve.model.files import decode_json, read_limited

    return decode_json(read_limited(path), _About, path).problem


class _Row(msgspec.Struct):
    objective: str = ""


class _Rows(msgspec.Struct):
    bounds: list[_Row]


def read_certificates(path: Path) -> tuple[str, list[tuple[str, Bound]]]:
    """Return the same with the name of every bound's objective, "" where the problem has one.

    Raises
    ------
    InputError : no such file, or not of this shape
    """
    from nmsolve.model.files import decode_json, read_limited

    about, bounds = load_certificates(path)
    rows = decode_json(read_limited(path), _Rows, path).bounds
    return about, list(zip((r.objective for r in rows), bounds, strict=True))


def load_stages(path: Path) -> list[Stage]:
    """The problems of ``certificates.json`` or ``pareto-certificates.json`` that are not the final ones, with their bounds.

    Raises
    ------
    InputError : no such file, or not of this shape
    """
    from nmsolve.check.certificates import stages_from_json
    from nmsolve.model.files import decode_json, read_limited

    data = read_limited(path)
    decode_json(data, _About, path)  # as above
    return stages_from_json(data, str(path))


class _About(msgspec.Struct):
    problem: str = ""


class WrongTypeError(InputError):
    """A field of a report whose type, or size, is not what nmsolve writes."""


def require_types(report: Mapping[str, Any], shape: type[msgspec.Struct], path: Path) -> None:
    """Refuse a report with a field whose type, or size, is not what nmsolve writes; fields that are missing or unknown pass.

    Raises
    ------
    WrongTypeError : naming the first such field
    """
    for field in msgspec.structs.fields(shape):
        if (name := field.encode_name) not in report:
            continue
        try:
            msgspec.convert(report[name], field.type)
        except msgspec.ValidationError as error:
            what, _, inside = str(error).partition(" - at `$")
            where = f"{path}: $.{name}{inside.rstrip('`')}"
            raise WrongTypeError(what[:1].lower() + what[1:], where, "a report that nmsolve wrote") from None


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file (strict: no NaN). InputError for anything else."""
    from nmsolve.model.files import read_limited, require_single_keys

    data = read_limited(path)
    try:
        content = msgspec.json.decode(data, type=dict[str, Any])
        require_single_keys(data, path)
        return content
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"not a JSON object ({error})", str(path), "an object as nmsolve writes it"
        ) from None


def stated_inputs(path: Path) -> Inputs:
    """Return the ``inputs`` of a report.json. InputError for any other file."""
    return _checked_inputs(read_object(path), path)


def _checked_inputs(report: dict[str, Any], path: Path) -> Inputs:
    """Return the report's ``inputs``, every field of the type that verification needs."""
    return _converted(report.get("inputs") or {}, path, Inputs, "map")  # it has more, for other readers


def inputs_of(report: dict[str, Any], path: Path, shape: type[T], command: str) -> T:
    """Return the ``inputs`` of a report: what states its problem, in the ``shape`` that ``nmsolve`` ``command`` gives them.

    Raises
    ------
    InputError : not what that command wrote
    """
    require_known(report.get("inputs"), shape, path)
    return _converted(report.get("inputs"), path, shape, command)


def _converted(inputs: object, path: Path, shape: type[T], command: str) -> T:
    try:
        return msgspec.convert(inputs, shape)
    except msgspec.ValidationError as error:
        raise InputError(
            f"invalid inputs ({error})", f"{path}: $.inputs", f"a report that `nmsolve {command}` wrote"
        ) from None


def require_known(inputs: object, shape: type[Any], path: Path) -> None:
    """Raise InputError for an option among the ``inputs`` of a report that ``shape`` lacks, unless it was not given: of another
    version of nmsolve, it may state another problem.
    """
    known = {field.encode_name for field in msgspec.structs.fields(shape)}
    for name, value in inputs.items() if isinstance(inputs, dict) else ():
        if name not in known and value not in (None, False):
            raise InputError(
                f"this version of nmsolve has no option {name!r}, the report has {str(value)[:40]!r} for it",
                f"{path}: $.inputs",
                "a report of this version",
            )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def beside_earlier(machine: Machine, runs: Sequence[str | Path], memory: int | None = None) -> Machine:
    """Return the machine with what the networks of earlier ``runs`` (folders, or mappings with a report beside) hold of it.

    Raises
    ------
    InputError : no report or graph, a graph that has changed since, a mapping for another machine, a run given twice
    """
    from nmsolve.hw.occupied import beside

    files = [_mapping_of(Path(run)) for run in runs]
    for i, file in enumerate(files):
        if file in files[:i]:
            raise InputError("this run is given twice", str(file), "each earlier run once")
    return beside(machine, [_network(file, machine, memory) for file in files]) if files else machine


def _mapping_of(run: Path) -> Path:
    if not run.exists():
        raise InputError("no such file or directory", str(run), "the output folder of an earlier run")
    return (run / "mapping.json" if run.is_dir() else run).resolve()


def _network(file: Path, machine: Machine, memory: int | None) -> tuple[LogicGraph, IntArray]:
    """Return graph and mapping of an earlier run; whatever else was on the machine then is said by its own run."""
    from nmsolve.model.mapping.files import read_mapping
    from nmsolve.solvers.mapping.memory_estimate import load_within

    inputs = stated_inputs(file.parent / "report.json")
    if inputs.graph is None:
        raise InputError(
            "the report names no graph", str(file.parent / "report.json"), "a run of nmsolve map"
        )
    graph = load_within(Path(inputs.graph), memory, inputs)
    return graph, read_mapping(file, graph, machine, other_faults=True)
