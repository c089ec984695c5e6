"""Files that state scheduling problems, and schedules."""

from __future__ import annotations

import json
from pathlib import Path

from test_schedule_files import FT06, MPLIB, ONE, PSPLIB

from nmsolve.model.schedule.files import load_schedule
from nmsolve.model.schedule.schedule_file import read_schedule
from unknown import Row

WORKFLOW = {"tasks": [{"name": "a", "runtime": 1, "gpus": 2}], "colour": "red"}
SPECIFIED = {
    "specification": {"tasks": [{"name": "a", "id": "a", "slots": 1}], "files": [{"id": "f", "sizeInBytes": 1, "tape": "t"}]},
    "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 1, "gpuCount": 1}], "queue": "q"},
}  # fmt: skip
SCHEDULE = {"processes": [{"process": "a/x", "start": 0, "units": ["0,0"], "colour": "red"}], "shift": 1}
COLOURED = PSPLIB.replace("MPM-Time\n", "MPM-Time colour\n").replace(
    "     0        6\n", "     0        6  4\n"
)
PAID = {"name": "x", "span": 1, "uses": {"gold": 1}}


def _schedule(path: Path) -> object:
    """Read a schedule of one process."""
    tasks = path.with_name("tasks.json")
    tasks.write_text(json.dumps(ONE))
    return read_schedule(path, load_schedule(tasks).problem)


def _row(reader: str, file: str, content: object, unknown: str) -> Row:
    text = content if isinstance(content, str) else json.dumps(content)
    return Row(f"model.schedule.{reader}", load_schedule, file, text, unknown)


ROWS = [
    _row("psplib", "x.sm", PSPLIB + "HOLIDAYS:\n day amount\n 3 4\n" + "*" * 72 + "\n", "HOLIDAYS"),
    _row("psplib", "x.sm", PSPLIB.replace("horizon", "minimal lag : 3\nhorizon"), "minimal lag"),
    _row("psplib", "x.sm", COLOURED, "colour"),
    _row("psplib", "x.sm", PSPLIB.replace("R 1  R 2\n---", "R 1  R 2  X 1\n---"), "'x'"),
    _row("psplib", "x.mm", PSPLIB.replace("constrained        :  0   D", "constrained :  2   D"), "doubly constrained"),
    _row("psplib", "x.mm", PSPLIB.replace("  R 1  R 2\n    4    2\n", "  R 1  D 1\n    4    2\n"), "'D1'"),
    _row("psplib", "x.mm", PSPLIB.replace("#successors   successors", "#successors   lags"), "lags"),
    _row("patterson", "x.rcp", "1 1\n2\n1 1 0\n77\n", "77"),
    _row("patterson", "x.rcmp", MPLIB + "77\n", "77"),
    _row("shops", "x.fjs", "1 1\n1 1 1 3\nsetup 4\n", "setup"),
    _row("shops", "x.jsp", FT06 + "EOF of someone\n", "EOF of someone"),
    _row("tasks", "tasks.json", ONE | {"colour": "red"}, "colour"),
    _row("tasks", "tasks.json", ONE | {"tasks": [{"name": "a", "processes": [PAID]}]}, "gold"),
    _row("wfcommons", "w.json", {"workflow": WORKFLOW}, "colour"),
    _row("wfcommons", "w.json", {"workflow": WORKFLOW}, "gpus"),
    *(
        _row("wfcommons", "w.json", {"workflow": SPECIFIED, "shelf": 1}, name)
        for name in ("slots", "tape", "gpuCount", "queue", "shelf")
    ),
    _row("files", "x.msrcp", "", ".msrcp"),
    Row("model.schedule.schedule_file", _schedule, "schedule.json", json.dumps(SCHEDULE), "colour"),
    Row("model.schedule.schedule_file", _schedule, "schedule.json", json.dumps(SCHEDULE), "shift"),
]  # fmt: skip
