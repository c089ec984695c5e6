"""Which members of an object of a file were read."""

from __future__ import annotations

import pickle

import pytest

from nmsolve.model.members import Members, mapped

CONTENT = {"a": 1, "inner": {"b": 2, "c": 3}, "rows": [{"d": 4}, {"d": 5, "e": 6}], "list": [1, 2]}


def test_members_are_the_same_as_in_a_dict() -> None:
    members = Members(CONTENT)
    assert members == CONTENT and isinstance(members, dict)
    assert pickle.loads(pickle.dumps(members)) == CONTENT


def test_what_was_read_is_not_named() -> None:
    members = Members(CONTENT)
    assert list(members.unread()) == ["a", "inner", "rows", "list"]
    assert members["a"] == members.get("a") == 1 and members.get("none") is None
    assert members["inner"]["b"] == 2 and [row["d"] for row in members["rows"]] == [4, 5]
    assert list(members.unread()) == ["inner.c", "rows.e", "list"]


@pytest.mark.parametrize(
    "take", [list, dict, dict.keys, dict.items, lambda m: {**m}, lambda m: [*m.values()]]
)
def test_who_takes_all_has_read_all(take) -> None:
    members = Members({"a": 1, "b": [1.0]})
    if take in (dict.keys, dict.items):
        take = {dict.keys: lambda m: m.keys(), dict.items: lambda m: m.items()}[take]
    take(members)
    assert list(members.unread()) == []


def test_a_copy_with_other_values_is_read_for_the_first() -> None:
    members = Members({"a": 1, "b": 2})
    other = mapped(members, lambda value: value + 1)
    assert other["a"] == 2 and list(members.unread()) == ["b"]
    assert mapped({"a": 1}, str) == {"a": "1"}
