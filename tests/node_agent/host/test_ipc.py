"""Messages between the agent's processes survive the channel; what is none is refused."""

import os

import pytest

from node_agent.host import ipc
from node_agent.host.files import plan_files
from node_agent.host.files.plan_files import StoredState
from node_agent.host.files.state_dir import StateDir, StateError
from tests.sentences import fault

EXAMPLES = [
    ipc.RuntimeStarted(5, 2, "/dev/shm/x.ring"),
    ipc.Stop(),
    ipc.Prepare(1, "ab" * 32, 3, ((0, "a", "127.0.0.1:7701"), (1, "b", "127.0.0.1:7711"))),
    ipc.PlanAnswer(1, False, "no operator my.op", 0),
    ipc.Status(1, 5, True, 1, 2, 3, 4, 5, 6, 7, (("ab" * 32, 1, 2, "q", 0, 0, 0),), {"frames_refused": 3}),
    ipc.Connect((("ab" * 32, True), ("cd" * 32, False))),
    ipc.Connectors((("in", "from", "mqtt", False, (("received", 3),), True, 9, "gone"),), 77, 1),
    ipc.Profile(1, ((1, "O1", False, 10, 100, 110, 20, 15, 1e3, (15, 21), (9, 1), 0),), 7),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda each: type(each).__name__)
def test_a_message_comes_back_equal(message: ipc.Message) -> None:
    assert ipc.decode(ipc.encode(message)) == message


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"is":"Nobody"}', b'{"is":"Stop","more":1}', b"[1]", b'{"is":"Failed"}']
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ipc.IpcError):
        ipc.decode(data)


def test_a_channel_keeps_order_and_passes_a_descriptor() -> None:
    one, other = ipc.Channel.pair()
    inner, passed = ipc.Channel.pair()
    assert one.send(ipc.Stop())
    assert one.send(ipc.NewChannel(), passed.fileno())
    passed.close()
    (first, none), (second, descriptor) = other.receive()
    assert first == ipc.Stop() and none is None
    assert second == ipc.NewChannel() and descriptor is not None
    ipc.Channel.of(descriptor).send(ipc.Failed("x"))
    assert [message for message, _ in inner.receive()] == [ipc.Failed("x")]
    one.close()
    assert other.receive() == [] and other.closed
    assert not other.send(ipc.Stop())


def test_what_was_said_last_is_read_although_the_other_end_left_messages_unread() -> None:
    one, other = ipc.Channel.pair()
    assert one.send(ipc.Stop())
    assert other.send(ipc.Failed("no port"))
    other.close()
    assert not one.send(ipc.Stop())
    assert [message for message, _ in one.receive()] == [ipc.Failed("no port")]
    assert one.closed
    one.close()


def test_a_full_channel_refuses_and_does_not_block() -> None:
    one, _other = ipc.Channel.pair()
    while one.send(ipc.Failed("x" * 1000)):
        pass
    assert one.refused == 1 and not one.closed


def test_a_state_that_is_missing_is_empty_and_a_damaged_one_is_refused(tmp_path) -> None:
    assert plan_files.read_state(tmp_path) == StoredState()
    (tmp_path / plan_files.STATE_FILE).write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        plan_files.read_state(tmp_path)


def test_the_state_directory_has_one_owner(tmp_path) -> None:
    state = StateDir(tmp_path / "s")
    state.lock()
    with pytest.raises(StateError) as refused:
        StateDir(tmp_path / "s").lock()
    assert fault(refused.value.problem) == "in_use --state" and f"(pid {os.getpid()})" in str(refused.value)
    state.rings.tidy()
    state.unlock()
