"""Networks in torch: weights from plain arrays, and the memory of their optimiser back into plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmsolve.learn.checkpoint import Checkpoint
from nmsolve.model.errors import InputError
from nmsolve.model.types import FloatArray


def require_torch() -> Any:
    """Return the package torch; InputError if it is not installed."""
    try:
        import torch
    except ImportError:
        raise InputError(
            "training needs the package torch",
            "nmsolve train",
            "pip install 'nmsolve[learn]' -c constraints.txt",
        ) from None
    return torch


def tensor(array: Any, dtype: Any = None) -> Any:
    """Return an array as a tensor where training runs: on the GPU if there is one, else on the processor."""
    torch = require_torch()
    return torch.as_tensor(array, dtype=dtype, device="cuda" if torch.cuda.is_available() else "cpu")


def plain(found: Any) -> FloatArray:
    """Return a tensor as an array of its own, wherever it is."""
    out: FloatArray = found.detach().cpu().numpy().copy()
    return out


def new_optimiser(arrays: Mapping[str, FloatArray], rate: float) -> tuple[dict[str, Any], Any]:
    """Return the arrays as weights to train, and Adam for them."""
    torch = require_torch()
    weights = {name: tensor(a.copy(), torch.float32).requires_grad_() for name, a in arrays.items()}
    return weights, torch.optim.Adam(weights.values(), lr=rate)


def arrays_of(weights: Mapping[str, Any], optimiser: Any) -> dict[str, FloatArray]:
    """Return weights and both of Adam's means as arrays, and its number of steps."""
    out = {f"weight/{name}": plain(w) for name, w in weights.items()}
    for name, w in weights.items():
        state = optimiser.state.get(w, {})
        for kind in ("exp_avg", "exp_avg_sq"):
            out[f"{kind}/{name}"] = plain(state[kind]) if state else np.zeros(w.shape, np.float32)
        out[f"step/{name}"] = np.array([float(state["step"]) if state else 0.0], np.float32)
    return out


def restored(state: Checkpoint, weights: Mapping[str, Any], optimiser: Any) -> None:
    """Set weights and optimiser to what :func:`arrays_of` gave; InputError if it was of another network."""
    torch = require_torch()
    for name, w in weights.items():
        kept = {
            kind: state.arrays.get(f"{kind}/{name}") for kind in ("weight", "exp_avg", "exp_avg_sq", "step")
        }
        if any(a is None or (k != "step" and a.shape != tuple(w.shape)) for k, a in kept.items()):
            raise InputError(
                f"it has no weights {name!r} of this shape", "--resume", "the state of this training"
            )
        with torch.no_grad():
            w.copy_(tensor(kept["weight"]))
        optimiser.state[w] = {k: tensor(np.array(kept[k])) for k in ("exp_avg", "exp_avg_sq")} | {
            "step": torch.tensor(float(kept["step"][0]))  # type: ignore[index]
        }
