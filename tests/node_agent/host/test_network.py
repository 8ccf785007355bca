"""Streams of this machine: TCP, and Unix sockets between the places of one agent."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.host.files.state_dir import StateDir
from node_agent.host.network import SocketListener, SocketNetwork, near_name, near_socket
from node_agent.host.settings import Settings

ANYWHERE = ("127.0.0.1", 0)


class Reader:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.masks: list[int] = []

    def on_ready(self, at_ns: int, mask: int) -> None:
        self.masks.append(mask)


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.create_server(ANYWHERE) as listening:
        yield listening


def _place(tmp_path: Path, bound: socket.socket) -> tuple[socket.socket, SocketNetwork]:
    """The Unix socket of the place that listens there, and the network of the agent's other place."""
    places = (("a", bound.getsockname()), ("a.1", ("127.0.0.1", 1)))
    settings = Settings("a", ANYWHERE, ANYWHERE, StateDir(tmp_path), cores=2, places=places)
    near = near_socket(*bound.getsockname())
    assert near is not None
    return near, SocketNetwork(settings.at(1).neighbours)


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens here is the supervisor of who connects."""
    monkeypatch.setattr(os, "getppid", os.getpid)


@pytest.mark.usefixtures("supervised")
def test_places_of_one_agent_are_connected_by_unix_sockets(tmp_path: Path, bound: socket.socket) -> None:
    unix, network = _place(tmp_path, bound)
    listener = SocketListener(bound, unix)
    waiting, handler = SocketNetwork(), Reader()
    waiting.add(listener.fileno(), handler)
    near = network.dial(*bound.getsockname())
    far = socket.create_connection(bound.getsockname())  # a client's
    waiting.wait(1)
    assert handler.masks, "one descriptor tells of both"
    ends = [listener.accept()[0] for _ in range(2)]
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert {each.family for each in ends} == {socket.AF_UNIX, socket.AF_INET} and near.family == socket.AF_UNIX
    for end in ends:
        assert not end.getblocking()
        end.send(b"x")
    assert near.recv(2) == far.recv(2) == b"x"
    for each in (*ends, near, far, unix):
        each.close()


@pytest.mark.usefixtures("supervised")
def test_a_connection_waits_until_the_next_runtime_accepts(tmp_path: Path, bound: socket.socket) -> None:
    """The supervisor's socket is there while no runtime is."""
    unix, network = _place(tmp_path, bound)
    near = network.dial(*bound.getsockname())
    near.send(b"x")
    end, _ = SocketListener(bound, unix).accept()
    assert near.family == socket.AF_UNIX and end.recv(2) == b"x"
    for each in (end, near, unix):
        each.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.1"])
def test_neighbours_are_known_by_the_address_at_which_they_are_reached(tmp_path: Path, host: str) -> None:
    places = (("a", (host, 7701)), ("a.1", (host, 7702)), ("a.2", (host, 7703)))
    settings = Settings("a", ANYWHERE, (host, 7701), StateDir(tmp_path), cores=3, places=places)
    reached = {address.rpartition(":")[0].strip("[]") for address in settings.reached.values()}
    assert {each for each, _ in settings.neighbours} == reached
    assert list(settings.neighbours.values()) == [near_name(host, 7702), near_name(host, 7703)]


def test_an_agent_of_one_core_has_no_neighbours(tmp_path: Path, bound: socket.socket) -> None:
    settings = Settings("a", ANYWHERE, bound.getsockname(), StateDir(tmp_path), places=(("a", bound.getsockname()),))
    assert settings.neighbours == {}


@pytest.mark.usefixtures("supervised")
def test_a_name_that_is_taken_is_done_without(tmp_path: Path, bound: socket.socket) -> None:
    unix, network = _place(tmp_path, bound)
    assert near_socket(*bound.getsockname()) is None
    unix.close()
    end = network.dial(*bound.getsockname())
    assert end.family == socket.AF_INET
    end.close()


def test_a_stranger_that_listens_there_is_not_talked_to(tmp_path: Path, bound: socket.socket) -> None:
    """This process is no supervisor of its own."""
    unix, network = _place(tmp_path, bound)
    end = network.dial(*bound.getsockname())
    assert end.family == socket.AF_INET
    assert unix.accept()[0].recv(1) == b"", "it was only looked at"
    end.close()
    unix.close()


@pytest.mark.usefixtures("supervised")
def test_another_user_is_not_let_in_and_keeps_nobody_out(
    tmp_path: Path, bound: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    unix, network = _place(tmp_path, bound)
    listener = SocketListener(bound, unix)
    near = network.dial(*bound.getsockname())
    far = socket.create_connection(bound.getsockname())
    assert near.family == socket.AF_UNIX
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    end, _ = listener.accept()
    assert end.family == socket.AF_INET
    assert near.recv(1) == b""
    for each in (end, near, far, unix):
        each.close()
