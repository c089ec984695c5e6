"""The way into a cluster: Ray's own, with an address; every complaint is one line.

Nothing of a cluster is trusted but by the user's word: who can reach its ports can run code on all its machines, and so here
(docs/trust.md). What its machines find is judged here like anything else.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import socket
from typing import Any

from nmsolve.model.errors import InputError

#: Words that stand for an address: the cluster that runs on this machine; one of this machine alone, for this command.
WORDS = ("auto", "local")
#: Seconds to wait for an answer at an address.
KNOCK = 2.0
#: The first bytes of HTTP/2 (RFC 9113, 3.4), which Ray speaks, with empty settings; the answer is settings, too.
_HELLO, _SETTINGS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]), b"\4"
_EXPECTED = "auto, local or HOST:PORT of a Ray cluster that this machine has joined (ray start)"
#: Before Ray is imported: no usage statistics, no words of Ray's own among those of the command; engines of a cluster of this
#: machine alone have the priority that local workers have.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_LOG_TO_DRIVER": "0",
    "RAY_gcs_rpc_server_connect_timeout_s": "5",
    "RAY_raylet_start_wait_time_s": "10",
    "RAY_worker_niceness": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "3600",
}


def require_ray() -> Any:
    """Return the package Ray, which sends nothing to anybody.

    Raises
    ------
    InputError : it is not installed
    """
    if importlib.util.find_spec("ray") is None:
        raise InputError("the package ray is not installed", "--cluster", "pip install 'nmsolve[cluster]'")
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    return ray


def join(address: str) -> Any:
    """Join the cluster at an address, once in this process; return the package Ray.

    Raises
    ------
    InputError : Ray is not installed, or there is no such cluster, or it is of another version
    """
    ray = require_ray()
    if ray.is_initialized():
        return ray
    if address not in WORDS:
        _knock(address)
    how: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    ray._private.worker.print_to_stdstream = _say_nothing
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="CRITICAL",
            configure_logging=True,
            namespace="nmsolve",
            **how,
        )
    except Exception as error:
        text = " ".join(str(error).split())
        raise InputError(
            f"no cluster can be joined ({_short(text)})", f"--cluster {address}", _EXPECTED
        ) from error
    atexit.register(ray.shutdown)
    return ray


def _say_nothing(*_: Any, **__: Any) -> None:
    """Ray prints the deaths of its workers among what a command prints; the search has words of its own for them."""


def _short(text: str) -> str:
    """Return what Ray says in a few words: versions if it is about them, else its first sentence."""
    if "ersion mismatch" in text or "versions" in text:
        return text[:300]
    return re.split(r"(?<=[a-z])\. ", text)[0][:160]


def _knock(address: str) -> None:
    """Refuse an address that does not answer."""
    where = f"--cluster {address}"
    if "://" in address:
        raise InputError("an address of a client, not of a machine of the cluster", where, _EXPECTED)
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError("no address", where, _EXPECTED)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), KNOCK) as line:
            line.settimeout(KNOCK)
            line.sendall(_HELLO)
            answer = line.recv(9)
    except OSError as error:
        raise InputError(f"no answer ({error.strerror or error})", where, _EXPECTED) from error
    if answer[3:4] != _SETTINGS:
        raise InputError("the address answers, but is not the head of a Ray cluster", where, _EXPECTED)
