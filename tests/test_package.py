"""What is packed: the description that package indexes show, and the versions of Python."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def test_the_description_points_at_nothing_that_is_only_in_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pictures, captions and links into the repository are left out; text, code and tables stay."""
    setuptools, given = pytest.importorskip("setuptools"), dict[str, Any]()
    monkeypatch.setattr(setuptools, "setup", lambda **kwargs: given.update(kwargs))
    runpy.run_path(str(ROOT / "setup.py"))
    text, readme = given["long_description"], (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"\]\((?!https:|#)[^)]*\)", text) == []
    assert "![" in readme and "![" not in text and "A picture from such a report" not in text
    blocks = r"```.*?```"
    assert re.findall(blocks, text, re.DOTALL) == re.findall(blocks, readme, re.DOTALL) != []
    assert len(text) > 0.8 * len(readme)  # links are shorter


def test_the_classifiers_name_the_versions_of_python_that_may_install_it() -> None:
    """``requires-python`` and the list say the same; 3.14 waits for a HiGHS that OR-Tools can share a process with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    least, below = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    named = {c.rpartition("::")[2].strip() for c in project["classifiers"] if "Python :: 3." in c}
    assert named == {f"3.{minor}" for minor in range(int(least), int(below))}
