"""Errors have codes, and tests compare these: sentences stand in the snapshots of `tests.sentences` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("protos", "node_agent", "coordinator", "sim_vehicles", "infra")
CODED = frozenset({"code", "mistake", "mistakes", "problem", "counter", "cause"})  # what an error keeps its code in

WITHOUT = {  # exception classes without a code, and why
    # signals inside a room, which another part of it takes up
    "coordinator.calculus.curves.TooLongError": "a bound that is not searched for becomes an UnboundedError",
    "coordinator.calculus.selectivity.UndeclaredError": "becomes the reason in a claim",
    "coordinator.guarantee.analysis._HopelessError": "becomes the reason in a claim",
    "coordinator.solve.guaranteed.sub_deadlines.ExhaustedError": "ends a search with what was found",
    "coordinator.solve.repair.bisect.OverError": "ends a search with what was found",
    "coordinator.explain.plan_summary._NoTimeError": "becomes a sentence of the summary",
    "coordinator.solve.repair.within_ranges.yaml_text.NotInPlaceError": "becomes a BadInputError with the file",
    "node_agent.client.connection.LostError": "the client connects again",
    "node_agent.connectors.connector_ports.ConnectionLostError": "the connector connects again, and the log says why",
    "node_agent.connectors.stamps.StampError": "the message is refused, and the log says why",
    "node_agent.control.http2_connection.Http2Error": "ends a connection; h2 has told the other end why",
    "node_agent.control.metrics.http_server.BadRequestError": "answered with a status of HTTP",
    "node_agent.core.shedding.utility._UnjudgedError": "the tuple has the least value",
    "node_agent.host.ipc.IpcError": "a defect between the processes of one agent",
    "node_agent.operators.source_call.EndedError": "nothing more comes, and the log says so",
    "node_agent.runtime.executor.LateError": "the tuple is lost, with a cause in its record",
    "node_agent.runtime.executor.StaleError": "the tuple is shed, with a policy in its record",
    "node_agent.connectors.recordings.mcap_reader._DamagedError": "becomes the end of what can be read",
    "node_agent.wire.tuple_count.WalkError": "becomes a FrameError",
    "sim_vehicles.world.limits.OffScaleError": "becomes a mistake of the file's row",
    "sim_vehicles.story.timeline.clocks.UnknownOffsetError": "becomes a MissingRecordError",
    # texts that a mistake with a code takes into its sentence
    "coordinator.fleet.identity.certificates.UnusableError": "within 'unusable_ca' and 'unusable_identity'",
    "coordinator.spec.expressions.kinds.KindError": "within an ExpressionError",
    "coordinator.spec.expressions.tokens.ExpressionError": "within 'bad_expression'; says the column",
    "protos.json_shape.ShapeError": "within a PlanFileError; says the path",
    # what walks through whole installations: its text is the output of programs
    "coordinator.lab.walk.WalkError": "the command and what it printed",
    "infra.agent_tests.EnvironmentFailedError": "a command of development",
    "infra.chaos.host_cluster.ChaosError": "a command of development",
    "infra.papers.conventional.read_plan.BeyondTransactionsError": "a command of development",
    "infra.environments.pinned_environment.UnavailableError": "a command of development",
    "infra.release.checklist.HoldsNotError": "a command of development",
    "infra.release.two_pis.WalkError": "a command of development",
    "infra.release.userland.UserlandError": "a command of development",
    "infra.second_witness.witness_process.SilentError": "a command of development",
}

MATCHES = {  # tests that look at words, and why
    "tests/coordinator/change/test_killed_change.py": "words of the system",
    "tests/coordinator/fleet/identity/test_certs.py": "words of OpenSSL",
    "tests/coordinator/guarantee/test_charges.py": "a value that only damage makes; the plan's reader has the code",
    "tests/infra/papers/test_claims.py": "a caller's mistake, which no user can make",
    "tests/infra/papers/test_papers.py": "commands of development",
    "tests/infra/peers/test_peers.py": "commands of development",
    "tests/infra/release/test_release.py": "commands of development",
    "tests/node_agent/control/test_metrics.py": "the whole log of an agent that does not start",
    "tests/node_agent/host/test_ipc.py": "damage that a start reports in a sentence of its log",
    "tests/node_agent/host/test_ring_directory.py": "words of the system",
    "tests/node_agent/host/test_starts.py": "words of the system",
    "tests/node_agent/virtual/simulated/test_simulated_rings.py": "words of the system",
    "tests/sim_vehicles/closed_loop/test_closed_loop.py": "a caller's mistake, which no user can make",
    "tests/sim_vehicles/replay/test_replay_live_loop.py": "words of the test itself",
    "tests/sim_vehicles/v2v/test_etsi.py": "a caller's mistake, which no user can make",
    # operators are plain Python, as users write them: an agent names what one raises with the code `raised`
    "tests/sim_vehicles/operators/test_chain.py": "an operator's own error",
    "tests/sim_vehicles/operators/test_lanes.py": "an operator's own error",
    "tests/sim_vehicles/operators/test_own.py": "an operator's own error",
    "tests/sim_vehicles/operators/test_place.py": "an operator's own error",
    "tests/sim_vehicles/operators/test_reception.py": "an operator's own error",
    "tests/sim_vehicles/operators/test_tracking.py": "an operator's own error",
}


def _classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    yield f"{module}.{node.name}", node


def _bases(node: ast.ClassDef) -> list[str]:
    """By their last names."""
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def _attributes(node: ast.ClassDef) -> set[str]:
    """What the class declares, or sets of itself."""
    declared = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    set_ = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }
    return declared | set_


def test_every_error_has_a_code_or_a_reason_for_none() -> None:
    classes = dict(_classes())
    raised = {
        "Exception",
        "ValueError",
        "KeyError",
        "RuntimeError",
        "AssertionError",
        "TimeoutError",
        "ConnectionError",
    }
    coded: set[str] = set()  # by their last names
    errors: dict[str, ast.ClassDef] = {}
    for _ in range(5):  # as deep as they derive
        for name, node in classes.items():
            if any(base in raised for base in _bases(node)):
                errors[name] = node
                raised.add(node.name)
                if _attributes(node) & CODED or any(base in coded for base in _bases(node)):
                    coded.add(node.name)
    assert len(errors) > 60
    assert sorted(name for name, node in errors.items() if node.name not in coded) == sorted(WITHOUT)


def test_tests_compare_codes_and_not_words() -> None:
    found = set()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "match=" in text else ():
            raises = isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.raises"
            if raises and any(word.arg == "match" for word in node.keywords):
                found.add(path.relative_to(ROOT).as_posix())
    assert found == MATCHES.keys()
