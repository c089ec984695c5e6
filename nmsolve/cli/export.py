"""``nmsolve export``: a mapping as files of another tool."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from nmsolve.cli.loading import load_answer
from nmsolve.cli.progress import number
from nmsolve.model.errors import InputError

#: Tools that mappings can be written for.
TOOLS = ("sanafe",)


def run_export(
    mapping: Path,
    graph: Path | None,
    machine: str | None,
    chips: str | None,
    placement: Path | None,
    to: str,
    out: Path,
    as_json: bool,
) -> int:
    """Write the files, and print what they cannot say and what the tool should count.

    Raises
    ------
    InputError : an unknown tool, wrong files, a machine that the tool cannot simulate
    """
    if to not in TOOLS:
        raise InputError(f"unknown tool {to!r}", "--to", "one of " + ", ".join(TOOLS))
    from nmsolve.hw.sanafe import export_sanafe

    loaded = load_answer(mapping, graph, machine, chips, placement)
    done = export_sanafe(loaded.graph, loaded.machine, loaded.core, out)
    files, expected = [str(path) for path in done.files], asdict(done.expected)
    if as_json:
        result = {
            "type": "export",
            "files": files,
            "steps": done.steps,
            "notes": list(done.notes),
            "expected": expected,
            "energy": done.energy,
        }
        print(json.dumps(result))
        return 0
    for path in files:
        print(f"wrote {path}")
    print(
        f"{done.steps} steps of SANA-FE are one step of the network; it should count per step of the network:"
    )
    for name, value in expected.items():
        print(f"  {name.replace('_', ' '):16} {number(value):>20}")
    print(
        f"energy of the mapping: {number(done.energy)}, without what messages to the sender's own core cost there"
    )
    for note in done.notes:
        print(f"note: {note}")
    return 0
