"""What a cluster file may say about addresses and names with mutual TLS, and that plans stay as they were without."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.model.choices import Choices
from coordinator.solve import planner
from coordinator.spec import cluster
from coordinator.spec.files import security

Files = Callable[[str, str], tuple[Path, Path]]
QUERY = """\
shimekiri: 1
query: q
sources: {s: {at: a, type: json, arrival: {burst: 1, period: 100 ms}}}
operators: {o: {run: pass, in: s, cost: 1 ms}}
outputs: {out: {from: o, at: a, deadline: 50 ms}}
"""


def _cluster(nodes: str, more: str = "security: mutual-tls") -> str:
    return f"shimekiri: 1\nnodes:\n{nodes}\n{more}\n"


def _problems(files: Files, nodes: str) -> list[str]:
    with pytest.raises(BadInputError) as found:
        cluster.load(files(QUERY, _cluster(nodes))[1])
    return [line.rpartition("/")[2] for line in found.value.lines()]


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
    ("address", "said"),
    [
        ("0.0.0.0:7700", "is nowhere to connect to; write the address at which others reach the node"),
        ("[::]:7700", "is nowhere to connect to"),
        ("10.0.0.300:7700", "is neither an IP address nor a host name"),
        ("pi 1:7700", "is neither an IP address nor a host name"),
        ("-pi:7700", "is neither an IP address nor a host name"),
        ("fd00::7:7700", "is IPv6, which needs brackets before a port"),
        ("pi1", "is not HOST:PORT"),
        ("pi1:٧", "is not HOST:PORT"),
    ],
)
def test_addresses_that_lead_nowhere(files: Files, address: str, said: str) -> None:
    (problem,) = _problems(files, f'  a: {{address: "{address}"}}')
    assert problem.startswith("cluster.yaml:3: nodes.a.address") and said in problem


def test_names_that_certificates_cannot_tell_apart(files: Files) -> None:
    names = ["a", "A", "Client", "coordinator", "x" * 64]
    problems = _problems(files, "\n".join(f'  {name}: {{address: "pi:{7700 + i}"}}' for i, name in enumerate(names)))
    assert [problem.split(": ")[0] for problem in problems] == [f"cluster.yaml:{line}" for line in (4, 5, 6, 7)]
    assert "differs from node 'a' by case only" in problems[0] and "rename the node" in problems[1]
    assert "has 64 letters; certificates hold at most 63" in problems[3]


def test_without_tls_names_may_be_any(files: Files) -> None:
    text = _cluster('  a: {address: "127.0.0.1:7700"}\n  A: {address: "localhost:7710"}', "")
    assert cluster.load(files(QUERY, text)[1]).security == security.INSECURE


def test_names_in_certificates() -> None:
    assert security.name_of("a") == "a.node.shimekiri"
    assert security.name_of("coordinator") == "coordinator.shimekiri"
    assert security.name_of("client") == "client.shimekiri"
