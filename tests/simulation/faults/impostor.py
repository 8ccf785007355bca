"""A stranger on a host of its own that says hello to a node under the name of another one."""

from node_agent.link.limits import LinkError
from node_agent.ports import READABLE, WRITABLE
from node_agent.virtual.simulated.simulated_network import SimulatedHost, SimulatedNetwork
from node_agent.virtual.simulated.virtual_time import Process
from node_agent.wire import frames
from tests.simulation.faults.faulty_line import PORT, SECOND, FaultyLine


class Impostor:
    """Connects once, says hello, and stays. welcomed, refused: how it was answered."""

    def __init__(self, line: FaultyLine, name: str, peer: str, incarnation: int) -> None:
        host = SimulatedHost(line.wires, f"impostor-{line.time.now_ns}")
        clock = line.new_clock(host.name)
        self.welcomed = self.refused = False
        self._hello = frames.Hello(
            f"node:{name}", clock.domain, line.random.getrandbits(63) | 1, drift_ppm=50, incarnation=incarnation
        )
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
            if mask == WRITABLE:
                self._network.change(self._end.fileno(), READABLE)
                self._end.send(frames.encode_hello(self._hello))
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
            self.refused |= isinstance(frame, frames.Refused) and frame.code == "fenced"
        if not data:
            self._gone()

    def _gone(self) -> None:
        self._network.remove(self._end.fileno())
        self._end.close()
