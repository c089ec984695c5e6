"""What an answer's files say of the graph and the machine that they are for."""

from __future__ import annotations

import msgspec

from nmsolve.model.errors import InputError


class Identity(msgspec.Struct):
    """Name and content hash of a graph or machine; an empty hash is not compared."""

    name: str
    hash: str = ""

    def require(self, wanted: Identity, what: str, where: str, more: str = "") -> None:
        """Raise InputError if this is not the one that is ``wanted``.

        Parameters
        ----------
        what : which answer is for another what: "the schedule is for another problem"
        more : what the wanted one comes of
        """
        if self.hash not in ("", wanted.hash):
            raise InputError(f"{what}, {self}", where, f"{wanted}{more}")

    def __str__(self) -> str:
        return f"{self.name!r} with hash {self.hash[:16]}"


class MachineIdentity(Identity, omit_defaults=True):
    """``board`` is the hash of the same machine with no fault and nothing taken; left out where ``hash`` is that."""

    board: str = ""
