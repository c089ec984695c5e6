"""Files of trained policies: arrays as safetensors, without code in them, and checked before use.

The header of a file says which method it is for, what the arrays mean and how they were trained (``facts``), and the hash of all
arrays. The folder named by the environment variable ``NMSOLVE_MODELS`` comes before the models of the package.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from nmsolve.model.errors import InputError
from nmsolve.model.files import write_atomic
from nmsolve.model.types import AnyArray

#: Folder of models that come before those of the package.
FOLDER = "NMSOLVE_MODELS"
#: Bounds whose first multipliers are predicted; the model of each is called ``duals-`` and its name.
DUALS = ("joint", "parts", "cover")
#: Methods with trained models, which are also the names of their files, and the engines that use them.
METHODS = {"m1": "m1-policy", "m5": "m5-policy"} | {f"duals-{bound}": bound for bound in DUALS}
#: Largest file that is read, in bytes; what is shipped has less than 1.2 MB.
MOST_BYTES = 64 * 2**20
#: Of the layout of files; files of another one are refused.
VERSION = 1


class Shaped(Protocol):
    """Sizes of a network."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all arrays, by name."""


S = TypeVar("S", bound=Shaped)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A trained policy.

    Attributes
    ----------
    method : one of :data:`METHODS`
    arrays : float32, by name
    facts : what they mean and where they come from; plain JSON
    """

    method: str
    arrays: Mapping[str, AnyArray]
    facts: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Content hash of names, shapes and values (hex, 16 digits)."""
        digest = hashlib.sha256(self.method.encode())
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name], np.float32)
            digest.update(f"{name} {array.shape}".encode() + array.tobytes())
        return digest.hexdigest()[:16]


def save(path: Path, model: Checkpoint) -> None:
    """Write a policy; the same policy gives the same bytes."""
    from safetensors.numpy import save as packed

    header = {
        "method": model.method, "version": str(VERSION), "hash": model.hash, "facts": json.dumps(model.facts),
    }  # fmt: skip
    arrays = {name: np.ascontiguousarray(a, np.float32) for name, a in sorted(model.arrays.items())}
    write_atomic(path, packed(arrays, {"nmsolve": json.dumps(header, sort_keys=True)}))


def load(path: Path, method: str, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Checkpoint:
    """Read a policy.

    Parameters
    ----------
    shapes : names and shapes that the arrays must have; not compared if not given

    Raises
    ------
    InputError : no such file, damaged, of another method or version, or other arrays than expected
    """
    model = _read(path, method)
    if shapes is not None:
        require_shapes(model, shapes, path)
    return model


def require_shapes(model: Checkpoint, shapes: Mapping[str, tuple[int, ...]], path: Path) -> None:
    """Raise InputError unless a policy has arrays of just these names and shapes; ``path`` is where it comes from."""
    found = {name: a.shape for name, a in model.arrays.items()}
    wrong = sorted(n for n in found.keys() | shapes.keys() if found.get(n) != shapes.get(n))
    if wrong:
        name = wrong[0]
        text = f"array {name!r} has shape {found.get(name, 'none')}"
        raise InputError(text, str(path), f"{shapes.get(name, 'no such array')}")


def _read(path: Path, method: str) -> Checkpoint:
    """Return the policy in a file whose header and hash are right; InputError for any other."""
    from safetensors import SafetensorError, safe_open

    wanted = f"a model for {METHODS.get(method, method)} (`{command_of(method)}`)"
    if not path.is_file():
        raise InputError("there is no such file", str(path), wanted)
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"it has more than {MOST_BYTES} bytes", str(path), wanted)
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("nmsolve", "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError) as error:
        raise InputError(f"a damaged model file ({str(error)[:80]})", str(path), wanted) from None
    if (
        not isinstance(header, dict)
        or header.get("method") != method
        or not isinstance(header.get("facts"), str)
    ):
        raise InputError("a model of something else", str(path), wanted)
    if header.get("version") != str(VERSION):
        raise InputError(f"a model file of version {header.get('version')}", str(path), f"version {VERSION}")
    for name, array in arrays.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise InputError(f"array {name!r} is not of finite 32-bit numbers", str(path), wanted)
    try:
        facts = json.loads(header["facts"])
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise InputError("a damaged model file (its facts)", str(path), wanted)
    model = Checkpoint(method, arrays, facts)
    if model.hash != header.get("hash"):
        raise InputError("the hash of a model file does not match its arrays", str(path), wanted)
    return model


def command_of(method: str) -> str:
    """Return the command that trains the model of a method."""
    return f"nmsolve train {method.replace('duals-', 'duals --bound ')}"


def model_path(method: str) -> Path:
    """Return where the policy of a method is looked for: in the user's folder if it has one, else in the package."""
    own = Path(os.environ.get(FOLDER) or "/nowhere") / f"{method}.safetensors"
    return own if own.exists() else Path(__file__).parent / "models" / f"{method}.safetensors"


def model_file(path: Path) -> Path:
    """Return ``path`` with the ending of model files; InputError if it has another one."""
    if path.suffix not in ("", ".safetensors"):
        raise InputError(f"a model file called {path.name}", "--out", "a name that ends in .safetensors")
    return path.with_suffix(".safetensors")


@lru_cache(maxsize=8)
def _kept(path: Path, method: str, changed: int) -> Checkpoint:
    return load(path, method)


def policy_of(method: str) -> Checkpoint:
    """Return the policy of a method, read once per process and change of its file; InputError as for :func:`load`."""
    path = model_path(method)
    return _kept(path, method, path.stat().st_mtime_ns if path.exists() else 0)


def sized(method: str, kind: type[S]) -> tuple[Checkpoint, S]:
    """Return the policy of a method and its sizes, an object of ``kind`` that knows the ``shapes`` of all arrays.

    Raises
    ------
    InputError : the file is missing, damaged, without sizes, or its arrays have other shapes
    """
    model, path = policy_of(method), model_path(method)
    try:
        size = kind(**model.facts["size"])
    except (KeyError, TypeError):
        raise InputError("a model file without sizes", str(path), f"`nmsolve train {method}`") from None
    require_shapes(model, size.shapes, path)
    return model, size
