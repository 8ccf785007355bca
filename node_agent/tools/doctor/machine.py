"""Findings about scheduling, cores, clock and memory: facts in, a finding out. No file, clock or process is touched."""

from collections.abc import Sequence
from dataclasses import dataclass

from node_agent.host.scheduling import RUNTIME_PRIORITY, SUPERVISOR_PRIORITY
from node_agent.tools.doctor.finding import Finding, note, ok, wrong

MIB = 1 << 20
QUEUES_BYTES = 64 * MIB  # what queues may take unless a plan says otherwise
AGENT_BYTES = 64 * MIB  # supervisor, one runtime and control: 45 MB when idle
RUNTIME_BYTES = 12 * MIB  # a further runtime
RING_BYTES = 3 * MIB  # a trace ring, rounded up; rings of earlier incarnations stay until they are drained
SLOW_READING_NS = 1_000  # a clock that is read by a system call; the runtime reads it twice per task instance
COARSE_NS = 1_000
USELESS_NS = 1_000_000  # an error of a millisecond in every verdict


@dataclass(frozen=True)
class RealTime:
    """highest: the priority of the FIFO class that a child process was given, 0 for none."""

    highest: int
    limit: int  # RLIMIT_RTPRIO; -1: unlimited
    capable: bool  # CAP_SYS_NICE


def real_time(facts: RealTime, wanted: bool = True) -> Finding:
    """Whether the agent's processes get the class they ask for. wanted: False as with `run --no-rt`."""
    subject, by = "real time", "CAP_SYS_NICE" if facts.capable else "the limit rtprio"
    if facts.highest >= SUPERVISOR_PRIORITY:
        return ok(subject, f"SCHED_FIFO is allowed up to priority {SUPERVISOR_PRIORITY} at least, by {by}")
    if facts.highest >= RUNTIME_PRIORITY:
        what = (
            f"SCHED_FIFO is allowed at {RUNTIME_PRIORITY} but not at {SUPERVISOR_PRIORITY}: the runtime gets it, the"
            " supervisor does not, and notices a hung operator up to 0.9 s late"
        )
        return note(subject, what, "allow the higher priority as well: `node-agent grant-rt` says how")
    what = "SCHED_FIFO is refused: other processes delay tuples, by milliseconds and more"
    if not wanted:
        return note(subject, what + " (as asked for by --no-rt)", "without --no-rt, `node-agent grant-rt` says how")
    if facts.capable or facts.limit == -1 or facts.limit >= RUNTIME_PRIORITY:
        mend = (
            "the limits would allow it, so a container or control group forbids it: start it with --cap-add SYS_NICE,"
            " or give the group a cpu.rt_runtime_us above 0"
        )
    else:
        mend = "`node-agent grant-rt` says how to allow it; or run with --no-rt and do without"
    return wrong(subject, what, mend)


def real_time_share(runtime_us: int | None, period_us: int | None) -> Finding:
    """The cap on all FIFO threads of a core. runtime_us: -1 for no cap. None: cannot be read."""
    subject, off = "real-time share", "sudo sysctl -w kernel.sched_rt_runtime_us"
    if runtime_us is None or not period_us or period_us < 0:
        return note(subject, "cannot be read here", "none needed while utilisation caps are at most 0.95")
    if runtime_us < 0:
        return ok(subject, "not capped: FIFO threads may use all of a core, so any utilisation cap holds")
    share = runtime_us / period_us
    if share <= 0:
        return wrong(subject, "the kernel gives FIFO threads no time at all", f"{off}=950000")
    summary = f"FIFO threads get {100 * share:.4g} % of each {period_us / 1e6:g} s"
    if share >= 0.95:
        return ok(subject, f"{summary}: enough for utilisation caps up to {share:.4g}; for more, {off}=-1")
    return note(subject, summary, f"keep the node's utilisation cap at {share:.4g} or below, or {off}=950000")


def cores(usable: int, present: int, wanted: int) -> Finding:
    """usable: what this process may run on; wanted: `--cores`."""
    subject = "cores"
    summary = f"{usable} of {present} may be used" if usable < present else f"{usable}"
    asked = f"{wanted} runtime{'' if wanted == 1 else 's'}"
    if wanted > usable:
        return wrong(subject, f"{summary}, but {asked} asked for", f"run with --cores {max(1, usable - 1)}")
    if wanted < usable:
        return ok(subject, f"{summary}: {asked}, {usable - wanted} left for control and others")
    what = f"{summary}, and {asked} take{'s' if wanted == 1 else ''} all: control gets what they leave"
    if usable == 1:
        mend = "keep the node's utilisation cap low enough for control (traces, status), or give it a second core"
    else:
        mend = f"leave one core for control: --cores {usable - 1}"
    return note(subject, what, mend)


def clock_source(current: str, available: Sequence[str], reading_ns: int) -> Finding:
    """current: empty where it cannot be read. reading_ns: what one reading costs."""
    subject = "clock source"
    summary = f"{current or 'unknown'}, a reading takes {reading_ns} ns"
    if reading_ns <= SLOW_READING_NS:
        return ok(subject, summary)
    better = [name for name in ("tsc", "arch_sys_counter", "kvm-clock") if name in available and name != current]
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    mend = f"echo {better[0]} | sudo tee {path}" if better else "measure `node-agent charges` here, which includes it"
    return note(subject, f"{summary}: slow, and the runtime reads it twice per task instance", mend)


def clock_resolution(resolution_ns: int, step_ns: int) -> Finding:
    """resolution_ns: as the kernel says; step_ns: the smallest step seen between readings, 0 for none."""
    subject = "clock resolution"
    worst = max(resolution_ns, step_ns)
    summary = f"CLOCK_MONOTONIC_RAW: {resolution_ns} ns" + (f", smallest step seen {step_ns} ns" if step_ns else "")
    mend = "boot with high-resolution timers (highres=on) and another clock source"
    if worst <= COARSE_NS:
        return ok(subject, summary)
    if worst < USELESS_NS:
        return note(subject, f"{summary}: latencies are no more exact than that", mend)
    return wrong(subject, f"{summary}: deadlines of a few milliseconds cannot be judged", mend)


def memory(available: int, total: int, places: int) -> Finding:
    """Bytes. total: of the machine, or of the control group where that is less. places: `--cores`."""
    subject = "memory"
    needed = AGENT_BYTES + QUEUES_BYTES + (places - 1) * RUNTIME_BYTES
    summary = f"{available // MIB} MiB of {total // MIB} MiB available"
    what = f"{summary}; an agent with full queues takes {needed // MIB} MiB, without its operators"
    if available < needed:
        return wrong(subject, what, "end other programs, or give the node less `memory` in the cluster file")
    if available < 2 * needed:
        return note(subject, what, "keep the node's `memory` in the cluster file below what is left")
    return ok(subject, summary)


def shared_memory(free: int | None, places: int) -> Finding:
    """free: bytes of /dev/shm; None: there is none that can be written. Trace rings are there."""
    subject, needed = "shared memory", places * RING_BYTES
    if free is None:
        mend = "mount a tmpfs at /dev/shm that this user may write to"
        return note(subject, "no /dev/shm to write to: trace rings are files in the state directory", mend)
    summary = f"{free // MIB} MiB free in /dev/shm"
    if free < needed:
        mend = "remove what fills /dev/shm, or sudo mount -o remount,size=64M /dev/shm"
        return wrong(subject, f"{summary}; the trace rings need {needed // MIB} MiB", mend)
    return ok(subject, summary)


def swap(devices: Sequence[tuple[str, int, int]]) -> Finding:
    """devices: name, size and use in bytes, of each that is in use."""
    subject = "swap"
    on_disk = [device for device in devices if not device[0].startswith("/dev/zram")]
    if not devices:
        return ok(subject, "none: no page of the agent is ever fetched back from a disk")
    size, used = sum(device[1] for device in devices), sum(device[2] for device in devices)
    summary = f"{size // MIB} MiB, {used // MIB} MiB used"
    if not on_disk:
        what = f"{summary}, compressed in memory (zram): a page that comes back costs some 10 us"
        return note(subject, what, "sudo swapoff -a, where memory suffices")
    what = f"{summary}: a page that has to come back from the disk delays a tuple by milliseconds"
    return note(
        subject, what, "sudo swapoff -a, and remove the entry in /etc/fstab (older Raspberry Pi OS: dphys-swapfile)"
    )
