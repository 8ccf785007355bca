"""`node-agent charges`: what the runtime costs on this device beside the operators, for the cluster file.

The runtime's own loop runs in this process, with its ring, its hang cell and real sockets to another process. UNITS
task units of one operator each (it spins BUSY_US of CPU time, so that the sockets are polled after every instance, as
they are behind any operator that takes longer than the interval between two polls) are fed in rounds, and each result
leaves through a socket of its own. What the loop wrote to its trace is then read:

- decision: the end of an instance to the start of the next one, nothing having arrived in between: the result is
  encoded and written to its socket, the facts are written, the sockets are polled, the next instance is chosen.
- drain: the same stretch where tuples have arrived in it, less its median without any, per tuple: a read, the frame,
  the payload decoded, the tuple admitted and queued, its answer written. One tuple per write, the worst, unless
  `burst` says how many a source puts into one.
- side: a tuple that was read before is handed to the engine, where it is the side input of one operator.

What it says holds for one result per instance, payloads of the given kind, and Python's pauses as they came. Under TLS
the sockets are encrypted; handshakes are over before anything is measured, and in no charge.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from node_agent.core import plan as core
from node_agent.host import scheduling
from node_agent.host.clock import now_ns
from node_agent.operators import api
from node_agent.operators.codecs import Codec
from node_agent.operators.registry import Registry
from node_agent.problems import ProblemError
from node_agent.runtime.in_process import in_process
from node_agent.runtime.loop import Runtime
from protos import records

UNITS = 8
BUSY_US = 120  # a little more than the interval between two polls of the sockets
ROUND = 10  # tuples, each for all units
PAUSE_S = 0.002  # between rounds: this process leaves the processor
HEADROOM = 1.25
QUEUED, FED, SIDE = 1, 2, 3  # sources, and their streams
SECOND = 1_000_000_000
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own in it
TYPICAL = {
    "id": 4711, "at_ms": 1700000000123, "x_m": 103.25, "y_m": -47.5, "speed_mps": 13.875, "heading_deg": 271.5,
    "kind": "parcel", "label": "AB-1234-5678", "seen_by": ["north", "gate 3"], "valid": True, "confidence": 0.9375,
}  # fmt: skip


class ChargesError(ProblemError):
    """They cannot be measured here; the message says why."""


class Measured(NamedTuple):
    """Of one charge, in ns."""

    median_ns: int
    p99_ns: int
    worst_ns: int
    samples: int

    @classmethod
    def of(cls, samples: Sequence[int]) -> "Measured":
        """Nearest-rank p99."""
        ordered = sorted(samples)
        rank = max(0, ceil(0.99 * len(ordered)) - 1)
        return cls(int(median(ordered)), ordered[rank], ordered[-1], len(ordered))

    @property
    def charge_us(self) -> int:
        """p99 and a quarter more, in whole microseconds, upwards."""
        return max(1, ceil(self.p99_ns * HEADROOM / 1000))


class Charges(NamedTuple):
    """All three. `rt`: in the FIFO class; `bytes`: of the payload; `tls`: sockets were encrypted."""

    decision: Measured
    drain: Measured
    side: Measured
    rt: bool
    bytes: int
    warnings: tuple[str, ...]
    tls: bool = False

    @property
    def line(self) -> str:
        """For the node in the cluster file."""
        parts = ", ".join(f"{name}: {getattr(self, name).charge_us} us" for name in ("decision", "drain", "side"))
        return f"charges: {{{parts}}}"

    def document(self) -> dict[str, Any]:
        """For --json."""
        each = {name: getattr(self, name) for name in ("decision", "drain", "side")}
        return {
            **{name: {**found._asdict(), "charge_us": found.charge_us} for name, found in each.items()},
            "headroom": HEADROOM,
            "rt": self.rt,
            "payload_bytes": self.bytes,
            "tls": self.tls,
            "warnings": list(self.warnings),
            "yaml": self.line,
        }


@api.operator("measure.reads", inputs={"in": "any"}, side={"side": "any"}, output="same")
def reads(value: Any, side: Any) -> Any:
    """Has a side input."""
    del side
    return value


def measure(
    seconds: float, codec: str = "json", value: Any = TYPICAL, rt: bool = True, cpu: int = -1, burst: int = 1,
    tls: Path | None = None,
) -> Charges:  # fmt: skip
    """Takes a little longer than that. `burst`: tuples that come in one write. tls: a node's identity, which both ends
    use. Raises ChargesError, UnknownCodecError, CodecError, TlsError."""
    registry = Registry(operators=[reads])
    payload = registry.codecs.get(codec)
    encoded = payload.encode(payload.from_json(value))
    node = "charges" if tls is None else _node(tls)
    with (
        TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name,
        in_process(_plan(codec, node), Path(name), registry, tls) as runtime,
        _client(runtime, codec, value, burst, tls) as client,
    ):
        _connected(runtime, client)
        if cpu >= 0 and not scheduling.pin(cpu):
            raise ChargesError("no_core", f"--cpu {cpu}: there is no such core here", subject="--cpu")
        scheduling.exact_timers()
        in_class = rt and scheduling.fifo(scheduling.RUNTIME_PRIORITY)
        try:
            bare, _ = _gaps(runtime, payload.decode(encoded), seconds * 0.4)
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
            more, filled = _gaps(runtime, payload.decode(encoded), seconds * 0.5)
            sides = _sides(runtime, payload, encoded, seconds * 0.1)
        finally:
            scheduling.ordinary()
    if not bare or not filled:
        raise ChargesError(
            "no_overlap", "no tuple came while instances ran: give more --seconds, or a machine with a second core"
        )
    idle_ns = int(median(bare + more))
    drains = [max(0, gap - idle_ns) // tuples for gap, tuples in filled]
    found = Measured.of(bare + more), Measured.of(drains), Measured.of(sides)
    return Charges(*found, in_class, len(encoded), tuple(_warnings(found, in_class)), tls is not None)


def _plan(codec: str, node: str) -> core.Plan:
    """`queued` feeds all busy units, `fed` one that does nothing, `side` is the side input of that one."""
    limit = SECOND
    busy = [
        core.Operator(i, f"O{i}", "busy", (QUEUED,), SIDE + i, 1, with_json=json.dumps({"cpu_us": BUSY_US}))
        for i in range(1, UNITS + 1)
    ]
    idle = core.Operator(UNITS + 1, "idle", "measure.reads", (FED,), SIDE + UNITS + 1, 1, sides=(("side", SIDE),))
    names = ["queued", "fed", "side", *(each.name for each in [*busy, idle])]
    return core.Plan(
        query="charges", node=node, index=0, hash=1, epoch=1, policy="edf", largest_batch=1,
        streams=tuple(core.Stream(i, name, codec, deadline_ns=limit) for i, name in enumerate(names, start=1)),
        sources=tuple(core.Source(i, names[i - 1], i) for i in (QUEUED, FED, SIDE)),
        operators=(*busy, idle),
        units=tuple(
            core.Unit(each.id, (each.id,), 1_000_000 * each.id, limit, (each.output,) if each is not idle else ())
            for each in [*busy, idle]
        ),
        outputs=tuple(core.Output(each.id, f"out{each.id}", each.output, limit) for each in busy),
    )  # fmt: skip


def _node(tls: Path) -> str:
    """Whose identity that is. Raises TlsError where it is no node's."""
    from node_agent.tls import identity
    from node_agent.tls.names import TlsError, holder, node_name

    found = identity.load(tls)
    node = node_name(found.name)
    if not node:
        raise TlsError("no_node", f"is of {holder(found.name)}, not of a node", "give the folder of a node", file=tls)
    identity.load(tls, node)
    return node


@contextmanager
def _client(
    runtime: Runtime, codec: str, value: Any, burst: int, tls: Path | None
) -> Iterator["subprocess.Popen[str]"]:
    """The process at the other end; it is ended with the context."""
    assert runtime.acceptor is not None
    host, port = runtime.acceptor.address
    command = [sys.executable, "-m", "node_agent.tools.overhead_client", f"{host}:{port}", codec]
    command += [str(UNITS), str(burst)]
    command += [str(tls)] if tls is not None else []
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(value) + "\n")
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def _connected(runtime: Runtime, client: "subprocess.Popen[str]") -> None:
    """Serve until it listens to every output and its source is connected."""
    assert runtime.acceptor is not None
    until_ns = now_ns() + 20 * SECOND
    while len(runtime.acceptor.sinks) < UNITS or not runtime.context.senders:
        if client.poll() is not None or now_ns() > until_ns:
            raise ChargesError("not_connected", "the process at the other end of the sockets did not connect")
        runtime.step()


def _gaps(runtime: Runtime, value: Any, seconds: float) -> tuple[list[int], list[tuple[int, int]]]:
    """Rounds for that long: stretches between instances without arrivals, and with: (ns, tuples)."""
    bare: list[int] = []
    filled: list[tuple[int, int]] = []
    until_ns = now_ns() + int(seconds * SECOND)
    while now_ns() < until_ns:
        for _ in range(ROUND):
            _admit(runtime, QUEUED, value)
        while runtime.step(wait=False):
            pass
        runtime.facts.publish()
        _read(records.unpack_records(runtime.facts.ring.take(1 << 24)), bare, filled)
        time.sleep(PAUSE_S)
    return bare, filled


def _admit(runtime: Runtime, source: int, value: Any) -> None:
    (deployed,) = runtime.plans.by_hash.values()
    seqs, at_ns = runtime.context.seqs, now_ns()
    seqs[source] = seq = seqs.get(source, 0) + 1
    deployed.engine_slot.engine.admit(
        at_ns, deployed.loaded.source_routes[source], (source, 1, seq, 0, at_ns, at_ns), value, 0
    )


def _read(facts: Iterator[records.Record], bare: list[int], filled: list[tuple[int, int]]) -> None:
    """RAN says when an instance started and ended; only what follows a busy unit without a wait is taken. What a drain
    at its end brings in is written before its RAN, with a later instant than the end."""
    admitted: list[int] = []
    ended_ns, busy, tuples = 0, False, 0
    for fact in facts:
        if isinstance(fact, records.Admitted) and fact.source_id == FED:
            admitted.append(fact.at_ns)
        elif isinstance(fact, records.Ran):
            if busy and fact.start_ns - fact.decision_ns == ended_ns:
                if tuples:
                    filled.append((fact.decision_ns, tuples))
                else:
                    bare.append(fact.decision_ns)
            ended_ns, busy = fact.end_ns, fact.unit <= UNITS
            tuples = sum(at_ns >= ended_ns for at_ns in admitted)
            admitted.clear()


def _sides(runtime: Runtime, codec: Codec, encoded: bytes, seconds: float) -> list[int]:
    """Updates of one side input, through what a drain hands its tuples to."""
    (deployed,) = runtime.plans.by_hash.values()
    arrivals, route = runtime.context.arrivals, deployed.loaded.source_routes[SIDE]
    samples: list[int] = []
    until_ns = now_ns() + int(seconds * SECOND)
    while now_ns() < until_ns:
        for _ in range(100):
            at_ns = now_ns()
            seq = len(samples) + 1
            value = codec.decode(encoded)
            began_ns = now_ns()
            arrivals.add(route, True, (SIDE, 1, seq, 0, at_ns, at_ns), value, len(encoded))
            arrivals.apply(at_ns)
            samples.append(now_ns() - began_ns)
        runtime.facts.publish()
        runtime.facts.ring.take(1 << 24)
    return samples


def _warnings(found: Sequence[Measured], rt: bool) -> Iterator[str]:
    """What makes the figures less than what they should be."""
    if not rt:
        yield "not in the real-time class: other processes may have run in between (setcap cap_sys_nice, or as root)"
    governors = sorted({path.read_text().strip() for path in Path("/sys/devices/system/cpu").glob(
        "cpu[0-9]*/cpufreq/scaling_governor")})  # fmt: skip
    if governors and governors != ["performance"]:
        yield (
            f"the processor's frequency changes (governor {', '.join(governors)}): a node that is idle now and then "
            "is slower than this; measure with 'performance', and run with it"
        )
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        yield "this machine is busy with other things: measure it as it will be when the plan runs"
    names = [name for name, each in zip(("decision", "drain", "side"), found, strict=True)
             if each.p99_ns > 5 * max(1, each.median_ns)]  # fmt: skip
    if names:
        yield f"noisy: the p99 of {', '.join(names)} is more than five times the median; measure again, and longer"


MEANT = {
    "decision": "end of an instance to the start of the next, its result encoded and written",
    "drain": "a tuple read from a socket, decoded, admitted, answered",
    "side": "an update of one side input",
}


def report_text(found: Charges) -> str:
    """For people; the last line is for the cluster file."""
    lines = [f"{'us':10}{'median':>9}{'p99':>9}{'worst':>9}{'samples':>9}"]
    for name, meant in MEANT.items():
        each: Measured = getattr(found, name)
        figures = "".join(f"{ns / 1000:9.1f}" for ns in each[:3])
        lines.append(f"{name:10}{figures}{each.samples:9}   {meant}")
    lines += [f"warning: {warning}" for warning in found.warnings]
    lines.append(
        f"payloads of {found.bytes} bytes{', under TLS' if found.tls else ''}; p99 and a quarter more, in whole us, for"
        " this node in the cluster file:"
    )
    return "\n".join([*lines, found.line])
