"""What an answer's files say of the graph and the machine that they are for."""

from __future__ import annotations

import msgspec


class Identity(msgspec.Struct):
    """Name and content hash of a graph or machine; an empty hash is not compared."""

    name: str
    hash: str = ""


class MachineIdentity(Identity, omit_defaults=True):
    """``board`` is the hash of the same machine with no fault and nothing taken; left out where ``hash`` is that."""

    board: str = ""
