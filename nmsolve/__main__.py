"""``python -m nmsolve`` is the ``nmsolve`` command."""

from __future__ import annotations

import atexit
import os
import sys


def run() -> None:
    """Run the command; Ctrl-C while it is still being loaded ends it with code 130, as later.

    Once the command has ended, the process does at once: taking down modules and arrays one by one costs 0.3 CPU s.
    """
    try:
        from nmsolve.cli.main import main

        main()
        code = 0
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code or 0
    except KeyboardInterrupt:
        code = 130
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it is closed
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
