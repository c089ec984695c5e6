#!/usr/bin/env bash
# typer 0.29.2: the usage line of an application that is called inside a process names that process, in a mix with the application.
#
# Where the first module was started with -m, its package stands before the name in sys.argv[0], whoever set that. So one and the
# same test of a help text, with sys.argv of its own, passes under `pytest` and fails under `python -m pytest`.
#
# Seen: "Usage: mapper" under pytest, "Usage: python -m pytest.mapper" under python -m pytest. No program or module has that name.
# Consequence: golden help texts need prog_name, or a __main__ without a package, for as long as the application runs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > test_usage.py <<'PY'
import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def show() -> None:
    """Show."""


def test_usage(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mapper", "--help"])
    try:
        app()
    except SystemExit as end:
        assert end.code == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "Usage" in line)
    with open("seen", "a") as file:
        print(line.strip(), file=file)
PY
python3 -m venv env
env/bin/pip install --quiet typer==0.29.2 pytest==9.0.1
env/bin/pytest -q test_usage.py
env/bin/python -m pytest -q test_usage.py
cat seen
printf 'Usage: mapper [OPTIONS]\nUsage: python -m pytest.mapper [OPTIONS]\n' | diff - seen || { echo "changed: see the lines above"; exit 1; }
