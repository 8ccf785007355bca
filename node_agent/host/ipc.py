"""Messages between supervisor, runtime and control, and the channel that carries them.

An agent has one runtime per core: "the runtime" below is each of them, with a channel of its own. Each pair of
processes shares one Unix socket pair that keeps message boundaries; the supervisor makes all of them and hands out new
ends (as file descriptors beside a message) when it starts a process again. A message is one JSON object. Nobody waits
on a channel: a full one refuses the message, and the sender says what that means.

Who says what:

    supervisor -> control   RuntimeStarted (with the control end of a new channel to that runtime), RuntimeEnded,
                            Replaced, Connectors, Stop
    control -> supervisor   ControlReady, Alive, Connect, Failed
    supervisor -> connectors   Connect, Stop
    connectors -> supervisor   Connectors
    supervisor -> runtime   NewChannel (the runtime end of a channel to a new control process), Stop
    runtime -> supervisor   RuntimeReady, Failed
    control -> runtime      Prepare, Commit, Abort, Drain, AskStatus, AskProfile, AskOperators
    runtime -> control      PlanAnswer, PlanChanged, Status, Profile, Operators

Plans travel as files (node_agent/host/files/plan_files.py): control writes, the runtime reads. Control's duties:
  prepare  write the local plan, send Prepare; when PlanAnswer accepts, write the state file, then answer outside.
  commit   write the state file first, then send Commit: a runtime that restarts in between reads `committed`.
  On RuntimeStarted send Prepare, Commit and Drain of every stored plan again: all of them are idempotent.
  On PlanChanged (a tuple proved a commit; a plan has drained) write the state file.

The supervisor calls `node_agent.control.entry.main(settings, supervisor)` in the forked control process, with its
Channel; what it returns is the exit code. SIGINT and SIGTERM are ignored there: Stop comes over the channel. When the
channel is `closed` the supervisor is gone: exit at once. Rings (`settings.state.rings.paths()`) are control's to drain,
also those of earlier incarnations, and to remove once `cells[STATE]` is not 0 and nothing is pending.
"""

import array
import json
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

MOST_BYTES = 128 * 1024  # of one message
MOST_FDS = 1
ALIVE_S = 1.0  # between two Alive


class IpcError(Exception):
    """A message that is not one of those below; the processes do not belong to the same release."""


# The messages are flat, of JSON types: plan hashes are 64 hex digits, boots integers. Named tuples, because making 17
# dataclasses takes a quarter of the time until the supervisor forks.

# -- supervisor -> control


class RuntimeStarted(NamedTuple):
    """An incarnation of the runtime has been started; beside it: the control end of the channel to it."""

    boot: int
    lineage_epoch: int  # count of runtime starts, not reduced
    ring: str  # path of its trace ring
    core: int = 0  # which of the agent's places it runs in


class RuntimeEnded(NamedTuple):
    """The incarnation is over: its ring gets no more records and its state cell says how it ended."""

    boot: int
    why: str  # "ended", "crashed: ...", "operator hung: ..."


class Replaced(NamedTuple):
    """So many processes of the agent stood still and were killed, since the agent began."""

    runtimes: int
    controls: int


class Stop(NamedTuple):
    """End cleanly. To control: the runtime has ended; drain the rings into the spool and exit with 0."""


# -- control -> supervisor


class ControlReady(NamedTuple):
    """The gRPC service listens on this port, and what serves metrics on that one; 0: nothing does."""

    port: int
    metrics: int = 0


class Alive(NamedTuple):
    """The loop of control goes round; said every ALIVE_S."""


class Connect(NamedTuple):
    """The plans here that have connectors, and whether each admits; the others of them drain. Said when it changes, and
    then handed on to the process of the connectors, of which there is one while there are such plans."""

    plans: tuple[tuple[str, bool], ...]


class Failed(NamedTuple):
    """A child cannot start, for a reason that a restart does not mend (port taken, operators file broken)."""

    why: str


# -- connectors -> supervisor -> control


ConnectorRow = tuple[str, str, str, bool, tuple[tuple[str, int], ...], bool, int, str]


class Connectors(NamedTuple):
    """What the connectors have counted; said every ALIVE_S. rows: (source or output, from or to, kind, connected,
    ((event, count), ...), whether it was connected before, for how many ns it is not, why not). pid: of their process,
    0: there is none; restarts: of it, as the supervisor counts them."""

    rows: tuple[ConnectorRow, ...]
    pid: int
    restarts: int = 0


# -- supervisor -> runtime


class NewChannel(NamedTuple):
    """Control has been restarted; beside it: the runtime end of the channel to it. It replaces the earlier one."""


# -- runtime -> supervisor


class RuntimeReady(NamedTuple):
    """The plans on disk are loaded, the data socket is served. rt: the process has the FIFO class."""

    rt: bool
    plans: int


# -- control -> runtime; `id` comes back in the answer


class Prepare(NamedTuple):
    """Load the plan file of this hash (plan_files), create its operators, admit nothing yet. Answer: PlanAnswer."""

    id: int
    hash: str
    epoch: int
    routes: tuple[tuple[int, str, str], ...]  # (node number, name, host:port of its data socket)
    routed: int = 0  # the epoch of the deployment that these are of: plans share their peers, and the newest one knows


class Commit(NamedTuple):
    """Admit under this plan from now on; the committed one before it drains. Answer: PlanAnswer."""

    id: int
    hash: str
    epoch: int


class Abort(NamedTuple):
    """Forget this plan if it is only prepared. Answer: PlanAnswer; refused where it is committed."""

    id: int
    hash: str


class Drain(NamedTuple):
    """Admit nothing more under this plan; unload it when it is empty (PlanChanged to ended). Answer: PlanAnswer."""

    id: int
    hash: str


class AskStatus(NamedTuple):
    """Answer: Status."""

    id: int


class AskProfile(NamedTuple):
    """Answer: Profile, from its `first` row on; of a plan that is not loaded, an empty one."""

    id: int
    hash: str
    first: int


class AskOperators(NamedTuple):
    """Answer: Operators."""

    id: int


# -- runtime -> control


class PlanAnswer(NamedTuple):
    """To Prepare, Commit, Abort and Drain. state: agent_pb2.PlanState of that plan in the runtime now."""

    id: int
    accepted: bool
    why: str
    state: int


class PlanChanged(NamedTuple):
    """The runtime changed a plan's state by itself: a tuple proved its commit, or it has drained and is unloaded."""

    hash: str
    epoch: int
    state: int  # agent_pb2.PlanState
    why: str


OutputRow = tuple[str, int, int, int, int, int, tuple[tuple[int, int], ...]]
UnitRow = tuple[str, int, tuple[str, ...], int, int, int, int, int, int, int, int, int, int]
SourceRow = tuple[str, str, int, int, int, int, int]


class Status(NamedTuple):
    """Counts of this incarnation. plans: (hash, epoch, PlanState, query, ready, waiting, unacknowledged).

    outputs: (name, deadline_ns, met, late, undecidable, worst_ns, ((most_ns, results), ...)). units: (plan's hash, id,
    operators, sub_deadline_ns, queued, runs, shed, lost, timed, timed_ns, worst_ns, recent_ns, unfused). sources:
    (plan's hash, name, admitted, shed, lost, refused, policed). As in agent.proto. links: (peer, connected, tuples
    held, bytes held, unacknowledged, resent). pid: of the process; 0: not told.
    """

    id: int
    boot: int
    rt: bool
    started_ns: int  # on the node's clock (clock_domain.now_ns)
    at_ns: int
    busy_ns: int
    overhead_ns: int
    queue_bytes: int
    records_written: int
    longest_hold_ns: int  # that a slice of work on plans has kept the scheduling thread while another plan ran
    plans: tuple[tuple[str, int, int, str, int, int, int], ...]
    counters: dict[str, int]
    outputs: tuple[OutputRow, ...] = ()
    units: tuple[UnitRow, ...] = ()
    sources: tuple[SourceRow, ...] = ()
    queue_limit_bytes: int = 0
    links: tuple[tuple[str, bool, int, int, int, int], ...] = ()
    pid: int = 0


class Profile(NamedTuple):
    """Cost of operators: (operator id, name, degraded, tuples, total_ns, elapsed_ns, worst_ns, later_worst_ns,
    squares_ns2, upper ends of buckets in ns, counts in them, agent_pb2.Measured), CPU time of a call. next: where the
    rest begins; 0: that was all."""

    id: int
    costs: tuple[tuple[int, str, bool, int, int, int, int, int, float, tuple[int, ...], tuple[int, ...], int], ...]
    next: int


class Operators(NamedTuple):
    """What the loaded plans run: (run, version, code, which of the files), and the files that these were loaded from:
    (path, hash that it had)."""

    id: int
    operators: tuple[tuple[str, str, str, tuple[int, ...]], ...]
    files: tuple[tuple[str, str], ...]


Message = (
    RuntimeStarted | RuntimeEnded | Replaced | Stop | ControlReady | Alive | Connect | Failed | Connectors | NewChannel
    | RuntimeReady | Prepare | Commit | Abort | Drain | AskStatus | AskProfile | AskOperators | PlanAnswer | PlanChanged
    | Status | Profile | Operators
)  # fmt: skip
MESSAGES: dict[str, type[Message]] = {cls.__name__: cls for cls in get_args(Message)}


def encode(message: Message) -> bytes:
    """One JSON object; the key `is` names the message."""
    return json.dumps({"is": type(message).__name__, **message._asdict()}, separators=(",", ":")).encode()


def decode(data: bytes) -> Message:
    """Read one message. Raises IpcError where it is none."""
    try:
        values = json.loads(data)
        cls: Any = MESSAGES[values.pop("is")]
        message: Message = cls(*(_tuples(values.pop(name)) for name in cls._fields))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IpcError(f"not a message between the agent's processes: {data[:80]!r} ({error!r})") from None
    if values:
        raise IpcError(f"{cls.__name__} has no {sorted(values)}")
    return message


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


class Channel:
    """One end of a channel. Non-blocking; wait on `fileno()` with a selector, or `loop.add_reader` in asyncio."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self.closed = False  # the other end is gone, or close() was called
        self._read = False  # to the end; what the other end said last is there to be read after it is gone
        self.refused = 0  # messages that did not fit
        end.setblocking(False)

    @classmethod
    def pair(cls) -> tuple["Channel", "Channel"]:
        """Both ends of a new channel. Their descriptors are not inherited through exec."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(one), cls(other)

    @classmethod
    def of(cls, descriptor: int) -> "Channel":
        """The channel whose end was passed beside a message."""
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        """For selectors; -1 once closed here."""
        return self.socket.fileno()

    def send(self, message: Message, descriptor: int | None = None) -> bool:
        """False where it was not sent: the other end is gone (`closed`) or does not read (`refused`)."""
        data = encode(message)
        if len(data) > MOST_BYTES:
            raise IpcError(f"{type(message).__name__} takes {len(data)} bytes, at most {MOST_BYTES} fit")
        passed = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        try:
            self.socket.sendmsg([data], passed)
        except BlockingIOError:
            self.refused += 1
            return False
        except OSError:
            self.closed = True
            return False
        return True

    def receive(self) -> Sequence[tuple[Message, int | None]]:
        """All messages that have arrived, each with the descriptor beside it. Sets `closed` at the end."""
        arrived: list[tuple[Message, int | None]] = []
        while not self._read:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(MOST_BYTES, socket.CMSG_SPACE(MOST_FDS * 4))
            except BlockingIOError:
                break
            except ConnectionResetError:  # told once, before the messages: the other end left some of ours unread
                continue
            except OSError:
                data, ancillary = b"", []
            if not data:
                self.closed = self._read = True
                break
            arrived.append((decode(data), _descriptor(ancillary)))
        return arrived

    def close(self) -> None:
        """Close this end."""
        self.closed = self._read = True
        self.socket.close()


def _descriptor(ancillary: Sequence[tuple[int, int, bytes]]) -> int | None:
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            return int.from_bytes(data[:4], "little")
    return None
