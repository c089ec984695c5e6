"""What is open of a search, kept on disk while it goes on, so that a run that is killed loses seconds and not the search."""

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
from nmsolve.solvers.mapping.branch_bound.frontier import Frontier

#: Seconds between two copies: at least, and for each second that the last one took.
EVERY, REST = 5.0, 20.0
NAME = "open.npz"


class Kept:
    """A copy of what is open in the scratch folder of a run, if the run has one; it goes with the run, unless that is killed.

    Parameters
    ----------
    problem : hash of the problem
    place : the run's scratch folder, and whether to go on from what a killed run left there
    """

    def __init__(self, problem: str, place: ScratchPlace) -> None:
        self._scratch = None
        if place.folder is not None:
            self._scratch = Scratch(place.folder, key=f"{problem} branch-bound", resume=place.resume)
        self._due = clock.now() + EVERY

    def __enter__(self) -> Kept:
        if self._scratch is not None:
            self._scratch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scratch is not None:
            self._scratch.__exit__(kind, error, trace)

    def left(self) -> tuple[IntArray, dict[str, Any]] | None:
        """Return the best mapping (n,) of a killed run, and what was open in the words of a claim; None if there is nothing."""
        if self._scratch is None:
            return None
        try:
            with np.load(self._scratch.file(NAME)) as kept:
                best = kept["best"].astype(np.int64)
                said = {"open": kept["open"], "open_bounds": kept["open_bounds"]}
                limit, nodes = kept["numbers"].tolist()
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
            return None  # the search begins anew
        return best, {**said, "limit": limit, "nodes": nodes}

    def keep(self, frontier: Frontier, best: IntArray, earlier: int) -> None:
        """Copy what is open now and then, with the best mapping (n,); ``earlier`` were bounded by runs before this one.

        If the mapping does not have the limit of the search, what is open is of no use: the next run begins anew.

        Raises
        ------
        InputError : the disk is full
        """
        if self._scratch is None or clock.now() < self._due:
            return
        begun = clock.now()
        low, core = frontier.open()
        limit = frontier.limit  # read last: what is open for a higher limit is not all there
        path = self._scratch.file(NAME)
        try:
            with path.with_suffix(".new").open("wb") as file:
                np.savez(
                    file, best=best, open=core.astype(np.int8), open_bounds=low,
                    numbers=np.array([limit, earlier + frontier.nodes]),
                )  # fmt: skip
            os.replace(path.with_suffix(".new"), path)
        except OSError as error:
            raise scratch_error(error, path) from None
        self._due = clock.now() + max(EVERY, REST * (clock.now() - begun))
