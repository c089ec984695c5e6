"""The ``nmsolve`` command. Nothing heavy is imported here: each command imports what it needs when it runs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from nmsolve.cli.table import command_in
from nmsolve.cli.terminal import harmless_output
from nmsolve.kinds.guard import ends_by_second_signal
from nmsolve.kinds.waiting import telling
from nmsolve.model.errors import InputError, NmsolveError
from nmsolve.model.host.memory import address_space, rarely_collect
from nmsolve.model.host.processes import ASKING

#: Least address space (bytes): 0.6 GiB are used for a network of a few hundred nodes.
LEAST_SPACE = 768 * 2**20

#: Signals of batch systems and of terminals that close. They mean Ctrl-C: exit code 130 if there is no answer yet.
SIGNALS = tuple(s for s in ASKING if s != signal.SIGINT)


def main() -> None:
    """Entry point. Exit codes: 0 done; 1 internal or back-end error; 2 wrong input; 3 feasible but the asked gap
    was not reached; 4 infeasible (proved); 5 no solution in time; 130 interrupted without a solution."""
    rarely_collect()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(
            name, "1"
        )  # parallel work is --workers; spinning library threads only slow it down
    with harmless_output() as out, _listening(), ends_by_second_signal(), telling():
        try:
            _require_text(sys.argv[1:])
            _require_memory(sys.argv[1:])
            from nmsolve.cli.app import application

            application(command_in(sys.argv[1:]))()
        except NmsolveError as error:
            line = str(error).replace("\n", "\\n")
            print(f"error: {line}", file=sys.stderr)
            sys.exit(2 if isinstance(error, InputError) else 1)
        except OSError as error:
            if error.filename is None and "usable temporary directory" in str(error):
                print(
                    "error: no folder for temporary files can be written; expected TMPDIR=FOLDER",
                    file=sys.stderr,
                )
                sys.exit(2)
            if error.filename is None:
                raise
            where = str(error.filename)[:200].replace("\n", "\\n")
            print(f"error: {where}: {(error.strerror or str(error)).lower()}", file=sys.stderr)
            sys.exit(2)
        except MemoryError:
            print("error: out of memory; expected more memory, or a smaller --memory", file=sys.stderr)
            sys.exit(1)
        except SystemExit as ended:
            out.flush()
            if out.complaint is not None and not ended.code:
                print(f"error: {out.complaint}", file=sys.stderr)
                sys.exit(1)
            raise


def _require_text(arguments: list[str]) -> None:
    """Refuse paths that no report could name, before anything is searched for."""
    for text in (*arguments, os.getcwd()):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                "a name that is not UTF-8", text, "files and folders with names in UTF-8"
            ) from None


def _require_memory(arguments: list[str]) -> None:
    """Refuse an address space in which numerical libraries cannot be loaded: they die in ways that no one can read."""
    limit = address_space()
    if limit is not None and limit < LEAST_SPACE and not {"-h", "--help", "--version"} & set(arguments):
        text = f"the address space is limited to {limit // 2**20} MiB"
        raise InputError(text, "ulimit -v", f"at least {LEAST_SPACE // 2**20} MiB")


@contextmanager
def _listening() -> Iterator[None]:
    """SIGTERM and SIGHUP end what has no answer yet as Ctrl-C does, where nothing else handles them."""
    free = [s for s in SIGNALS if signal.getsignal(s) == signal.SIG_DFL]
    before = {s: signal.signal(s, signal.default_int_handler) for s in free}
    tell = sys.unraisablehook

    def tell_others(error: sys.UnraisableHookArgs) -> None:
        """Say nothing of an interruption that fell into clearing away, nor of compiler objects that one left half made.

        The former is lost there, and asked for again (``time_left.py``); of the latter a field is missing.
        """
        half = isinstance(error.exc_value, AttributeError) and "_as_parameter_" in str(error.exc_value)
        if not half and not isinstance(error.exc_value, KeyboardInterrupt):
            tell(error)

    sys.unraisablehook = tell_others
    try:
        yield
    finally:
        sys.unraisablehook = tell
        for number, handler in before.items():
            signal.signal(number, handler)
