"""From an output to another system: one thread takes results, and puts each until it is taken over or of no use.

While the other system is away results wait for as long as they are within their deadline. What is older is of no use to
anybody: it is dropped and counted, and nothing stale is delivered once the connection is there again.
"""

import time
from collections import deque

from node_agent.client.client import AgentError, NoResultError, Result, Sink, TlsError
from node_agent.connectors.connector_ports import ConnectionLostError, Message, NotConnectableError, Writer
from node_agent.connectors.kinds import kind
from node_agent.connectors.mapping import Mapping, mapping
from node_agent.connectors.surroundings import Surroundings
from node_agent.host.clock import now_ns
from node_agent.host.log import ERROR, INFO
from node_agent.link.backoff import Backoff
from node_agent.operators.codecs import CodecError

_LOOK_NS = 500_000_000  # for the word that it is to end
_FIRST_NS, _MOST_NS = 100_000_000, 5_000_000_000
_MOST_WAITING = 4096  # results
_END_NS, _COME_NS = 1_000_000_000, 50_000_000  # at the end: for what is there, and for it to be read


class Delivery:
    """Of one output. Call `run` in a thread of its own, and `stop` from any."""

    def __init__(self, around: Surroundings) -> None:
        self._around, self._counts, self._connector = around, around.counts, around.flow.connector
        self._connection = around.connection
        self._backoff = Backoff(_FIRST_NS, _MOST_NS)
        self._writer: Writer | None = None
        self._waiting: deque[Result] = deque()
        self._connected_ns = 0

    def run(self) -> None:
        """Until it is stopped."""
        backoff = Backoff(_FIRST_NS, _MOST_NS)
        try:
            while not self._around.stop.is_set():
                try:
                    with self._sink() as sink:
                        backoff.succeeded()
                        self._carry(sink, mapping(sink.codec, self._connector.encoding, self._connector.schema))
                except (AgentError, TlsError) as error:
                    if not self._connection.up:
                        self._connection.end(str(error))
                    self._around.say("connector_without_agent", str(error))
                    self._around.wait(backoff.failed(now_ns()) - now_ns())
        except NotConnectableError as error:
            self._connection.end(str(error))
            self._around.say("connector_not_usable", str(error), ERROR)
        finally:
            self._drop_writer()
            if self._waiting:
                self._counts.add("lost", len(self._waiting))
                self._around.say("connector_ended", f"it ends before {len(self._waiting)} results, which are lost")
                self._waiting.clear()

    def stop(self) -> None:
        """`run` returns soon."""
        self._around.stop.set()

    def _sink(self) -> Sink:
        flow, settings = self._around.flow, self._around.settings
        return Sink(
            flow.agent, self._connector.stream, codecs=self._around.load_codecs(), drift_ppm=settings.drift_ppm,
            tls=settings.tls,
        )  # fmt: skip

    def _carry(self, sink: Sink, mapped: Mapping) -> None:
        while not self._around.stop.is_set():
            self._take(sink, _LOOK_NS if self._writer else min(_LOOK_NS, max(self._backoff.next_ns - now_ns(), 0)))
            self._drop_late()
            if self._writer is None and now_ns() >= self._backoff.next_ns:
                self._connect()
            if self._writer is not None and not self._waiting:
                self._look(self._writer)
            while self._waiting and self._writer is not None and not self._around.stop.is_set():
                self._put(self._writer, mapped)
        self._end(sink, mapped)

    def _end(self, sink: Sink, mapped: Mapping) -> None:
        """What has come by now is put, as far as that takes no longer than a moment."""
        until_ns = now_ns() + _END_NS
        while now_ns() < until_ns and self._take(sink, _COME_NS):
            pass
        while self._waiting and self._writer is not None and now_ns() < until_ns:
            self._put(self._writer, mapped)

    def _take(self, sink: Sink, look_ns: int) -> bool:
        """The next one. False: none has come for that long."""
        try:
            self._waiting.append(sink.get(look_ns / 1e9))
            self._counts.add("received")
        except NoResultError:
            return False
        except CodecError as error:
            self._unreadable(error)
        return True

    def _drop_late(self) -> None:
        """Those that wait and are of no use any more."""
        while self._writer is None and self._waiting and (
            len(self._waiting) > _MOST_WAITING or self._late(self._waiting[0])
        ):  # fmt: skip
            self._waiting.popleft()
            self._counts.add("lost")

    def _late(self, result: Result) -> bool:
        return now_ns() - result.origin[1] > self._around.flow.useful_ns

    def _connect(self) -> None:
        try:
            self._writer = kind(self._connector.kind).writer(self._connector, self._around.credentials())
        except ConnectionLostError as error:
            self._lost(error)
            return
        self._backoff.succeeded()
        self._connected_ns = now_ns()
        again = " again" if self._connection.was_up else ""
        self._connection.begin()
        self._around.say("connector_connected", f"connected{again}", INFO)

    def _connect_at_once(self) -> None:
        """One that was there for a while may have restarted while there was nothing to put."""
        if now_ns() - self._connected_ns > _MOST_NS and not self._around.stop.is_set():
            self._connect()

    def _put(self, writer: Writer, mapped: Mapping) -> None:
        result = self._waiting[0]
        if result.at_ns < self._connected_ns and self._late(result):  # it waited here, or in the agent
            self._counts.add("lost")
            self._waiting.popleft()
            return
        try:
            payload = mapped.encode(result.value)
            wall_ns = time.time_ns()
            age_ns = max(now_ns() - result.origin[0], 0)  # rather older than it is
            writer.put(Message(payload, self._connector.topic, max(wall_ns - age_ns, 0)))
            self._counts.add("delivered")
        except CodecError as error:
            self._unreadable(error)
        except ConnectionLostError as error:
            if error.taken:
                self._counts.add("delivered")
                self._waiting.popleft()
            self._lose_writer(error)
            return
        self._waiting.popleft()

    def _look(self, writer: Writer) -> None:
        """An idle one is connected again before there is a result to put."""
        try:
            writer.look()
        except ConnectionLostError as error:
            self._lose_writer(error)

    def _lose_writer(self, error: ConnectionLostError) -> None:
        self._drop_writer()
        self._counts.add("connections_lost")
        self._lost(error)
        self._connect_at_once()

    def _unreadable(self, error: CodecError) -> None:
        self._counts.add("refused_unreadable")
        self._around.say("result_unreadable", f"a result is not delivered: {error}")

    def _lost(self, error: ConnectionLostError) -> None:
        self._counts.add("lost", error.lost)
        self._backoff.failed(now_ns())
        self._connection.end(str(error))
        self._around.say("connector_lost", f"not connected ({error}); trying again")

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
