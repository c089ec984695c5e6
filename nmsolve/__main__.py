"""``python -m nmsolve`` is the ``nmsolve`` command."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command; Ctrl-C while it is still being loaded ends it with code 130, as later."""
    try:
        from nmsolve.cli.main import main

        main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
