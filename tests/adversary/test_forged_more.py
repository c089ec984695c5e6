"""The kinds of certificates that ``test_forged.py`` leaves: two processes share the files of the tests between them."""

from __future__ import annotations

import pytest
from forger import KINDS, assault


@pytest.mark.parametrize("kind", KINDS[1::2])
def test_no_forgery_is_believed(kind: str) -> None:
    """As in ``test_forged.py``."""
    assault(kind)
