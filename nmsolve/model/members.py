"""Objects of files that know which of their members were read, so that what was not read can be named."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class Members(dict[str, Any]):
    """An object of JSON; objects in it, and in lists in it, are of this kind, too.

    Who takes all members at once has read all.

    Parameters
    ----------
    content : the members
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__({key: _inner(value) for key, value in content.items()})
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        """Return a member, which is read with that."""
        self._read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a member, which is read with that."""
        self._read.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all members."""
        self._read.update(super().keys())
        return super().__iter__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """Return the names of all members."""
        self._read.update(super().keys())
        return super().keys()  # type: ignore[return-value]

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Return all members."""
        self._read.update(super().keys())
        return super().items()  # type: ignore[return-value]

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Return the values of all members."""
        self._read.update(super().keys())
        return super().values()  # type: ignore[return-value]

    def unread(self) -> list[str]:
        """Return the names of members that were not read, each once; those in other objects behind a dot."""
        names: dict[str, None] = {}
        for key, value in super().items():
            if key not in self._read:
                names[key] = None
                continue
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, Members):
                    names |= dict.fromkeys(f"{key}.{name}" for name in inner.unread())
        return list(names)


def mapped(content: Mapping[str, Any], function: Callable[[Any], Any]) -> Mapping[str, Any]:
    """Return the object with other values; what is read of it is read of :class:`Members` that it was made of."""
    if not isinstance(content, Members):
        return {key: function(value) for key, value in content.items()}
    out = Members({key: function(value) for key, value in dict.items(content)})
    out._read = content._read
    return out


def _inner(value: Any) -> Any:
    if isinstance(value, Mapping) and not isinstance(value, Members):
        return Members(value)
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        return [_inner(one) for one in value]
    return value
