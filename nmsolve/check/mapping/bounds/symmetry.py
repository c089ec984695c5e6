"""Symmetries of a board as the re-check finds them: permutations of cores by backtracking, nothing known of their form."""

from __future__ import annotations

import numpy as np

from nmsolve.model.types import BoolArray, IntArray

#: Cores tried in all for one symmetry.
TRIES = 20_000


class Board:
    """Cores, and which of them are alike.

    Parameters
    ----------
    far : (k, k) distances
    allowed : (n, k) which core a node may use
    """

    def __init__(self, far: IntArray, allowed: BoolArray) -> None:
        self._far = far
        #: Cores that differ in who may use them have different numbers.
        self._kind = np.unique(allowed, axis=1, return_inverse=True)[1].ravel()
        self._both = np.unique(np.stack([far.ravel(), far.T.ravel()]), axis=1, return_inverse=True)[
            1
        ].reshape(far.shape)
        self._told: dict[tuple[int, ...], IntArray] = {}
        self._tries = 0

    def __len__(self) -> int:
        return len(self._far)

    def unlike(self, fixed: tuple[int, ...], among: BoolArray) -> list[int]:
        """Return one of each set of cores that symmetries which leave the ``fixed`` ones in place turn into each other."""
        out: list[int] = []
        for p in np.flatnonzero(among).tolist():
            if not any(self.alike(fixed, q, p) for q in out):
                out.append(p)
        return out

    def alike(self, fixed: tuple[int, ...], p: int, q: int) -> bool:
        """Return True if a permutation of the cores takes ``p`` to ``q``, keeps all distances and kinds and each ``fixed`` core.

        False where none is found in :data:`TRIES` attempts, which loses time but no proof.
        """
        k, kept = len(self._far), self._kept(tuple(sorted(fixed)))
        order = [*fixed, p, *(c for c in range(k) if c != p and c not in fixed)]
        self._tries = TRIES
        return self._extend(kept, order, [*fixed, q], 0)

    def _kept(self, fixed: tuple[int, ...]) -> IntArray:
        """Return (k,) numbers that no such permutation changes.

        They begin as the kinds; then how many cores of each number are how far away, as often as that tells more cores apart.
        """
        if fixed not in self._told:
            number = self._kind.copy()
            number[list(fixed)] = self._kind.max() + 1 + np.arange(len(fixed))
            many = 0
            while len(np.unique(number)) > many:
                many = len(np.unique(number))
                seen = np.sort(self._both * len(number) * 2 + number, axis=1)
                number = np.unique(np.column_stack([number, seen]), axis=0, return_inverse=True)[1].ravel()
            self._told[fixed] = number
        return self._told[fixed]

    def _extend(self, kept: IntArray, order: list[int], image: list[int], given: int) -> bool:
        """Return True if the map of the first cores of ``order`` to ``image`` holds and can be extended to all."""
        while given < len(image):
            if not self._fits(kept, order[:given], image[:given], order[given], image[given]):
                return False
            given += 1
        if given == len(order):
            return True
        for q in np.flatnonzero(kept == kept[order[given]]).tolist():
            self._tries -= 1
            if self._tries < 0:
                return False
            if q not in image and self._extend(kept, order, [*image, q], given):
                return True
        return False

    def _fits(self, kept: IntArray, before: list[int], image: list[int], p: int, q: int) -> bool:
        d = self._far
        same = (
            kept[p] == kept[q] and (d[p, before] == d[q, image]).all() and (d[before, p] == d[image, q]).all()
        )
        return bool(same and q not in image)
