"""Findings about a processor that is slowed down: facts in, a finding out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from node_agent.tools.doctor.finding import Finding, note, ok, wrong

# Bits of `vcgencmd get_throttled`; the same shifted by 16: since the start.
_BITS = {0: "under-voltage", 1: "clock capped", 2: "throttled", 3: "soft temperature limit"}
_SINCE = 16
_COOL = "cool it (heat sink, fan, shade)"
HOT_MC = 85_000  # where a zone has no trip point: the Raspberry Pi throttles here
NEAR_MC = 10_000


@dataclass(frozen=True)
class Firmware:
    """What a Raspberry Pi's firmware says. flags: None where it was not told; model: empty where unknown."""

    model: str
    flags: int | None
    why: str = ""  # there are no flags


def throttling(facts: Firmware) -> Finding:
    """Under-voltage and throttling, now and since the start."""
    subject = "throttling"
    if facts.flags is None:
        if "Raspberry Pi" not in facts.model:
            return ok(subject, "no Raspberry Pi, so no firmware to ask")
        mend = "install vcgencmd (raspi-utils, libraspberrypi-bin) and add this user to the group video"
        return note(subject, f"{facts.model}: the firmware cannot be asked ({facts.why})", mend)
    now = [name for bit, name in _BITS.items() if facts.flags >> bit & 1]
    past = [name for bit, name in _BITS.items() if facts.flags >> (bit + _SINCE) & 1]
    mend = _mend_of([*now, *past])
    if now:
        return wrong(subject, f"now: {', '.join(now)} (0x{facts.flags:x}): operators take longer than planned", mend)
    if past:
        return note(subject, f"not now, but since the start: {', '.join(past)} (0x{facts.flags:x})", mend)
    return ok(subject, f"{facts.model or 'firmware'}: none since the start")


def _mend_of(names: Sequence[str]) -> str:
    """The supply first: with too little voltage the other bits follow."""
    if "under-voltage" in names:
        return "use the Pi's own power supply and a short cable; then restart to clear what is remembered"
    return f"{_COOL}; then restart to clear what is remembered"


@dataclass(frozen=True)
class Zone:
    """A thermal zone in thousandths of a degree Celsius. trips_mc: where the kernel slows down or switches off."""

    name: str
    now_mc: int
    trips_mc: tuple[int, ...] = ()


def temperature(zones: Sequence[Zone]) -> Finding:
    """The zone that is nearest to being slowed down."""
    subject = "temperature"
    if not zones:
        return ok(subject, "no thermal zones: a virtual machine, or its host sees to it")
    zone = min(zones, key=lambda each: _slowed_at(each) - each.now_mc)
    at = _slowed_at(zone)
    summary = f"{zone.name}: {zone.now_mc / 1000:.0f} C, slowed down at {at / 1000:.0f} C"
    if zone.now_mc >= at:
        return wrong(subject, f"{summary}: operators take longer than planned", _COOL)
    if zone.now_mc >= at - NEAR_MC:
        return note(subject, summary, _COOL)
    return ok(subject, summary)


def _slowed_at(zone: Zone) -> int:
    return min(zone.trips_mc, default=HOT_MC)


def governor(of_cores: Mapping[str, str]) -> Finding:
    """of_cores: the cpufreq governor by core; empty where frequencies are not governed here."""
    subject = "clock rate"
    if not of_cores:
        return ok(subject, "not governed here: a fixed rate, or the host's business")
    others = sorted({name for name in of_cores.values() if name != "performance"})
    if not others:
        return ok(subject, "governor performance on all cores")
    what = f"governor {', '.join(others)}: a tuple after a pause meets a slow core, and profiled costs vary"
    mend = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor (until the next start)"
    return note(subject, what, mend)
