"""YAML as plain tables, lists and text: numbers stay text, so that an address such as 1.10 is not the number 1.1.

JSON is YAML, too, and is read without another package. Use this in a contained process (:mod:`nmsolve.model.contained`): the
package's parser is native code, and recursive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from nmsolve.model.errors import InputError, name_unread
from nmsolve.model.files import read_limited, require_single_keys
from nmsolve.model.formats.hdf5 import package
from nmsolve.model.formats.text import decimal, whole_number

#: What may be an alias (``*name``); SANA-FE knows none, and repeated ones let a short text stand for a huge one.
ALIAS = re.compile(rb"(?:^|[\s\[{,:-])\*[^\s,\]}]", re.MULTILINE)
#: Lists of attributes may hold lists of attributes, this deep.
DEEPEST = 8


class _Written(float):
    """A number that is as text what its file says: core 0.10 is not core 0.1."""

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number._text = text
        return number

    _text: str

    def __str__(self) -> str:
        return self._text


def read_yaml(path: Path, extra: str) -> Any:
    """Return the content of a YAML file.

    Parameters
    ----------
    extra : of this package, which installs PyYAML

    Raises
    ------
    InputError : no such file, no YAML (with the line), an alias, a key twice, or PyYAML is not installed and the file is no JSON
    """
    data = read_limited(path)
    if data.lstrip()[:1] == b"{":
        try:
            content = msgspec.json.Decoder(float_hook=_Written).decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            content = None
        if content is not None:
            require_single_keys(data, path)
            return content
    return _parsed(package("yaml", extra, path), data, path)


def _parsed(yaml: Any, data: bytes, path: Path) -> Any:
    base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        """Keys of a table are text, and different."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            out: dict[str, Any] = {}
            for key, value in node.value:
                where = f"{path}:{key.start_mark.line + 1}"
                if not isinstance(key, yaml.ScalarNode):
                    raise InputError("a key that is no name", where, "text")
                if key.value in out:
                    raise InputError(f"{key.value[:60]!r} is there twice", where, "every key once")
                out[key.value] = self.construct_object(value, deep=True)
            return out

    try:
        if ALIAS.search(data) and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(data, Loader=base)):
            raise InputError("an alias (*name)", str(path), "YAML without aliases, as SANA-FE reads it")
        return yaml.load(data, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        what = " ".join(str(error.problem or error.context).split())
        raise InputError(f"not YAML ({what[:200]})", f"{path}:{line}", "YAML text") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        what = " ".join(str(error).split())
        raise InputError(f"not YAML ({what[:200]})", str(path), "YAML text") from None


def attributes(value: Any, where: str, deep: int = DEEPEST) -> dict[str, Any]:
    """Return attributes, which may be a table or a list of tables, as one table; a later entry counts.

    Raises
    ------
    InputError : something else
    """
    if value is None or value == "":
        return {}
    if isinstance(value, dict):
        return value
    if not isinstance(value, list) or not deep:
        raise InputError(f"found {shown(value)}", where, "attributes: a table, or a list of tables")
    out: dict[str, Any] = {}
    for i, part in enumerate(value):
        out.update(attributes(part, f"{where}[{i}]", deep - 1))
    return out


def name_unknown(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Warn of entries of a table that are not among the ``known``."""
    name_unread("entry", [str(key) for key in table if key not in known], where, ", ".join(known))


def listed(value: Any, where: str) -> list[Any]:
    """Return a list. InputError for anything else."""
    if not isinstance(value, list):
        raise InputError(f"found {shown(value)}", where, "a list")
    return value


def entry(value: Any, where: str) -> tuple[str, Any]:
    """Return key and value of a table that has one. InputError for anything else."""
    if not isinstance(value, dict) or len(value) != 1:
        raise InputError(f"found {shown(value)}", where, "one entry, name: attributes")
    ((key, inside),) = value.items()
    return key, inside


def need(table: dict[str, Any], key: str, where: str) -> Any:
    """Return an entry. InputError where there is none."""
    if key not in table:
        raise InputError(f"there is no {key}", where, f"an entry {key}")
    return table[key]


def name_of(table: dict[str, Any], where: str) -> str:
    """Return the entry ``name``. InputError where there is none, or no text."""
    value = need(table, "name", where)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise InputError(f"found {shown(value)}", f"{where}.name", "a name")
    return value


def whole(value: Any, where: str, least: int = 0) -> int:
    """Return a whole number of at most 15 digits. InputError for anything else."""
    number = whole_number(value) if isinstance(value, str) else value
    if type(number) is not int or not least <= number < 10**15:
        raise InputError(f"found {shown(value)}", where, f"a whole number >= {least}")
    return number


def real(value: Any, where: str) -> float:
    """Return a finite number >= 0. InputError for anything else."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < 1e300 else math.inf
    elif isinstance(value, str):
        found = decimal(value)
        number = math.nan if found is None else found
    if not (math.isfinite(number) and number >= 0):
        raise InputError(f"found {shown(value)}", where, "a number >= 0")
    return number


def span(text: str, where: str) -> tuple[int, int]:
    """Return first and last number of ``3`` or ``0..7``. InputError for anything else."""
    first, dots, last = text.strip().partition("..")
    begin = whole(first.strip(), where)
    end = whole(last.strip(), where) if dots else begin
    if end < begin:
        raise InputError(f"found {text[:40]!r}", where, "a range FIRST..LAST")
    return begin, end


def shown(value: Any) -> str:
    """Return the beginning of a value for a message."""
    text = (
        repr(value) if isinstance(value, str | int | float | bool) or value is None else type(value).__name__
    )
    return text if len(text) <= 60 else text[:57] + "..."
