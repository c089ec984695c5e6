"""A key that is twice in one JSON object is ambiguous: every reader refuses it and says where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmsolve.kinds.loading import read_object
from nmsolve.model.errors import InputError
from nmsolve.model.files import LOOKED_THROUGH, decode_json, require_single_keys
from nmsolve.model.formats import load_graph

GRAPH = (
    '{"directed": true, "nodes": [{"id": "a", "neurons": 1}, {"id": "b", %s}], '
    '"edges": [{"source": "a", "target": "b", "weight": 1}]}'
)


@pytest.mark.parametrize(
    ("node", "key"),
    [
        ('"neurons": 1, "neurons": 2', "neurons"),
        ('"neurons": 2, "neurons": 2', "neurons"),
        ('"neurons": 1, "sizes": {"x": 1}, "neuro\\u006es": 2', "neurons"),
    ],
)
def test_a_node_with_a_size_twice(node: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(GRAPH % node)
    with pytest.raises(InputError) as refused:
        load_graph(path)
    assert f"'{key}' twice" in str(refused.value) and "$.nodes[1]" in str(refused.value)


def test_a_report_with_a_bound_twice(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"bound": 1.0, "inputs": {}, "bound": 9.0}')
    with pytest.raises(InputError, match="'bound' twice"):
        read_object(path)


def test_what_is_hidden_by_a_second_key_is_seen_too() -> None:
    with pytest.raises(InputError, match="twice"):
        decode_json(b'{"a": {"b": 1, "b": 2}, "a": 3}', dict[str, Any], "x.json")


def test_long_numbers_and_equal_keys_of_different_objects_are_fine() -> None:
    require_single_keys(b'[{"a": 1}, {"a": %s}, {"a": {"a": NaN}}]' % (b"9" * 5000), "x.json")


@pytest.mark.parametrize("text", [b'{"a": "\\q"}', b"[" * 100_000, b'{"a": "\xff"}'])
def test_what_no_reader_looked_at_is_one_line(text: bytes) -> None:
    with pytest.raises(InputError, match="not JSON"):
        require_single_keys(text, "x.json")


def test_large_files_are_not_looked_through() -> None:
    text = b'{"a": 1, "a": 2, "b": "' + b"x" * LOOKED_THROUGH + b'"}'
    assert decode_json(text, dict[str, Any], "x.json")["a"] == 2
