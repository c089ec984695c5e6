"""More of ``test_differential.py``, in a file of its own: two processes share the files of the tests between them."""

from __future__ import annotations

import pytest
from diff_suite import run_cases


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_more_random_problems_agree_with_the_reference(first: int) -> None:
    """As in ``test_differential.py``, with another seed."""
    run_cases(12, first, first + 14)
