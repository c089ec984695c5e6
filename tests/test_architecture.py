"""The rooms import in one direction, and asking for help costs nothing."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from command_support import run_here

from nmsolve.kinds.registry import FOLDERS

PACKAGE = Path(__file__).resolve().parent.parent / "nmsolve"
ROOMS = [
    "model",
    "check",
    "hw",
    "heuristics",
    "learn",
    "solvers",
    "report",
    "kinds",
    "benchmarks",
    "api",
    "cli",
]
TOPS = ("nmsolve", "tests", "bench")
HEAVY = {
    "onnx",
    "onnxruntime",
    "sympy",
    "ortools",
    "highspy",
    "pyomo",
    "torch",
    "safetensors",
    "numba",
    "matplotlib",
    "scipy",
    "networkx",
    "pandas",
}


def imported(path: Path, names: bool = False) -> list[tuple[int, str]]:
    """Every absolute import in a file, those inside functions too: (line, module), with ``names`` what is taken from it, too."""
    out = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            out.append((node.lineno, node.module))
            out += [(node.lineno, f"{node.module}.{name.name}") for name in node.names if names]
        elif isinstance(node, ast.Import):
            out += [(node.lineno, name.name) for name in node.names]
    return out


@pytest.mark.parametrize("room", ROOMS)
def test_no_import_points_against_the_direction_of_the_rooms(room: str) -> None:
    """``model`` <- ``check`` <- ``hw`` <- ``heuristics`` <- ``learn`` <- ``solvers`` <- ``report`` <- ...; see ``ROOMS``."""
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    wrong = []
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for line, module in imported(path):
            parts = module.split(".")
            if parts[0] == "nmsolve" and len(parts) > 1 and parts[1] in ROOMS and parts[1] not in allowed:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_what_searches_does_not_use_the_checker() -> None:
    """Else a mistake of the checker would be found by both, and seen by neither."""
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module}"
        for room in ("heuristics", "learn")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, module in imported(path)
        if module.startswith("nmsolve.check")
    ]
    assert not wrong, "\n".join(wrong)


PROBLEMS = ["mapping", "routing", "pipeline", "assignment"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problems_do_not_import_each_other(problem: str) -> None:
    """What two need stands above their folders; what joins two (``solvers/routed``) has one of its own."""
    others = "|".join(p for p in PROBLEMS if p != problem)
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module}"
        for room in ("model", "check", "heuristics", "solvers")
        for path in sorted((PACKAGE / room / problem).rglob("*.py"))
        for line, module in imported(path)
        if re.match(rf"nmsolve\.(model|check|heuristics|solvers)\.({others})\b", module)
    ]
    assert not wrong, "\n".join(wrong)


def test_below_the_command_line_nothing_is_imported_in_a_circle_or_from_the_root() -> None:
    """Every file can be read after those it imports, imports inside functions included."""
    files = {}
    for room in ROOMS[: ROOMS.index("cli")]:
        for path in (PACKAGE / room).rglob("*.py"):
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            files[name.removesuffix(".__init__")] = path
    assert not [name for name, path in files.items() if "nmsolve" in {m for _, m in imported(path)}]
    needs = {}
    for name, path in files.items():
        found = {m for _, m in imported(path, names=True)} & files.keys()
        # a module taken from a package needs that module, not the package
        needs[name] = {m for m in found if not any(other.startswith(m + ".") for other in found)}
    read: set[str] = set()
    while fresh := {name for name in files.keys() - read if not needs[name] - read}:
        read |= fresh
    assert not files.keys() - read


def test_what_serves_all_kinds_asks_the_registry() -> None:
    """No command, benchmark or common file imports a kind by its name, but for mappings, which most commands are about."""
    own = [
        *(PACKAGE / "kinds").glob("*.py"),
        *(PACKAGE / "cli").rglob("*.py"),
        *(PACKAGE / "benchmarks").rglob("*.py"),
    ]
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {module}"
        for path in own
        for line, module in imported(path)
        if re.match(r"nmsolve\.kinds\.(routing|pipeline|assignment|schedule)\b", module)
    ]
    assert not wrong, "\n".join(wrong)


#: What the shell may name of one kind, and why.
NAMED_BY_THE_SHELL = {
    "api/fronts.py": "`pareto` takes what states a mapping problem (graph, machine, ...) beside any answer",
    "api/gap.py": "`gap` takes a mapping of any tool with its graph and machine beside any answer",
    "api/checks.py": "`score` does, too",
}


def test_the_shell_names_no_kind_of_problem() -> None:
    """Commands, functions, benchmarks and the compiling of kernels ask the registry: a new kind needs no edit there.

    Of mappings the word is that of any answer's oldest option; what counts there is a module of that kind.
    """
    kinds = "|".join(kind for kind in FOLDERS.values() if kind != "mapping")
    name = re.compile(rf"\b({kinds})\b|\b({'|'.join(ROOMS[: ROOMS.index('cli')])})\.mapping\b")
    wrong = [
        f"{where}:{number} {line.strip()}"
        for room in ("cli", "api", "benchmarks", "kinds/warm")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if not (where := path.relative_to(PACKAGE).as_posix()).startswith(tuple(NAMED_BY_THE_SHELL))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if name.search(line.partition("# type: ignore")[0])
    ]
    assert not wrong, "\n".join(wrong)


def test_model_imports_no_solver() -> None:
    """Data knows nothing of solvers, not even inside functions (compiled loops of its own are none)."""
    found = {
        f"{path.name}:{line} {module}"
        for path in (PACKAGE / "model").rglob("*.py")
        for line, module in imported(path)
        if module.split(".")[0] in {"ortools", "highspy", "pyomo", "torch", "matplotlib"}
    }
    assert not found


def at_run_time(path: Path) -> set[str]:
    """What a file imports when it runs, inside functions too; ``from a import b`` may mean the module ``a.b``."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            out |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            out |= {name.name for name in node.names}
    return out


def test_no_circle_of_imports_in_the_room_of_commands() -> None:
    """At run time, imports inside functions included; the table of commands names its modules, nobody imports it back."""
    paths = {
        ".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p
        for p in (PACKAGE / "cli").rglob("*.py")
    }
    graph = {name: at_run_time(path) & paths.keys() - {name} for name, path in paths.items()}
    order = TopologicalSorter(graph)
    order.prepare()  # raises CycleError, which names the circle
    assert graph["nmsolve.cli.main"]


@pytest.mark.parametrize("command", [["--help"], ["map", "--help"], ["hw", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    """``--help`` must not pay for solvers, compilers or plots."""
    code = (
        "import sys, json\nfrom nmsolve.cli import main\nsys.argv = ['nmsolve', *json.loads(sys.argv[1])]\n"
        "try:\n    main.main()\nexcept SystemExit as e:\n    assert not e.code, e.code\n"
        "print('LOADED', json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(command)], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout.split("LOADED")[1]))
    assert not loaded & HEAVY


#: What a run does without, and what loading it costs: half as much as all that it needs.
NEEDLESS = {
    "rich", "matplotlib", "networkx", "pandas", "ortools", "highspy", "pyomo", "torch", "onnx", "sympy", "safetensors",
    "ray", "unittest", "numpy.f2py", "numpy.testing", "numba.np.arrayobj",
}  # fmt: skip


def test_a_run_loads_only_what_it_needs(tmp_path: Path) -> None:
    """``nmsolve map`` with checks and page, in its own process: what is not loaded costs no time. Children may need more."""
    code = (
        "import sys\nfrom nmsolve.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code, e.code\n"
        "loaded = [n for n, m in sys.modules.items() if m is not None and type(m).__name__ != '_LazyModule']\n"
        "print('LOADED', *loaded)"
    )
    run_here("generate", "mesh-comm", "--nodes", "64", "--out", tmp_path / "net.json")
    words = [
        "map",
        "net.json",
        "--machine",
        "mesh:8x8",
        "--time-limit",
        "10",
        "--engines",
        "star,first-fit,tabu",
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split("LOADED")[1].split()) & NEEDLESS


def test_importing_the_package_loads_nothing_heavy() -> None:
    """``import nmsolve`` is cheap; its functions are loaded when they are first used."""
    code = "import nmsolve, sys, json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout)) & HEAVY


MOST_ARGUMENTS = 12


def test_no_function_takes_more_than_a_dozen_arguments() -> None:
    """State travels whole (``State``, ``Rows``, ``Links``, ``CoreDistance``), not field by field."""
    long = {
        f"{path.relative_to(PACKAGE).as_posix()} {node.name}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > MOST_ARGUMENTS
    }
    assert not long


@pytest.mark.parametrize("script", sorted((PACKAGE.parent / "bench").glob("*.py")), ids=lambda p: p.stem)
def test_what_benchmarks_import_exists(script: Path) -> None:
    """No other test runs them: a name that has moved would be missed until somebody wants a figure."""
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "nmsolve":
            module = importlib.import_module(node.module)
            for name in node.names:
                found = hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")
                assert found, f"line {node.lineno}: {node.module} has no {name.name}"


def test_the_map_of_the_code_fits_two_screens_and_names_what_exists() -> None:
    """Every file and folder that ARCHITECTURE.md puts in backquotes is in the repository."""
    root = PACKAGE.parent
    lines = (root / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    assert len(lines) <= 80 and max(map(len, lines)) <= 130
    names = re.findall(r"`([\w/.]+(?:\.py|/))`", "\n".join(lines))
    found = {f"/{path.relative_to(root)}" for top in TOPS for path in (root / top).rglob("*.py")}
    found |= {f"{parent}/" for path in found for parent in Path(path).parents} | {"/docs/", "/examples/"}
    missing = [n for n in names if not any(path.endswith(f"/{n}") for path in found)]
    assert len(names) > 60 and not missing, missing
