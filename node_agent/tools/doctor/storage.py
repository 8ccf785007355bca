"""Findings about the state directory: facts in, findings out."""

from dataclasses import dataclass

from node_agent.tools.doctor.finding import Finding, note, ok, wrong
from node_agent.tools.doctor.machine import MIB

SPOOL_BYTES = 256 * MIB  # traces that wait for the coordinator take up to this
LEAST_BYTES = 64 * MIB
LEAST_SPAN_S, SOON_S = 60, 3600  # a rate is known after the one, and is told where it fills the room within the other
SLOW_SYNC_NS = 100_000_000  # a plan is on disk before a node says that it is prepared
SLOW_BYTES_PER_S = 5_000_000  # 64 bytes a trace record: 78 000 records a second
TOO_SLOW_BYTES_PER_S = 1_000_000

_ELSEWHERE = "give another directory with --state"


@dataclass(frozen=True)
class Storage:
    """A state directory. failed: why nothing could be written there, empty where it could."""

    path: str
    failed: str
    exists: bool = True
    agent: str = ""  # the pid of an agent that holds it
    free: int = 0  # bytes
    bytes_per_s: int = 0  # of a file of some MiB, until it is on disk
    sync_ns: int = 0  # of a small file
    in_memory: bool = False  # a tmpfs: gone with the next start of the machine
    spool_bytes: int = 0  # of traces that the coordinator has not collected
    spool_age_s: int = 0  # since the oldest of their files was written
    spool_span_s: int = 0  # from then until the latest was


def storage(facts: Storage) -> list[Finding]:
    """Whether it can be used; if so, its space and its speed."""
    subject = "state"
    if facts.failed:
        return [wrong(subject, f"{facts.path}: {facts.failed}", f"mend its rights or its disk, or {_ELSEWHERE}")]
    if facts.agent:
        what = f"{facts.path}: in use by an agent (pid {facts.agent})"
        first = note(subject, what, f"for a second agent {_ELSEWHERE}; to try its ports, stop the first")
    elif facts.in_memory:
        what = f"{facts.path}: is in memory, so plans and traces go when the machine starts again"
        first = note(subject, what, _ELSEWHERE)
    else:
        first = ok(subject, f"{facts.path}: can be {'written' if facts.exists else 'made'}")
    found = [first, disk_space(facts.free), disk_speed(facts.bytes_per_s, facts.sync_ns)]
    if facts.spool_bytes:
        found.append(spool(facts.spool_bytes, facts.spool_age_s, facts.spool_span_s))
    return found


def spool(bytes_: int, age_s: int, span_s: int) -> Finding:
    """Traces that wait for the coordinator: how full their room is, since when, and when there is none."""
    subject, mend = "traces", "'coordinator collect' takes them, and makes room"
    summary = f"{bytes_ * 100 // SPOOL_BYTES} % of {SPOOL_BYTES // MIB} MiB wait, the oldest for {age_s // 60} min"
    if bytes_ >= SPOOL_BYTES - MIB:
        return wrong(subject, f"{summary}: there is no room for more, and records are dropped", mend)
    full_in_s = (SPOOL_BYTES - bytes_) * span_s // bytes_ if span_s >= LEAST_SPAN_S else None
    if full_in_s is not None and full_in_s < SOON_S:
        return note(subject, f"{summary}: full in {full_in_s // 60} min at the rate of then", mend)
    return note(subject, summary, mend) if 2 * bytes_ >= SPOOL_BYTES else ok(subject, summary)


def disk_space(free: int) -> Finding:
    """free: bytes that this user may write."""
    subject, summary = "disk space", f"{free // MIB} MiB free"
    mend = f"make room, or {_ELSEWHERE}"
    if free < LEAST_BYTES:
        return wrong(subject, f"{summary}: plans and traces need {LEAST_BYTES // MIB} MiB at least", mend)
    if free < 2 * SPOOL_BYTES:
        what = f"{summary}: traces take up to {SPOOL_BYTES // MIB} MiB while the coordinator is away"
        return note(subject, what, mend)
    return ok(subject, summary)


def disk_speed(bytes_per_s: int, sync_ns: int) -> Finding:
    """Of writes that are on disk when they return."""
    subject = "disk speed"
    summary = f"{bytes_per_s / 1e6:.3g} MB/s, {sync_ns / 1e6:.3g} ms until a small file is on disk"
    mend = f"a faster card or disk, or {_ELSEWHERE}"
    if bytes_per_s < TOO_SLOW_BYTES_PER_S:
        return wrong(subject, f"{summary}: traces are lost above {bytes_per_s // 64} records a second", mend)
    if bytes_per_s < SLOW_BYTES_PER_S:
        return note(subject, f"{summary}: enough for {bytes_per_s // 64} trace records a second", mend)
    if sync_ns > SLOW_SYNC_NS:
        return note(subject, f"{summary}: deployments wait for it, tuples do not", mend)
    return ok(subject, summary)
