"""docs/api.md names every function, and its script has types that hold under ``mypy --strict``; so have other examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nmsolve

ROOT = Path(__file__).resolve().parent.parent


def blocks(page: str) -> str:
    """The Python blocks of a page as one script."""
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.S))


def test_the_scripts_are_typed(tmp_path: Path) -> None:
    """Strict mypy finds nothing in them, and knows what the functions return."""
    files = {
        "api.py": blocks("docs/api.md"),
        "readme.py": blocks("README.md"),
        "example.py": (ROOT / "examples/api.py").read_text(),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "api.py").write_text(
        files["api.py"]
        + "\nreveal_type(result)\nreveal_type(front.points)\nreveal_type(nmsolve.score(result))\n"
    )
    words = [
        "--config-file",
        ROOT / "pyproject.toml",
        "--cache-dir",
        ROOT / ".mypy_cache",
        *(tmp_path / name for name in files),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=500,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert (
        "MappingAnswer" in revealed[0]
        and "FrontPoint" in revealed[1]
        and "str" in revealed[2]
        and "float" in revealed[2]
    )


def test_every_function_of_the_page_is_there_and_described() -> None:
    names = set(
        re.findall(r"`(\w+)\(", (ROOT / "docs/api.md").read_text("utf-8").partition("## A mapping")[0])
    )
    assert names >= {
        "map",
        "route",
        "pipeline",
        "score",
        "verify",
        "gap",
        "explain",
        "simulate",
        "pareto",
        "bench",
    }
    for name in names - {"help"}:
        assert name in nmsolve.__all__ and "Raises" in getattr(nmsolve, name).__doc__
