"""Matrix Market files, read by ``scipy.io.mmread`` beside us; what it does not check is refused by NISTIR 5935."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import numpy as np
import scipy.io

from nmsolve.model.formats import load_graph
from sweeps import REFUSED, Variant

FIELDS = ("real", "integer", "pattern", "complex")
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read(path: Path) -> object:
    """Return whether the graph is directed, and its edges; the name of the file is the option of reading."""
    option = path.stem
    graph = load_graph(path, pattern=option == "pattern", absolute=option == "absolute")
    edges = zip(graph.edge_source.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True)
    return graph.directed, graph.n, {(u, v): w for u, v, w in edges}


def variant(rng: Random) -> Variant:
    """Return a matrix of up to five rows, one file in four with something wrong."""
    n, field, symmetry = rng.randint(1, 5), rng.choice(FIELDS), rng.choice(SYMMETRIES)
    if (symmetry == "hermitian") != (field == "complex" and symmetry == "hermitian") or (
        field == "pattern" and symmetry == "skew-symmetric"
    ):
        symmetry = "general"
    dense = field != "pattern" and rng.random() < 0.25
    places = [(i, j) for j in range(n) for i in range(n) if _stored(i, j, symmetry)]
    if not dense:
        places = rng.sample(places, rng.randint(0, len(places)))
    signed = rng.random() < 0.5
    entries = [
        (i, j, _value(rng, field, signed, hermitian_diagonal=symmetry == "hermitian" and i == j))
        for i, j in places
    ]
    named: tuple[str, ...] = ()
    if entries and not dense and rng.random() < 0.1:
        i, j, _ = entries[0]
        entries.append(
            (i, j, _value(rng, field, signed, hermitian_diagonal=symmetry == "hermitian" and i == j))
        )
        named = (f"entry ({i + 1}, {j + 1}) is listed twice",)
    text = _text(rng, n, field, symmetry, dense, entries)
    option = rng.choice(("plain", "pattern", "absolute"))
    expected = _expected(text, symmetry, option, n, entries)
    if expected is REFUSED:
        named = ()
    if rng.random() < 0.25 and not dense:
        text, expected, named = _damaged(rng, text, n, field, symmetry, entries)
    return Variant({f"{option}.mtx": text.encode()}, expected, named)


def _stored(i: int, j: int, symmetry: str) -> bool:
    return symmetry == "general" or i > j or (i == j and symmetry != "skew-symmetric")


def _value(rng: Random, field: str, signed: bool, hermitian_diagonal: bool) -> tuple[str, ...]:
    """Return an entry as text."""
    sign = "-" if signed and rng.random() < 0.4 else ""
    if field == "pattern":
        return ()
    if field == "integer":
        return (sign + str(rng.randint(0, 9)),)
    form = rng.choice(("{:.3f}", "{:.2e}", "{:.16g}", "{:.1f}"))
    real = sign + form.format(rng.choice((0.0, 1.0, rng.uniform(0, 9))))
    if field == "real":
        return (real,)
    return real, "0" if hermitian_diagonal else rng.choice(("0", "0.0", sign + "2.5"))


def _text(
    rng: Random,
    n: int,
    field: str,
    symmetry: str,
    dense: bool,
    entries: list[tuple[int, int, tuple[str, ...]]],
) -> str:
    """Return the file; arrays go column by column."""
    layout = "array" if dense else "coordinate"
    banner = f"%%MatrixMarket matrix {layout} {field} {symmetry}"
    lines = [
        banner if rng.random() < 0.7 else banner.replace("matrix", "Matrix", 1).replace(field, field.upper())
    ]
    lines += ["% a comment", "%"] * (rng.random() < 0.4)
    lines.append(f"{n} {n}" + ("" if dense else f" {len(entries)}"))
    gap = rng.choice((" ", "  ", "\t"))
    lines += [gap.join(value if dense else (str(i + 1), str(j + 1), *value)) for i, j, value in entries]
    return "\n".join(lines) + rng.choice(("\n", "", "\n\n"))


def _expected(
    text: str, symmetry: str, option: str, n: int, entries: list[tuple[int, int, tuple[str, ...]]]
) -> object:
    """Return the graph of what SciPy reads."""
    found = scipy.io.mmread(io.BytesIO(text.encode()))
    matrix = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
    if symmetry in ("skew-symmetric", "hermitian") and option == "plain":
        return REFUSED
    if symmetry != "general":
        matrix = np.tril(matrix).T  # one end of each edge
    np.fill_diagonal(matrix, 0)
    there = matrix != 0
    if option == "pattern":  # stored zeros of coordinates count, too
        if "coordinate" in text.split("\n", 1)[0]:
            for i, j, _ in entries:
                there[(i, j) if symmetry == "general" else (j, i)] |= i != j
        weight = there.astype(float)
    elif option == "absolute":
        weight = np.abs(matrix)
    elif np.iscomplexobj(matrix) and (matrix.imag != 0).any():
        return REFUSED
    else:
        weight = matrix.real.astype(float)
    if (weight < 0).any():
        return REFUSED
    edges = {
        (int(u), int(v)): float(weight[u, v]) for u, v in zip(*np.nonzero(there & (weight != 0)), strict=True)
    }
    return symmetry == "general", n, edges


def _damaged(
    rng: Random, text: str, n: int, field: str, symmetry: str, entries: list[tuple[int, int, tuple[str, ...]]]
) -> tuple[str, object, tuple[str, ...]]:
    """Return the file with something wrong, and what must be said, if that is the first thing to say."""
    kind = rng.randrange(5)
    lines = text.rstrip("\n").split("\n")
    value = " 1" * {"pattern": 0, "complex": 2}.get(field, 1)
    if kind == 0:
        lines.append(f"1 1{value}")
    elif kind == 1:
        lines = [line.replace(f"{n} {n} {len(entries)}", f"{n} {n + 1} {len(entries)}") for line in lines]
    elif kind == 2 and entries:
        lines[-1] = f"{n + 1} 1{value}"
    elif kind == 3 and entries:
        lines[-1] = "1 x"
    else:
        lines[0] = lines[0].lower().replace(symmetry, "lopsided")
    return "\n".join(lines) + "\n", REFUSED, ()
