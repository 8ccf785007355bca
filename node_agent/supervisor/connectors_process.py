"""The process of the connectors as the supervisor's rules know it: there is one while a plan that is here has any.

Nothing waits for it. It is restarted when it crashes or stands still, with growing pauses, and what it has counted is
handed on to control. While it is away its connectors are there, and not connected.
"""

from collections.abc import Callable

from node_agent.host import ipc
from node_agent.supervisor.child_process import SupervisedProcess
from node_agent.supervisor.process_host import ProcessHost

_SECOND_NS = 1_000_000_000
_DUE_NS = 8 * _SECOND_NS  # it says every second how much it has counted
_START_NS = 60 * _SECOND_NS  # until it first does, on a machine that is slow or busy
_HEALTHY_NS = 10 * _SECOND_NS  # one that lived so long is restarted without a pause
_STOP_NS = 2 * _SECOND_NS
_LOOK_NS = 2_000_000

Begin = Callable[[SupervisedProcess, ipc.Connect], None]
Say = Callable[[str, str], None]


class ConnectorsProcess:
    """begin: starts one, and raises OSError where that cannot be; say: logs a warning."""

    def __init__(self, host: ProcessHost, begin: Begin, say: Say) -> None:
        self.child = SupervisedProcess("connectors")
        self._host, self._begin, self._say = host, begin, say
        self._plans = ipc.Connect(())
        self._counted, self._counted_ns = ipc.Connectors((), 0), 0
        self._to_tell = False
        self._restarts = 0
        self._stop_by_ns = 0  # it has been asked to stop; 0: it has not

    def connect(self, plans: ipc.Connect) -> None:
        """These plans have connectors."""
        self._plans = plans
        if plans.plans and not self._stop_by_ns:
            self.child.say(plans)

    def tell_anew(self) -> None:
        """Control is new, and knows nothing of them."""
        self._to_tell = self._counted != ipc.Connectors((), 0)

    def step(self, at_ns: int) -> ipc.Connectors | None:
        """Look at it once. What control is to be told; None: nothing."""
        if self.child.process is not None:
            self._look_after(at_ns)
        elif self._plans.plans and at_ns >= self.child.backoff.next_ns:
            self._start(at_ns)
        if not self._to_tell:
            return None
        self._to_tell = False
        return self._counted

    def end(self) -> None:
        """It stops, or is killed after a while."""
        self._plans = ipc.Connect(())
        self.child.ask_to_stop()
        until_ns = self._host.now_ns() + _STOP_NS
        while self.child.process is not None and self.child.reap() is None:
            if self._host.now_ns() > until_ns:
                self.child.kill()
            else:
                self._host.sleep(_LOOK_NS)

    def _start(self, at_ns: int) -> None:
        self._stop_by_ns = 0
        try:
            self._begin(self.child, self._plans)
        except OSError as error:
            self.child.backoff.failed(at_ns)
            self._say("restart_failed", f"connectors cannot be started now: {error.strerror}; trying again")
            return
        self.child.due_ns = at_ns + _START_NS

    def _look_after(self, at_ns: int) -> None:
        ended = self.child.reap()
        self._listen(at_ns)
        if ended is not None:
            self._over("" if self._stop_by_ns else f"crashed: {ended.text}", at_ns)
        elif not self._plans.plans:
            self._stop(at_ns)
        elif self.child.silence.look(at_ns, self.child.due_ns):
            self.child.kill()
            self._over("stood still and was killed", at_ns)

    def _listen(self, at_ns: int) -> None:
        if self.child.channel is None:
            return
        for message, _ in self.child.channel.receive():
            if isinstance(message, ipc.Connectors):
                self._count(message._replace(restarts=self._restarts), at_ns)
                self.child.due_ns = at_ns + _DUE_NS

    def _over(self, why: str, at_ns: int) -> None:
        if why:
            self._restarts += 1
            if at_ns - self.child.started_ns > _HEALTHY_NS:
                self.child.backoff.succeeded()
            self.child.backoff.failed(at_ns)
            self._say("crashed", f"connectors {why}; they are started again")
        self._count(ipc.Connectors(self._apart(why, at_ns) if why else (), 0, self._restarts), at_ns)

    def _count(self, counted: ipc.Connectors, at_ns: int) -> None:
        self._counted, self._counted_ns, self._to_tell = counted, at_ns, True

    def _apart(self, why: str, at_ns: int) -> tuple[ipc.ConnectorRow, ...]:
        """What is known of each connector, which is not connected now."""
        since_ns, told = at_ns - self._counted_ns, f"their process {why}; it is started again"
        return tuple(
            (stream, direction, kind, False, events, was_connected, apart_ns + since_ns, told)
            for stream, direction, kind, _, events, was_connected, apart_ns, _ in self._counted.rows
        )

    def _stop(self, at_ns: int) -> None:
        """No plan has any more."""
        if not self._stop_by_ns:
            self._stop_by_ns = at_ns + _STOP_NS
            self.child.ask_to_stop()
        elif at_ns > self._stop_by_ns:
            self.child.kill()
            self._over("", at_ns)
