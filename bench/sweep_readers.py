"""Generated variants of files for every reader, compared with what each file says: no difference may be silent.

python bench/sweep_readers.py [READER ...] [--count 500] [--seed 0] [--keep DIR]

READER is a module of ``bench/sweeps``. Variant k follows from reader, seed and k alone. Files that are read wrongly are kept in
DIR. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import sweeps
from sweeps import Sweep, Variant, outcome


def readers() -> list[str]:
    """Return the names of all sweeps."""
    return sorted(module.name for module in pkgutil.iter_modules(sweeps.__path__))


def variants(reader: str, count: int, seed: int) -> Iterator[Variant]:
    """Yield variants of a reader."""
    sweep: Sweep = importlib.import_module(f"sweeps.{reader}")
    for k in range(count):
        yield sweep.variant(Random(f"{seed} {reader} {k}"))


def swept(reader: str, count: int, seed: int, keep: Path | None = None) -> tuple[Counter[str], list[str]]:
    """Return how often variants were read, read with warnings and refused, and what is wrong with any."""
    sweep: Sweep = importlib.import_module(f"sweeps.{reader}")
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for k, variant in enumerate(variants(reader, count, seed)):
            folder = Path(scratch) / str(k)
            became, fault = outcome(sweep, variant, folder)
            counts[became] += 1
            if fault:
                wrong.append(f"{reader} {k}: {fault}")
                if keep is not None:
                    shutil.copytree(folder, keep / f"{reader}-{seed}-{k}", dirs_exist_ok=True)
            shutil.rmtree(folder)
    return counts, wrong


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", metavar="READER")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    failed = False
    for reader in args.readers or readers():
        counts, wrong = swept(reader, args.count, args.seed, args.keep)
        print(f"{reader}: {', '.join(f'{n} {what}' for what, n in counts.items())}; {len(wrong)} wrong")
        print(*wrong[:10], sep="\n", end="\n" if wrong else "")
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
