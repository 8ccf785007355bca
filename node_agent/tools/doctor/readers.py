"""Reads facts of the machine. Thin: paths and commands are arguments, what cannot be read is None or empty."""

import contextlib
import importlib.util
import itertools
import os
import re
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from node_agent.host import scheduling
from node_agent.host.clock import now_ns
from node_agent.tools.doctor.heat import Firmware, Zone
from node_agent.tools.doctor.machine import RealTime
from node_agent.tools.doctor.software import WallClock

CAP_SYS_NICE = 23
COMMAND_S = 3.0
SLOWED = {"passive", "hot", "critical"}  # kinds of trip points; `active` only starts a fan
Ask = Callable[[int], bool]


def text(path: Path) -> str:
    """A small file without the white space around it; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip().strip("\0")
    except OSError:
        return ""


def number(path: Path) -> int | None:
    """A whole number in a file; None where there is none."""
    try:
        return int(text(path))
    except ValueError:
        return None


def answer(command: Sequence[str]) -> tuple[str, str]:
    """What a command prints, and why it printed nothing of use: (output, '') or ('', why)."""
    plain = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMMAND_S, check=False, text=True,
                              stdin=subprocess.DEVNULL, env=plain)  # fmt: skip
    except FileNotFoundError:
        return "", f"{command[0]} is not installed"
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        return "", f"{command[0]}: {type(error).__name__}"
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        return "", said[0][:120] if said else f"{command[0]}: exit code {done.returncode}"
    return done.stdout.strip(), ""


def compiled(module: str) -> bool:
    """Whether that module of this installation is an extension module."""
    found = importlib.util.find_spec(module)
    return found is not None and not (found.origin or "").endswith(".py")


def real_time(status: Path, ask: Ask = scheduling.fifo) -> RealTime:
    """status: /proc/self/status. ask: takes a priority in a child process of its own; whether it was given."""
    priorities = (scheduling.SUPERVISOR_PRIORITY, scheduling.RUNTIME_PRIORITY)
    highest = next((priority for priority in priorities if _in_child(ask, priority)), 0)
    capable = re.search(r"^CapEff:\s*([0-9a-f]+)", text(status), re.MULTILINE)
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0] if hasattr(resource, "RLIMIT_RTPRIO") else 0
    return RealTime(highest, limit, bool(capable and int(capable[1], 16) >> CAP_SYS_NICE & 1))


def _in_child(ask: Ask, priority: int) -> bool:
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = int(not ask(priority))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def reading_ns(readings: int = 1000, rounds: int = 5) -> int:
    """What one reading of the clock costs, with the loop around it: the quickest of some rounds."""
    best = 1 << 62
    for _ in range(rounds):
        before = now_ns()
        for _ in range(readings):
            now_ns()
        best = min(best, now_ns() - before)
    return best // readings


def clock_resolution() -> tuple[int, int]:
    """As the kernel says, and the smallest step between readings (0 for none), in ns."""
    said = round(time.clock_getres(time.CLOCK_MONOTONIC_RAW) * 1e9)
    seen = [now_ns() for _ in range(2000)]
    steps = [after - before for before, after in itertools.pairwise(seen) if after > before]
    return said, min(steps, default=0)


def group_memory(group: Path) -> tuple[int, int] | None:
    """The limit of the control group and what is used of it, in bytes; None without one. group: /sys/fs/cgroup, which
    inside a container is its own."""
    limit, used = number(group / "memory.max"), number(group / "memory.current")
    if limit is None or used is None:
        return None
    cache = re.search(r"^inactive_file (\d+)$", text(group / "memory.stat"), re.MULTILINE)
    return limit, used - (int(cache[1]) if cache else 0)  # the kernel gives that back when it is asked for memory


def swaps(table: Path) -> list[tuple[str, int, int]]:
    """table: /proc/swaps, sizes in KiB. Name, size and use in bytes."""
    rows = (line.split() for line in text(table).splitlines()[1:])
    return [(row[0], int(row[2]) << 10, int(row[3]) << 10) for row in rows if len(row) >= 4]


def firmware(model: Path, command: Sequence[str]) -> Firmware:
    """model: /proc/device-tree/model; command: vcgencmd get_throttled, which prints throttled=0x50000."""
    said, why = answer(command)
    match = re.search(r"0x([0-9a-fA-F]+)", said)
    if match:
        return Firmware(text(model), int(match[1], 16))
    return Firmware(text(model), None, why or f"it said {said[:40]!r}")


def zones(directory: Path) -> list[Zone]:
    """directory: /sys/class/thermal. Zones that say a temperature one can believe."""
    found = []
    for zone in sorted(directory.glob("thermal_zone*")):
        now = number(zone / "temp")
        if now is None or not 0 < now < 150_000:
            continue
        trips = []
        for kind in sorted(zone.glob("trip_point_*_type")):
            at = number(kind.with_name(kind.name.replace("_type", "_temp")))
            if text(kind) in SLOWED and at is not None and 0 < at < 150_000:
                trips.append(at)
        found.append(Zone(text(zone / "type") or zone.name, now, tuple(trips)))
    return found


def governors(directory: Path) -> dict[str, str]:
    """directory: /sys/devices/system/cpu. The governor by core."""
    files = sorted(directory.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return {file.parts[-3]: text(file) for file in files if text(file)}


def wall_clock(timedatectl: Sequence[str], chronyc: Sequence[str], ntpstat: Sequence[str]) -> WallClock:
    """The first that answers: timedatectl show -p NTPSynchronized, chronyc -n tracking, ntpstat."""
    said, _ = answer(timedatectl)
    match = re.search(r"^NTPSynchronized=(yes|no)$", said, re.MULTILINE)
    first = WallClock(match[1] == "yes", timedatectl[0]) if match else WallClock(None)
    if first.synchronised:
        return first
    said, _ = answer(chronyc)
    match = re.search(r"^Leap status\s*:\s*(.+)$", said, re.MULTILINE)
    if match:
        return WallClock(match[1].strip() != "Not synchronised", chronyc[0])
    said, _ = answer(ntpstat)
    return WallClock(True, ntpstat[0]) if said.startswith("synchronised") else first


def free_space(directory: Path) -> int | None:
    """Bytes that this user may write there; None where that is not allowed."""
    with contextlib.suppress(OSError):
        found = os.statvfs(directory)
        if os.access(directory, os.W_OK | os.X_OK):
            return found.f_bavail * found.f_frsize
    return None
