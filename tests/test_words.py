"""Plain words of a command line are read without typer: as typer reads them, or not at all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from nmsolve.cli.app import app
from nmsolve.cli.table import COMMANDS, Command
from nmsolve.cli.words import read
from nmsolve.model.lookup import named

#: Values that a field may have, by its type as it is written.
VALUES = {"int": "1 7 16", "float": "1 2.5 0.05", "Path": "a.json b/c", "str": "xy 1.5 lo-ihi a,b"}
TEXTS = {"time_limit": "90 90s 5m", "workers": "1 3 all"}


def by_typer(name: str, words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The options that typer makes of words behind a command, or None if it refuses them."""
    asked: list[Any] = []
    monkeypatch.setattr(Command, "call", lambda self, options: asked.append(options) or 0)
    with pytest.raises(SystemExit) as ended:
        app([*name.split(), *words])
    assert bool(asked) == (ended.value.code == 0)
    return asked[0] if asked else None


def some(rng: random.Random, options: Any) -> list[str]:
    """A command line with some of the options, in any order."""
    hints, arguments, others = get_type_hints(options, include_extras=True), [], []
    for field in fields(options):
        kind, p = get_args(hints[field.name])
        if not p.argument and rng.random() < 0.6:
            continue
        shown = str(field.type) + str(kind)
        texts = next((text for key, text in VALUES.items() if key in str(kind)), "")
        texts = TEXTS.get(field.name, texts) if p.parser or p.callback else texts
        several = rng.randrange(1, 3) if "list" in shown else 1
        values = [rng.choice(texts.split()) for _ in range(several)] if texts else []
        if p.argument:
            arguments += values
        elif "bool" in str(kind):
            others.append([rng.choice(p.names).partition("/")[0]])
        else:
            names = p.names or (f"--{field.name.replace('_', '-')}",)
            for value in values:
                option = rng.choice(names)
                others.append(
                    [f"{option}={value}"] if rng.random() < 0.3 and option[1] == "-" else [option, value]
                )
    parts = [[word] for word in arguments]
    for other in others:
        parts.insert(rng.randrange(len(parts) + 1), other)
    return [word for part in parts for word in part]


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.open])
def test_words_are_read_as_typer_reads_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands with random options, most of which are plain."""
    options, rng, plain = named(COMMANDS[name].options), random.Random(name), 0
    for _ in range(8):
        words = some(rng, options)
        found = read(options, words)
        if found is not None:
            plain += 1
            assert found == by_typer(name, words, monkeypatch), words
    assert plain, name


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("g.json -t10", True),
        ("-- g.json", True),
        ("g.json --seed=+4", True),
        ("g.json -m mesh:2x2 -m mesh:3x3", False),
        ("g.json -t 1 -t 2", True),
        ("g.json --seed -1", True),
        ("g.json --seed 2.0", True),
        ("g.json --balance .5", True),
        ("g.json --json=1", False),
        ("g.json --workers none", False),
        ("g.json --time-limit soon", False),
        ("g.json --mach mesh:2x2", False),
        ("g.json other.json", False),
        ("g.json --machine", False),
        ("--machine mesh:2x2", False),
        ("--help", False),
        ("", False),
    ],
)
def test_rare_and_wrong_words_are_left_to_typer(
    words: str, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes some of them, and says what is wrong with the others."""
    assert read(named(COMMANDS["map"].options), words.split()) is None
    if right:
        assert by_typer("map", words.split(), monkeypatch).graph == Path("g.json")
