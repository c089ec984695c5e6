"""From a case (plain JSON) to the package's objects, and to the files of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from nmsolve.model.graph import LogicGraph, node_kinds
from nmsolve.model.machine import Figure, Machine
from nmsolve.model.mapping.constraints import SideConstraint
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem, default_node_limit

Case = dict[str, Any]


def graph_of(case: Case) -> LogicGraph:
    """The case's messages, one row each, exactly as they stand."""
    rows, sizes = case["rows"], case["sizes"]
    rate = [r["rate"] if r["multicast"] else max(r["weights"], default=0.0) for r in rows]
    return LogicGraph(
        n=case["n"],
        indptr=np.cumsum([0] + [len(r["targets"]) for r in rows]).astype(np.int64),
        targets=np.array([t for r in rows for t in r["targets"]], np.int32),
        weights=np.array([w for r in rows for w in r["weights"]], np.float64),
        source=np.array([r["source"] for r in rows], np.int32),
        multicast=np.array([r["multicast"] for r in rows], bool),
        rate=np.array(rate, np.float64),
        resources=tuple(sizes),
        sizes=np.array(list(sizes.values()), np.int64).T.copy(),
        directed=case["directed"],
        name="case",
        kinds=node_kinds(case["kinds"]) if "kinds" in case else None,
    )


def machine_of(case: Case) -> Machine:
    """The case's machine."""
    m = case["machine"]
    return Machine(
        "m", tuple(m["chips"]), tuple(m["cores"]), m["torus"], m["capacity"], m["link_weight"], m["crossing_weight"],
        tuple(m["faulty_cores"]), tuple(m["taken_cores"]), tuple((a, b) for a, b in m["faulty_links"]),
        {k: Figure(v, "pJ") for k, v in m["energy"].items()},
        distance_matrix=None if m["distances"] is None else np.array(m["distances"], np.float64),
        figures=_figures(m),
        core_capacity={r: np.array(v, np.int64) for r, v in m["core_capacity"].items()},
        held={r: np.array(v, np.int64) for r, v in m["held"].items()},
        kinds_per_core=m.get("kinds_per_core"),
    )  # fmt: skip


def _figures(machine: Case) -> dict[str, Figure]:
    """Figures for the time and the energy of a step, if the case has them."""
    times = machine.get("times", {})
    out = {f"latency_{name}": Figure(value, "ns") for name, value in times.items() if name != "aside"}
    if times:
        out["receives_while_sending"] = Figure(float(times["aside"]))
    if "draw" in machine:
        chip, core, access, update, spike, event = machine["draw"].values()
        out |= {"power_chip": Figure(chip, "mW"), "power_core": Figure(core, "mW")}
        pj = {"neuron_access": access, "neuron_update": update, "spike_out": spike, "synaptic_op": event}
        out |= {f"energy_{name}": Figure(value, "pJ") for name, value in pj.items()}
    return out


def problem_of(case: Case) -> MappingProblem:
    """The case's problem, whether it has a solution or not."""
    graph, machine = graph_of(case), machine_of(case)
    rules = tuple(
        SideConstraint(c["name"], c["kind"], tuple(c["nodes"]), tuple(c["cores"]))
        for c in case["constraints"]
    )
    moved = case["migration"]
    return MappingProblem(
        graph, machine, case["objective"], rules, default_node_limit(graph, machine, case["balance"]),
        None if moved is None else Migration.of(np.array(moved["reference"]), moved["budget"]),
        tuple((name, most) for name, most in case["ceilings"]),
    )  # fmt: skip


def write_files(case: Case, folder: Path) -> list[str] | None:
    """The case as graph, machine, constraints and warm start; options of ``nmsolve map``. None where files cannot say it.

    Where other networks hold something, one with a node on each of their cores is mapped first.
    """
    m = case["machine"]
    dead = {(a, b) for a, b in m["faulty_links"]}
    if m["distances"] is not None or case["ceilings"] or any((b, a) not in dead for a, b in dead):
        return None
    if not _can_hold(m):
        return None
    (folder / "case.json").write_text(json.dumps(_graph_file(case)))
    (folder / "machine.toml").write_text(_machine_file(m, dead))
    out = [
        str(folder / "case.json"),
        "--machine",
        str(folder / "machine.toml"),
        "--objective",
        case["objective"],
    ]
    if any(map(any, m["held"].values())):
        out += ["--occupied", str(_map_first(m, folder))]
    if case["constraints"]:
        rules = [_rule(c, m) for c in case["constraints"]]
        (folder / "constraints.json").write_text(json.dumps({"constraints": rules}))
        out += ["--constraints", str(folder / "constraints.json")]
    if case["balance"] is not None:
        out += ["--balance", str(case["balance"])]
    if case["migration"] is not None:
        cores = "\n".join(map(str, case["migration"]["reference"])) + "\n"
        (folder / "start.part.9").write_text(cores)
        out += ["--warm-start", str(folder / "start.part.9")]
        out += ["--migration-budget", str(case["migration"]["budget"])]
    return out


def _can_hold(m: Case) -> bool:
    """Whether some network can hold what the case says: on sound cores, within what each holds."""
    return all(
        load <= m["core_capacity"].get(r, [m["capacity"][r]] * (p + 1))[p]
        and not (load and p in m["faulty_cores"] + m["taken_cores"])
        for r, loads in m["held"].items()
        for p, load in enumerate(loads)
    )


def _map_first(m: Case, folder: Path) -> Path:
    """Map what other networks hold; the run's folder."""
    at = [p for p, load in enumerate(zip(*m["held"].values(), strict=True)) if any(load)]
    cols = m["chips"][1] * m["cores"][1]
    nodes = {"n": len(at), "sizes": {r: [loads[p] for p in at] for r, loads in m["held"].items()}}
    edges: Case = {"source": [], "target": [], "weight": []}
    content = {"nmsolve": 1, "form": "columns", "graph": {"name": "first"}, "nodes": nodes, "edges": edges}
    pins = [
        {"name": str(p), "kind": "pin", "nodes": [u], "core": [p // cols, p % cols]} for u, p in enumerate(at)
    ]
    (folder / "first.json").write_text(json.dumps(content))
    (folder / "pins.json").write_text(json.dumps({"constraints": pins}))
    command = [
        *(sys.executable, "-m", "nmsolve", "map", str(folder / "first.json"), "--time-limit", "1"),
        *("--machine", str(folder / "machine.toml"), "--constraints", str(folder / "pins.json")),
        *("--out", str(folder / "first")),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / "first"


def _graph_file(case: Case) -> Case:
    """Column form of JSON: nets where nodes send several messages, edges otherwise."""
    rows, n = case["rows"], case["n"]
    nodes: Case = {"n": n, "sizes": case["sizes"]} | ({"kind": case["kinds"]} if "kinds" in case else {})
    out = {
        "nmsolve": 1,
        "form": "columns",
        "directed": case["directed"],
        "graph": {"name": "case"},
        "nodes": nodes,
    }
    if [r["source"] for r in rows] != list(range(n)):
        indptr = [0]
        for r in rows:
            indptr.append(indptr[-1] + len(r["targets"]))
        rate = [r["rate"] if r["multicast"] else max(r["weights"], default=0) for r in rows]
        nets = {
            "source": [r["source"] for r in rows], "target": [t for r in rows for t in r["targets"]], "indptr": indptr,
            "weight": [w for r in rows for w in r["weights"]], "rate": rate,
            "multicast": [r["multicast"] for r in rows],
        }  # fmt: skip
        return out | {"nets": nets}
    nodes |= {"multicast": [r["multicast"] for r in rows], "rate": [r["rate"] for r in rows]}
    edges = [(r["source"], t, w) for r in rows for t, w in zip(r["targets"], r["weights"], strict=True)]
    columns = {k: [e[i] for e in edges] for i, k in enumerate(("source", "target", "weight"))}
    return out | {"edges": columns}


def _machine_file(m: Case, dead: set[tuple[int, int]]) -> str:
    cols = m["chips"][1] * m["cores"][1]

    def at(p: int) -> list[int]:
        return [p // cols, p % cols]

    lines = [
        f"{key} = {json.dumps(m[key])}"
        for key in ("chips", "cores", "torus", "link_weight", "crossing_weight")
    ]
    lines += [f"kinds_per_core = {m['kinds_per_core']}"] if "kinds_per_core" in m else []
    lines += [f"{key} = {json.dumps([at(p) for p in m[key]])}" for key in ("faulty_cores", "taken_cores")]
    lines.append(f"faulty_links = {json.dumps([[at(a), at(b)] for a, b in sorted(dead) if a < b])}")
    for table in ("capacity", "energy"):
        lines += [f"[{table}]"] + [f"{k} = {json.dumps(v)}" for k, v in m[table].items()]
    if "times" in m:
        figures = {k: f'{{ value = {f.value}, unit = "{f.unit}" }}' for k, f in _figures(m).items()}
        lines += ["[figures]"] + [f"{k} = {v}" for k, v in figures.items()]
    for r, own in m["core_capacity"].items():
        for p, amount in enumerate(own):
            lines += ["[[core]]", f"cores = {p}", f"capacity = {{ {r} = {amount} }}"]
    return "\n".join(lines) + "\n"


def _rule(c: Case, m: Case) -> Case:
    cols = m["chips"][1] * m["cores"][1]
    out = {"name": c["name"], "kind": c["kind"], "nodes": c["nodes"]}
    if c["kind"] == "pin":
        out["core"] = [c["cores"][0] // cols, c["cores"][0] % cols]
    elif c["cores"]:
        first, last = min(c["cores"]), max(c["cores"])
        out["rectangle"] = [first // cols, first % cols, last // cols + 1, last % cols + 1]
    return out
