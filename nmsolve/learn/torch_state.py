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


def new_optimiser(arrays: Mapping[str, FloatArray], rate: float) -> tuple[dict[str, Any], Any]:
    """Return the arrays as weights to train, and Adam for them."""
    torch = require_torch()
    weights = {name: torch.tensor(a, dtype=torch.float32, requires_grad=True) for name, a in arrays.items()}
    return weights, torch.optim.Adam(weights.values(), lr=rate)


def arrays_of(weights: Mapping[str, Any], optimiser: Any) -> dict[str, FloatArray]:
    """Return weights and both of Adam's means as arrays, and its number of steps."""
    out = {f"weight/{name}": w.detach().numpy().copy() for name, w in weights.items()}
    for name, w in weights.items():
        state = optimiser.state.get(w, {})
        for kind in ("exp_avg", "exp_avg_sq"):
            out[f"{kind}/{name}"] = state[kind].numpy().copy() if state else np.zeros(w.shape, np.float32)
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
            w.copy_(torch.tensor(kept["weight"]))
        optimiser.state[w] = {k: torch.tensor(kept[k]) for k in ("exp_avg", "exp_avg_sq")} | {
            "step": torch.tensor(float(kept["step"][0]))  # type: ignore[index]
        }
