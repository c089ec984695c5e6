"""Placement files of onnx-mlir, to write and to read: which operators are on the host and which on the accelerator.

Written from onnx-mlir's documentation (``docs/DevicePlacement-NNPA.md``, ``docs/JsonConfigFile-NNPA.md``). Its older versions
read the key ``device_placement``, those of 2026 ``nnpa_ops_config``; the file that is written has both. Operators are meant by
regular expressions that match their whole type and name; the first that matches counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nmsolve.model.contained import Allowance, Reply, one_reply
from nmsolve.model.errors import InputError
from nmsolve.model.files import decode_json

#: Characters that mean something in regular expressions of ECMAScript.
SPECIAL = "^$\\.*+?()[]{}|"
#: Devices that onnx-mlir knows; the empty one: the compiler decides.
DEVICES = ("cpu", "nnpa", "")
#: Seconds for trying all patterns on all operators: a pattern may take for ever.
SECONDS = 20.0


class OldRule(msgspec.Struct):
    """An entry of ``device_placement``."""

    device: str
    node_type: str
    onnx_node_name: str = ".*"


class _Match(msgspec.Struct):
    node_type: str
    onnx_node_name: str = ".*"
    inputs: dict[str, msgspec.Raw] = {}
    outputs: dict[str, msgspec.Raw] = {}


class _Rewrite(msgspec.Struct):
    device: str | None = None


class _Pattern(msgspec.Struct):
    match: _Match
    rewrite: _Rewrite


class _NewRule(msgspec.Struct):
    pattern: _Pattern


class PlacementFile(msgspec.Struct):
    """The parts of the file that say devices."""

    device_placement: list[OldRule] = []
    nnpa_ops_config: list[_NewRule] = []


class Named(NamedTuple):
    """An operator as rules mean it: its type without domain, and its name."""

    kind: str
    name: str


def placement_text(nodes: Sequence[tuple[Any, str]], hosts: Sequence[str]) -> bytes:
    """Return the file for these nodes: ``cpu`` for those on a host, ``nnpa`` for others. Constants are on no device.

    Parameters
    ----------
    nodes : every ``NodeProto`` with its unit; their names differ
    """
    old, new = [], []
    for proto, unit in nodes:
        if proto.op_type == "Constant":
            continue
        device = "cpu" if unit in hosts else "nnpa"
        match = {"node_type": f"onnx.{_escaped(proto.op_type)}", "onnx_node_name": _escaped(proto.name)}
        old.append({"device": device, **match})
        new.append({"pattern": {"match": match, "rewrite": {"device": device}}})
    content = {"device_placement": old, "nnpa_ops_config": new}
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def read_rules(data: bytes, path: str | Path) -> list[OldRule]:
    """Return the rules of a file in the order in which they count.

    Raises
    ------
    InputError : not of the form, a condition on tensors, or a device that onnx-mlir does not have
    """
    file = decode_json(data, PlacementFile, path)
    rules = []
    for k, new in enumerate(file.nnpa_ops_config):
        where, match = f"{path}: $.nnpa_ops_config[{k}]", new.pattern.match
        if match.inputs or match.outputs:
            raise InputError("a condition on tensors", where, "node_type and onnx_node_name only")
        if new.pattern.rewrite.device is not None:  # others are about quantization
            rules.append(OldRule(new.pattern.rewrite.device, match.node_type, match.onnx_node_name))
    rules = rules or file.device_placement
    if not rules:
        raise InputError("no rule that names a device", str(path), "device_placement or nnpa_ops_config")
    for k, rule in enumerate(rules):
        if rule.device not in DEVICES:
            raise InputError(f"device {rule.device!r}", f"{path}: rule {k}", "cpu, nnpa, or nothing")
    return rules


def matched(rules: Sequence[OldRule], operators: Sequence[Named], path: str | Path) -> list[str]:
    """Return the device that the first matching rule gives each operator, "" where there is none or it leaves it open.

    Patterns of others are tried in a process of its own, as one may take for ever.

    Raises
    ------
    InputError : a pattern that is none, or that takes too long
    """
    work = partial(_tried, rules, operators, str(path))
    found: list[str] = one_reply(work, path, Allowance.of(path, SECONDS)).value
    return found


def _tried(rules: Sequence[OldRule], operators: Sequence[Named], where: str) -> Reply:
    exact: dict[tuple[str, str], int] = {}
    patterns: list[tuple[int, re.Pattern[str], re.Pattern[str]]] = []
    for k, rule in enumerate(rules):
        kind, name = _plain(rule.node_type), _plain(rule.onnx_node_name)
        if kind is not None and name is not None:
            exact.setdefault((kind, name), k)
            continue
        try:
            patterns.append((k, re.compile(rule.node_type), re.compile(rule.onnx_node_name)))
        except (re.error, OverflowError, RecursionError) as error:
            raise InputError(f"rule {k} is no regular expression: {error}", where, "a pattern") from None
    out = []
    for operator in operators:
        kind = f"onnx.{operator.kind}"
        best = exact.get((kind, operator.name), len(rules))
        for k, of_kind, of_name in patterns:
            if k > best:
                break
            if of_kind.fullmatch(kind) and of_name.fullmatch(operator.name):
                best = k
                break
        out.append(rules[best].device if best < len(rules) else "")
    return Reply(out, {})


def _escaped(text: str) -> str:
    """Return a regular expression that matches only this text."""
    return "".join("\\" + c if c in SPECIAL else c for c in text)


def _plain(pattern: str) -> str | None:
    """Return the only text that a pattern matches, None if it may match others. A dot alone counts as itself in ``onnx.Relu``."""
    head = "onnx." if pattern.startswith("onnx.") else ""
    text = re.sub(r"\\([" + re.escape(SPECIAL) + r"])", "\0", pattern[len(head) :])
    if any(c in SPECIAL for c in text):
        return None
    return head + re.sub(r"\\(.)", r"\1", pattern[len(head) :])
