"""What can be minimised: one record for every objective, used everywhere else.

A sum needs only its record: evaluator, engines, exact models, bounds and their re-checks take it from there. Any other objective
names a formula and a second one for ``nmsolve verify``, which shares no code with the first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Objective:
    """An objective of mappings, to be minimised; never negative.

    Attributes
    ----------
    about : one line for people
    unit : of its values
    charges : what pays: ``pairs`` (every edge on its own), ``trees`` (a multicast message the union of its routes, other edges on
        their own), ``reach`` (a message the number of other cores it reaches), or what is no
        sum and has a ``formula``: ``load``, ``time``, ``power``, ``reward``, or ``own`` where no engine is made for it
    distance : what is paid between two cores: ``hops`` (link weights), ``energy`` (pJ), or ``apart`` (1). Where it is no
        sum, what methods for sums use in its place
    section : its heading in docs/objectives.md
    formula : where it is not a sum, ``module:function`` below ``nmsolve`` that gives it from the problem and the mapping (n,)
    walk : the same once more, from the messages between cores (:class:`nmsolve.model.between.BetweenCores`) and the machine;
        empty where :func:`nmsolve.check.mapping.verify.recompute` has it
    lattice : ``module:function`` that gives a number that divides all values of a problem, 0 if none is known; empty: none
    bounds : where it is not a sum, methods of bounds that hold for it
    links : it looks at links: not for machines given by a distance matrix
    alone : it cannot be one of several, or a ceiling
    """

    about: str
    unit: str
    charges: str
    distance: str
    section: str = "What can be minimised"
    formula: str = ""
    walk: str = ""
    lattice: str = ""
    bounds: tuple[str, ...] = ()
    links: bool = False
    alone: bool = False

    @property
    def reach(self) -> bool:
        """True if a message pays for every other core that it reaches, wherever that is."""
        return self.charges == "reach"

    @property
    def quantity(self) -> str:
        """What routes are the shortest in: ``hops`` or ``energy``."""
        return "hops" if self.distance == "apart" else self.distance


#: All objectives by name; formulas and sources in docs/objectives.md.
OBJECTIVES: dict[str, Objective] = {
    "hops": Objective("traffic times distance", "weight x links", "pairs", "hops"),
    "multicast-hops": Objective("links that messages cross, each once", "weight x links", "trees", "hops"),
    "cut": Objective("traffic between cores", "weight", "pairs", "apart"),
    "connectivity": Objective("messages times other cores that they reach", "messages", "reach", "apart"),
    "energy": Objective("energy of all messages", "pJ", "trees", "energy", "Energy"),
    "max-link": Objective(
        "load of the hottest link", "weight", "load", "hops", "max-link",
        formula="hw.routes:hottest_load", lattice="hw.routes:load_lattice", bounds=("link-load",), links=True,
    ),
    "step-time": Objective(
        "time of one step: the slowest core or the hottest link", "ns", "time", "apart", "Step time",
        formula="hw.step_time:step_time", walk="check.mapping.step_time:walked_step_time", bounds=("step-load", "step-ceiling"),
        links=True,
    ),
    "step-energy": Objective(
        "energy of one step: messages, neurons, synapses, and what the chips draw while it lasts", "pJ", "power", "energy",
        "Energy of a step", formula="hw.step_energy:step_energy", walk="check.mapping.step_time:walked_step_energy",
        bounds=("step-power",), links=True, alone=True,
    ),
    "energy-delay": Objective(
        "energy of one step times its time", "pJ ns", "power", "energy", "Energy of a step",
        formula="hw.step_energy:energy_delay", walk="check.mapping.step_time:walked_energy_delay", bounds=("step-power",),
        links=True, alone=True,
    ),
    "reward": Objective(
        "the reward of method M1, negated", "weight x links", "reward", "hops", "reward",
        formula="hw.reward:problem_reward", walk="check.reward:walked_reward", lattice="hw.reward:reward_lattice",
        bounds=("exchange",), links=True, alone=True,
    ),
}  # fmt: skip
