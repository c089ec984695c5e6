"""Small files of networks that share units, with every part of a schedule in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Two networks on three units in a row: static data, moved data, a gang of two units, units that may be switched off.
THREE: dict[str, Any] = {
    "units": {"mesh": [1, 3]},
    "power": {"on": 5, "idle": 2, "off_time": 1, "wake_time": 1, "switch_energy": 6},
    "network": {"hop_time": 1, "bandwidth": 4, "hop_energy": 1, "load_bandwidth": 8},
    "memory": 100,
    "tasks": [
        {
            "name": "a",
            "processes": [
                {"name": "x", "span": 5, "sets": "each", "weights": {"name": "wx", "bytes": 40}},
                {"name": "y", "span": 4, "sets": "each", "after": [{"of": "x", "bytes": 8}]},
                {"name": "z", "span": 6, "sets": "each", "after": ["y"]},
            ],
        },
        {
            "name": "b",
            "processes": [
                {"name": "x", "span": 7, "sets": "each"},
                {
                    "name": "y",
                    "span": {"1": 9, "2": 5},
                    "sets": [["0,0"], ["0,1"], ["0,2"], ["0,0", "0,1"]],
                    "after": ["x"],
                },
            ],
        },
    ],
}


def tasks_file(path: Path, **changed: Any) -> Path:
    """Write :data:`THREE` with other parts, and return the path."""
    path.write_text(json.dumps(THREE | changed))
    return path


def one_unit(path: Path, deadlines: tuple[int, int], release: int = 0) -> Path:
    """Write two networks of 10 and 5 ticks on one unit, with deadlines."""
    steps = [
        {"name": "x", "span": 5, "sets": [["u"]]},
        {"name": "y", "span": 5, "sets": [["u"]], "after": ["x"]},
    ]
    alone = [{"name": "z", "span": 5, "sets": [["u"]], "release": release}]
    tasks = [
        {"name": "a", "deadline": deadlines[0], "processes": steps},
        {"name": "b", "deadline": deadlines[1], "processes": alone},
    ]
    path.write_text(json.dumps({"units": [{"name": "u"}, {"name": "v"}], "tasks": tasks}))
    return path
