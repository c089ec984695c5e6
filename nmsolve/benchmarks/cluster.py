"""Runs of a benchmark on the machines of a cluster, each in a process of its own there; one that is lost begins again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nmsolve.benchmarks.runner import BenchTask, Process
from nmsolve.benchmarks.store import Outcome
from nmsolve.model.errors import InputError

#: How often a run begins again whose machine or process is gone; seconds between two looks at it there.
AGAIN, LOOK = 10, 0.05


class FarProcess:
    """One run somewhere in the cluster.

    Parameters
    ----------
    ray, remote : the package, and :func:`_run` as its task
    """

    def __init__(self, ray: Any, remote: Any, task: BenchTask) -> None:
        self.task, self._ray, self._begun = task, ray, time.monotonic()
        lean: Any = None  # the problem is loaded where it runs
        self._call = remote.remote(replace(task, instance=replace(task.instance, problem=lean)), os.getcwd())

    def outcome(self) -> Outcome | None:
        """Return what the run gave, or None while it goes on."""
        done, _ = self._ray.wait([self._call], timeout=0)
        if not done:
            return None
        try:
            found: Outcome = self._ray.get(self._call)
        except self._ray.exceptions.RayError as error:
            text = " ".join(str(error).split())[:200]
            return Outcome("failed", f"lost with its machine: {text}", wall=time.monotonic() - self._begun)
        return found

    def kill(self) -> None:
        """End the run and forget it."""
        self._ray.cancel(self._call, force=True)


def on_cluster(address: str) -> tuple[Callable[[BenchTask], FarProcess], int]:
    """Return what starts a run on the cluster at an address, and how many cores it has.

    Raises
    ------
    InputError : there is no such cluster
    """
    from nmsolve.solvers.cluster.connect import join

    ray = join(address)
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < 1:
        raise InputError("a cluster without cores", f"--cluster {address}", "machines with at least one")
    remote = ray.remote(_run).options(num_cpus=1, max_retries=AGAIN)
    return lambda task: FarProcess(ray, remote, task), cores


def _run(task: BenchTask, folder: str) -> Outcome:
    """Carry out a run on this machine, whose files are where the benchmark was started."""
    os.chdir(folder)
    process = Process(task)
    try:
        while (outcome := process.outcome()) is None:
            time.sleep(LOOK)
        return outcome
    finally:
        process.kill()
