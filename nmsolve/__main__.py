"""``python -m nmsolve`` is the ``nmsolve`` command."""

from nmsolve.cli.main import main

main()
