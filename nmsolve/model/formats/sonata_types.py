"""Tables of types of SONATA, text separated by blanks: a line of names, then a line per type. Which edges carry no spikes.

Format: https://github.com/AllenInstitute/sonata/blob/master/docs/SONATA_DEVELOPER_GUIDE.md. ``is_gap_junction`` is bmtk's; types
of edge populations and their data sets are those of https://sonata-extension.readthedocs.io.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path

from nmsolve.model.errors import InputError, name_unread
from nmsolve.model.files import read_limited
from nmsolve.model.formats.populations import carries_spikes

#: No table of types is longer (bytes).
LARGEST_TEXT = 2**26
#: What stands in a table for nothing, and for true.
NOTHING, TRUE = ("", "NULL", "NONE", "NA", "NAN"), ("TRUE", "1", "1.0")
#: Types of edge populations that carry spikes, and that carry none.
SPIKING = ("chemical", "neuromodulatory")
SPIKELESS = ("electrical", "synapse_astrocyte", "endfoot", "glialglial")
#: Attributes of edges that state a gap junction at every edge that has them.
JUNCTION = ("efferent_junction_id", "afferent_junction_id")
#: Attributes of edges that are no traffic: weights, delays, parameters of synapses and where on the cells these are.
NO_TRAFFIC = re.compile(
    r"edge_type_id|population|(source|target)_query|source_label|target_sections|distance_range|is_gap_junction|nsyns|template"
    r"|syn_weight|weight|weight_function|weight_sigma|weight_max|delay|dynamics_params|model_template|model_type|receptor_type|edge_id"
    r"|(afferent|efferent)_\w+|sec_id|sec_x|syn_\w+|spine_\w+|morpho_\w+|conductance\w*|u_syn|u_hill_coefficient|n_rrp_vesicles"
    r"|(decay|depression|facilitation)_time\w*|@library|x|y|z|tau_\w+|U|u0|erev|e_rev\w*"
)
#: Attributes of nodes from which a user could expect traffic.
RATES = ("rate", "rates", "firing_rate", "frequency")


def table(path: Path, key: str) -> dict[int, dict[str, str]]:
    """Return the rows of a table of types, each by column, by the number in the column ``key``.

    Raises
    ------
    InputError : unreadable, no such column, a number that is none or there twice, a row of another length
    """
    try:
        text = read_limited(path, LARGEST_TEXT).decode("utf-8-sig")
        rows = list(csv.reader(text.splitlines(), delimiter=" ", skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read ({error})", str(path), "text, separated by blanks") from None
    rows = [row[:-1] if row and not row[-1] else row for row in rows]  # a blank at the end of a line
    if not rows or key not in rows[0]:
        raise InputError(f"there is no column {key}", f"{path}:1", "a table of types, separated by blanks")
    out: dict[int, dict[str, str]] = {}
    for k, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(rows[0]):
            raise InputError(f"there are {len(row)} columns", f"{path}:{k}", f"{len(rows[0])}, as in line 1")
        cells = dict(zip(rows[0], row, strict=True))
        number = cells[key]
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            raise InputError(f"found {key} {number!r}", f"{path}:{k}", "a whole number")
        if int(number) in out:
            raise InputError(
                f"{key.split('_')[0]} type {number} is there twice", f"{path}:{k}", "every type once"
            )
        out[int(number)] = cells
    return out


def spikeless_types(path: Path) -> dict[int, bool]:
    """Return for every type in a table of edge types whether its edges carry no spikes.

    Raises
    ------
    InputError : as :func:`table`
    """
    rows = table(path, "edge_type_id")
    unread({name for row in rows.values() for name in row}, str(path), "column")
    return {
        number: row.get("is_gap_junction", "").upper() in TRUE
        or not carries_spikes(row.get("model_template", "").rpartition(":")[2])
        for number, row in rows.items()
    }


def beside(path: Path) -> Path | None:
    """Return the table of edge types that bmtk and PyNN write beside a file of edges, if there is one."""
    other = path.with_name(path.stem.replace("edges", "edge_types", 1) + ".csv")
    return other if "edges" in path.stem and other.is_file() else None


def unread(names: Iterable[str], where: str, what: str) -> None:
    """Warn of attributes of edges that are not known, and not read."""
    odd = sorted(name for name in names if not NO_TRAFFIC.fullmatch(name))
    name_unread(what, odd, where, "attributes of docs/files.md")
