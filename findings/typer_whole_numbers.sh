#!/usr/bin/env bash
# typer 0.29.2: an option declared as int takes 2.0 and refuses full-width digits; typer 0.20.0 did the opposite.
#
# From some release between them on, values are read by pydantic in its lenient mode in place of Python's int(): a decimal point
# with zeros behind it is a whole number, and digits other than ASCII are none. Underscores (1_0 for 10) are taken by both.
#
# Seen: "2.0" is 2 now and was an error; the two full-width digits for 12 are an error now and were 12.
# Consequence: a command line that must not read 2.0 as 2 has to take the option as text and parse it itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > probe.py <<'PY'
from importlib.metadata import version

import typer
from typer.testing import CliRunner

app = typer.Typer()


@app.command()
def show(number: int = 0) -> None:
    print(number)


seen = []
for text in ("2.0", "\uff11\uff12", "1_0"):
    done = CliRunner().invoke(app, ["--number", text])
    seen.append(done.stdout.strip() if done.exit_code == 0 else f"exit {done.exit_code}")
print(version("typer"), *seen, sep=" | ")
PY
for release in 0.29.2 0.20.0; do
  python3 -m venv "$release"
  "$release"/bin/pip install --quiet "typer==$release"
  "$release"/bin/python probe.py
done | tee seen
printf '0.29.2 | 2 | exit 2 | 10\n0.20.0 | exit 2 | 12 | 10\n' | diff - seen || { echo "changed: see the lines above"; exit 1; }
