"""All findings about this machine, and the paths and commands that they come from."""

import os
import platform
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from node_agent.host import scheduling
from node_agent.tools.doctor import disk, heat, machine, readers, software, storage, tcp_ports
from node_agent.tools.doctor.finding import Finding
from protos.installed import requirements


@dataclass(frozen=True)
class Asked:
    """The agent that is to run here, as its `run` arguments say."""

    control: tuple[str, int] = ("127.0.0.1", 0)
    data: tuple[str, int] = ("127.0.0.1", 0)
    state: Path = Path(".shimekiri")
    cores: int = 1
    rt: bool = True
    tls: Path | None = None


@dataclass(frozen=True)
class Sources:
    """Where the facts are; a test gives trees and commands of its own."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    shared_memory: Path = Path("/dev/shm")  # noqa: S108 - shared memory, not a temporary file
    vcgencmd: Sequence[str] = ("vcgencmd", "get_throttled")
    timedatectl: Sequence[str] = ("timedatectl", "show", "-p", "NTPSynchronized")
    chronyc: Sequence[str] = ("chronyc", "-n", "tracking")
    ntpstat: Sequence[str] = ("ntpstat",)
    product: str = "shimekiri"
    ask_real_time: readers.Ask = scheduling.fifo


def examine(asked: Asked, sources: Sources) -> list[Finding]:
    """Every finding, in the order of the table. Takes under a second where the disk is quick."""
    return [
        *_machine(asked, sources),
        *_storage(asked, sources),
        *_software(sources),
        *_identity(asked),
        *_ports(asked),
    ]


def _machine(asked: Asked, sources: Sources) -> Iterator[Finding]:
    proc, kernel = sources.proc, sources.proc / "sys/kernel"
    yield machine.real_time(readers.real_time(proc / "self/status", sources.ask_real_time), asked.rt)
    yield machine.real_time_share(
        readers.number(kernel / "sched_rt_runtime_us"), readers.number(kernel / "sched_rt_period_us")
    )
    yield machine.cores(scheduling.cores(), os.cpu_count() or 1, asked.cores)
    clocks = sources.sys / "devices/system/clocksource/clocksource0"
    available = readers.text(clocks / "available_clocksource").split()
    yield machine.clock_source(readers.text(clocks / "current_clocksource"), available, readers.reading_ns())
    yield machine.clock_resolution(*readers.clock_resolution())
    yield heat.governor(readers.governors(sources.sys / "devices/system/cpu"))
    yield heat.throttling(readers.firmware(proc / "device-tree/model", sources.vcgencmd))
    yield heat.temperature(readers.zones(sources.sys / "class/thermal"))
    yield _memory(asked, sources)
    yield machine.swap(readers.swaps(proc / "swaps"))
    yield machine.shared_memory(readers.free_space(sources.shared_memory), asked.cores)


def _memory(asked: Asked, sources: Sources) -> Finding:
    """What the machine has, or what the control group leaves where that is less."""
    whole = psutil.virtual_memory()
    available, total = int(whole.available), int(whole.total)
    group = readers.group_memory(sources.sys / "fs/cgroup")
    if group is not None:
        limit, used = group
        available, total = min(available, max(0, limit - used)), min(total, limit)
    return machine.memory(available, total, asked.cores)


def _storage(asked: Asked, sources: Sources) -> list[Finding]:
    return storage.storage(disk.read(asked.state, sources.proc / "mounts"))


def _software(sources: Sources) -> Iterator[Finding]:
    demanded = requirements.demanded(sources.product)
    yield software.python(platform.python_version(), demanded.get("", software.LEAST_PYTHON), 8 * struct.calcsize("P"))
    yield software.hot_path(readers.compiled("node_agent.core.job_queues"))
    for name in requirements.PACKAGES:
        yield software.package(name, requirements.installed(name), demanded.get(name))
    yield software.wall_clock(readers.wall_clock(sources.timedatectl, sources.chronyc, sources.ntpstat))


def _identity(asked: Asked) -> list[Finding]:
    if asked.tls is None:
        return []
    from node_agent.tools.doctor.agent_certificate import identity  # loads OpenSSL

    return [identity(asked.tls)]


def _ports(asked: Asked) -> list[Finding]:
    wanted = tcp_ports.wanted(asked.control, asked.data, asked.cores)
    tried = [software.port(tcp_ports.read(use, host, port)) for use, (host, port) in wanted.items()]
    return [*tried, *software.same_ports(wanted)]
