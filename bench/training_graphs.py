"""Training graphs beside what follows from the forward pass alone.

``python bench/training_graphs.py FORWARD.onnx TRAINING.onnx [--bind batch=8] [--cores 64]`` prints, of the same model without and
with its backward pass: MACs of both passes, time of both on one core, what one stage of all layers keeps of a micro-batch, bytes
of gradients between layers, and the step of 8 micro-batches on the cores (1F1B, proved).
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from nmsolve.hw.pipeline.tiles import pipeline_problem
from nmsolve.hw.pipeline.training import Step
from nmsolve.model.formats.onnx import load_onnx
from nmsolve.model.operators.backward import trained_layers
from nmsolve.model.operators.binding import parse_bindings, symbols_of
from nmsolve.model.operators.layers import Layers, layers_of
from nmsolve.model.operators.training_graph import training_graph
from nmsolve.model.pipeline.check import kept_needs
from nmsolve.model.pipeline.figures import ASSUMED
from nmsolve.solvers.pipeline.api import plan

#: A step: micro-batches, copies of the weights.
BATCHES, COPIES = 8, 4.0


def layers_in(path: str, bind: str | None) -> Layers:
    """Return the layers of a forward model or a training graph, with the symbols that it has bound."""
    graph = load_onnx(path)
    given = {name: value for name, value in parse_bindings(bind).items() if name in symbols_of(graph)}
    parts = training_graph(graph)
    return layers_of(graph, given) if parts is None else trained_layers(parts, given)


def figures(layers: Layers, cores: int) -> list[float]:
    """Return the numbers that are compared."""
    problem = pipeline_problem(layers, ASSUMED, cores, step=Step("1f1b", BATCHES, False, COPIES))
    assert problem.training is not None
    backward, gradients = layers.backward, layers.gradients
    if backward is not None:
        macs, back = backward.whole.macs[backward.layers].sum(), backward.returned.volume.sum()
    else:
        assert gradients is not None
        macs, back = (layers.macs * gradients.passes).sum(), layers.tensors.volume.sum()
    forward = problem.training.forward[:, 0].sum()
    kept = kept_needs(problem, [0] * problem.count, 1)[0][0]
    step = plan(replace(problem, rounds=BATCHES), time_limit=60.0).objective
    assert step is not None
    return [
        layers.count,
        layers.macs.sum(),
        macs,
        forward,
        problem.time[:, 0].sum() - forward,
        kept,
        back,
        step,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("forward")
    parser.add_argument("training")
    parser.add_argument("--bind")
    parser.add_argument("--cores", type=int, default=64)
    o = parser.parse_args()
    names = ("layers", "forward MACs", "backward MACs", "forward, us on one core", "backward, us on one core",
             "kept, bytes", "gradients between layers, bytes", "step, us")  # fmt: skip
    rows = zip(
        names, *(figures(layers_in(path, o.bind), o.cores) for path in (o.forward, o.training)), strict=True
    )
    print("| what | by rule | from the file | ratio |\n|---|---:|---:|---:|")
    for name, rule, real in rows:
        print(f"| {name} | {rule:,.6g} | {real:,.6g} | {real / rule:.3f} |")


if __name__ == "__main__":
    main()
