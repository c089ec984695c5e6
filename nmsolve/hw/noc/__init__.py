"""A flit-level simulator of networks on chips: input-queued wormhole routers with virtual channels and credits.

``config`` is the router, ``traffic``, ``patterns`` and ``trace_file`` what is sent, ``simulate`` and ``sweep`` run it, ``result``
is what comes out. The kernels: ``layout`` (memory), ``state``, ``tables`` (routes), ``events``, ``sources``, ``router``,
``arrivals``, ``advance`` (the clock), ``audit`` (checks that are always on).
"""

from nmsolve.hw.noc.audit import SimulationError, Waiting
from nmsolve.hw.noc.config import CONFIG_A, CONFIG_B, CONFIG_SPIKE, CONFIGS, RouterConfig
from nmsolve.hw.noc.patterns import PATTERNS, matrix, pattern
from nmsolve.hw.noc.result import Latency, SimulationResult
from nmsolve.hw.noc.simulate import Progress, simulate
from nmsolve.hw.noc.sweep import Saturation, latency_curve, saturation
from nmsolve.hw.noc.trace_file import read_trace, write_trace
from nmsolve.hw.noc.traffic import Trace, Traffic, of_flows, steps_of_flows

__all__ = [
    "CONFIGS", "CONFIG_A", "CONFIG_B", "CONFIG_SPIKE", "PATTERNS", "Latency", "Progress", "RouterConfig", "Saturation",
    "SimulationError", "SimulationResult", "Trace", "Traffic", "Waiting", "latency_curve", "matrix", "of_flows", "pattern",
    "read_trace", "saturation", "simulate", "steps_of_flows", "write_trace",
]  # fmt: skip
