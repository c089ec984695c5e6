"""``nmsolve export``: a mapping as files of another tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmsolve.kinds.answer import require_inputs_kept, tell
from nmsolve.kinds.loading import Loaded, load_answer
from nmsolve.model.errors import InputError
from nmsolve.model.quantities import counted
from nmsolve.report.figures import number

if TYPE_CHECKING:
    from nmsolve.kinds.mapping.options import ExportOptions

#: A row of JSON, and lines for people.
Told = tuple[dict[str, Any], list[str]]


def run_export(o: ExportOptions) -> int:
    """Write the files, and print what they cannot say and what the tool should count.

    Raises
    ------
    InputError : an unknown tool, wrong files, a machine that the tool does not know
    """
    require_inputs_kept((o.out / name for name in FILES), o)
    if o.to == PERFETTO:
        return _search(o)
    if o.to not in TOOLS:
        raise InputError(f"unknown tool {o.to!r}", "--to", "one of " + ", ".join((*TOOLS, PERFETTO)))
    row, lines = TOOLS[o.to](load_answer(o), o.out)
    return tell(o.json, [{"type": "export", **row}], lines)


def _search(o: ExportOptions) -> int:
    """Write the search of a run of any kind: its events, whatever its answer is."""
    from nmsolve.kinds.run_trace import write_run_trace

    assert o.mapping is not None
    path, engines = write_run_trace(o.mapping if o.mapping.is_dir() else o.mapping.parent, o.out)
    row = {"type": "export", "files": [str(path)], "engines": engines}
    return tell(
        o.json,
        [row],
        [f"wrote {path}", f"{counted(engines, 'engine')} over time; open it at https://ui.perfetto.dev"],
    )


def _sanafe(loaded: Loaded, out: Path) -> Told:
    from nmsolve.hw.sanafe import export_sanafe

    done = export_sanafe(loaded.graph, loaded.machine, loaded.core, out)
    files, expected = [str(path) for path in done.files], asdict(done.expected)
    row = {
        "files": files,
        "steps": done.steps,
        "notes": list(done.notes),
        "expected": expected,
        "energy": done.energy,
    }
    steps = f"{done.steps} steps of SANA-FE are one step of the network"
    lines = [
        *(f"wrote {path}" for path in files),
        f"{steps}; it should count per step of the network:",
        *(f"  {name.replace('_', ' '):16} {number(value):>20}" for name, value in expected.items()),
        f"energy of the mapping: {number(done.energy)}, without what messages to the sender's own core cost there",
        *(f"note: {note}" for note in done.notes),
    ]
    return row, lines


def _pacman(loaded: Loaded, out: Path) -> Told:
    from nmsolve.hw.pacman import export_pacman

    done = export_pacman(loaded.graph, loaded.machine, loaded.core, out)
    files, most = [str(path) for path in done.files], int(done.entries.max())
    row = {
        "files": files, "slices": done.slices, "processors": done.processors, "entries": most, "notes": list(done.notes),
    }  # fmt: skip
    lines = [
        *(f"wrote {path}" for path in files),
        f"{done.slices:,} slices, at most {done.processors} on a chip; at most {most:,} entries in a router, not compressed",
        *(f"note: {note}" for note in done.notes),
    ]
    return row, lines


def _lava(loaded: Loaded, out: Path) -> Told:
    from nmsolve.hw.lava import export_lava

    done = export_lava(loaded.graph, loaded.machine, loaded.core, out)
    row = {
        "files": [str(done.file)], "populations": done.populations, "cores": done.cores, "addresses": done.addresses,
        "notes": list(done.notes),
    }  # fmt: skip
    told = f"{done.populations:,} populations on {done.cores:,} cores, {done.addresses:,} runs of neurons"
    return row, [f"wrote {done.file}", told, *(f"note: {note}" for note in done.notes)]


def _csv(loaded: Loaded, out: Path) -> Told:
    from nmsolve.model.files import made_folder
    from nmsolve.model.mapping.csv_file import write_csv

    path = made_folder(out) / "mapping.csv"
    write_csv(path, loaded.graph, loaded.machine, loaded.core)
    return {"files": [str(path)]}, [f"wrote {path}"]


def _picture(form: str) -> Callable[[Loaded, Path], Told]:
    def write(loaded: Loaded, out: Path) -> Told:
        from nmsolve.hw.graph_files import export_graph

        path = export_graph(loaded.graph, loaded.machine, loaded.core, out, form)
        return {"files": [str(path)]}, [f"wrote {path}"]

    return write


#: What exports may be called.
FILES = (
    "arch.yaml", "network.yaml", "placements.json", "routing_tables.json", "keys.json", "core_assignment.json", "graph.dot",
    "graph.graphml", "mapping.csv", "trace.json",
)  # fmt: skip
#: The search of a run; every other tool takes a mapping.
PERFETTO = "perfetto"
#: Tools whose input files can be written.
TOOLS: dict[str, Callable[[Loaded, Path], Told]] = {
    "sanafe": _sanafe, "pacman": _pacman, "lava": _lava, "csv": _csv, "dot": _picture("dot"), "graphml": _picture("graphml"),
}  # fmt: skip
