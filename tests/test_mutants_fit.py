"""Mutations that floors and forgers have to notice (``tests/strength/mutants.py``) still fit the code; fast, as nothing runs."""

from __future__ import annotations

import sys
from pathlib import Path

import nmsolve

HERE = Path(__file__).resolve().parent
PACKAGE = Path(nmsolve.__file__).parent


def test_every_mutation_changes_one_place_of_a_file() -> None:
    """Else a floor would seem to hold that nothing tries any more."""
    sys.path.insert(0, str(HERE / "strength"))
    try:
        from mutations import MUTATIONS
    finally:
        sys.path.pop(0)
    wrong = [
        f"{m.engine}: {m.what}"
        for m in MUTATIONS
        if not (PACKAGE / m.file).is_file() or (PACKAGE / m.file).read_text("utf-8").count(m.old) != 1
    ]
    assert len(MUTATIONS) > 200 and not wrong, "\n".join(wrong)
