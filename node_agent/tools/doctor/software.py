"""Findings about Python, packages, ports and the wall clock: facts in, a finding out."""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

from node_agent.tools.doctor.finding import Finding, note, ok, wrong
from protos.installed.requirements import meets

LEAST_PYTHON = ">=3.11"  # where the installed package does not say


def python(version: str, demanded: str, bits: int) -> Finding:
    """bits: 32 or 64, of the interpreter."""
    subject, summary = "Python", f"{version}, {bits} bit"
    if not meets(version, demanded):
        return wrong(subject, f"{summary}: needs {demanded}", "make a virtual environment with a newer Python")
    if bits < 64:
        mend = "install a 64-bit system: for a Raspberry Pi, Raspberry Pi OS (64-bit)"
        return wrong(subject, f"{summary}: agents run on 64-bit ARM and x86-64 only", mend)
    return ok(subject, summary)


def hot_path(compiled: bool) -> Finding:
    """compiled: whether the scheduling loop is, or runs as Python."""
    return ok("scheduling", "compiled" if compiled else "plain Python; compiled it takes a third of the CPU time")


def package(name: str, installed: str | None, demanded: str | None) -> Finding:
    """installed: None for not at all. demanded: clauses, such as `==1.85.1`; None where nobody says."""
    install = f"python -m pip install '{name}{demanded or ''}' in the agent's environment"
    if installed is None:
        return wrong(name, "is not installed", install)
    if demanded is None:
        return note(name, f"{installed}; which version is needed is not known", "install the product with pip")
    try:
        good = meets(installed, demanded)
    except ValueError:
        return note(name, f"{installed}; cannot be compared with '{demanded}'", install)
    if good:
        return ok(name, installed)
    return wrong(name, f"{installed}, but {demanded} is needed", install)


@dataclass(frozen=True)
class Port:
    """An address that an agent would listen on. error: errno of the attempt, 0 for none; holder: who has it."""

    use: str  # control, data, data of place 1
    host: str
    port: int  # 0: any
    error: int = 0
    holder: str = ""


def port(facts: Port) -> Finding:
    """Whether it can be listened on."""
    subject = f"port {facts.use}"
    host = f"[{facts.host}]" if ":" in facts.host else facts.host
    summary = f"{host}:{facts.port}"
    option = f"--{facts.use.split()[0]}"
    if not facts.error:
        return ok(subject, f"{summary} is free" if facts.port else f"{host}, any free port")
    if facts.error == errno.EADDRINUSE:
        by = f" by {facts.holder}" if facts.holder else ""
        return wrong(subject, f"{summary} is taken{by}", f"stop what listens there, or give another with {option}")
    if facts.error == errno.EADDRNOTAVAIL:
        return wrong(subject, f"{summary}: this machine has no such address", f"give one of its own with {option}")
    if facts.error in {errno.EACCES, errno.EPERM}:
        return wrong(subject, f"{summary} is not allowed to this user", f"give a port from 1024 on with {option}")
    return wrong(subject, f"{summary}: {os.strerror(facts.error)}", f"give another address with {option}")


def same_ports(wanted: Mapping[str, tuple[str, int]]) -> list[Finding]:
    """wanted: host and port by use. A finding for each that an earlier one has already."""
    seen: dict[tuple[str, int], str] = {}
    found = []
    for use, address in wanted.items():
        first = seen.setdefault(address, use) if address[1] else use
        if first != use:
            what = f"{address[0]}:{address[1]} is asked for twice, for {first} as well"
            found.append(wrong(f"port {use}", what, "give control and data ports of their own"))
    return found


@dataclass(frozen=True)
class WallClock:
    """synchronised: None where nobody here says."""

    synchronised: bool | None
    by: str = ""


def wall_clock(facts: WallClock) -> Finding:
    """Never wrong: no verdict reads the wall clock."""
    subject = "time sync"
    why = "verdicts need none: stamps are CLOCK_MONOTONIC_RAW, and each link probes the offset of its two clocks"
    if facts.synchronised:
        return ok(subject, f"synchronised, says {facts.by}; {why}")
    summary = f"not synchronised, says {facts.by}" if facts.by else "no timedatectl, chrony or ntp that answers"
    return note(
        subject,
        f"{summary}; {why}",
        "only for dates in logs and reports: sudo timedatectl set-ntp true, or install chrony",
    )
