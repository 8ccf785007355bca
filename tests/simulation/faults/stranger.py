"""A stranger on a host of its own that connects to a node and sends what it was given."""

from node_agent.link.limits import LinkError
from node_agent.ports import READABLE, WRITABLE
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork
from node_agent.virtual.simulated.virtual_time import Process
from node_agent.wire import frames
from tests.simulation.faults.faulty_line import PORT, SECOND, FaultyLine


class Stranger:
    """Connects once, sends, and stays. welcomed: it was greeted; refused: with these codes."""

    def __init__(self, line: FaultyLine, peer: str, data: bytes) -> None:
        host = SimulatedHost(line.wires, f"stranger-{line.time.now_ns}-{len(line.wires.hosts)}")
        clock = line.new_clock(host.name)
        self.clock, self.welcomed, self.refused = clock, False, set[str]()
        self._unsent = bytearray(data)
        self._reader = frames.FrameReader()

        def sleep(shown_ns: int) -> None:
            self._process.sleep_until(max(clock.true_ns(shown_ns), line.time.now_ns + 1), wakeable=True)

        self._network = SimulatedNetwork(host, clock.now_ns, sleep)
        self._process = self._network.process = Process(line.time, self._stay)
        self._end = self._network.dial(peer, PORT)
        self._network.add(self._end.fileno(), self, WRITABLE)

    def leave(self) -> None:
        """It goes."""
        self._process.kill()
        self._network.end()

    def _stay(self) -> None:
        while True:
            self._network.wait(SECOND)

    def on_ready(self, at_ns: int, mask: int) -> None:
        """The connection stands, has failed, or brings an answer."""
        try:
            if mask == WRITABLE and self._unsent:
                del self._unsent[: self._end.send(self._unsent)]
                if not self._unsent:
                    self._network.change(self._end.fileno(), READABLE)
            else:
                self._read()
        except BlockingIOError:
            return
        except (OSError, LinkError):
            self._gone()

    def _read(self) -> None:
        data = self._end.recv(1 << 16)
        for frame in self._reader.feed(data):
            self.welcomed |= isinstance(frame, frames.Hello)
            if isinstance(frame, frames.Refused):
                self.refused.add(frame.code)
        if not data:
            self._gone()

    def _gone(self) -> None:
        self._network.remove(self._end.fileno())
        self._end.close()
