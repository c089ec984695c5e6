"""Cut models over three units, execute the pieces, and compare with the model: the table of docs/programs.md.

python bench/programs.py MODEL.onnx ... [--levels off,all] [--seed 1]

Every operator is on a random unit, then on the three units in turn. Exit code 1 if an output differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from nmsolve.hw.assignment.programs.run import run_programs
from nmsolve.hw.assignment.programs.write import unit_entries, write_pieces
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.formats.onnx.nodes import all_nodes, scope_of
from nmsolve.model.formats.onnx.parse import read_model

UNITS = ("host", "npu/0", "npu/1")


def rows_of(path: Path, levels: list[str], seed: int) -> bool:
    """Print a row per assignment of one model; return whether all outputs are equal."""
    graph, rng, equal = load_onnx(path), random.Random(seed), True
    paths = [node.path for node in all_nodes(scope_of(read_model(path).graph, path))]
    placements = {
        "random": {p: rng.choice(UNITS) for p in paths},
        "in turn": {p: UNITS[k % 3] for k, p in enumerate(paths)},
    }
    for name, placement in placements.items():
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            manifest = write_pieces(path, placement, unit_entries(UNITS), folder, graph=graph)
            cells = [
                path.stem, str(len(paths)), name, str(len(manifest.program.pieces)),
                str(len(manifest.program.transfers)), f"{time.process_time() - start:.2f}",
            ]  # fmt: skip
            start = time.process_time()
            for level in levels:
                report = run_programs(folder, path, level=level, seed=seed)
                finite = all(o.finite for case in report.cases for o in case.outputs)
                cells.append(f"{report.difference:.1e}" if finite else "not finite")
                equal = equal and report.equal and finite
            cells.append(f"{(time.process_time() - start) / len(levels):.1f}")
        print("|", " | ".join(cells), "|", flush=True)
    return equal


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--levels", default="off,all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    levels = options.levels.split(",")
    heads = [f"difference, {level}" for level in levels]
    print(
        "|",
        " | ".join(["model", "operators", "units", "pieces", "transfers", "split s", *heads, "run s"]),
        "|",
    )
    print("|---" * (7 + len(heads)) + "|")
    equal = [rows_of(path, levels, options.seed) for path in options.models]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
