"""``nmsolve train auto``: the table behind the learned plans of automatic mode."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from nmsolve.model.files import write_atomic

if TYPE_CHECKING:
    from nmsolve.cli.train_options import TrainAutoOptions


def run_train_auto(o: TrainAutoOptions) -> int:
    """Log engines alone on generated problems, fit the table and write it; returns the exit code.

    Beside the model are the log (``.slices.jsonl``, one line per run) and a card (``.md``).

    Raises
    ------
    InputError : wrong options, a damaged log, nothing to fit, no such cluster
    """
    from nmsolve.cli.answer import OK, prepare_file
    from nmsolve.learn.allocation.table import fitted
    from nmsolve.learn.checkpoint import model_file, save
    from nmsolve.learn.progress import Training, card_of
    from nmsolve.solvers.mapping.allocation.instances import training
    from nmsolve.solvers.mapping.allocation.slices import log_slices

    files = Training(model_file(o.out))
    prepare_file(files.path)
    log = files.path.with_name(f"{files.path.stem}.slices.jsonl")
    if not o.resume:
        log.unlink(missing_ok=True)
    instances = ((number, training(number)) for number in range(o.instances))
    slices = log_slices(
        log, instances, o.seconds, lambda text: print(text, file=sys.stderr), o.longest, o.cluster
    )
    table = fitted(slices)
    how = {
        "instances": len(table.features), "runs": len(slices), "cpu_seconds": round(sum(one.took for one in slices), 1),
    }  # fmt: skip
    model = table.checkpoint({"how": how})
    save(files.path, model)
    write_atomic(files.card, card_of("Table of automatic mode (`--allocate learned`)", model, how, {}))
    done = {"type": "trained", "model": str(files.path), "hash": model.hash, **how}
    words = "  ".join(f"{key} {value}" for key, value in how.items())
    print(json.dumps(done) if o.json else f"{files.path}: {words}, hash {model.hash}; card {files.card}")
    return OK
