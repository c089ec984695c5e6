"""Networks of PyNN, NEST and Brian 2 as they are in memory become graphs: with the real packages where they are installed.

NEST is too large for every test run, and Brian 2.9 does not load beside NumPy 2.4: objects that answer alike stand for them, in
the form that the real ones were seen to have (NEST 3.10, Brian 2.9).
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nmsolve
from nmsolve.model.errors import InputError, InputWarning
from nmsolve.model.graph import LogicGraph


def package(name: str) -> Any:
    """The module, or the test is skipped."""
    try:
        return importlib.import_module(name)
    except (ImportError, AttributeError) as error:
        pytest.skip(f"{name} cannot be imported ({error})")


def pairs(graph: LogicGraph) -> set[tuple[object, object]]:
    """Ids at both ends of every edge."""
    return {
        (graph.node_id(a), graph.node_id(b))
        for a, b in zip(graph.edge_source.tolist(), graph.targets.tolist(), strict=True)
    }


def kinds(graph: LogicGraph) -> list[object]:
    assert graph.kinds is not None
    return [graph.kinds.names[k] for k in graph.kinds.of.tolist()]


# ---- PyNN ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["mock", "nest", "brian2"])
def pynn(request: pytest.FixtureRequest) -> Any:
    """Populations ``exc``, ``inh`` (cells that differ), ``more`` (cells as in exc) and projections, simulated 100 ms."""
    simulator = package(f"pyNN.{request.param}")
    simulator.setup(timestep=0.1)
    cell = simulator.IF_cond_exp
    exc = simulator.Population(5, cell(tau_m=15.0, i_offset=2.0), label="exc")
    inh = simulator.Population(3, cell(tau_m=[1.0, 2.0, 3.0], i_offset=2.0), label="inh")
    more = simulator.Population(2, cell(tau_m=15.0, i_offset=2.0), label="more")
    inputs = simulator.Population(2, simulator.SpikeSourcePoisson(rate=100.0), label="in")
    synapse = simulator.StaticSynapse(weight=0.01, delay=1.0)
    connect = simulator.AllToAllConnector()
    projections = [
        simulator.Projection(exc[2:5], inh, connect, synapse),
        simulator.Projection(inh, exc, connect, synapse),
        simulator.Projection(exc, exc, connect, synapse),
        simulator.Projection(inputs, exc, connect, synapse),
        simulator.Projection(inputs, exc, connect, synapse),
    ]
    populations = [exc, inh, more, inputs]
    for population in populations:
        population.record("spikes")
    simulator.run(100.0)
    return SimpleNamespace(
        name=request.param,
        simulator=simulator,
        populations=populations,
        projections=projections,
        synapse=synapse,
    )


def test_a_network_of_pynn(pynn: Any) -> None:
    graph = nmsolve.from_pynn(*pynn.projections, pynn.populations[2], rates=True, step=10.0)
    exc, inh, inputs = ([f"{p}/{k}" for k in range(n)] for p, n in (("exc", 5), ("inh", 3), ("in", 2)))
    assert graph.ids is not None and set(graph.ids) == {*exc, *inh, *inputs, "more/0", "more/1"}
    wanted = {(a, b) for a in exc[2:] for b in inh} | {(a, b) for a in inh for b in exc}
    wanted |= {(a, b) for a in exc for b in exc if a != b} | {(a, b) for a in inputs for b in exc}
    assert pairs(graph) == wanted
    synapses = dict(zip(graph.ids, graph.sizes[:, 1].tolist(), strict=True))
    assert synapses == dict.fromkeys(exc, 3 + 5 + 4) | dict.fromkeys(inh, 3) | dict.fromkeys(
        [*inputs, "more/0", "more/1"], 0
    )
    by_id = dict(zip(graph.ids, kinds(graph), strict=True))
    assert by_id["exc/0"] == by_id["more/1"] != by_id["inh/0"] and by_id["in/0"] == "SpikeSourcePoisson"
    for population in pynn.populations:
        counts = population.get_spike_counts()
        for k, cell in enumerate(population.all_cells):
            place = graph.index_of[f"{population.label}/{k}"]
            assert graph.rate[place] == pytest.approx(counts[cell] / 0.1 * 0.01)
    assert np.array_equal(graph.weights, graph.rate[graph.edge_source]) and graph.multicast.all()


def test_networks_and_assemblies_of_pynn(pynn: Any) -> None:
    from pyNN.network import Network

    whole = nmsolve.from_pynn(Network(*pynn.populations, *pynn.projections))
    assert (
        whole.hash == nmsolve.from_pynn([*pynn.populations, *pynn.projections]).hash
        and (whole.rate == 1).all()
    )
    both = pynn.simulator.Assembly(pynn.populations[0], pynn.populations[2])
    projection = pynn.simulator.Projection(
        both, pynn.populations[1], pynn.simulator.AllToAllConnector(), pynn.synapse
    )
    if pynn.name == "brian2":
        with pytest.raises(InputError, match="does not list the connections"):
            nmsolve.from_pynn(projection)
    else:
        graph = nmsolve.from_pynn(projection)
        sources = {a for a, _ in pairs(graph)}
        assert graph.m == 21 and sources == {*(f"exc/{k}" for k in range(5)), "more/0", "more/1"}


def test_gap_junctions_of_pynn_are_no_traffic() -> None:
    """The mock simulator has none of its own: a type of that name stands for that of NEURON."""
    simulator = package("pyNN.mock")
    gaps = type("ElectricalSynapse", (simulator.StaticSynapse,), {})
    simulator.setup()
    cells = simulator.Population(3, simulator.IF_cond_exp(), label="exc")
    ways = [
        simulator.Projection(cells, cells, connector, synapse(weight=0.01, delay=1.0))
        for connector, synapse in (
            (simulator.AllToAllConnector(), simulator.StaticSynapse),
            (simulator.OneToOneConnector(), gaps),
        )
    ]
    with pytest.warns(
        InputWarning, match="3 connections are left out: their synapse type is ElectricalSynapse"
    ):
        graph = nmsolve.from_pynn(*ways)
    assert graph.sizes[:, 1].sum() == 9 and graph.m == 6


def test_what_is_no_network_of_pynn_is_refused(pynn: Any) -> None:
    with pytest.raises(InputError, match="a str is no network; expected populations, projections"):
        nmsolve.from_pynn("net")
    with pytest.raises(InputError, match="the module pyNN"):
        nmsolve.from_pynn(pynn.simulator)
    with pytest.raises(InputError, match="there are no neurons"):
        nmsolve.from_pynn()
    quiet = pynn.simulator.Population(2, pynn.simulator.IF_cond_exp(), label="quiet")
    with pytest.raises(InputError, match="spikes of 2 cells of 'quiet' were not recorded"):
        nmsolve.from_pynn(quiet, pynn.populations[0], rates=True)
    same = pynn.simulator.Population(2, pynn.simulator.IF_cond_exp(), label="exc")
    with pytest.raises(InputError, match="two populations are called 'exc'"):
        nmsolve.from_pynn(same, pynn.populations[0])


# ---- NEST ---------------------------------------------------------------------------------------------------


class Nodes:
    """What ``get`` of NEST's collections answers: one value per node, in tuples; one alone for one key of one node."""

    def __init__(self, numbers: list[int], columns: dict[str, list[object]]) -> None:
        self.numbers, self.columns = numbers, columns

    def get(self, keys: str | list[str]) -> Any:
        if isinstance(keys, str):
            column = self.columns[keys]
            return column[0] if len(column) == 1 else tuple(column)
        return {key: self.get(key) for key in keys}

    def tolist(self) -> list[int]:
        return self.numbers

    def __len__(self) -> int:
        return len(self.numbers)


def fake_nest() -> SimpleNamespace:
    """Three neurons, two others, a generator, a recorder that all are connected to; 200 ms. All connections are static synapses
    but those in ``models``, by their place."""
    models = ["iaf"] * 3 + ["parrot"] * 2 + ["poisson_generator", "spike_recorder"]
    sorts = ["neuron"] * 5 + ["stimulator", "recorder"]
    ends = [(1, 4), (2, 4), (2, 4), (4, 1), (5, 5), (6, 1), *((k, 7) for k in range(1, 6))]

    def some(numbers: list[int]) -> Nodes:
        at = [k - 1 for k in numbers]
        return Nodes(numbers, {"model": [models[k] for k in at], "element_type": [sorts[k] for k in at]})

    synapses: dict[int, str] = {}

    def connections(target: Any = None) -> Nodes:
        kept = [k for k, (_, b) in enumerate(ends) if target is None or b in target.tolist()]
        columns = {"source": [ends[k][0] for k in kept], "target": [ends[k][1] for k in kept]}
        return Nodes(kept, columns | {"synapse_model": [synapses.get(k, "static_synapse") for k in kept]})

    events = {"senders": np.array([1, 1, 4, 1]), "times": np.array([1.0, 2, 3, 4])}
    recorder = Nodes(
        [7], {"events": [events], "start": [0.0], "stop": [1.8e308], "element_type": ["recorder"]}
    )
    module = ModuleType("nest")
    module.GetNodes = lambda: some(list(range(1, 8)))  # type: ignore[attr-defined]
    module.GetConnections = connections  # type: ignore[attr-defined]
    module.biological_time = 200.0  # type: ignore[attr-defined]
    module.NodeCollection = some  # type: ignore[attr-defined]
    module.GetDefaults = lambda model: {"has_delay": model != "my_gaps"}  # type: ignore[attr-defined]
    return SimpleNamespace(module=module, some=some, recorder=recorder, models=synapses)


def test_a_network_of_nest_by_models_and_by_populations(monkeypatch: pytest.MonkeyPatch) -> None:
    nest = fake_nest()
    monkeypatch.setitem(sys.modules, "nest", nest.module)
    graph = nmsolve.from_nest(recorder=nest.recorder)
    assert graph.ids == ("iaf/0", "iaf/1", "iaf/2", "parrot/0", "parrot/1")
    assert pairs(graph) == {("iaf/0", "parrot/0"), ("iaf/1", "parrot/0"), ("parrot/0", "iaf/0")}
    assert graph.sizes[:, 1].tolist() == [1, 0, 0, 3, 1] and graph.rate.tolist() == [15, 0, 0, 5, 0]
    graph = nmsolve.from_nest({"b": nest.some([4, 5]), "a": nest.some([1, 2])})
    assert graph.ids == ("b/0", "b/1", "a/0", "a/1") and kinds(graph) == ["b", "b", "a", "a"]
    assert pairs(graph) == {("a/0", "b/0"), ("a/1", "b/0"), ("b/0", "a/0")} and (graph.rate == 1).all()


@pytest.mark.parametrize("model", [
    "gap_junction", "my_gaps", "rate_connection_instantaneous", "rate_connection_delayed_lbl", "sic_connection",
    "diffusion_connection", "eprop_learning_signal_connection_bsshslm_2020",
])  # fmt: skip
def test_connections_of_nest_without_spikes_are_no_traffic(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """``my_gaps`` is a copy of ``gap_junction``, known by having no delay."""
    nest = fake_nest()
    monkeypatch.setitem(sys.modules, "nest", nest.module)
    nest.models |= {0: model, 3: model}
    with pytest.warns(InputWarning, match=f"2 connections are left out: synapse model {model}"):
        graph = nmsolve.from_nest()
    assert pairs(graph) == {("iaf/1", "parrot/0")} and graph.sizes[:, 1].tolist() == [0, 0, 0, 2, 1]


def test_connections_of_generators_and_of_neurons_in_no_population_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nest = fake_nest()
    monkeypatch.setitem(sys.modules, "nest", nest.module)
    with pytest.warns(
        InputWarning, match=r"1 connection is left out: .* not in the graph \(poisson_generator\)"
    ):
        nmsolve.from_nest(recorder=nest.recorder)
    with pytest.warns(InputWarning, match=r"4 connections .* \(iaf, parrot, poisson_generator\)"):
        nmsolve.from_nest({"a": nest.some([1, 4])})


def test_wrong_populations_and_recorders_of_nest_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nest = fake_nest()
    monkeypatch.setitem(sys.modules, "nest", nest.module)
    with pytest.raises(InputError, match="population 'g' has a stimulator"):
        nmsolve.from_nest({"g": nest.some([1, 6])})
    with pytest.raises(InputError, match="node 2 is in two populations"):
        nmsolve.from_nest({"a": nest.some([1, 2]), "b": nest.some([2, 3])})
    deaf = Nodes([6], nest.recorder.columns)
    with pytest.raises(InputError, match="the recorder does not hear 5 neurons, 1 for one"):
        nmsolve.from_nest(recorder=deaf)
    nest.module.biological_time = 0.0
    with pytest.raises(InputError, match="0 seconds were simulated"):
        nmsolve.from_nest(recorder=nest.recorder)
    monkeypatch.setitem(sys.modules, "nest", None)
    with pytest.raises(InputError, match="nest has not been imported"):
        nmsolve.from_nest()


def test_a_network_of_the_real_nest() -> None:
    nest = package("nest")
    nest.ResetKernel()
    exc, inh = nest.Create("iaf_psc_alpha", 6), nest.Create("iaf_psc_alpha", 3, {"tau_m": 5.0})
    noise = nest.Create("poisson_generator", params={"rate": 90000.0})
    recorder = nest.Create("spike_recorder")
    nest.Connect(exc, inh, {"rule": "fixed_indegree", "indegree": 4})
    nest.Connect(inh, exc, syn_spec={"weight": -2.0})
    nest.Connect(noise, exc, syn_spec={"weight": 20.0})
    nest.Connect(exc + inh, recorder)
    nest.Simulate(200.0)
    graph = nmsolve.from_nest({"inh": inh, "exc": exc}, recorder=recorder)
    made = nest.GetConnections(exc + inh, exc + inh)
    called = {
        k: f"{name}/{i}" for name, nodes in (("inh", inh), ("exc", exc)) for i, k in enumerate(nodes.tolist())
    }
    assert pairs(graph) == {
        (called[a], called[b]) for a, b in zip(made.get("source"), made.get("target"), strict=True)
    }
    assert graph.sizes[:, 1].tolist() == [4] * 3 + [3] * 6
    fired = np.bincount(recorder.events["senders"], minlength=10)[1:]
    assert graph.rate == pytest.approx(np.concatenate([fired[6:], fired[:6]]) / 0.2) and fired.any()
    by_model = nmsolve.from_nest()
    assert by_model.n == 9 and by_model.m == graph.m and kinds(by_model) == ["iaf_psc_alpha"] * 9


# ---- Brian 2 ------------------------------------------------------------------------------------------------


def brian(kind: str, base: str | None = None, **values: object) -> Any:
    """An object of a class of this name that says to be Brian's."""
    bases = () if base is None else (type(base, (), {"__module__": "brian2.fake"}),)
    one = type(kind, bases, {"__module__": "brian2.fake"})()
    vars(one).update({"_pathways": ["pre"]} | values if kind == "Synapses" else values)
    return one


def fake_brian() -> SimpleNamespace:
    exc = brian("NeuronGroup", "SpikeSource", name="exc", N=4)
    part = brian("Subgroup", "SpikeSource", name="exc_sub", N=2, start=1, source=exc)
    source = brian("PoissonGroup", "SpikeSource", name="inp", N=2)
    first = brian(
        "Synapses", name="s", source=source, target=part, i=np.array([0, 1, 1]), j=np.array([0, 1, 1])
    )
    again = brian("Synapses", name="r", source=exc, target=exc, i=np.array([0, 3, 2]), j=np.array([1, 0, 2]))
    clock = SimpleNamespace(t=np.array(0.5))
    monitors = [
        brian("SpikeMonitor", name=f"m{k}", source=group, count=np.array(count), clock=clock)
        for k, (group, count) in enumerate(((exc, [1, 2, 0, 4]), (source, [5, 0])))
    ]
    network = brian("Network", objects=[first, again, exc, source, *monitors], name="net")
    return SimpleNamespace(
        network=network, exc=exc, source=source, first=first, again=again, monitors=monitors
    )


def test_a_network_of_brian() -> None:
    fake = fake_brian()
    graph = nmsolve.from_brian2(fake.network, rates=True)
    assert graph.ids == ("exc/0", "exc/1", "exc/2", "exc/3", "inp/0", "inp/1")
    assert kinds(graph) == ["exc"] * 4 + ["inp"] * 2
    assert pairs(graph) == {("inp/0", "exc/1"), ("inp/1", "exc/2"), ("exc/0", "exc/1"), ("exc/3", "exc/0")}
    assert graph.sizes[:, 1].tolist() == [1, 2, 3, 0, 0, 0] and graph.rate.tolist() == [2, 4, 0, 8, 10, 0]
    assert nmsolve.from_brian2(fake.first, fake.again).m == graph.m


def test_synapses_of_brian_without_a_pathway_are_no_traffic() -> None:
    """A gap junction is a summed variable: Brian 2.9 gives such synapses an empty list of pathways."""
    fake = fake_brian()
    fake.again._pathways = []
    with pytest.warns(InputWarning, match="synapses 'r': 3 connections are left out: they have no pathway"):
        graph = nmsolve.from_brian2(fake.network)
    assert pairs(graph) == {("inp/0", "exc/1"), ("inp/1", "exc/2")} and graph.sizes[:, 1].sum() == 3


def test_what_is_no_network_of_brian_is_refused() -> None:
    fake = fake_brian()
    with pytest.raises(InputError, match="no SpikeMonitor is of inp; expected one of every group"):
        nmsolve.from_brian2(fake.again, fake.source, fake.monitors[0], rates=True)
    with pytest.raises(InputError, match="a int is no network; expected a Network of Brian 2"):
        nmsolve.from_brian2(7)
    odd = brian("Synapses", name="s", source=fake.exc, target=brian("Synapses", name="t"), i=[0], j=[0])
    with pytest.raises(InputError, match="synapses 's' join a Synapses"):
        nmsolve.from_brian2(odd)
    with pytest.raises(InputError, match="there are no neurons"):
        nmsolve.from_brian2()


def test_a_network_of_the_real_brian() -> None:
    brian2 = package("brian2")
    brian2.prefs.codegen.target = "numpy"
    unit = brian2.ms
    exc = brian2.NeuronGroup(
        5, "dv/dt=(2-v)/(10*ms):1", threshold="v>1", reset="v=0", method="exact", name="exc"
    )
    source = brian2.PoissonGroup(4, rates=500 * brian2.Hz, name="inp")
    first = brian2.Synapses(source, exc[1:4], on_pre="v+=0.1")
    first.connect(p=1.0)
    again = brian2.Synapses(exc, exc, on_pre="v+=0.1")
    again.connect(condition="i!=j")
    monitors = [brian2.SpikeMonitor(exc), brian2.SpikeMonitor(source, record=False)]
    network = brian2.Network(exc, source, first, again, *monitors)
    network.run(50 * unit)
    graph = nmsolve.from_brian2(network, rates=True, step=5.0)
    everyone = [f"exc/{k}" for k in range(5)]
    wanted = {(f"inp/{k}", b) for k in range(4) for b in everyone[1:4]}
    assert pairs(graph) == wanted | {(a, b) for a in everyone for b in everyone if a != b}
    counts = np.concatenate([monitors[0].count[:], monitors[1].count[:]])
    assert graph.rate == pytest.approx(counts / 0.05 * 0.005) and counts.any()
