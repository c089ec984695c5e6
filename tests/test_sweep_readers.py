"""A slice of the sweep over readers: generated files are read as what they say, or not without a word (``bench/sweeps``)."""

from __future__ import annotations

from pathlib import Path

import pytest
from sweep_readers import readers, swept
from sweeps import REFUSED, Variant, outcome

from nmsolve.model.errors import InputError, doubtful


@pytest.mark.parametrize("reader", readers())
def test_generated_files_are_read_as_what_they_say(reader: str) -> None:
    counts, wrong = swept(reader, count=60, seed=1)
    assert not wrong, "\n".join(wrong[:5])
    assert sum(counts.values()) == 60 and counts["read"]


class _Echo:
    """A reader of text that warns of ``?`` and refuses ``!``."""

    @staticmethod
    def read(path: Path) -> object:
        text = path.read_text()
        if "!" in text:
            raise InputError("found '!'", str(path))
        if "?" in text:
            doubtful("found '?'", str(path), "no doubt")
        return text


@pytest.mark.parametrize(
    ("content", "expected", "named", "fault"),
    [
        (b"a", "a", (), ""),
        (b"a", "b", (), "read as 'a', it says 'b'"),
        (b"a?", "a?", ("'?'",), ""),
        (b"a?", "a?", (), "needless warning"),
        (b"a", "a", ("'?'",), "nothing says"),
        (b"!", REFUSED, ("'!'",), ""),
        (b"!", REFUSED, ("'x'",), "nothing says"),
        (b"a", REFUSED, (), "read, expected a refusal"),
        (b"!", "!", (), "refused, expected a reading"),
    ],
)
def test_a_sweep_finds_what_is_wrong(
    tmp_path: Path, content: bytes, expected: object, named: tuple[str, ...], fault: str
) -> None:
    _, found = outcome(_Echo, Variant({"f.txt": content}, expected, named), tmp_path)  # type: ignore[arg-type]
    assert found.startswith(fault) and bool(found) == bool(fault)
