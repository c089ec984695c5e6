"""Edge lists: columns in any order and by many names, other columns, separators, quotes, number formats, packing, encodings.

What a file says is read from its text once more, by Python's csv and the order of columns that the generator chose; the rules are
those of docs/files.md.
"""

from __future__ import annotations

import csv
import gzip
import io
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import NamedTuple

from nmsolve.model.formats import load_graph
from sweeps import REFUSED, Variant

SOURCES = ("source", "Source", "src", "from", "pre", "u", "i", "pre_id", "source_node_id", "fromNodeId")
TARGETS = ("target", "Target", "dst", "to", "post", "v", "j", "post_id", "target_node_id", "toNodeId")
WEIGHTS = ("weight", "Weight", "w", "traffic")
OTHERS = ("delay", "eid", "timestamp", "label", "Unnamed: 0", "syn_type", "distance", "")
NAMES = ("camera", "edges", "class 1", "retina,left", "Soma-7", "größe", "x;y", "a.b", "conv2d/3", "n 12")
#: Roles of columns.
SOURCE, TARGET, WEIGHT, TYPE, OTHER = "source", "target", "weight", "type", "other"


class Form(NamedTuple):
    """How a file is written: roles and names of its columns, separator, titles (``line``, ``comment``, none), number forms."""

    roles: list[str]
    names: list[str]
    separator: str
    title: str
    named: bool
    node: str
    comma: bool
    quoted: bool


def variant(rng: Random) -> Variant:
    """Return an edge list."""
    form = _form(rng)
    rows = _rows(rng, form)
    body = _text(rng, form, rows)
    expected, named = _reading(body, form)
    fault = rng.choice(FAULTS) if rng.random() < 0.25 else None
    if fault is not None:
        rows, named, expected = *fault(rng, form, rows), REFUSED
        body = _text(rng, form, rows)
    text = _titles(form) + body
    if rng.random() < 0.3:
        text = "# made by a sweep\n" + text
    data = text.replace("\n", "\r\n" if rng.random() < 0.3 else "\n").encode()
    if rng.random() < 0.05:
        data, expected, named = text.encode("utf-16"), REFUSED, ("UTF-16",)
    elif rng.random() < 0.3:
        data = b"\xef\xbb\xbf" + data
    name = "g" + rng.choice((".csv", ".tsv", ".txt", ".edges"))
    if rng.random() < 0.3:
        name, data = name + ".gz", gzip.compress(data)
    return Variant({name: data}, expected, named)


def read(path: Path) -> object:
    """Return what the package reads: directed, ids, weights by ends."""
    graph = load_graph(path)
    ends = zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)
    edges = {
        (graph.node_id(u), graph.node_id(v)): w
        for (u, v), w in zip(ends, graph.weights.tolist(), strict=True)
    }
    return graph.directed, tuple(graph.node_id(u) for u in range(graph.n)), edges


def _form(rng: Random) -> Form:
    separator = rng.choice((",", ";", "\t", " "))
    title = rng.choice(("line", "line", "line", "comment", ""))
    roles = [SOURCE, TARGET] + [WEIGHT] * (rng.random() < 0.7)
    if title:
        roles += [OTHER] * rng.choice((0, 0, 1, 2)) + [TYPE] * (title == "line" and rng.random() < 0.2)
        rng.shuffle(roles)
    pools = {SOURCE: SOURCES, TARGET: TARGETS, WEIGHT: WEIGHTS, TYPE: ("Type",)}
    other = rng.sample(OTHERS, len(roles))
    names = [rng.choice(pools[role]) if role in pools else other[k] for k, role in enumerate(roles)]
    if separator == " " or title == "comment":
        names = [name.replace(" ", "") or "extra" for name in names]
    return Form(
        roles, names, separator, title, named=rng.random() < 0.4, node=rng.choice(("d", "d", ".1f", ".18e")),
        comma=separator in ";\t" and rng.random() < 0.4, quoted=rng.random() < 0.3,
    )  # fmt: skip


def _rows(rng: Random, form: Form) -> list[list[str]]:
    """Return the fields of the edges."""
    count = rng.randint(2, 7)
    numbers = list(range(count)) if rng.random() < 0.5 else rng.sample(range(10_000), count)
    nodes: list[str] = [format(v, form.node) for v in numbers]
    if form.named:
        clear = [name for name in NAMES if form.title == "line" or form.quoted or not {",", ";"} & set(name)]
        nodes = rng.sample(clear, count)  # without titles and quotes their separator would be anybody's guess
    kind = rng.choice(("Directed", "Undirected"))
    rows = []
    for _ in range(rng.randint(1, 12)):
        source, target = rng.choice(nodes), rng.choice(nodes)
        weight = rng.choice(
            (str(rng.randint(0, 99)), f"{rng.uniform(0, 9):.3f}", f"{rng.uniform(0, 9):.18e}", "1e3")
        )
        other = rng.choice(("7", "0.25", "exc", "a b", "") if form.separator != " " else ("7", "0.25", "exc"))
        values = {SOURCE: source, TARGET: target, WEIGHT: weight, TYPE: kind, OTHER: other}
        rows.append([values[role] for role in form.roles])
    if rng.random() < 0.3:
        rows.append(list(rng.choice(rows)))
    if form.comma:
        rows = [[v.replace(".", ",") if _number(v) else v for v in row] for row in rows]
    return rows


def _text(rng: Random, form: Form, rows: list[list[str]]) -> str:
    out = io.StringIO()
    how = csv.QUOTE_ALL if form.quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=form.separator, lineterminator="\n", quoting=how)
    for row in rows:
        if out.tell() and rng.random() < 0.1:
            out.write(rng.choice(("\n", "# a comment\n", "% another\n")))
        writer.writerow(row)
    return out.getvalue()


def _titles(form: Form) -> str:
    """Return the lines above the edges that say what the columns are."""
    if form.title == "comment":
        return f"# {' '.join(form.names)}\n"
    out = io.StringIO()
    if form.title:
        csv.writer(out, delimiter=form.separator, lineterminator="\n").writerow(form.names)
    return out.getvalue()


def _reading(text: str, form: Form) -> tuple[object, tuple[str, ...]]:
    """Return what a text says by csv and by the roles of its columns, and what there must be warnings of."""
    lines = [line for line in text.split("\n") if line and line[0] not in "#%"]
    rows = [dict(zip(form.roles, row, strict=True)) for row in csv.reader(lines, delimiter=form.separator)]
    if not form.title and form.named and WEIGHT not in form.roles:
        first = {rows[0][SOURCE], rows[0][TARGET]}
        if not any(first & {row[SOURCE], row[TARGET]} for row in rows[1:]):
            return REFUSED, (rows[0][SOURCE],)  # may be titles
    if len({mark for row in rows for mark in ",." if mark in _fraction(row, form)}) > 1:
        return REFUSED, ()
    if _thousands([row[WEIGHT] for row in rows if WEIGHT in row], form.separator):
        return REFUSED, ("a thousand or a fraction",)
    named = [
        name or "without a name" for role, name in zip(form.roles, form.names, strict=True) if role == OTHER
    ]
    directed = all(row.get(TYPE) != "Undirected" for row in rows)
    ids: dict[object, None] = {}
    edges: dict[tuple[object, object], float] = {}
    again = loops = 0
    for row in rows:
        source, target = (
            row[r] if form.named else int(Decimal(row[r].replace(",", "."))) for r in (SOURCE, TARGET)
        )
        ids |= {source: None, target: None}
    order = list(ids) if form.named else sorted(ids, key=lambda v: int(str(v)))
    for row in rows:
        ends = [row[r] if form.named else int(Decimal(row[r].replace(",", "."))) for r in (SOURCE, TARGET)]
        weight = float(row.get(WEIGHT, "1").replace(",", "."))
        if ends[0] == ends[1]:
            loops += weight > 0
            continue
        one, two = ends if directed else sorted(ends, key=order.index)
        again += (one, two) in edges
        edges[one, two] = edges.get((one, two), 0.0) + weight
    named += [f"{loops} dropped"] * (loops > 0) + [f"{again} added up"] * (again > 0)
    return (directed, tuple(order), edges), tuple(named)


def _thousands(weights: list[str], separator: str) -> bool:
    """Return whether marks in weights may part thousands: three digits behind each, and weights without any beside them."""
    marks = {";": ",.", "\t": ","}.get(separator, "")
    marked = [w for w in weights if set(marks) & set(w)]
    parts = [w.replace(",", ".").split(".") for w in marked]
    groups = all(len(b) == 3 and b.isdigit() and a.isdigit() and len(a) < 4 and a[0] != "0" for a, b in parts)
    return bool(marked) and groups and len(marked) < len(weights)


def _fraction(row: dict[str, str], form: Form) -> str:
    """Return the numbers of a row that count, one after the other."""
    roles = (WEIGHT,) if form.named else (SOURCE, TARGET, WEIGHT)
    return " ".join(row.get(role, "") for role in roles)


def _number(text: str) -> bool:
    return text.replace(".", "").replace("e+", "").replace("e-", "").isdigit()


Faulty = tuple[list[list[str]], tuple[str, ...]]


def _no_source(rng: Random, form: Form, rows: list[list[str]]) -> Faulty:
    """Titles that say nothing of senders; or too many columns without titles."""
    if form.title != "line":
        return [[*row, "1", "2"] for row in rows], (() if form.title else ("without names",))
    form.names[form.roles.index(SOURCE)] = "who"
    return rows, ("no column is the source",)


def _two_targets(rng: Random, form: Form, rows: list[list[str]]) -> Faulty:
    if form.title != "line":
        return _no_source(rng, form, rows)
    form.names.append("postsynaptic")
    return [[*row, "1"] for row in rows], ("two columns are the target",)


def _wrong_weight(rng: Random, form: Form, rows: list[list[str]]) -> Faulty:
    if WEIGHT not in form.roles:
        return _short(rng, form, rows)
    rng.choice(rows)[form.roles.index(WEIGHT)] = rng.choice(("-1", "nan", "?", "1_0", "heavy", "1e999"))
    return rows, ()


def _short(rng: Random, form: Form, rows: list[list[str]]) -> Faulty:
    """A row of fewer fields, as in an adjacency list."""
    return [*rows, rows[0][:1]], ()


def _wrong_node(rng: Random, form: Form, rows: list[list[str]]) -> Faulty:
    """A node that is nothing, a fraction, or a number among names."""
    wrong = rng.choice(("nan", "1.5", "-2", "17")) if form.named else rng.choice(("nan", "1.5", "-2", "soma"))
    row = list(rows[0])
    row[form.roles.index(TARGET)] = wrong
    return [*rows, row], ()


FAULTS = (_no_source, _two_targets, _wrong_weight, _short, _wrong_node)
