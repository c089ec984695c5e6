"""nmsolve puts neural networks on many-core chips, and proves how good the result is.

>>> import nmsolve
>>> nmsolve.__version__
'0.1.0'

``load_graph``, ``machine`` and ``map`` are all it takes; for the operators of a model on unlike processors ``load_model``,
``processors`` and ``assign``; for networks that share units over time ``load_tasks`` and ``schedule``. Everything is loaded when
it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nmsolve.model.version import VERSION

if TYPE_CHECKING:
    from nmsolve.api.bench import Benchmark, bench
    from nmsolve.api.checks import score, verify
    from nmsolve.api.fronts import ParetoFront, pareto
    from nmsolve.api.gap import gap
    from nmsolve.hw.assignment.machine_file import load_processors as processors
    from nmsolve.hw.machines import load_machine as machine
    from nmsolve.kinds.assignment.python import AssignmentAnswer, assign, explain_assign
    from nmsolve.kinds.explain import Explained
    from nmsolve.kinds.mapping.python import MappingAnswer, explain, map
    from nmsolve.kinds.pipeline.python import PipelineAnswer, explain_pipeline, pipeline
    from nmsolve.kinds.python.answers import Verification
    from nmsolve.kinds.routing.python import RoutingAnswer, explain_route, route
    from nmsolve.kinds.schedule.python import ScheduleAnswer, explain_schedule, schedule
    from nmsolve.kinds.simulation.python import Simulation, simulate
    from nmsolve.model.bound import Bound, Event, Result
    from nmsolve.model.errors import BackendError, DoesNotFitError, InputError, NmsolveError
    from nmsolve.model.formats import load_graph, save_graph
    from nmsolve.model.formats.from_brian2 import from_brian2
    from nmsolve.model.formats.from_nest import from_nest
    from nmsolve.model.formats.from_pynn import from_pynn
    from nmsolve.model.formats.onnx import load_onnx as load_model
    from nmsolve.model.formats.spikes import with_rates
    from nmsolve.model.graph import LogicGraph
    from nmsolve.model.machine import Machine
    from nmsolve.model.mapping.constraints import SideConstraint
    from nmsolve.model.schedule.files import load_schedule as load_tasks

__version__ = VERSION

_HOME = {
    "AssignmentAnswer": ("nmsolve.kinds.assignment.python", "AssignmentAnswer"),
    "BackendError": ("nmsolve.model.errors", "BackendError"),
    "Benchmark": ("nmsolve.api.bench", "Benchmark"),
    "Bound": ("nmsolve.model.bound", "Bound"),
    "DoesNotFitError": ("nmsolve.model.errors", "DoesNotFitError"),
    "Event": ("nmsolve.model.bound", "Event"),
    "Explained": ("nmsolve.kinds.explain", "Explained"),
    "InputError": ("nmsolve.model.errors", "InputError"),
    "LogicGraph": ("nmsolve.model.graph", "LogicGraph"),
    "Machine": ("nmsolve.model.machine", "Machine"),
    "MappingAnswer": ("nmsolve.kinds.mapping.python", "MappingAnswer"),
    "NmsolveError": ("nmsolve.model.errors", "NmsolveError"),
    "ParetoFront": ("nmsolve.api.fronts", "ParetoFront"),
    "PipelineAnswer": ("nmsolve.kinds.pipeline.python", "PipelineAnswer"),
    "Result": ("nmsolve.model.bound", "Result"),
    "RoutingAnswer": ("nmsolve.kinds.routing.python", "RoutingAnswer"),
    "ScheduleAnswer": ("nmsolve.kinds.schedule.python", "ScheduleAnswer"),
    "SideConstraint": ("nmsolve.model.mapping.constraints", "SideConstraint"),
    "Simulation": ("nmsolve.kinds.simulation.python", "Simulation"),
    "Verification": ("nmsolve.kinds.python.answers", "Verification"),
    "assign": ("nmsolve.kinds.assignment.python", "assign"),
    "bench": ("nmsolve.api.bench", "bench"),
    "explain": ("nmsolve.kinds.mapping.python", "explain"),
    "explain_assign": ("nmsolve.kinds.assignment.python", "explain_assign"),
    "explain_pipeline": ("nmsolve.kinds.pipeline.python", "explain_pipeline"),
    "explain_route": ("nmsolve.kinds.routing.python", "explain_route"),
    "explain_schedule": ("nmsolve.kinds.schedule.python", "explain_schedule"),
    "from_brian2": ("nmsolve.model.formats.from_brian2", "from_brian2"),
    "from_nest": ("nmsolve.model.formats.from_nest", "from_nest"),
    "from_pynn": ("nmsolve.model.formats.from_pynn", "from_pynn"),
    "gap": ("nmsolve.api.gap", "gap"),
    "load_graph": ("nmsolve.model.formats", "load_graph"),
    "load_model": ("nmsolve.model.formats.onnx", "load_onnx"),
    "load_tasks": ("nmsolve.model.schedule.files", "load_schedule"),
    "machine": ("nmsolve.hw.machines", "load_machine"),
    "map": ("nmsolve.kinds.mapping.python", "map"),
    "pareto": ("nmsolve.api.fronts", "pareto"),
    "pipeline": ("nmsolve.kinds.pipeline.python", "pipeline"),
    "processors": ("nmsolve.hw.assignment.machine_file", "load_processors"),
    "route": ("nmsolve.kinds.routing.python", "route"),
    "save_graph": ("nmsolve.model.formats", "save_graph"),
    "schedule": ("nmsolve.kinds.schedule.python", "schedule"),
    "score": ("nmsolve.api.checks", "score"),
    "simulate": ("nmsolve.kinds.simulation.python", "simulate"),
    "verify": ("nmsolve.api.checks", "verify"),
    "with_rates": ("nmsolve.model.formats.spikes", "with_rates"),
}

__all__ = [
    "AssignmentAnswer",
    "BackendError",
    "Benchmark",
    "Bound",
    "DoesNotFitError",
    "Event",
    "Explained",
    "InputError",
    "LogicGraph",
    "Machine",
    "MappingAnswer",
    "NmsolveError",
    "ParetoFront",
    "PipelineAnswer",
    "Result",
    "RoutingAnswer",
    "ScheduleAnswer",
    "SideConstraint",
    "Simulation",
    "Verification",
    "assign",
    "bench",
    "explain",
    "explain_assign",
    "explain_pipeline",
    "explain_route",
    "explain_schedule",
    "from_brian2",
    "from_nest",
    "from_pynn",
    "gap",
    "load_graph",
    "load_model",
    "load_tasks",
    "machine",
    "map",
    "pareto",
    "pipeline",
    "processors",
    "route",
    "save_graph",
    "schedule",
    "score",
    "simulate",
    "verify",
    "with_rates",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'nmsolve' has no attribute {name!r}")
    module, attribute = _HOME[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return [*__all__, "__version__"]
