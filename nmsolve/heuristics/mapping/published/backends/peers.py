"""Which tools of others can be compared with here, and what installs those that are missing."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

from nmsolve.heuristics.mapping.published.backends.scotch import HOW, PROGRAM

#: Engines that run other tools, or do what another tool does: the package that each needs, and what installs it.
PEERS: dict[str, tuple[str, str]] = {
    "metis": ("pymetis", "pip install 'nmsolve[metis]'"),
    "kaminpar": ("kaminpar", "pip install 'nmsolve[kaminpar]'"),
    "mtkahypar": ("mtkahypar", "pip install 'nmsolve[mtkahypar]'"),
    "scotch": ("", HOW),
    "in-order": ("", ""),
}
#: Tools that need an environment of their own: only bench/peers.py has them.
APART = {
    "rig": "pip install rig==2.4.1 rig_c_sa==0.4.0",
    "pacman": "pip install SpiNNaker_PACMAN==1!7.4.1",
}


def missing() -> dict[str, str]:
    """Return the engines of :data:`PEERS` that cannot run here, with what installs them."""
    out = {}
    for name, (package, how) in PEERS.items():
        there = (
            find_spec(package) is not None
            if package
            else name != "scotch" or shutil.which(PROGRAM) is not None
        )
        if not there:
            out[name] = how
    return out
