"""``nmsolve doctor``: versions, problems, and compiling the kernels ahead of time."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from importlib import metadata
from typing import TYPE_CHECKING

from nmsolve.kinds.answer import tell

if TYPE_CHECKING:
    from nmsolve.cli.commands import DoctorOptions

BASE = (
    "numpy", "scipy", "numba", "networkx", "greenlet", "ortools", "highspy", "pyomo", "msgspec", "typer", "matplotlib",
    "jinja2", "safetensors",
)  # fmt: skip
EXTRA = {
    "torch": "learn", "onnx": "onnx", "pymetis": "metis", "kaminpar": "kaminpar", "mtkahypar": "mtkahypar", "h5py": "sonata",
    "onnxruntime": "runtime", "pyyaml": "sanafe",
}  # fmt: skip


def run_doctor(o: DoctorOptions) -> int:
    """Print what is installed and what is wrong; 1 if something needed is broken."""
    from nmsolve import __version__
    from nmsolve.model.host import lacking

    new_enough = sys.version_info >= (3, 11)
    rows = [_row("nmsolve", __version__), _row("python", platform.python_version(), new_enough)]
    rows.append(_row("system", platform.system(), text="; ".join(lacking())))
    rows += [_package(name) for name in BASE]
    rows += [_package(name, f"optional: pip install 'nmsolve[{extra}]'") for name, extra in EXTRA.items()]
    rows += [_solvers_together(), _cache(), *_models(), *_plugins()]
    if o.warm:
        rows.append(_warm())
    lines = (f"{'ok' if r['ok'] else 'PROBLEM':8} {r['name']:22} {r['version']:14} {r['text']}" for r in rows)
    tell(o.json, ({"type": "check", **row} for row in rows), (line.rstrip() for line in lines))
    return 0 if all(row["ok"] for row in rows) else 1


def _row(name: str, version: str = "", ok: bool = True, text: str = "") -> dict[str, object]:
    return {"name": name, "version": version, "ok": ok, "text": text}


def _package(name: str, optional: str = "") -> dict[str, object]:
    try:
        return _row(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        return _row(name, "-", bool(optional), optional or "not installed")


def _solvers_together() -> dict[str, object]:
    """OR-Tools and highspy must load in one process (newer highspy clashes with OR-Tools 9.15)."""
    code = "import highspy; from ortools.sat.python import cp_model"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    text = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]
    return _row("ortools with highspy", "", done.returncode == 0, text)


def _models() -> list[dict[str, object]]:
    """Trained policies: a missing one is no problem, as its engine then does without; a damaged one is."""
    from nmsolve.learn.checkpoint import METHODS, command_of, model_path, policy_of
    from nmsolve.model.errors import InputError

    rows = []
    for method, engine in METHODS.items():
        path = model_path(method)
        try:
            model = policy_of(method)
            rows.append(_row(f"model {method}", model.hash[:12], text=f"engine {engine}, {path}"))
        except InputError as error:
            none = f"none: `{command_of(method)}` makes one for engine {engine}"
            text = str(error) if path.exists() else none
            rows.append(_row(f"model {method}", "-", not path.exists(), text))
    return rows


def _plugins() -> list[dict[str, object]]:
    """What other packages offer, one row each: whether it can be used, and if not why. Each is loaded in a process of its own."""
    from nmsolve.cli.plugins import offers

    return [
        _row(
            f"plug-in {one.name}",
            one.version,
            not one.wrong,
            f"{one.group}, {one.package}" + f": {one.wrong}" * bool(one.wrong),
        )
        for one in offers()
    ]


def _cache() -> dict[str, object]:
    """Where compiled kernels lie; without such a folder they compile again in every process."""
    from pathlib import Path

    import nmsolve
    from nmsolve.model.kernel_cache import root_of_kernels

    folder, text = root_of_kernels(Path(next(iter(nmsolve.__path__))))
    return _row("kernel cache", "", folder is not None, text if folder is None else f"{folder} ({text})")


def _warm() -> dict[str, object]:
    """Run every engine on tiny problems, which compiles and caches all kernels."""
    from nmsolve.kinds.warm.kernels import missing_kernels
    from nmsolve.kinds.warm.run import warm_up

    start = time.monotonic()
    count = warm_up(lambda text: print(f"  {text}", file=sys.stderr, flush=True))
    text, missing = f"{count} small runs, {time.monotonic() - start:.0f} s", missing_kernels()
    if missing:
        modules = sorted({name.rpartition(".")[0] for name in missing})
        text += f"; {len(missing)} kernels compile at first use, in {', '.join(modules)}"
    return _row("kernels", text=text)
