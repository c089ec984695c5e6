"""Calls of one function on the machines of a cluster, whose answers come in the order of the calls."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any

from nmsolve.model.errors import InputError
from nmsolve.solvers.cluster.connect import join

#: How often a call begins again whose machine or process is gone.
AGAIN = 10


def ahead(
    address: str, work: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Generator[tuple[tuple[Any, ...], Any]]:
    """Yield every call's arguments and what ``work`` returned for them. As many calls are made ahead as the cluster has cores.

    What is under way when the caller stops is given up.

    Raises
    ------
    InputError : there is no such cluster, or it has no cores
    Exception : what ``work`` raised
    """
    ray = join(address)
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < 1:
        raise InputError("a cluster without cores", f"--cluster {address}", "machines with at least one")
    remote = ray.remote(_call).options(num_cpus=1, max_retries=AGAIN)
    there, out = ray.put(work), deque[tuple[tuple[Any, ...], Any]]()
    try:
        for arguments in calls:
            out.append((arguments, remote.remote(there, arguments, os.getcwd())))
            if len(out) > cores:
                yield _next(ray, out)
        while out:
            yield _next(ray, out)
    finally:
        for _, answer in out:
            ray.cancel(answer, force=True)


def _next(ray: Any, out: deque[tuple[tuple[Any, ...], Any]]) -> tuple[tuple[Any, ...], Any]:
    arguments, answer = out.popleft()
    try:
        return arguments, ray.get(answer)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error


def _call(work: Callable[..., Any], arguments: tuple[Any, ...], folder: str) -> Any:
    os.chdir(folder)
    return work(*arguments)
