"""Streams of this machine: TCP, and Unix sockets between the places of one agent."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from node_agent.host.files.state_dir import StateDir
from node_agent.host.network import SocketListener, SocketNetwork
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


def _names(tmp_path: Path, bound: socket.socket) -> tuple[str, SocketNetwork]:
    """The Unix name of the place that listens there, and the network of the agent's other place."""
    places = (("a", bound.getsockname()), ("a.1", ("127.0.0.1", 1)))
    here = Settings("a", ANYWHERE, ANYWHERE, StateDir(tmp_path), cores=2, places=places)
    return here.at(0).beside, SocketNetwork(here.at(1).neighbours)


def test_places_of_one_agent_are_connected_by_unix_sockets(tmp_path: Path, bound: socket.socket) -> None:
    name, network = _names(tmp_path, bound)
    listener = SocketListener(bound, name)
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
    for each in (*ends, near, far):
        each.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "127.0.0.1"])
def test_neighbours_are_known_by_the_address_at_which_they_are_reached(tmp_path: Path, host: str) -> None:
    places = (("a", (host, 7701)), ("a.1", (host, 7702)), ("a.2", (host, 7703)))
    settings = Settings("a", ANYWHERE, (host, 7701), StateDir(tmp_path), cores=3, places=places)
    reached = {address.rpartition(":")[0].strip("[]") for address in settings.reached.values()}
    assert {each for each, _ in settings.neighbours} == reached
    assert [settings.at(core).beside for core in (1, 2)] == list(settings.neighbours.values())


def test_an_agent_of_one_core_has_no_unix_socket(tmp_path: Path, bound: socket.socket) -> None:
    settings = Settings("a", ANYWHERE, bound.getsockname(), StateDir(tmp_path), places=(("a", bound.getsockname()),))
    assert settings.beside == "" and settings.neighbours == {}


def test_a_place_that_does_not_listen_there_is_reached_by_tcp(tmp_path: Path, bound: socket.socket) -> None:
    _, network = _names(tmp_path, bound)
    end = network.dial(*bound.getsockname())
    assert end.family == socket.AF_INET
    end.close()


def test_another_user_is_neither_let_in_nor_talked_to(
    tmp_path: Path, bound: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, network = _names(tmp_path, bound)
    listener = SocketListener(bound, name)
    near = network.dial(*bound.getsockname())
    assert near.family == socket.AF_UNIX
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError):
        listener.accept()
    assert near.recv(1) == b""
    end = network.dial(*bound.getsockname())
    assert end.family == socket.AF_INET
    near.close()
    end.close()


def test_what_a_dead_process_listened_at_is_left_alone(tmp_path: Path, bound: socket.socket) -> None:
    """A child that an operator made may keep the socket of a runtime that is gone."""
    name, network = _names(tmp_path, bound)
    code = (
        "import socket, subprocess, sys\n"
        "kept = socket.socket(socket.AF_UNIX); kept.bind(sys.argv[1].replace('@', chr(0))); kept.listen()\n"
        "child = subprocess.Popen(['sleep', '60'], pass_fds=[kept.fileno()], stdout=subprocess.DEVNULL)\n"
        "print(child.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, name.replace("\0", "@")], capture_output=True, text=True, check=True
    )
    child = int(done.stdout)
    try:
        with pytest.raises(OSError, match="in use"):
            SocketListener(bound, name)
        end = network.dial(*bound.getsockname())
        assert end.family == socket.AF_INET
        end.close()
    finally:
        os.kill(child, signal.SIGKILL)
