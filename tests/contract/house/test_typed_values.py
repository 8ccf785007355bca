"""Values have types. A mapping of anything stands at the edge to a file or to users' data, in files named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
UNTYPED = frozenset({"dict[str, Any]", "Mapping[str, Any]"})
MAPPINGS = frozenset(each.partition("[")[0] for each in UNTYPED)

EDGES = {  # why a file may have such mappings, and which files
    "the tuples of a benchmark, as JSON in environments with the standard library": (
        "infra/peers/adapters/bytewax_flow.py",
        "infra/peers/adapters/flink_job.py",
        "infra/peers/adapters/pathway_table.py",
        "infra/peers/adapters/zenoh_sessions.py",
        "infra/peers/burn.py",
        "infra/peers/edf_loop.py",
        "infra/peers/feeder.py",
        "infra/peers/lines.py",
        "infra/peers/peer_results.py",
        "infra/peers/ours.py",
        "infra/peers/table.py",
        "infra/peers/workload.py",
    ),
    "pairs and statements, as JSON in environments with the standard library": ("infra/second_witness/pair_file.py",),
    "reads and writes documents by their types": (
        "protos/plan_document.py",
        "protos/run_document.py",
    ),
    "makes the document that a command prints or a file holds": (
        "coordinator/change/admission.py",
        "coordinator/change/change_summary.py",
        "coordinator/change/remedies.py",
        "coordinator/cli/changing.py",
        "coordinator/cli/commands/addresses.py",
        "coordinator/cli/commands/certs.py",
        "coordinator/cli/commands/profile.py",
        "coordinator/cli/commands/validate.py",
        "coordinator/explain/comparison.py",
        "coordinator/explain/window_lines.py",
        "coordinator/fleet/profile/profiling.py",
        "coordinator/local_run/lost_tuples.py",
        "coordinator/plan/deadline_breakdown.py",
        "coordinator/report/perfetto/chrome_trace.py",
        "coordinator/solve/repair/repair.py",
        "coordinator/solve/repair/repair_search.py",
        "coordinator/solve/repair/within_ranges/adaptation.py",
        "node_agent/tools/overhead.py",
        "node_agent/tools/simulate.py",
        "node_agent/virtual/change_schedule.py",
        "node_agent/virtual/optimum/regret.py",
        "node_agent/virtual/run.py",
        "node_agent/virtual/scenario.py",
        "node_agent/virtual/summary.py",
        "sim_vehicles/closed_loop/in_virtual_time.py",
        "sim_vehicles/record/street_recording.py",
        "sim_vehicles/record/write.py",
    ),
    "reads or writes a file of JSON or YAML": (
        "coordinator/fleet/addresses.py",
        "coordinator/fleet/collection/collect.py",
        "coordinator/fleet/collection/run_traces.py",
        "coordinator/report/facts/reader.py",
        "coordinator/report/landing/seal.py",
        "coordinator/key_mistakes.py",
        "coordinator/spec/files/declared_ranges.py",
        "coordinator/spec/files/validation.py",
        "infra/bench/report/duckdb_recount.py",
        "node_agent/connectors/ros/plain_values.py",
        "node_agent/control/plan_store.py",
        "node_agent/host/files/durable_files.py",
        "node_agent/host/files/plan_files.py",
        "node_agent/virtual/plan_file.py",
        "node_agent/virtual/scenario_file.py",
        "sim_vehicles/inputs/maps.py",
        "sim_vehicles/operators/models/lanes.py",
        "sim_vehicles/readers/scene_file.py",
        "sim_vehicles/world/scene.py",
    ),
    "reads files that may be anything": ("coordinator/cli/completion.py",),
    "reads what another process prints": (
        "coordinator/cli/commands/simulate.py",
        "coordinator/fleet/local/local_agents.py",
        "coordinator/local_run/agent_logs.py",
        "coordinator/local_run/input_feeder.py",
        "coordinator/local_run/installed.py",
        "coordinator/local_run/simulation.py",
        "infra/generate.py",
    ),
    "describes the keys of a JSON Schema": (
        "coordinator/spec/files/schema.py",
        "infra/file_reference.py",
    ),
    "parameters of operators, policies and aggregates, which users declare": (
        "coordinator/spec/catalog.py",
        "coordinator/spec/checks/aggregates.py",
        "coordinator/spec/costs.py",
        "coordinator/spec/files/cluster_file.py",
        "coordinator/spec/files/costs_file.py",
        "coordinator/spec/files/query_file.py",
        "coordinator/spec/files/window_file.py",
        "coordinator/spec/overload_given.py",
        "coordinator/spec/query.py",
        "coordinator/spec/sharing/equivalence.py",
        "node_agent/operators/aggregate_functions.py",
        "node_agent/operators/registry.py",
        "node_agent/operators/signature.py",
        "node_agent/testing/bench.py",
        "node_agent/testing/loaded.py",
        "node_agent/testing/readings.py",
        "node_agent/testing/simulated_plan.py",
        "node_agent/testing/windows.py",
        "sim_vehicles/operators/chain.py",
    ),
    "payloads of tuples": (
        "node_agent/client/columns.py",
        "coordinator/examples/patrol_robot/operators.py",
        "coordinator/examples/robot/operators.py",
        "coordinator/examples/sorting_line/feed.py",
        "coordinator/examples/sorting_line/operators.py",
        "coordinator/examples/two_nodes/operators.py",
        "node_agent/operators/codecs.py",
        "node_agent/operators/payloads/stream_type.py",
    ),
    "messages of any method, or the fields of one": (
        "coordinator/fleet/agents.py",
        "coordinator/fleet/calls.py",
        "coordinator/fleet/grpc_calls.py",
        "coordinator/plan/layout_windows.py",
        "node_agent/control/service.py",
    ),
    "what asyncio and ssl hand over": (
        "node_agent/tls/identity.py",
        "node_agent/virtual/simulated/simulated_loop.py",
        "node_agent/virtual/simulated/simulated_processes.py",
    ),
    "figures of Plotly, schemas and scenes of MCAP: plain values for another program": (
        "infra/papers/page.py",
        "sim_vehicles/export/mcap_file.py",
        "sim_vehicles/export/mcap_scene.py",
        "sim_vehicles/export/mcap_schemas.py",
        "sim_vehicles/story/page/bars.py",
        "sim_vehicles/story/page/contest_plots.py",
        "sim_vehicles/story/page/playback.py",
        "sim_vehicles/story/page/plots.py",
        "sim_vehicles/story/page/scene_html.py",
    ),
}


def _annotations(tree: ast.AST) -> Iterator[str]:
    """Types as they are written, those in quotes as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            yield ast.unparse(node) if node.value.id in MAPPINGS else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "[str, Any]" in node.value:
            yield from (each for each in UNTYPED if each in node.value)


def _aliases(trees: Mapping[Path, ast.Module]) -> frozenset[tuple[str, str]]:
    """Other names of such a mapping: module and name."""
    return frozenset(
        (".".join(path.with_suffix("").parts), target.id)
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and ast.unparse(node.value) in UNTYPED
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def _names_one(tree: ast.Module, aliases: frozenset[tuple[str, str]]) -> bool:
    """Whether a file takes such a name from another one."""
    of_modules = {f"{module.rpartition('.')[2]}.{name}" for module, name in aliases}
    names = {name for _, name in aliases}
    return any(
        (isinstance(node, ast.ImportFrom) and any((node.module, each.name) in aliases for each in node.names))
        or (isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node) in of_modules)
        for node in ast.walk(tree)
    )


def _untyped() -> set[str]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    trees = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in files}
    aliases = _aliases(trees)
    return {
        path.as_posix()
        for path, tree in trees.items()
        if not UNTYPED.isdisjoint(_annotations(tree)) or _names_one(tree, aliases)
    }


def test_mappings_of_anything_stand_at_edges_alone() -> None:
    named = sorted(file for files in EDGES.values() for file in files)
    assert len(named) == len(set(named)), "a file has one reason"
    assert sorted(_untyped()) == named


INNER = ("node_agent/core", "node_agent/runtime", "node_agent/link", "node_agent/wire")
OPAQUE = {  # files of the inner rooms that name `Any`, and why
    "node_agent/core/shedding/utility.py": "one alias: arithmetic on what a payload holds",
}


def test_values_of_users_are_objects_to_the_inner_rooms() -> None:
    named = {
        path.relative_to(ROOT).as_posix()
        for room in INNER
        for path in (ROOT / room).rglob("*.py")
        if any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    }
    assert sorted(named) == sorted(OPAQUE)
