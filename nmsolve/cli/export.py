"""``nmsolve export``: a mapping as files of another tool."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from nmsolve.cli.answer import tell
from nmsolve.cli.loading import load_answer
from nmsolve.cli.progress import number
from nmsolve.model.errors import InputError

if TYPE_CHECKING:
    from nmsolve.cli.commands import ExportOptions

#: Tools whose input files can be written.
TOOLS = ("sanafe",)


def run_export(o: ExportOptions) -> int:
    """Write the files, and print what they cannot say and what the tool should count.

    Raises
    ------
    InputError : an unknown tool, wrong files, a machine that the tool cannot simulate
    """
    if o.to not in TOOLS:
        raise InputError(f"unknown tool {o.to!r}", "--to", "one of " + ", ".join(TOOLS))
    from nmsolve.hw.sanafe import export_sanafe

    loaded = load_answer(o)
    done = export_sanafe(loaded.graph, loaded.machine, loaded.core, o.out)
    files, expected = [str(path) for path in done.files], asdict(done.expected)
    row = {
        "type": "export", "files": files, "steps": done.steps, "notes": list(done.notes), "expected": expected,
        "energy": done.energy,
    }  # fmt: skip
    steps = f"{done.steps} steps of SANA-FE are one step of the network"
    lines = [
        *(f"wrote {path}" for path in files),
        f"{steps}; it should count per step of the network:",
        *(f"  {name.replace('_', ' '):16} {number(value):>20}" for name, value in expected.items()),
        f"energy of the mapping: {number(done.energy)}, without what messages to the sender's own core cost there",
        *(f"note: {note}" for note in done.notes),
    ]
    return tell(o.json, [row], lines)
