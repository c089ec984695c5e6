"""Instances of the ASPLOS / EuroSys 2025 contest on intra-operator parallelism, beside what is published about them.

``python bench/iopddl.py FOLDER [--time-limit 60] [--seed 0] [--engines subgraphs,dual]`` prints a Markdown table. FOLDER has
the contest's files (``asplos-2025-iopddl-A.json.gz``). Gap: of the cost found here to the bound found here. The last two columns
say by how much the cost is above the best published one, and the bound above the published one; losses stay in the table. Every
answer and bound is checked again, the bound by code that did not find it; a w stands where it rests on a solver's word.

Published: google/iopddl, commit 8a61c43 (instances, results of the contest), and the supplement of the winners' paper, "Soft
Constraints, Strong Solutions" (lower bounds, later solutions). The contest gave 60 to 300 s on 8 cores.
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

from nmsolve.check.assignment.recheck import check_assign_bound
from nmsolve.model.assignment.network import network_complaint, network_cost
from nmsolve.model.bound import gap
from nmsolve.model.formats.iopddl import load_iopddl
from nmsolve.solvers.assignment.api import solve_network

#: Instance -> best published cost, proved lower bound.
PUBLISHED = {
    "A": (6_548_641_531, 6_513_812_172),
    "B": (532_843, 532_843),
    "C": (84_102_445_260, 82_509_087_987),
    "D": (309_396_217_000, 298_253_500_099),
    "E": (331_239_394_812, 323_089_251_082),
    "F": (361_354_466_823, 353_665_926_894),
    "G": (217_039, 216_931),
    "H": (527_715_404_257, 508_115_382_756),
    "I": (583_706_456_444, 556_699_743_834),
    "J": (1_325_097_240_000, 1_114_418_889_948),
    "K": (2_242_635_780, 2_065_623_588),
    "L": (1_970_993_742, 1_918_617_707),
    "M": (49_928_460_991, 49_407_421_919),
    "N": (199_470_115_000, 172_940_125_422),
    "O": (219_518_764_980, 191_170_000_000),
    "P": (651_833_115_436, 616_246_285_727),
    "Q": (526_776_842_042, 505_549_458_726),
    "R": (351_826_900_528, 304_520_000_000),
    "S": (1_521_949_310, 1_511_240_136),
    "T": (656_798_881_333, 585_686_829_499),
    "U": (2_443_995_950, 2_018_900_000),
    "V": (1_617_084, 1_617_084),
    "W": (11_614_976_869_921, 10_728_053_095_209),
    "X": (278_109_753_000, 244_891_532_779),
    "Y": (595_085_773_000, 495_260_745_494),
}


def main() -> int:
    """Print the table; 1 if an answer breaks a rule or a bound does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", type=lambda text: text.split(","), default=None)
    options = parser.parse_args()
    files = sorted(p for p in options.folder.iterdir() if p.name.endswith((".json", ".json.gz")))
    if not files:
        parser.error(f"no *.json or *.json.gz in {options.folder}")
    print(
        "| instance | nodes | cost | bound | gap | s | CPU s | published cost | bound | above cost | above bound |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    return int(False in [row(path, options) for path in files])


def row(path: Path, options: argparse.Namespace) -> bool:
    """One line of the table; whether everything in it holds."""
    network, before = load_iopddl(path), cpu()
    result = solve_network(network, time_limit=options.time_limit, seed=options.seed, engines=options.engines)
    used = cpu() - before
    fine, cost = True, None
    if result.solution is not None:
        fine, cost = (
            network_complaint(network, result.solution) is None,
            network_cost(network, result.solution),
        )
    best = max(result.bounds, key=lambda bound: bound.value, default=None)
    found = None if best is None else check_assign_bound(network, best)
    fine = fine and (found is None or found.ok)
    letter = path.name.split(".")[0].removeprefix("asplos-2025-iopddl-")
    known, proved = PUBLISHED.get(letter, (None, None))
    bound = None if best is None else best.value
    own = gap(cost, bound)
    cells = [
        letter, f"{network.count:,}", number(cost), number(bound) + (" w" if found and found.word else ""),
        "-" if own is None else f"{own:.4%}", f"{result.wall_seconds:.1f}", f"{used:.1f}", number(known), number(proved),
        share(cost, known), share(bound, proved) + ("" if fine else " WRONG"),
    ]  # fmt: skip
    print(f"| {' | '.join(cells)} |", flush=True)
    return fine


def number(value: float | None) -> str:
    """A whole number, or a dash."""
    return "-" if value is None else f"{value:,.0f}"


def share(value: float | None, reference: float | None) -> str:
    """By how much a value is above a reference, in percent."""
    return "-" if value is None or not reference else f"{value / reference - 1:+.4%}"


def cpu() -> float:
    """CPU seconds of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    sys.exit(main())
