"""Certificates: what is claimed too much is refused with a reason, files survive, large graphs stay safe."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from nmsolve.check.certificates import certificates_from_json
from nmsolve.check.mapping.bounds import operator
from nmsolve.check.mapping.recheck import certificates_to_json, check_bound
from nmsolve.hw.machines import load_machine
from nmsolve.hw.scores import objective_value
from nmsolve.model.bound import Bound
from nmsolve.model.errors import InputError
from nmsolve.model.generators import generate
from nmsolve.model.graph import LogicGraph
from nmsolve.model.machine import Machine
from nmsolve.model.mapping.migration import Migration
from nmsolve.model.mapping.problem import MappingProblem
from nmsolve.solvers.mapping.bounds import ascent, eigen, partition_placement, placement_bound
from nmsolve.solvers.mapping.bounds.bound_context import BoundContext
from nmsolve.solvers.mapping.bounds.chebyshev import Shifted, StoppedError
from nmsolve.solvers.mapping.bounds.link_load import link_load_bounds
from nmsolve.solvers.mapping.bounds.neighbour_counting import neighbour_bound
from nmsolve.solvers.mapping.bounds.nets import fan_out_bound
from nmsolve.solvers.mapping.bounds.projection import projection_bounds


def ring_of_groups(n: int, group: int = 6, seed: int = 3) -> LogicGraph:
    """Groups with heavy inner traffic, light traffic to the next group and a few far edges; whole weights."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(n), 5)
    near = (source // group * group + rng.integers(0, group, len(source))) % n
    shift = np.where(rng.random(len(source)) < 0.3, group, 0)
    return LogicGraph.from_edges(
        n, source, (near + shift) % n, rng.integers(1, 20, len(source)), directed=False
    )


@pytest.fixture(scope="module")
def single() -> MappingProblem:
    """30 nodes on 5x6 cores, one each."""
    return MappingProblem(ring_of_groups(30), Machine("m", (1, 1), (5, 6)), node_limit=1)


@pytest.fixture(scope="module")
def several() -> MappingProblem:
    """90 nodes on 3x4 cores, up to 8 each (7.5 on average)."""
    return MappingProblem(ring_of_groups(90), Machine("m", (1, 1), (3, 4)), node_limit=8)


@pytest.fixture(scope="module")
def found(single: MappingProblem, several: MappingProblem) -> list[tuple[MappingProblem, Bound]]:
    """One bound of every method, all above 0."""
    nets = replace(several, objective="connectivity", node_limit=3, machine=Machine("m", (1, 1), (6, 6)))
    out = [
        (single, neighbour_bound(single)),
        (single, [*projection_bounds(single, rounds=20)][-1]),
        (several, [*partition_placement.partition_placement_bounds(several, rounds=20)][-1]),
        (nets, fan_out_bound(nets)),
    ]
    assert all(b.value > 0 for _, b in out)
    return out


def test_raised_values_are_refused_with_what_is_proved(found: list[tuple[MappingProblem, Bound]]) -> None:
    """A claim one step above what the certificate proves fails and names both numbers."""
    for problem, bound in found:
        check = check_bound(problem, bound)
        assert check.ok and check.value >= bound.value
        wrong = check_bound(problem, replace(bound, value=check.value + 1))
        assert not wrong.ok and "proves only" in wrong.text


TAMPERED = (
    ("projection", "shift", lambda v: v * np.nan, "not finite"),
    ("projection", "shift", lambda v: v + 40.0 * np.arange(len(v)), "proves only"),
    ("projection", "shift", lambda v: "none", "does not hold numbers"),
    ("joint", "eigenvalues", lambda v: v + 0.5, "'eigenvalues' entry 0"),
    ("joint", "eigenvalues", lambda v: v[::-1], "rising"),
    ("joint", "shift", lambda v: v - 10.0 * np.arange(len(v)), "'eigenvalues' entry"),
    ("joint", "rho", lambda v: v * 1000, "proves only"),
    ("joint", "rho", lambda v: None, "rho"),
)


@pytest.mark.parametrize(("method", "key", "change", "reason"), TAMPERED)
def test_changed_certificates_are_refused_naming_the_part(
    found: list[tuple[MappingProblem, Bound]], method: str, key: str, change: object, reason: str
) -> None:
    """Every field, changed in a way that would make the claim false or unreadable."""
    problem, bound = next((p, b) for p, b in found if b.method == method)
    certificate = {**bound.certificate, key: change(bound.certificate[key])}
    check = check_bound(problem, replace(bound, certificate=certificate))
    assert not check.ok and reason in check.text, check.text
    without = {k: v for k, v in bound.certificate.items() if k != key}
    assert not check_bound(problem, replace(bound, certificate=without)).ok


def test_a_certificate_of_another_method_scope_or_problem_is_refused(
    single: MappingProblem, several: MappingProblem
) -> None:
    """Method and scope must agree, projection needs one node per core, no bound may exceed a known mapping."""
    bound = [*projection_bounds(single, rounds=5)][-1]
    assert "claims 'star'" in check_bound(single, replace(bound, method="star")).text
    assert "scope" in check_bound(single, replace(bound, scope="half")).text
    assert "one node per core" in check_bound(several, bound).text
    core = np.arange(30)
    high = replace(bound, value=objective_value(single, core) + 1)
    assert "known mapping" in check_bound(single, high, core).text


def test_a_solver_status_is_said_to_be_its_word(single: MappingProblem) -> None:
    """What cannot be recomputed passes only while no known mapping contradicts it, and says what it rests on."""
    bound = Bound(10.0, "cpsat", certificate={"status": "OPTIMAL", "seed": 1})
    check = check_bound(single, bound)
    assert check.ok and check.trusted and "word of cpsat (status OPTIMAL)" in check.text
    assert not check_bound(single, replace(bound, value=1e9), np.arange(30)).ok
    assert check_bound(single, bound, about=single.hash).ok
    assert "given about" in check_bound(single, bound, about="0" * 16).text
    assert not check_bound(single, neighbour_bound(single)).trusted


def test_words_about_other_routes_say_nothing(single: MappingProblem) -> None:
    """An optimum on the machine's own routes is none where routes are chosen, and the other way round; recomputed bounds hold
    for both."""
    for method, free in (("cpsat", False), ("joint-cpsat", True), ("tree-branching", True)):
        bound = Bound(10.0, method, certificate={"status": "optimal"})
        assert check_bound(single, bound, np.arange(30), single.hash, free_routes=free).trusted
        assert "routes" in check_bound(single, bound, np.arange(30), single.hash, free_routes=not free).text
        assert not check_bound(single, bound, np.arange(30), single.hash, free_routes=not free).ok
    assert check_bound(single, neighbour_bound(single), np.arange(30), free_routes=True).ok


def test_words_within_ceilings_say_so_and_hold_for_no_others(single: MappingProblem) -> None:
    """A word about few mappings cannot be moved to more of them; what is recomputed knows neither ceilings nor budgets."""
    core = np.arange(30)
    held = replace(single, objective="max-link", ceilings=(("hops", 200.0),))
    moved = replace(single, objective="max-link", migration=Migration.of(core, 3))
    word = Bound(2.0, "cpsat", certificate={"status": "optimal"})
    assert "hops at most 200 only" in check_bound(held, word, about=held.hash).text
    assert "budget only" in check_bound(moved, word, about=moved.hash).text
    others = [held, moved, replace(held, ceilings=(("hops", 201.0),)), replace(held, ceilings=()), single]
    for asked in others:
        for about in others:
            assert check_bound(asked, word, about=about.hash).ok == (asked is about)
    plain = next(iter(link_load_bounds(replace(held, ceilings=()))))
    assert plain.value > 0
    values = [check_bound(p, plain, core, held.hash).value for p in others[:-1]]
    assert all(v == values[0] >= plain.value for v in values)
    assert "not the objective" in check_bound(held, neighbour_bound(single)).text


def test_nobody_is_believed_whose_name_is_not_an_engines(single: MappingProblem) -> None:
    """Only engines of this program have a word; a bound of "my-blog" is refused, whatever it says."""
    for value in (0.0, 6916.0, np.inf):
        check = check_bound(single, Bound(value, "my-blog", certificate={"status": "optimal"}))
        assert not check.ok and not check.trusted and "my-blog" in check.text


def test_placement_bound_is_of_its_scope_and_needs_its_parts(several: MappingProblem) -> None:
    """Valid for every arrangement of the same parts, never offered as full, refused for other parts."""
    rng = np.random.default_rng(1)
    core = np.arange(90) // 8
    bound = placement_bound(several, core)
    assert bound is not None and bound.scope == "placement" and bound.value > 0
    for _ in range(200):
        assert bound.value <= objective_value(several, rng.permutation(12)[core])
    assert check_bound(several, bound, core).ok
    assert not check_bound(several, bound).ok
    assert not check_bound(several, replace(bound, value=bound.value * 3), core).ok
    assert placement_bound(replace(several, objective="connectivity"), core) is None


def test_certificate_files_survive_and_broken_ones_are_explained(single: MappingProblem) -> None:
    """Floats and infinity survive JSON; a broken file is one InputError naming the place."""
    bounds = [
        [*projection_bounds(single, rounds=3)][-1],
        Bound(float("inf"), "cpsat", certificate={"status": "infeasible"}),
    ]
    text = certificates_to_json(single, bounds)
    back = certificates_from_json(text.encode())
    np.testing.assert_array_equal(back[0].certificate["shift"], bounds[0].certificate["shift"])
    assert back[1].value == float("inf")
    for broken, where in (
        ("{", "not JSON"),
        ("[]", "not a certificate file"),
        (text.replace('"value":null', '"value":"x"'), r"\$.bounds\[1\]"),
        (text.replace('"method":"cpsat"', '"method":3'), r"\$.bounds\[1\]"),
        (text.replace('"certificate"', '"c"'), r"\$.bounds\[0\]"),
        (text.replace('"value":null', '"value":NaN'), "NaN"),
        (text.replace('"value":null', '"value":1e999'), r"\$.bounds\[1\]: value is inf"),
        (text.replace('"value":null', f'"value":{10**400}'), r"\$.bounds\[1\]: value is too large"),
        (text.replace('"value":null', '"value":3, "value":2'), "'value' twice"),
        (text.replace('"value":null', '"value":' + "[" * 100_000), "not JSON"),
        (text.replace('"cpsat"', '"cp\\ud800sat"'), "not JSON"),
        (text.encode().replace(b'"cpsat"', b'"cp\xed\xa0\x80sat"'), "not JSON"),
    ):
        with pytest.raises(InputError, match=where):
            certificates_from_json(broken, "c.json")


def test_bounds_of_an_ascent_rise_and_stop_when_asked(single: MappingProblem) -> None:
    """Later bounds are better; asked to stop, the first step still yields a valid bound."""
    values = [b.value for b in projection_bounds(single, rounds=40)]
    assert values == sorted(values) and values[-1] > values[0]
    assert 0 < next(projection_bounds(single, BoundContext(should_stop=lambda: True))).value <= values[-1]


def laplacian(graph: LogicGraph) -> csr_array:
    """Dense-checked Laplacian of the symmetric traffic."""
    indptr, indices, weights = graph.traffic
    s = csr_array((weights, indices, indptr), shape=(graph.n, graph.n))
    return csr_array(csr_array(np.diag(s.sum(axis=1))) - s)


def test_eigenvalues_from_random_vectors_are_never_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    """With dense decompositions switched off: below the exact eigenvalues, and close once settled; a basis that
    misses an eigenvector is noticed."""
    monkeypatch.setattr(eigen, "DENSE", 20)
    monkeypatch.setattr(eigen, "EXACT_STEPS", 20)
    graph = ring_of_groups(300)
    a = Shifted(laplacian(graph), np.linspace(-3, 3, 300), 5.0)
    exact = np.linalg.eigvalsh(a.dense())
    tracker = eigen.Tracker(300, 9, seed=0)
    tracker.pairs(a, lambda: False)
    _, vectors = tracker.settle(a, lambda: False)
    safe = eigen.lower_eigenvalues(a, vectors, 6, 1, lambda: False)[:6]
    assert (safe <= exact[:6] + 1e-9).all()
    np.testing.assert_allclose(safe, exact[:6], atol=0.02 * np.abs(exact[:6]).mean() + 0.05)
    missing = np.delete(np.linalg.eigh(a.dense())[1][:, :9], 1, axis=1)
    assert (eigen.lower_eigenvalues(a, missing, 6, 1, lambda: False) <= exact[:8] + 1e-9).all()
    with pytest.raises(StoppedError):
        tracker.pairs(a, lambda: True)


@pytest.mark.parametrize("factored", [20_000, 20])
def test_joint_bound_without_dense_decompositions(monkeypatch: pytest.MonkeyPatch, factored: int) -> None:
    """Finder and re-check both on their path for large graphs agree, factored or by chance; tampering is still noticed."""
    monkeypatch.setattr(operator, "FACTORED", factored)
    monkeypatch.setattr(eigen, "DENSE", 20)
    monkeypatch.setattr(eigen, "EXACT_STEPS", 20)
    monkeypatch.setattr(ascent, "DENSE", 20)
    monkeypatch.setattr(operator, "DECOMPOSED", 20)
    problem = MappingProblem(ring_of_groups(300), Machine("m", (1, 1), (3, 3)), node_limit=35)
    bound = [*partition_placement.partition_placement_bounds(problem, rounds=15)][-1]
    mapping = np.arange(300) // 35
    assert (
        0 < bound.value <= objective_value(problem, mapping)
    )  # about 50 of 1,000: a ring is hard for eigenvalues
    assert check_bound(problem, bound).ok
    raised = {**bound.certificate, "eigenvalues": bound.certificate["eigenvalues"] + 0.5}
    assert "can be confirmed" in check_bound(problem, replace(bound, certificate=raised)).text


def test_a_projection_bound_of_a_thousand_cores_claims_what_its_re_check_proves() -> None:
    """The re-check encloses every eigenvalue: it is charged more for rounding than a decomposition errs."""
    graph = generate("mesh-layered", nodes=1000, side=32, seed=1)
    problem = MappingProblem(graph, load_machine("mesh:32x32"), node_limit=1)
    bound = list(projection_bounds(problem, BoundContext(lambda: 27_000.0), 64))[-1]
    check = check_bound(problem, bound)
    assert check.ok and 0 < bound.value <= check.value, check.text
