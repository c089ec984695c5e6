"""The named errors of nmsolve: one root, one class for each way in which a user can react."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence

#: Most names in a message.
SHOWN = 12


class NmsolveError(Exception):
    """Root of every error nmsolve raises on purpose. ``str(error)`` is one line for a person."""


#: Most characters of one part of a message, and of a value in it.
LONGEST, LONGEST_VALUE = 600, 40


def shortened(text: str) -> str:
    """Return a value for a message of one line: the first characters of a long one."""
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."


def _cut(text: str) -> str:
    """Return a part of a message on one line; of a long one the beginning and the end, which name what and where."""
    text = re.sub(r"\s*[\r\n]\s*", " ", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class InputError(NmsolveError):
    """A file, option or argument is wrong.

    The message is one line: what is wrong, where (file and JSON path or line), what was expected.
    The command line prints it and exits with code 2.

    Parameters
    ----------
    what : what is wrong, in words
    where : file name with JSON path (``net.json: $.edges[3].weight``) or line (``net.graph:12``)
    expected : what would have been right

    Of more than :data:`LONGEST` characters in one of them the message leaves out the middle.
    """

    def __init__(self, what: str, where: str = "", expected: str = "") -> None:
        self.what, self.where, self.expected = what, where, expected
        text = f"{_cut(where)}: {_cut(what)}" if where else _cut(what)
        super().__init__(f"{text}; expected {_cut(expected)}" if expected else text)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.where, self.expected)


class InputWarning(UserWarning):
    """A file is not quite as its format has it, but can mean only one thing, and was read so. ``--strict`` refuses it.

    From Python: ``warnings.simplefilter("error", InputWarning)``.
    """


def doubtful(what: str, where: str, expected: str) -> None:
    """Warn of what was read all the same (:class:`InputWarning`); arguments as of :class:`InputError`."""
    warnings.warn(InputWarning(str(InputError(what, where, expected))), stacklevel=3)


def listed(what: str, names: Sequence[str]) -> str:
    """Return ``column 'a' is`` or ``columns 'a', 'b', 'c' and 2 more are``, to begin a message."""
    shown = ", ".join(repr(name[:60]) if name else "without a name" for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{what} {shown} is" if len(names) == 1 else f"{what}s {shown}{more} are"


def name_unread(what: str, names: Iterable[str], where: str, expected: str) -> None:
    """Warn of columns, members and the like (``what``: one of them) that are there and not read, if there are any."""
    if names := list(names):
        doubtful(f"{listed(what, names)} not read", where, expected)


class DoesNotFitError(InputError):
    """The problem has no solution, shown by counting before any search (exit code 2)."""


class BackendError(NmsolveError):
    """A solver back end is missing, crashed or ran out of memory; the best answer so far survives."""


class CertificateError(Exception):
    """A certificate that proves nothing; the text says which part is wrong."""
