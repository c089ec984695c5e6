"""``nmsolve hw list`` and ``nmsolve hw show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmsolve.kinds.answer import tell
from nmsolve.kinds.values import chip_grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nmsolve.cli.commands import ListOptions, ShowOptions


def run_list(o: ListOptions) -> int:
    """Print one line per machine: presets, then those of other packages."""
    from nmsolve.hw.catalogue import presets, summary

    said: list[Said] = []
    for heading, names in presets().items():
        said += [(None, ""), (None, heading)] if heading else []
        said += map(summary, names)
    said += _of_others()
    return tell(o.json, [row for row, _ in said if row is not None], [line for _, line in said])


#: What is said of a machine: an object of JSON (None: nothing), and a line for people.
Said = tuple[dict[str, object] | None, str]


def _of_others() -> Iterator[Said]:
    """Yield the machines of other packages with their names; one that cannot be used says why."""
    from nmsolve.hw.catalogue import summary
    from nmsolve.model.errors import InputError
    from nmsolve.model.plugins import MACHINES, offered, package_of

    found = offered(MACHINES)
    if found:
        yield None, ""
        yield None, "of other packages:"
    for one in found:
        try:
            row, line = summary(one.name)
        except InputError as error:
            row, line = {"type": "preset", "name": one.name, "error": str(error)}, f"{one.name:12} {error}"
        yield row | {"package": package_of(one)}, f"{line}  [{package_of(one)}]"


def run_show(o: ShowOptions) -> int:
    """Print every figure of a machine, with unit, source and a mark on unverified ones."""
    from nmsolve.hw.catalogue import figures_of
    from nmsolve.model.plugins import MACHINES, entry_of, package_of

    rows = figures_of(o.machine, chip_grid(o.chips))
    entry = entry_of(MACHINES, o.machine)
    if entry is not None:
        rows.insert(0, {"group": "shape", "name": "package", "value": package_of(entry)})
    width = max(len(str(r["name"])) for r in rows)
    lines = []
    for r in rows:
        mark = "" if r.get("verified", True) else "  [unverified]"
        source = f"  ({r['source']})" if r.get("source") else ""
        unit = f" {r['unit']}" if r.get("unit") else ""
        lines.append(f"{r['name']!s:{width}}  {r['value']}{unit}{mark}{source}")
    return tell(o.json, ({"type": "figure", **row} for row in rows), lines)
