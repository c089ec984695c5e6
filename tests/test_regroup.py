"""The external sort gives the sums that scipy gives, whatever the memory, the workers and the pieces of input."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from nmsolve.model.errors import InputError
from nmsolve.model.store.block import Records, joined, symmetric
from nmsolve.model.store.reader import Block
from nmsolve.model.store.regroup import regrouped
from nmsolve.model.store.scratch import Scratch
from nmsolve.model.types import AnyArray, IntArray

NONE = np.empty(0, np.int32)


def random_records(seed: int, keys: int, count: int, skew: float, whole: bool, sized: bool) -> Records:
    """Records whose keys crowd at the low end the more, the larger ``skew`` is."""
    rng = np.random.default_rng(seed)
    key = (keys * rng.random(count) ** skew).astype(np.int32)
    weight = rng.integers(0, 300, count).astype(float) if whole else rng.random(count)
    size = rng.integers(1, 9, count).astype(np.int32) if sized else NONE
    return Records(key, rng.integers(0, keys, count, dtype=np.int32), weight, size)


def cut(records: Records, piece: int) -> Iterator[Records]:
    for a in range(0, len(records.key), piece):
        yield Records(*(c[a : a + piece] for c in records))


def rows(blocks: list[Block], keys: int) -> Records:
    """What the blocks hold, as records; they are consecutive and hold all keys."""
    first, parts = 0, []
    for block in blocks:
        k = len(block.indptr) - 1
        assert block.first == first and block.indptr[0] == 0 and block.indptr[-1] == len(block.neighbour)
        key = np.repeat(np.arange(first, first + k, dtype=np.int32), np.diff(block.indptr))
        parts.append(Records(key, block.neighbour, block.weight, block.size))
        first += k
    assert first == keys
    return joined(parts)


def matrix(records: Records, column: AnyArray, keys: int) -> tuple[IntArray, IntArray, AnyArray]:
    """Row, column and sum of all records, by scipy."""
    csr = coo_array((column, (records.key, records.neighbour)), shape=(keys, keys)).tocsr()
    csr.sum_duplicates()
    out = csr.tocoo()
    return out.coords[0], out.coords[1], out.data


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    keys=st.sampled_from([1, 2, 40, 700, 5000]),
    count=st.sampled_from([0, 1, 3000, 30000]),
    skew=st.sampled_from([1.0, 8.0]),
    whole=st.booleans(),
    sized=st.booleans(),
    memory=st.sampled_from([0, 2**20, 2**26]),
    workers=st.sampled_from([1, 2]),
)
def test_rows_are_the_sums_scipy_gives(
    seed: int,
    keys: int,
    count: int,
    skew: float,
    whole: bool,
    sized: bool,
    memory: int,
    workers: int,
) -> None:
    records = random_records(seed, keys, count, skew, whole, sized)
    with Scratch() as scratch:
        blocks = list(regrouped(cut(records, 977), keys, memory=memory, scratch=scratch, workers=workers))
    found = rows(blocks, keys)
    row, column, weight = matrix(records, records.weight, keys)
    assert np.array_equal(found.key, row) and np.array_equal(found.neighbour, column)
    assert np.allclose(found.weight, weight, rtol=1e-12)
    ones = np.ones(count, np.int64)
    size = matrix(records, records.size.astype(np.int64) if sized else ones, keys)[2]
    assert np.array_equal(found.size if len(found.size) else np.ones(len(row)), size)


def test_floats_add_up_alike_for_any_memory_workers_and_pieces() -> None:
    """Bit for bit: sums are made in the order of the records."""
    records = random_records(5, 60, 60000, 3.0, False, True)
    found = []
    for memory, workers, piece in ((0, 1, 311), (0, 2, 50000), (2**21, 2, 8000), (2**28, 1, 60000)):
        with Scratch() as scratch:
            blocks = regrouped(cut(records, piece), 60, memory=memory, scratch=scratch, workers=workers)
            found.append(rows(list(blocks), 60))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_loops_are_dropped_only_if_asked() -> None:
    records = Records(np.array([0, 1], np.int32), np.array([0, 0], np.int32), np.ones(2), NONE)
    with Scratch() as scratch:
        kept = list(regrouped([records], 2, memory=0, scratch=scratch))
        left = list(regrouped([records], 2, memory=0, scratch=scratch, drop_loops=True))
    assert sum(len(b.neighbour) for b in kept) == 2
    assert sum(len(b.neighbour) for b in left) == 1


def test_symmetric_records_add_up_to_the_traffic_between_two(tmp_path: Path) -> None:
    """Copies of connections at their targets do not count a second time."""
    rng = np.random.default_rng(1)
    dense = rng.integers(1, 9, (30, 30)) * (rng.random((30, 30)) < 0.3)
    np.fill_diagonal(dense, 0)
    parts = []
    for first, last in ((0, 13), (13, 30)):
        row, column = np.nonzero(dense[first:last])
        indptr = np.searchsorted(row, np.arange(last - first + 1))
        weight, tag = dense[first:last][row, column].astype(float), np.zeros(len(row))
        if first:
            column, weight, tag = np.append(column, 0), np.append(weight, 5.0), np.append(tag, 1)
            indptr[-1] += 1
        parts.append(Block(first, indptr, tag.astype(np.int32), column.astype(np.int32), NONE, weight))
    with Scratch(tmp_path) as scratch:
        found = rows(list(regrouped(symmetric(parts), 30, memory=0, scratch=scratch)), 30)
    out = np.zeros((30, 30))
    out[found.key, found.neighbour] = found.weight
    assert np.array_equal(out, dense + dense.T)


def test_memory_stays_within_the_budget() -> None:
    """3 million records (at least 27 MB packed) in 24 MiB, measured in a process of its own."""
    code = """
import resource, numpy as np
from nmsolve.model.store.block import Records
from nmsolve.model.store.regroup import regrouped
from nmsolve.model.store.scratch import Scratch
def pieces(count):
    for i in range(count):
        r = np.random.default_rng(i)
        yield Records(*(r.integers(0, 10**6, 10**5, dtype=np.int32) for _ in range(2)), r.random(10**5), np.empty(0, np.int32))
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def run(count):
    with Scratch() as scratch:
        return sum(len(b.neighbour) for b in regrouped(pieces(count), 10**6, memory=24 * 2**20, scratch=scratch, workers=2))
run(1)
before = peak()
found = run(30)
print(found, peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, more = map(int, done.stdout.split())
    assert 2_999_000 < found <= 3_000_000
    assert more < 32 * 2**20  # the budget, and a piece of input and a block of output


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_scratch_disk_is_one_clear_line(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pwrite", full)
    records = random_records(1, 10, 100, 1.0, True, False)
    with pytest.raises(InputError, match="cannot write scratch data") as error, Scratch(tmp_path) as scratch:
        list(regrouped([records], 10, memory=0, scratch=scratch))
    assert str(tmp_path) in str(error.value) and "--scratch" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_may_not_grow_is_found_while_writing(tmp_path: Path) -> None:
    """The system itself refuses to write (limit on file size), in a process of its own."""
    code = f"""
import resource, numpy as np
from nmsolve.model.errors import InputError
from nmsolve.model.store.block import Records
from nmsolve.model.store.regroup import regrouped
from nmsolve.model.store.scratch import Scratch
import nmsolve.model.store.regroup_kernels
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
key = np.arange(50_000, dtype=np.int32)
try:
    with Scratch({str(tmp_path)!r}) as scratch:
        list(regrouped([Records(key, key[::-1], np.ones(50_000), key[:0])], 50_000, memory=0, scratch=scratch))
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "cannot write scratch data: file too large" in done.stdout
    assert not list(tmp_path.iterdir())


def test_more_connections_than_fit_in_31_bits_are_refused() -> None:
    many = np.full(2, 2**30, np.int32)
    zero = np.zeros(2, np.int32)
    with Scratch() as scratch, pytest.raises(InputError, match="2147483648 connections"):
        list(regrouped([Records(zero, zero, np.ones(2), many)], 1, memory=0, scratch=scratch))
