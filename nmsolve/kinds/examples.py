"""One line per command that its ``--help`` ends with. Options of it are those of the command (``tests/test_commands.py``)."""

from __future__ import annotations

#: What is typed after ``nmsolve``, by the name of the command; of ``hw`` and ``train`` with both words.
EXAMPLES = {
    "map": "map network.json --machine loihi1 --time-limit 30s",
    "score": "score nmsolve-map",
    "verify": "verify nmsolve-map --bound",
    "gap": "gap mapping.csv --graph network.json --machine loihi1 --time-limit 60s",
    "resume": "resume nmsolve-map --time-limit 5m",
    "route": "route nmsolve-map --objective max-link",
    "pipeline": "pipeline model.onnx --machine wormhole --objective period",
    "assign": "assign model.onnx --machine laptop-npu --objective latency",
    "schedule": "schedule tasks.json --objective makespan",
    "simulate": "simulate nmsolve-map --load 0.2",
    "compare": "compare one-run other-run",
    "draw": "draw nmsolve-map --out mapping.svg",
    "watch": "watch nmsolve-map --port 8080",
    "export": "export nmsolve-map --to csv",
    "faults": "faults nmsolve-map --links 2 --trials 50",
    "bench": "bench qaplib --methods auto,tabu --seeds 3 --time-limit 10s",
    "bench learn": "bench learn published --seeds 3",
    "explain": "explain network.json --machine mesh:2x2",
    "explain route": "explain route nmsolve-map",
    "explain pipeline": "explain pipeline model.onnx --machine wormhole --stages 8",
    "explain assign": "explain assign model.onnx --machine laptop-npu",
    "explain schedule": "explain schedule tasks.json",
    "info": "info network.json",
    "convert": "convert network.json network.nmz",
    "generate": "generate microcircuit --scale 0.05 --out network.json",
    "profile": "profile model.onnx --library library.db",
    "train m1": "train m1 --seconds 600 --out m1.safetensors",
    "train m5": "train m5 --seconds 600 --out m5.safetensors",
    "train duals": "train duals --bound joint --seconds 600",
    "doctor": "doctor",
    "hw list": "hw list",
    "hw show": "hw show loihi1",
}
