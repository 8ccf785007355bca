"""What commands do not load, since each start pays for it: a module is imported where it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from coordinator.__main__ import UNUSED

ROOT = Path(__file__).parents[3]
QUERY = """
shimekiri: 1
query: quick
sources: {in: {at: a, type: json, arrival: {burst: 1, period: 10 ms}}}
operators: {O1: {run: pass, in: in, cost: 1 ms}}
outputs: {out: {from: O1, at: a, deadline: 100 ms}}
"""
CLUSTER = "{shimekiri: 1, nodes: {a: {address: '127.0.0.1:1'}}, security: insecure-loopback}"
GRPC = ["grpc", "asyncio", "ssl", "coordinator.fleet.agents"]
PYDANTIC = ["pydantic", "pydantic_core", "ruamel"]
SOLVER = ["ortools", "numpy", "coordinator.solve.planner"]
SPARK = ["pyspark", "pandas", "pyarrow", "coordinator.report"]
DRAWING = ["rich", "textual"]
THREADS = ["concurrent.futures", "logging"]
WHOLE_PLANS = ["google.protobuf", "protos.plan_document", "protos.plan.guarantee", "protos.plan.search"]
RARE = ["coordinator.spec.files.schema", "coordinator.spec.sharing", "coordinator.calculus.curves"]
PURE = ["google.protobuf.text_format"]  # of protobuf's half in Python
PACKAGES = ["importlib.metadata", "email"]  # to look for plug-ins of libraries
OPENSSL = ["_hashlib"]  # for a SHA-256 that the interpreter has


def _loaded(folder: Path, *words: str) -> set[str]:
    """The modules that are there when the command has ended."""
    code = (
        "import sys\n"
        "from coordinator.__main__ import program\n"
        "from protos.installed.deferred import is_deferred\n"
        "try: program()\n"
        "finally:\n"
        "    loaded = (name for name, each in sys.modules.items() if not is_deferred(each))\n"
        "    print(*loaded, file=open('modules', 'w'))\n"
    )
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, *words], cwd=folder, env=here, capture_output=True, check=False)
    return set((folder / "modules").read_text().split())


def test_help_loads_the_command_line_alone(tmp_path: Path) -> None:
    found = _loaded(tmp_path, "--help")
    assert "coordinator.cli.commands.report" in found
    unwanted = [
        *GRPC,
        *PYDANTIC,
        *SOLVER,
        *SPARK,
        *DRAWING,
        *THREADS,
        *WHOLE_PLANS,
        *PACKAGES,
        *UNUSED,
        "coordinator.spec",
    ]
    assert sorted(found.intersection([*unwanted, "coordinator.spec"])) == []


def test_from_a_query_to_its_deployment_each_command_loads_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "query.yaml").write_text(QUERY)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    found = _loaded(tmp_path, "validate", "query.yaml", "cluster.yaml")
    assert "coordinator.spec.checks.query_checks" in found
    unwanted = [*GRPC, *SOLVER, *SPARK, *DRAWING, *THREADS, *WHOLE_PLANS, *RARE, *PACKAGES, *OPENSSL]
    assert sorted(found.intersection(unwanted)) == []

    found = _loaded(tmp_path, "plan", "query.yaml", "cluster.yaml")
    assert "coordinator.solve.planner" in found and (tmp_path / "plan.json").exists()
    assert (
        sorted(found.intersection([*GRPC, *SPARK, *DRAWING, *PURE, *PACKAGES, "coordinator.spec.files.schema"])) == []
    )

    agent = {"name": "a", "control": "192.0.2.1:1", "data": "192.0.2.1:1"}  # refused without TLS, before any call
    (tmp_path / "addresses.json").write_text(json.dumps({"nodes": {"a": agent}}))
    found = _loaded(tmp_path, "deploy", "plan.json")
    assert "coordinator.fleet.deployment.deploy" in found and "protos.plan_document" in found
    assert sorted(found.intersection([*PYDANTIC, *SOLVER, *SPARK, *DRAWING, *PURE, *PACKAGES])) == []


def test_grpc_is_imported_without_its_half_for_asyncio(tmp_path: Path) -> None:
    code = (
        "import sys, coordinator.__main__ as m; m.main = lambda: __import__('coordinator.fleet.grpc_calls')\n"
        "try: m.program()\n"
        "finally: print(sorted(each for each in sys.modules if each.startswith('grpc.aio.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
