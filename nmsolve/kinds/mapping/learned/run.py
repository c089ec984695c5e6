"""``nmsolve bench learn``: carry out the comparisons that are missing, graph by graph, and write the tables."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from nmsolve.kinds.answer import INTERRUPTED, OK, prepare_file, prepare_folder
from nmsolve.kinds.command_line import as_command
from nmsolve.kinds.mapping.learned.parts import PARTS
from nmsolve.kinds.mapping.learned.suite import HELD_OUT, TRAINED, Row, Suite
from nmsolve.kinds.mapping.learned.table import HEAD, Gain, cells, gains
from nmsolve.kinds.mapping.options import BenchLearnOptions
from nmsolve.learn.checkpoint import model_path, policy_of
from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.host.provenance import machine, version

#: Around the tables in a page that has other text too.
BEGIN, END = "<!-- nmsolve bench learn: begin -->", "<!-- nmsolve bench learn: end -->"


def run_bench_learn(o: BenchLearnOptions) -> int:
    """Run the command; returns the exit code.

    Raises
    ------
    InputError : unknown parts, wrong numbers, a page that cannot be written, kept rows that are damaged
    """
    parts = list(dict.fromkeys(o.parts or PARTS))
    for name in parts:
        if name not in PARTS:
            raise InputError(f"unknown part {name!r}", "PARTS", "one of " + ", ".join(PARTS))
    families = (*TRAINED, HELD_OUT)
    if o.graphs % len(families):
        raise InputError(
            f"{o.graphs} graphs", "--graphs", f"a multiple of {len(families)}, the number of families"
        )
    suite = Suite(families, o.graphs // len(families), o.seeds, o.seconds)
    page = None if o.page is None else _split(o.page)
    prepare_folder(o.out)
    rows: dict[str, list[Row]] = {name: [] for name in parts}
    ended = OK
    try:
        for name in parts:
            for family, graph in suite.cases():
                rows[name] += _rows(o, name, replace(suite, families=(family,), graphs=1, first=graph))
    except KeyboardInterrupt:
        _say(f"stopped; the same command goes on from what {o.out} holds")
        ended = INTERRUPTED
    found = {name: gains(some) for name, some in rows.items() if some}
    command = as_command(" ".join(["bench learn", *(o.parts or [])]), o, (), ("parts", "out", "page", "json"))
    text = _tables(command, found)
    write_atomic(o.out / "table.md", text)
    if page is not None and ended == OK:
        assert o.page is not None
        write_atomic(o.page, f"{BEGIN}\n{text}{END}".join(page))
    if o.json:
        for name, some in found.items():
            for one in some:
                print(json.dumps({"type": "gain", "part": name, **asdict(one), "ships": one.ships}))
    else:
        print(text)
    return ended


def _split(page: Path) -> tuple[str, str]:
    """Return what stands before and after the tables in a page; InputError if it is another file."""
    prepare_file(page)
    if not page.exists():
        return "", "\n"
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError("it has no place for the tables", str(page), f"the lines {BEGIN} and {END}")
    return before, after


def _rows(o: BenchLearnOptions, name: str, suite: Suite) -> list[Row]:
    """Return the comparison on one graph: the kept one, or a new one, which is then kept."""
    family, graph = suite.families[0], suite.first
    models = "-".join(policy_of(m).hash for m in PARTS[name].models)
    seconds = "" if suite.seconds is None else f"-{suite.seconds:g}s"
    path = o.out / name / f"{family}-{graph}-{suite.seeds}{seconds}-{version()}-{models or 'none'}.json"
    try:
        return [Row(**row) for row in json.loads(path.read_text())]
    except FileNotFoundError:
        pass
    except (ValueError, TypeError):
        raise InputError("damaged rows", str(path), "a file of this command; delete it") from None
    began = time.process_time()
    rows = list(PARTS[name].compare(name)(suite))
    path.parent.mkdir(exist_ok=True)
    write_atomic(path, json.dumps([asdict(row) for row in rows]))
    _say(f"{name}: {family} {graph} with {suite.seeds} seeds, {time.process_time() - began:.1f} CPU s")
    return rows


def _tables(command: str, found: dict[str, list[Gain]]) -> str:
    """Return all tables as Markdown."""
    lines = [
        f"Made by `{command}` with nmsolve {version()} on {machine()}. Gains are paired, at equal CPU time, features and "
        "inference included, above 0 if the rival is better. Means and intervals (bootstrap) are over the graphs of the families "
        "of training, on topologies that were held out. The rule for a default: the interval lies above 0, and less than 0.5 % "
        "is lost on the other family.",
    ]  # fmt: skip
    for name, some in found.items():
        part = PARTS[name]
        lines += ["", f"**{part.title}.** Compared with {part.base}. {_training(part.models, some)}".rstrip()]
        for setting in dict.fromkeys(one.setting for one in some):
            lines += ["", setting, "", _line(HEAD), _line(["---"] * len(HEAD))]
            lines += [_line(cells(one)) for one in some if one.setting == setting]
    return "\n".join(lines) + "\n"


def _training(models: Sequence[str], some: Sequence[Gain]) -> str:
    """Return what training took, and after how many instances that is paid for."""
    if not models:
        return "Nothing is trained."
    cards = [model_path(m).with_suffix(".md") for m in models]
    found = [
        re.search(r"\| cpu_seconds \| ([\d.]+) \|", c.read_text("utf-8")) if c.exists() else None
        for c in cards
    ]
    if None in found:
        return "How long training took is not known: a card is missing."
    spent = [float(match[1]) for match in found if match]
    saved = max((g.saved for g in some if g.rival == "learned" and g.saved is not None), default=None)
    text = f"Training took {sum(spent):.0f} CPU s"
    if saved is None:
        return f"{text}."
    if saved <= 0:
        return f"{text}; it saves no time."
    return f"{text}; a run saves {saved:.2g} CPU s, so it has paid after {sum(spent) / saved:.0f} instances."


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
