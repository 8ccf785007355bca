"""Stories and properties of the deployment machine: these events, these commands."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from node_agent.control.deploy_protocol import BEING_STOPPED, MOST_RAN, MOST_RAN_BYTES, Deployments
from node_agent.control.deployment import (
    AnswerRequest,
    Commands,
    CommitInRuntime,
    Deployment,
    DrainInRuntime,
    Durable,
    LoadInRuntime,
    Ran,
    State,
    UnloadInRuntime,
    WriteDurably,
)
from tests.sampling import examples

A, B = "a" * 64, "b" * 64
ROUTES = ((1, "b", "127.0.0.1:7711"),)


def plan(hash_: str = A, epoch: int = 1) -> Deployment:
    """Its queries are called after its hash: what they are called must not count."""
    return Deployment(hash_, epoch, State.NONE, f"q{hash_[0]}", ROUTES)


class Driver:
    """Obeys at once: a disk that never fails, a runtime that loads everything."""

    def __init__(self, durable: Durable | None = None, why_not: str = "") -> None:
        self.machine = Deployments(durable)
        self.disk = durable or Durable()
        self.why_not = why_not
        self.told: Commands = []
        self.replies: dict[int, AnswerRequest] = {}
        self.do(self.machine.runtime_up())

    def do(self, commands: Commands) -> None:
        queue = list(commands)
        while queue:
            command = queue.pop(0)
            match command:
                case WriteDurably(durable):
                    self.disk = durable
                    queue += self.machine.wrote()
                case LoadInRuntime(deployment, _, place):
                    self.told.append(command)
                    queue += self.machine.loaded(deployment.hash, self.why_not, place)
                case AnswerRequest():
                    self.replies[command.token] = command
                case _:
                    self.told.append(command)

    def ask(self, event: str, *args: object) -> AnswerRequest:
        token = len(self.replies) + 1
        self.do(getattr(self.machine, event)(token, *args))
        return self.replies[token]


def test_prepare_then_commit() -> None:
    driver = Driver()
    assert driver.ask("prepare", plan()) == AnswerRequest(1, True, "", State.PREPARED)
    assert driver.disk.get(A) == replace(plan(), state=State.PREPARED)
    assert driver.ask("commit", A, 1) == AnswerRequest(2, True, "", State.COMMITTED)
    assert driver.told[-1] == CommitInRuntime(A, 1)


def test_a_commit_is_on_disk_before_the_runtime_hears_of_it() -> None:
    machine = Deployments()
    machine.runtime_up()
    machine.prepare(1, plan())
    (write,) = machine.loaded(A)
    assert isinstance(write, WriteDurably)
    assert machine.wrote() == [AnswerRequest(1, True, "", State.PREPARED)]
    (write,) = machine.commit(2, A, 1)
    assert isinstance(write, WriteDurably)
    assert machine.wrote() == [CommitInRuntime(A, 1), AnswerRequest(2, True, "", State.COMMITTED)]


def test_what_the_runtime_cannot_load_is_refused_and_not_stored() -> None:
    driver = Driver(why_not="operator my.x is not installed")
    reply = driver.ask("prepare", plan())
    assert (reply.accepted, reply.why, reply.state) == (False, "operator my.x is not installed", State.NONE)
    assert driver.disk == Durable()


def test_a_disk_that_fails_refuses_and_undoes() -> None:
    machine = Deployments()
    machine.runtime_up()
    machine.prepare(1, plan())
    machine.loaded(A)
    assert machine.wrote("no space left") == [UnloadInRuntime(A), AnswerRequest(1, False, "no space left", State.NONE)]
    assert not machine.busy


def test_an_end_that_could_not_be_stored_is_stored_later() -> None:
    driver = Driver()
    run(driver, A, 1)
    driver.ask("stop", A, 1)
    machine = driver.machine
    (write,) = machine.drained(A)
    assert isinstance(write, WriteDurably)
    assert machine.wrote("no space left") == [] and machine.durable.get(A) is not None
    assert [type(each) for each in machine.try_again()] == [WriteDurably]
    assert machine.wrote("no space left") == [] and machine.durable.get(A) is not None
    driver.do(machine.try_again())
    assert driver.disk.get(A) is None
    assert machine.try_again() == []


def ran(driver: Driver) -> list[str]:
    return [each.hash for each in driver.disk.ran]


def run(driver: Driver, hash_: str, epoch: int) -> None:
    assert driver.ask("prepare", plan(hash_, epoch)).accepted
    assert driver.ask("commit", hash_, epoch).accepted


def test_a_plan_that_ran_is_kept_until_its_run_is_collected() -> None:
    driver = Driver()
    run(driver, A, 1)
    run(driver, B, 2)
    driver.do(driver.machine.drained(A))
    assert ran(driver) == [A, B] and [each.hash for each in driver.disk.deployments] == [B]
    assert driver.ask("collected", frozenset({A, B})).accepted
    assert ran(driver) == [B], "what runs is kept"
    driver.ask("stop", B, 2)
    driver.do(driver.machine.drained(B))
    assert ran(driver) == [B]
    driver.ask("collected", frozenset({B}))
    assert ran(driver) == []


def test_a_plan_that_was_only_prepared_has_not_run() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    driver.ask("abort", A, 1)
    assert ran(driver) == []


def test_a_plan_that_was_stopped_where_it_was_only_prepared_may_have_run() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    driver.ask("stop", A, 1)
    assert ran(driver) == [A], "a peer may have committed it, and sent"


def test_a_plan_of_before_plans_were_kept_is_kept() -> None:
    assert [each.hash for each in Deployments(Durable(1, 0, (replace(plan(), state=State.COMMITTED),))).durable.ran]


def test_beyond_the_limit_plans_are_refused_and_none_is_forgotten() -> None:
    kept = tuple(Ran(f"{n:064x}", 10) for n in range(MOST_RAN))
    driver = Driver(Durable(5, 0, (), kept))
    refused = driver.ask("prepare", plan(A, 6))
    assert not refused.accepted and "'coordinator collect' first" in refused.why
    assert driver.ask("prepare", plan(kept[3].hash, 6)).accepted, "one that is kept anyhow takes no room"
    driver.ask("abort", kept[3].hash, 6)
    driver.ask("collected", frozenset(each.hash for each in kept[:1]))
    assert driver.ask("prepare", plan(A, 7)).accepted
    large = Driver(Durable(5, 0, (), (Ran(B, MOST_RAN_BYTES),)))
    assert not large.ask("prepare", replace(plan(A, 6), bytes=1)).accepted


def test_lower_epochs_are_refused() -> None:
    driver = Driver()
    assert driver.ask("prepare", plan(A, 5)).accepted
    refused = driver.ask("prepare", plan(B, 4))
    assert not refused.accepted and "epoch 4 is older than 5" in refused.why
    assert not driver.ask("prepare", plan(B, 5)).accepted, "an epoch is one deployment"
    assert not driver.ask("commit", A, 4).accepted


@pytest.mark.parametrize("next_", [A, B])
def test_nothing_is_made_under_the_epoch_of_a_plan_that_has_ended(next_: str) -> None:
    driver = Driver()
    run(driver, A, 2)
    driver.ask("stop", A, 2)
    driver.do(driver.machine.drained(A))
    late = driver.ask("prepare", plan(next_, 2))  # of a coordinator that chose its epoch before
    assert not late.accepted and "epoch 2 is over" in late.why
    assert driver.ask("prepare", plan(next_, 3)).accepted


def test_the_same_deploy_twice_changes_nothing_that_runs() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    driver.ask("commit", A, 1)
    disk, told = driver.disk, list(driver.told)
    assert driver.ask("prepare", plan(A, 2)) == AnswerRequest(3, True, "", State.COMMITTED)
    assert driver.ask("commit", A, 2) == AnswerRequest(4, True, "", State.COMMITTED)
    known = disk.get(A)
    assert known and driver.disk == disk.put(replace(known, again=2)).with_seen(2)
    assert driver.told == [*told, CommitInRuntime(A, 2)], "it admits already, and is the later one from now on"
    assert driver.ask("commit", A, 2).accepted and driver.told == [*told, CommitInRuntime(A, 2)]


def test_a_plan_that_is_deployed_again_is_not_followed_by_an_older_deployment() -> None:
    driver = Driver()
    driver.ask("prepare", plan(A, 1))
    driver.ask("commit", A, 1)
    driver.ask("prepare", plan(A, 3))
    driver.ask("commit", A, 3)
    driver = Driver(driver.disk)  # it starts anew
    refused = driver.ask("prepare", plan(B, 2))
    assert not refused.accepted and "epoch 2 is older than 3" in refused.why
    assert [(each.hash, each.state) for each in driver.disk.deployments] == [(A, State.COMMITTED)]


def deployed_again() -> Driver:
    """A runs, B was prepared, and A was deployed once more then."""
    driver = Driver()
    driver.ask("prepare", plan(A, 1))
    driver.ask("commit", A, 1)
    driver.ask("prepare", plan(B, 2))
    driver.ask("prepare", plan(A, 3))
    driver.ask("commit", A, 3)
    return driver


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("proven", [False, True])
def test_what_was_prepared_before_a_plan_was_deployed_again_does_not_end_it(restarted: bool, proven: bool) -> None:
    driver = deployed_again()
    if restarted:
        driver = Driver(driver.disk)
    if proven:
        driver.do(driver.machine.proven(B))
    else:
        assert driver.ask("commit", B, 2).state is State.DRAINING
    assert {each.hash: each.state for each in driver.disk.deployments} == {A: State.COMMITTED, B: State.DRAINING}
    assert driver.told[-1] == DrainInRuntime(B)
    known = driver.disk.get(A)
    assert known and known.epoch == 1, "its records have that epoch"


@pytest.mark.parametrize("restarted", [False, True])
def test_of_one_epoch_what_is_new_is_later_than_what_is_deployed_again(restarted: bool) -> None:
    """Two coordinators that know nothing of each other took the same epoch."""
    driver = Driver()
    driver.ask("prepare", plan(A, 1))
    driver.ask("commit", A, 1)
    driver.ask("prepare", plan(A, 2))
    driver.ask("prepare", plan(B, 2))
    driver.ask("commit", A, 2)
    driver.ask("commit", B, 2)
    if restarted:
        driver = Driver(driver.disk)
    assert {each.hash: each.state for each in driver.disk.deployments} == {A: State.DRAINING, B: State.COMMITTED}


def test_a_decision_that_stands_cannot_be_aborted() -> None:
    driver = deployed_again()
    assert "epoch 3" in driver.ask("abort", A, 3).why
    assert driver.ask("abort", A, 4).accepted


def test_new_routes_of_a_committed_plan_reach_the_runtime_and_the_disk() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    driver.ask("commit", A, 1)
    moved = replace(plan(A, 2), routes=((1, "b", "127.0.0.1:9999"),))
    assert driver.ask("prepare", moved).state is State.COMMITTED
    stored = driver.disk.get(A)
    assert stored and stored.routes == moved.routes and stored.epoch == 1 and stored.state is State.COMMITTED


def test_a_tuple_proves_the_commit() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    driver.do(driver.machine.proven(A))
    stored = driver.disk.get(A)
    assert stored and stored.state is State.COMMITTED
    assert driver.told[-1] == CommitInRuntime(A, 1)
    assert driver.ask("commit", A, 1).accepted, "the message may still come"
    assert not driver.ask("abort", A, 1).accepted, "what ran cannot be aborted"


def proof_refused_by_the_disk() -> Driver:
    """A admits, B is proven to follow it, and that could not be stored."""
    driver = Driver()
    run(driver, A, 1)
    driver.ask("prepare", plan(B, 2))
    (write,) = driver.machine.proven(B)
    assert isinstance(write, WriteDurably)
    assert driver.machine.wrote("disk full") == []
    return driver


def test_a_proof_that_could_not_be_stored_is_stored_later() -> None:
    driver = proof_refused_by_the_disk()
    driver.do(driver.machine.try_again())
    assert {each.hash: each.state for each in driver.disk.deployments} == {A: State.DRAINING, B: State.COMMITTED}
    assert driver.told[-2:] == [CommitInRuntime(B, 2), DrainInRuntime(A)]
    assert driver.machine.try_again() == []


@pytest.mark.parametrize("event", ["prepare", "commit", "abort", "stop", "collected"])
def test_nothing_is_accepted_before_a_proof_that_could_not_be_stored(event: str) -> None:
    """The runtime admits under B and has ended A, which a deployment of A would take for running."""
    args = {"prepare": (plan(A, 3),), "collected": (frozenset({A}),)}.get(event, (A, 3))
    driver = proof_refused_by_the_disk()
    (write,) = getattr(driver.machine, event)(10, *args)
    assert isinstance(write, WriteDurably)
    assert driver.machine.wrote("disk full")[-1].why == "disk full"  # type: ignore[union-attr]
    reply = driver.ask(event, *args)
    assert driver.disk.get(B) == replace(plan(B, 2), state=State.COMMITTED)
    assert reply.why == (BEING_STOPPED if event in {"prepare", "commit"} else "")


def test_a_new_version_lets_the_old_one_drain() -> None:
    driver = Driver()
    for hash_, epoch in ((A, 1), (B, 2)):
        driver.ask("prepare", plan(hash_, epoch))
        driver.ask("commit", hash_, epoch)
    assert {each.hash: each.state for each in driver.disk.deployments} == {A: State.DRAINING, B: State.COMMITTED}
    assert driver.told[-2:] == [CommitInRuntime(B, 2), DrainInRuntime(A)]
    driver.do(driver.machine.drained(A))
    assert driver.disk.get(A) is None and driver.disk.get(B)


def test_a_late_commit_of_an_older_version_runs_what_is_under_way_and_drains() -> None:
    driver = Driver()
    driver.ask("prepare", plan(A, 1))
    driver.ask("prepare", plan(B, 2))
    driver.ask("commit", B, 2)
    assert driver.ask("commit", A, 1) == AnswerRequest(4, True, "", State.DRAINING)
    assert driver.told[-2:] == [CommitInRuntime(B, 2), DrainInRuntime(A)]


def test_two_committed_plans_of_an_earlier_release_become_one() -> None:
    both = (replace(plan(B, 2), state=State.COMMITTED), replace(plan(A, 1), state=State.COMMITTED))
    driver = Driver(Durable(seen=2, deployments=both))
    assert [command for command in driver.told if not isinstance(command, LoadInRuntime)] == [
        CommitInRuntime(B, 2), DrainInRuntime(A),
    ]  # fmt: skip
    driver.do(driver.machine.drained(A))
    assert [each.hash for each in driver.disk.deployments] == [B]


def test_an_abort_that_overtakes_its_prepare_wins() -> None:
    driver = Driver()
    assert driver.ask("abort", A, 3) == AnswerRequest(1, True, "", State.NONE)
    late = driver.ask("prepare", plan(A, 3))
    assert not late.accepted and "aborted" in late.why
    assert driver.ask("prepare", plan(A, 4)).accepted


def test_abort_forgets_what_was_only_prepared() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    assert driver.ask("abort", A, 1) == AnswerRequest(2, True, "", State.NONE)
    assert driver.told[-1] == UnloadInRuntime(A) and driver.disk.get(A) is None
    assert driver.ask("abort", A, 1).accepted
    assert not driver.ask("commit", A, 1).accepted


def test_stop_drains_then_forgets() -> None:
    driver = Driver()
    driver.ask("prepare", plan())
    driver.ask("commit", A, 1)
    assert driver.ask("stop", A, 1) == AnswerRequest(3, True, "", State.DRAINING)
    assert driver.told[-1] == DrainInRuntime(A)
    assert not driver.ask("prepare", plan(A, 2)).accepted
    driver.do(driver.machine.drained(A))
    assert driver.disk.deployments == ()
    assert driver.disk.seen == 1, "epochs never go back"
    assert driver.ask("stop", A, 1) == AnswerRequest(5, True, "", State.NONE)


def test_after_a_restart_everything_is_told_again() -> None:
    stored = Durable(
        seen=3,
        deployments=(
            replace(plan(A, 1), state=State.DRAINING),
            replace(plan(B, 2), state=State.COMMITTED),
            replace(plan("c" * 64, 3), state=State.PREPARED),
        ),
    )
    driver = Driver(stored)
    assert driver.told == [
        *(LoadInRuntime(each, again=True) for each in stored.deployments), DrainInRuntime(A), CommitInRuntime(B, 2),
    ]  # fmt: skip


def test_a_plan_that_could_not_be_read_is_loaded_when_it_can_be_and_admits_then() -> None:
    stored = replace(plan(), state=State.COMMITTED)
    machine = Deployments(Durable(seen=1, deployments=(stored,)))
    assert machine.load_again(A, 0) == [], "no runtime is there"
    assert machine.runtime_up() == [LoadInRuntime(stored, again=True)]
    assert machine.load_again(A, 0) == [], "nothing has failed"
    assert machine.loaded(A, "it cannot be read (Input/output error)") == []
    assert list(machine.failed) == [A]
    assert machine.load_again(A, 0) == [LoadInRuntime(stored, again=True)]
    assert machine.loaded(A) == [CommitInRuntime(A, 1)] and not machine.failed


def test_a_plan_that_drains_and_cannot_be_loaded_ends_when_no_peer_sends_any_more() -> None:
    """As where its file is damaged and its runtime was started again: nobody else would ever say that it drained."""
    driver = Driver(Durable(seen=2, deployments=(replace(plan(), state=State.DRAINING),)), "it is damaged")
    driver.do(driver.machine.load_again(A, 0))
    assert driver.machine.failed == {A: "it is damaged"}
    assert driver.ask("prepare", plan(epoch=3)).why == BEING_STOPPED
    driver.do(driver.machine.load_again(A, 0, over=True))
    assert driver.disk.get(A) is None and not driver.machine.failed
    driver.why_not = ""
    assert driver.ask("prepare", plan(epoch=3)).accepted


def test_a_plan_that_admits_and_cannot_be_loaded_never_ends_by_itself() -> None:
    driver = Driver(Durable(seen=1, deployments=(replace(plan(), state=State.COMMITTED),)), "it is damaged")
    before = len(driver.told)
    driver.do(driver.machine.load_again(A, 0, over=True))
    assert driver.told[before:] == [LoadInRuntime(driver.disk.deployments[0], again=True)]


def test_a_plan_that_cannot_be_loaded_again_is_named_and_can_be_prepared_anew() -> None:
    driver = Driver(Durable(seen=1, deployments=(replace(plan(), state=State.COMMITTED),)))
    driver.do(driver.machine.loaded(A, "operator my.x is not installed"))
    assert driver.machine.failed == {A: "operator my.x is not installed"}
    before = len(driver.told)
    assert driver.ask("prepare", plan()).state is State.COMMITTED
    assert driver.machine.failed == {}
    known = driver.machine.durable.deployments[0]  # told of the commit once more: what it was told before was in vain
    assert driver.told[before:] == [LoadInRuntime(known, again=False), CommitInRuntime(A, 1)]


def test_a_runtime_that_ends_while_it_loads_fails_the_prepare() -> None:
    machine = Deployments()
    machine.runtime_up()
    machine.prepare(1, plan())
    waiting = machine.prepare(2, plan(B, 2))
    assert waiting == []
    commands = machine.runtime_down()
    replies = [each for each in commands if isinstance(each, AnswerRequest)]
    assert [reply.accepted for reply in replies] == [False, False]
    assert not machine.busy


def two(hash_: str = A, epoch: int = 1) -> Deployment:
    return replace(plan(hash_, epoch), places=(0, 1))


def test_one_place_that_refuses_undoes_the_other_when_both_have_answered() -> None:
    machine = Deployments()
    machine.runtime_up(0)
    machine.runtime_up(1)
    prepared = replace(two(), state=State.PREPARED)
    assert machine.prepare(1, two()) == [LoadInRuntime(prepared, False, place) for place in (0, 1)]
    assert machine.loaded(A, "operator my.x is not installed", 1) == []
    undone, also, reply = machine.loaded(A, "", 0)
    assert (undone, also) == (UnloadInRuntime(A, 0), UnloadInRuntime(A, 1))
    assert reply == AnswerRequest(1, False, "operator my.x is not installed", State.NONE)


def test_a_place_whose_runtime_ends_after_it_has_loaded_fails_the_prepare() -> None:
    machine = Deployments()
    machine.runtime_up(0)
    machine.runtime_up(1)
    machine.prepare(1, two())
    assert machine.loaded(A, "", 0) == []
    assert machine.runtime_down(0) == [], "the other place has not answered"
    assert machine.runtime_up(0) == []
    *_, reply = machine.loaded(A, "", 1)
    assert isinstance(reply, AnswerRequest) and not reply.accepted and "runtime ended" in reply.why


def test_a_place_without_a_runtime_refuses() -> None:
    machine = Deployments()
    machine.runtime_up(0)
    (reply,) = machine.prepare(1, two())
    assert isinstance(reply, AnswerRequest) and "not running" in reply.why
    (load,) = machine.prepare(2, plan(B, 2))
    assert load == LoadInRuntime(replace(plan(B, 2), state=State.PREPARED)), "one that does not need it is taken"


def test_a_plan_is_committed_in_all_places_and_gone_when_all_have_drained() -> None:
    driver = Driver()
    driver.do(driver.machine.runtime_up(1))
    driver.ask("prepare", two())
    driver.do(driver.machine.proven(A))
    assert driver.told[-2:] == [CommitInRuntime(A, 1, 0), CommitInRuntime(A, 1, 1)]
    driver.ask("stop", A, 1)
    assert driver.told[-2:] == [DrainInRuntime(A, 0), DrainInRuntime(A, 1)]
    driver.do(driver.machine.drained(A, 0))
    assert driver.disk.get(A)
    driver.do(driver.machine.runtime_up(0))  # it has the plan again
    driver.do(driver.machine.drained(A, 1))
    assert driver.disk.get(A)
    driver.do(driver.machine.drained(A, 0))
    assert driver.disk.deployments == ()


HASHES = st.sampled_from(["1" * 64, "2" * 64, "3" * 64])
EPOCHS = st.integers(1, 6)
WAYS = {(state, state) for state in State} | {
    (State.NONE, State.PREPARED),
    (State.PREPARED, State.COMMITTED),
    (State.PREPARED, State.DRAINING),
    (State.PREPARED, State.NONE),
    (State.COMMITTED, State.DRAINING),
    (State.DRAINING, State.NONE),
}


class Crashes(RuleBasedStateMachine):
    """Any order of requests, answers and crashes; a write may or may not have reached the disk when the power went."""

    places: tuple[int, ...] = (0,)

    def __init__(self) -> None:
        super().__init__()
        self.disk = Durable()
        self.machine = Deployments()
        self.write: Durable | None = None
        self.loads: dict[int, str] = {}  # under way, by place
        self.have: dict[int, set[str]] = {place: set() for place in self.places}  # what each runtime has
        for place in self.places:
            self.do(self.machine.runtime_up(place))
        self.token = 0
        self.asked: dict[int, tuple[str, str, int]] = {}
        self.aborted: dict[str, int] = {}  # plan: highest epoch of which an abort was asked
        self.decided: dict[str, int] = {}  # plan: highest epoch in which it was committed, as was answered

    def do(self, commands: Commands) -> None:
        for command in commands:
            match command:
                case WriteDurably(durable):
                    assert self.write is None and not self.loads
                    self.write = durable
                case LoadInRuntime(deployment, False, place):
                    assert self.write is None and place not in self.loads
                    self.loads[place] = deployment.hash
                case LoadInRuntime(deployment, True, place):
                    self.have[place].add(deployment.hash)
                case UnloadInRuntime(hash_, place):
                    self.have[place].discard(hash_)
                case CommitInRuntime(hash_, _, place):
                    on_disk = self.disk.get(hash_)
                    assert on_disk and on_disk.state in (State.COMMITTED, State.DRAINING)
                    assert hash_ in self.have[place]
                case AnswerRequest(token, accepted, why, state):
                    self.answered(token, accepted, why, state)

    def answered(self, token: int, accepted: bool, why: str, state: State) -> None:
        event, hash_, epoch = self.asked.pop(token)
        assert accepted == (not why)
        on_disk = self.disk.get(hash_)
        assert state == (on_disk.state if on_disk else State.NONE), "answers speak of what is on disk"
        if not accepted:
            return
        if event == "prepare":
            assert state in (State.PREPARED, State.COMMITTED) and epoch > self.disk.fence
        if event == "commit":
            assert state in (State.COMMITTED, State.DRAINING)
            self.decided[hash_] = max(epoch, self.decided.get(hash_, 0))
        if event == "stop":
            assert state in (State.DRAINING, State.NONE)

    def reach_disk(self) -> None:
        """The write is on disk. After any request, a plan's state moves only along these ways."""
        assert self.write is not None
        before, self.disk = self.disk, self.write
        assert self.disk.seen >= before.seen and self.disk.fence >= before.fence, "epochs never go back"
        for hash_ in {each.hash for each in (*before.deployments, *self.disk.deployments)}:
            old, new = before.get(hash_), self.disk.get(hash_)
            assert (old.state if old else State.NONE, new.state if new else State.NONE) in WAYS
            if old and old.state is State.PREPARED and new is None:
                assert self.aborted.get(hash_, 0) >= old.epoch
            if old and new:
                assert new.epoch >= old.epoch
        admitted, admits = (next((each for each in durable.deployments if each.state is State.COMMITTED), None)
                            for durable in (before, self.disk))  # fmt: skip
        if admitted and admits and admits.hash != admitted.hash:
            later = max(admits.epoch, self.decided.get(admits.hash, 0))
            assert later >= self.decided.get(admitted.hash, 0), "an older deployment has ended a later one"

    def request(self, event: str, hash_: str, epoch: int) -> int:
        self.token += 1
        self.asked[self.token] = (event, hash_, epoch)
        return self.token

    @rule(hash_=HASHES, epoch=EPOCHS, port=st.integers(1, 2))
    def prepare(self, hash_: str, epoch: int, port: int) -> None:
        wanted = Deployment(hash_, epoch, State.NONE, "q", ((1, "b", f"127.0.0.1:{port}"),), self.places)
        self.do(self.machine.prepare(self.request("prepare", hash_, epoch), wanted))

    @rule(hash_=HASHES, epoch=EPOCHS, event=st.sampled_from(["commit", "abort", "stop"]))
    def ask(self, hash_: str, epoch: int, event: str) -> None:
        if event == "abort":
            self.aborted[hash_] = max(epoch, self.aborted.get(hash_, 0))
        self.do(getattr(self.machine, event)(self.request(event, hash_, epoch), hash_, epoch))

    @rule(hash_=HASHES)
    def proven(self, hash_: str) -> None:
        self.do(self.machine.proven(hash_))

    @rule(hash_=HASHES, at=st.integers(0, 7))
    def drained(self, hash_: str, at: int) -> None:
        place, known = self.places[at % len(self.places)], self.disk.get(hash_)
        if known is not None and known.state is State.DRAINING:
            self.have[place].discard(hash_)
        elif self.machine.busy:
            return  # it may drain when its turn has come
        self.do(self.machine.drained(hash_, place))

    @precondition(lambda self: self.write is not None)
    @rule(why=st.sampled_from(["", "", "", "disk full"]))
    def wrote(self, why: str) -> None:
        if not why:
            self.reach_disk()
        self.write = None
        self.do(self.machine.wrote(why))

    @precondition(lambda self: self.loads)
    @rule(why=st.sampled_from(["", "", "not installed"]), at=st.integers(0, 7))
    def loaded(self, why: str, at: int) -> None:
        place = sorted(self.loads)[at % len(self.loads)]
        hash_ = self.loads.pop(place)
        if not why:
            self.have[place].add(hash_)
        self.do(self.machine.loaded(hash_, why, place))

    @precondition(lambda self: self.write is None)  # a write is one call of the driver: nothing comes between
    @rule(at=st.integers(0, 7))
    def runtime_restarts(self, at: int) -> None:
        place = self.places[at % len(self.places)]
        self.loads.pop(place, None)
        self.have[place].clear()
        self.do(self.machine.runtime_down(place))
        self.do(self.machine.runtime_up(place))

    @rule(reached=st.booleans())
    def crash(self, reached: bool) -> None:
        if self.write is not None and reached:
            self.reach_disk()
        self.write = None
        self.loads.clear()
        self.asked.clear()
        self.machine = Deployments(self.disk)
        for place in self.places:
            self.have[place].clear()
            self.do(self.machine.runtime_up(place))

    @invariant()
    def one_plan_admits(self) -> None:
        assert sum(each.state is State.COMMITTED for each in self.disk.deployments) <= 1

    @invariant()
    def what_is_on_disk_is_in_every_place_and_nothing_else_in_any(self) -> None:
        for each in self.disk.deployments:
            if each.state is not State.DRAINING:
                assert all(each.hash in self.have[place] for place in each.places)
        if not self.machine.busy:
            on_disk = {each.hash for each in self.disk.deployments}
            assert all(hashes <= on_disk for hashes in self.have.values())


class CrashesOfThreePlaces(Crashes):
    """The same on a node with three runtimes, each of which crashes by itself."""

    places = (0, 1, 2)


TestCrashes = Crashes.TestCase
TestCrashesOfThreePlaces = CrashesOfThreePlaces.TestCase
TestCrashesOfThreePlaces.settings = settings(max_examples=examples(100, 4), stateful_step_count=40, deadline=None)
TestCrashes.settings = settings(max_examples=examples(150, 4), stateful_step_count=40, deadline=None)
