"""Checkpoint of the open subproblems on disk, so that a killed run loses only the last seconds of its search."""

from __future__ import annotations

import os
import zipfile
from types import TracebackType
from typing import Any

import numpy as np

from nmsolve.model import clock
from nmsolve.model.engine import ScratchPlace
from nmsolve.model.store.scratch import Scratch, scratch_error
from nmsolve.model.types import IntArray
from nmsolve.solvers.mapping.branch_bound.best_first import BestFirstSearch

#: Seconds between two checkpoints: at least, and per second that the last one took.
EVERY, REST = 5.0, 20.0
NAME = "open.npz"


class Checkpoint:
    """Checkpoint in the scratch folder of a run, if it has one. It is deleted at the end of the run, unless that is killed.

    Parameters
    ----------
    problem : hash of the problem
    place : the run's scratch folder, and whether to continue from the checkpoint of a killed run
    """

    def __init__(self, problem: str, place: ScratchPlace) -> None:
        self._scratch = None
        if place.folder is not None:
            self._scratch = Scratch(place.folder, key=f"{problem} branch-bound", resume=place.resume)
        self._due = clock.now() + EVERY

    def __enter__(self) -> Checkpoint:
        if self._scratch is not None:
            self._scratch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scratch is not None:
            self._scratch.__exit__(kind, error, trace)

    def load(self) -> tuple[IntArray, dict[str, Any]] | None:
        """Return the best mapping (n,) of a killed run, and its open subproblems as in a certificate; None without any."""
        if self._scratch is None:
            return None
        try:
            with np.load(self._scratch.file(NAME)) as saved:
                best = saved["best"].astype(np.int64)
                left = {"open": saved["open"], "open_bounds": saved["open_bounds"]}
                limit, nodes = saved["numbers"].tolist()
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
            return None  # the search begins anew
        return best, {**left, "limit": limit, "nodes": nodes}

    def save(self, search: BestFirstSearch, best: IntArray, earlier: int) -> None:
        """Checkpoint the open subproblems with the best mapping (n,), if it is due; earlier runs bounded ``earlier`` nodes.

        If the mapping does not have the limit of the search, the checkpoint is of no use: the next run begins anew.

        Raises
        ------
        InputError : the disk is full
        """
        if self._scratch is None or clock.now() < self._due:
            return
        begun = clock.now()
        low, core = search.open_subproblems()
        limit = search.limit  # read last: for a higher limit some open subproblems would be missing
        path = self._scratch.file(NAME)
        try:
            with path.with_suffix(".new").open("wb") as file:
                np.savez(
                    file, best=best, open=core.astype(np.int8), open_bounds=low,
                    numbers=np.array([limit, earlier + search.nodes]),
                )  # fmt: skip
            os.replace(path.with_suffix(".new"), path)
        except OSError as error:
            raise scratch_error(error, path) from None
        self._due = clock.now() + max(EVERY, REST * (clock.now() - begun))
