"""``nmsolve doctor``: versions, problems, and compiling the kernels ahead of time."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from importlib import metadata

import typer

BASE = (
    "numpy", "scipy", "numba", "networkx", "ortools", "highspy", "pyomo", "msgspec", "typer", "rich", "matplotlib", "jinja2",
)  # fmt: skip
EXTRA = {
    "torch": "learn",
    "onnx": "onnx",
    "pymetis": "metis",
    "kaminpar": "kaminpar",
    "mtkahypar": "mtkahypar",
    "h5py": "sonata",
    "nir": "nir",
}


def run_doctor(warm: bool, as_json: bool) -> int:
    """Print what is installed and what is wrong; 1 if something needed is broken."""
    from nmsolve import __version__

    rows: list[dict[str, object]] = [
        {"name": "nmsolve", "version": __version__, "ok": True, "text": ""},
        {
            "name": "python",
            "version": platform.python_version(),
            "ok": sys.version_info >= (3, 11),
            "text": "",
        },
    ]
    rows += [_package(name) for name in BASE]
    rows += [_package(name, f"optional: pip install 'nmsolve[{extra}]'") for name, extra in EXTRA.items()]
    rows += [_solvers_together(), _cache()]
    if warm:
        rows.append(_warm())
    for row in rows:
        if as_json:
            typer.echo(json.dumps({"type": "check", **row}))
        else:
            typer.echo(
                f"{'ok' if row['ok'] else 'PROBLEM':8} {row['name']:22} {row['version']:14} {row['text']}".rstrip()
            )
    return 0 if all(row["ok"] for row in rows) else 1


def _package(name: str, optional: str = "") -> dict[str, object]:
    try:
        return {"name": name, "version": metadata.version(name), "ok": True, "text": ""}
    except metadata.PackageNotFoundError:
        return {"name": name, "version": "-", "ok": bool(optional), "text": optional or "not installed"}


def _solvers_together() -> dict[str, object]:
    """OR-Tools and highspy must load in one process (newer highspy clashes with OR-Tools 9.15)."""
    code = "import highspy; from ortools.sat.python import cp_model"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    text = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["failed"])[-1]
    return {"name": "ortools with highspy", "version": "", "ok": done.returncode == 0, "text": text}


def _cache() -> dict[str, object]:
    """Without a writable cache the kernels compile anew in every process."""
    from pathlib import Path

    import nmsolve

    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or next(iter(nmsolve.__path__)))
    there = next(
        place for place in (folder, *folder.absolute().parents) if place.exists()
    )  # numba makes the rest
    fine = os.access(there, os.W_OK)
    text = str(folder) if fine else f"{folder} cannot be written: set NUMBA_CACHE_DIR to a folder that can"
    return {"name": "kernel cache", "version": "", "ok": fine, "text": text}


def _warm() -> dict[str, object]:
    """Run every engine on tiny problems, which compiles and caches all kernels."""
    from nmsolve.solvers.warm.kernels import missing_kernels
    from nmsolve.solvers.warm.run import warm_up

    start = time.monotonic()
    count = warm_up(lambda text: typer.echo(f"  {text}", err=True))
    text, missing = f"{count} small runs, {time.monotonic() - start:.0f} s", missing_kernels()
    if missing:
        modules = sorted({name.rpartition(".")[0] for name in missing})
        text += f"; {len(missing)} kernels compile at first use, in {', '.join(modules)}"
    return {"name": "kernels", "version": "", "ok": True, "text": text}
