"""Which tools of others can be compared with here, and what installs those that are missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from nmsolve.heuristics.mapping.published.backends.scotch import HOW, PROGRAM


def _package(name: str) -> bool:
    return find_spec(name) is not None


#: Engines that run other tools, or do what another tool does: whether what each needs is there, and what installs it.
PEERS: dict[str, tuple[Callable[[], bool], str]] = {
    "metis": (partial(_package, "pymetis"), "pip install 'nmsolve[metis]'"),
    "kaminpar": (partial(_package, "kaminpar"), "pip install 'nmsolve[kaminpar]'"),
    "mtkahypar": (partial(_package, "mtkahypar"), "pip install 'nmsolve[mtkahypar]'"),
    "scotch": (lambda: shutil.which(PROGRAM) is not None, HOW),
    "in-order": (lambda: True, ""),
}
#: Tools that need an environment of their own: only bench/peers.py has them.
APART = {
    "rig": "pip install rig==2.4.1 rig_c_sa==0.4.0",
    "pacman": "pip install SpiNNaker_PACMAN==1!7.4.1",
}


def missing() -> dict[str, str]:
    """Return the engines of :data:`PEERS` that cannot run here, with what installs them."""
    return {name: how for name, (there, how) in PEERS.items() if not there()}
