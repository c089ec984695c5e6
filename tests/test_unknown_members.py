"""No reader passes over what it does not know: a refusal or a warning names it (``tests/unknown`` has the inputs)."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from pathlib import Path

import msgspec
import pytest
import unknown
from unknown import Row

from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.unknown_members import name_unknown_members

ROWS: list[Row] = [
    row
    for module in pkgutil.iter_modules(unknown.__path__)
    for row in importlib.import_module(f"unknown.{module.name}").ROWS
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.reader}-{row.file}-{row.unknown}")
def test_what_a_reader_does_not_know_is_refused_or_named_in_a_warning(row: Row, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", InputWarning)
        try:
            row.read(row.write(tmp_path))
        except InputError as refused:
            said = [str(refused)]
        else:
            said = [str(w.message) for w in seen if issubclass(w.category, InputWarning)]
    assert any(row.unknown in text.replace(str(tmp_path), "") for text in said), said


class _Known(msgspec.Struct):
    name: str = ""


def test_names_that_are_not_utf8_are_refused() -> None:
    """The reader of the struct itself passes over members that it does not know, whatever their bytes."""
    with pytest.raises(InputError, match=r"tasks\.json: not readable as JSON"):
        name_unknown_members(b'{"name": "a", "b\xff": 1}', _Known, "tasks.json", {})


def test_a_message_is_one_line_whatever_a_file_holds() -> None:
    assert (
        str(InputError("kind [[1 0]\n [0 1]]", "g.nir\r\n", "one\n\nline"))
        == "g.nir : kind [[1 0] [0 1]]; expected one line"
    )
