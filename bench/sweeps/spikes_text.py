"""Recorded spikes as text: columns in any order and by many names, units, other columns, separators, quotes, packing, encodings.

What a file says is what it was made of; which names mean what is in docs/files.md.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

from nmsolve.model.formats.spikes import read_spikes
from sweeps import REFUSED, Variant

NEURONS = (
    "id",
    "neuron",
    "node_ids",
    "node_id",
    "gid",
    "Neuron ID",
    "cell_id",
    "i",
    "unit",
    "senders",
    "spkid",
    "nodeId",
)
#: Names of times with the power of ten of a second that they mean.
TIMES = {
    "time": 0, "t": 0, "times": 0, "spike_times": 0, "time_s": 0, "time [s]": 0, "Time (sec)": 0, "timestamps": 3, "spkt": 3,
    "time_ms": 3, "time [ms]": 3, "t (ms)": 3, "times in ms": 3, "timestamps_s": 0, "Time [µs]": 6, "time_us": 6, "t_ns": 9,
}  # fmt: skip
POPULATIONS = ("population", "pop", "Population", "pop_name")
OTHERS = ("amplitude", "weight", "V_m", "label", "channel")
UNKNOWN = ("time [min]", "time_h", "when", "t_days")
NEURON, TIME, POPULATION, OTHER = "neuron", "time", "population", "other"


class Form(NamedTuple):
    """How a file is written: roles and names of its columns, the power of ten of its times, separator, where names are."""

    roles: list[str]
    names: list[str]
    power: int
    separator: str
    title: str
    quoted: bool


def variant(rng: Random) -> Variant:
    """Return a recording."""
    suffix = rng.choice((".csv", ".csv", ".tsv", ".txt", ".dat", ".gdf"))
    form = _form(rng, suffix)
    rows = _rows(rng, form)
    said = Counter((population, neuron) for population, neuron, _ in rows)
    expected: object = (
        {f"{p}/{k}" if p else k: n for (p, k), n in said.items()},
        min(t for *_, t in rows),
        max(t for *_, t in rows),
    )
    named = [name for role, name in zip(form.roles, form.names, strict=True) if role == OTHER]
    if form.title == "":
        named = []
    if rng.random() < 0.15:
        rows = rows + rows[:1]
        first = (rows[0][0], rows[0][1])
        counts, begin, end = expected  # type: ignore[misc]
        expected = (
            {k: n + (k == (f"{first[0]}/{first[1]}" if first[0] else first[1])) for k, n in counts.items()},
            begin,
            end,
        )
        named.append("repeat")
    if _sent(form) and OTHER in form.roles and form.title:
        expected, named = (
            REFUSED,
            [name for role, name in zip(form.roles, form.names, strict=True) if role == OTHER],
        )
    if form.title == "" and (len(form.roles) > 2 or form.roles[0] == TIME):
        expected = REFUSED
        named = ["without names"] if len(form.roles) > 2 else ["which column is the time"]
    lines = [_line(rng, form, row) for row in rows]
    if rng.random() < 0.2:
        expected, named = REFUSED, _fault(rng, form, lines, named)
    return _written(rng, form, suffix, lines, expected, tuple(named))


def read(path: Path) -> object:
    """Return what the package reads: spikes by neuron, seconds of the first and the last."""
    found = read_spikes(path)
    assert found.span is not None
    counts = dict(zip(found.names, found.spikes.tolist(), strict=True))
    return counts, round(found.span[0], 6), round(found.span[1], 6)


def _form(rng: Random, suffix: str) -> Form:
    title = rng.choice(("line", "line", "line", "comment", ""))
    roles = [NEURON, TIME]
    if rng.random() < 0.3:
        roles.append(POPULATION)
    if rng.random() < 0.2:
        roles.append(OTHER)
    rng.shuffle(roles)
    separator = rng.choice((",", ";", "\t", " "))
    neuron, time = rng.choice(NEURONS), rng.choice(list(TIMES))
    if title == "line" and separator == " ":
        neuron, time = neuron.replace(" ", "_"), time.replace(" ", "_")
    if title == "comment":
        neuron, time = neuron.replace(" ", "_"), time.replace(" in ", "_in_")
    power = TIMES.get(time, TIMES.get(time.replace("_", " "), 0))
    if title == "":
        power = 3 if suffix in (".dat", ".gdf") else 0
    elif neuron == "senders" and time in ("time", "t", "times", "spike_times"):
        power = 3  # NEST's
    names = {NEURON: neuron, TIME: time, POPULATION: rng.choice(POPULATIONS), OTHER: rng.choice(OTHERS)}
    return Form(roles, [names[role] for role in roles], power, separator, title, rng.random() < 0.2)


def _sent(form: Form) -> bool:
    return form.names[form.roles.index(NEURON)] == "senders"


def _rows(rng: Random, form: Form) -> list[tuple[str, str, float]]:
    """(population, neuron, seconds) of every spike; times differ, and are no whole numbers."""
    populations = (
        ("v1", "lgn", "L4 e") if POPULATION in form.roles and form.separator != " " else ("v1", "lgn")
    )
    whole = rng.random() < 0.7
    times = rng.sample(range(1, 9999), rng.randint(2, 12))
    return [
        (
            rng.choice(populations) if POPULATION in form.roles else "",
            str(rng.randrange(6)) if whole or not form.title else rng.choice(("v1/0", "a", "größe")),
            (time * 1000 + 7) / 1e6,
        )
        for time in times
    ]


def _line(rng: Random, form: Form, row: tuple[str, str, float]) -> list[str]:
    population, neuron, seconds = row
    micro = round(seconds * 1e6)
    time = f"{micro / 10 ** (6 - form.power):.{6 - form.power}f}" if form.power <= 6 else str(micro * 1000)
    if form.title and rng.random() < 0.1:
        time = f"{float(time):.12e}"
    values = {NEURON: neuron, TIME: time, POPULATION: population, OTHER: f"{rng.random():.3f}"}
    return [values[role] for role in form.roles]


def _fault(rng: Random, form: Form, lines: list[list[str]], named: list[str]) -> list[str]:
    """Spoil the lines or names, and return what the refusal names."""
    unclear = form.title == "" and (len(form.roles) > 2 or form.roles[0] == TIME)
    if _sent(form) and OTHER in form.roles and form.title:
        return named
    k, place = rng.randrange(len(lines)), form.roles.index(TIME)
    kind = rng.choice(("time", "width", "unit", "twice") if form.title == "line" else ("time", "width"))
    if kind == "unit":
        form.names[place] = rng.choice(UNKNOWN).replace(" ", "_" if form.separator == " " else " ")
        return [form.names[place]]
    if kind == "twice":
        form.names.append(rng.choice(NEURONS[:4]))
        form.roles.append(NEURON)
        for line in lines:
            line.append("0")
        return ["are the neuron"]
    if k == 0 or unclear:  # the first line says what there is
        if unclear:
            return ["without names"] if len(form.roles) > 2 else ["which column is the time"]
        k = 1
    if kind == "time":
        lines[k][place] = rng.choice(("x", "nan", "1_0", "0x10", "1e999"))
        return [repr(lines[k][place])]
    lines[k].append("9")
    return [f"{len(lines[k])} columns"]


def _written(
    rng: Random, form: Form, suffix: str, lines: list[list[str]], expected: object, named: tuple[str, ...]
) -> Variant:
    def joined(fields: list[str], quote: bool) -> str:
        marked = [f'"{f}"' if quote or form.separator in f else f for f in fields]
        blanks = "  " if form.separator == " " and rng.random() < 0.2 else form.separator
        return blanks.join(marked)

    text = [joined(line, form.quoted) for line in lines]
    if form.title == "line":
        text.insert(0, joined(form.names, form.quoted))
    elif form.title == "comment":
        text.insert(0, "# " + joined(form.names, False))
    if rng.random() < 0.3:
        text.insert(0, "# NEST version: 3.8")
    if rng.random() < 0.2:
        text.insert(rng.randint(1, len(text)), rng.choice(("", "  ", "# a comment", "% another")))
    body = ("\r\n" if rng.random() < 0.3 else "\n").join(text) + ("\n" if rng.random() < 0.8 else "")
    data = body.encode()
    if rng.random() < 0.04:
        data, expected, named = body.encode("utf-16"), REFUSED, ("UTF-16",)
    elif rng.random() < 0.3:
        data = b"\xef\xbb\xbf" + data
    if rng.random() < 0.2:
        suffix, data = suffix + ".gz", gzip.compress(data)
    return Variant({"s" + suffix: data}, expected, named)
