"""`add`, `remove`, `deploy` and `status` with real agents: committed on all, or nothing has changed anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator.change import apply_change, next_plan, remedies
from coordinator.change.next_plan import Wish
from coordinator.cli import app
from coordinator.errors import CoordinatorError
from coordinator.fleet import addresses as address_file
from coordinator.fleet.addresses import Addresses
from coordinator.fleet.agents import Agents
from coordinator.fleet.deployment import deploy, deployed_plans
from coordinator.fleet.deployment.two_phase import Verb
from coordinator.fleet.local import local_agents
from coordinator.fleet.local.local_agents import LocalAgent, Wanted
from coordinator.model.choices import Choices
from coordinator.model.limits import Limits
from coordinator.plan import plan_file
from coordinator.solve import planner
from protos import agent_pb2
from protos.plan_document import Plan
from tests.coordinator.change.test_change_admission import BASE, CLUSTER, FLEET, heavy


class Town:
    """Two local agents, a directory with files, and the commands in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.plan, self.addresses = root, root / "plan.json", root / "addresses.json"
        self.agents: dict[str, LocalAgent] = {}
        for name in ("a", "b"):
            (self.agents[name],) = local_agents.start(
                [Wanted(name, "127.0.0.1:0", "127.0.0.1:0", root / "state" / name)]
            )
        Addresses(self.addresses, {name: one.address for name, one in self.agents.items() if one.address}).write()
        for name, text in (("base", BASE), ("fleet", FLEET), ("cluster", CLUSTER)):
            (root / f"{name}.yaml").write_text(text)

    def make(self, *queries: str) -> Plan:
        paths = [self.root / f"{name}.yaml" for name in queries]
        made = planner.make_plan(paths, self.root / "cluster.yaml", Choices(quick=True))
        plan_file.write(made, self.plan)
        return made

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, what it says, and what is wrong."""
        given = [*words, "--addresses", str(self.addresses)]
        done = CliRunner().invoke(app.app, given, catch_exceptions=True)
        if isinstance(done.exception, CoordinatorError):
            return done.exception.exit_code, done.stdout, "\n".join(done.exception.lines())
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout, done.stderr

    def change(self, *words: str) -> tuple[int, str, str]:
        return self.run(*words, "--plan", str(self.plan))

    def connect(self) -> Agents:
        return Agents(address_file.load(self.addresses).nodes)

    def runs(self) -> dict[str, tuple[str, int, list[str]]]:
        """What each agent admits tuples under, its epoch, and all hashes that it has."""
        with self.connect() as agents:
            statuses = agents.status()
        found = {}
        for name, status in statuses.items():
            one = deployed_plans.committed(status)
            seen = sorted(plan.hash.hex() for plan in status.plans if plan.state != agent_pb2.DRAINING)
            found[name] = (one.hash.hex() if one else "", one.epoch if one else 0, seen)
        return found


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    app.register()


@pytest.fixture(scope="module")
def agents_of_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    town = Town(tmp_path_factory.mktemp("town"))
    try:
        yield town
    finally:
        for agent in town.agents.values():
            agent.process.terminate()
            agent.process.wait(30)


@pytest.fixture
def town(agents_of_town: Town) -> Iterator[Town]:
    """With nothing deployed and no plan files of before."""
    yield agents_of_town
    with agents_of_town.connect() as agents:
        assert deploy.stop(None, agents, 30) == []
    for path in agents_of_town.root.glob("*.json"):
        if path.name != "addresses.json":
            path.unlink()


def files(town: Town) -> set[str]:
    return {path.name for path in town.root.glob("*.json")} - {"addresses.json"}


def test_a_query_is_added_and_removed(town: Town) -> None:
    before = town.make("base")
    assert town.run("deploy", str(town.plan))[0] == 0
    code, said, wrong = town.change("add", str(town.root / "fleet.yaml"))
    assert code == 0, wrong
    after = plan_file.read(town.plan)
    assert {hash_ for hash_, _, _ in town.runs().values()} == {after.hash}
    assert {epoch for _, epoch, _ in town.runs().values()} == {2}
    kept_as = f"plan-{before.hash[:8]}.json"
    assert files(town) == {"plan.json", kept_as} and plan_file.read(town.root / kept_as) == before
    assert "fleet beside base" in said and "nothing that runs is moved" in said and kept_as in said
    code, said, _ = town.run("status", "--plan", str(town.plan), "--json")
    queries = json.loads(said)["queries"]
    assert set(queries) == {"base", "fleet"}
    entry = queries["fleet"][after.hash]
    assert set(entry["nodes"]) == {"a", "b"} and entry["outputs"]["x"]["guaranteed"]
    assert "fleet" in town.run("status", "--plan", str(town.plan))[1]
    code, said, wrong = town.change("remove", "base", "--json", "-o", str(town.plan))
    assert code == 0, wrong
    assert plan_file.read(town.root / f"plan-{after.hash[:8]}.json") == after, "kept, as without -o"
    told = json.loads(said)
    assert told["deployed"] and told["epoch"] == 3 and set(told["queries"]) == {"fleet"}
    assert {hash_ for hash_, _, _ in town.runs().values()} == {told["after"]} == {plan_file.read(town.plan).hash}


def test_plans_under_any_name_are_part_of_the_run_they_were_before(town: Town) -> None:
    town.run("collect", "-o", str(town.root / "runs"))  # what other tests have run there
    first, later = town.make("base"), town.root / "later.json"
    assert town.run("deploy", str(town.plan))[0] == 0
    assert town.change("add", str(town.root / "fleet.yaml"), "-o", str(later))[0] == 0
    assert town.run("remove", "fleet", "--plan", str(later))[0] == 0
    code, said, wrong = town.run("collect", "--plan", str(later), "-o", str(town.root / "runs"))
    assert code == 0, wrong
    kept = {path.stem for path in Path(said.strip()).glob("earlier/*.json")}
    assert first.hash in kept and len(kept) == 2, "that of plan.json, and the one that later.json was"
    assert "no node has any record" not in wrong
    code, said, wrong = town.run("collect", "--plan", str(town.plan), "-o", str(town.root / "runs"))
    assert code == 0 and f"no node has any record of plan {first.hash[:8]}: " in wrong, wrong


def test_a_cluster_or_a_plan_is_no_query_to_add(town: Town) -> None:
    town.make("base")
    for file, what in (("cluster.yaml", "cluster"), ("plan.json", "plan")):
        code, _, wrong = town.change("add", str(town.root / file), "--dry-run")
        assert code == 2 and wrong.endswith(f"{file}: is a {what}, not a query; give a query.yaml"), wrong


def test_what_is_refused_changes_nothing(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "MEND_S", 0.5)
    town.make("base", "fleet")
    assert town.run("deploy", str(town.plan))[0] == 0
    runs, there, content = town.runs(), files(town), town.plan.read_bytes()
    (town.root / "heavy.yaml").write_text(heavy("4 ms", "30 ms"))
    code, said, wrong = town.change("add", str(town.root / "heavy.yaml"))
    assert code == 3 and said == ""
    assert (
        "heavy is not added to what runs: no node was told of it" in wrong and "output h of heavy: its bound" in wrong
    )
    assert (town.runs(), town.plan.read_bytes()) == (runs, content) and files(town) - {"plan-replacing.json"} == there
    code, _, wrong = town.change("remove", "nobody")
    assert code == 2 and "has no query 'nobody'" in wrong and town.runs() == runs
    code, _, wrong = town.change("remove", "base", "fleet")
    assert code == 2 and f"'coordinator stop {town.plan}' ends it" in wrong and town.runs() == runs


def test_a_change_that_is_itself_too_long_leaves_the_next_plan_to_deploy(town: Town) -> None:
    town.make("base", "fleet")
    code, said, wrong = town.change("remove", "fleet", "--dry-run", "--loading", "9 ms", "--json")
    assert code == 3 and "fleet is not removed" in wrong and "say so with --loading" in wrong
    replacing = town.root / "plan-replacing.json"
    assert json.loads(said)["replacement_file"] == str(replacing) and list(plan_file.read(replacing).queries) == [
        "base"
    ]
    assert town.change("remove", "fleet", "--dry-run", "--loading", "soon")[0] == 2


def test_a_dry_run_needs_no_agents_and_tells_what_would_be(town: Town) -> None:
    town.make("base")
    out = town.root / "next.json"
    code, said, _ = town.change("add", str(town.root / "fleet.yaml"), "--dry-run", "-o", str(out), "--json")
    assert code == 0 and not json.loads(said)["deployed"] and json.loads(said)["plan"] == str(out)
    assert list(plan_file.read(out).queries) == ["base", "fleet"] and files(town) == {"plan.json", "next.json"}
    assert all(hash_ == "" for hash_, _, _ in town.runs().values())
    assert "nothing was deployed" in town.change("add", str(town.root / "fleet.yaml"), "--dry-run")[1]
    running_now = town.plan.read_bytes()
    code, _, wrong = town.change("add", str(town.root / "fleet.yaml"), "--dry-run", "-o", str(town.plan))
    assert code == 2 and "is the plan that runs" in wrong and town.plan.read_bytes() == running_now


def test_the_plan_is_checked_against_what_the_agents_run(town: Town) -> None:
    before = town.make("base")
    query = str(town.root / "fleet.yaml")
    code, _, wrong = town.change("add", query)
    assert code == 2 and f"no node runs plan {before.hash[:8]}" in wrong and "coordinator deploy" in wrong
    assert town.run("deploy", str(town.plan))[0] == 0
    assert town.change("add", query)[0] == 0
    older = town.root / f"plan-{before.hash[:8]}.json"
    code, _, wrong = town.run("remove", "base", "--plan", str(older))
    assert code == 2 and f"that is {town.plan}: give it with --plan" in wrong, wrong
    assert "node a: runs plan" in wrong and "of base+fleet" in wrong
    with Agents({"b": address_file.load(town.addresses).nodes["b"]}) as agents:
        deploy.stop({bytes.fromhex(plan_file.read(town.plan).hash)}, agents, 30)
    code, _, wrong = town.change("remove", "base")
    assert code == 2 and "not every node runs plan" in wrong and "node b: runs no plan" in wrong


def test_deploying_a_plan_that_lacks_what_runs_is_refused_unless_it_replaces(town: Town) -> None:
    town.make("base", "fleet")
    assert town.run("deploy", str(town.plan))[0] == 0 and town.run("deploy", str(town.plan))[0] == 0
    runs = town.runs()
    alone = town.make("base")
    code, _, wrong = town.run("deploy", str(town.plan))
    assert code == 2 and "lacks fleet" in wrong and "coordinator add QUERY.yaml" in wrong and "--replace" in wrong
    assert town.runs() == runs
    assert town.run("deploy", str(town.plan), "--replace")[0] == 0
    assert {hash_ for hash_, _, _ in town.runs().values()} == {alone.hash}
    more = town.make("fleet", "base")
    assert town.run("deploy", str(town.plan))[0] == 0, "nothing that runs would end"
    assert {hash_ for hash_, _, _ in town.runs().values()} == {more.hash}


def test_a_node_that_the_next_plan_does_not_have_ends_the_one_before(town: Town) -> None:
    town.make("base")
    assert town.run("deploy", str(town.plan))[0] == 0
    (town.root / "one.yaml").write_text('shimekiri: 1\nnodes:\n  a: {address: "127.0.0.1:7700"}\n')
    (town.root / "solo.yaml").write_text(BASE.replace("query: base", "query: solo").replace("at: b", "at: a"))
    solo = planner.make_plan(town.root / "solo.yaml", town.root / "one.yaml", Choices(quick=True))
    plan_file.write(solo, town.plan)
    assert town.run("deploy", str(town.plan))[0] == 2, "base would end"
    assert town.run("deploy", str(town.plan), "--replace")[0] == 0
    runs = town.runs()
    assert runs["a"][0] == solo.hash and runs["b"][0] == "", "nobody admits tuples under a plan that is over"


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit])
def test_interrupted_before_the_decision_nothing_has_changed(town: Town, ended: type[BaseException]) -> None:
    before = town.make("base")
    assert town.run("deploy", str(town.plan))[0] == 0
    runs = town.runs()
    change = next_plan.added(before, town.plan, town.root / "fleet.yaml", Wish(Limits(seconds=20)))
    assert change.after is not None

    told: list[str] = []

    def progress(text: str) -> None:
        told.append(text)
        if text.startswith("commit"):
            raise ended

    with town.connect() as agents, pytest.raises(ended):
        apply_change.apply(before, change.after, town.plan, agents, None, progress)
    assert ("interrupted: nothing has changed" in told) == (ended is KeyboardInterrupt)
    assert town.runs() == runs and files(town) == {"plan.json"} and plan_file.read(town.plan) == before
    with town.connect() as agents:
        done = apply_change.apply(before, change.after, town.plan, agents)
    assert done.deployed.changed and plan_file.read(town.plan) == change.after


def test_a_change_waits_for_the_one_before(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    town.make("base")
    assert town.run("deploy", str(town.plan))[0] == 0
    drains = [{"0a1b2c3d": ["b"]}, {"0a1b2c3d": ["b"]}, {}]
    monkeypatch.setattr(deployed_plans, "draining", lambda _: drains.pop(0))
    code, _, said = town.change("add", str(town.root / "fleet.yaml"))
    assert code == 0 and not drains and said.count("waiting until plan 0a1b2c3d on b has drained") == 1, "told once"
    monkeypatch.setattr(deployed_plans, "draining", lambda _: {"0a1b2c3d": ["a", "b"]})
    monkeypatch.setattr(apply_change, "DRAIN_S", 0.2)
    runs = town.runs()
    code, _, wrong = town.change("remove", "base")
    assert code == 2 and "still drains after 0.2 s: plan 0a1b2c3d on a, b; nothing was changed" in wrong
    assert town.runs() == runs


def test_a_change_does_not_overtake_another_deployment(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that begin from one plan, the later would end what the earlier one adds. One that was broken off between
    its phases is given up when it cannot go on any more."""
    before = town.make("base")
    assert town.run("deploy", str(town.plan))[0] == 0
    other = town.make("base", "fleet")
    plan_file.write(before, town.plan)
    hash_, epoch = other.hash, town.runs()["a"][1] + 1
    with town.connect() as agents:
        request = deploy._requests(other, bytes.fromhex(hash_), epoch, agents.places)[Verb.PREPARE]
        replies = agents.all("Prepare", dict.fromkeys(agents.addresses, request), 10)
        assert all(reply.accepted for reply in replies.values()), replies
    runs, query = town.runs(), str(town.root / "fleet.yaml")
    with monkeypatch.context() as unseen:  # it begins after the look at what is under way
        unseen.setattr(apply_change, "_wait_for_others", lambda *_: None)
        code, _, wrong = town.change("add", query, "--no-sharing")
    assert code == 2 and "another deployment has begun: nothing was changed" in wrong
    assert f"plan {hash_[:8]} is prepared on a, b" in wrong
    assert town.runs() == runs and plan_file.read(town.plan) == before and files(town) == {"plan.json"}
    monkeypatch.setattr(apply_change, "BEGUN_S", 0.2)
    code, _, said = town.change("add", query, "--no-sharing")
    assert code == 0 and f"giving up plan {hash_[:8]} on a, b, which nobody commits" in said, said
    assert {(one[1], hash_ in one[2]) for one in town.runs().values()} == {(epoch + 1, False)}


def test_somebody_else_was_quicker(town: Town) -> None:
    """The check is made again with what is deployed on, so two changes at once cannot both begin from one plan."""
    before = town.make("base")
    assert town.run("deploy", str(town.plan))[0] == 0
    change = next_plan.added(before, town.plan, town.root / "fleet.yaml", Wish(Limits(seconds=20)))
    assert change.after is not None
    town.make("base", "fleet")
    assert town.run("deploy", str(town.plan))[0] == 0
    runs = town.runs()
    with town.connect() as agents, pytest.raises(deployed_plans.OtherPlanError):
        apply_change.apply(before, change.after, town.plan, agents)
    assert town.runs() == runs
