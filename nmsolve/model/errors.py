"""The named errors of nmsolve: one root, one class for each way in which a user can react."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

#: Most names in a message.
SHOWN = 3


class NmsolveError(Exception):
    """Root of every error nmsolve raises on purpose. ``str(error)`` is one line for a person."""


class InputError(NmsolveError):
    """A file, option or argument is wrong.

    The message is one line: what is wrong, where (file and JSON path or line), what was expected.
    The command line prints it and exits with code 2.

    Parameters
    ----------
    what : what is wrong, in words
    where : file name with JSON path (``net.json: $.edges[3].weight``) or line (``net.graph:12``)
    expected : what would have been right
    """

    def __init__(self, what: str, where: str = "", expected: str = "") -> None:
        self.what, self.where, self.expected = what, where, expected
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text}; expected {expected}" if expected else text)

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
    shown = ", ".join(repr(name[:60]) for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{what} {shown} is" if len(names) == 1 else f"{what}s {shown}{more} are"


class DoesNotFitError(InputError):
    """The problem has no solution, shown by counting before any search (exit code 2)."""


class BackendError(NmsolveError):
    """A solver back end is missing, crashed or ran out of memory; the best answer so far survives."""


class CertificateError(Exception):
    """A certificate that proves nothing; the text says which part is wrong."""
