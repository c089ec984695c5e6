"""Which processes one has started, by the system's own lists (Linux)."""

from __future__ import annotations

from pathlib import Path


def below(top: int, text: str) -> list[int]:
    """Return the processes that descend from one and whose command has a text in it."""
    above, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            commands[int(folder.name)] = (folder / "cmdline").read_text(errors="replace")
            above[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    out = []
    for process, command in commands.items():
        up = process
        while up in above and up != top:
            up = above[up]
        if up == top and process != top and text in command:
            out.append(process)
    return out
