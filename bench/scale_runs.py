"""The figures on large networks: what is asked of nmsolve, what it must reach, and who is asked beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from measure import Use


@dataclass(frozen=True)
class Goal:
    """What a run must reach, each only if it is named: value (less is better), seconds, MiB."""

    value: float = math.inf
    wall: float = math.inf
    cpu: float = math.inf
    peak: float = math.inf

    def verdict(self, value: float, use: Use) -> str:
        """``yes``, or what is missed; empty if nothing is asked."""
        asked = (("value", self.value, value), ("wall", self.wall, use.wall), ("CPU", self.cpu, use.cpu),
                 ("peak", self.peak, use.peak / 2**20))  # fmt: skip
        if all(limit == math.inf for _, limit, _ in asked):
            return ""
        missed = [name for name, limit, found in asked if limit < math.inf and not found <= limit]
        return "**no**: " + ", ".join(missed) if missed else "yes"


@dataclass(frozen=True)
class Run:
    """A figure: the network, the question, how nmsolve is asked, and who is asked beside it.

    ``mesh`` is rows and columns of cores; ``limit`` the most neurons on a core (None: one network node per core). The
    answer must be at most ``NEAR`` worse than that of the run ``like``, which comes before it.
    """

    name: str
    net: str
    objective: str
    mesh: tuple[int, int]
    limit: int | None
    args: tuple[str, ...]
    must: Goal
    aim: Goal
    peers: tuple[str, ...]
    like: str = ""

    @property
    def cores(self) -> int:
        """Number of cores, which is the number of parts."""
        return self.mesh[0] * self.mesh[1]


NETS: dict[str, tuple[str, ...]] = {
    "microcircuit.nmz": ("microcircuit", "--scale", "1"),
    "snn20k.nmz": ("snn", "--nodes", "20000", "--synapses", "600000", "--layers", "8", "--directed", "1"),
    "snn100k.nmz": ("snn", "--nodes", "100000", "--synapses", "5000000", "--layers", "16"),
    "snn1m.nmz": ("snn", "--nodes", "1000000", "--synapses", "50000000", "--layers", "16", "--sigma", "0.02"),
    "layered4k.nmz": ("layered", "--exponent", "12"),
    "layered64k.nmz": ("layered", "--exponent", "16"),
}
#: The network whose file is measured.
GENERATED = "microcircuit.nmz"
CUT, PLACED = ("metis", "kaminpar", "mtkahypar"), ("metis+scotch", "kaminpar+scotch")
TWO = "--workers", "2"
#: How much worse an answer may be than the one it must be like.
NEAR = 0.03
RUNS = (
    Run("microcircuit, multicast hops", "microcircuit.nmz", "multicast-hops", (9, 9), 1024,
        ("--memory", "2GiB", "--time-limit", "360", *TWO), Goal(wall=900, peak=3072), Goal(wall=480, peak=2048), PLACED),
    Run("snn1m, hops", "snn1m.nmz", "hops", (16, 16), 4024,
        ("--memory", "2.5GiB", "--time-limit", "140", *TWO), Goal(wall=300, peak=2560), Goal(wall=180, peak=2560), PLACED),
    Run("snn1m, cut", "snn1m.nmz", "cut", (16, 16), 4024,
        ("--memory", "2.5GiB", "--time-limit", "30", "--workers", "1"), Goal(131.6e6, cpu=60), Goal(129e6, cpu=45), CUT),
    Run("snn100k, cut", "snn100k.nmz", "cut", (16, 16), 402,
        ("--time-limit", "4.5", "--workers", "1"), Goal(23.1e6, cpu=6), Goal(22.8e6, cpu=6), CUT),
    Run("snn20k, connectivity", "snn20k.nmz", "connectivity", (8, 8), 322,
        ("--time-limit", "12", "--workers", "1"), Goal(655e3, wall=15), Goal(640e3, wall=20), CUT),
    Run("layered 2^24, hops", "layered4k.nmz", "hops", (64, 64), None,
        ("--time-limit", "15", *TWO), Goal(wall=60), Goal(wall=20), ("scotch",)),
    Run("layered 2^28, hops", "layered64k.nmz", "hops", (256, 256), None,
        ("--time-limit", "200", *TWO), Goal(wall=600), Goal(wall=300), ("scotch",)),
    Run("snn100k, hops, in memory", "snn100k.nmz", "hops", (16, 16), 402,
        ("--time-limit", "60", "--workers", "1"), Goal(76.3e6, wall=66), Goal(74e6, wall=66), PLACED),
    Run("snn100k, hops, 256 MiB", "snn100k.nmz", "hops", (16, 16), 402,
        ("--memory", "256MiB", "--time-limit", "60", "--workers", "1"), Goal(peak=256), Goal(peak=256), (),
        like="snn100k, hops, in memory"),
)  # fmt: skip
