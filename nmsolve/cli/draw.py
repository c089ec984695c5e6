"""``nmsolve draw``: one picture of a run as a file, SVG, PNG or PDF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from nmsolve.cli import pictures
from nmsolve.cli.answer import OK, prepare_file
from nmsolve.cli.core_figures import core_share, resource_table
from nmsolve.cli.loading import load_answer, read_object
from nmsolve.cli.run_events import ending, read_events
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from nmsolve.cli.commands import DrawOptions
    from nmsolve.model.mapping.problem import MappingProblem
    from nmsolve.model.types import IntArray

#: Forms of a picture by the end of its file's name.
FORMS = ("svg", "png", "pdf")
#: The picture where none is named: of a mapping and of a plan; of all else the search.
BOARD, STAGES, SEARCH = "cores", "stages", "search"

Pictures = dict[str, Callable[[], "Figure"]]


def run_draw(o: DrawOptions) -> int:
    """Write the picture.

    Raises
    ------
    InputError : files that cannot be read, another form, or a picture that the run does not have
    """
    form = o.out.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise InputError(
            f"unknown form {o.out.suffix!r}", "--out", "a file that ends with ." + ", .".join(FORMS)
        )
    prepare_file(o.out)
    kinds = _pictures(o)
    kind = o.what or next(name for name in (BOARD, STAGES, SEARCH) if name in kinds)
    if kind not in kinds:
        raise InputError(f"there is no picture {kind!r} of this run", "--what", "one of " + ", ".join(kinds))
    _save(kinds[kind](), o.out, form)
    print(o.out)
    return OK


def _save(figure: Figure, path: Path, form: str) -> None:
    """Write the file whole or not at all. Equal pictures give equal bytes."""
    from io import BytesIO

    import matplotlib

    from nmsolve.model.files import write_atomic

    data = BytesIO()
    no_date = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "nmsolve", "svg.fonttype": "none"}):
        figure.savefig(data, format=form, dpi=160, metadata=no_date)
    write_atomic(path, data.getvalue())


def _pictures(o: DrawOptions) -> Pictures:
    """Return every picture of the run by its name."""
    from nmsolve.cli.check_pipeline import plan_file

    folder = o.mapping if o.mapping.is_dir() else o.mapping.parent
    plan = plan_file(o.mapping)
    if plan is not None:
        return _of_plan(plan, folder)
    report = folder / "report.json"
    search = _search(folder, read_object(report) if report.exists() else None)
    if o.mapping.is_dir() and not (folder / "mapping.json").exists() and search:
        return search
    loaded = load_answer(o)
    problem, core = loaded.problem(), loaded.core
    return {**mapping_pictures(problem, core), **search}


def _search(folder: Path, report: dict[str, object] | None) -> Pictures:
    events, (seconds, _) = read_events(folder), ending(report)
    return {SEARCH: partial(pictures.convergence.figure, events, seconds, "full")} if events else {}


def mapping_pictures(problem: MappingProblem, core: IntArray) -> Pictures:
    """Return the pictures of the mapping ``core`` (n,): ``cores``, ``resources``, and ``links`` where the machine has some."""
    from nmsolve.hw.routes import has_routes

    names, used, limits = resource_table(problem, core)
    share, label, _ = core_share(names, used, limits)
    kinds: Pictures = {
        BOARD: partial(pictures.core_use.figure, problem.machine, share, label),
        "resources": partial(pictures.resource_use.figure, names, used, limits, problem.machine.usable),
    }
    if has_routes(problem.machine):
        kinds["links"] = partial(_links, problem, core)
    return kinds


def _links(problem: MappingProblem, core: IntArray) -> Figure:
    """Draw the traffic on every link by the machine's own routes."""
    from nmsolve.cli.routing_page import drawn_links, hottest_links
    from nmsolve.hw.routes import link_loads

    machine = problem.machine
    loads = link_loads(problem.graph, machine, core)
    return pictures.link_loads.figure(*drawn_links(machine, loads, hottest_links(machine, loads)))


def _of_plan(path: Path, folder: Path) -> Pictures:
    """Return the pictures of a pipeline's plan."""
    import msgspec

    from nmsolve.cli.check_pipeline import REPORT
    from nmsolve.cli.pipeline_page import plan_drawings
    from nmsolve.cli.pipeline_problem import read_inputs, state_problem
    from nmsolve.cli.pipeline_report import PipelineReport
    from nmsolve.model.pipeline.files import read_plan

    beside = folder / REPORT
    report, inputs = read_inputs(beside)
    given = state_problem(inputs)
    try:
        said = msgspec.convert(report, PipelineReport)
    except msgspec.ValidationError as error:
        raise InputError(
            f"not a report of a pipeline ({error})", str(beside), "the one of this run"
        ) from None
    drawings = plan_drawings(given, read_plan(path, given.problem), said)
    found = {name: partial(draw.figure, *what) for name, (draw, what) in drawings.items()}
    return {**found, **_search(folder, report)}
