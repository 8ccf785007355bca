"""Several cores, the pure parts: which parts of a plan are this agent's, what is on disk, what status says."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from node_agent.control.deployment import Deployment, Durable, State
from node_agent.control.plan_check import RefusalError, checked_prepare
from node_agent.control.plan_store import PlanStore
from node_agent.control.service import status_reply
from node_agent.host import ipc
from node_agent.host.files.place_names import place_name
from node_agent.host.files.plan_files import damage, read_state
from node_agent.host.files.state_dir import StateDir
from node_agent.host.ring_directory import MOST_RINGS
from node_agent.host.settings import Settings
from node_agent.host.trace_ring import Ring
from node_agent.tools import cli
from protos import agent_pb2, plan_pb2
from protos.records import NO_REF, Header
from tests.sentences import Wording

SAID = Wording("deploy", "core slots")

WHOLE = b'{"plan":1}'
HASH = hashlib.sha256(WHOLE).hexdigest()


def request(*names: str, **changes: Any) -> agent_pb2.PrepareRequest:
    """A plan with an empty part for each of these places."""
    part: dict[str, Any] = {"version": 1, "query": "q", "policy": {"name": "edf", "largest_batch": 1}} | changes
    plan = json.dumps({"nodes": {name: part | {"node": name} for name in names}}).encode()
    routes = [agent_pb2.Route(index=i, node=name, address="127.0.0.1:7") for i, name in enumerate(names)]
    return agent_pb2.PrepareRequest(plan=plan, hash=hashlib.sha256(plan).digest(), epoch=1, routes=routes)


def test_the_parts_of_an_agent_are_those_of_its_places() -> None:
    checked = checked_prepare(request("a", "a.1", "b", "b.1", "aa", "a-1"), "a", 2)
    assert sorted(checked.local_plans) == [0, 1]
    assert [plan_pb2.LocalPlan.FromString(checked.local_plans[core]).node for core in (0, 1)] == ["a", "a.1"]
    assert sorted(checked_prepare(request("a", "b"), "a", 4).local_plans) == [0], (
        "cores that a plan does not use stay idle"
    )
    assert sorted(checked_prepare(request("a.2", "b"), "a", 4).local_plans) == [2]


@pytest.mark.parametrize(
    ("names", "cores", "expected"),
    [
        (("a", "a.1"), 1, "no_core a"),
        (("a", "a.1", "a.10"), 4, "no_core a"),
        (("b", "b.1"), 2, "unknown_node a"),
        (("a.x", "a.01", "a.1.1"), 8, "unknown_node a"),
    ],
)
def test_a_plan_for_cores_that_are_not_here_is_refused_with_the_mend(
    names: tuple[str, ...], cores: int, expected: str
) -> None:
    with SAID.refuses(expected, kind=RefusalError):
        checked_prepare(request(*names), "a", cores)


def test_one_bad_part_refuses_all_and_is_named() -> None:
    given = request("a", "a.1")
    plan = json.loads(given.plan)
    plan["nodes"]["a.1"]["policy"]["name"] = "no"
    plan = json.dumps(plan).encode()
    bad = agent_pb2.PrepareRequest(plan=plan, hash=hashlib.sha256(plan).digest(), epoch=1)
    with SAID.refuses("unknown_policy a.1", kind=RefusalError):
        checked_prepare(bad, "a", 2)


def test_parts_of_several_cores_come_back_from_disk_and_those_of_one_are_as_ever(tmp_path: Path) -> None:
    store = PlanStore(tmp_path, cores=2)
    store.put_plan(HASH, WHOLE, {0: b"first", 1: b"second"})
    entry = Deployment(HASH, 4, State.COMMITTED, "q", (), (0, 1))
    store.write(Durable(4, 0, (entry,)))
    assert PlanStore(tmp_path, cores=2).load() == Durable(4, 0, (entry,))
    (stored,) = read_state(tmp_path).plans
    assert [damage(tmp_path, stored, core) for core in (0, 1)] == ["", ""]
    assert damage(tmp_path, stored, 2), "there is no part for it"
    (tmp_path / f"{HASH}.1.local").write_bytes(b"other")
    again = PlanStore(tmp_path, cores=2)
    assert again.load() == Durable(4, 0) and f"{HASH}.1.local is damaged" in again.problems[0]
    again.write(Durable(4, 0))
    assert not (tmp_path / f"{HASH}.local").exists()
    store.put_plan(HASH, WHOLE, {0: b"first"})
    store.write(Durable(5, 0, (Deployment(HASH, 5, State.COMMITTED, "q"),)))
    assert set(json.loads((tmp_path / "state.json").read_text())["plans"][0]) == {
        "hash", "epoch", "state", "query", "routes", "bytes", "local",
    }  # fmt: skip
    assert PlanStore(tmp_path).load().deployments[0].places == (0,)


def test_with_fewer_cores_than_its_plan_an_agent_resumes_none_of_it(tmp_path: Path) -> None:
    store = PlanStore(tmp_path, cores=3)
    store.put_plan(HASH, WHOLE, {0: b"first", 2: b"third"})
    store.write(Durable(4, 0, (Deployment(HASH, 4, State.COMMITTED, "q", (), (0, 2)),)))
    fewer = PlanStore(tmp_path, node="a", cores=2)
    assert fewer.load() == Durable(4, 0)
    assert "it needs place a.2, and this agent has --cores 2; start it with --cores 3" in fewer.problems[0]
    assert PlanStore(tmp_path, cores=3).load().deployments, "until something else is deployed, more cores resume it"


def test_the_status_of_an_agent_sums_up_its_places() -> None:
    plan = Deployment(HASH, 1, State.COMMITTED, "q", (), (0, 1))
    counts = [(HASH, 1, 2, "q", 1, 2, 3)]
    one = ipc.Status(1, 71, True, 0, 100, 10, 1, 5, 7, 9, tuple(counts), {"shed": 1})
    two = ipc.Status(1, 72, True, 50, 100, 20, 2, 6, 8, 4, tuple(counts), {"shed": 2, "full": 1})
    both = status_reply("a", [one, two], [plan], {"highest_epoch": 9})
    assert (both.boot, both.runtime_alive, both.uptime_ns, both.busy_ns, both.records_written) == (
        71,
        True,
        100,
        30,
        15,
    )
    assert both.longest_hold_ns == 9, "of the one that was held longest, not of all together"
    (told,) = both.plans
    assert list(told.queries) == ["q"]
    assert (told.ready, told.waiting, told.unacknowledged) == (2, 4, 6)
    assert {each.name: each.value for each in both.counters} == {"highest_epoch": 9, "shed": 3, "full": 1}
    half = status_reply("a", [None, two], [plan])
    assert not half.runtime_alive and half.boot == 72 and half.plans[0].ready == 1
    assert not status_reply("a", [None], []).runtime_alive


def test_places_and_where_they_listen(tmp_path: Path) -> None:
    assert [place_name("a", core) for core in range(3)] == ["a", "a.1", "a.2"]
    places = (("a", ("127.0.0.1", 5)), ("a.1", ("::1", 6)))
    settings = Settings("a", ("127.0.0.1", 0), ("127.0.0.1", 5), StateDir(tmp_path), cores=2, places=places)
    second = settings.at(1)
    assert (second.name, second.data, second.core, second.cores) == ("a.1", ("::1", 6), 1, 2)
    routes = ((0, "a", "127.0.0.1:1"), (1, "a.1", "127.0.0.1:2"), (2, "b", "127.0.0.1:3"))
    own = ((0, "a", "127.0.0.1:5"), (1, "a.1", "[::1]:6"), (2, "b", "127.0.0.1:3"))
    assert settings.own_routes(routes) == second.own_routes(routes) == own


def test_rings_that_are_written_to_are_never_the_ones_that_go(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    live = []
    for boot in range(1, MOST_RINGS + 8):
        Ring.create(state.rings.path_of(boot), Header("a", NO_REF, boot, "c", 50, 0, 0), 1).close()
        if boot <= 8:
            live.append(state.rings.path_of(boot))
    assert state.rings.make_room(live) == 0
    assert state.rings.make_room(live[:4]) == 4
    assert all(path.exists() for path in live[:4])
    for path in state.rings.paths():
        path.unlink()
    state.rings.tidy()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--cores", "0"), "between 1 and 64"),
        (("--cores", "65"), "between 1 and 64"),
        (("--cores", "2", "--data", "127.0.0.1:65535"), "give one up to 65534"),
        (("--cores", "2", "--name", "a.b"), "which names places"),
        (("--cores", "2", "--name", "a" * 30), "at most 29"),
    ],
)
def test_cores_that_cannot_be_are_bad_arguments(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "--name", "a", *words]) == 2
    assert why in capsys.readouterr().err
