"""Random tiny mapping problems as plain JSON, a function of one seed each.

A case: ``n`` nodes; ``rows`` (messages: ``source``, ``targets``, ``weights``, ``multicast``, ``rate``); ``directed``;
``sizes`` (resource -> column); ``machine``; ``objective``; ``constraints``; ``balance``; ``migration``
(``reference``, ``budget``) or None; ``ceilings`` ((objective, value) pairs); ``classes``, words that say what is special;
``kinds`` in some, one number per node, with ``kinds_per_core`` of ``machine``.
One case in three has cores that are not alike (``diff_unlike``).
"""

from __future__ import annotations

import random
from typing import Any

from diff_reference import DRAWN, Board, Reference
from diff_unlike import make_unlike

Case = dict[str, Any]
OBJECTIVES = (
    "hops", "multicast-hops", "cut", "connectivity", "energy", "max-link", "step-time", "step-energy", "energy-delay", "reward",
)  # fmt: skip
#: Those that look at the time of a step.
STEPS = ("step-time", "step-time", "step-energy", "energy-delay")
#: Energy figures of presets (docs/machines.md): Loihi, SpiNNaker 1; and one with every key.
TABLES: tuple[dict[str, float], ...] = (
    {"message": 111, "link_x": 3, "link_y": 4.2},
    {"router": 1000},
    {"message": 1.5, "router": 0.5, "link_x": 1, "link_y": 2.25, "crossing": 7},
    {"link_y": 2.0},
)
#: ns, for the step time: what costs much and little changes places.
TIMES: tuple[tuple[float, ...], ...] = (
    (6, 3.7, 30, 5.1, 16, 3.8, 0.29, 1800),
    (1, 0, 2, 3, 1, 0.5, 8, 0),
    (0, 2, 0, 0, 5, 1, 3, 1),
)
#: mW and pJ, for the energy of a step: chip, core in use, access, update, firing, event.
DRAWS: tuple[tuple[float, ...], ...] = (
    (29, 0, 51.2, 21.6, 69.3, 35.5),
    (0.5, 2, 0, 1, 1, 0.25),
    (0, 1, 0, 0, 0, 0),
    (40, 3, 1, 1, 1, 1),
)
#: Most mappings onto usable cores that a case may have: all of them are looked at.
MOST = 4000
#: Share of cases about the step time, drawn apart: cases of other seeds stay what they were.
TIMED = 1 / 8
#: Share of cases whose cores are not alike.
UNLIKE = 1 / 3
#: Share of cases whose nodes are of kinds, drawn apart.
KINDS = 1 / 6


def make_case(seed: int) -> Case:
    """The case of a seed."""
    rng = random.Random(f"case {seed}")
    steps = random.Random(f"steps {seed}")
    timed = steps.choice(STEPS) if steps.random() < TIMED else ""
    while True:
        case = _draw(rng, timed)
        if case is None:
            continue
        if rng.random() < UNLIKE:
            make_unlike(rng, case)
        _kinds(random.Random(f"kinds {seed}"), case)
        return case | {"seed": seed}


def _kinds(rng: random.Random, case: Case) -> None:
    """Kinds of nodes and a limit of them per core, sometimes one that cannot bind."""
    if rng.random() < KINDS:
        count = rng.randint(1, 4)
        case["kinds"] = [rng.randrange(count) for _ in range(case["n"])]
        case["machine"]["kinds_per_core"] = rng.choice([1, 1, 2, 3])
        case["classes"].append("kinds")


def _draw(rng: random.Random, timed: str) -> Case | None:
    """A case, its objective ``timed`` if that is one; None if it does not hold together."""
    classes: list[str] = []
    objective = rng.choice([o for o in OBJECTIVES if o not in STEPS])
    objective = timed or objective
    machine = _machine(rng, objective, classes)
    board = Board(machine, "hops")
    if not Board(machine, "energy").defined:
        if objective in ("energy", "step-energy", "energy-delay"):
            return None  # no route is the least there: the package refuses
        classes.append("no energy")
    usable = [p for p in range(board.size) if p not in machine["faulty_cores"] + machine["taken_cores"]]
    n = rng.randint(2, 6)
    if not usable or not board.connected(usable) or len(usable) ** n > MOST:
        return None
    case: Case = {
        "n": n, "rows": [], "directed": True, "sizes": {}, "machine": machine, "objective": objective,
        "constraints": [], "balance": None, "migration": None, "ceilings": [], "classes": classes,
    }  # fmt: skip
    _traffic(rng, case)
    if timed:
        names = (
            "neuron_access",
            "neuron_update",
            "spike_out",
            "axon_out",
            "axon_in",
            "synaptic_op",
            "link_message",
            "barrier",
        )
        machine["times"] = dict(zip(names, rng.choice(TIMES), strict=True)) | {"aside": rng.random() < 0.5}
        if not case["directed"]:
            return None  # it does not say who sends
        if timed != "step-time":
            machine["energy"] = machine["energy"] or TABLES[0]
            machine["draw"] = dict(zip(DRAWN, rng.choice(DRAWS), strict=True))
    _limits(rng, case, len(usable))
    if rng.random() < 0.45:
        _constraints(rng, case, board.size)
    if rng.random() < 0.12:
        reference = [rng.randrange(board.size) for _ in range(n)]
        case["migration"] = {"reference": reference, "budget": rng.randint(0, n - 1)}
        classes.append("migration")
    if rng.random() < 0.12 and objective not in ("step-time", "step-energy", "energy-delay", "reward"):
        _ceilings(rng, case, usable)
    return case


def _machine(rng: random.Random, objective: str, classes: list[str]) -> Case:
    shape = rng.choice([(1, 2), (1, 3), (2, 2), (1, 4), (2, 3), (3, 2), (1, 5), (2, 2), (2, 4), (3, 3)])
    chips, cores = (1, 1), shape
    axis = rng.randrange(2)
    if rng.random() < 0.3 and shape[axis] % 2 == 0:
        chips = (2, 1) if axis == 0 else (1, 2)
        cores = (shape[0] // chips[0], shape[1] // chips[1])
        classes.append("chips")
    size = shape[0] * shape[1]
    machine: Case = {
        "chips": list(chips), "cores": list(cores), "torus": rng.random() < 0.2,
        "link_weight": rng.choice([1, 1, 1, 2, 0.5]), "crossing_weight": rng.choice([1, 3, 2.5]),
        "capacity": {}, "faulty_cores": [], "taken_cores": [], "faulty_links": [],
        "energy": rng.choice(TABLES) if rng.random() < 0.6 else {}, "distances": None, "core_capacity": {}, "held": {},
    }  # fmt: skip
    if machine["torus"]:
        classes.append("torus")
    if rng.random() < 0.15 and objective not in ("max-link", *STEPS, "reward"):
        classes.append("matrix")
        top = rng.choice([3, 9])
        d = [
            [rng.choice([rng.randint(0, top), rng.randint(1, 8) / 4]) for _ in range(size)]
            for _ in range(size)
        ]
        if rng.random() < 0.5:
            d = [[d[min(i, j)][max(i, j)] for j in range(size)] for i in range(size)]
        for i in range(size):
            d[i][i] = 0
        return machine | {"chips": [1, 1], "cores": [1, size], "torus": False, "distances": d}
    for kind in ("faulty_cores", "taken_cores"):
        if rng.random() < 0.15:
            machine[kind] = sorted(rng.sample(range(size), rng.randint(1, 2)))
            classes.append(kind.replace("_", " "))
    if rng.random() < 0.2:
        links = sorted(Board(machine, "hops").cost)
        dead = rng.sample(links, min(len(links), rng.randint(1, 3)))
        if rng.random() < 0.7:
            dead += [(b, a) for a, b in dead]
        machine["faulty_links"] = sorted({*map(tuple, dead)})
        machine["faulty_links"] = [list(v) for v in machine["faulty_links"]]
        classes.append("faulty links")
    return machine


def _weight(rng: random.Random, kind: str) -> float:
    whole = rng.randint(0, 8)
    if kind == "whole":
        return whole
    if kind == "quarters":
        return whole / 4
    if kind == "huge":
        return float(whole * 2 ** rng.randint(20, 40))
    if kind == "tiny":
        return whole * rng.random() * 1e-7
    if kind == "mixed":
        return rng.choice([whole, rng.random(), 1e6 * rng.random(), 1e-6 * rng.random()])
    return 5 * rng.random()


def _traffic(rng: random.Random, case: Case) -> None:
    n, classes = case["n"], case["classes"]
    kind = rng.choice(["whole", "whole", "whole", "fractions", "quarters", "huge", "tiny", "mixed"])
    classes.append("weights " + kind)
    form = rng.choice(["edges", "edges", "multicast", "mixed rows", "nets", "undirected"])
    classes.append(form)
    density = rng.choice([0.3, 0.6, 0.9])
    sources = list(range(n))
    if form == "nets":  # several messages per node, in any order of senders
        sources = [rng.randrange(n) for _ in range(rng.randint(1, 2 * n))]
    for s in sources:
        targets = [
            t for t in range(n) if t != s and rng.random() < density and (form != "undirected" or t > s)
        ]
        weights = [_weight(rng, kind) for _ in targets]
        many = form == "multicast" or (form in ("mixed rows", "nets") and rng.random() < 0.6)
        rate = max(weights, default=0)
        if many and rng.random() < 0.5:
            rate = _weight(rng, kind)
        case["rows"].append(
            {"source": s, "targets": targets, "weights": weights, "multicast": many, "rate": rate}
        )
    case["directed"] = form != "undirected"


def _limits(rng: random.Random, case: Case, usable: int) -> None:
    n, classes, capacity = case["n"], case["classes"], case["machine"]["capacity"]
    kind = rng.choice(["one", "balance", "sizes", "sizes", "two resources", "none"])
    case["sizes"] = {"neurons": [1] * n}
    if kind == "one" and n <= usable:
        case["balance"] = 0
        classes.append("one per core")
    elif kind == "balance":
        case["balance"] = rng.choice([0, 0.1, 0.5, 1, 3])
        classes.append("balance")
    elif kind != "none":
        names = ["neurons"] if kind == "sizes" else ["neurons", "synapses"]
        for name in names:
            sizes = [rng.randint(0 if name == "synapses" else 1, 4) for _ in range(n)]
            case["sizes"][name] = sizes
            mean = sum(sizes) / usable
            capacity[name] = max(max(sizes) - (rng.random() < 0.03), round(mean * rng.uniform(0.95, 2.5)))
        if rng.random() < 0.2:
            case["balance"] = rng.choice([0.2, 1])
        classes.append(kind)
    if rng.random() < 0.12:
        capacity[rng.choice(["axons_in", "axons_out"])] = rng.randint(1, 2 * n)
        classes.append("axons")
    if rng.random() < 0.06 and case["machine"]["distances"] is None:
        capacity["table_entries"] = rng.randint(1, 4)
        classes.append("table entries")


def _constraints(rng: random.Random, case: Case, cores: int) -> None:
    n = case["n"]
    for k in range(rng.randint(1, 3)):
        kind = rng.choice(["pin", "region", "forbid", "together", "together", "apart"])
        if kind == "together" and case["objective"] in STEPS:
            kind = "apart"
        nodes = rng.sample(
            range(n), rng.randint(2, min(3, n)) if kind in ("together", "apart") else rng.randint(1, 2)
        )
        at: list[int] = []
        if kind == "pin":
            at = [rng.randrange(cores)]
        elif kind in ("region", "forbid"):
            at = _rectangle(rng, case["machine"])
        case["constraints"].append({"name": f"{kind} {k}", "kind": kind, "nodes": nodes, "cores": at})
        case["classes"].append(kind)


def _rectangle(rng: random.Random, machine: Case) -> list[int]:
    rows, cols = machine["chips"][0] * machine["cores"][0], machine["chips"][1] * machine["cores"][1]
    top, left = rng.randrange(rows), rng.randrange(cols)
    bottom, right = rng.randint(top + 1, rows), rng.randint(left + 1, cols)
    return [r * cols + c for r in range(top, bottom) for c in range(left, right)]


def _ceilings(rng: random.Random, case: Case, usable: list[int]) -> None:
    """A ceiling between what some mapping has and a little more, so that it binds often and rounding does not decide."""
    others = [o for o in OBJECTIVES if o not in (case["objective"], *STEPS, "reward")]
    if case["machine"]["distances"] is not None:
        others.remove("max-link") if "max-link" in others else None
    if "no energy" in case["classes"]:
        others.remove("energy")
    reference = Reference(case)
    name = rng.choice(others)
    core = tuple(rng.choice(usable) for _ in range(case["n"]))
    value = float(reference.value(core, name))
    whole = "weights whole" in case["classes"] and value == int(value)
    case["ceilings"] = [[name, value if whole else value * 1.03]]
    case["classes"].append("ceiling")
