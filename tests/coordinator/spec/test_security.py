"""What a cluster file may say about addresses and names with mutual TLS, and that plans stay as they were without."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec import cluster
from coordinator.spec.files import security
from tests.coordinator.wording import Wording, facts, printed

Files = Callable[[str, str], tuple[Path, Path]]
WORDING = Wording("validate", "addresses and names with mutual TLS")
QUERY = """\
shimekiri: 1
query: q
sources: {s: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}}
operators: {o: {run: pass, in: s, cost: 1 ms}}
outputs: {out: {from: o, at: a, deadline: 50 ms}}
"""


def _cluster(nodes: str, more: str = "security: mutual-tls") -> str:
    return f"shimekiri: 1\nnodes:\n{nodes}\n{more}\n"


def _refused(files: Files, nodes: str) -> tuple[list[tuple[str, int, str, str]], list[str]]:
    """File, line, code and subject of every problem, and what is printed."""
    path = files(QUERY, _cluster(nodes))[1]
    with pytest.raises(BadInputError) as found:
        cluster.load(path)
    return [facts(problem) for problem in found.value.problems], printed(found.value, path.parent)


@pytest.mark.parametrize("address", ["10.0.0.7:7700", "pi1:7700", "pi1.local:7700", "[fd00::7]:7700", "127.0.0.1:0"])
def test_with_mutual_tls_any_address_of_a_node_will_do(files: Files, address: str) -> None:
    paths = files(QUERY, _cluster(f'  a: {{address: "{address}"}}'))
    found = cluster.load(paths[1])
    assert found.security == "mutual-tls" and found.certificates == paths[1].parent / "certs"
    plan = planner.make_plan(*paths, Choices())  # certificates need not be there yet
    assert plan.cluster.security == "mutual-tls" and "certificates" not in plan.to_json()["cluster"]


def test_certificates_may_be_elsewhere_and_are_no_part_of_the_plan(files: Files) -> None:
    paths = files(QUERY, _cluster('  a: {address: "pi1:7700"}', "security: mutual-tls\ncertificates: ../keys"))
    assert cluster.load(paths[1]).certificates == paths[1].parent / "../keys"
    elsewhere = planner.make_plan(*paths, Choices()).cluster
    paths[1].write_text(_cluster('  a: {address: "pi1:7700"}'))
    assert planner.make_plan(*paths, Choices()).cluster == elsewhere


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("0.0.0.0:7700", "unreachable_host"),
        ("[::]:7700", "unreachable_host"),
        ("10.0.0.300:7700", "no_host"),
        ("pi 1:7700", "no_host"),
        ("-pi:7700", "no_host"),
        ("fd00::7:7700", "ipv6_without_brackets"),
        ("pi1", "no_host_and_port"),
        ("pi1:٧", "no_host_and_port"),
    ],
)
def test_addresses_that_lead_nowhere(files: Files, address: str, code: str) -> None:
    found, lines = _refused(files, f'  a: {{address: "{address}"}}')
    assert found == [("cluster.yaml", 3, code, "nodes.a.address")]
    WORDING.check(address, lines)


def test_names_that_certificates_cannot_tell_apart(files: Files) -> None:
    names = ["a", "A", "Client", "coordinator", "x" * 64]
    found, lines = _refused(files, "\n".join(f'  {name}: {{address: "pi:{7700 + i}"}}' for i, name in enumerate(names)))
    assert found == [
        ("cluster.yaml", 4, "names_differ_by_case", "nodes.A"),
        ("cluster.yaml", 5, "reserved_name", "nodes.Client"),
        ("cluster.yaml", 6, "reserved_name", "nodes.coordinator"),
        ("cluster.yaml", 7, "name_too_long", f"nodes.{'x' * 64}"),
    ]
    WORDING.check("names", lines)


def test_without_tls_names_may_be_any(files: Files) -> None:
    text = _cluster('  a: {address: "127.0.0.1:7700"}\n  A: {address: "localhost:7710"}', "")
    assert cluster.load(files(QUERY, text)[1]).security == security.INSECURE


def test_names_in_certificates() -> None:
    assert security.name_of("a") == "a.node.shimekiri"
    assert security.name_of("coordinator") == "coordinator.shimekiri"
    assert security.name_of("client") == "client.shimekiri"
