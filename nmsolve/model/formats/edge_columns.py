"""What the columns of an edge list are: by the names in its first line or in a comment above it, else by their number."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmsolve.model.errors import InputError, doubtful, name_unread
from nmsolve.model.files import PIECE
from nmsolve.model.formats.delimited import (
    WHITE,
    Line,
    fields_of,
    fields_or_none,
    first_lines,
    separator,
    unsplit,
)
from nmsolve.model.formats.text import decimal

#: Names of columns, as :func:`plain_name` leaves them.
SOURCE = frozenset(
    {"source", "src", "from", "pre", "presynaptic", "presyn", "u", "i", "sender", "origin", "node1", "id1"}
)
TARGET = frozenset(
    {
        "target",
        "tgt",
        "to",
        "post",
        "postsynaptic",
        "postsyn",
        "v",
        "j",
        "receiver",
        "destination",
        "dest",
        "dst",
        "node2",
        "id2",
    }
)
WEIGHT = frozenset({"weight", "weights", "w", "wt", "traffic"})
RATE = frozenset({"rate"})
#: Gephi's: whether an edge has a direction, in these words.
TYPE, TYPES = "type", {"directed": True, "undirected": False}

#: Columns that say to which population (chip, ...) an end of an edge belongs: ``source_population``, ``chip_from``.
_WHOLE = r"population|pop|group|layer|region|area|module|network|net|graph|board|chip|tile|core"
_OWNER = re.compile(rf"(?P<end>.+?)(?:node|neuron|cell)?(?P<whole>{_WHOLE})|(?P<whole_>{_WHOLE})(?P<end_>.+)")

#: What is expected of a first line.
NAMED = "a first line that names source and target (weight), such as source,target,weight"
#: A unit behind a name: ``delay [ms]``.
_UNIT = re.compile(r"\s*[\[(](.*)[\])]\s*$")
#: PyNN's comment on the columns of a list of connections.
_PYNN = re.compile(r"columns\s*=\s*(\[.*\])\s*$")
#: The attributes of an edge, as NetworkX writes them at the end of a line.
ATTRIBUTES = re.compile(r"\{.*\}\s*$")
#: A comment such as SNAP and KONECT write.
_UNDIRECTED = re.compile(r"\bundirected\b|^%\s*sym(\s|$)|\bdirected\s*[:=]\s*(false|no|0)\b", re.IGNORECASE)
#: What may stand before the names in a comment, and a unit behind one.
_BEFORE = re.compile(r"\s*(columns?|fields?|format|header)\s*[:=]\s*", re.IGNORECASE)
_BEHIND = re.compile(r"\s*[\[(]([^\])]*)[\])]")
#: Words for ends of edges that are rare in prose, and how many more words than columns a comment on these may have.
_ENDS = (SOURCE | TARGET) - {"u", "v", "i", "j", "from", "to", "origin", "destination"}
MORE_WORDS = 2
#: The first line that pandas writes where columns have no names.
_UNNAMED = (["0", "1"], ["0", "1", "2"])
#: Names that are not those of nodes, so that ``weight_id`` is no ``weight``.
_NOT_NODES = WEIGHT | RATE | {"size", "multicast"}
#: Kinds of networks in KONECT's first line; only those of a bipartite one number two sets of nodes from 1.
_BIPARTITE = re.compile(r"%\s*bip(\s|$)")


class Layout(NamedTuple):
    """Where things are in an edge list.

    Attributes
    ----------
    columns : fields of every line
    source, target, weight, kind : their columns; -1: none. ``kind`` says in words of :data:`TYPES` whether an edge is directed
    separator : between fields, as :func:`~nmsolve.model.formats.delimited.separator` has it
    begin, line : byte and number of the line of the first edge
    attributes : the last field is a dict of Python
    names : of all columns, where the first line has them
    owners : pairs of columns that say to which population, chip or the like source and target belong
    """

    columns: int
    source: int
    target: int
    weight: int
    kind: int
    separator: str
    begin: int
    line: int
    attributes: bool = False
    names: tuple[str, ...] = ()
    owners: tuple[tuple[int, int], ...] = ()

    @property
    def plain(self) -> bool:
        """No column but nodes and weight says anything of an edge."""
        return self.kind < 0 and not self.attributes and not self.owners


def layout_of(head: bytes, path: Path) -> Layout:
    """Return what the columns are; ``head`` are the first lines of the file.

    Columns that are not used are named in a warning.

    Raises
    ------
    InputError : no edges; names that do not say where edges begin and end; more than three columns without names; another
        encoding; an adjacency list of NetworkX
    """
    if len(head) >= PIECE and b"\n" not in head:
        raise InputError("the line is too long", f"{path}:1", f"at most {PIECE} bytes")
    lines, comments = first_lines(head, path)
    if not lines:
        raise InputError("there are no edges", str(path), "lines of source, target and weight")
    for number, text in comments:
        if text.lower().startswith("%%matrixmarket"):
            raise InputError(
                "this is a Matrix Market file", f"{path}:{number}", "the ending .mtx in its name"
            )
        if text.startswith("# GMT "):
            what = "this is an adjacency list of NetworkX"
            raise InputError(what, f"{path}:{number}", "an edge list (networkx.write_edgelist)")
        if _UNDIRECTED.search(text):
            what = f"the comment {text[:60]!r} says undirected, edges are read as directed"
            doubtful(what, f"{path}:{number}", "directed edges, or a column Type with Undirected in it")
        if _BIPARTITE.match(text):
            what = "sources and targets of a bipartite network have numbers of their own"
            raise InputError(what, f"{path}:{number}", "different numbers for all nodes")
    first = lines[0]
    try:
        found = [ATTRIBUTES.search(line.text) for line in lines]
        attributes = found[0] is not None
        texts = [
            line.text if at is None else line.text[: at.start()]
            for line, at in zip(lines, found, strict=True)
        ]
        between = separator(texts)
        fields = fields_of(texts[0], between)
        if attributes and not fields[-1]:  # there is a separator before them, too
            fields = fields[:-1]
        others = [fields_or_none(text, between) for text in texts[1:]]
        place, names = _titles_above(comments, len(fields), between, path)
        begin, number, rows = first.begin, first.number, [fields, *others]
        if not attributes and _is_title(fields, others, bool(names)):
            place, names = f"{path}:{first.number}", fields
            begin, number, rows = first.end, first.number + 1, others
    except csv.Error as error:
        raise unsplit(error, f"{path}:{first.number}") from None
    if not names:
        if (
            fields in _UNNAMED
            and between == ","
            and not {"0", "1"} & {end for row in others for end in row[:2]}
        ):
            what = f"the first line {first.text.strip(WHITE)!r} is read as an edge"
            doubtful(what, f"{path}:{first.number}", f"edges, or {NAMED}")
        return _unnamed(len(fields), attributes, between, first, path)
    source, target, weight, kind = _places(names, rows, place)
    title = tuple(fields) if begin == first.end else ()
    owners = _owners(names)
    return Layout(len(names), source, target, weight, kind, between, begin, number, attributes, title, owners)


def plain_name(name: str) -> str:
    """Return a name of a column without case, unit, marks and what only says that it is about nodes: ``Source_Node_ID`` is
    ``source``.
    """
    word = re.sub(r"[^a-z0-9]", "", _UNIT.sub("", name).lower())
    short = word
    while shorter := re.fullmatch(r"(.{2,}?)(id|ids|gid|idx|index|node|neuron|cell)", short):
        short = shorter[1]
    return word if short in _NOT_NODES else short


def unit_in(name: str) -> str:
    """Return the unit behind the name of a column: ``ms`` of ``delay [ms]``; else nothing."""
    unit = _UNIT.search(name)
    return unit[1].strip() if unit else ""


def _is_title(fields: list[str], others: Sequence[Sequence[str]], named: bool) -> bool:
    """Return whether a line of ``fields`` has the names of the columns.

    It has if it names source and target. Else it is an edge if the columns are ``named`` above it, if a field is a number, or if
    one of its two nodes is in another line too. No edge begins with an empty field.
    """
    known = [plain_name(field) for field in fields]
    if SOURCE & set(known) and TARGET & set(known):
        return True
    if not (named or fields[0]):
        return True
    if named or len(fields) < 2 or any(map(_number, fields)):
        return False
    ends = {end for other in others for end in other[:2]}
    return not (len(fields) == 2 and ends & set(fields))


def _number(field: str) -> bool:
    return decimal(field.replace(",", ".")) is not None


def _titles_above(
    comments: list[tuple[int, str]], columns: int, between: str, path: Path
) -> tuple[str, list[str]]:
    """Return the place and the names in the last comment that has one for each column; no names if there is none.

    A warning names a comment that has names of both ends, but not one for each column.
    """
    for number, text in reversed(comments):
        place = f"{path}:{number}"
        pynn = _PYNN.search(text)
        if pynn:
            try:
                names = [str(name) for name in ast.literal_eval(pynn[1])]
            except (ValueError, SyntaxError):
                raise InputError(f"found {pynn[1][:60]!r}", place, "a list of names") from None
            if len(names) != columns:
                raise InputError(f"{len(names)} names for {columns} columns", place, "a name for each")
            doubtful("neurons of a projection are numbered by population", place, "one population, to itself")
            return place, names
        said = _BEHIND.sub(
            lambda unit: f"({unit[1].replace(' ', '_')})", _BEFORE.sub("", text.lstrip("#% \t"), count=1)
        )
        for split in (r"[\s,;]+", re.escape(between)):
            names = [word.strip(WHITE + "\"'") for word in re.split(split, said.strip())]
            known = [plain_name(name) for name in names]
            if len(names) == columns and SOURCE & set(known) and TARGET & set(known):
                return place, names
        words = [plain_name(word) for word in re.split(r"[\s,;]+", said) if re.search(r"\w", word)]
        if set(words) <= SOURCE | TARGET | WEIGHT | RATE and len(words) > 1 and words[0] not in SOURCE:
            raise InputError(f"{len(words)} names for {columns} columns", place, "a name for each")
        ends = {word in SOURCE for word in words if word in _ENDS}
        if len(ends) == 2 and len(words) <= columns + MORE_WORDS:
            what = f"the comment {text[:60]!r} names no {columns} columns, which are read as source, target, weight"
            doubtful(what, place, "a name for each column, such as # source target weight")
    return "", []


def _unnamed(columns: int, attributes: bool, between: str, first: Line, path: Path) -> Layout:
    """Return the layout of an edge list without names: source, target, and perhaps weight or attributes."""
    if columns not in ((2,) if attributes else (2, 3)):
        what = f"found {first.text[:60]!r}, {columns} columns without names"
        raise InputError(what, f"{path}:{first.number}", f"source target [weight], or {NAMED}")
    weight = 2 if columns == 3 else -1
    return Layout(columns, 0, 1, weight, -1, between, first.begin, first.number, attributes)


def _owners(names: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns that say to what the source and the target belong."""
    found: dict[str, dict[bool, int]] = {}
    for k, name in enumerate(names):
        match = _OWNER.fullmatch(plain_name(name))
        end = match and (match["end"] or match["end_"])
        if match and (end in SOURCE or end in TARGET or end in ("1", "2")):
            found.setdefault(match["whole"] or match["whole_"], {})[end in TARGET or end == "2"] = k
    return tuple((ends[False], ends[True]) for ends in found.values() if len(ends) == 2)


def _places(names: Sequence[str], rows: Sequence[Sequence[str]], where: str) -> tuple[int, int, int, int]:
    """Return the columns of source, target, weight and Gephi's type (-1: none) by their names.

    Parameters
    ----------
    rows : fields of the first edges

    Raises
    ------
    InputError : a column that must be there is missing, or two have one meaning
    """
    plain = [plain_name(name) for name in names]
    shown = ", ".join(map(repr, names))[:200]
    at = {
        role: [k for k, word in enumerate(plain) if word in known]
        for role, known in (("source", SOURCE), ("target", TARGET), ("weight", WEIGHT), ("rate", RATE))
    }
    for role, found in at.items():
        if len(found) > 1:
            raise InputError(f"two columns are the {role} in {shown}", where, "one")
        if not found and role in ("source", "target"):
            raise InputError(f"no column is the {role} in {shown}", where, NAMED)
    weight = (at["weight"] or at["rate"] or [-1])[0]
    kind = next((k for k, word in enumerate(plain) if word == TYPE), -1)
    if not any(0 <= kind < len(row) and row[kind].strip(WHITE).lower() in TYPES for row in rows):
        kind = -1
    if weight >= 0 and not at["weight"]:
        doubtful(f"column {names[weight]!r} is taken as the weight", where, "messages per step")
    elif weight >= 0 and (unit := unit_in(names[weight])):
        doubtful(f"the unit {unit!r} of column {names[weight]!r} is not used", where, "messages per step")
    used = {at["source"][0], at["target"][0], weight, kind}
    unused = (name for k, name in enumerate(names) if k not in used)
    name_unread("column", unused, where, "source, target and weight alone")
    return at["source"][0], at["target"][0], weight, kind
