"""``nmsolve draw``: one picture of a run as a file, SVG, PNG or PDF."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nmsolve.kinds.answer import OK, prepare_file
from nmsolve.kinds.loading import read_object
from nmsolve.kinds.registry import kind_of
from nmsolve.kinds.run_trace import ending, read_events
from nmsolve.model.errors import InputError
from nmsolve.report import pictures
from nmsolve.report.explore import first_stage

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from nmsolve.kinds.kind import Pictures
    from nmsolve.kinds.verbs import DrawOptions

#: Forms of a picture by the end of its file's name.
FORMS = ("svg", "png", "pdf")
SEARCH = "search"


def run_draw(o: DrawOptions) -> int:
    """Write the picture.

    Raises
    ------
    InputError : files that cannot be read, another form, or a picture that the run does not have
    """
    form = o.out.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise InputError(
            f"unknown form {o.out.suffix!r}", "--out", "a file that ends with ." + ", .".join(FORMS)
        )
    prepare_file(o.out, o)
    kinds = _pictures(o)
    kind = o.what or next(iter(kinds), SEARCH)
    if kind not in kinds:
        raise InputError(f"there is no picture {kind!r} of this run", "--what", "one of " + ", ".join(kinds))
    _save(kinds[kind](), o.out, form)
    print(o.out)
    return OK


def _save(figure: Figure, path: Path, form: str) -> None:
    """Write the file whole or not at all. Equal pictures give equal bytes."""
    from io import BytesIO

    import matplotlib

    from nmsolve.model.files import write_atomic

    data = BytesIO()
    no_date = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}, "png": {}}[form]
    with matplotlib.rc_context({"svg.hashsalt": "nmsolve", "svg.fonttype": "none"}):
        figure.savefig(data, format=form, dpi=160, metadata=no_date)
    write_atomic(path, data.getvalue())


def _pictures(o: DrawOptions) -> Pictures:
    """Return every picture of the run by its name; the first is drawn where none is named."""
    kind, answer = kind_of(o.mapping)
    folder = o.mapping if o.mapping.is_dir() else o.mapping.parent
    search = _search(folder, folder / kind.report)
    if answer.is_dir() and search:  # a run that found nothing yet
        return search
    return {**kind.pictures(answer, o), **search}


def _search(folder: Path, report: Path) -> Pictures:
    """Return the picture of the search, of several objectives that for the first one."""
    events = first_stage(read_events(folder))
    seconds, _ = ending(read_object(report) if report.exists() else None)
    return {SEARCH: partial(pictures.convergence.figure, events, seconds, "full")} if events else {}
