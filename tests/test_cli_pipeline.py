"""``nmsolve pipeline`` from input to page, and every way its input can be wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

#: The pages are looked at as they are.
pytestmark = pytest.mark.rendered

Called = Any


def cost_graph(path: Path, **changes: Any) -> Path:
    """Four nodes in a diamond, two accelerators, one CPU that is ten times as slow."""
    nodes = [
        {"id": k, "supportedOnFpga": 1, "cpuLatency": 10.0 * w, "fpgaLatency": w, "isBackwardNode": 0, "size": 4.0}
        for k, w in enumerate((4.0, 3.0, 2.0, 5.0))
    ]  # fmt: skip
    edges = [
        {"sourceId": a, "destId": b, "cost": 0.5, "size": 8.0} for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))
    ]
    content = {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    path.write_text(json.dumps({**content, **changes}))
    return path


def network(path: Path, layers: int = 6, width: int = 64) -> Path:
    """A chain of MatMul and Relu with weights of ``width`` squared and inputs of (batch, width)."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    nodes, weights, last = [], [], "x"
    for k in range(layers):
        weights.append(
            helper.make_tensor(f"w{k}", TensorProto.FLOAT, [width, width], bytes(4 * width * width), raw=True)
        )
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"h{k}"], f"matmul{k}"))
        nodes.append(helper.make_node("Relu", [f"h{k}"], [f"a{k}"], f"relu{k}"))
        last = f"a{k}"
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", width])], weights,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_a_solvers_word_is_marked_and_no_proof(call: Called, tmp_path: Path) -> None:
    source, out = cost_graph(tmp_path / "diamond.json"), tmp_path / "out"
    code, _, _ = call("pipeline", source, "-t", "600s", "-o", out, "--engines", "pipeline-cpsat")
    page = (out / "pipeline.html").read_text()
    assert code == 0 and "? bound pipeline-cpsat" in page and "A question mark" in page
    code, text, _ = call("verify", out, "--bound")
    assert code == 6 and "full bound: not proved here; rests on the word of pipeline-cpsat" in text
    assert call("verify", out, "--bound", "--trust-solver")[0] == 0


def test_a_cost_graph_from_file_to_verified_plan_and_what_verify_finds(call: Called, tmp_path: Path) -> None:
    source, out = cost_graph(tmp_path / "diamond.json"), tmp_path / "out"
    code, text, _ = call("pipeline", source, "-t", "600s", "--json", "-o", out, "--batches", 5)
    rows = [json.loads(line) for line in text.splitlines()]
    assert code == 0 and rows[-1]["type"] == "result" and rows[-1]["batch"]["batches"] == 5
    assert {"incumbent", "bound"} <= {r["type"] for r in rows}
    for name in ("plan.json", "pipeline-report.json", "certificates.json", "events.jsonl", "pipeline.html"):
        assert (out / name).stat().st_size > 0
    report = json.loads((out / "pipeline-report.json").read_text())
    assert report["status"] == "optimal" and report["gap"] == 0 and report["objective"] == 8.0
    assert (
        report["baselines"][0]["name"] == "one group of all cores"
        and report["baselines"][0]["objective"] == 14.0
    )
    page = (out / "pipeline.html").read_text()
    assert page.count("<svg") >= 3 and 'id="explorer-data"' in page and 'src="' not in page
    assert "bound downsets" in page and "? bound downsets" not in page
    code, text, _ = call("info", source)
    assert code == 0 and "cost graph of 4 layers" in text and "nmsolve pipeline" in text
    assert json.loads(call("info", source, "--json")[1])["layers"] == 4
    moved = source.rename(tmp_path / "moved.json")
    code, text, _ = call("verify", out, "--graph", moved)
    assert code == 0 and "FAILED" not in text and "rules" in text and "objective" in text
    moved.rename(source)
    proofs = (out / "certificates.json").read_text()
    code, text, _ = call("verify", out, "--bound")
    assert code == 0 and "no sequence of downsets is below 8" in text
    for forged in (
        {"status": "splendid"}, {"status": "unknown"}, {"bound": 9.0}, {"bound": "8"}, {"bound": -1.0}, {"gap": None},
        {"bound": None}, {"bound": None, "gap": None}, {"bound": 7.5, "gap": 0.0625}, {"problem": "0" * 64}, {"objective": None},
    ):  # fmt: skip
        (out / "pipeline-report.json").write_text(json.dumps(report | forged))
        for extra in ((), ("--bound", "--trust-solver")):
            assert call("verify", out, *extra)[0] == 1, forged
    (out / "pipeline-report.json").write_text(json.dumps(report))
    for method in ("my-blog", "chain", "cpsat"):
        content = json.loads(proofs)
        content["bounds"].append({"method": method, "scope": "full", "value": 1.0, "certificate": {}})
        (out / "certificates.json").write_text(json.dumps(content))
        code, text, _ = call("verify", out, "--bound", "--trust-solver")
        assert code == 1 and f"no engine is called {method!r}" in text
    (out / "certificates.json").write_text(proofs)
    for change, words in (
        ({"value": 7.9}, "claimed 7.9"),
        ({"certificate": {}}, "the certificate is broken"),
    ):
        content = json.loads(proofs)
        next(b for b in content["bounds"] if b["method"] == "work").update(change)
        (out / "certificates.json").write_text(json.dumps(content))
        code, text, _ = call("verify", out)
        assert code == 1 and words in next(line for line in text.splitlines() if line.startswith("FAILED"))
    (out / "certificates.json").write_text(proofs)
    plan = json.loads((out / "plan.json").read_text())
    (out / "plan.json").write_text(json.dumps({**plan, "stage": [1, 0, 0, 1]}))
    code, text, _ = call("verify", out / "plan.json")
    assert code == 1 and "FAILED" in text
    (out / "plan.json").write_text(json.dumps(plan))
    (out / "pipeline-report.json").write_text(json.dumps({**report, "bound": 8.5, "objective": 8.5}))
    code, text, _ = call("verify", out, "--json")
    failed = {r["name"] for r in map(json.loads, text.splitlines()) if not r["ok"]}
    assert code == 1 and {"objective", "full bound"} <= failed
    cost_graph(source, maxFPGAs=3)  # the input is another one now
    code, _, error = call("verify", out)
    assert code == 2 and "another problem" in error
    code, _, error = call("verify", out, "--machine", "loihi1")
    assert code == 2 and "options for mappings only" in error


def test_a_model_from_file_to_cores(call: Called, tmp_path: Path) -> None:
    source, out = network(tmp_path / "m.onnx"), tmp_path / "out"
    copy = out / "staged.onnx"  # in the folder that the command makes
    code, text, _ = call(
        "pipeline", source, "--bind", "batch=8", "-m", "mesh:4x4", "--core-memory", "40KiB", "-t", "600s", "--gap", "90%",
        "--place", "--write-onnx", copy, "-o", out,
    )  # fmt: skip
    assert code == 0
    report = json.loads((out / "pipeline-report.json").read_text())
    assert report["status"] == "optimal" and report["split"] == "chain" and report["cores"] == 16
    assert all(s["storage"] <= 40 * 1024 for s in report["stages"]) and len(report["stages"]) >= 3
    import onnx

    stages = [n.device_configurations[0].pipeline_stage for n in onnx.load(copy).graph.node]
    plan = json.loads((out / "plan.json").read_text())
    assert stages == plan["stage"]  # every operator of this model is a layer
    tiles = json.loads((out / "placement" / "tiles.json").read_text())
    assert len(json.loads((out / "placement" / "mapping.json").read_text())["row"]) == sum(plan["cores"])
    assert tiles
    path = out / "pipeline-report.json"
    changed = json.dumps(
        {**report, "inputs": {**report["inputs"], "machine": "mesh:8x8"}}
    )  # more is possible there
    for folder in (out, out / "placement"):
        code, text, _ = call("verify", folder, "--bound")
        assert code == 0 and "FAILED" not in text
        if folder == out:
            assert "no chain of stages is below" in text
            assert "placement/report.json" in text.splitlines()[-1]  # a folder of its own, which was not read
    path.write_text(changed)
    plan["problem"]["hash"] = ""  # anybody can leave the hash out
    (out / "plan.json").write_text(json.dumps(plan))
    code, text, _ = call("verify", out)
    assert code == 1 and "some chain of stages is below" in text and "FAILED  problem" in text


def test_equal_runs_write_equal_plans(call: Called, tmp_path: Path) -> None:
    source = network(tmp_path / "m.onnx")
    for name in ("a", "b"):
        assert (
            call("pipeline", source, "--bind", "batch=8", "--cores", 12, "-t", "600s", "-o", tmp_path / name)[
                0
            ]
            == 0
        )
    plans = [json.loads((tmp_path / name / "plan.json").read_text()) for name in ("a", "b")]
    assert plans[0].pop("run") != plans[1].pop("run") and plans[0] == plans[1]


def test_a_run_without_a_plan_leaves_none(call: Called, tmp_path: Path) -> None:
    """Three layers of 6 fit on two cores of 10 by counting, but no two of them on one."""
    source, out = tmp_path / "three.json", tmp_path / "out"
    good = json.loads(cost_graph(source).read_text())
    nodes = [{**node, "size": 6.0} for node in good["nodes"][:3]]
    cost_graph(source, nodes=nodes, edges=[], maxSizePerFPGA=10.0)
    out.mkdir()
    (out / "plan.json").write_text("of an earlier run")
    code, text, _ = call("pipeline", source, "-t", "600s", "-o", out)
    assert code == 4 and "Proved by downsets alone: no plan" in text and not (out / "plan.json").exists()
    assert (out / "pipeline.html").exists()
    code, _, error = call("verify", out)
    assert code == 2 and "the run found no plan (infeasible)" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.onnx", "--cores", "4"], "no such file"),
        (["text.onnx", "--cores", "4"], "not an ONNX model"),
        (["text.txt", "--cores", "4"], "a .onnx model or a .json cost graph"),
        (["m.onnx", "--bind", "batch=8"], "--cores N or --machine M"),
        (["m.onnx", "--cores", "4"], "--bind"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8,seq=3"], "seq"),
        (["m.onnx", "--cores", "4", "--bind", "batch"], "SYMBOL=NUMBER"),
        (["m.onnx", "--cores", "2", "--bind", "batch=8", "--core-memory", "1KiB"], "memory"),
        (["m.onnx", "--cores", "2", "--bind", "batch=8", "--core-memory", "lots"], "--core-memory"),
        (["m.onnx", "--cores", "2", "--bind", "batch=8", "--stages", "3", "--exact-stages"], "3 stages"),
        (["m.onnx", "--cores", "2", "--bind", "batch=8", "--exact-stages"], "--stages K"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8", "--split", "half"], "half"),
        (["m.onnx", "-m", "mesh:2x2", "--cores", "5", "--bind", "batch=8"], "at most 4"),
        (["m.onnx", "--cores", "4", "--chips", "2", "--bind", "batch=8"], "--machine"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8", "--place"], "--machine"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8", "--write-onnx", "m.onnx"], "replace this input"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8", "--engines", "magic"], "magic"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8", "--write-onnx", "link.onnx"], "link.onnx: it is the model"),
        (["m.onnx", "--cores", "4", "--bind", "batch=8", "--write-onnx", "out"], "out: it is the model or the output folder"),
        (["diamond.json", "--write-onnx", "copy.onnx"], "not an ONNX model"),
        (["diamond.json", "--bind", "batch=8"], ".onnx"),
        (["diamond.json", "--split", "chain", "-t", "soon"], "--time-limit"),
        (["cyclic.json"], "cycl"),
        (["negative.json"], r"$.nodes[1].fpgaLatency"),
        (["nodes.json"], "nodes"),
        (["broken.json"], "JSON"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_exit_code_2(
    call: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "m.onnx":
        network(tmp_path / "m.onnx")
        (tmp_path / "link.onnx").symlink_to(tmp_path / "m.onnx")
    good = json.loads(cost_graph(tmp_path / "diamond.json").read_text())
    (tmp_path / "text.onnx").write_text("this is no model")
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "broken.json").write_text("{")
    back = {"sourceId": 3, "destId": 0, "cost": 1.0}
    cost_graph(tmp_path / "cyclic.json", edges=[*good["edges"], back])
    cost_graph(
        tmp_path / "negative.json",
        nodes=[good["nodes"][0], {**good["nodes"][1], "fpgaLatency": -1.0}],
        edges=[],
    )
    (tmp_path / "nodes.json").write_text(json.dumps({k: v for k, v in good.items() if k != "nodes"}))
    code, _, error = call("pipeline", *arguments, "-o", tmp_path / "out")
    lines = [line for line in error.splitlines() if line.startswith("error:")]
    assert code == 2 and len(lines) == 1 and words.lower() in lines[0].lower(), error
    assert not (tmp_path / "out" / "plan.json").exists()


def test_plan_and_placement_have_the_same_memory(call: Called, tmp_path: Path) -> None:
    """``--core-memory`` stands for the machine's in both, and where the placement is read again."""
    source, out = network(tmp_path / "m.onnx"), tmp_path / "out"
    (tmp_path / "small.toml").write_text(
        'preset = "wormhole"\n[capacity]\nbytes = 16\n[figures]\noffchip_bandwidth = 0\n'
    )
    words = (
        "pipeline",
        source,
        "--bind",
        "batch=8",
        "-m",
        tmp_path / "small.toml",
        "--gap",
        "90%",
        "--place",
        "-o",
        out,
    )
    code, _, error = call(*words)
    assert code == 2 and "memory" in error
    code, _, error = call(*words, "--core-memory", "40KiB")
    assert code in (0, 3), error
    largest = max(s["storage"] for s in json.loads((out / "pipeline-report.json").read_text())["stages"])
    assert 16 < largest <= 40 * 1024
    for words in (
        ("verify", out / "placement"),
        ("gap", out / "placement", "-t", "1", "-o", tmp_path / "gap"),
    ):
        code, text, error = call(*words)
        assert code == 0 and "FAILED" not in text, error
    assert call("verify", tmp_path / "gap")[0] == 0


@pytest.mark.parametrize("name", ["blackhole", "vc1902", "ve2802", "wormhole"])
def test_chips_for_deep_learning_take_a_pipeline(call: Called, tmp_path: Path, name: str) -> None:
    """A model of 3 MB in 8 bits fits and is proved; one of 97 MB is proved, or refused where no off-chip memory is stated."""
    pytest.importorskip("sympy")
    models = Path(__file__).parent / "data" / "onnx"
    code, text, _ = call("pipeline", models / "mobilenet_v2_int8.onnx", "-m", name, "-o", tmp_path / "small")
    assert code == 0 and "ok     bound chain" in text
    words = ("pipeline", models / "resnet50.onnx", "-m", name, "-o", tmp_path / "large")
    code, text, error = call(*words)
    if name in ("vc1902", "ve2802"):
        assert code == 2 and "do not fit" in error and "--offchip-bandwidth" in error
        code, text, _ = call(*words, "--offchip-bandwidth", "25GB/s")
    assert code == 0 and "ok     bound chain" in text
