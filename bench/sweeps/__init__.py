"""Generated files for the readers, each with what it says: a module per reader, run by ``sweep_readers.py``.

A module has two functions. ``variant(rng)`` makes a file and, without any code of the package, what it says. ``read(path)``
lets the package read it, and returns the same in the same form, so that ``==`` compares them.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from nmsolve.model.errors import InputError, InputWarning


class Refused:
    """What stands for the content of a file that must be refused."""


REFUSED = Refused()


class Variant(NamedTuple):
    """A file, and what must become of it.

    Attributes
    ----------
    files : content by name; the first one is read, the others lie beside it
    expected : what it says; :data:`REFUSED` where it must not be read
    named : words that warnings or the refusal must hold, all of them; without any, there must be no warning
    """

    files: dict[str, bytes]
    expected: object
    named: tuple[str, ...] = ()


class Sweep(Protocol):
    """A module of this package."""

    def variant(self, rng: Random) -> Variant:
        """Return the next variant."""

    def read(self, path: Path) -> object:
        """Return what the package reads in the file."""


def outcome(sweep: Sweep, variant: Variant, folder: Path) -> tuple[str, str]:
    """Return what became of a variant, ``read``, ``warned`` or ``refused``, and what is wrong with that ("": nothing)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in variant.files.items():
        (folder / name).write_bytes(content)
    became, found = "read", None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", InputWarning)
        try:
            found = sweep.read(folder / next(iter(variant.files)))
            said = [str(w.message) for w in seen if issubclass(w.category, InputWarning)]
            became = "warned" if said else "read"
        except InputError as error:
            became, said = "refused", [str(error)]
    text = "\n".join(said).replace(str(folder), "")
    missing = [word for word in variant.named if word not in text]
    if (became == "refused") != (variant.expected is REFUSED):
        return (
            became,
            f"{became}, expected {'a refusal' if variant.expected is REFUSED else 'a reading'}: {text}",
        )
    if missing:
        return became, f"nothing says {missing}: {text}"
    if became == "warned" and not variant.named:
        return became, f"needless warning: {text}"
    if became != "refused" and found != variant.expected:
        return became, f"read as {found!r:.2000}, it says {variant.expected!r:.2000}"
    return became, ""
