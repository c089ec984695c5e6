"""Contiguous optima of the public cost graphs beside the published program's, with times.

``python bench/pipeline_dags.py FOLDER`` prints a Markdown table and fails if a value differs from the reference, a plan breaks
a rule, or a graph is not solved within ``--seconds`` CPU seconds. FOLDER holds files of msr-fiddle/dnn-partitioning
(``throughput-inputs``), named ``layer_bert24_inference.json``, ``operator_bert_l-3_inference.json`` and so on; files of other
names are solved too, but for those with a backward pass. ``--cores K`` solves them for another number of accelerators, without
reference.

Reference values: the published dynamic program, run on the unmodified files; it did not finish on those marked None (Inception:
not in 400 s). Compiled code is loaded before the clock starts.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from nmsolve.heuristics.pipeline.downsets import best_contiguous
from nmsolve.heuristics.pipeline.lattice import lattice_of
from nmsolve.heuristics.pipeline.poset import poset_of
from nmsolve.hw.pipeline.stages import objective
from nmsolve.model.formats.cost_graph import load_cost_graph
from nmsolve.model.pipeline.check import plan_complaint

#: File -> value of the published dynamic program (six digits), seconds that it took.
REFERENCE: dict[str, tuple[str, float] | None] = {
    "layer_bert24_inference": ("17.7899", 0.01),
    "layer_gnmt_inference": ("32.9107", 59.36),
    "layer_inceptionv3_inference": None,
    "layer_resnet50_inference": ("33.7747", 0.49),
    "operator_bert_l-12_inference": ("147.478", 49.09),
    "operator_bert_l-3_inference": ("27.9186", 3.11),
    "operator_bert_l-6_inference": ("29.5795", 11.59),
    "operator_resnet50_inference": ("124.349", 0.52),
}


def main() -> int:
    """Print the table; 1 if something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--cores", type=int, default=None)
    options = parser.parse_args()
    files = [path for path in sorted(options.folder.glob("*.json")) if load_cost_graph(path).split != "any"]
    if not files:
        parser.error(f"no *.json in {options.folder}")
    best_contiguous(load_cost_graph(files[0]), lambda: 60.0)
    print("| graph | layers | parts | devices | downsets | optimum | reference | CPU s | reference s | |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    wrong = [path.stem for path in files if not row(path, options.seconds, options.cores)]
    if wrong:
        print("wrong: " + ", ".join(wrong), file=sys.stderr)
    return int(bool(wrong))


def row(path: Path, seconds: float, cores: int | None) -> bool:
    """One line of the table; whether it is as it should be."""
    problem = load_cost_graph(path)
    if cores is not None:
        problem = replace(problem, cores=cores, stages=cores + problem.hosts)
    started, end = time.process_time(), time.monotonic() + 20 * seconds
    plan, bound, proved = best_contiguous(problem, lambda: end - time.monotonic())
    used = time.process_time() - started
    poset = poset_of(problem)
    _, downsets = lattice_of(problem, poset, 5_000_000, lambda: 60.0)
    value = float("inf") if plan is None else objective(problem, plan)
    reference = REFERENCE.get(path.stem) if cores is None else None
    said = [] if plan is None else [plan_complaint(problem, plan) or ""]
    said += [] if proved and value == bound else [f"not proved, bound {bound:.6g}"]
    said += [] if used <= seconds else ["too slow"]
    said += [] if reference is None or f"{value:.6g}" == reference[0] else ["differs"]
    verdict = "; ".join(filter(None, said))
    value_of, time_of = reference or ("-", "-")
    print(
        f"| {path.stem} | {problem.count:,} | {poset.count} | {problem.cores} + {problem.hosts} | {downsets:,} | {value:.6g} | "
        f"{value_of} | {used:.2f} | {time_of} | {verdict or 'proved'} |",
        flush=True,
    )
    return not verdict


if __name__ == "__main__":
    sys.exit(main())
