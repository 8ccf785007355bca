"""Source and Sink against far ends that fall silent: nothing waits beyond its time, and an outage is waited out.

The far end is a real runtime behind a proxy that can be frozen: it then keeps its connections, as a node without power
or a cut link does, and forwards nothing, not even their end.
"""

import contextlib
import re
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node_agent.client import connection
from node_agent.client.client import Admitted, Sink, Source, UnreachableError
from tests.node_agent.live import chain_plan
from tests.node_agent.tools.test_feed_listen import running
from tests.tls_identities import Authority

SECOND = 10**9
GENEROUS_S = 60.0  # for what ends by itself


class Proxy:
    """Forwards connections. `freeze`: those that there are stay open and forward nothing more, new ones are refused or
    left unanswered; `thaw`: new ones are forwarded again."""

    def __init__(self, to: str) -> None:
        host, _, port = to.rpartition(":")
        self._to = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._frozen: list[tuple[socket.socket, socket.socket]] = []
        self._silent: list[socket.socket] = []
        self.frozen = False
        self._ended = False
        self._thread = threading.Thread(target=self._forward)
        self._thread.start()

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self) -> None:
        self.frozen = False

    def _forward(self) -> None:
        while not self._ended:
            if self.frozen and self._pairs:
                self._frozen += self._pairs
                self._pairs.clear()
            ends = {near: far for pair in self._pairs for near, far in (pair, pair[::-1])}
            ready, _, _ = select.select([self._listener, *ends], [], [], 0.005)
            for each in ready:
                if each is self._listener:
                    near, _ = self._listener.accept()
                    if self.frozen:
                        self._silent.append(near)
                    else:
                        self._pairs.append((near, socket.create_connection(self._to)))
                elif not self.frozen:
                    data = b""
                    with contextlib.suppress(OSError):
                        data = each.recv(1 << 16)
                        ends[each].sendall(data)
                    if not data:
                        self._pairs = [pair for pair in self._pairs if each not in pair]
                        each.close()
                        ends[each].close()
                        break

    def close(self) -> None:
        self._ended = True
        self._thread.join()
        for each in (self._listener, *self._silent, *(end for pair in self._pairs + self._frozen for end in pair)):
            each.close()


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Before a node with source `in` -> `pass` -> output `out`; heartbeats are quick."""
    monkeypatch.setattr(connection, "ASK_NS", SECOND // 20)
    monkeypatch.setattr(connection, "ANSWER_NS", SECOND // 2)
    sources = [{"id": 1, "name": "in", "stream": 1, "max_age_ns": 60 * SECOND}]
    with running(tmp_path / "ring", chain_plan(sources=sources)) as address:
        made = Proxy(address)
        yield made
        made.close()


def ends(work: Callable[[], object]) -> BaseException | object:
    """What it returns or raises; the test fails where it waits for ever."""
    found: list[BaseException | object] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(GENEROUS_S)
    assert not thread.is_alive(), "it waits for ever"
    return found[0]


@pytest.fixture
def silent() -> Iterator[str]:
    """An address at which the kernel accepts, and nobody says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("tls", [False, True])
def test_a_far_end_that_accepts_and_says_nothing_is_left(silent: str, tmp_path: Path, tls: bool) -> None:
    identity = Authority(tmp_path).client() if tls else None
    source = ends(lambda: Source(silent, "in", timeout=0.2, tls=identity))
    sink = ends(lambda: Sink(silent, "out", connect_timeout=0.2, tls=identity))
    for found in (source, sink):
        assert isinstance(found, UnreachableError)
        assert re.search(
            "no answer to the TLS handshake" if tls else "accepts the connection there and says", str(found)
        )


def test_a_sink_notices_a_peer_that_is_gone_without_a_word_and_goes_on(proxy: Proxy) -> None:
    told: list[str] = []
    with (
        Sink(proxy.address, "out", outage=GENEROUS_S, on_outage=told.append) as sink,
        Source(proxy.address, "in", timeout=GENEROUS_S, outage=GENEROUS_S) as source,
    ):
        source.send(1)
        assert sink.get(GENEROUS_S).value == 1
        proxy.freeze()
        with pytest.raises(TimeoutError):  # and not that the agent cannot be reached: its outage may last longer
            sink.get(1.0)
        assert "lost (no answer to a heartbeat within 0.5 s)" in told[0] and "for 60 s at most" in told[1]
        proxy.thaw()
        while sink.reconnects == 0:
            with pytest.raises(TimeoutError):
                sink.get(0.05)
        assert re.search(r"connected again after \d+\.\d s", told[2]) and len(told) == 3
        assert isinstance(source.send(2), Admitted)
        assert sink.get(GENEROUS_S).value == 2


def test_a_source_waits_out_an_outage_and_admits_once(proxy: Proxy) -> None:
    told: list[str] = []
    waits = {"timeout": GENEROUS_S, "outage": GENEROUS_S}
    with Source(proxy.address, "in", **waits, on_outage=told.append) as source:
        assert source.send(1) == Admitted(1, 1)
        proxy.freeze()
        threading.Timer(1.0, proxy.thaw).start()
        assert ends(lambda: source.send(2)) == Admitted(2, 1)
        assert "is lost" in told[0] and "connected again" in told[-1]
        assert source.send(3) == Admitted(3, 1)


def test_an_outage_that_lasts_too_long_is_an_error(proxy: Proxy) -> None:
    sink = Sink(proxy.address, "out", outage=0.3)
    source = Source(proxy.address, "in", timeout=GENEROUS_S, outage=0.3)
    proxy.freeze()
    source._timeout_s = 0.3
    assert isinstance(ends(lambda: sink.get(None)), UnreachableError)
    assert isinstance(ends(lambda: source.send(1)), (UnreachableError, TimeoutError))
    sink.close()
    source.close()


def test_a_peer_that_is_there_and_idle_is_kept(proxy: Proxy) -> None:
    """The runtime answers heartbeats: many times the time for an answer pass without a result."""
    with Sink(proxy.address, "out") as sink:
        with pytest.raises(TimeoutError):
            sink.get(2.0)
        assert sink.reconnects == 0


def test_listen_says_that_the_agent_is_gone_and_ends_after_the_outage(tmp_path: Path) -> None:
    with running(tmp_path / "ring", chain_plan()) as address:
        proxy = Proxy(address)
        command = [sys.executable, "-m", "node_agent", "listen", "out", "--from", proxy.address, "--outage", "0.5"]
        listening = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert listening.stderr is not None
        assert "results from now on" in listening.stderr.readline()
        proxy.close()
        said = listening.communicate(timeout=GENEROUS_S)[1]
    assert listening.returncode == 1
    assert "is lost (" in said and "connecting again, for 0.5 s at most" in said and "no agent answers at" in said
